"""LU with row exchanges, and the solution of linear equations by it.

In JAX: `lax/linalg.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import lapack
from minijax.compile.jit_api import jit
from minijax.core import shaping
from minijax.core.language import min_dim
from minijax.core.rules import Shape, def_zero_jvp, zero_tangent_of
from minijax.primitives.families import lower_fun
from minijax.primitives.linear import products
from minijax.primitives.linear.matmul_precision import Precision
from minijax.primitives.reduce.sorting import sort_key_val
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.ordering import stop_gradient
from minijax.primitives.shape.padding import pad
from minijax.primitives.shape.squeezing import index_of
from minijax.programs.control_flow.fori_loops import fori_loop
from minijax.programs.control_flow.solves import custom_linear_solve
from minijax.programs.linear_algebra.decompositions import (
    INT32,
    call_native,
    decomposition,
    empty,
    info_of,
    nan_where_failed,
)
from minijax.programs.linear_algebra.matrices import eye, tril, triu
from minijax.programs.linear_algebra.triangular import triangular_solve
from minijax.support.config import default_matmul_precision
from minijax.transforms.vectorization import vmap

# ----------------------------------------------------------------------------------
# Pivots
# ----------------------------------------------------------------------------------


def _permutation_shape(pivots: Shape, *, permutation_size: int) -> Shape:
    if not permutation_size >= pivots[0]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing "
            f"dimension of the pivots. Got pivots size {pivots[0]}."
        )
    return (permutation_size,)


lu_pivots_to_permutation_p = decomposition(
    "lu_pivots_to_permutation", _permutation_shape, ranks=(1,), accepted=[{np.int32}]
)
def_zero_jvp(lu_pivots_to_permutation_p)


def _permutation(pivots: Any, permutation_size: int) -> Any:
    """Exchange places i and pivots[i], in order."""
    *batch, count = pivots.shape
    shape = (*batch, permutation_size)
    start = broadcasting.broadcasted_iota(np.int32, shape, len(batch))
    if 0 in (count, permutation_size):
        return start

    def exchange(i: Any, places: Any, pivots: Any) -> Any:
        j = pivots[i]
        x, y = places[i], places[j]
        return places.at[i].set(y).at[j].set(x)

    step = exchange
    for _ in batch:
        step = vmap(step, in_axes=(None, 0, 0))
    return fori_loop(0, count, lambda i, places: step(i, places, pivots), start)


lu_pivots_to_permutation_p.def_lowering(lower_fun(_permutation))


@functools.partial(lu_pivots_to_permutation_p.def_lowering, platform="cuda")
def _permutation_on_gpu(ctx, pivots, **params) -> list:
    name = "cu_lu_pivots_to_permutation"
    return call_native(ctx, name, [pivots], ctx.avals_out, {}, column_major=False)


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation [..., permutation_size] that row exchanges [..., k] amount to."""
    size = index_of(permutation_size, "permutation_size")
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=size)


# ----------------------------------------------------------------------------------
# lu
# ----------------------------------------------------------------------------------

lu_p = decomposition(
    "lu",
    lambda shape: [shape, (min_dim(*shape),), (shape[0],)],
    lambda dtype: [dtype, INT32, INT32],
)


@lu_p.def_jvp_rule
def _lu_jvp(primals, tangents) -> tuple:
    """W = L⁻¹ P dA U⁻¹ gives dL = L tril(W, -1) and dU = triu(W) U.

    Factors of matrices that are not square are made so with ones on the diagonal.
    F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using
    triangular factorization, Mathematics of Computation 80 (2011).
    """
    (a,), (da,) = primals, tangents
    factors, pivots, permutation = lu_p.bind(a)
    rule: Callable[..., Any] = _lu_tangent
    for _ in a.shape[:-2]:
        rule = vmap(rule)
    tangent = rule(factors, da, permutation)
    zeros = [zero_tangent_of(x) for x in (pivots, permutation)]
    return [factors, pivots, permutation], [tangent, *zeros]


def _lu_tangent(factors: Any, da: Any, permutation: Any) -> Any:
    rows, columns = da.shape
    size, dtype = min(rows, columns), da.dtype
    zero = np.array(0, dtype)[()]
    none, beside = (0, 0, 0), (0, rows - size, 0)
    lower = pad(tril(factors[:, :size], -1), zero, [none, beside]) + eye(dtype, rows)
    rest, below = columns - size, (0, columns - size, 0)
    ones = pad(eye(dtype, rest), zero, [(size, 0, 0), (size, 0, 0)])
    upper = pad(triu(factors[:size, :]), zero, [below, none]) + ones
    inner = triangular_solve(
        lower, da[permutation], left_side=True, lower=True, unit_diagonal=True
    )
    inner = triangular_solve(upper, inner, left_side=False, lower=False)
    with default_matmul_precision("highest"):
        return lower @ tril(inner, -1) + triu(inner) @ upper


def _lu_lowering(ctx: Any, a: Any) -> list:
    (of_a,) = ctx.avals_in
    of_factors, of_pivots, of_permutation = ctx.avals_out
    on_cpu = ctx.platform == "cpu"
    name = lapack.target("getrf", of_a.dtype) if on_cpu else "cusolver_getrf_ffi"
    if empty([of_a]):
        pivots, results = ctx.full_like(0, of_pivots), [a]
    else:
        types = [of_factors, of_pivots, info_of(ctx)]
        factors, pivots, info = call_native(ctx, name, [a], types, {}, [(0, 0)])
        results = nan_where_failed(ctx, info, [factors], [of_factors], True)

    def counted_from_zero(pivots: Any) -> list:
        places = pivots if empty([of_a]) else pivots - np.int32(1)
        return [places, lu_pivots_to_permutation(places, of_permutation.shape[-1])]

    inner = ctx.replace(avals_in=[of_pivots])
    return [*results, *inner.lower_fun(counted_from_zero, pivots)]


for _platform in ("cpu", "cuda"):
    lu_p.def_lowering(_lu_lowering, _platform)


def lu(x: Any) -> tuple[Any, Any, Any]:
    """`P x = L U` with row exchanges, for x [..., m, n].

    Returns (factors, pivots, permutation): L below the diagonal of the first, its ones
    left out, U above; exchanges [..., min(m, n)] and the permutation [..., m] that they
    amount to, int32.
    """
    return tuple(lu_p.bind(x))  # type: ignore[return-value]


# ----------------------------------------------------------------------------------
# Solving with factors
# ----------------------------------------------------------------------------------


def _broadcast_to(x: Any, shape: Shape) -> Any:
    dims = tuple(range(len(shape) - x.ndim, len(shape)))
    return shaping.broadcast_in_dim(x, shape, dims)


def _solve_one(factors: Any, permutation: Any, b: Any, trans: int) -> Any:
    x = shaping.reshape(b, (factors.shape[0], math.prod(b.shape[1:])))
    of_lower: dict[str, Any] = {"left_side": True, "lower": True, "unit_diagonal": True}
    if trans == 0:
        x = triangular_solve(factors, x[permutation, :], **of_lower)
        x = triangular_solve(factors, x, left_side=True, lower=False)
    elif trans in (1, 2):
        op = {"transpose_a": True, "conjugate_a": trans == 2}
        x = triangular_solve(factors, x, left_side=True, lower=False, **op)
        x = triangular_solve(factors, x, **of_lower, **op)
        places = broadcasting.iota(np.int32, permutation.shape[0])
        _, inverse = sort_key_val(permutation, places)
        x = x[inverse, :]
    else:
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    return shaping.reshape(x, b.shape)


@functools.partial(jit, static_argnums=(3,))
def _lu_solve(lu: Any, permutation: Any, b: Any, trans: int) -> Any:
    if lu.ndim < 2 or lu.shape[-1] != lu.shape[-2]:
        raise ValueError(
            f"last two dimensions of LU decomposition must be equal, got shape "
            f"{lu.shape}"
        )
    if b.ndim < 1:
        raise ValueError(f"b matrix must have rank >= 1, got shape {b.shape}")
    is_vector = lu.ndim == b.ndim + 1
    axis = -1 if is_vector else -2
    if b.shape[axis] != lu.shape[-1]:
        raise ValueError(
            f"axis {axis} of b must have the size of the decomposed matrix, got shapes "
            f"{b.shape} and {lu.shape}"
        )
    if is_vector:
        b = b[..., None]
    batch = broadcasting.broadcast_shapes(
        lu.shape[:-2], permutation.shape[:-1], b.shape[:-2]
    )
    args = [
        _broadcast_to(x, (*batch, *x.shape[x.ndim - rank :]))
        for x, rank in ((lu, 2), (permutation, 1), (b, 2))
    ]
    solve: Callable[..., Any] = _solve_one
    for _ in batch:
        solve = vmap(solve, in_axes=(0, 0, 0, None))
    x = solve(*args, trans)
    return x[..., 0] if is_vector else x


def lu_solve(lu: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """The solution x of `a x = b` from the factors of a; batches are broadcast.

    `trans` 1 solves with the transpose of a, 2 with its adjoint. b is [..., m, k] or
    [..., m]. Raises ValueError for shapes that do not fit.
    """
    return _lu_solve(lu, permutation, b, trans)


def _matvec(a: Any, x: Any) -> Any:
    batch = broadcasting.broadcast_shapes(a.shape[:-2], x.shape[:-1])
    a = _broadcast_to(a, (*batch, *a.shape[-2:]))
    x = _broadcast_to(x, (*batch, x.shape[-1]))
    axes = tuple(range(len(batch)))
    numbers = (((a.ndim - 1,), (x.ndim - 1,)), (axes, axes))
    return products.dot_general(a, x, numbers, precision=Precision.HIGHEST)


def solve(a: Any, b: Any) -> Any:
    """The solution x of `a x = b`, for a [..., m, m] and b [..., m, k] or [..., m].

    Its derivatives are solutions of linear equations with the same factors. Raises
    ValueError for other shapes.
    """
    fits = a.ndim >= 2 and b.ndim in (a.ndim, a.ndim - 1)
    if not (fits and a.shape[-1] == a.shape[-2] == b.shape[a.ndim - 2]):
        raise ValueError(
            "The arguments to solve must have shapes a=[..., m, m] and "
            f"b=[..., m, k] or b=[..., m]; got a={a.shape} and b={b.shape}"
        )
    shape = tuple(
        of_a if of_b == 1 else of_b for of_a, of_b in zip((*a.shape[:-1], 1), b.shape)
    )
    b = shaping.broadcast_in_dim(b, shape, tuple(range(b.ndim)))
    factors, _, permutation = lu(stop_gradient(a))
    solve_one = functools.partial(
        custom_linear_solve,
        lambda x: _matvec(a, x),
        solve=lambda _, x: lu_solve(factors, permutation, x, trans=0),
        transpose_solve=lambda _, x: lu_solve(factors, permutation, x, trans=1),
    )
    if a.ndim == b.ndim + 1:
        return solve_one(b)
    return vmap(solve_one, b.ndim - 1, max(a.ndim, b.ndim) - 1)(b)
