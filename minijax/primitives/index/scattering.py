"""Writing many blocks at once: scatter, and scatter with a sum, product, extremum.

The mirror image of gather: for each index vector, a block of `updates` is combined
with the block of the operand that starts there. `scatter` replaces; the others add,
subtract, multiply, or take the smaller or larger entry. The combination is a program of
two scalars, `update_jaxpr`; of `scatter` it is None, or that of `scatter_apply`.

Where two blocks overlap, XLA combines them in no particular order. For sums that only
changes rounding; for `scatter`, which of the two stays is undefined, and its derivative
has to find out which one stayed.

In JAX: `lax/slicing.py`; the operation is XLA's Scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import shaping
from minijax.core.language import Primitive, get_aval
from minijax.core.rules import instantiate, is_linear, scalar_like
from minijax.core.signatures import check_functions
from minijax.primitives.elementwise import complex_numbers, extrema
from minijax.primitives.index import gathering
from minijax.primitives.index.index_vectors import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    block_shape,
    mirror,
)
from minijax.primitives.index.scatter_family import (
    arithmetic_scatter,
    bind_scatter,
    scatter_add,
    scatter_add_p,
    scatter_primitive,
    update_program,
)
from minijax.primitives.shape import broadcasting

# ----------------------------------------------------------------------------------
# scatter_add and scatter_sub: linear in operand and updates together
# ----------------------------------------------------------------------------------

scatter_sub_p = scatter_primitive("scatter-sub", np.subtract)


def _read_back(ct: Any, indices: Any, updates: Any, numbers: Any, mode: Any) -> Any:
    """The cotangent's blocks where the updates were written; 0 for dropped ones."""
    shape = updates.shape if is_linear(updates) else shaping.shape_of(updates)
    block = block_shape(get_aval(ct).ndim, shape, numbers)
    options = {"mode": mode, "fill_value": 0}
    return gathering.gather(ct, indices, mirror(numbers), block, **options)


def _promises(params: dict[str, Any]) -> dict[str, Any]:
    """Of the parameters of a primitive, those that its function takes as keywords."""
    return {
        key: params[key] for key in ("indices_are_sorted", "unique_indices", "mode")
    }


def _dense(tangents: Any) -> list[Any]:
    """The tangents of operand and updates as arrays; that of indices is zero."""
    return [instantiate(tangents[0]), instantiate(tangents[2])]


def _def_linear_scatter(primitive: Primitive) -> None:
    def jvp(primals, tangents, **params) -> Any:
        out = primitive.bind(*primals, **params)
        operand_dot, updates_dot = _dense(tangents)
        return out, primitive.bind(operand_dot, primals[1], updates_dot, **params)

    def transpose(ct, operand, indices, updates, **params) -> list:
        updates_ct = None
        if is_linear(updates):
            numbers, mode = params["dimension_numbers"], params["mode"]
            updates_ct = _read_back(ct, indices, updates, numbers, mode)
            if primitive is scatter_sub_p:
                updates_ct = elementwise.neg(updates_ct)
        return [ct if is_linear(operand) else None, None, updates_ct]

    primitive.def_jvp_rule(jvp)
    primitive.def_transpose(transpose)


_def_linear_scatter(scatter_add_p)
_def_linear_scatter(scatter_sub_p)

# ----------------------------------------------------------------------------------
# scatter_mul: linear in each of the two
# ----------------------------------------------------------------------------------

scatter_mul_p = scatter_primitive("scatter-mul", np.multiply)


def _check_unique(unique_indices: bool) -> None:
    if not unique_indices:
        raise NotImplementedError(
            "scatter_mul gradients are only implemented if `unique_indices=True`: the "
            "derivative by one update depends on all others that meet the same entry. "
            "Pass it when no index is repeated, or multiply a gathered array instead."
        )


def _scatter_mul_jvp_updates(t, operand, indices, updates, **params) -> Any:
    _check_unique(params["unique_indices"])
    zeros, numbers = broadcasting.full_like(operand, 0), params["dimension_numbers"]
    spread = scatter_add(zeros, indices, t, numbers, **_promises(params))
    return elementwise.mul(operand, spread)


scatter_mul_p.def_jvp(
    lambda t, operand, indices, updates, **params: scatter_mul_p.bind(
        t, indices, updates, **params
    ),
    None,
    _scatter_mul_jvp_updates,
)


@scatter_mul_p.def_transpose
def _scatter_mul_transpose(ct, operand, indices, updates, **params) -> list:
    operand_ct = updates_ct = None
    numbers = params["dimension_numbers"]
    if is_linear(operand):
        operand_ct = scatter_mul(ct, indices, updates, numbers, **_promises(params))
    if is_linear(updates):
        _check_unique(params["unique_indices"])
        product = elementwise.mul(ct, operand)
        updates_ct = _read_back(product, indices, updates, numbers, params["mode"])
    return [operand_ct, None, updates_ct]


# ----------------------------------------------------------------------------------
# scatter_min and scatter_max
# ----------------------------------------------------------------------------------


def _def_extremal_jvp(primitive) -> None:
    """The tangent of an extremum is that of its winner; equal ones share it equally."""

    def jvp(primals, tangents, *, dimension_numbers, **params) -> Any:
        numbers = dimension_numbers
        operand, indices, updates = primals
        out = primitive.bind(*primals, dimension_numbers=numbers, **params)
        operand_tangent, updates_tangent = _dense(tangents)
        block = block_shape(get_aval(operand).ndim, shaping.shape_of(updates), numbers)

        def read(x: Any) -> Any:
            return gathering.gather(x, indices, mirror(numbers), block)

        def count(marks: Callable[[], Any]) -> Any:
            """For each update, how many marks meet the entry that it meets."""
            zeros = broadcasting.full_like(operand, 0)
            return read(scatter_add(zeros, indices, marks(), numbers))

        def zeros() -> Any:
            return broadcasting.full_like(updates, 0)

        def ones() -> Any:
            return broadcasting.full_like(updates, 1)

        before, after = read(operand), read(out)
        won = elementwise.eq(updates, after)
        operand_won = elementwise.eq(before, after)
        winners = count(lambda: elementwise.select(won, ones(), zeros()))
        writers = count(ones)
        one = scalar_like(get_aval(winners), 1)

        def share_with_operand() -> Any:
            return elementwise.div(one, elementwise.add(winners, one))

        share = elementwise.select(
            operand_won, share_with_operand(), elementwise.div(one, winners)
        )
        updates_weight = elementwise.select(won, share, zeros())
        operand_share = elementwise.select(
            operand_won, share_with_operand(), broadcasting.full_like(winners, 0)
        )
        # Every writer takes the operand's tangent off and puts its share back; the
        # writers of one entry do that together.
        minus_one = scalar_like(get_aval(winners), -1)
        operand_weight = elementwise.div(
            elementwise.add(minus_one, operand_share), writers
        )
        change = elementwise.add(
            elementwise.mul(read(operand_tangent), operand_weight),
            elementwise.mul(updates_tangent, updates_weight),
        )
        promises = _promises(params)
        return out, scatter_add(operand_tangent, indices, change, numbers, **promises)

    primitive.def_jvp_rule(jvp)
    primitive.without("transpose", "its jvp is written with gather and scatter_add")


scatter_min_p = scatter_primitive("scatter-min", np.minimum)
scatter_max_p = scatter_primitive("scatter-max", np.maximum)
_def_extremal_jvp(scatter_min_p)
_def_extremal_jvp(scatter_max_p)

# ----------------------------------------------------------------------------------
# scatter
# ----------------------------------------------------------------------------------

scatter_p = scatter_primitive("scatter", None)


@scatter_p.def_jvp_rule
def _scatter_jvp(primals, tangents, *, update_jaxpr, dimension_numbers, **params):
    """Linear when no index is repeated; else the winners are found first."""
    if update_jaxpr is not None:
        raise NotImplementedError(
            "scatter_apply JVP not implemented: write `x.at[i].set(f(x[i]))`, which "
            "has a derivative."
        )
    operand, indices, updates = primals
    operand_tangent, updates_tangent = _dense(tangents)
    numbers = dimension_numbers

    def write(operand: Any, updates: Any) -> Any:
        options = {"update_jaxpr": None, "dimension_numbers": numbers, **params}
        return scatter_p.bind(operand, indices, updates, **options)

    if params["unique_indices"]:
        return write(operand, updates), write(operand_tangent, updates_tangent)

    # Number the blocks from 1 on, scatter the numbers, and read back whose number
    # stayed. Then only winners write, only unwritten entries stay, and both add up.
    options = _promises(params)
    shape = shaping.shape_of(updates)
    numbers_shape = [
        1 if axis in numbers.update_window_dims else size
        for axis, size in enumerate(shape)
    ]
    count = math.prod(numbers_shape)
    wide = count > np.iinfo(np.uint32).max
    dtype = np.dtype(np.uint64 if wide else np.uint32)
    own = elementwise.add(
        shaping.reshape(broadcasting.iota(dtype, count), numbers_shape),
        broadcasting.full_like(updates, 1, dtype),
    )
    operand_shape = shaping.shape_of(operand)
    stayed = scatter(
        broadcasting.full(operand_shape, 0, dtype), indices, own, numbers, **options
    )
    block = block_shape(len(operand_shape), shape, numbers)
    seen = gathering.gather(stayed, indices, mirror(numbers), block)

    def unwritten(x: Any) -> Any:
        free = elementwise.eq(stayed, broadcasting.full_like(stayed, 0))
        return elementwise.select(free, x, broadcasting.full_like(x, 0))

    def winning(x: Any) -> Any:
        won = elementwise.eq(own, seen)
        return elementwise.select(won, x, broadcasting.full_like(x, 0))

    kept, written = unwritten(operand), winning(updates)
    kept_tangent, written_tangent = unwritten(operand_tangent), winning(updates_tangent)
    out = scatter_add(kept, indices, written, numbers, **options)
    tangent = scatter_add(kept_tangent, indices, written_tangent, numbers, **options)
    return out, tangent


@scatter_p.def_transpose
def _scatter_transpose(ct, operand, indices, updates, **params) -> list:
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter transpose is only implemented where unique_indices=True; pass it "
            "when no index is repeated."
        )
    operand_ct = updates_ct = None
    numbers = params["dimension_numbers"]
    if is_linear(operand):
        shape = updates.shape if is_linear(updates) else shaping.shape_of(updates)
        zeros = broadcasting.full(shape, 0, get_aval(ct).dtype)
        operand_ct = scatter(ct, indices, zeros, numbers, **_promises(params))
    if is_linear(updates):
        updates_ct = _read_back(ct, indices, updates, numbers, params["mode"])
    return [operand_ct, None, updates_ct]


# ----------------------------------------------------------------------------------
# The functions
# ----------------------------------------------------------------------------------


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """`operand` with blocks replaced by those of `updates`: `x.at[index].set(y)`.

    Args:
      operand: the array to start from.
      scatter_indices: integers; the vectors along the last axis say where blocks start.
      updates: the blocks, of the operand's dtype.
      dimension_numbers: how the axes belong together, see `ScatterDimensionNumbers`.
      indices_are_sorted: a promise that the index vectors ascend.
      unique_indices: a promise that no two blocks overlap. With it, the derivative is
        simpler, and only with it the result can be transposed.
      mode: "drop" (the default; "fill" is the same), "clip" or "promise_in_bounds", or
        a `GatherScatterMode`: what happens with blocks that are partly out of bounds.

    Returns:
      An array like `operand`. Where blocks overlap, any one of them stays.

    Raises:
      TypeError: when shapes, dtypes and dimension numbers do not fit.
      ValueError: when the indices are no integers, or for an unknown mode.
    """
    args = (operand, scatter_indices, updates)
    promises = (indices_are_sorted, unique_indices)
    return bind_scatter(scatter_p, (None, ()), args, dimension_numbers, mode, *promises)


scatter_sub = arithmetic_scatter(
    scatter_sub_p,
    elementwise.sub,
    "`operand` with blocks of `updates` subtracted: `x.at[index].subtract(y)`.",
)
scatter_mul = arithmetic_scatter(
    scatter_mul_p,
    elementwise.mul,
    "`operand` with blocks multiplied by `updates`: `x.at[index].multiply(y)`.",
)
scatter_min = arithmetic_scatter(
    scatter_min_p,
    extrema.min,
    "The smaller of entries and their updates: `x.at[index].min(y)`.",
)
scatter_max = arithmetic_scatter(
    scatter_max_p,
    extrema.max,
    "The larger of entries and their updates: `x.at[index].max(y)`.",
)


def _lower_by_parts(primitive: Primitive, function: Callable) -> None:
    """CUDA has no atomic sum of two float64s: sum real and imaginary parts apart."""
    whole = primitive.lowerings[None]

    def apart(operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        del params["update_jaxpr"], params["update_consts"]

        def of(part: Callable) -> Any:
            return function(part(operand), indices, part(updates), **params)

        return complex_numbers.complex(
            of(complex_numbers.real), of(complex_numbers.imag)
        )

    def lower(ctx, *operands, **params) -> Any:
        if ctx.avals_in[0].dtype != np.complex128:
            return whole(ctx, *operands, **params)
        return ctx.lower_fun(apart, *operands, **params)

    primitive.def_lowering(lower, platform="cuda")


_lower_by_parts(scatter_add_p, scatter_add)
_lower_by_parts(scatter_sub_p, scatter_sub)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """`operand` with `func` applied to entries: `x.at[index].apply(func)`.

    Args:
      func: a function of one scalar, applied once for each time an entry is written.
      update_shape: the shape that updates would have.

    The other arguments are those of `scatter`.

    Raises:
      NotImplementedError: when `func` closes over a tracer, or under differentiation.
    """
    check_functions("scatter_apply", func=func)
    aval = get_aval(operand)
    unused = broadcasting.full(update_shape, 0, aval.dtype)
    program = update_program(
        lambda old, _: func(old), aval.update(shape=(), sharding=None), func
    )
    args = (operand, scatter_indices, unused)
    promises = (indices_are_sorted, unique_indices)
    return bind_scatter(scatter_p, program, args, dimension_numbers, mode, *promises)
