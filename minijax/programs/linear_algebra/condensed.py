"""Forms on the way to eigenvalues: Hessenberg, tridiagonal, Schur; tridiagonal systems.

In JAX: `lax/linalg.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import lapack
from minijax.core.language import ShapedArray
from minijax.core.rules import Shape, Zero, add_tangents, instantiate
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.joining import concatenate
from minijax.programs.linear_algebra.decompositions import (
    INT32,
    JAX_HAS_NONE,
    Native,
    batch_of_columns,
    call_native,
    decomposition,
    empty,
    info_of,
    letter,
    nan_where_failed,
    square,
    triangle,
)
from minijax.programs.linear_algebra.matrices import is_complex, real_dtype

# ----------------------------------------------------------------------------------
# Hessenberg, tridiagonal, Schur
# ----------------------------------------------------------------------------------


def _all_rows(aval: ShapedArray) -> dict[str, Any]:
    return {"low": np.int32(1), "high": np.int32(aval.shape[-1])}


hessenberg_p = decomposition(
    "hessenberg",
    lambda shape: [square("hessenberg", shape), (shape[0] - 1,)],
    lambda dtype: [dtype, dtype],
    no_derivative=JAX_HAS_NONE,
    cpu=Native("gehrd", _all_rows),
)


def _tridiagonal_shapes(shape: Shape, **_) -> list[Shape]:
    size = square("tridiagonal", shape)[0]
    if size == 0:
        raise ValueError("The input to tridiagonal must have rows. Got shape (0, 0).")
    return [shape, (size,), (size - 1,), (size - 1,)]


tridiagonal_p = decomposition(
    "tridiagonal",
    _tridiagonal_shapes,
    lambda dtype, **_: [dtype, real_dtype(dtype), real_dtype(dtype), dtype],
    no_derivative=JAX_HAS_NONE,
    cpu=Native(("sytrd", "hetrd"), lambda aval, lower: triangle(lower)),
    cuda=Native("cusolver_sytrd_ffi", lambda aval, lower: {"lower": lower}),
)


def _schur_options(aval, *, compute_schur_vectors, sort_eig_vals, **_) -> dict:
    if sort_eig_vals:
        raise NotImplementedError(
            "LAPACK's sorting is not called here; leave out `sort_eig_vals`."
        )
    mode = letter("V" if compute_schur_vectors else "N")
    return {"mode": mode, "sort": letter("N")}


def _schur_extra(aval: ShapedArray, *, compute_schur_vectors, **_) -> list:
    """Unused vectors, the eigenvalues, and how many of them were selected."""
    values = [ShapedArray(aval.shape[:-1], aval.dtype)] * (1 if is_complex(aval) else 2)
    vectors = [] if compute_schur_vectors else [aval]
    return [*vectors, *values, ShapedArray(aval.shape[:-2], INT32)]


schur_p = decomposition(
    "schur",
    lambda shape, compute_schur_vectors, **_: (
        [square("schur", shape)] * (1 + compute_schur_vectors)
    ),
    lambda dtype, compute_schur_vectors, **_: [dtype] * (1 + compute_schur_vectors),
    no_derivative=JAX_HAS_NONE,
    cpu=Native("gees", _schur_options, _schur_extra),
)


def hessenberg(a: Any) -> tuple[Any, Any]:
    """A matrix [..., n, n] with zeros below its first subdiagonal, similar to `a`.

    Below that stand the reflections that made it, whose factors are the second result
    [..., n - 1]. On a CPU only. No derivative.
    """
    return tuple(hessenberg_p.bind(a))  # type: ignore[return-value]


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """A tridiagonal matrix similar to a symmetric or Hermitian one.

    Returns (matrix with reflections, diagonal [..., n], the one beside it [..., n - 1],
    factors of the reflections). `lower` says which triangle is read. No derivative.
    """
    return tuple(tridiagonal_p.bind(a, lower=lower))  # type: ignore[return-value]


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable | None = None,
) -> Any:
    """[T, Q] with `x = Q T Qᴴ`, T upper triangular but for blocks of two; or [T].

    Of a real matrix, complex pairs of eigenvalues are the blocks. On a CPU only,
    without sorting and without a derivative.
    """
    return schur_p.bind(
        x,
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=sort_eig_vals,
        select_callable=select_callable,
    )


# ----------------------------------------------------------------------------------
# tridiagonal_solve
# ----------------------------------------------------------------------------------


def _solve_shape(dl: Shape, d: Shape, du: Shape, b: Shape, **_) -> Shape:
    if not dl == d == du == b[:1]:
        raise TypeError(
            "tridiagonal_solve requires that all diagonals and the columns of b have "
            f"the same size, got {dl}, {d}, {du} and {b}."
        )
    return b


def _solve_meaning(dl, d, du, b, **_):
    index = np.arange(d.shape[-1])
    matrix = np.zeros((*d.shape, d.shape[-1]), d.dtype)
    matrix[..., index, index] = d
    matrix[..., index[1:], index[:-1]] = dl[..., 1:]
    matrix[..., index[:-1], index[1:]] = du[..., :-1]
    return np.linalg.solve(matrix, b)


tridiagonal_solve_p = decomposition(
    "tridiagonal_solve", _solve_shape, ranks=(1, 1, 1, 2), meaning=_solve_meaning
)


def _product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    out = d[..., None] * x
    out = out.at[..., 1:, :].add(dl[..., 1:, None] * x[..., :-1, :])
    return out.at[..., :-1, :].add(du[..., :-1, None] * x[..., 1:, :])


@tridiagonal_solve_p.def_jvp_rule
def _solve_jvp(primals, tangents, **params) -> tuple:  # dx = T⁻¹ (db - dT x)
    *diagonals, _ = primals
    *moved, rhs = tangents
    x = tridiagonal_solve_p.bind(*primals, **params)
    if any(type(t) is not Zero for t in moved):
        dl, d, du = map(instantiate, moved)
        rhs = add_tangents(rhs, -_product(dl, d, du, x))
    return x, tridiagonal_solve_p.bind(*diagonals, instantiate(rhs), **params)


@tridiagonal_solve_p.def_transpose
def _solve_transpose(ct, dl, d, du, b, **params) -> list:
    zero = broadcasting.full_like(d[..., :1], 0)
    lower = concatenate((zero, du[..., :-1]), du.ndim - 1)
    upper = concatenate((dl[..., 1:], zero), dl.ndim - 1)
    return [None] * 3 + [tridiagonal_solve_p.bind(lower, d, upper, ct, **params)]


batch_of_columns(tridiagonal_solve_p, lambda **_: (-2, -1))


def _solve_lowering(ctx, *operands, perturb_singular: bool) -> list:
    aval, outs = ctx.avals_in[3], list(ctx.avals_out)
    on_cpu = ctx.platform == "cpu"
    name = lapack.target("gtsv", aval.dtype) if on_cpu else "cusparse_gtsv2_ffi"
    if empty([aval]):
        return [operands[3]]
    if perturb_singular:
        name = "tridiagonal_solve_perturbed_ffi"
        name = name if on_cpu else "cu_tridiagonal_solve_perturbed"
        return call_native(ctx, name, operands, outs, {})
    if not on_cpu:
        if aval.shape[-2] < 3:
            raise NotImplementedError(
                "tridiagonal_solve on a GPU takes at least three equations: use "
                "numpy.linalg.solve."
            )
        return call_native(ctx, name, operands, outs, {}, [(3, 0)])
    types = [*ctx.avals_in, info_of(ctx, 1)]
    aliases = [(i, i) for i in range(4)]
    *_, x, info = call_native(ctx, name, operands, types, {}, aliases)
    return nan_where_failed(ctx, info, [x], outs)


for _platform in ("cpu", "cuda"):
    tridiagonal_solve_p.def_lowering(_solve_lowering, _platform)


def tridiagonal_solve(
    dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
) -> Any:
    """The solution x of `T x = b`, for T with three diagonals.

    Args:
      dl: [..., m], the entries left of the diagonal; the first is not used.
      d: [..., m], the diagonal.
      du: [..., m], the entries right of it; the last is not used.
      b: [..., m, k].
      perturb_singular: move tiny pivots, so that the solution is finite.

    Raises TypeError for sizes or dtypes that differ.
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=perturb_singular)
