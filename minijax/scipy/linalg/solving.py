"""Decompositions and equations under SciPy's names and defaults.

Matrices are in the last two axes, [..., m, n], of any numbers; integers become the
default float.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.lax import linalg as lax_linalg
from minijax.lax import stop_gradient
from minijax.numpy.arguments import check_rank
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.programs.control_flow.solves import custom_linear_solve
from minijax.programs.linear_algebra.lu import lu_solve as apply_lu
from minijax.programs.linear_algebra.matrices import adjoint, complex_dtype, pair
from minijax.programs.linear_algebra.qr import geqp3_p, geqrf
from minijax.transforms.vectorization import vmap

F = TypeVar("F", bound=Callable[..., Any])


# Arguments that SciPy reads. Nothing here does, so they may have any value.
_UNREAD = ("overwrite_a", "overwrite_b", "check_finite", "lwork", "turbo", "debug")


def compiled(*arrays: str, program: str = "") -> Callable[[F], F]:
    """`jit` of a function; all arguments except `arrays` and `_UNREAD` are static.

    `program` is its name in jaxprs, if that is not its public name.
    """

    def compile_one(function: F) -> F:
        static = {*inspect.signature(function).parameters} - {*arrays, *_UNREAD}
        public = functools.wraps(function)(lambda *args, **kw: jitted(*args, **kw))
        function.__name__ = program or function.__name__
        jitted = jit(function, static_argnames=sorted(static))
        return public if program else jitted  # type: ignore

    return compile_one


def check_choice(argument: str, given: Any, *choices: Any) -> None:
    """Raise ValueError, with the choices, if the value of an argument is another."""
    if given not in choices:
        told = " or ".join(map(repr, choices))
        raise ValueError(f"{argument} is {told}, got {given!r}.")


def inexact(*arrays: Any) -> list[Any]:
    """Arguments as arrays of one inexact dtype."""
    return promote_dtypes_inexact(*(jnp.asarray(array) for array in arrays))


def _signature(name: str, a: Any, b: Any, between: str = "") -> str:
    """How `b` is read, as vectors or matrices, in the words of `jnp.vectorize`."""
    vectors = b.ndim == 1
    if not vectors and a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1]:
        warnings.warn(
            f"jax.scipy.linalg.{name} reads a b of shape {b.shape} as a batch of "
            "vectors; in the future it will be a matrix. To keep vectors write "
            "b[..., None], and .squeeze(-1) behind the result.",
            FutureWarning,
            stacklevel=3,
        )
        vectors = True
    tail = "(n)->(n)" if vectors else "(n,k)->(n,k)"
    return f"(n,n),{between}{tail}"


@compiled("a", program="_cholesky")
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The triangular factor of Hermitian matrices: `Uᴴ U = a`, or `L Lᴴ = a`.

    Only the triangle that `lower` names is read. NaN where `a` is not positive
    definite.
    """
    (a,) = inexact(a)
    factor = lax_linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """`cholesky(a, lower)` and `lower`, as `cho_solve` takes them."""
    return cholesky(a, lower=lower), lower


@jit(static_argnames=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> Array:
    c, b = inexact(c, b)
    signature = _signature("cho_solve", c, b)
    for turned in (not lower, lower):
        step = functools.partial(
            lax_linalg.triangular_solve,
            left_side=True,
            lower=lower,
            transpose_a=turned,
            conjugate_a=turned,
        )
        b = jnp.vectorize(step, signature=signature)(c, b)
    return b


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: Any,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of `a x = b`, from `cho_factor(a)`."""
    c, lower = pair("c_and_lower is the pair that cho_factor returns", c_and_lower)
    return _cho_solve(c, b, lower)


@compiled("a", program="_svd")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """(U, s, Vh) with `a = U diag(s) Vh`, or s alone; see `jax.numpy.linalg.svd`."""
    (a,) = inexact(a)
    return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """`jax.numpy.linalg.det`."""
    return jnp.linalg.det(a)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """`jax.numpy.linalg.inv`."""
    return jnp.linalg.inv(a)


@compiled("a", "b", program="_eigh")
def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """(eigenvalues that rise, eigenvectors in columns) of Hermitian matrices.

    NotImplementedError for a second matrix `b`, `eigvals`, and other types than 1.
    """
    if b is not None or type != 1:
        raise NotImplementedError(
            "eigh: only b=None and type=1 are supported. For a second matrix b = L Lᴴ "
            "decompose L⁻¹ a L⁻ᴴ, with L of `cholesky(b, lower=True)`."
        )
    if eigvals is not None:
        raise NotImplementedError("eigh has no eigvals=: compute all, take a slice.")
    (a,) = inexact(a)
    v, w = lax_linalg.eigh(a, lower=lower)
    return w if eigvals_only else (w, v)


@compiled("a", program="_schur")
def schur(a: Any, output: str = "real") -> tuple[Array, Array]:
    """(T, Z) with `a = Z T Zᴴ`, Z unitary; T upper triangular if it is complex.

    Of real matrices with "real", T has blocks of two for pairs of eigenvalues.
    ValueError for another `output`.
    """
    check_choice("schur: output", output, "real", "complex")
    if output == "complex":
        a = a.astype(complex_dtype(a.dtype))
    return tuple(lax_linalg.schur(a))


@compiled("a")
def lu_factor(
    a: Any, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Both factors of `a` in one array, and the row exchanges, for `lu_solve`."""
    (a,) = inexact(a)
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


@compiled("lu_and_piv", "b")
def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of `a x = b`, `aᵀ x = b` or `aᴴ x = b`, for `trans` 0, 1, 2."""
    factors, pivots = pair("lu_and_piv is the pair that lu_factor returns", lu_and_piv)
    factors, b = inexact(factors, b)
    permutation = lax_linalg.lu_pivots_to_permutation(pivots, factors.shape[-2])
    solve_one = functools.partial(apply_lu, trans=trans)
    signature = _signature("lu_solve", factors, b, "(n),")
    return jnp.vectorize(solve_one, signature=signature)(factors, permutation, b)


@compiled("a")
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """(P, L, U) with `a = P L U`, for one matrix [m, n]; (P L, U) with `permute_l`."""
    (a,) = inexact(a)
    factors, _, permutation = lax_linalg.lu(a)
    m, n = a.shape
    k = min(m, n)
    places = jnp.arange(m, dtype=permutation.dtype)[:, None]
    p = jnp.real(jnp.array(permutation[None, :] == places, dtype=a.dtype))
    lower = jnp.tril(factors, -1)[:, :k] + jnp.eye(m, k, dtype=a.dtype)
    upper = jnp.triu(factors)[:k, :]
    if permute_l:
        return jnp.matmul(p, lower, precision="highest"), upper
    return p, lower, upper


@compiled("a", program="_qr")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple:
    """(Q, R) with `a = Q R`, or (Q, R, p) with `a[:, p] = Q R` if `pivoting`.

    With mode "r" Q is left out; with "economic" the inner size is min(m, n).
    ValueError for another mode.
    """
    check_choice("qr: mode", mode, "full", "r", "economic")
    (a,) = inexact(a)
    out = lax_linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(out[1:] if mode == "r" else out)


def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple:
    """(`c Q`, R), or (`Q c`, R) with mode "left", for Q and R of `a`; Q is not formed.

    With `pivoting` the order of a's columns is third; with `conjugate` Q's complex
    conjugate is meant. Raises ValueError for another mode and sizes that do not fit.
    """
    a, c = inexact(a, c)
    check_rank("qr_multiply", 2, np.inf, a=a)
    check_rank("qr_multiply", 1, np.inf, c=c)
    check_choice("qr_multiply: mode", mode, "right", "left")
    is_vector = c.ndim == 1
    if is_vector:
        c = c[:, None] if mode == "left" else c[None, :]
    m, n = a.shape[-2:]
    k = min(m, n)
    got, size = (c.shape[-2], k) if mode == "left" else (c.shape[-1], m)
    if got != size:
        raise ValueError(
            f"qr_multiply: with mode={mode!r} c must have {size} "
            f"{'rows' if mode == 'left' else 'columns'}, got shapes {a.shape} and "
            f"{c.shape}."
        )
    batch = jnp.broadcast_shapes(a.shape[:-2], c.shape[:-2])
    a = jnp.broadcast_to(a, batch + a.shape[-2:])
    c = jnp.broadcast_to(c, batch + c.shape[-2:])
    order: tuple = ()
    if pivoting:
        r, p, taus = geqp3_p.bind(a, jnp.zeros((*batch, n), np.int32), use_magma=None)
        order = (p - 1,)
    else:
        r, taus = geqrf(a)
    if m > n and mode == "left":
        c = jnp.pad(c, [(0, 0)] * len(batch) + [(0, m - k), (0, 0)])
    c = c.mT if conjugate else c
    left = (mode == "left") != bool(conjugate)
    product = lax_linalg.ormqr(r, taus, c, left=left, transpose=bool(conjugate))
    product = product.mT if conjugate else product
    product = product[..., :k] if mode == "right" else product
    product = product.ravel() if is_vector else product
    return product, jnp.triu(r[..., :k, :]), *order


@compiled("a", "b", program="_solve")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solution x of `a x = b`, for a [..., n, n] and b [n] or [..., n, k].

    With `assume_a="pos"` by Cholesky's factor, of the triangle that `lower` names; with
    "gen", "sym" and "her" by LU. ValueError for another.
    """
    check_choice("solve: assume_a", assume_a, "gen", "sym", "her", "pos")
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b = inexact(a, b)
    is_vector = a.ndim == b.ndim + 1
    if a.shape[-2] != a.shape[-1] or b.shape[-1 if is_vector else -2] != a.shape[-1]:
        raise ValueError(
            "solve takes a [..., n, n] and b [..., n] or [..., n, k], got shapes "
            f"{a.shape} and {b.shape}."
        )
    factors = cho_factor(stop_gradient(a), lower=lower)

    def solve_vector(b: Any) -> Any:
        return custom_linear_solve(
            lambda x: (a @ x[..., None])[..., 0],
            b,
            lambda _, x: cho_solve(factors, x),
            symmetric=True,
        )

    if is_vector:
        return solve_vector(b)
    return vmap(solve_vector, b.ndim - 1, max(a.ndim, b.ndim) - 1)(b)


@compiled("a", "b", program="_solve_triangular")
def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The solution x of `a x = b`, reading only one triangle of `a`.

    `trans` "T" (1) solves with aᵀ, "C" (2) with aᴴ. With `unit_diagonal` the diagonal
    counts as ones. ValueError for another `trans`.
    """
    check_choice("solve_triangular: trans", trans, 0, 1, 2, "N", "T", "C")
    a, b = inexact(a, b)
    solve_one = functools.partial(
        lax_linalg.triangular_solve,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    signature = _signature("solve_triangular", a, b)
    return jnp.vectorize(solve_one, signature=signature)(a, b)


@compiled("a")
def hessenberg(
    a: Any,
    *,
    calc_q: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """H with zeros below the first subdiagonal; with `calc_q` (H, Q), `a = Q H Qᴴ`."""
    if 0 in jnp.shape(a)[-1:]:
        empty = jnp.zeros_like(a)
        return (empty, empty) if calc_q else empty
    reduced, taus = lax_linalg.hessenberg(a)
    h = jnp.triu(reduced, -1)
    if not calc_q:
        return h
    q = lax_linalg.householder_product(reduced[..., 1:, :-1], taus)
    q = jnp.pad(q, [(0, 0)] * (q.ndim - 2) + [(1, 0), (1, 0)])
    return h, q.at[..., 0, 0].set(1)
