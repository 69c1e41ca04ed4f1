"""Common parts of calls of functions with a user's rules.

Such a call carries plain Python functions of flat lists, the function and its rules, to
the current trace, which picks what it needs: `EvalTrace` runs the function, `JVPTrace`
a rule, `BatchTrace` batches all of them. A trace that writes a program keeps the rules
in the equation, so that they are found when the program is differentiated later.

In JAX: `jax/_src/custom_derivatives.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import (
    autodiff,
    batching,
    events,
    language,
    partial_eval,
    signatures,
    source_info,
)
from minijax.core.effects import of_equation
from minijax.core.events import enter
from minijax.core.partial_eval import DynamicJaxprTracer
from minijax.core.rules import AxisData
from minijax.core.signatures import fun_name
from minijax.core.state import state
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.programs.calls import def_call
from minijax.transforms import discharge
from minijax.values.inner_programs import jaxpr_as_fun

Dims = Sequence[int | None]


class RunJaxpr:
    """A program as a flat function that keeps the program as `closed`."""

    def __init__(self, closed: language.ClosedJaxpr):
        self.closed = closed
        self.name = closed.debug_info.func_name
        self.run = jaxpr_as_fun(closed)

    def __call__(self, *args: Any) -> list[Any]:
        return self.run(*args)


def named_like(rule: Callable) -> Callable[[Callable], Callable]:
    """Give the function that wraps a user's rule its name: programs print it."""

    def name(wrapper: Callable) -> Callable:
        wrapper.__name__ = fun_name(rule)
        return wrapper

    return name


class CustomCallPrimitive(language.Primitive):
    """A primitive that is bound with Python functions: a function and its rules.

    A subclass says which method of a trace handles it (`process`) and which parameters
    of an equation keep the rules (`rules`).
    """

    process: str
    rules: tuple[str, ...]

    @abstractmethod
    def without_consts(self, rules: Sequence[Callable], count: int) -> list[Callable]:
        """The rules for a call with `count` lifted constants as first arguments."""

    @abstractmethod
    def batched_rules(
        self, rules: Sequence[Callable], axis_data: AxisData, in_dims: Dims, tag: Any
    ) -> tuple[list[Callable], list[int | None]]:
        """(the rules for a batch, the list that they fill with their outputs' axes)."""

    def bind_call(self, fun: Callable, *rules_and_args: Any, **params: Any) -> list:
        """Call `fun` on the last argument, a list, with the rules before it."""
        return self.call_in(state.trace, fun, *rules_and_args, **params)

    def call_in(self, trace: language.Trace, *call: Any, **params: Any) -> list[Any]:
        return getattr(trace, self.process)(self, *call, **params)

    def bind(self, *args: Any, **params: Any) -> list[Any]:
        return self.rebind(args, params)

    def rebind(self, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        rules = [params[name] for name in self.rules]
        if params["num_consts"]:
            rules = self.without_consts(rules, params["num_consts"])
        run, symbolic = RunJaxpr(params["call_jaxpr"]), params["symbolic_zeros"]
        return self.bind_call(run, *rules, args, symbolic_zeros=symbolic)

    def stage(
        self, trace: Any, fun: Callable, *rules_and_args: Any, **options: Any
    ) -> list[Any]:
        """Write the call as an equation that keeps the rules."""
        *rules, args = rules_and_args
        closed, consts = _trace_call(fun, args)
        params = {"call_jaxpr": closed, **dict(zip(self.rules, rules))}
        params |= {"num_consts": len(consts), **options}
        args, effects = [*consts, *args], language.no_effects
        if closed.effects:
            effects = of_equation(closed.jaxpr, [trace.to_atom(arg) for arg in args])
        outvars = [language.Var(aval) for aval in closed.out_avals]
        atoms = [trace.to_atom(arg) for arg in args]
        source = source_info.current()
        eqn = language.JaxprEqn(atoms, outvars, self, params, effects, source)
        trace.eqns.append(eqn)
        if events.subscribers:
            events.emit("bind", trace=trace, eqn=eqn)
        return [DynamicJaxprTracer(trace, var.aval, var) for var in outvars]

    def batch_call(
        self, trace: Any, fun: Callable, *rules_and_args: Any, **params: Any
    ) -> tuple[list[Any], Dims]:
        """The call on a batch: the function and its rules, all batched."""
        *rules, values, dims = rules_and_args
        axis_data, tag = trace.axis_data, trace.tag
        out_dims: list[int | None] = []
        batched = batching.batch_flat(fun, axis_data, dims, out_dims, tag)
        rules, dims_of_rules = self.batched_rules(rules, axis_data, dims, tag)
        outs = self.call_in(trace.parent, batched, *rules, values, **params)
        # Either the function ran, or a rule did; both note the axes of their outputs.
        return outs, out_dims or dims_of_rules


def _trace_call(
    fun: Any, args: Sequence[Any]
) -> tuple[language.ClosedJaxpr, list[Any]]:
    """A flat function as a program; its constants become leading arguments."""
    if isinstance(fun, RunJaxpr):
        return fun.closed, []
    avals = [language.get_aval(arg) for arg in args]
    place = signatures.fun_place(getattr(fun, "fun", fun))
    name = getattr(fun, "name", fun_name(fun))
    debug_info = language.DebugInfo("custom_jvp/vjp", name, place)
    with source_info.fresh_context():
        jaxpr, consts = partial_eval.trace_to_jaxpr(fun, avals, debug_info)
    return language.ClosedJaxpr(partial_eval.convert_constvars_jaxpr(jaxpr)), consts


def def_custom_call(primitive: CustomCallPrimitive) -> CustomCallPrimitive:
    """Enter a primitive for custom calls, with the rules that all of them share."""
    def_call(primitive, "call_jaxpr")
    primitive.transpose = _transpose
    primitive.dce = _dce
    enter(discharge_rules, primitive, _discharge)
    primitive.without("jvp batch", "traces treat custom calls by their own method")
    language.register(primitive)
    return primitive


def _transpose(cts, *args, call_jaxpr: language.ClosedJaxpr, **_) -> None:
    """A custom call in a linear program is transposed like what it computes."""
    autodiff.backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, cts)


def _dce(used, eqn) -> language.JaxprEqn:
    """Keep a custom call whole: its rule may need values that the call does not."""
    return eqn


def _discharge(discharged, *args, call_jaxpr: language.ClosedJaxpr, **_) -> tuple:
    """Only what the call computes: all derivatives were taken before."""
    pure = discharge.discharge_state(call_jaxpr, discharged)
    results = language.eval_jaxpr(pure.jaxpr, pure.consts, *args)
    return discharge.split_contents(results, discharged)
