"""Matrices given by their diagonals, and index grids.

In JAX: `numpy/lax_numpy.py`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.array_transfers import device_put
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.core.language import canonicalize_dim
from minijax.numpy import arguments, promotion
from minijax.numpy.math.ufuncs import add, power
from minijax.numpy.shapes.broadcasting import _where
from minijax.numpy.shapes.creation import arange, zeros
from minijax.numpy.shapes.joining import stack, tile_to_size
from minijax.support import element_types


def _size(value: Any, name: str) -> int:
    size = arguments.concrete_or_error(canonicalize_dim, value, f"argument {name}")
    if size < 0:
        raise ValueError(f"negative dimensions are not allowed, got {name}={size}")
    return size


# --------------------------------------------------------------------------
# Matrices


def eye(
    N: int, M: int | None = None, k: Any = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """N rows and M (default: N) columns, with ones on the k-th diagonal.

    `k` counts upwards from the main diagonal and may be a traced integer scalar.
    """
    dtype = promotion.user_dtype(dtype, dtypes.default_float_dtype(), "eye")
    offset = promotion.ensure_arraylike("eye", _within_int32(k))
    if offset.shape != () or not dtypes.issubdtype(offset.dtype, np.integer):
        raise ValueError(f"k must be a scalar integer; got {k}")
    shape = (_size(N, "N"), _size(N if M is None else M, "M"))
    row = lax.broadcasted_iota(offset.dtype, shape, 0)
    column = lax.broadcasted_iota(offset.dtype, shape, 1)
    shifted = add(row, offset)
    result = lax.convert_element_type(lax.eq(shifted, column), dtype)
    return result if device is None else device_put(result, device)


def _within_int32(k: Any) -> Any:
    """The number of a diagonal clipped to int32, which no matrix exceeds."""
    if not isinstance(k, int):
        return k
    info = np.iinfo(np.int32)
    return max(info.min, min(info.max, k))


def identity(n: int, dtype: Any = None) -> Array:
    """The identity matrix with `n` rows."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on and below the k-th diagonal, zeros above; float32 by default."""
    dtype = promotion.user_dtype(dtype, np.dtype(np.float32), "tri")
    return _lower_triangle((N, N if M is None else M), k, dtype)


def _lower_triangle(shape: tuple[int, int], k: int, dtype: Any) -> Array:
    index_dtype = element_types.default_int_dtype()
    k = arguments.static_index(k, "offset of a triangle")
    row = lax.broadcasted_iota(index_dtype, shape, 0)
    shifted = lax.add(row, np.array(k, index_dtype))
    column = lax.broadcasted_iota(index_dtype, shape, 1)
    return lax.convert_element_type(lax.ge(shifted, column), dtype)


@jit(static_argnames=("k",))
def tril(m: Any, k: int = 0) -> Array:
    """`m` with zeros above the k-th diagonal; leading axes are batches."""
    mask, m = _mask_of("tril", m, k)
    return lax.select(mask, m, lax.full_like(m, 0))


@jit(static_argnames=("k",))
def triu(m: Any, k: int = 0) -> Array:
    """`m` with zeros below the k-th diagonal; leading axes are batches."""
    mask, m = _mask_of("triu", m, k - 1)
    return lax.select(mask, lax.full_like(m, 0), m)


def _mask_of(name: str, m: Any, k: int) -> tuple[Array, Array]:
    m = promotion.ensure_arraylike(name, m)
    arguments.check_rank(name, 2, np.inf, m=m)
    mask = _lower_triangle(m.shape[-2:], k, np.bool_)
    return lax.broadcast(mask, m.shape[:-2], out_sharding=m.aval.cut), m


def diag(v: Any, k: int = 0) -> Array:
    """A vector as the k-th diagonal of a matrix, or the k-th diagonal of a matrix."""
    return _diag(promotion.ensure_arraylike("diag", v), arguments.index_of(k, "k"))


@jit(static_argnames=("k",))
def _diag(v: Array, k: int) -> Array:
    if v.ndim == 2:
        return diagonal(v, offset=k)
    if v.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    zero = promotion.constant_like(v, 0)
    size = v.shape[0] + abs(k)
    v = lax.pad(v, zero, ((max(0, -k), max(0, k), 0),))
    on_diagonal = eye(size, k=k, dtype=bool)
    return _where(on_diagonal, lax.expand_dims(v, (1,)), zero)


def diagflat(v: Any, k: int = 0) -> Array:
    """A matrix with the flattened `v` on its k-th diagonal."""
    v = promotion.ensure_arraylike("diagflat", v)
    v = lax.reshape(v, (v.size,))
    size = v.shape[0] + abs(k)
    result = zeros(size * size, dtype=v.dtype)
    step = arange(0, size - abs(k))
    place = step + k + step * size if k >= 0 else step + (step - k) * size
    return lax.reshape(result.at[place].set(v), (size, size))


@jit(static_argnames=("offset", "axis1", "axis2"))
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements whose index along `axis2` is that along `axis1` plus `offset`.

    They form the last axis of the result. ValueError for fewer than two axes.
    """
    a = promotion.ensure_arraylike("diagonal", a)
    arguments.check_rank("diagonal", 2, np.inf, a=a)
    offset = arguments.static_index(offset, "'offset' argument of jnp.diagonal()")
    axis1 = arguments.canonicalize_axis(axis1, a.ndim)
    axis2 = arguments.canonicalize_axis(axis2, a.ndim)
    rows, columns = a.shape[axis1], a.shape[axis2]
    size = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    others = [i for i in range(a.ndim) if i not in (axis1, axis2)]
    a = lax.transpose(a, [*others, axis1, axis2])
    i = arange(size)
    j = arange(abs(offset), abs(offset) + size)
    return a[..., i, j] if offset >= 0 else a[..., j, i]


@jit(static_argnames=("N", "increasing"))
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """Vandermonde's matrix: the powers of each element of a vector, in a row.

    Columns are x^(N-1) ... x^0, or in the other order if `increasing`.
    """
    x = promotion.ensure_arraylike("vander", x)
    arguments.check_rank("vander", 1, 1, x=x)
    N = x.shape[0] if N is None else arguments.index_of(N, "N of vander")
    if N < 0:
        raise ValueError("N must be nonnegative")
    exponents = lax.iota(x.dtype, N)
    if not increasing:
        exponents = lax.sub(promotion.constant_like(exponents, N - 1), exponents)
    return power(lax.expand_dims(x, (1,)), lax.expand_dims(exponents, (0,)))


def fill_diagonal(
    a: Any, val: Any, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """A copy of `a` with `val` on its main diagonal; `inplace=False` is required."""
    if inplace:
        raise NotImplementedError(
            "JAX arrays are immutable, must use inplace=False: "
            "a = jnp.fill_diagonal(a, val, inplace=False)"
        )
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    a, val = promotion.ensure_arraylike("fill_diagonal", a, val)
    arguments.check_rank("fill_diagonal", 2, np.inf, a=a)
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    if val.size == 0 < n:
        raise ValueError(
            f"fill_diagonal: val is empty, give at least one of {n} values."
        )
    if val.ndim:
        val = tile_to_size(lax.reshape(val, (val.size,)), n)
    return a.at[(lax.iota(arguments.default_index_dtype(n), n),) * a.ndim].set(val)


# --------------------------------------------------------------------------
# Index grids


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Coordinate arrays of the grid that vectors span.

    `indexing="xy"` swaps the first two axes, as for pictures; "ij" does not. With
    `sparse`, the arrays have size one along each other's axes.
    """
    args = list(promotion.ensure_arraylike_tuple("meshgrid", xi))
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    named = {f"xi[{i}]": arg for i, arg in enumerate(args)}
    arguments.check_rank("meshgrid", 1, 1, **named)
    swapped = indexing == "xy" and len(args) >= 2
    if swapped:
        args[0], args[1] = args[1], args[0]
    full = [arg.shape[0] for arg in args]
    result = []
    for i, arg in enumerate(args):
        shape = full
        if sparse:
            shape = [1] * len(args)
            shape[i] = full[i]
        result.append(lax.broadcast_in_dim(arg, tuple(shape), (i,)))
    if swapped:
        result[0], result[1] = result[1], result[0]
    return result


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """For each axis of a shape, the index along it of every element.

    One array with a leading axis, or a tuple of broadcastable ones if `sparse`.
    """
    dtype = promotion.user_dtype(dtype, element_types.default_int_dtype(), "indices")
    shape = tuple(
        arguments.static_index(size, "dimensions argument of jnp.indices")
        for size in dimensions
    )
    rank = len(shape)
    result = []
    for i, size in enumerate(shape):
        each = lax.iota(dtype, size)
        kept = (1,) * i + (size,) + (1,) * (rank - i - 1) if sparse else shape
        result.append(lax.broadcast_in_dim(each, kept, (i,)))
    if sparse:
        return tuple(result)
    if not result:
        return zeros((0,), dtype)
    return stack(result, 0)
