"""Triangular systems, the Cholesky factor that makes them, and symmetric products.

In JAX: `lax/linalg.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import lapack
from minijax.core import arithmetic as elementwise
from minijax.core import hlo
from minijax.core.language import get_aval
from minijax.core.rules import Shape, def_jvp_with_output, floats
from minijax.primitives.elementwise import extrema
from minijax.primitives.families import lower_fun
from minijax.primitives.shape.squeezing import expand_dims, squeeze
from minijax.programs.control_flow.conditionals import cond
from minijax.programs.linear_algebra.decompositions import (
    JAX_HAS_NONE,
    Native,
    batch_of_columns,
    call_native,
    decomposition,
    empty,
    letter,
    square,
    triangle,
)
from minijax.programs.linear_algebra.matrices import (
    conjugate,
    eye,
    is_complex,
    matmul,
    symmetrized,
    transposed,
    tril,
    triu,
)

# ----------------------------------------------------------------------------------
# triangular_solve
# ----------------------------------------------------------------------------------


def _solve_shape(a: Shape, b: Shape, *, left_side: bool, **_) -> Shape:
    if square("triangular_solve", a)[0] != b[0 if left_side else 1]:
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a} and {b}."
        )
    return b


def _solve_meaning(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        size = np.eye(a.shape[-1], dtype=a.dtype)
        a = a * (1 - size) + size
    a = np.conj(a) if conjugate_a else a
    if transpose_a != (not left_side):
        a = np.swapaxes(a, -1, -2)
    if left_side:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(a, np.swapaxes(b, -1, -2)), -1, -2)


triangular_solve_p = decomposition(
    "triangular_solve", _solve_shape, ranks=(2, 2), meaning=_solve_meaning
)


def _tangent_of_matrix(da, x, a, b, **params) -> Any:  # -a⁻¹ da x, or -x da a⁻¹
    left, unit = params["left_side"], int(params["unit_diagonal"])
    da = tril(da, -unit) if params["lower"] else triu(da, unit)
    da = elementwise.neg(da)
    da = transposed(da) if params["transpose_a"] else da
    da = conjugate(da) if params["conjugate_a"] else da
    rows, columns = b.shape[-2:]
    solve: Callable = functools.partial(triangular_solve, a, **params)
    # The product that leaves the smaller system is taken first.
    if left:
        return solve(matmul(da, x)) if rows > columns else matmul(solve(da), x)
    return solve(matmul(x, da)) if rows < columns else matmul(x, solve(da))


def_jvp_with_output(
    triangular_solve_p,
    _tangent_of_matrix,
    lambda db, x, a, b, **params: triangular_solve(a, db, **params),
)


@triangular_solve_p.def_transpose
def _solve_transpose(ct, a, b, *, transpose_a: bool, **params) -> list:
    return [None, triangular_solve(a, ct, transpose_a=not transpose_a, **params)]


batch_of_columns(
    triangular_solve_p, lambda left_side, **_: (-1, -1) if left_side else (-2, -2)
)


@triangular_solve_p.def_lowering
def _solve_lowering(
    ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal
) -> Any:
    dtype = ctx.avals_in[0].dtype
    kind = (
        ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
    )
    if conjugate_a and not transpose_a:
        a = hlo.chlo.conj(a)
    if ctx.platform == "cpu" and dtype.itemsize >= 4 and not empty(ctx.avals_in):
        options = {
            "side": letter("L" if left_side else "R"),
            "trans_x": letter({"ADJOINT": "C"}.get(kind, kind[0])),
            "diag": letter("U" if unit_diagonal else "N"),
            **triangle(lower),
        }
        name = lapack.target("trsm", dtype)
        return call_native(ctx, name, (a, b), ctx.avals_out, options, [(1, 0)])
    return hlo.stablehlo.triangular_solve(
        a,
        b,
        left_side=left_side,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=hlo.stablehlo.TransposeAttr.get(kind),
    )


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The solution x of `op(a) x = b` with `left_side`, else of `x op(a) = b`.

    Args:
      a: [..., m, m]; only the triangle that `lower` names is read.
      b: [..., m, n] with `left_side`, else [..., n, m]; or with one axis less.
      transpose_a, conjugate_a: what op does.
      unit_diagonal: take ones for the diagonal.

    Returns an array like b. Raises ValueError for shapes that do not fit, TypeError for
    dtypes or batches that differ.
    """
    left, of_a = left_side, get_aval(a)
    single = get_aval(b).ndim == of_a.ndim - 1
    if single:
        b = expand_dims(b, (-1 if left else -2,))
    out = triangular_solve_p.bind(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and is_complex(of_a),
        unit_diagonal=unit_diagonal,
    )
    return squeeze(out, (out.ndim - 1 if left else out.ndim - 2,)) if single else out


# ----------------------------------------------------------------------------------
# cholesky
# ----------------------------------------------------------------------------------


def _cholesky_meaning(x):
    """L; above the diagonal stays what was there, as LAPACK leaves it."""
    lower, strict = np.tril(x), np.tril(x, -1)
    factor = np.linalg.cholesky(lower + np.swapaxes(np.conj(strict), -1, -2))
    return factor + np.triu(x, 1)


cholesky_p = decomposition(
    "cholesky",
    lambda shape: square("cholesky", shape),
    meaning=_cholesky_meaning,
    cpu=Native("potrf", lambda aval: triangle(True)),
    cuda=Native("cusolver_potrf_ffi", lambda aval: {"lower": True}),
)


@cholesky_p.def_jvp_rule
def _cholesky_jvp(primals, tangents) -> tuple:
    """dL = L φ(L⁻¹ dA L⁻ᴴ), φ the lower triangle with half of its diagonal.

    I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527.
    """
    (x,), (dx,) = primals, tangents
    factor = tril(cholesky_p.bind(x))
    inner = triangular_solve(
        factor, dx, left_side=False, transpose_a=True, conjugate_a=True, lower=True
    )
    halved = elementwise.add(np.array(1, x.dtype)[()], eye(x.dtype, x.shape[-1]))
    halved = expand_dims(halved, range(x.ndim - 2))
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    return factor, matmul(factor, tril(inner) / halved)


@cholesky_p.def_lowering
def _cholesky_lowering(ctx, x) -> Any:
    return hlo.stablehlo.cholesky(x, lower=hlo.ir.BoolAttr.get(True))


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with `L Lᴴ = x`, for positive definite [..., n, n].

    NaN where x is not positive definite. `symmetrize_input` takes half of x and its
    adjoint; without it only the lower triangle is read. Raises ValueError for matrices
    that are not square, TypeError for integers.
    """
    return tril(cholesky_p.bind(symmetrized(x) if symmetrize_input else x))


# ----------------------------------------------------------------------------------
# cholesky_update
# ----------------------------------------------------------------------------------


def _update_shape(r: Shape, w: Shape) -> Shape:
    if r[0] != r[1] or w[0] != r[1]:
        raise ValueError(
            "cholesky_update takes a square matrix and a vector of the same size, got "
            f"shapes {r} and {w}."
        )
    return r


cholesky_update_p = decomposition(
    "cholesky_update",
    _update_shape,
    ranks=(2, 1),
    accepted=[floats, floats],
    batches=False,
    meaning=lambda r, w: np.linalg.cholesky(r.T @ r + np.outer(w, w)).T,
    no_derivative=JAX_HAS_NONE,
)
cholesky_update_p.without("batch", JAX_HAS_NONE)


def _rotation(x: Any, y: Any) -> tuple[Any, Any]:
    """Cosine and sine of the rotation that takes (x, y) to (r, 0)."""
    size = extrema.max(abs(x), abs(y))
    x, y = x / size, y / size
    scale = 1 / elementwise.sqrt(x * x + y * y)
    return x * scale, -y * scale


def _updated(r: Any, w: Any) -> Any:
    """One Givens rotation for each row."""
    unmoved = np.array(1, r.dtype), np.array(0, r.dtype)
    for k in range(w.shape[0]):
        cosine, sine = cond(w[k] == 0, lambda x, y: unmoved, _rotation, r[k, k], w[k])
        row = r[k, :]
        r = r.at[k, :].set(cosine * row - sine * w)
        w = cosine * w + sine * row
    return r


cholesky_update_p.def_lowering(lower_fun(_updated))


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper triangular factor of `rᵀ r + w wᵀ`, for r [n, n] and w [n]."""
    return cholesky_update_p.bind(r_matrix, w_vector)


# ----------------------------------------------------------------------------------
# symmetric_product
# ----------------------------------------------------------------------------------


def _product_shape(a: Shape, c: Shape, **_) -> Shape:
    if a[0] != c[1] or c[0] != c[1]:
        raise ValueError(
            "symmetric_product takes a matrix (m, n) and a square matrix (m, m), got "
            f"shapes {a} and {c}."
        )
    return c


symmetric_product_p = decomposition(
    "symmetric_product",
    _product_shape,
    ranks=(2, 2),
    accepted=[floats, floats],
    meaning=lambda a, c, alpha, beta: (
        alpha * (a @ np.swapaxes(a, -1, -2)) + beta * c
    ).astype(c.dtype),
    no_derivative=JAX_HAS_NONE,
)


def _product(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    return alpha * matmul(a, transposed(a)) + beta * c


symmetric_product_p.def_lowering(lower_fun(_product))


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Any:
    """`alpha a aᵀ + beta c`, for a [..., m, n] and symmetric c [..., m, m].

    Without `symmetrize_output`, some machines compute only the lower triangle.
    """
    out = symmetric_product_p.bind(a_matrix, c_matrix, alpha=alpha, beta=beta)
    return tril(out) + transposed(tril(out, -1)) if symmetrize_output else out
