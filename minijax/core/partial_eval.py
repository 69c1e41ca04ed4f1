"""Tracing, from Python to a jaxpr, and partial evaluation: known and unknown parts.

`DynamicJaxprTrace` writes programs: every primitive that is bound while it is the
current trace becomes an equation. Calling `lambda x: sin(x) * 2.0` under it writes

    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0 in (c,) }

`JaxprTrace` chooses between two traces. A primitive whose arguments are all known goes
to the first, which may compute it; any other goes to the second, which writes it down.
(The names are JAX's: of the two classes, `DynamicJaxprTrace` is the one that writes.)
Linearization (`autodiff.py`) is the main user of `JaxprTrace`.

In JAX: `interpreters/partial_eval.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import events, language, source_info
from .effects import keeps_equation, of_program, with_inputs
from .events import Hook
from .language import (
    AbstractValue,
    Atom,
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    Trace,
    Tracer,
    Var,
    cached_by_program,
    escaped_tracer_error,
    no_debug_info,
    set_current_trace,
    type_of_application,
    weakref_lru_cache,
)
from .rules import Flags
from .state import state

# ----------------------------------------------------------------------------------
# Tracing: from Python to a jaxpr
# ----------------------------------------------------------------------------------

_aval_of = operator.attrgetter("aval")


class DynamicJaxprTracer(Tracer):
    """A value of the program that is being written: a variable, or a literal."""

    __slots__ = ("atom",)

    _trace: DynamicJaxprTrace

    def __init__(self, trace: DynamicJaxprTrace, aval: AbstractValue, atom: Atom):
        self._trace = trace
        self.aval = aval
        self.atom = atom

    def birth(self) -> str:
        info = self._trace.debug_info
        traced = (
            "\nThis value became a tracer while tracing the function "
            f"{info.func_src_info} for {info.traced_for}"
        )
        if self.atom in self._trace.invars:
            position = self._trace.invars.index(self.atom)
            names = info.arg_names
            name = names[position] if position < len(names) else str(position)
            return f"{traced}: it depends on the argument {name}."
        for eqn in self._trace.eqns:
            if self.atom in eqn.outvars:
                line = source_info.format_line(eqn.source_info)
                return (
                    f"{traced}. It was made by the operation {eqn.primitive} in the "
                    f"line\n  {line}"
                )
        return f"{traced}."

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"


class DynamicJaxprTrace(Trace):
    """Writes one equation for each primitive that is bound.

    With `dead_code=True`, dead code is removed at the end: equations that no output
    needs. JAX does so for linear programs; `make_jaxpr` keeps such equations.

    In JAX: `interpreters/partial_eval.py`, `DynamicJaxprTrace`.
    """

    __slots__ = ("eqns", "invars", "constants", "debug_info", "dead_code", "alive")

    def __init__(self, debug_info: DebugInfo = no_debug_info, dead_code: bool = False):
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.constants = Constants()
        self.debug_info = debug_info
        self.dead_code = dead_code
        self.alive = True

    def new_arg(self, aval: AbstractValue) -> DynamicJaxprTracer:
        """A tracer for the next argument of the program."""
        var = Var(aval)
        self.invars.append(var)
        return DynamicJaxprTracer(self, aval, var)

    def to_atom(self, value: Any) -> Atom:
        """The variable or literal that stands for a value in this program."""
        if type(value) is DynamicJaxprTracer and value._trace is self:
            return value.atom
        if hasattr(value, "__jax_array__"):
            return self.to_atom(value.__jax_array__())
        return self.constants.atom_of(value)

    def lift(self, value: Any) -> DynamicJaxprTracer:
        """A value as a tracer of this trace."""
        if type(value) is DynamicJaxprTracer and value._trace is self:
            return value
        atom = self.to_atom(value)
        return DynamicJaxprTracer(self, atom.aval, atom)

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        if state.entering is not None:
            args = state.entering(primitive, args, params)
        if primitive.staging is not None:
            out = primitive.staging(self, args, params)
            if out is not NotImplemented:
                return out
        atoms = []
        for arg in args:
            if type(arg) is DynamicJaxprTracer and arg._trace is self:
                atoms.append(arg.atom)
            else:
                atoms.append(self.to_atom(arg))
        avals = tuple(map(_aval_of, atoms))
        out_avals, effects = type_of_application(primitive, avals, params)
        if effects:
            effects = with_inputs(effects, atoms)
        source = source_info.current()
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out_avals]
            eqn = JaxprEqn(atoms, outvars, primitive, params, effects, source)
            self.eqns.append(eqn)
            out = [DynamicJaxprTracer(self, var.aval, var) for var in outvars]
        else:
            var = Var(out_avals)
            eqn = JaxprEqn(atoms, [var], primitive, params, effects, source)
            self.eqns.append(eqn)
            out = DynamicJaxprTracer(self, out_avals, var)
        if events.subscribers:
            events.emit("bind", trace=self, eqn=eqn)
        return out

    def finish(self, outputs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """End the program: (jaxpr, the values of its constvars).

        Constants that no equation and no output uses are left out, as in JAX.
        """
        outvars = [self.to_atom(output) for output in outputs]
        self.alive = False
        values = self.constants.values()
        effects = of_program(self.eqns, [*self.invars, *values])
        jaxpr = Jaxpr(
            [*values], self.invars, outvars, self.eqns, effects, self.debug_info
        )
        if self.dead_code:
            jaxpr, _ = dce_jaxpr(jaxpr, [True] * len(outvars), instantiate=True)
        else:
            used = set(outvars).union(*[eqn.invars for eqn in self.eqns])
            jaxpr.constvars = [var for var in jaxpr.constvars if var in used]
        return jaxpr, [values[var] for var in jaxpr.constvars]


class Constants:
    """Values that a program uses but does not compute, each with its atom there.

    Scalars of Python and NumPy are literals. Other values are constants of the program:
    arrays that the function closes over, tracers of outer transformations.
    """

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        # Keyed by the id of the value, which is held so that the id is not reused.
        self.by_id: dict[int, tuple[Atom, Any]] = {}

    def atom_of(self, value: Any) -> Atom:
        """The atom for a value, the same one each time it is used."""
        known = self.by_id.get(id(value))
        if known is not None:
            return known[0]
        if isinstance(value, Tracer) and not value._trace.alive:
            raise escaped_tracer_error(value)
        aval = language.shaped_abstractify(value)
        atom: Atom
        if isinstance(value, (int, float, complex, np.generic)):
            return Literal(value, aval)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            atom = Literal(value[()], aval)
        else:
            atom = Var(aval)
        self.by_id[id(value)] = (atom, value)
        return atom

    def values(self) -> dict[Var, Any]:
        """The constants by their variables, in the order of their first use."""
        return {atom: x for atom, x in self.by_id.values() if type(atom) is Var}


def trace_to_jaxpr(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo = no_debug_info,
    dead_code: bool = False,
    trace: DynamicJaxprTrace | None = None,
) -> tuple[Jaxpr, list[Any]]:
    """Call `fun` on tracers of the given types: (jaxpr, values of its constvars).

    `fun` takes and returns flat lists. Closed-over arrays and tracers of outer
    transformations come back as constants. `trace` is a new one, if it is given.

    In JAX: `partial_eval.py`, `trace_to_jaxpr_dynamic`.
    """
    trace = trace or language.chosen(DynamicJaxprTrace)(debug_info, dead_code)
    if events.subscribers:
        events.emit("trace.begin", trace=trace, debug_info=debug_info)
    args = [trace.new_arg(aval) for aval in in_avals]
    try:
        with set_current_trace(trace), source_info.reset_name_stack():
            outputs = fun(*args)
            jaxpr, consts = trace.finish(outputs)
        del args, outputs  # so that no tracer is left
        trace_ended.run(trace)
    finally:
        trace.alive = False
        if events.subscribers:
            events.emit("trace.end", trace=trace, debug_info=debug_info)
    return jaxpr, consts


@events.Hook
def trace_ended(trace: Trace) -> None:
    """Called when a trace has ended and its tracers should be gone.

    By default nothing happens. `programs/debugging/leaks.py` attaches the search for
    tracers that are still alive.
    """


# ----------------------------------------------------------------------------------
# Partial evaluation: what is known now, and what is written down
# ----------------------------------------------------------------------------------


class JaxprTrace(Trace):
    """Sends each primitive to the trace `known` or to the trace `unknown`.

    A value is unknown if it is a tracer of `unknown`. A primitive without unknown
    arguments goes to `known`, which may compute it or write another program. The others
    are written down in `unknown`; known arguments become constants there, which are
    called residuals. With `x` known and `t` not, the rule `mul(t, cos(x))` computes
    `c = cos x` and writes `mul t c`; `c` is a residual.

    In JAX: `interpreters/partial_eval.py`, `JaxprTrace`.
    """

    __slots__ = ("known", "unknown")

    def __init__(self, known: Trace, unknown: DynamicJaxprTrace):
        self.known = known
        self.unknown = unknown

    def is_unknown(self, value: Any) -> bool:
        return type(value) is DynamicJaxprTracer and value._trace is self.unknown

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        current = state.trace  # put back below, as `set_current_trace` does, faster
        for arg in args:
            if type(arg) is DynamicJaxprTracer and arg._trace is self.unknown:
                break
        else:
            state.trace = self.known
            try:
                return self.known.process_primitive(primitive, args, params)
            finally:
                state.trace = current
        if primitive.partial_eval is not None:
            return primitive.partial_eval(self, args, params)
        state.trace = self.unknown
        try:
            return self.unknown.process_primitive(primitive, args, params)
        finally:
            state.trace = current


@Hook
def split_program(closed: ClosedJaxpr, unknown_in: Flags) -> tuple | None:
    """Split a program into a known and an unknown one; None to leave it whole.

    The answer is (known program, unknown program, flags of unknown outputs, where the
    caller has the residuals, as `split_forwarded` gives it). The rule of `jit_p` for
    partial evaluation calls it, and `transforms/splitting.py` attaches it. By default
    no program is split: everything that it computes is unknown.
    """
    return None


# A residual that the caller has already, as an argument or a constant, is *forwarded*:
# the program does not return it, and the caller learns where it has the value.


def allowed_sources(
    consts: Sequence[Any], args: Sequence[Any], allowed: Sequence[bool] | None
) -> list[Any]:
    """The values that residuals may be forwarded from.

    None stands for an argument that is not `allowed`, such as the carry of a loop: only
    its last value is available after the loop.
    """
    if allowed is not None:
        args = [arg if flag else None for arg, flag in zip(args, allowed, strict=True)]
    return [*consts, *args]


def split_forwarded(
    residuals: Sequence[Any], sources: Sequence[Any]
) -> tuple[tuple[int | None, ...], list[Any]]:
    """Where the caller has each residual, and the residuals that it does not have.

    The first result has the position in `sources` of each residual, None for a new one.
    """
    position = {id(source): index for index, source in enumerate(sources)}
    forwarded = tuple(position.get(id(residual)) for residual in residuals)
    rest = [r for r, index in zip(residuals, forwarded) if index is None]
    return forwarded, rest


def fill_forwarded(
    forwarded: Sequence[int | None], sources: Sequence[Any], rest: Sequence[Any]
) -> list[Any]:
    """The inverse of `split_forwarded`: all residuals in their order."""
    remaining = iter(rest)
    return [next(remaining) if index is None else sources[index] for index in forwarded]


# ----------------------------------------------------------------------------------
# Programs to programs
# ----------------------------------------------------------------------------------


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constvars as leading arguments."""
    if not jaxpr.constvars:
        return jaxpr
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def prune_outputs(closed: ClosedJaxpr, keep: Sequence[bool]) -> ClosedJaxpr:
    """The program with some outputs left out; all of its equations stay."""
    return closed if all(keep) else _prune_outputs(closed, tuple(keep))


@weakref_lru_cache
def _prune_outputs(closed: ClosedJaxpr, keep: tuple[bool, ...]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    outvars = [v for v, kept in zip(jaxpr.outvars, keep) if kept]
    return ClosedJaxpr(jaxpr.replace(outvars=outvars), closed.consts)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Flags, instantiate: bool | Flags = False
) -> tuple[Jaxpr, list[bool]]:
    """Dead-code elimination: (the smaller program, which inputs it still has).

    Inputs that only dead equations read are removed too, unless `instantiate` (one flag
    for all, or one for each) says to keep them. A primitive that carries a program has
    a rule, `Primitive.dce`, that removes dead code inside.

    In JAX: `partial_eval.py`, `dce_jaxpr`.
    """
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    needed = set(outvars)
    kept = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in needed for v in eqn.outvars]
        if not any(used) and not (eqn.effects and keeps_equation(eqn.effects)):
            continue
        if eqn.primitive.dce is not None:
            smaller = eqn.primitive.dce(used, eqn)
            if smaller is None:
                continue
            eqn = smaller
        kept.append(eqn)
        needed.update(eqn.invars)
    kept.reverse()
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(jaxpr.invars)
    used_inputs = [v in needed or keep for v, keep in zip(jaxpr.invars, instantiate)]
    effects = of_program(kept, [*jaxpr.constvars, *jaxpr.invars])
    smaller_jaxpr = jaxpr.replace(
        constvars=[v for v in jaxpr.constvars if v in needed],
        invars=[v for v, used in zip(jaxpr.invars, used_inputs) if used],
        outvars=outvars,
        eqns=kept,
        effects=effects,
    )
    return smaller_jaxpr, used_inputs


@cached_by_program
def dce_closed_jaxpr(
    closed: ClosedJaxpr, used_outputs: Flags, instantiate: Flags = ()
) -> tuple[ClosedJaxpr, list[bool]]:
    """`dce_jaxpr` with constants; cached, so that equal uses share one program.

    Rules of primitives call this function. A rule that needs the result several times
    would otherwise double the work at each level of nested programs.
    """
    jaxpr, used_inputs = dce_jaxpr(closed.jaxpr, used_outputs, instantiate or False)
    kept = set(jaxpr.constvars)
    consts = [
        value
        for var, value in zip(closed.jaxpr.constvars, closed.consts)
        if var in kept
    ]
    return ClosedJaxpr(jaxpr, consts), used_inputs
