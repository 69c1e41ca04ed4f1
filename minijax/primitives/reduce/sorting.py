"""Sorting along an axis: `sort` of several operands, and `top_k`.

In JAX: `lax/lax.py`, `sort_p` and `top_k_p`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules, shaping
from minijax.core.language import Primitive, ShapedArray, canonicalize_dim, get_aval
from minijax.core.rules import Zero, scalar_like, zero_tangent_of
from minijax.primitives import families
from minijax.primitives.elementwise import comparing, complex_numbers
from minijax.primitives.index import gathering
from minijax.primitives.shape import broadcasting, squeezing
from minijax.primitives.shape.squeezing import canonicalize_axis, expand_dims

# ----------------------------------------------------------------------------------
# sort
# ----------------------------------------------------------------------------------


def _sort_types(*avals: ShapedArray, **_) -> list[ShapedArray]:
    if any(aval.shape != avals[0].shape for aval in avals):
        shapes = " ".join(str(aval.shape) for aval in avals)
        raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
    return list(avals)


def _sort_meaning(*operands, dimension, is_stable, num_keys) -> list[np.ndarray]:
    keys: list[np.ndarray] = []
    for key in operands[:num_keys]:
        keys += [key.real, key.imag] if key.dtype.kind == "c" else [key]
    order = np.lexsort([_rank(key) for key in reversed(keys)], axis=dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _rank(key: np.ndarray) -> np.ndarray:
    """The position of each entry among the distinct ones: equal zeros, NaNs last."""
    _, positions = np.unique(key, return_inverse=True)
    return positions.reshape(key.shape)


sort_p = families.several_results("sort", _sort_types, _sort_meaning)


@sort_p.def_jvp_rule
def _sort_jvp(primals, tangents, *, dimension: int, is_stable: bool, num_keys: int):
    """Tangents move with their values: sorted indices give the new places."""
    shape = get_aval(primals[0]).shape
    index_dtype = np.dtype(np.uint64 if max(shape) >= 2**32 else np.uint32)
    indices = broadcasting.broadcasted_iota(index_dtype, shape, dimension)
    *out, places = sort_p.bind(
        *primals, indices, dimension=dimension, is_stable=is_stable, num_keys=num_keys
    )
    places = expand_dims(places, (len(shape),))
    in_bounds = gathering.GatherScatterMode.PROMISE_IN_BOUNDS
    out_tangents = [
        t if type(t) is Zero else _take(t, places, dimension, in_bounds)
        for t in tangents
    ]
    return out, out_tangents


sort_p.without("transpose", "its jvp permutes tangents by a gather")


def _take(x: Any, places: Any, axis: int, mode: Any = None) -> Any:
    """Entries of `x` at `places` along `axis`; all other axes are batch axes."""
    rank = get_aval(x).ndim
    others = tuple(other for other in range(rank) if other != axis)
    numbers = gathering.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
    )
    return gathering.gather(x, places, numbers, (1,) * rank, mode=mode)


@sort_p.def_batch
def _sort_batch(axis_data, args, dims, *, dimension: int, **params) -> Any:
    mapped, dim = next((x, d) for x, d in zip(args, dims) if d is not None)
    shape = get_aval(mapped).shape
    kept = tuple(axis for axis in range(len(shape)) if axis != dim)
    operands = [
        shaping.broadcast_in_dim(x, shape, kept)
        if d is None
        else rules.moveaxis(x, d, dim)
        for x, d in zip(args, dims)
    ]
    out = sort_p.bind(*operands, dimension=dimension + (dim <= dimension), **params)
    return out, [dim] * len(out)


def _one_zero_one_nan(x: Any) -> Any:
    """-0 as 0, and every NaN as one: total order would tell them apart."""
    aval = get_aval(x)
    x = elementwise.select(
        elementwise.eq(x, scalar_like(aval, 0)), broadcasting.full_like(x, 0), x
    )
    return elementwise.select(
        elementwise.ne(x, x), broadcasting.full_like(x, np.nan), x
    )


def _comparable(x: Any) -> list[Any]:
    """The keys that an operand stands for: complex numbers by real part, then imag."""
    dtype = get_aval(x).dtype
    if dtypes.issubdtype(dtype, np.complexfloating):
        parts = complex_numbers.real(x), complex_numbers.imag(x)
        return [_one_zero_one_nan(part) for part in parts]
    return [_one_zero_one_nan(x)] if dtypes.issubdtype(dtype, np.floating) else [x]


def comes_before(*operands: Any, num_keys: int = 1, or_equal: bool = False) -> Any:
    """Whether entry x of each operand goes before entry y, in lexicographic order.

    `operands` are x and y of the first operand, then x and y of the second, and so on;
    the first `num_keys` operands are compared. With `or_equal`, ties count too.

    In JAX: `lax/lax.py`, `_sort_lt_comparator` and `_sort_le_comparator`.
    """
    left: list[Any] = []
    right: list[Any] = []
    for position in range(num_keys):
        left += _comparable(operands[2 * position])
        right += _comparable(operands[2 * position + 1])
    last = comparing.le_to_p if or_equal else comparing.lt_to_p
    before = last.bind(left[-1], right[-1])
    for x, y in zip(reversed(left[:-1]), reversed(right[:-1])):
        tied = comparing.bitwise_and(comparing.eq_to_p.bind(x, y), before)
        before = comparing.bitwise_or(comparing.lt_to_p.bind(x, y), tied)
    return before


@sort_p.def_lowering
def _sort_lowering(ctx, *operands, dimension: int, is_stable: bool, num_keys: int):
    sort = hlo.stablehlo.SortOp(
        [ctx.result_type(index) for index in range(len(operands))],
        list(operands),
        dimension=hlo_parts.int_attribute(dimension),
        is_stable=hlo.ir.BoolAttr.get(is_stable),
    )
    pairs = [ShapedArray((), aval.dtype) for aval in ctx.avals_in for _ in range(2)]
    types = [hlo.tensor_type((), aval.dtype) for aval in pairs]
    lower_fun = functools.partial(ctx.replace(avals_in=pairs).lower_fun, comes_before)
    write = functools.partial(lower_fun, num_keys=num_keys)
    hlo_parts.write_region(sort, types, write)
    return list(sort.results)


def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort an array along `dimension`, or several arrays by the first `num_keys`.

    Ascending; -0 equals 0, NaN comes last, complex numbers go by real part and then by
    imaginary part. With a sequence of arrays of one shape, all are permuted alike, in
    the lexicographic order of the keys, and a tuple is returned. A stable sort keeps
    the order of equal keys.

    Raises:
      TypeError: for an empty sequence, or arrays of different shapes.
      ValueError: when `num_keys` is less than 1 or more than there are operands, or the
        dimension does not exist.
    """
    if not isinstance(operand, Sequence):
        if num_keys != 1:
            raise ValueError(f"num_keys={num_keys} must equal 1 for a single operand.")
        return sort((operand,), dimension, is_stable)[0]
    if not operand:
        raise TypeError("Sort requires at least one operand, got an empty sequence.")
    if not 1 <= num_keys <= len(operand):
        raise ValueError(
            f"num_keys={num_keys} must be between 1 and the number of operands, "
            f"{len(operand)}."
        )
    dimension = canonicalize_axis(dimension, get_aval(operand[0]).ndim)
    stable = squeezing.flag_of(is_stable, "is_stable", strict=True)
    return tuple(
        sort_p.bind(*operand, dimension=dimension, is_stable=stable, num_keys=num_keys)
    )


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """Sort `keys` along `dimension`, and permute `values` in the same way.

    Raises:
      TypeError: when the shapes differ.
      ValueError: when the dimension does not exist.
    """
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values


# ----------------------------------------------------------------------------------
# top_k
# ----------------------------------------------------------------------------------


def _picks_entries(primitive: Primitive, axis_name: str) -> None:
    """The rules of a primitive that picks entries along the axis `axis_name`."""

    @primitive.def_jvp_rule
    def _jvp(primals, tangents, **params) -> Any:
        (x,), (t,) = primals, tangents
        values, indices = primitive.bind(x, **params)
        if type(t) is Zero:
            out_tangent: Any = zero_tangent_of(values)
        else:
            places = shaping.reshape(indices, (*get_aval(indices).shape, 1))
            out_tangent = _take(t, places, params[axis_name] % get_aval(x).ndim)
        return [values, indices], [out_tangent, zero_tangent_of(indices)]

    @primitive.def_batch
    def _batch(axis_data, args, dims, **params) -> Any:
        (x,), (dim,) = args, dims
        axis = params[axis_name] % (get_aval(x).ndim - 1)
        params[axis_name] = axis + (dim <= axis)
        return primitive.bind(x, **params), [dim, dim]

    primitive.without("transpose", "its jvp picks tangents by a gather")


def _top_k_types(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("top_k is not compatible with complex inputs.")
    if x.ndim == 0:
        raise TypeError("top_k operand must have >= 1 dimension, got a scalar.")
    if not 0 <= axis < x.ndim:
        raise ValueError(
            f"axis argument out of range: axis={axis} for an operand of shape {x.shape}"
        )
    size = x.shape[axis]
    if size < k:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"k={k} with shape={list(x.shape)} and axis={axis}"
        )
    if size > 2**31:
        raise ValueError(
            "top_k returns int32 indices, which cannot number an axis of size "
            f"{size}; got an operand of shape {x.shape}."
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [x.update(shape=shape), x.update(shape=shape, dtype=np.dtype(np.int32))]


def _top_k_meaning(x: np.ndarray, *, k: int, axis: int) -> list[np.ndarray]:
    order = np.argsort(-_rank(x), axis=axis, kind="stable")
    order = np.take(order, range(k), axis=axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


top_k_p = families.several_results("top_k", _top_k_types, _top_k_meaning)


_picks_entries(top_k_p, "axis")


@top_k_p.def_lowering
def _top_k_lowering(ctx, x, *, k: int, axis: int) -> Any:
    rank = ctx.avals_in[0].ndim
    permutation = list(range(rank))
    permutation[axis], permutation[-1] = rank - 1, axis
    order = hlo.int_array(permutation)
    if axis == rank - 1:
        return list(hlo.chlo.top_k(x, hlo_parts.int_attribute(k)))
    results = hlo.chlo.top_k(
        hlo.stablehlo.transpose(x, order), hlo_parts.int_attribute(k)
    )
    return [hlo.stablehlo.transpose(result, order) for result in results]


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """The `k` largest entries along `axis`, the largest first, and their int32 indices.

    Of equal entries the one with the lower index comes first.

    Raises:
      ValueError: when `k` is negative or more than the size of the axis, when the axis
        does not exist, and for complex numbers.
      TypeError: for scalars.
    """
    k = canonicalize_dim(k)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    axis = canonicalize_axis(axis, get_aval(operand).ndim)
    return top_k_p.bind(operand, k=k, axis=axis)


# ----------------------------------------------------------------------------------
# approx_max_k and approx_min_k
# ----------------------------------------------------------------------------------


def _approx_top_k_types(x: ShapedArray, *, k: int, **params) -> list[ShapedArray]:
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    recall, size = params["recall_target"], params["reduction_input_size_override"]
    axis = canonicalize_axis(params["reduction_dimension"], x.ndim) if x.ndim else 0
    types = _top_k_types(x, k=k, axis=axis)
    if not 0 < recall <= 1 or 0 <= size < x.shape[axis]:
        raise ValueError("recall_target or reduction_input_size_override out of range")
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise ValueError(f"operand must be a floating type, got {x.dtype}")
    if params["aggregate_to_topk"]:
        return types
    found = hlo_parts.approx_top_k_size(x.shape[axis], x.ndim, k, recall, size)
    return _top_k_types(x, k=found, axis=axis)


approx_top_k_p = families.several_results("approx_top_k", _approx_top_k_types)
_picks_entries(approx_top_k_p, "reduction_dimension")


@approx_top_k_p.def_lowering
def _approx_top_k_lowering(ctx, x, *, reduction_dimension, is_max_k, **_) -> Any:
    k = ctx.avals_out[0].shape[reduction_dimension]

    def exact(x: Any) -> list[Any]:
        sign = scalar_like(get_aval(x), 1 if is_max_k else -1)
        values, indices = top_k(elementwise.mul(x, sign), k, axis=reduction_dimension)
        return [elementwise.mul(values, sign), indices]

    return ctx.lower_fun(exact, x)


def _approximate(is_max_k: bool, x: Any, k: int, axis: int, *options: Any) -> Any:
    names = "recall_target", "reduction_input_size_override", "aggregate_to_topk"
    k, axis = squeezing.indices_of((k, axis), "(k, reduction_dimension)")
    params = {"k": k, "reduction_dimension": axis, **dict(zip(names, options))}
    return approx_top_k_p.bind(x, is_max_k=is_max_k, **params)


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The `k` largest entries along an axis, and their int32 indices.

    A TPU may find `recall_target` of them only, in less time (arXiv 2206.14286); here
    they are exact on each machine, as JAX's are on CPUs and GPUs where nothing is NaN.

    Args:
      operand: an array of floats.
      k: how many.
      reduction_dimension: the axis.
      recall_target: the fraction of them that must be found.
      reduction_input_size_override: the size of the whole axis where `operand` is a
        part of it.
      aggregate_to_topk: False gives more entries than `k`: as many as a TPU would look
        through at last, which follows from the size and the recall.

    Raises:
      ValueError: `k`, the recall or the size is out of range, or no floats are given.
      TypeError: for scalars.
    """
    options = recall_target, reduction_input_size_override, aggregate_to_topk
    return _approximate(True, operand, k, reduction_dimension, *options)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The `k` smallest entries along an axis, as `approx_max_k` finds the largest."""
    options = recall_target, reduction_input_size_override, aggregate_to_topk
    return _approximate(False, operand, k, reduction_dimension, *options)
