"""Sums of products: `dot_general`, from which every matrix product is made.

`dimension_numbers = ((lhs contract, rhs contract), (lhs batch, rhs batch))` names the
contracted axes, which are summed over, and the batch axes, which both operands have.
The result has the batch axes first, then the other axes of `lhs`, then those of `rhs`.

The operands may differ in dtype. `precision` is None, a pair of precisions, or an
algorithm (`matmul_precision.py`), which converts the operands itself.

In JAX: `lax/lax.py`, `dot_general_p`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import dtypes, hlo
from .language import ShapedArray, get_aval
from .rules import accepts, def_bilinear, final_sharding, not_mapped, standard_primitive
from .shaping import Shape, convert_element_type_to, transpose

# ((lhs contract, rhs contract), (lhs batch, rhs batch))
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

# ----------------------------------------------------------------------------------
# Meaning and type
# ----------------------------------------------------------------------------------


def dot_general_meaning(
    lhs: np.ndarray, rhs: np.ndarray, *, dimension_numbers, **params
) -> np.ndarray:
    """The product in NumPy, computed in 64 bits if it is inexact."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    # Each axis has a letter of `einsum`; paired axes of the operands share theirs.
    letters = list(range(lhs.ndim, lhs.ndim + rhs.ndim))
    for left, right in zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch)):
        letters[right] = left
    out = [*lhs_batch, *remaining(lhs.ndim, lhs_contract, lhs_batch)]
    out += [letters[axis] for axis in remaining(rhs.ndim, rhs_contract, rhs_batch)]
    wide = dtype = dot_general_dtype(lhs, rhs, **params)
    if dtypes.issubdtype(dtype, np.inexact):
        is_complex = dtypes.issubdtype(dtype, np.complexfloating)
        wide = np.dtype(np.complex128 if is_complex else np.float64)
    operands = (lhs.astype(wide), list(range(lhs.ndim)), rhs.astype(wide), letters)
    return np.einsum(*operands, out).astype(dtype)


def remaining(rank: int, *removed: Sequence[int]) -> list[int]:
    """The axes of an array of `rank` dimensions that are in none of the given lists."""
    gone = {axis for axes in removed for axis in axes}
    return [axis for axis in range(rank) if axis not in gone]


def _fault_in_axes(side: str, aval: ShapedArray, contract, batch) -> str | None:
    """The requirement of `dot_general` that the axes of one operand violate."""
    if not all(0 <= axis < aval.ndim for axis in (*contract, *batch)):
        return (
            f"{side} dimension numbers to be nonnegative and less than the number of "
            f"axes of the {side} value"
        )
    for kind, axes in (("batch", batch), ("contracting", contract)):
        if len(set(axes)) != len(axes):
            return f"{side} {kind} dimensions to be distinct"
    if set(contract) & set(batch):
        return f"{side} batch dimensions to be disjoint from contracting dimensions"
    return None


def dot_general_shape(
    lhs, rhs, *, dimension_numbers, rhs_group=(), name: str = "dot_general", **params
) -> Shape:
    """Batch axes, then the other axes of lhs, then those of rhs without `rhs_group`."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    fault = _fault_in_axes("lhs", lhs, lhs_contract, lhs_batch)
    fault = fault or _fault_in_axes("rhs", rhs, rhs_contract, rhs_batch)
    for kind, lhs_axes, rhs_axes in (
        ("batch dimensions", lhs_batch, rhs_batch),
        ("contracting dimensions", lhs_contract, rhs_contract),
    ):
        if fault is None:
            if len(lhs_axes) != len(rhs_axes):
                fault = f"equal numbers of lhs and rhs {kind}"
            elif any(lhs.shape[a] != rhs.shape[b] for a, b in zip(lhs_axes, rhs_axes)):
                fault = f"lhs and rhs {kind} to have the same shape"
    if fault:
        raise TypeError(
            f"{name} requires {fault}, got lhs_contracting {lhs_contract} and "
            f"lhs_batch {lhs_batch} of shape {lhs.shape}, rhs_contracting "
            f"{rhs_contract} and rhs_batch {rhs_batch} of shape {rhs.shape}."
        )
    lhs_kept = remaining(lhs.ndim, lhs_contract, lhs_batch)
    rhs_kept = remaining(rhs.ndim, rhs_contract, rhs_batch, rhs_group)
    return (
        *(lhs.shape[axis] for axis in (*lhs_batch, *lhs_kept)),
        *(rhs.shape[axis] for axis in rhs_kept),
    )


@functools.cache
def _rank_of_dtype(dtype) -> tuple:
    """A dtype's place in XLA's order of precision; the higher dtype is the result's."""
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    part = np.finfo(dtype).dtype if is_complex else dtype
    if dtypes.issubdtype(part, np.floating):
        limits = dtypes.finfo(part)
        return is_complex, limits.maxexp, limits.nmant, limits.bits, True
    bits = 1 if part == np.bool_ else _bits(part)
    return is_complex, -1, -1, bits, not dtypes.issubdtype(part, np.unsignedinteger)


def _bits(dtype) -> int:
    for kind, limits in ((np.integer, dtypes.iinfo), (np.floating, dtypes.finfo)):
        if dtypes.issubdtype(dtype, kind):
            return limits(dtype).bits
    return 8 * dtype.itemsize


def dot_general_dtype(
    lhs, rhs, *, precision, preferred_element_type, name: str = "lax.dot_general", **_
) -> Any:
    """The more precise dtype of the two, or the preferred one if it is not narrower."""
    lhs_rank, rhs_rank = _rank_of_dtype(lhs.dtype), _rank_of_dtype(rhs.dtype)
    if lhs_rank == rhs_rank and lhs.dtype != rhs.dtype:
        raise TypeError(
            f"{name} argument type error: {lhs.dtype}, {rhs.dtype}. Neither "
            "dtype is more precise than the other; convert one operand."
        )
    dtype = lhs.dtype if lhs_rank >= rhs_rank else rhs.dtype
    preferred = preferred_element_type
    if preferred is None or dtype == preferred:
        return dtype
    exact = not dtypes.issubdtype(dtype, np.floating) and not is_algorithm(precision)
    if exact and _bits(np.dtype(preferred)) < _bits(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred} for result type of {dtype}."
        )
    return preferred


def is_algorithm(precision) -> bool:
    """Whether a precision converts the operands itself, as `DotAlgorithm` does."""
    return hasattr(precision, "prepare")


dot_general_p = standard_primitive(
    "dot_general", dot_general_shape, dot_general_dtype, meaning=dot_general_meaning
)

# ----------------------------------------------------------------------------------
# Transpose: the cotangent of one factor is the product of ct with the other
# ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _transpose_plan(
    dimension_numbers, x_rank: int, y_rank: int, swapped: bool
) -> tuple[Any, tuple[int, ...]]:
    """(dimension numbers of ct times y, permutation of its axes to those of x)."""
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    x_kept = remaining(x_rank, x_contract, x_batch)
    y_kept = remaining(y_rank, y_contract, y_batch)
    batch = len(x_batch)
    first = batch if swapped else batch + len(x_kept)
    contracted = (tuple(range(first, first + len(y_kept))), tuple(y_kept))
    order = sorted(range(len(y_contract)), key=lambda i: y_contract[i])
    axes = [*x_batch, *x_kept, *(x_contract[i] for i in order)]
    permutation = tuple(axes.index(axis) for axis in range(x_rank))
    return (contracted, (tuple(range(batch)), tuple(y_batch))), permutation


def _dot_general_transpose_lhs(ct, x, y, *, dimension_numbers, swapped=False, **params):
    """The cotangent of `x`: ct contracted with `y` over the axes `y` kept.

    That product has the batch axes, the axes that `x` kept, and the contracted axes in
    the order of `y`; a transpose puts them into the order of `x`. `swapped` says that
    `x` was the right operand, so that in ct the axes of `y` come before those of `x`.
    """
    numbers, permutation = _transpose_plan(
        dimension_numbers, x.ndim, get_aval(y).ndim, swapped
    )
    # For an operand on no mesh every device gets the whole sum.
    other = get_aval(ct).cut or get_aval(y).cut
    cut = x.aval.cut or (other and other.whole(x.ndim))
    cut = cut and cut.permuted(np.argsort(permutation))
    params = {"dimension_numbers": numbers, **params, "out_sharding": cut}
    x_bar = transpose(dot_general_p.bind(ct, y, **params), permutation)
    if get_aval(x_bar).dtype != x.dtype:
        x_bar = convert_element_type_to(
            x_bar, x.dtype, x.aval.weak_type, warn_on_complex_to_real_cast=False
        )
    return x_bar


def _dot_general_transpose_rhs(ct, x, y, *, dimension_numbers, **params):
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    swapped = ((y_contract, x_contract), (y_batch, x_batch))
    return _dot_general_transpose_lhs(
        ct, y, x, dimension_numbers=swapped, swapped=True, **params
    )


def_bilinear(dot_general_p, _dot_general_transpose_lhs, _dot_general_transpose_rhs)

# ----------------------------------------------------------------------------------
# Batching: one more batch axis, or one more kept axis
# ----------------------------------------------------------------------------------


@dot_general_p.def_batch
def _dot_general_batch(axis_data, args, dims, *, dimension_numbers, **params):
    ranks = tuple(get_aval(x).ndim for x in args)
    numbers, out_dim = _batched_numbers(ranks, tuple(dims), dimension_numbers)
    cut = params["out_sharding"]
    cut = cut and cut.with_batch_axis(out_dim, axis_data.cut)
    params = {"dimension_numbers": numbers, **params, "out_sharding": cut}
    return dot_general_p.bind(*args, **params), out_dim


@functools.lru_cache(maxsize=1024)
def _batched_numbers(ranks, dims, dimension_numbers) -> tuple[Any, int]:
    """The dimension numbers with a mapped axis added, and where it is in the result.

    Mapped in both operands it becomes the first batch axis; mapped in one, an axis that
    this operand keeps.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_dim, rhs_dim = dims
    if lhs_dim is not not_mapped:
        lhs_contract = make_room(lhs_contract, lhs_dim)
        lhs_batch = make_room(lhs_batch, lhs_dim)
    if rhs_dim is not not_mapped:
        rhs_contract = make_room(rhs_contract, rhs_dim)
        rhs_batch = make_room(rhs_batch, rhs_dim)
    if lhs_dim is not not_mapped and rhs_dim is not not_mapped:
        lhs_batch = (lhs_dim, *lhs_batch)
        rhs_batch = (rhs_dim, *rhs_batch)
        out_dim = 0
    elif lhs_dim is not not_mapped:
        kept = remaining(ranks[0], lhs_contract, lhs_batch)
        out_dim = len(lhs_batch) + kept.index(lhs_dim)
    else:
        kept = remaining(ranks[1], rhs_contract, rhs_batch)
        out_dim = ranks[0] - len(lhs_contract) + kept.index(rhs_dim)
    return ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)), out_dim


def make_room(axes: Sequence[int], new: int) -> tuple[int, ...]:
    """Axes renumbered for a new axis at position `new`."""
    return tuple(axis + (axis >= new) for axis in axes)


# ----------------------------------------------------------------------------------
# Lowering and printing
# ----------------------------------------------------------------------------------


def precision_attribute(precision, dialect=None) -> Any:
    """The precisions of both operands as an attribute of StableHLO (or CHLO)."""
    kind = (dialect or hlo.stablehlo).PrecisionAttr
    plain = precision is None or is_algorithm(precision)
    names = ("DEFAULT", "DEFAULT") if plain else tuple(map(str, precision))
    return hlo.attribute(
        (kind, *names), lambda: hlo.ir.ArrayAttr.get([kind.get(p) for p in names])
    )


def convert(operand, aval: ShapedArray, dtype) -> Any:
    """A StableHLO value of type `aval` with another dtype."""
    if dtype is None or aval.dtype == dtype:
        return operand
    return hlo.stablehlo.convert(hlo.tensor_type(aval.shape, np.dtype(dtype)), operand)


def prepared_operands(ctx, lhs, rhs, precision) -> tuple[Any, Any, Any, dict[str, Any]]:
    """(lhs, rhs, the product's dtype, further attributes), as the platform multiplies.

    The operands are converted if the platform cannot multiply their dtypes. There are
    further attributes if `precision` is an algorithm.

    In JAX: `lax/lax.py`, `_handle_dot_precision`.
    """
    if is_algorithm(precision):
        return precision.prepare(ctx, lhs, rhs)
    lhs_aval, rhs_aval, *_ = ctx.avals_in
    dtype = ctx.avals_out[0].dtype
    same = lhs_aval.dtype == rhs_aval.dtype
    if not same and not _multiplies_mixed(ctx.platform, lhs_aval.dtype, rhs_aval.dtype):
        lhs = convert(lhs, lhs_aval, dtype)
        rhs = convert(rhs, rhs_aval, dtype)
    return lhs, rhs, dtype, {}


def _multiplies_mixed(platform: str, lhs, rhs) -> bool:
    """Whether a platform's code generator takes operands of two dtypes as they are."""
    if platform == "tpu":
        real = {np.floating, np.integer}
        return accepts(real, lhs) and accepts(real, rhs)
    names = (lhs.name, rhs.name)
    return all(n.startswith("float8") and n != "float8_e4m3b11fnuz" for n in names)


def lower_product(lhs, rhs, dimension_numbers, result_type, config, **options) -> Any:
    """StableHLO's `dot_general`; `options` are the attributes of an algorithm."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = hlo.attribute(
        ("dot", dimension_numbers),
        lambda: hlo.stablehlo.DotDimensionNumbers.get(
            lhs_batching_dimensions=list(lhs_batch),
            rhs_batching_dimensions=list(rhs_batch),
            lhs_contracting_dimensions=list(lhs_contract),
            rhs_contracting_dimensions=list(rhs_contract),
        ),
    )
    return hlo.stablehlo.dot_general(
        result_type, lhs, rhs, numbers, precision_config=config, **options
    )


@dot_general_p.def_lowering
def _dot_general_lowering(ctx, lhs, rhs, *, dimension_numbers, precision, **params):
    (out,) = ctx.avals_out
    lhs, rhs, dtype, options = prepared_operands(ctx, lhs, rhs, precision)
    result_type = hlo.tensor_type(out.shape, dtype)
    config = precision_attribute(precision)
    product = lower_product(lhs, rhs, dimension_numbers, result_type, config, **options)
    return convert(product, out.update(dtype=dtype), out.dtype)


def _pretty_dot_general(params: dict[str, Any]) -> dict[str, Any]:
    """Print axes as lists, as JAX does, and no parameter that is None."""
    contract, batch = params["dimension_numbers"]
    printed = {name: value for name, value in params.items() if value is not None}
    printed["dimension_numbers"] = (tuple(map(list, contract)), tuple(map(list, batch)))
    printed.pop("out_sharding", None)
    return printed


dot_general_p.pretty = _pretty_dot_general

# ----------------------------------------------------------------------------------
# Functions
# ----------------------------------------------------------------------------------


def as_axes(axes) -> Shape:
    """One axis or several as a tuple of ints."""
    several = axes if isinstance(axes, Iterable) else (axes,)
    return tuple(map(operator.index, several))


def dot_general(
    lhs,
    rhs,
    dimension_numbers: DotDimensionNumbers,
    precision=None,
    preferred_element_type=None,
    *,
    out_sharding=None,
) -> Any:
    """Sums of products of two arrays over the contracted axes.

    The parameters are those of the equation: `precision` is None, a pair or an
    algorithm. Users call `lax.dot_general` (`products.py`), which converts theirs.
    """
    contract, batch = dimension_numbers
    params = dict(
        dimension_numbers=(tuple(map(as_axes, contract)), tuple(map(as_axes, batch))),
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=final_sharding(out_sharding, "dot_general"),
    )
    return dot_general_p.bind(lhs, rhs, **params)
