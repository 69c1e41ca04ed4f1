"""`jax.numpy.linalg`: norms, powers, chains of products, least squares.

What decomposes matrices is in `products/factoring.py`.

In JAX: `numpy/linalg.py`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, index_of
from minijax.numpy.arraylike import (
    check_arraylike,
    ensure_arraylike,
    ensure_arraylike_tuple,
)
from minijax.numpy.math import elementary_functions, ufuncs
from minijax.numpy.products import contractions, einstein

# fmt: off
# isort: off
from minijax.numpy.products.factoring import (  # noqa: F401
    cholesky, det, eig, eigh, eigvals, eigvalsh, inexact, inv, matrix_rank, pinv, qr,
    slogdet, solve, svd, svdvals, tensorinv, tensorsolve,
)
# isort: on
# fmt: on
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.numpy.reduce import reductions
from minijax.numpy.shapes import diagonals, shaping
from minijax.numpy.shapes.broadcasting import broadcast_to
from minijax.primitives.linear.matmul_precision import Precision
from minijax.primitives.shape.slicing import checked_size
from minijax.primitives.shape.squeezing import expand_dims

P = ParamSpec("P")

# --------------------------------------------------------------------------
# Norms


def _root_of_squares(x: Array, axis: Any, keepdims: bool) -> Array:
    squares = elementary_functions.real(x * elementary_functions.conj(x))
    return elementary_functions.sqrt(
        reductions.sum(squares, axis=axis, keepdims=keepdims)
    )


@jit(static_argnames=("ord", "axis", "keepdims"))
def norm(
    x: Any,
    ord: int | float | str | None = None,
    axis: None | tuple[int, ...] | int = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors along one axis, or of matrices in two; of all, without one.

    The default is the root of the sum of squares. For vectors `ord` is any number, inf,
    -inf or 0; for matrices 1, -1, 2, -2, inf, -inf, "fro" or "nuc". Integers give a
    floating result. Raises ValueError for another `ord` and for more than two axes.
    """
    x = ensure_arraylike("jnp.linalg.norm", x)
    (x,) = promote_dtypes_inexact(x)
    rank = x.ndim
    if axis is None:
        if ord is None:
            return _root_of_squares(x, None, keepdims)
        axes = tuple(range(rank))
    elif isinstance(axis, tuple):
        axes = tuple(canonicalize_axis(i, rank) for i in axis)
    else:
        axes = (canonicalize_axis(axis, rank),)
    if len(axes) == 1:
        order = 2 if ord is None else ord
        return vector_norm(x, ord=order, axis=axes, keepdims=keepdims)
    if len(axes) != 2:
        raise ValueError(
            f"Improper number of axes for norm: {axis=}. Pass one axis to compute a "
            "vector-norm, or two axes to compute a matrix-norm."
        )
    if ord is None or ord in ("f", "fro"):
        return _root_of_squares(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        return _largest_sum(x, ord, axes, keepdims)
    if ord in (2, -2, "nuc"):
        values = svd(shaping.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        if ord == 2:
            out = reductions.amax(values, axis=-1, initial=0)
        elif ord == -2:
            out = reductions.amin(values, axis=-1)
        else:
            out = reductions.sum(values, axis=-1)
        return expand_dims(out, sorted(axes)) if keepdims else out
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


def _largest_sum(
    x: Array, ord: int | float, axes: tuple[int, int], keepdims: bool
) -> Array:
    """The largest (or least) sum of a column, for 1 and -1, or of a row, for inf."""
    rows, columns = axes
    summed, compared = (rows, columns) if ord in (1, -1) else (columns, rows)
    if not keepdims and compared > summed:
        compared -= 1
    sums = reductions.sum(ufuncs.abs(x), axis=summed, keepdims=keepdims)
    if ord > 0:
        return reductions.amax(sums, axis=compared, keepdims=keepdims, initial=0)
    return reductions.amin(sums, axis=compared, keepdims=keepdims)


def vector_norm(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: int | float | str = 2,
) -> Array:
    """The norm of vectors along `axis`; along several, or all, as if they were flat.

    `ord` is any number: 0 counts what is not zero, inf and -inf take the largest and
    the least. Raises ValueError for a string.
    """
    x = ensure_arraylike("jnp.linalg.vector_norm", x)
    if ord is None or ord == 2:
        return _root_of_squares(x, axis, keepdims)
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if ord == np.inf:
        return reductions.amax(ufuncs.abs(x), initial=0, **options)
    if ord == -np.inf:
        return reductions.amin(ufuncs.abs(x), **options)
    if ord == 0:
        dtype = dtypes.finfo(x.dtype).dtype
        return reductions.sum(x != 0, dtype=dtype, **options)
    if ord == 1:
        return reductions.sum(ufuncs.abs(x), **options)
    if isinstance(ord, str):
        way_out = f" Use 'jax.numpy.{ord}' instead." if ord == "inf" else ""
        way_out = " Use '-jax.numpy.inf' instead." if ord == "-inf" else way_out
        raise ValueError(f"Invalid order '{ord}' for vector norm.{way_out}")
    magnitudes = ufuncs.abs(x)
    power = np.array(ord, magnitudes.dtype)
    inverse = np.array(1.0 / power, magnitudes.dtype)
    total = reductions.sum(magnitudes**power, **options)
    return ufuncs.power(total, inverse)


def matrix_norm(
    x: Any, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Array:
    """`norm` of the matrices in the last two axes."""
    x = ensure_arraylike("jnp.linalg.matrix_norm", x)
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


# --------------------------------------------------------------------------
# Powers and chains


@jit(static_argnames=("n",))
def matrix_power(a: Any, n: int) -> Array:
    """Square matrices to a power, by repeated squaring; of inverses, if it is negative.

    Raises TypeError for matrices that are not square, and for an `n` that is no
    integer.
    """
    array = ensure_arraylike("jnp.linalg.matrix_power", a)
    if array.ndim < 2 or array.shape[-2] != array.shape[-1]:
        raise TypeError(
            f"matrix_power takes square matrices [..., n, n], got {array.shape}."
        )
    try:
        n = index_of(n, "n of matrix_power")
    except TypeError as error:
        raise TypeError(f"exponent must be an integer, got {n}") from error
    if n == 0:
        identity = diagonals.eye(array.shape[-2], dtype=array.dtype)
        return broadcast_to(identity, array.shape)
    if n < 0:
        array, n = inv(array), -n
    if n == 3:
        return (array @ array) @ array
    square = array
    result: Any = None
    while n > 0:
        if n % 2:
            result = square if result is None else result @ square
        n //= 2
        if n:
            square = square @ square
    return result


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that costs least.

    The first and the last may be vectors. Raises ValueError for fewer than two arrays
    and for shapes that do not fit.
    """
    chain = list(ensure_arraylike_tuple("jnp.linalg.multi_dot", arrays))
    if len(chain) < 2:
        raise ValueError(
            f"multi_dot requires at least two arrays; got len(arrays)={len(chain)}"
        )
    shapes = [array.shape for array in chain]
    ends = (chain[0], chain[-1])
    if any(end.ndim not in (1, 2) for end in ends) or any(
        array.ndim != 2 for array in chain[1:-1]
    ):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first "
            "and last array which may be 1 or 2 dimensional. Got array shapes "
            f"{shapes}"
        )
    if any(left[-1] != right[0] for left, right in itertools.pairwise(shapes)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of "
            f"following array. Got array shapes {shapes}"
        )
    axes: list[tuple[int, ...]] = [(i, i + 1) for i in range(len(chain))]
    if chain[0].ndim == 1:
        axes[0] = axes[0][1:]
    if chain[-1].ndim == 1:
        axes[-1] = axes[-1][:1]
    operands = itertools.chain(*zip(chain, axes, strict=True))
    return einstein.einsum(*operands, optimize="auto", precision=precision)


# --------------------------------------------------------------------------
# Least squares


def _lstsq(a: Any, b: Any, rcond: Any, *, numpy_resid: bool = False) -> tuple:
    if a.shape[:1] != b.shape[:1]:
        raise ValueError(
            f"Leading dimensions of input arrays must match, got {a.shape}, {b.shape}"
        )
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise TypeError(f"lstsq takes [m, n] and [m] or [m, k]: {a.shape}, {b.shape}.")
    is_vector = b.ndim == 1
    if is_vector:
        b = b[:, None]
    rows, columns = a.shape
    dtype, precision = a.dtype, Precision.HIGHEST
    if a.size == 0:
        s = jnp.empty(0, dtype=dtype)
        rank: Any = jnp.array(0, dtype=int)
        x = jnp.zeros((columns, *b.shape[1:]), dtype=dtype)
    else:
        eps = dtypes.finfo(dtype).eps
        if rcond is None:
            rcond = float(eps) * max(columns, rows)
        else:
            rcond = jnp.where(rcond < 0, eps, rcond)
        u, s, vt = svd(a, full_matrices=False)
        mask = (s > 0) & (s >= jnp.array(rcond, dtype=s.dtype) * s[0])
        rank = mask.sum()
        inverse = 1 / jnp.where(mask, s, 1).astype(dtype)
        inverse = jnp.where(mask, inverse, 0)[:, None]
        along_u = jnp.matmul(u.conj().T, b, precision=precision)
        x = jnp.matmul(vt.conj().T, inverse * along_u, precision=precision)
    if numpy_resid and (rank < columns or rows <= columns):
        residuals = jnp.asarray([])
    else:
        residuals = norm(b - jnp.matmul(a, x, precision=precision), axis=0) ** 2
    return x.ravel() if is_vector else x, residuals, rank, s


_jitted_lstsq = jit(functools.partial(_lstsq, numpy_resid=False))


def lstsq(
    a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x of least |a x - b|, and least |x|: (x, squared residuals, rank, values).

    Args:
      a: [m, n].
      b: [m] or [m, k].
      rcond: singular values below this part of the largest count as zero.
      numpy_resid: no residuals where NumPy gives none; not under `jit`.

    Raises ValueError if the first sizes differ, TypeError for other ranks.
    """
    a, b = inexact("lstsq", a, b)
    if numpy_resid:
        return _lstsq(a, b, rcond, numpy_resid=True)
    return _jitted_lstsq(a, b, rcond)


@jit(static_argnames=("p",))
def cond(x: Any, p: Any = None) -> Array:
    """How much a matrix can enlarge relative errors: |x| |x⁻¹| in the norm `p`.

    Raises ValueError for empty matrices, and if one is not square, unless p is None, 2
    or -2.
    """
    array = ensure_arraylike("cond", x)
    if array.ndim < 2 or 0 in array.shape[-2:]:
        raise ValueError(
            "jnp.linalg.cond: input array must be at least 2D and must not be empty; "
            f"got {array.shape=}"
        )
    if p in (None, 2):
        values = svdvals(x)
        return values[..., 0] / values[..., -1]
    if p == -2:
        values = svdvals(x)
        out = values[..., -1] / values[..., 0]
    else:
        if array.shape[-2] != array.shape[-1]:
            raise ValueError(
                f"jnp.linalg.cond: for {p=}, array must be square; got {array.shape=}"
            )
        axes = (-2, -1)
        out = norm(x, ord=p, axis=axes) * norm(inv(x), ord=p, axis=axes)
    own = jnp.isnan(x).any(axis=(-2, -1))
    return jnp.where(jnp.isnan(out) & ~own, np.inf, out)


# --------------------------------------------------------------------------
# The array API's names for what `jax.numpy` has under others


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Vector products of vectors of length three along `axis`."""
    x1, x2 = ensure_arraylike("jnp.linalg.cross", x1, x2)
    if not checked_size(axis, x1.shape) == checked_size(axis, x2.shape) == 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they "
            f"have shapes {x1.shape} and {x2.shape} with {axis=}"
        )
    return contractions.cross(x1, x2, axis=axis)


def outer(x1: Any, x2: Any, /) -> Array:
    """All products of an element of one vector with one of another."""
    x1, x2 = ensure_arraylike("jnp.linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are {x1.ndim=} {x2.ndim=}"
        )
    return x1[:, None] * x2[None, :]


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two axes."""
    x = ensure_arraylike("jnp.linalg.diagonal", x)
    return diagonals.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of the matrices in the last two axes."""
    x = ensure_arraylike("jnp.linalg.trace", x)
    return contractions.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matmul(
    x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """`jax.numpy.matmul`."""
    x1, x2 = ensure_arraylike("jnp.linalg.matmul", x1, x2)
    return contractions.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding=None,
) -> Array:
    """`jax.numpy.tensordot`."""
    x1, x2 = ensure_arraylike("jnp.linalg.tensordot", x1, x2)
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    return contractions.tensordot(x1, x2, axes, **types, out_sharding=out_sharding)


def _renamed(function: Callable[P, Array]) -> Callable[P, Array]:
    """The same function; errors about its arguments name it with `jnp.linalg`."""

    @functools.wraps(function)
    def renamed(*args: P.args, **keywords: P.kwargs) -> Array:
        check_arraylike(f"jnp.linalg.{function.__name__}", *args)
        return function(*args, **keywords)

    return renamed


vecdot = _renamed(contractions.vecdot)
matrix_transpose = _renamed(shaping.matrix_transpose)
