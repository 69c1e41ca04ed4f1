"""The polar decomposition by an iteration of QR and Cholesky (QDWH).

Y. Nakatsukasa, Z. Bai, F. Gygi, Optimizing Halley's iteration for computing the matrix
polar decomposition (2010).

In JAX: `tpu/linalg/qdwh.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.compile.jit_api import jit
from minijax.core.dtypes import finfo
from minijax.primitives.elementwise import extrema
from minijax.primitives.shape.joining import concatenate
from minijax.programs.control_flow.while_loops import while_loop
from minijax.programs.linear_algebra.matrices import adjoint, eye, matmul, symmetrized
from minijax.programs.linear_algebra.qr import qr
from minijax.programs.linear_algebra.triangular import cholesky, triangular_solve

# Above this weight QR is used, which loses fewer digits than Cholesky.
_LARGEST_FOR_CHOLESKY = 100


def _weights(eps: float, most: int) -> list[tuple[float, float, float]]:
    """The (a, b, c) of Halley's iteration, for singular values from `eps` to 1."""
    out: list[tuple[float, float, float]] = []
    low = eps
    while low + 5 * eps < 1 and len(out) < most:
        square = low * low
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low = low * (a + b * square) / (1 + c * square)
        out.append((a, b, c))
    return out


def _step(u: Any, a: float, b: float, c: float) -> Any:
    """`u (a + b uᴴu) (1 + c uᴴu)⁻¹`."""
    columns, ratio = u.shape[1], b / c
    if c > _LARGEST_FOR_CHOLESKY:
        root = c**0.5
        stacked = concatenate([root * u, eye(u.dtype, columns)], 0)
        q, _ = qr(stacked, full_matrices=False)
        product = matmul(q[: u.shape[0]], adjoint(q[u.shape[0] :]))
        return ratio * u + (a - ratio) / root * product
    gram = c * matmul(adjoint(u), u) + eye(u.dtype, columns)
    factor = cholesky(gram, symmetrize_input=False)
    solve: dict[str, Any] = {"left_side": True, "lower": True}
    z = triangular_solve(factor, adjoint(u), **solve)
    z = triangular_solve(factor, z, transpose_a=True, conjugate_a=True, **solve)
    return ratio * u + (a - ratio) * adjoint(z)


@jit(static_argnames=("is_hermitian", "max_iterations", "eps"))
def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """(u, h, steps, converged) with `x = u h`, u with orthonormal columns, h Hermitian.

    Args:
      x: [m, n], m >= n.
      is_hermitian: without effect; Hermitian matrices are treated like others.
      max_iterations: of steps, 10 by default.
      eps: the precision to reach; by default the dtype's.
      dynamic_shape: must be None: there is no such mode here.

    Raises:
      ValueError: fewer rows than columns.
      NotImplementedError: `dynamic_shape` is given.
    """
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(f"qdwh takes x [m, n] with m >= n, got shape {x.shape}.")
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh takes no dynamic_shape: slice x before it.")
    most = 10 if max_iterations is None else int(max_iterations)
    eps = float(finfo(x.dtype).eps) if eps is None else eps
    enough = (5 * eps) ** (1 / 3)
    # The geometric mean of two norms bounds the largest singular value.
    sizes = abs(x)
    bound = (sizes.sum(0).max() * sizes.sum(1).max()) ** 0.5
    u = x / (bound + (bound == 0)).astype(x.dtype)
    moved = np.inf

    def distance(new: Any, old: Any) -> Any:
        difference = abs(new - old)
        return ((difference * difference).sum()) ** 0.5

    weights = _weights(eps, most)
    for a, b, c in weights:
        before, u = u, _step(u, a, b, c)
        if c <= _LARGEST_FOR_CHOLESKY:
            moved = distance(u, before)

    def go_on(state: Any) -> Any:
        steps, _, moved = state
        return (moved > enough) & (steps < most)

    def go(state: Any) -> Any:
        steps, u, _ = state
        after = _step(u, 3, 1, 3)
        return steps + 1, after, distance(after, u)

    moved = extrema.max(moved, np.zeros((), sizes.dtype))
    steps, u, moved = while_loop(go_on, go, (len(weights), u, moved))
    # One step of Newton and Schulz, so that u is orthonormal to the last digit.
    u = 1.5 * u - 0.5 * matmul(u, matmul(adjoint(u), u))
    h = symmetrized(matmul(adjoint(u), x))
    return u, h, steps, moved <= enough
