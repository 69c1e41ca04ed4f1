"""`reduce_window`: a reduction over sliding windows with any operation.

The operation is a Python function of scalars, traced once; the equation carries its
program. Where it is a known one (`lax.add` from 0), the primitive of that name is used.

In JAX: `lax/windowed_reductions.py`, `reduce_window_p`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import autodiff, partial_eval, sums
from minijax.core.language import (
    ClosedJaxpr,
    Jaxpr,
    ShapedArray,
    Tracer,
    eval_jaxpr,
    get_aval,
    to_concrete_value,
)
from minijax.core.rules import instantiate
from minijax.core.trees import tree_unflatten
from minijax.primitives import families
from minijax.primitives.elementwise import extrema
from minijax.primitives.linear.convolution_shapes import dilated_shape, padtype_to_pads
from minijax.primitives.parallel.scalar_programs import lower_scalars
from minijax.primitives.reduce import reductions, windows
from minijax.primitives.shape.squeezing import indices_of
from minijax.programs.rare.general_reduction import (
    flat_pair,
    folded,
    halves,
    trace_scalars,
)
from minijax.values.concrete import is_concrete


def _types(*avals: ShapedArray, jaxpr: Jaxpr, consts: tuple, **params) -> list:
    operands, starts = halves(avals)
    if any(start.shape for start in starts):
        shapes = [start.shape for start in starts]
        raise TypeError(f"reduce_window takes scalars as init_values, got {shapes}")
    for operand, start in zip(operands, starts):
        if operand.dtype != start.dtype:
            raise TypeError(
                "reduce_window operand and init_value dtypes must match, got "
                f"{operand.dtype} and {start.dtype}"
            )
    shape = windows.window_shape(operands[0], **params)
    return [ShapedArray(shape, operand.dtype) for operand in operands]


def _meaning(*arrays: np.ndarray, jaxpr: Jaxpr, consts: tuple, **params) -> list:
    operands, starts = halves(arrays)
    entries = [windows.windows_of(x, s, **params) for x, s in zip(operands, starts)]
    return folded(entries, starts, ClosedJaxpr(jaxpr, consts))


reduce_window_p = families.several_results("reduce_window", _types, _meaning)


@reduce_window_p.def_jvp_rule
def _jvp(primals, tangents, *, jaxpr: Jaxpr, consts: tuple, **params):
    """Reduce pairs (value, tangent) by the operation's own jvp."""
    count = len(primals)
    scalar = ClosedJaxpr(jaxpr, consts)
    both, _ = autodiff.jvp_jaxpr(scalar, [True] * count, [True] * len(jaxpr.outvars))
    operands, starts = halves(primals)
    operand_dots, start_dots = halves([instantiate(t) for t in tangents])
    half = count // 2

    def combine(*values: Any) -> list[Any]:
        total, entry = values[:count], values[count:]
        x, x_dot = total[:half], total[half:]
        y, y_dot = entry[:half], entry[half:]
        return eval_jaxpr(both.jaxpr, both.consts, *x, *y, *x_dot, *y_dot)

    scalars = [ShapedArray((), get_aval(x).dtype) for x in (*operands, *operand_dots)]
    pair, pair_consts = partial_eval.trace_to_jaxpr(combine, [*scalars, *scalars])
    pairs = (*operands, *operand_dots, *starts, *start_dots)
    outs = reduce_window_p.bind(*pairs, jaxpr=pair, consts=tuple(pair_consts), **params)
    return outs[:half], outs[half:]


reduce_window_p.without(
    "transpose", "its tangent is carried beside the value; use a known operation"
)


@reduce_window_p.def_batch
def _batch(axis_data, args, dims, **params) -> tuple:
    half = len(args) // 2
    if any(dim is not None for dim in dims[half:]):
        raise NotImplementedError(
            "reduce_window batching of init values: pass one that all examples share, "
            "and combine the result with each example's own."
        )
    operands = families.all_at_front(axis_data, args[:half], dims[:half])
    outs = reduce_window_p.bind(*operands, *args[half:], **windows.inserted(0, params))
    return outs, [0] * half


@reduce_window_p.def_lowering
def _lowering(ctx, *values, jaxpr: Jaxpr, consts: tuple, **params):
    operands, starts = halves(values)
    closed = ClosedJaxpr(jaxpr, consts)
    inner = ctx.replace(avals_in=jaxpr.in_avals, avals_out=jaxpr.out_avals)
    write = functools.partial(lower_scalars, inner, closed)
    return windows.lower_windows(ctx, operands, starts, write, params)


_KNOWN = (
    (elementwise.add, sums.zero, windows.reduce_window_sum_p),
    (extrema.max, reductions.lowest, windows.reduce_window_max_p),
    (extrema.min, reductions.highest, windows.reduce_window_min_p),
)


def _known(computation: Callable, start: Any) -> Any:
    """The primitive of a known operation that begins with its neutral element."""
    if not is_concrete(start) or isinstance(start, Tracer):
        return None
    value = np.asarray(to_concrete_value(start))
    for function, neutral, primitive in _KNOWN:
        if computation is function and value == neutral(value.dtype):
            return primitive
    return None


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce each window of an array, or of each array of a tree, to one entry.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: a scalar (or tree of scalars) of the same dtype, with which every
        window begins.
      computation: `(a, b) -> combined`, of scalars (or trees of them).
      window_dimensions, window_strides: size and step of the windows, per dimension;
        the step is 1 unless it is given.
      padding: "SAME", "SAME_LOWER", "VALID" (the default), or a pair per dimension.
      base_dilation, window_dilation: how far array and window are spread.

    Raises TypeError for parameters of the wrong length, ValueError for trees that
    differ.
    """
    operands, starts, tree = flat_pair(operand, init_value)
    if not operands:
        raise ValueError("reduce_window must have at least one operand.")
    shape = get_aval(operands[0]).shape
    ones = (1,) * len(window_dimensions)
    names = "window_strides, base_dilation and window_dilation"
    steps = window_strides, base_dilation, window_dilation
    window_strides, base_dilation, window_dilation = (
        ones if step is None else indices_of(step, f"each of {names}") for step in steps
    )
    if isinstance(padding, str):
        padding = padtype_to_pads(
            dilated_shape(shape, base_dilation),
            dilated_shape(window_dimensions, window_dilation),
            window_strides,
            padding,
        )
    params = {
        "window_dimensions": tuple(window_dimensions),
        "window_strides": window_strides,
        "padding": tuple(tuple(pair) for pair in padding),
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    if len(operands) == 1:
        known = _known(computation, starts[0])
        if known is not None:
            return tree_unflatten(tree, [known.bind(operands[0], **params)])

    dtypes_in = [get_aval(x).dtype for x in operands]
    scalars = tuple(ShapedArray((), dtype) for dtype in dtypes_in)
    closed, out_tree = trace_scalars(computation, scalars, tree)
    if out_tree != tree:
        raise ValueError(
            "reduce_window: the results of the computation and the initial values must "
            f"have the same tree structure, got {out_tree} and {tree}."
        )
    params |= {"jaxpr": closed.jaxpr, "consts": tuple(closed.consts)}
    outs = reduce_window_p.bind(*operands, *starts, **params)
    return tree_unflatten(tree, outs)
