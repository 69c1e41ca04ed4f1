"""Products in groups of different sizes: `ragged_dot`, for mixtures of experts.

The rows of `lhs` belong to groups, one after the other; `group_sizes` says how many
rows each group has, and each group meets a matrix of its own in `rhs`. Rows after the
last group give zeros. There are three modes, by what the ragged axis of `lhs` is:

- kept: `[b, m, k]`, `[g, b, k, n]`, `[b, g]` give `[b, m, n]`, rows by group;
- contracted: `[b, m, k]`, `[b, k, n]`, `[b, g]` give `[g, b, m, n]`, sums by group;
- a batch axis: `[b, m, k]`, `[b, k, n]`, `[g]` give `[b, m, n]`.

In JAX: `lax/lax.py`, `ragged_dot_general_p`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules, shaping
from minijax.core.dot import (
    convert,
    dot_general_dtype,
    dot_general_meaning,
    dot_general_shape,
    make_room,
    precision_attribute,
    prepared_operands,
    remaining,
)
from minijax.core.language import ShapedArray, get_aval
from minijax.primitives.elementwise import comparing
from minijax.primitives.families import all_at_front, lower_fun
from minijax.primitives.linear.matmul_precision import canonicalize_precision
from minijax.primitives.linear.products import dot_general
from minijax.primitives.reduce import cumulative
from minijax.primitives.shape import broadcasting


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimension numbers of `dot_general`, the ragged axis, the axis of the groups.

    In JAX: `lax.RaggedDotDimensionNumbers`.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        contract, batch = self.dot_dimension_numbers
        numbers = (tuple(map(tuple, contract)), tuple(map(tuple, batch)))
        object.__setattr__(self, "dot_dimension_numbers", numbers)
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


class RaggedDotMode(enum.Enum):
    """What the ragged axis of `lhs` is to the product."""

    RAGGED_NONCONTRACTING = 1
    RAGGED_CONTRACTING = 2
    RAGGED_BATCH = 3


def _mode(rank: int, numbers: RaggedDotDimensionNumbers) -> RaggedDotMode:
    (ragged,) = numbers.lhs_ragged_dimensions
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    if ragged in contract:
        return RaggedDotMode.RAGGED_CONTRACTING
    if ragged in batch:
        return RaggedDotMode.RAGGED_BATCH
    return RaggedDotMode.RAGGED_NONCONTRACTING


def _prefix(mode: RaggedDotMode, rank: int, ragged: int, contract, batch) -> list[int]:
    """The axes along which the sizes of the groups may differ: those outside."""
    if mode is RaggedDotMode.RAGGED_BATCH:
        return list(batch[: batch.index(ragged)])
    if mode is RaggedDotMode.RAGGED_CONTRACTING:
        return [*batch, *contract[: contract.index(ragged)]]
    kept = remaining(rank, contract, batch)
    return [*batch, *kept[: kept.index(ragged)]]


# ----------------------------------------------------------------------------------
# Type
# ----------------------------------------------------------------------------------


def _check_in_range(axis: int, rank: int, axis_name: str, side: str) -> None:
    if not 0 <= axis < rank:
        raise TypeError(
            f"ragged_dot_general requires {axis_name} numbers to be nonnegative and "
            f"less than the number of axes of the {side} value, got {axis} for {side} "
            f"of rank {rank}."
        )


def _check_groups(
    mode: RaggedDotMode, rhs: ShapedArray, numbers: Any, count: int
) -> None:
    """Whether `rhs` has an axis for the groups just when it must have one."""
    group_axes = numbers.rhs_group_dimensions
    if mode is not RaggedDotMode.RAGGED_NONCONTRACTING:
        if group_axes:
            raise TypeError(
                "ragged_dot_general requires zero group dimensions in the rhs when lhs "
                f"ragged dimension is contracting or batch, got {group_axes}."
            )
        return
    if len(group_axes) != 1:
        raise TypeError(
            "ragged_dot_general requires exactly one rhs group dimension when lhs "
            f"ragged dimension is noncontracting, got {group_axes}."
        )
    (axis,) = group_axes
    _check_in_range(axis, rhs.ndim, "rhs group dimension", "rhs")
    (_, contract), (_, batch) = numbers.dot_dimension_numbers
    if axis in batch or axis in contract:
        raise TypeError(
            "ragged_dot_general requires rhs group dimension numbers to be distinct "
            f"from contracting and batch dimensions, got {axis}."
        )
    if rhs.shape[axis] != count:
        raise TypeError(
            f"expected rhs group dimension size to be {count}, got {rhs.shape[axis]}."
        )


def _ragged_shape(lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, **_):
    numbers = ragged_dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            "ragged_dot_general expects exactly one lhs ragged dimension, got "
            f"{numbers.lhs_ragged_dimensions}."
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    _check_in_range(ragged, lhs.ndim, "lhs ragged dimension", "lhs")
    mode = _mode(lhs.ndim, numbers)
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    if group_sizes.ndim == 0:
        raise TypeError("expected rank of group_sizes to be >=1, got a scalar.")
    count = group_sizes.shape[-1]
    if group_sizes.ndim > 1:
        prefix = _prefix(mode, lhs.ndim, ragged, contract, batch)
        expected = (*(lhs.shape[axis] for axis in prefix), count)
        if group_sizes.shape != expected:
            raise TypeError(
                f"expected group_sizes to have shape {expected}, got "
                f"{group_sizes.shape}."
            )
    _check_groups(mode, rhs, numbers, count)
    out = dot_general_shape(
        lhs,
        rhs,
        dimension_numbers=numbers.dot_dimension_numbers,
        rhs_group=numbers.rhs_group_dimensions,
    )
    return (count, *out) if mode is RaggedDotMode.RAGGED_CONTRACTING else out


def _ragged_dtype(lhs, rhs, group_sizes, **params) -> Any:
    if not dtypes.issubdtype(group_sizes.dtype, np.integer):
        raise TypeError(
            "ragged_dot_general requires that group_sizes.dtype is subtype of "
            f"np.integer, got {group_sizes.dtype}."
        )
    name = "lax.ragged_dot_general"
    return dot_general_dtype(lhs, rhs, name=name, **_types_of(params))


def _types_of(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that `dot_general` takes as well."""
    return {name: params[name] for name in ("precision", "preferred_element_type")}


# ----------------------------------------------------------------------------------
# Meaning: dense products, with zeros where an entry is of another group
# ----------------------------------------------------------------------------------


def _dense_operands(
    expand: Any, lhs: Any, rhs: Any, numbers: RaggedDotDimensionNumbers, ranks: Any
) -> tuple[Any, Any, Any]:
    """The operands and dimension numbers of the dense product in its place.

    `expand(x, ragged axis, prefix axes)` gives x a leading axis of groups and zeros.
    """
    (ragged,) = numbers.lhs_ragged_dimensions
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    mode = _mode(ranks[0], numbers)
    if mode is RaggedDotMode.RAGGED_BATCH:
        return lhs, rhs, numbers.dot_dimension_numbers
    prefix = _prefix(mode, ranks[0], ragged, lhs_contract, lhs_batch)
    lhs = expand(lhs, ragged, prefix)
    lhs_contract = make_room(lhs_contract, 0)
    lhs_batch = make_room(lhs_batch, 0)
    if mode is RaggedDotMode.RAGGED_NONCONTRACTING:
        lhs_contract = (*lhs_contract, 0)
        rhs_contract = (*rhs_contract, *numbers.rhs_group_dimensions)
    else:
        rhs_ragged = rhs_contract[lhs_contract.index(ragged + 1)]
        prefix = _prefix(mode, ranks[1], rhs_ragged, rhs_contract, rhs_batch)
        rhs = expand(rhs, rhs_ragged, prefix)
        rhs_contract = make_room(rhs_contract, 0)
        lhs_batch = (0, *lhs_batch)
        rhs_batch = (0, *make_room(rhs_batch, 0))
    return lhs, rhs, ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))


def _ragged_meaning(lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, **params):
    def expand(x: np.ndarray, ragged: int, prefix: list[int]) -> np.ndarray:
        count = group_sizes.shape[-1]
        sizes = np.broadcast_to(
            group_sizes, (*(x.shape[axis] for axis in prefix), count)
        )
        out = np.zeros((count, *x.shape), x.dtype)
        for place in np.ndindex(*sizes.shape[:-1]):
            where: list[Any] = [slice(None)] * x.ndim
            for axis, index in zip(prefix, place):
                where[axis] = index
            start = 0
            for group, size in enumerate(sizes[place]):
                where[ragged] = slice(start, start + size)
                out[(group, *where)] = x[tuple(where)]
                start += size
        return out

    lhs, rhs, numbers = _dense_operands(
        expand, lhs, rhs, ragged_dot_dimension_numbers, (lhs.ndim, rhs.ndim)
    )
    return dot_general_meaning(lhs, rhs, dimension_numbers=numbers, **_types_of(params))


ragged_dot_general_p = rules.standard_primitive(
    "ragged_dot_general", _ragged_shape, _ragged_dtype, meaning=_ragged_meaning
)


def _dense_product(lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, **params):
    sizes_aval = get_aval(group_sizes)
    count = sizes_aval.shape[-1]

    def expand(x: Any, ragged: int, prefix: list[int]) -> Any:
        shape = (count, *get_aval(x).shape)
        # One list of sizes serves all places along the prefix axes.
        places = [axis + 1 for axis in prefix] if sizes_aval.ndim > 1 else []
        axes = (*places, 0)
        ends = cumulative.cumsum(group_sizes, sizes_aval.ndim - 1)
        starts = elementwise.sub(ends, group_sizes)
        rows = broadcasting.broadcasted_iota(sizes_aval.dtype, shape, ragged + 1)
        inside = comparing.bitwise_and(
            elementwise.le(shaping.broadcast_in_dim(starts, shape, axes), rows),
            elementwise.lt(rows, shaping.broadcast_in_dim(ends, shape, axes)),
        )
        copies = shaping.broadcast_in_dim(x, shape, tuple(range(1, len(shape))))
        return elementwise.select(inside, copies, broadcasting.full_like(copies, 0))

    ranks = (get_aval(lhs).ndim, get_aval(rhs).ndim)
    lhs, rhs, numbers = _dense_operands(
        expand, lhs, rhs, ragged_dot_dimension_numbers, ranks
    )
    return dot_general(lhs, rhs, numbers, **_types_of(params))


ragged_dot_general_p.def_lowering(lower_fun(_dense_product))


def _ragged_instruction(
    ctx, lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, precision, **_
):
    """TPUs have an instruction for it, which skips what is of another group."""
    numbers = ragged_dot_dimension_numbers
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    (out_aval,) = ctx.avals_out
    lhs, rhs, dtype, _algorithm = prepared_operands(ctx, lhs, rhs, precision)
    attribute = hlo.chlo.RaggedDotDimensionNumbers.get(
        lhs_batching_dimensions=list(lhs_batch),
        rhs_batching_dimensions=list(rhs_batch),
        lhs_contracting_dimensions=list(lhs_contract),
        rhs_contracting_dimensions=list(rhs_contract),
        lhs_ragged_dimensions=list(numbers.lhs_ragged_dimensions),
        rhs_group_dimensions=list(numbers.rhs_group_dimensions),
    )
    out = hlo.chlo.ragged_dot(
        hlo.tensor_type(out_aval.shape, dtype),
        lhs,
        rhs,
        group_sizes,
        attribute,
        precision_config=precision_attribute(precision, hlo.chlo),
    )
    return convert(out, out_aval.update(dtype=dtype), out_aval.dtype)


ragged_dot_general_p.def_lowering(_ragged_instruction, platform="tpu")

# ----------------------------------------------------------------------------------
# Derivatives and batching
# ----------------------------------------------------------------------------------


@ragged_dot_general_p.def_jvp_rule
def _ragged_jvp(primals, tangents, **params) -> Any:
    x, y, group_sizes = primals
    x_dot, y_dot, _ = tangents
    out = ragged_dot_general_p.bind(x, y, group_sizes, **params)
    parts = [
        broadcasting.full_like(out, 0)
        if type(dot) is rules.Zero
        else ragged_dot_general_p.bind(*operands, group_sizes, **params)
        for dot, operands in ((x_dot, (x_dot, y)), (y_dot, (x, y_dot)))
    ]
    return out, elementwise.add(*parts)


@ragged_dot_general_p.def_transpose
def _ragged_transpose(ct, x, y, group_sizes, *, ragged_dot_dimension_numbers, **params):
    """Each cotangent is a ragged product again, of ct and the other operand.

    With a kept ragged axis, that of `x` is ragged as `x` is, and that of `y` sums the
    rows by group. With a contracted one, each group of ct meets the rows of its group.
    """
    target, other = (x, y) if rules.is_linear(x) else (y, x)
    ranks = [arg.ndim if rules.is_linear(arg) else get_aval(arg).ndim for arg in (x, y)]
    ct_first, numbers, axes = _transposed_numbers(
        rules.is_linear(x),
        ranks,
        get_aval(group_sizes).ndim,
        ragged_dot_dimension_numbers,
    )
    operands = (ct, other) if ct_first else (other, ct)
    out = ragged_dot_general(*operands, group_sizes, numbers, **_types_of(params))
    out = shaping.transpose(out, tuple(axes.index(axis) for axis in range(len(axes))))
    if get_aval(out).dtype != target.dtype:
        out = shaping.convert_element_type_to(out, target.dtype, target.aval.weak_type)
    return [out, None, None] if rules.is_linear(x) else [None, out, None]


def _transposed_numbers(
    of_lhs: bool, ranks: Sequence[int], sizes_rank: int, old: RaggedDotDimensionNumbers
) -> tuple[bool, RaggedDotDimensionNumbers, list[int]]:
    """Which product gives the cotangent of one operand: of `lhs`, or else of `rhs`.

    Returns whether ct is its left operand, its dimension numbers, and the axes of the
    operand in the order in which the product has them.
    """
    x_rank, y_rank = ranks
    (x_contract, y_contract), (x_batch, y_batch) = old.dot_dimension_numbers
    (ragged,) = old.lhs_ragged_dimensions
    y_group = old.rhs_group_dimensions
    x_kept = remaining(x_rank, x_contract, x_batch)
    y_kept = remaining(y_rank, y_contract, y_batch, y_group)
    mode = _mode(x_rank, old)
    by_group = mode is RaggedDotMode.RAGGED_CONTRACTING
    # The axes of ct: the groups if they are there, batch axes, then x's and y's.
    batch = range(by_group, by_group + len(x_batch))
    ct_x = range(batch.stop, batch.stop + len(x_kept))
    ct_y = range(ct_x.stop, ct_x.stop + len(y_kept))
    groups = [0] if by_group else []
    if by_group and sizes_rank > 1:
        contract = y_contract if of_lhs else x_contract
        if list(contract) != sorted(contract):
            raise NotImplementedError(
                "Unimplemented transpose of ragged_dot_general: the group sizes have "
                f"axes along contracted ones, and these, {contract}, do not ascend. "
                "Transpose the operands first."
            )
    if not of_lhs:
        new = RaggedDotDimensionNumbers(
            ((x_kept, ct_x), (x_batch, batch)), [ragged], groups
        )
        contracted = _sorted_alike(y_contract, x_contract)
        return False, new, [*y_group, *y_batch, *contracted, *y_kept]
    contracted = _sorted_alike(x_contract, y_contract)
    if by_group:
        y_ragged = y_contract[x_contract.index(ragged)]
        new = RaggedDotDimensionNumbers(
            ((y_kept, ct_y), (y_batch, batch)), [y_ragged], groups
        )
        return False, new, [*x_batch, *contracted, *x_kept]
    ct_axes_of_x = [*x_batch, *x_kept]
    new = RaggedDotDimensionNumbers(
        ((ct_y, y_kept), (batch, y_batch)), [ct_axes_of_x.index(ragged)], y_group
    )
    return True, new, [*ct_axes_of_x, *contracted]


def _sorted_alike(axes: Sequence[int], others: Sequence[int]) -> list[int]:
    """`axes` in the order that sorts `others`."""
    return [axes[index] for index in sorted(range(len(axes)), key=lambda i: others[i])]


@ragged_dot_general_p.def_batch
def _ragged_batch(axis_data, args, dims, *, ragged_dot_dimension_numbers, **params):
    """Mapped operands get a batch axis in front, and the sizes one list for each.

    JAX asks that all three are mapped in front; here others are brought there.
    """
    numbers = ragged_dot_dimension_numbers
    lhs_rank = get_aval(args[0]).ndim - (dims[0] is not rules.not_mapped)
    mode = _mode(lhs_rank, numbers)
    lhs, rhs, group_sizes = all_at_front(axis_data, args, dims)
    (ragged,) = numbers.lhs_ragged_dimensions
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    sizes_aval = get_aval(group_sizes)
    prefix = _prefix(mode, lhs_rank, ragged, lhs_contract, lhs_batch)
    if prefix and sizes_aval.ndim == 2:
        # One list of sizes served all places along these axes; now each has its own.
        places = (get_aval(lhs).shape[axis + 1] for axis in prefix)
        shape = (axis_data.size, *places, sizes_aval.shape[-1])
        group_sizes = shaping.broadcast_in_dim(group_sizes, shape, (0, len(shape) - 1))
    new = RaggedDotDimensionNumbers(
        (
            (make_room(lhs_contract, 0), make_room(rhs_contract, 0)),
            ((0, *make_room(lhs_batch, 0)), (0, *make_room(rhs_batch, 0))),
        ),
        make_room(numbers.lhs_ragged_dimensions, 0),
        make_room(numbers.rhs_group_dimensions, 0),
    )
    out = ragged_dot_general(lhs, rhs, group_sizes, new, **_types_of(params))
    return out, int(mode is RaggedDotMode.RAGGED_CONTRACTING)


# ----------------------------------------------------------------------------------
# Functions
# ----------------------------------------------------------------------------------


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Products in groups of different sizes along one ragged axis of `lhs`.

    The dimension numbers say which mode it is, see the top of this module.
    `group_sizes` is `[g]` integers, or has the axes outside the ragged axis before it.
    `precision` and `preferred_element_type` are those of `dot_general`.

    Raises:
      TypeError: when axes are out of range, repeated or do not match in size, or the
        group sizes are no integers or of another shape.
      NotImplementedError: when `group_offset` is given; JAX reserves it.
    """
    if group_offset is not None:
        raise NotImplementedError(
            "Unimplemented group_offset support: ragged_dot starts at the first group. "
            "Slice group_sizes and the operands instead."
        )
    return ragged_dot_general_p.bind(
        lhs,
        rhs,
        group_sizes,
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_element_type,
        group_offset=group_offset,
        out_sharding=rules.final_sharding(out_sharding, "ragged_dot_general"),
    )


_basic_numbers = RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The rows of `lhs` [m, k], group by group, times the matrices `rhs` [g, k, n].

    `group_sizes` [g] says how many rows each group has; rows after the last group are
    zero in the result [m, n]. Errors as `ragged_dot_general`.
    """
    settings = (precision, preferred_element_type, group_offset, out_sharding)
    return ragged_dot_general(lhs, rhs, group_sizes, _basic_numbers, *settings)
