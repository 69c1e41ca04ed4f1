"""Where, and how often: `nonzero` and its kin, `bincount` and histograms.

How many elements are nonzero is the shape of a result, so under `jit` it must be given
as `size`. In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments, arraylike, promotion
from minijax.numpy.index import indexing
from minijax.numpy.math import clipping, differences, ufuncs
from minijax.numpy.reduce import reductions, running
from minijax.numpy.shapes import creation, diagonals, joining, sequences, sorting
from minijax.numpy.shapes.broadcasting import _where
from minijax.numpy.shapes.shaping import atleast_1d, ix_, ravel, reshape, transpose
from minijax.support import element_types

# --------------------------------------------------------------------------
# Where


def nonzero(
    a: Any, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one array for each axis.

    Under `jit`, give `size`: surplus indices are dropped, missing ones are `fill_value`
    (a scalar, or a tuple with one for each axis; zero by default). Raises ValueError
    for scalars and ConcretizationTypeError for a traced array without `size`.
    """
    array = arraylike.ensure_arraylike("nonzero", a)
    if array.ndim == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use "
            "jnp.atleast_1d(scalar).nonzero() instead."
        )
    mask = array if array.dtype == np.bool_ else array != 0
    size = arguments.static_index(
        reductions.sum(mask) if size is None else size,
        "The size argument of jnp.nonzero must be statically specified to use "
        "jnp.nonzero within JAX transformations.",
    )
    if array.size == 0 or size == 0:
        return tuple(creation.zeros(size, int) for _ in array.shape)
    # The running count of hits, counted: entry i is how many elements come before the
    # hit number i + 1, which is where it stands.
    hits = bincount(running.cumsum(mask), length=size)
    places = running.cumsum(hits)
    strides = np.cumprod(array.shape[::-1])[::-1] // array.shape
    result = tuple(
        places // stride % length
        for stride, length in zip(
            strides.astype(places.dtype), array.shape, strict=True
        )
    )
    if fill_value is None:
        return result
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * array.ndim
    if any(np.shape(fill) != () for fill in fills):
        raise ValueError(
            f"fill_value must be a scalar or a tuple of length {array.ndim}; got "
            f"{fill_value}"
        )
    missing = creation.arange(size) >= reductions.sum(mask)
    return tuple(
        _where(missing, fill, entry) for fill, entry in zip(fills, result, strict=True)
    )


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices in the flattened `a` of what is not zero; see `nonzero`."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of what is not zero, one row for each; see `nonzero`."""
    array = arraylike.ensure_arraylike("argwhere", a)
    columns = nonzero(atleast_1d(array), size=size, fill_value=fill_value)
    rows = transpose(joining.vstack(columns))
    if array.ndim == 0:
        return reshape(rows[:0], (rows.shape[0], 0))
    return reshape(rows, (rows.shape[0], array.ndim))


# --------------------------------------------------------------------------
# Indices of grids


def unravel_index(indices: Any, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Flat indices of an array of this shape as one index array for each axis.

    Out of bounds, the nearest valid index is given. Raises ValueError for a shape that
    is not a sequence of numbers.
    """
    rest = arraylike.ensure_arraylike("unravel_index", indices)
    lengths: list[Any] = list(shape) if isinstance(shape, Iterable) else [shape]
    if any(np.ndim(length) != 0 for length in lengths):
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    columns: list[Any] = [0] * len(lengths)
    for i, length in reversed(list(enumerate(lengths))):
        rest, columns[i] = ufuncs.divmod(rest, length)
    too_large = rest > 0
    unsigned = dtypes.issubdtype(rest.dtype, np.unsignedinteger)
    too_small = creation.asarray(False) if unsigned else rest < -1
    return tuple(
        _where(too_large, length - 1, _where(too_small, 0, column))
        for length, column in zip(lengths, columns, strict=True)
    )


def in_bounds(
    name: str, what: str, modes: str, index: Array, size: int, mode: str
) -> Array:
    """`index` for an axis of this size, checked ("raise"), wrapped or clipped."""
    if mode == "clip":
        return clipping.clip(index, 0, size - 1)
    if mode == "wrap":
        return index % size
    if mode != "raise":
        raise ValueError(f"invalid mode={mode!r}. Expected {modes}.")
    index = arguments.concrete_or_error(
        creation.asarray,
        index,
        f"The error occurred because {name} was jit-compiled with mode='raise'. Use "
        "mode='wrap' or mode='clip' instead.",
    )
    if reductions.any((index < 0) | (index >= size)):
        raise ValueError(f"invalid entry in {what} array")
    return index


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Array:
    """One flat index for each tuple of indices into an array of shape `dims`.

    `mode` "wrap" and "clip" mend what is out of bounds, "ignore" does not look, and
    "raise" needs concrete indices. Raises ValueError for an invalid index, mode, order
    or dtype, and TypeError for indices that are no integers.
    """
    if len(multi_index) != len(dims):
        raise ValueError(
            "ravel_multi_index: multi_index must have an array of indices for each of "
            f"dims, got {len(multi_index)} arrays and {len(dims)} dims."
        )
    context = "in `dims` argument of ravel_multi_index()."
    dims = tuple(arguments.static_index(length, context) for length in dims)
    arrays = list(arraylike.ensure_arraylike_tuple("ravel_multi_index", multi_index))
    default = element_types.result_type(int, *arrays)
    dtype = promotion.user_dtype(dtype, default, "ravel_multi_index")
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"dtype={dtype!r} is not an integer type.")
    if math.prod(dims) - 1 > dtypes.iinfo(dtype).max:
        raise ValueError(
            f"jnp.ravel_multi_index: dtype={dtype!r} not large enough to hold "
            f"flattened index for dims={dims!r}. Use the dtype argument to pass a "
            "suitable dtype (e.g. dtype=np.min_scalar_type(prod(dims)))."
        )
    if not all(dtypes.issubdtype(array.dtype, np.integer) for array in arrays):
        raise TypeError("only int indices permitted")
    if mode != "ignore":
        modes = "'raise', 'wrap', 'clip', or 'ignore'"
        names = "ravel_multi_index", "coordinates", modes
        pairs = zip(arrays, dims, strict=True)
        arrays = [in_bounds(*names, array, size, mode) for array, size in pairs]
    if order == "F":
        strides = np.cumprod((1, *dims[:-1]))
    elif order == "C":
        strides = np.cumprod((1, *dims[1:][::-1]))[::-1]
    else:
        raise ValueError(f"invalid {order=}. Expected 'C' or 'F'")
    result = creation.array(0, dtype=dtype)
    for array, stride in zip(arrays, strides, strict=True):
        result = result + lax.convert_element_type(array, dtype) * int(stride)
    return result


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with `ndim` axes of length `n`.

    Raises ValueError for negative numbers.
    """
    n = arguments.static_index(n, "'n' argument of jnp.diag_indices()")
    ndim = arguments.static_index(ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0 or ndim < 0:
        raise ValueError(
            f"n and ndim of diag_indices must be nonnegative, got {n} and {ndim}"
        )
    return (lax.iota(arguments.default_index_dtype(n), n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """The indices of the main diagonal of `arr`, whose axes must be equally long."""
    array = arraylike.ensure_arraylike("diag_indices_from", arr)
    if array.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(array.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(array.shape[0], ndim=array.ndim)


def _triangle_size(n: int, m: int, k: int) -> int:
    """How many elements of an n by m matrix lie on or above diagonal `k`."""
    return sum(max(0, m - max(0, row + k)) for row in range(n))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the upper triangle of an `n` by `m` matrix, from diagonal `k`."""
    n, k, m = _triangle_arguments(n, k, m)
    return _triangle(diagonals.triu, n, m, k, _triangle_size(n, m, k))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the lower triangle of an `n` by `m` matrix, up to diagonal `k`."""
    n, k, m = _triangle_arguments(n, k, m)
    return _triangle(diagonals.tril, n, m, k, _triangle_size(m, n, -k))


def _triangle(
    part: Callable[[Any, int], Any], rows: int, columns: int, k: int, size: int | None
) -> tuple[Array, Array]:
    """The indices of what `part(ones, k)` leaves nonzero in a matrix of ones."""
    places = nonzero(part(creation.ones((rows, columns)), k), size=size)
    return places[0], places[1]


def _triangle_arguments(n: int, k: int, m: int | None) -> tuple[int, int, int]:
    n = arguments.static_index(n, "n argument of jnp.triu_indices")
    k = arguments.static_index(k, "k argument of jnp.triu_indices")
    m = n if m is None else arguments.static_index(m, "m argument of jnp.triu_indices")
    return n, k, m


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for a matrix of the shape of `arr`."""
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k=k, m=columns)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for a matrix of the shape of `arr`."""
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k=k, m=columns)


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = arraylike.ensure_arraylike(name, arr).shape
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """The indices that `mask_func(ones((n, n)), k)` leaves nonzero."""
    return _triangle(mask_func, n, n, k, size)


# --------------------------------------------------------------------------
# How often


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each of 0, 1, 2, ... occurs in `x`, or the sum of its `weights`.

    Negative numbers count as zero. The result has `length` entries, which must be given
    under `jit`; otherwise as many as needed, at least `minlength`. Raises TypeError for
    numbers that are no integers and ValueError for more than one axis.
    """
    if out_sharding is not None:
        raise NotImplementedError(
            "bincount takes no `out_sharding`: write `device_put(result, sharding)`."
        )
    array = arraylike.ensure_arraylike("bincount", x)
    if array.dtype == np.bool_:
        array = lax.convert_element_type(array, np.dtype("int32"))
    if not dtypes.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"x argument to bincount must have an integer type; got {array.dtype}"
        )
    if array.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = arguments.static_index(minlength, "'minlength' of jnp.bincount")
    if length is None:
        values = arguments.concrete_or_error(
            np.asarray,
            array,
            "The error occurred because of argument 'x' of jnp.bincount. To avoid this "
            "error, pass a static `length` argument.",
        )
        needed = int(values.max(initial=0)) + 1 if values.size else 0
        length = max(minlength, needed)
    else:
        length = arguments.static_index(length, "'length' of jnp.bincount")
    if weights is None:
        weights = np.array(1, dtype=element_types.default_int_dtype())
    elif np.shape(weights) != array.shape:
        raise ValueError(
            f"shape of weights must match shape of x. Got {np.shape(weights)} and "
            f"{array.shape}."
        )
    counts = creation.zeros(length, dtypes.dtype(weights))
    return indexing.scatter_update(
        counts, clipping.clip(array, 0), weights, lax.scatter_add, mode="drop"
    )


def histogram_bin_edges(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None
) -> Array:
    """The edges of `bins` equal bins from the least element of `a` to the largest.

    `range` replaces these two; edges given as `bins` are returned as they are. The
    dtype is that of `a`, made inexact. `weights` is not used.
    """
    del weights
    if isinstance(bins, str):
        raise NotImplementedError("bins is a string: give a number, or the edges.")
    arraylike.check_arraylike("histogram_bin_edges", a, bins)
    array = creation.asarray(a)
    dtype = element_types.to_inexact_dtype(array.dtype)
    if np.ndim(bins) == 1:
        return creation.asarray(bins, dtype=dtype)
    count = arguments.static_index(bins, "bins argument of histogram_bin_edges")
    range = [reductions.min(array), reductions.max(array)] if range is None else range
    limits = creation.asarray(range, dtype=dtype)
    if limits.shape != (2,):
        raise ValueError(
            f"`range` must be either None or a sequence of scalars, got {range}"
        )
    # Where all elements are equal, one unit around them.
    is_point = reductions.ptp(limits) == 0
    low = _where(is_point, limits[0] - 0.5, limits[0])
    is_point = reductions.ptp(limits) == 0
    high = _where(is_point, limits[1] + 0.5, limits[1])
    return sequences.linspace(low, high, count + 1, dtype=dtype)


def _some_edges(a: Any, bins: Any, range: Any, weights: Any) -> Array:
    edges = histogram_bin_edges(a, bins, range, weights)
    if not edges.size:
        raise IndexError(f"bins must be a number >= 0, or edges, but it is {bins}.")
    return edges


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: Any = None
) -> tuple[Array, Array]:
    """How many elements of `a` (or the sum of their `weights`) fall into each bin.

    Returns the counts, and the edges as `histogram_bin_edges` gives them; the last bin
    contains its upper edge. With `density` the integral over all bins is one. Raises
    ValueError for weights of another shape.
    """
    if isinstance(bins, str):
        raise TypeError(f"histogram: bins is a number, or the edges, got {bins!r}.")
    if weights is None:
        array, _ = arraylike.ensure_arraylike("histogram", a, bins)
        (array,) = promotion.promote_dtypes_inexact(array)
        weights = creation.ones_like(array)
    else:
        array, _, weights = arraylike.ensure_arraylike("histogram", a, bins, weights)
        if array.shape != weights.shape:
            raise ValueError("weights should have the same shape as a.")
        array, weights = promotion.promote_dtypes_inexact(array, weights)
    edges = _some_edges(array, bins, range, weights)
    places = sorting.searchsorted(edges, array, side="right")
    places = _where(array == edges[-1], len(edges) - 1, places)
    counts = creation.zeros(len(edges), weights.dtype)
    counts = indexing.scatter_update(counts, places, weights, lax.scatter_add)[1:]
    if density:
        counts = counts / differences.diff(edges) / reductions.sum(counts)
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """`histogramdd` of points in a plane: counts, and the edges of both axes."""
    x, y = arraylike.ensure_arraylike("histogram2d", x, y)
    try:
        count = len(bins)
    except TypeError:
        count = 1
    if count not in (1, 2):
        both = creation.asarray(bins)
        bins = [both, both]
    sample = transpose(creation.asarray([x, y]))
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points, the rows of `sample`, fall into each cell of a grid.

    `bins` and `range` may be given for each axis. Returns the counts and a list of
    edges. Raises ValueError for weights, ranges or bins that do not fit the sample.
    """
    if weights is None:
        sample = arraylike.ensure_arraylike("histogramdd", sample)
        (sample,) = promotion.promote_dtypes_inexact(sample)
    else:
        sample, weights = arraylike.ensure_arraylike("histogramdd", sample, weights)
        if weights.shape != sample.shape[:1]:
            raise ValueError("should have one weight for each sample.")
        sample, weights = promotion.promote_dtypes_inexact(sample, weights)
    points, rank = sample.shape
    if range is not None and (
        len(range) != rank or any(r is not None and np.shape(r)[0] != 2 for r in range)
    ):
        raise ValueError(
            f"For sample.shape={(points, rank)}, range must be a sequence of {rank} "
            f"pairs or Nones; got {range=}"
        )
    try:
        bins_of_axis = list(bins)
    except TypeError:
        bins_of_axis = [bins] * rank
    if len(bins_of_axis) != rank:
        raise ValueError("should be a bin for each dimension.")
    ranges = [None] * rank if range is None else range
    cells = []
    edges_of_axis = []
    for axis, (axis_bins, axis_range) in enumerate(
        zip(bins_of_axis, ranges, strict=True)
    ):
        values = sample[:, axis]
        edges = _some_edges(values, axis_bins, axis_range, weights)
        cell = sorting.searchsorted(edges, values, side="right")
        cells.append(_where(values == edges[-1], cell - 1, cell))
        edges_of_axis.append(edges)
    # One cell more at either end, for what lies outside.
    shape = tuple(len(edges) + 1 for edges in edges_of_axis)
    flat = ravel_multi_index(tuple(cells), shape, mode="clip")
    counts = reshape(bincount(flat, weights, length=math.prod(shape)), shape)
    counts = counts[(slice(1, -1),) * rank]
    if density:
        counts = lax.convert_element_type(counts, sample.dtype)
        counts = counts / reductions.sum(counts)
        for widths in ix_(*map(differences.diff, edges_of_axis)):
            counts = counts / widths
    return counts, edges_of_axis
