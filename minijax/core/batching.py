"""vmap: one program for one example becomes one program for a whole batch.

A `BatchTracer` holds an array with one axis more than its type has, and the position of
that axis. Each primitive has a rule for operands with such an axis: most rules keep the
axis (`sin`), some move it (`dot_general` puts batch axes first), a few bind a different
primitive. No rule loops over the examples.

In JAX: `interpreters/batching.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from . import errors, events, source_info
from .language import (
    ClosedJaxpr,
    Primitive,
    Trace,
    Tracer,
    TraceTag,
    cached_by_program,
    chosen,
    eval_jaxpr,
    get_aval,
    set_current_trace,
    unmapped_aval,
)
from .partial_eval import trace_ended, trace_to_jaxpr
from .rules import AxisData, match_axis, no_axis_name, not_mapped
from .state import state


class BatchTracer(Tracer):
    """An array `value` with a batch axis at `batch_dim`, which `aval` does not have."""

    __slots__ = ("value", "batch_dim")

    _trace: BatchTrace

    val = property(lambda self: self.value)

    def __init__(self, trace: BatchTrace, value: Any, batch_dim: int):
        self._trace = trace
        self.aval = get_aval(value).mapped(trace.axis_data.size, batch_dim)
        self.value = value
        self.batch_dim = batch_dim

    def birth(self) -> str:
        inner = self.value.birth() if isinstance(self.value, Tracer) else ""
        return inner or (
            "\nIt stands for one example of a batch: it was made by `vmap`, along axis "
            f"{self.batch_dim} of an array of type "
            f"{get_aval(self.value).str_short(short_dtypes=True)}."
        )

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={get_aval(self.value)})"


class BatchTrace(Trace):
    """Applies batch rules; the batched values live in the parent trace.

    In JAX: `interpreters/batching.py`, `BatchTrace`.
    """

    __slots__ = ("parent", "tag", "axis_data", "alive")

    def __init__(self, parent: Trace, tag: TraceTag, axis_data: AxisData):
        self.parent = parent
        self.tag = tag
        self.axis_data = axis_data
        self.alive = True

    def to_pair(self, value: Any) -> tuple[Any, int | None]:
        if isinstance(value, BatchTracer) and value._trace.tag is self.tag:
            return value.value, value.batch_dim
        return value, not_mapped

    def tracer(self, value: Any, dim: int | None) -> Any:
        return value if dim is not_mapped else BatchTracer(self, value, dim)

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        values, dims = [], []
        for arg in args:
            value, dim = self.to_pair(arg)
            values.append(value)
            dims.append(dim)
        with set_current_trace(self.parent):
            name = self.axis_data.name
            uses_axis = name is not no_axis_name and name in axis_names_in.run(params)
            unmapped = dims.count(not_mapped) == len(dims) and not uses_axis
            # A few rules, such as that of writing to a ref, run without batched
            # operands.
            if unmapped and not getattr(primitive.batch, "even_unmapped", False):
                return self.parent.process_primitive(primitive, values, params)
            if primitive.batch is None:
                raise primitive.missing("batch", "Batching rule")
            out, out_dims = primitive.batch(
                self.axis_data, tuple(values), tuple(dims), **params
            )
        if events.subscribers:
            events.emit(
                "batch", primitive=primitive, trace=self, dims=dims, out_dims=out_dims
            )
        if primitive.multiple_results:
            return [self.tracer(x, dim) for x, dim in zip(out, out_dims, strict=True)]
        return self.tracer(out, out_dims)


@events.Hook
def axis_names_in(params: dict[str, Any]) -> Sequence[Hashable]:
    """The names of axes that an equation with these parameters uses.

    By default there are none: the core's axes have no names.
    """
    return ()


@events.Hook
def axis_scope(axis_data: AxisData) -> AbstractContextManager:
    """The context in which a function runs on a batch.

    By default an axis cannot have a name. `transforms/batch_names.py` attaches a
    context in which collectives, such as `psum`, find the axis by its name.
    """
    if axis_data.name is not no_axis_name:
        raise errors.value_error(
            f"vmap got axis_name={axis_data.name!r}, but the core alone has no named "
            "axes. Leave axis_name out, or import minijax."
        )
    return contextlib.nullcontext()


def batch(
    fun: Callable,
    axis_data: AxisData,
    args: Sequence[Any],
    in_dims: Sequence[int | None],
) -> tuple[list[Any], list[int | None]]:
    """Run a flat function on a batch: (batched outputs, the batch axis of each)."""
    dims: list[int | None] = []
    run = batch_flat(fun, axis_data, in_dims, dims, TraceTag())
    outputs = run(*args)
    return outputs, dims


def batch_flat(
    fun: Callable,
    axis_data: AxisData,
    in_dims: Sequence[int | None],
    out_dims: list[int | None],
    tag: TraceTag,
) -> Callable[..., list[Any]]:
    """`fun` as a function of batched values; it fills `out_dims` when it is called."""

    def run(*values: Any) -> list[Any]:
        trace = chosen(BatchTrace)(state.trace, tag, axis_data)
        args = [trace.tracer(x, dim) for x, dim in zip(values, in_dims, strict=True)]
        with (
            set_current_trace(trace),
            axis_scope.run(axis_data),
            source_info.transform_name_stack("vmap"),
        ):
            outputs = fun(*args)
        pairs = [trace.to_pair(output) for output in outputs]
        trace.alive = False
        del args, outputs  # so that no tracer is left
        trace_ended.run(trace)
        out_dims[:] = [dim for _, dim in pairs]
        return [value for value, _ in pairs]

    run.__name__ = str(getattr(fun, "name", None) or getattr(fun, "__name__", "run"))
    return run


@cached_by_program
def batch_jaxpr(
    closed: ClosedJaxpr,
    axis_data: AxisData,
    in_dims: Sequence[int | None],
    instantiate: Sequence[bool] = (),
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """The program for a batch: (batched program, the batch axis of each output).

    Outputs flagged in `instantiate` have their batch axis first, even when they do not
    depend on a batched input.
    """
    out_dims: list[int | None] = []

    def fun(*args: Any) -> list[Any]:
        outputs, dims = batch(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs),
            axis_data,
            args,
            in_dims,
        )
        for index, wanted in enumerate(instantiate):
            if wanted:
                outputs[index] = match_axis(axis_data, outputs[index], dims[index], 0)
                dims[index] = 0
        out_dims.extend(dims)
        return outputs

    in_avals = [
        unmapped_aval(axis_data.size, dim, aval, axis_data.cut)
        for aval, dim in zip(closed.in_avals, in_dims, strict=True)
    ]
    jaxpr, consts = trace_to_jaxpr(fun, in_avals, closed.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(out_dims)
