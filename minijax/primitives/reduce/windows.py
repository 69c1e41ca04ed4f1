"""Reductions over sliding windows, and their derivatives.

`reduce_window_sum` adds up the entries of each window; its transpose is a sum over
windows again. Of `reduce_window_max` the derivative goes to the largest entry:
forwards by `select_and_gather_add`, backwards by `select_and_scatter_add`, each the
transpose of the other.

In JAX: `lax/windowed_reductions.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import hlo, rules, shaping, sums
from minijax.core.language import ClosedJaxpr, Primitive, ShapedArray, get_aval
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.primitives import families
from minijax.primitives.elementwise import comparing, extrema
from minijax.primitives.linear.convolution import transposed_pads
from minijax.primitives.linear.convolution_shapes import (
    dilated_shape,
    strided,
    windows_of,
)
from minijax.primitives.parallel.scalar_programs import lower_scalars
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import slicing
from minijax.primitives.shape.padding import pad


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """How many windows there are along each dimension."""
    if base_dilation is not None:
        operand_shape = dilated_shape(operand_shape, base_dilation)
    if window_dilation is not None:
        window_dimensions = dilated_shape(window_dimensions, window_dilation)
    padded = [size + low + high for size, (low, high) in zip(operand_shape, padding)]
    return tuple(map(strided, padded, window_dimensions, window_strides))


def check_windows(
    name: str, operand: ShapedArray, dimensions: Any, strides: Any, **others: Any
) -> None:
    """TypeError unless every window parameter has one positive entry per dimension."""
    if operand.ndim != len(dimensions):
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got "
            f"operand shape {operand.shape} with window_dimensions {dimensions}."
        )
    sizes = {"window_dimensions": dimensions, "window_strides": strides}
    for what, values in {**sizes, **others}.items():
        if len(values) != len(dimensions):
            raise TypeError(
                f"{name} got inconsistent {what} and window_dimensions: got {what} "
                f"{values} and window_dimensions {dimensions}."
            )
    for what, values in sizes.items():
        if any(value <= 0 for value in values):
            raise TypeError(f"{name} {what} must all be positive, got {values}.")


def window_shape(
    operand: ShapedArray, *, window_dimensions: Any, window_strides: Any, **params: Any
) -> tuple[int, ...]:
    """The shape rule of reductions over windows."""
    names = ("base_dilation", "window_dilation", "padding")
    others = {name: params[name] for name in names}
    window = (window_dimensions, window_strides)
    check_windows("reduce_window", operand, *window, **others)
    return reduce_window_shape_tuple(operand.shape, *window, **others)


def inserted(dim: int, params: dict[str, Any]) -> dict[str, Any]:
    """Window parameters for an operand with a further axis, along which it slides."""
    neutral: dict[str, Any] = {"padding": (0, 0)}
    names = ("window_dimensions", "window_strides", "padding", "base_dilation")
    moved = dict(params)
    for name in (*names, "window_dilation"):
        if name in params:
            values = params[name]
            moved[name] = (*values[:dim], neutral.get(name, 1), *values[dim:])
    return moved


def lower_windows(
    ctx: Any,
    operands: Sequence[Any],
    starts: Sequence[Any],
    combine: Callable,
    params: dict[str, Any],
) -> list[Any]:
    """A `stablehlo.reduce_window` whose body is `combine(*block arguments)`."""
    scalars = [hlo.tensor_type((), aval.dtype) for aval in ctx.avals_out]
    operation = hlo.stablehlo.ReduceWindowOp(
        [ctx.result_type(index) for index in range(len(ctx.avals_out))],
        list(operands),
        list(starts),
        hlo.int_array(params["window_dimensions"]),
        window_strides=hlo.int_array(params["window_strides"]),
        base_dilations=hlo.int_array(params["base_dilation"]),
        window_dilations=hlo.int_array(params["window_dilation"]),
        padding=hlo_parts.int_matrix(np.reshape(params["padding"], (-1, 2))),
    )
    hlo_parts.write_region(operation, [*scalars, *scalars], combine)
    return list(operation.results)


def _window_reduction(
    name: str, combine: str, neutral: Callable, in_numpy: Callable
) -> Primitive:
    """reduce_window_sum, _max or _min, without derivatives."""

    def meaning(x: np.ndarray, **params) -> np.ndarray:
        windows = windows_of(x, neutral(x.dtype), **params)
        return in_numpy(windows, axis=-1).astype(x.dtype)

    primitive = rules.standard_primitive(
        name, window_shape, lambda x, **_: x.dtype, meaning=meaning
    )

    @primitive.def_batch
    def batch(axis_data, args, dims, **params) -> tuple:
        return primitive.bind(args[0], **inserted(dims[0], params)), dims[0]

    @primitive.def_lowering
    def lower(ctx, x, **params) -> Any:
        dtype = ctx.avals_in[0].dtype

        def body(a: Any, b: Any) -> list[Any]:
            return [extrema.combine_values(combine, dtype, a, b)]

        return lower_windows(ctx, [x], [ctx.constant(neutral(dtype))], body, params)

    return primitive


reduce_window_sum_p = _window_reduction("reduce_window_sum", "add", sums.zero, np.sum)


def _sum_transpose(ct, x, **params) -> list:
    """Each entry gets the cotangents of all windows it was in: a sum of windows."""
    strides, base = params["window_strides"], params["base_dilation"]
    window = dilated_shape(params["window_dimensions"], params["window_dilation"])
    out = dilated_shape(get_aval(ct).shape, strides)
    sizes = (dilated_shape(x.shape, base), window, out)
    pads = transposed_pads(sizes, params["padding"])
    config = tuple((low, high, step - 1) for (low, high), step in zip(pads, strides))
    spread = pad(ct, rules.scalar_like(get_aval(ct).strip_weak_type(), 0), config)
    params["window_strides"] = base
    params["padding"] = ((0, 0),) * x.ndim
    params["base_dilation"] = (1,) * x.ndim
    return [reduce_window_sum_p.bind(spread, **params)]


rules.def_linear(reduce_window_sum_p, _sum_transpose)

reduce_window_max_p = _window_reduction(
    "reduce_window_max", "maximum", reductions.lowest, np.max
)
reduce_window_min_p = _window_reduction(
    "reduce_window_min", "minimum", reductions.highest, np.min
)


def _winner_jvp(select_prim: Primitive) -> Callable:
    """The tangent of a window's extremum is that of the entry which it is."""

    def term(t: Any, x: Any, **params: Any) -> Any:
        return select_and_gather_add_p.bind(t, x, select_prim=select_prim, **params)

    return term


reduce_window_max_p.def_jvp(_winner_jvp(elementwise.ge_p))
reduce_window_min_p.def_jvp(_winner_jvp(elementwise.le_p))
for _primitive in (reduce_window_max_p, reduce_window_min_p):
    _primitive.without("transpose", "it is not linear; its jvp is another primitive")


# ----------------------------------------------------------------------------------
# The entries that are extrema
# ----------------------------------------------------------------------------------


def _neutral_of(select_prim: Primitive, dtype: Any) -> np.ndarray:
    """The value that is never the extremum."""
    of_largest = select_prim is elementwise.ge_p
    return (reductions.lowest if of_largest else reductions.highest)(dtype)


def _padded(x: Any, select_prim: Primitive, config: Sequence) -> Any:
    """An array, padded with a value that is never chosen."""
    aval = get_aval(x)
    edge = rules.scalar_like(aval, _neutral_of(select_prim, aval.dtype))
    return pad(x, edge, tuple(config))


def _def_linear_in_first(primitive: Primitive) -> None:
    """The rules of both: the second operand only says where the entries go."""

    @primitive.def_jvp_rule
    def jvp(primals, tangents, **params) -> tuple:
        (first, operand), (first_dot, _) = primals, tangents
        out = primitive.bind(first, operand, **params)
        if type(first_dot) is rules.Zero:
            return out, rules.zero_tangent_of(out)
        return out, primitive.bind(first_dot, operand, **params)

    @primitive.def_batch
    def batch(axis_data, args, dims, **params) -> tuple:
        fronts = families.all_at_front(axis_data, args, dims)
        return primitive.bind(*fronts, **inserted(0, params)), 0


def _gather_meaning(t, x, *, select_prim: Primitive, **params) -> np.ndarray:
    best = np.argmax if select_prim is elementwise.ge_p else np.argmin
    values = windows_of(x, _neutral_of(select_prim, x.dtype), **params)
    tangents = windows_of(t, 0, **params)
    winners = best(values, axis=-1)[..., None]
    return np.take_along_axis(tangents, winners, -1)[..., 0]


select_and_gather_add_p = rules.standard_primitive(
    "select_and_gather_add",
    lambda t, x, *, select_prim, **params: window_shape(x, **params),
    lambda t, x, **_: t.dtype,
    weak_type_rule=lambda t, x, **_: t.weak_type and x.weak_type,
    meaning=_gather_meaning,
)
_def_linear_in_first(select_and_gather_add_p)


@select_and_gather_add_p.def_transpose
def _gather_transpose(ct, t, x, *, select_prim, **params):
    if not rules.is_linear(t) or rules.is_linear(x):
        raise ValueError("select_and_gather_add is linear in its first operand only")
    if any(step != 1 for step in params["window_dilation"]):
        raise NotImplementedError(
            "VJP not implemented for select_and_gather (MaxPool) with window dilation, "
            f"got window_dilation={params['window_dilation']}. Take the maximum over "
            "`conv_general_dilated_patches`, which has a derivative."
        )
    base = params["base_dilation"]
    spread = any(step != 1 for step in base)
    if spread:
        x = _padded(x, select_prim, [(0, 0, step - 1) for step in base])
    names = ("window_dimensions", "window_strides", "padding")
    out = select_and_scatter_add(ct, x, select_prim, *(params[n] for n in names))
    if spread:
        out = slicing.slice(out, (0,) * t.ndim, get_aval(out).shape, base)
    return [out, None]


@select_and_gather_add_p.def_lowering
def _gather_lowering(ctx, t, x, *, select_prim, **params):
    """One reduction of pairs: the better entry takes its tangent along."""
    t_aval, x_aval = ctx.avals_in
    (out,) = ctx.avals_out
    pair = ctx.replace(avals_out=[ShapedArray(out.shape, x_aval.dtype), out])
    edge = ctx.constant(_neutral_of(select_prim, x_aval.dtype))
    direction = "GE" if select_prim is elementwise.ge_p else "LE"

    def body(best: Any, tangent: Any, entry: Any, other: Any) -> list[Any]:
        keep = shaping.compare(best, entry, direction, x_aval.dtype)
        return [
            hlo.stablehlo.select(keep, best, entry),
            hlo.stablehlo.select(keep, tangent, other),
        ]

    start = ctx.constant(np.zeros((), t_aval.dtype))
    return lower_windows(pair, [x, t], [edge, start], body, params)[1]


def _scatter_type(
    operand, source, start, *, window_dimensions, window_strides, padding, **programs
) -> tuple[int, ...]:
    window = (window_dimensions, window_strides)
    check_windows("select_and_scatter", operand, *window, padding=padding)
    wanted = reduce_window_shape_tuple(operand.shape, *window, padding)
    if (source.shape, start.shape) != (wanted, ()) or any(
        given.dtype != operand.dtype for given in (source, start)
    ):
        raise TypeError(
            "select_and_scatter takes a source with an entry for each window, here of "
            f"shape {wanted}, and a scalar init_value, both of the operand's dtype, "
            f"{operand.dtype}. Got {source.str_short()} and {start.str_short()}."
        )
    return operand.shape


select_and_scatter_p = rules.standard_primitive(
    "select_and_scatter", _scatter_type, lambda operand, *_, **params: operand.dtype
)
select_and_scatter_p.without("jvp transpose batch", "JAX has none either")


@select_and_scatter_p.def_lowering
def _scatter_lowering(
    ctx, *operands, window_dimensions, window_strides, padding, **programs
) -> Any:
    operation = hlo.stablehlo.SelectAndScatterOp(
        ctx.result_type(),
        *operands,
        window_dimensions=hlo.int_array(window_dimensions),
        window_strides=hlo.int_array(window_strides),
        padding=hlo_parts.int_matrix(np.reshape(padding, (-1, 2))),
    )
    scalar = hlo.tensor_type((), ctx.avals_out[0].dtype)
    for number, name in enumerate(("select", "scatter")):
        closed = ClosedJaxpr(programs[f"{name}_jaxpr"], programs[f"{name}_consts"])
        write = functools.partial(lower_scalars, ctx, closed)
        hlo_parts.write_region(operation, [scalar] * 2, write, number)
    return operation.results[0]


def _add_where_chosen(
    source: Any, operand: Any, *, select_prim: Primitive, padding: Any, **window: Any
) -> Any:
    """Pad with what is never chosen, scatter, and cut the padding off again."""
    aval = get_aval(operand)
    scalars = [ShapedArray((), aval.dtype)] * 2
    select, _ = trace_to_jaxpr(lambda *pair: [select_prim.bind(*pair)], scalars)
    add = comparing.or_p if aval.dtype == bool else elementwise.add_p
    scatter, _ = trace_to_jaxpr(lambda *pair: [add.bind(*pair)], scalars)
    out = select_and_scatter_p.bind(
        _padded(operand, select_prim, [(low, high, 0) for low, high in padding]),
        source,
        rules.scalar_like(aval, 0),
        select_jaxpr=select,
        select_consts=(),
        scatter_jaxpr=scatter,
        scatter_consts=(),
        padding=((0, 0),) * aval.ndim,
        **window,
    )
    low = [pair[0] for pair in padding]
    return slicing.slice(out, low, [a + n for a, n in zip(low, aval.shape)])


def _scatter_meaning(
    source, operand, *, select_prim, window_dimensions, window_strides, padding
) -> np.ndarray:
    best = np.argmax if select_prim is elementwise.ge_p else np.argmin
    edge = _neutral_of(select_prim, operand.dtype)
    padded = np.pad(operand, list(padding), constant_values=edge)
    out = np.zeros(padded.shape, source.dtype)
    for place in np.ndindex(*source.shape):
        corner = [p * step for p, step in zip(place, window_strides)]
        cut = tuple(slice(c, c + w) for c, w in zip(corner, window_dimensions))
        winner = np.unravel_index(best(padded[cut]), window_dimensions)
        out[tuple(c + w for c, w in zip(corner, winner))] += source[place]
    keep = [slice(low, low + n) for (low, _), n in zip(padding, operand.shape)]
    return out[tuple(keep)]


def _scatter_add_shape(
    source, operand, *, window_dimensions, window_strides, padding, **_
) -> tuple[int, ...]:
    window = (window_dimensions, window_strides)
    check_windows("select_and_scatter_add", operand, *window, padding=padding)
    wanted = reduce_window_shape_tuple(operand.shape, *window, padding)
    if (source.shape, source.dtype) != (wanted, operand.dtype):
        raise TypeError(
            "select_and_scatter_add takes a source with an entry for each window, here "
            f"of shape {wanted}, of the operand's dtype, {operand.dtype}. Got "
            f"{source.str_short()}."
        )
    return operand.shape


select_and_scatter_add_p = rules.standard_primitive(
    "select_and_scatter_add",
    _scatter_add_shape,
    lambda source, operand, **_: source.dtype,
    weak_type_rule=lambda source, operand, **_: source.weak_type and operand.weak_type,
    meaning=_scatter_meaning,
)
_def_linear_in_first(select_and_scatter_add_p)


@select_and_scatter_add_p.def_transpose
def _scatter_transpose(ct, source, operand, **params) -> list:
    if not rules.is_linear(source) or rules.is_linear(operand):
        raise ValueError("select_and_scatter_add is linear in its first operand only")
    ones = (1,) * get_aval(operand).ndim
    gathered = select_and_gather_add_p.bind(
        rules.instantiate(ct),
        operand,
        base_dilation=ones,
        window_dilation=ones,
        **params,
    )
    return [gathered, None]


select_and_scatter_add_p.def_lowering(families.lower_fun(_add_where_chosen, False))


def select_and_scatter_add(
    source: Any,
    operand: Any,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Any:
    """Add each entry of `source` at the extremum of its window of `operand`.

    `select_prim` is `ge_p` for maxima and `le_p` for minima. The result has the shape
    of `operand`.
    """
    return select_and_scatter_add_p.bind(
        source,
        operand,
        select_prim=select_prim,
        window_dimensions=tuple(window_dimensions),
        window_strides=tuple(window_strides),
        padding=tuple(tuple(pair) for pair in padding),
    )
