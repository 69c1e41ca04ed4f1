"""Equations, determinants and spectra of matrices: most of `jax.numpy.linalg`.

Functions take stacks of matrices, [..., m, n], of any numbers; integers become the
default float. Derivatives are those of `lax.linalg`, but for the few below.

In JAX: `numpy/linalg.py`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core import arithmetic as elementwise
from minijax.core import shaping
from minijax.core.array import Array
from minijax.numpy.arguments import check_rank, index_of
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.primitives.linear.matmul_precision import Precision
from minijax.primitives.reduce.sorting import sort
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.rearranging import rev
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.custom.custom_forward import custom_jvp
from minijax.programs.linear_algebra import eigen as _eigen
from minijax.programs.linear_algebra import lu as _lu
from minijax.programs.linear_algebra import qr as _qr
from minijax.programs.linear_algebra import triangular as _triangular
from minijax.programs.linear_algebra.matrices import adjoint, symmetrized, transposed
from minijax.support.config import default_matmul_precision


class EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


def inexact(name: str, *arrays: Any) -> list[Any]:
    """Arguments as inexact arrays of one dtype; TypeError if one is not an array."""
    made = [ensure_arraylike(f"jnp.linalg.{name}", array) for array in arrays]
    return promote_dtypes_inexact(*made)


def _check_square(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(
            f"Argument to {name} must have shape [..., n, n], got {shape}."
        )


# ----------------------------------------------------------------------------------
# Decompositions
# ----------------------------------------------------------------------------------


@jit(static_argnames=("upper", "symmetrize_input"))
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `L Lᴴ = a`, or `U = Lᴴ` with `upper`.

    `a` [..., n, n] is Hermitian and positive definite, else the result is NaN. Without
    `symmetrize_input` only one triangle is read.
    """
    (a,) = inexact("cholesky", a)
    if upper and not symmetrize_input:
        a = adjoint(a)
    factor = _triangular.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@jit(static_argnames=("mode",))
def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with `a = Q R`, for a [..., m, n].

    `mode` is "reduced" (the inner size is min(m, n)), "complete" (m), "r" (R alone) or
    "raw" (the transposed reflections, and their factors). ValueError for another.
    """
    (a,) = inexact("qr", a)
    if mode == "raw":
        reflections, taus = _qr.geqrf(a)
        return QRResult(transposed(reflections), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = _qr.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@jit(static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """(U, S, Vh) with `a = U diag(S) Vh` and S in descending order, or S alone.

    For a [..., m, n]: U [..., m, m] and Vh [..., n, n] with `full_matrices`, else with
    min(m, n) for the inner size. `hermitian` takes eigenvalues instead.
    """
    (a,) = inexact("svd", a)
    if not hermitian:
        out = _eigen.svd(
            a,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            subset_by_index=subset_by_index,
        )
        return SVDResult(*out) if compute_uv else out
    v, w = _eigen.eigh(a, subset_by_index=subset_by_index)
    s, last = jnp.abs(w), a.ndim - 2
    if not compute_uv:
        return rev(sort(s, dimension=-1), [last])
    places = broadcasting.broadcasted_iota(np.uint32, s.shape, last)
    ordered = sort((s, places, jnp.sign(w)), dimension=-1, num_keys=1)
    s, places, sign = (rev(x, [last]) for x in ordered)
    u = jnp.take_along_axis(v, places[..., None, :], axis=-1)
    return SVDResult(u, s, adjoint(u * sign[..., None, :].astype(u.dtype)))


def svdvals(x: Any, /) -> Array:
    """The singular values of [..., m, n], in descending order."""
    x = ensure_arraylike("jnp.linalg.svdvals", x)
    return svd(x, compute_uv=False, hermitian=False)


def eig(a: Any) -> EigResult:
    """Eigenvalues and right eigenvectors, in columns, of [..., n, n]; both complex."""
    (a,) = inexact("eig", a)
    return EigResult(*_eigen.eig(a, compute_left_eigenvectors=False))


@jit
def eigvals(a: Any) -> Array:
    """The eigenvalues of [..., n, n], complex."""
    (a,) = inexact("eigvals", a)
    return _eigen.eig(
        a, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


@jit(static_argnames=("UPLO", "symmetrize_input"))
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, in ascending order, and eigenvectors of Hermitian [..., n, n].

    `UPLO`, "L" or "U", says which triangle is read without `symmetrize_input`.
    ValueError for another.
    """
    array = ensure_arraylike("jnp.linalg.eigh", a)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (array,) = promote_dtypes_inexact(array)
    v, w = _eigen.eigh(array, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@jit(static_argnames=("UPLO", "symmetrize_input"))
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of `eigh`."""
    (a,) = inexact("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input=symmetrize_input)[0]


# ----------------------------------------------------------------------------------
# Equations
# ----------------------------------------------------------------------------------


@jit
def solve(a: Any, b: Any) -> Array:
    """The solution x of `a x = b`, for a [..., n, n] and b [n] or [..., n, k].

    Raises ValueError for matrices that are not square or sizes that do not fit.
    """
    a, b = inexact("solve", a, b)
    if a.ndim < 2:
        raise ValueError(
            f"left hand array must be at least two dimensional; got {a.shape=}"
        )
    if b.ndim > 1 and a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1]:
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(
                f"Invalid shapes for solve: {a.shape}, {b.shape}. For a batch of "
                "vectors write solve(a, b[..., None]).squeeze(-1)."
            )
    signature = "(m,m),(m)->(m)" if b.ndim == 1 else "(m,m),(m,n)->(m,n)"
    return jnp.vectorize(_lu.solve, signature=signature)(a, b)


@jit
def inv(a: Any) -> Array:
    """The inverses of matrices [..., n, n]; inf or NaN where there is none.

    To solve an equation, `solve` is faster and more exact.
    """
    array = ensure_arraylike("jnp.linalg.inv", a)
    _check_square("inv", array.shape)
    ones = jnp.eye(array.shape[-1], dtype=array.dtype)
    return solve(array, broadcasting.broadcast(ones, array.shape[:-2]))


def pinv(
    a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None
) -> Array:
    """The pseudo-inverses [..., n, m] of matrices [..., m, n].

    Singular values below `rtol` times the largest count as zero; by default
    `10 max(m, n) eps`. `rcond` is an older name of it. ValueError for both.
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    return _pinv(a, rtol, hermitian)


@functools.partial(custom_jvp, nondiff_argnums=(1, 2))
@jit(static_argnames=("hermitian",))
def _pinv(a: Any, rtol: Any = None, hermitian: bool = False) -> Array:
    (a,) = inexact("pinv", a)
    check_rank("pinv", 2, np.inf, a=a)
    rows, columns = a.shape[-2:]
    if 0 in (rows, columns):
        return jnp.empty((*a.shape[:-2], columns, rows), a.dtype)
    a = jnp.conj(a)
    if rtol is None:
        rtol = 10.0 * max(rows, columns) * jnp.array(jnp.finfo(a.dtype).eps)
    rtol = jnp.asarray(rtol)
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    rtol = expand_dims(rtol[..., None], range(s.ndim - rtol.ndim - 1))
    s = jnp.where(s > rtol * s[..., 0:1], s, np.inf).astype(u.dtype)
    quotient = jnp.divide(transposed(u), s[..., None])
    out = jnp.matmul(transposed(vh), quotient, precision=Precision.HIGHEST)
    return shaping.convert_element_type(out, a.dtype)


@_pinv.defjvp
def _pinv_jvp(rtol: Any, hermitian: bool, primals: Any, tangents: Any) -> tuple:
    """dP = -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P.

    G. Golub, V. Pereyra, The differentiation of pseudo-inverses (1973). The smaller
    products are taken first.
    """
    (a,), (da,) = primals, tangents
    p = pinv(a, rtol=rtol, hermitian=hermitian)
    if hermitian:
        a, da = symmetrized(a), symmetrized(da)
    with default_matmul_precision("float32"):
        ph, dah = adjoint(p), adjoint(da)
        if a.shape[-2] >= a.shape[-1]:
            s, t = p @ ph @ dah, dah @ ph @ p
            return p, -(p @ da) @ p + s - s @ a @ p + t - p @ a @ t
        s, t = p @ (ph @ dah), dah @ (ph @ p)
        return p, -p @ (da @ p) + s - s @ (a @ p) + t - p @ (a @ t)


def tensorinv(a: Any, ind: int = 2) -> Array:
    """The inverse of an array as a map from its last axes to its first `ind`.

    Raises ValueError if the products of the two groups of sizes differ.
    """
    array = ensure_arraylike("tensorinv", a)
    ind = index_of(ind, "ind of tensorinv")
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got {ind=}")
    first, rest = array.shape[:ind], array.shape[ind:]
    if math.prod(first) != math.prod(rest):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` sizes "
            f"equals that of the others, got shape {array.shape} with {ind=}."
        )
    matrix = array.reshape((math.prod(first), math.prod(rest)))
    return inv(matrix).reshape((*rest, *first))


def tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None = None) -> Array:
    """The x with `tensordot(a, x, x.ndim) = b`; `axes` of a are moved to its end first.

    Raises ValueError for shapes that do not fit.
    """
    a, b = (ensure_arraylike("tensorsolve", x) for x in (a, b))
    if axes is not None:
        a = jnp.moveaxis(a, axes, len(axes) * (a.ndim - 1,))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or b.size != math.prod(shape):
        raise ValueError(
            "tensorsolve takes an array a of shape (*b.shape, *shape of the result) "
            f"with as many entries in both, got {a.shape} and {b.shape}."
        )
    return solve(a.reshape((b.size, b.size)), b.ravel()).reshape(shape)


# ----------------------------------------------------------------------------------
# Determinants
# ----------------------------------------------------------------------------------


def _sign_of_exchanges(lu: Any, pivots: Any) -> Any:
    """How many row exchanges an LU made, by matrix."""
    places = jnp.arange(lu.shape[-1], dtype=pivots.dtype)
    places = expand_dims(places, range(pivots.ndim - 1))
    return jnp.count_nonzero(pivots != places, axis=-1)


@custom_jvp
def _slogdet_small(a: Any) -> tuple[Any, Any]:
    det = a[..., 0, 0]
    if a.shape[-1] == 2:
        det = a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    return jnp.sign(det), jnp.real(jnp.log(jnp.abs(det)))


@custom_jvp
def _slogdet_lu(a: Any) -> tuple[Any, Any]:
    dtype = a.dtype
    factors, pivots, _ = _lu.lu(a)
    diagonal = jnp.diagonal(factors, axis1=-2, axis2=-1)
    is_zero = jnp.any(diagonal == jnp.array(0, dtype=dtype), axis=-1)
    exchanges = _sign_of_exchanges(a, pivots)
    if jnp.iscomplexobj(a):
        phases = diagonal / jnp.abs(diagonal).astype(dtype)
        sign = jnp.prod(phases, axis=-1)
    else:
        sign = jnp.array(1, dtype=dtype)
        exchanges = exchanges + jnp.count_nonzero(diagonal < 0, axis=-1)
    parity = jnp.array(-2 * (exchanges % 2) + 1, dtype=dtype)
    sign = jnp.where(is_zero, jnp.array(0, dtype=dtype), sign * parity)
    logs = jnp.log(jnp.abs(diagonal)).astype(dtype)
    total = jnp.sum(logs, axis=-1)
    logdet = jnp.where(is_zero, jnp.array(-np.inf, dtype=dtype), total)
    return sign, jnp.real(logdet)


@custom_jvp
def _slogdet_qr(a: Any) -> tuple[Any, Any]:
    if jnp.iscomplexobj(a):
        raise NotImplementedError(
            "slogdet method='qr' not implemented for complex inputs: leave it out."
        )
    reflected, taus = _qr.geqrf(a)
    diagonal = jnp.diagonal(reflected, axis1=-2, axis2=-1)
    logdet = jnp.sum(jnp.log(jnp.abs(diagonal)), axis=-1)
    sign = jnp.prod(jnp.sign(diagonal), axis=-1)
    turned = jnp.where(taus[..., : a.shape[-1] - 1] != 0, -1, 1)
    return sign * jnp.prod(turned, axis=-1).astype(sign.dtype), logdet


def _slogdet_jvp(primals: Any, tangents: Any) -> tuple:
    """d log det A = tr(A⁻¹ dA): its real part, and in the sign the imaginary one."""
    (x,), (dx,) = primals, tangents
    sign, logdet = slogdet(x)
    moved = jnp.trace(solve(x, dx), axis1=-1, axis2=-2)
    if not jnp.iscomplexobj(x):
        return (sign, logdet), (jnp.zeros_like(sign), moved)
    real = jnp.real(moved)
    return (sign, logdet), ((moved - real.astype(moved.dtype)) * sign, real)


_SLOGDET = {"small": _slogdet_small, "lu": _slogdet_lu, "qr": _slogdet_qr}
for _method in _SLOGDET.values():
    _method.defjvp(_slogdet_jvp)


@jit(static_argnames=("method",))
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """(sign, log of the absolute value) of the determinants of [..., n, n].

    `method` is "lu" (None) or "qr". Raises ValueError for another, and for matrices
    that are not square.
    """
    (a,) = inexact("slogdet", a)
    _check_square("slogdet()", a.shape)
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), "
            "and 'qr'."
        )
    small = method != "qr" and a.shape[-1] in (1, 2)
    return SlogdetResult(*_SLOGDET["small" if small else method or "lu"](a))


def _cofactor_solve(a: Any, b: Any) -> tuple[Any, Any]:
    """det a, and `det(a) a⁻¹ b`, finite if one pivot of `a` is zero, the last.

    a and b are [..., n, n]. In `L U`, the last entry u of U leaves the product: 1 / u
    times det a is the product d of the other pivots. So the last row is solved with
    1 / d for u, and the rows above are multiplied by det a beforehand.
    """
    if a.shape[-1] == 1:
        return a[..., 0, 0], b
    factors, pivots, permutation = _lu.lu(a)
    batch = broadcasting.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    x = jnp.broadcast_to(b, batch + b.shape[-2:])
    factors = jnp.broadcast_to(factors, batch + factors.shape[-2:])
    diagonal = jnp.diagonal(factors, axis1=-2, axis2=-1)
    exchanges = _sign_of_exchanges(a, pivots)
    sign = jnp.asarray(-2 * (exchanges % 2) + 1, dtype=a.dtype)
    partial = jnp.cumprod(diagonal, axis=-1) * sign[..., None]
    factors = factors.at[..., -1, -1].set(1.0 / partial[..., -2])
    permutation = jnp.broadcast_to(permutation, (*batch, a.shape[-1]))
    solve_with = functools.partial(
        _triangular.triangular_solve, factors, left_side=True
    )
    # A second pivot of zero makes this infinite: then all cofactors count as zero.
    probe = solve_with(jnp.ones(x.shape[:-1], x.dtype), lower=False)
    bad = jnp.any(jnp.isnan(probe) | jnp.isinf(probe), axis=-1)[..., None, None]
    x = jnp.where(bad, jnp.zeros_like(x), x)
    x = jnp.take_along_axis(x, permutation[..., None], axis=-2)
    x = solve_with(x, lower=True, unit_diagonal=True)
    scaled = x[..., :-1, :] * partial[..., -1, None, None]
    x = solve_with(jnp.concatenate((scaled, x[..., -1:, :]), axis=-2), lower=False)
    return partial[..., -1], jnp.where(bad, jnp.zeros_like(x), x)


@custom_jvp
def _det(a: Any) -> Any:
    sign, logdet = slogdet(a)
    return sign * jnp.exp(logdet).astype(sign.dtype)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> tuple:  # d det A = tr(adj(A) dA)
    det, cofactors = _cofactor_solve(primals[0], tangents[0])
    return det, jnp.trace(cofactors, axis1=-1, axis2=-2)


def _product_of(a: Any, columns: tuple[int, ...]) -> Any:
    """The product of the entries in row 0, 1, ... of these columns."""
    entries = [a[..., row, column] for row, column in enumerate(columns)]
    return functools.reduce(elementwise.mul, entries)


@jit
def det(a: Any) -> Array:
    """The determinants of matrices [..., n, n]; ValueError for others."""
    (a,) = inexact("det", a)
    _check_square("det()", a.shape)
    if a.shape[-1] == 2:
        return _product_of(a, (0, 1)) - _product_of(a, (1, 0))
    if a.shape[-1] == 3:
        even = [_product_of(a, columns) for columns in ((0, 1, 2), (1, 2, 0))]
        total = even[0] + even[1] + _product_of(a, (2, 0, 1))
        for columns in ((2, 1, 0), (0, 2, 1), (1, 0, 2)):
            total = total - _product_of(a, columns)
        return total
    return _det(a)


@jit(static_argnames=("hermitian",))
def matrix_rank(
    M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None
) -> Array:
    """How many singular values of [..., m, n] are above `rtol`, an absolute number.

    By default `max(m, n) eps` times the largest. `tol` is an older name; ValueError
    for both.
    """
    array = ensure_arraylike("jnp.linalg.matrix_rank", M)
    if tol is not None:
        if rtol is not None:
            raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
        rtol = tol
    (array,) = promote_dtypes_inexact(array)
    if array.ndim < 2:
        return (array != 0).any().astype(np.int32)
    s = svd(array, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if rtol is None:
        largest = np.max(array.shape[-2:]).astype(s.dtype)
        rtol = s.max(-1) * largest * jnp.finfo(s.dtype).eps
    return jnp.sum(s > jnp.expand_dims(rtol, np.ndim(rtol)), axis=-1)
