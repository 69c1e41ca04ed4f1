"""How each trace processes a call of a function with a user's derivative rules.

Such a call is not one operation: a trace that differentiates it runs the user's rule in
place of the function. So each trace has two methods besides `process_primitive`,
`process_custom_jvp_call` and `process_custom_vjp_call`; `assembly.py` gives those of
this file to the classes. They are called with the primitive, the function, its rules
(`jvp`, or `fwd` and `bwd`) and the list of arguments. The primitive
(`custom_calls.py`) has these methods:

======================  ==============================================================
`stage`                 `(trace, fun, *rules, args, **params)`: write the equation
`batch_call`            `(trace, fun, *rules, values, dims, **params) -> (outs, dims)`
`run_jvp`               `(jvp, primals, tangents, symbolic_zeros) -> (outs, tangents)`
`run_forward`           `(fwd, primals, tangents, **params) -> (outs, residuals)`
`write_linear`          `(bwd, residuals, tangents, outs, **params) -> tangents out`
======================  ==============================================================

In JAX: the methods of these names in `core.py` and in each interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.autodiff import JVPTrace, only_zeros, unzip, zero_if_float0
from minijax.core.batching import BatchTrace
from minijax.core.events import enter
from minijax.core.language import EvalTrace, Trace, set_current_trace
from minijax.core.partial_eval import DynamicJaxprTrace, JaxprTrace

# The methods of each class of traces, by name.
TRACE_METHODS: dict[type[Trace], dict[str, Callable]] = {}


def define(trace_class: type[Trace], jvp_call: Callable, vjp_call: Callable) -> None:
    """Enter the methods of a class of traces for the two kinds of calls."""
    methods = dict(process_custom_jvp_call=jvp_call, process_custom_vjp_call=vjp_call)
    enter(TRACE_METHODS, trace_class, methods)


# ---- traces of one's own that do not say what to do ---------------------------------


def _refuse_jvp_call(self: Trace, *call: Any, **params: Any) -> list[Any]:
    raise TypeError(f"{type(self).__name__} cannot process custom_jvp calls")


def _refuse_vjp_call(self: Trace, *call: Any, **params: Any) -> list[Any]:
    raise TypeError(f"{type(self).__name__} cannot process custom_vjp calls")


define(Trace, _refuse_jvp_call, _refuse_vjp_call)

# ---- computing: the rules do not matter ---------------------------------------------


def _run(
    self: EvalTrace, primitive: Any, fun: Callable, *rules_and_args: Any, **params: Any
) -> list[Any]:
    args = rules_and_args[-1]
    if self.around is None:
        return fun(*args)
    with set_current_trace(self.trace_for(args)) as trace:
        return primitive.call_in(trace, fun, *rules_and_args, **params)


define(EvalTrace, _run, _run)

# ---- writing a program: an equation that keeps the rules ----------------------------


def _write(self: Trace, primitive: Any, *call: Any, **params: Any) -> list[Any]:
    return primitive.stage(self, *call, **params)


define(DynamicJaxprTrace, _write, _write)

# ---- partial evaluation -------------------------------------------------------------


def _split(
    self: JaxprTrace, primitive: Any, fun: Callable, *rules_and_args: Any, **params: Any
) -> list[Any]:
    args = rules_and_args[-1]
    if not any(map(self.is_unknown, args)):
        with set_current_trace(self.known):
            return primitive.call_in(self.known, fun, *rules_and_args, **params)
    # The unknown part is linear: the rule has been used already.
    return fun(*args)


define(JaxprTrace, _split, _split)

# ---- derivatives: the user's rule ---------------------------------------------------


def _differentiate_by_jvp(
    self: JVPTrace, primitive, fun, jvp, args, *, symbolic_zeros=False, **params
) -> list[Any]:
    params["symbolic_zeros"] = symbolic_zeros
    primals, tangents = unzip(map(self.to_pair, args))
    if only_zeros(map(type, tangents)):
        with set_current_trace(self.parent):
            return primitive.call_in(self.parent, fun, jvp, primals, **params)
    with set_current_trace(self.split):
        outs, out_tangents = primitive.run_jvp(jvp, primals, tangents, symbolic_zeros)
    return [self.tracer(x, self.linear(x, t)) for x, t in zip(outs, out_tangents)]


def _differentiate_by_vjp(
    self: JVPTrace, primitive, fun, fwd, bwd, args, **params
) -> list[Any]:
    primals, tangents = unzip(map(self.to_pair, args))
    if only_zeros(map(type, tangents)):
        with set_current_trace(self.parent):
            return primitive.call_in(self.parent, fun, fwd, bwd, primals, **params)
    with set_current_trace(self.parent):
        outs, residuals = primitive.run_forward(fwd, primals, tangents, **params)
    with set_current_trace(self.tangent_trace):
        out_tangents = primitive.write_linear(bwd, residuals, tangents, outs, **params)
    return [self.tracer(x, zero_if_float0(t)) for x, t in zip(outs, out_tangents)]


define(JVPTrace, _differentiate_by_jvp, _differentiate_by_vjp)

# ---- batches: the function and its rules are batched together ------------------------


def _batch(self: BatchTrace, primitive, *call, **params) -> list[Any]:
    *fun_and_rules, args = call
    values, dims = unzip(map(self.to_pair, args))
    with set_current_trace(self.parent):
        outs, out_dims = primitive.batch_call(
            self, *fun_and_rules, values, tuple(dims), **params
        )
    return [self.tracer(x, dim) for x, dim in zip(outs, out_dims, strict=True)]


define(BatchTrace, _batch, _batch)
