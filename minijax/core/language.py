"""The language: types, programs, primitives, tracers.

Reading order of the weekend core: `avals.py` (types), this file, `rules.py` (the rules
of a primitive), `arithmetic.py` (the first primitives, each in one block),
`partial_eval.py` (tracing), `autodiff.py` (derivatives), `batching.py` (vmap),
`lowering.py` (StableHLO), `dispatch.py` (compiling and running with XLA) and `jit.py`
(jit and its cache).

The idea in four sentences. Every operation a user calls ends in `Primitive.bind`, and
`bind` passes the operation to the *current trace*, `state.trace`, of which each thread
has one. With no transformation active that is `EvalTrace`, which compiles and runs the
operation. Inside `jit`, `grad` or `vmap` it is another `Trace`, which records the
operation, differentiates it or gives it a batch axis. Meanwhile the values in the
user's Python are `Tracer`s, which have a type (`aval`) and the trace they belong to.

This file has four parts: programs (`Jaxpr`), primitives, traces with their tracers, and
a cache for results that are derived from a program. A program is plain data;
`eval_jaxpr` runs it, equation by equation.

In JAX: `jax/_src/core.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from . import dtypes, effects, errors, events, runtime, source_info
from .avals import (
    AbstractValue,
    ShapedArray,
    Typed,
    aval_of_class,
    canonicalize_dim,
    canonicalize_shape,
    get_aval,
    mapped_aval,
    numpy_scalar,
    physical_aval,
    shaped_abstractify,
    typecompat,
    typeof,
    unmapped_aval,
    valid_jaxtype,
)
from .errors import AnyFunction
from .events import enter
from .source_info import DebugInfo, no_debug_info
from .state import install, state

# ----------------------------------------------------------------------------------
# Programs
# ----------------------------------------------------------------------------------


class Var:
    """A variable of a jaxpr; it has a type and no name (the printer gives names)."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """The variable of an output that is never used; printed `_`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


@final
class Literal:
    """A scalar constant written into the program where it is used."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: AbstractValue):
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal
Value = Any
ParamDict = dict[str, Any]


@dataclass(slots=True, eq=False, repr=False)
class JaxprEqn:
    """One equation: `outvars = primitive[params] invars`.

    `effects` says what the equation does besides computing its outputs, such as writing
    to a mutable array; it is usually empty. `source_info` holds the user's line and the
    name stack (`jvp`, `vmap`, scopes).
    """

    invars: list[Atom]
    outvars: list[Var]
    primitive: Primitive
    params: dict[str, Any]
    effects: frozenset
    source_info: source_info.SourceInfo

    def replace(self, **changes: Any) -> JaxprEqn:
        """The same equation with some fields changed: `eqn.replace(params={})`."""
        return dataclasses.replace(self, **changes)


class Jaxpr:
    """A program: `{ lambda constvars; invars. let eqns in outvars }`.

    Plain data. Every variable is bound once, before its use; `check.check_jaxpr` checks
    this and the types of every equation. `pretty.py` prints the program.
    """

    FIELDS = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
    __slots__ = (*FIELDS, "__weakref__")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: frozenset = frozenset(),
        debug_info: DebugInfo = no_debug_info,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = frozenset(effects)
        self.debug_info = debug_info

    @property
    def in_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        fields = {name: getattr(self, name) for name in Jaxpr.FIELDS}
        return Jaxpr(**fields | changes)


class ClosedJaxpr:
    """A jaxpr together with the values of its constvars.

    Compared and hashed by identity: the caches of transformed programs rely on it.
    """

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"consts has {len(consts)} values but the jaxpr has "
                f"{len(jaxpr.constvars)} constvars; give one value for each."
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)

    literals = property(lambda self: self.consts)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    debug_info = property(lambda self: self.jaxpr.debug_info)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Any = None) -> ClosedJaxpr:
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr,
            self.consts if consts is None else consts,
        )


# Most parameters, and what tuples among them hold, are of these types.
plain_types = frozenset((bool, int, float, str, tuple, type(None)))


def programs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr | ClosedJaxpr]:
    """The programs that an equation's parameters carry, in the parameters' order."""
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if type(item) not in plain_types and isinstance(item, (Jaxpr, ClosedJaxpr)):
                yield item


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The same programs, closed ones without the values of their constants."""
    for program in programs_in_params(params):
        yield program.jaxpr if isinstance(program, ClosedJaxpr) else program


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a program by binding its equations one after another in the current trace.

    Under `EvalTrace` it computes; under any other trace it transforms the program as
    that trace transforms a function. Each equation keeps the user's line it came from.

    In JAX: `core.py`, `eval_jaxpr`.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    outer = source_info.current_name_stack()
    for eqn in jaxpr.eqns:
        inputs = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        with source_info.user_context(eqn.source_info, outer=outer):
            outputs = eqn.primitive.rebind(inputs, eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, outputs))
        else:
            env[eqn.outvars[0]] = outputs
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


# ----------------------------------------------------------------------------------
# Primitives
# ----------------------------------------------------------------------------------

no_effects = effects.no_effects


class Primitive:
    """An operation that every interpreter knows: its name and all its rules.

    The rules are attributes, set next to each other where the primitive is defined and
    read by the interpreters; None means "no rule". `reasons` says why a rule that one
    could expect is missing. `rules.py` describes each rule's arguments and has the
    constructors for families (unary, n-ary, reductions).

    In JAX: `core.py`, `Primitive`, and the registration tables of each interpreter.
    """

    multiple_results = False

    def __init__(self, name: str, multiple_results: bool = False):
        self.name = name
        self.home: dict[str, Any] = {}  # the globals of the module that registers it
        if multiple_results:
            self.multiple_results = True
        self.meaning: Callable | None = None  # NumPy reference; tests compare XLA
        self.type_rule: Any = None  # (*avals, **params) -> (out, effects)
        self.impl: Callable | None = None  # eager evaluation, if not by compiling
        self.jvp: Callable | None = None  # (primals, tangents, **params)
        self.jvp_terms: tuple | None = None  # one per argument: (t, *primals, **params)
        self.transpose: Callable | None = None  # (ct, *args, **params) -> cts
        self.batch: Callable | None = None  # (axis_data, args, dims, **params)
        self.lowerings: dict[str | None, Callable] = {}  # by platform; None: any
        # For primitives that carry a program or use refs (mutable arrays); `rules.py`
        # says how they are called.
        self.linearize: Callable | None = None
        self.partial_eval: Callable | None = None
        self.dce: Callable | None = None
        self.staging: Callable | None = None
        self.pretty: Any = None  # (params) -> params to print
        self.makes_ref = False  # the result is a ref; its tangent is never `Zero`
        self.cache_types = True  # the type depends on avals and params alone
        self.reasons: dict[str, str] = {}
        self.types: dict[Any, Any] = {}  # cache of type_rule
        self.executables: dict[Any, Any] = {}  # cache of eager programs

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        """By its variable, so that reading a pickle imports the module that has it."""
        names = [name for name, value in list(self.home.items()) if value is self]
        return names[0] if names else (primitive_named, (self.name,))

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        return state.trace.process_primitive(self, args, params)

    def rebind(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the primitive to the inputs and parameters of an equation.

        Interpreters of jaxprs call this instead of `bind`. They differ only for a few
        primitives, such as that of `custom_jvp`: its `bind` takes Python functions, but
        an equation holds jaxprs, which its `rebind` turns into functions.
        """
        return state.trace.process_primitive(self, args, params)

    # JAX's names for the two definitions every user-made primitive starts with.

    def def_impl(self, impl: Callable) -> Callable:
        """Set how the primitive computes eagerly; without it, it is compiled."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """Set the type rule: types and parameters in, type (or list of types) out."""
        self.type_rule = lambda *avals, **params: (rule(*avals, **params), no_effects)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable) -> Callable:
        """Set a type rule that returns (types, effects)."""
        self.type_rule = rule
        return rule

    # The rules of one block, in the order in which blocks write them.

    def def_jvp(self, *terms: Callable | None) -> None:
        """One term per argument: `(tangent, *primals, **params) -> tangent of output`.

        None for an argument in which the output is not differentiable. The tangent of
        the output is the sum of the terms of those arguments whose tangent is nonzero.
        """
        self.jvp_terms = terms

    def def_jvp_rule(self, rule: Callable) -> Callable:
        """The whole rule: `(primals, tangents, **params) -> (primals out, tangents)`.

        Tangents may be `Zero` (`rules.py`), those of outputs too.
        """
        self.jvp = rule
        return rule

    def def_transpose(self, rule: Callable) -> Callable:
        """`(ct, *args, **params) -> [cotangent or None for each argument]`.

        `ct` is the cotangent of the output. Arguments in which the operation is linear
        are passed as accumulators (`rules.Accumulator`, with `.aval`), the others as
        values. A rule that writes to the accumulators itself returns None.
        """
        self.transpose = rule
        return rule

    def def_batch(self, rule: Callable) -> Callable:
        """`(axis_data, args, dims, **params) -> (out, out_dim)`, lists if several.

        `axis_data` is the batch axis (`rules.AxisData`); `dims` has its place in each
        argument, None for an argument without it.
        """
        self.batch = rule
        return rule

    def def_lowering(self, rule: Callable, platform: str | None = None) -> Callable:
        """`(ctx, *operands, **params) -> result or results`, as StableHLO values."""
        self.lowerings[platform] = rule
        return rule

    def without(self, rules: str, reason: str) -> None:
        """Declare that rules, "jvp transpose", do not exist here, and why."""
        self.reasons.update(dict.fromkeys(rules.split(), reason))

    def missing(self, rule: str, what: str) -> NotImplementedError:
        """The error for a rule that is not there, with the reason if there is one."""
        reason = self.reasons.get(rule)
        because = f": {reason}." if reason else "."
        return NotImplementedError(f"{what} for '{self}' not implemented{because}")


# All primitives by name, for pickling and for the tests that walk them.
all_primitives: dict[str, Primitive] = {}


def primitive_named(name: str) -> Primitive:
    """The registered primitive of that name; KeyError when there is none."""
    return all_primitives[name]


def register(primitive: Primitive) -> Primitive:
    """Enter a primitive of minijax's own into `all_primitives`."""
    if primitive.name in all_primitives:
        raise ValueError(f"there is a primitive named {primitive.name!r} already")
    all_primitives[primitive.name] = primitive
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back  # out of the functions that make families
    primitive.home = frame.f_globals
    primitive.__module__ = primitive.home["__name__"]
    return primitive


class TypeExtension:
    """Rules for what types hold beyond shape and dtype, such as a cut over a mesh.

    The defaults change nothing. A room above defines a subclass, and `assembly.py`
    enters an instance in `type_extensions`; they are called in the order of the
    entries.
    """

    def result(self, primitive: Primitive, avals: Sequence, params: dict, out: Any):
        """The type (or types) of the results; `out` is what the type rule returned.

        The answer is cached, so it may depend on the arguments only.
        """
        return out

    def final(self, place: Any, name: str) -> Any:
        """The parameter for `place`, the `out_sharding` that a user passed to `name`.

        It may depend on the state of the thread, such as the mesh in use.
        """
        return place

    def zeros(self, aval: AbstractValue, zeros: Any) -> Any:
        """`zeros` as a value of type `aval`; `rules.zeros_of` calls it."""
        return zeros

    def lowers(self, jaxpr: Jaxpr) -> bool:
        """Whether `lower` is called for the equations of a program."""
        return False

    def lower(self, rule: Callable, ctx: Any, *operands: Any, **params: Any) -> Any:
        """Apply the lowering rule of an equation."""
        return rule(ctx, *operands, **params)


type_extensions: dict[type, TypeExtension] = {}

_TYPE_CACHE_SIZE = 4096


def type_of_application(
    primitive: Primitive, avals: tuple[AbstractValue, ...], params: dict[str, Any]
) -> tuple[Any, frozenset]:
    """The cached answer of a primitive's type rule: (type or types, effects).

    Each of `type_extensions` may add to the types. Raises what the rule raises:
    TypeError or ValueError with the user's shapes in it. TypeError when a parameter
    cannot be hashed.
    """
    if not primitive.cache_types:
        return _extended_type(primitive, avals, params)
    key: Any = (avals, tuple(params.items())) if params else avals
    if state.mesh is not None or state.abstract_mesh is not None:
        key = (key, state.trace_key, state.user_traceback is None)
    try:
        return primitive.types[key]
    except KeyError:
        pass
    except TypeError:
        for name, value in params.items():
            try:
                hash(value)
            except TypeError:
                raise TypeError(
                    f"parameters of equations must be hashable, but parameter {name} "
                    f"of primitive {primitive} is {value!r}"
                ) from None
        raise
    if primitive.type_rule is None:
        raise NotImplementedError(
            f"Abstract evaluation for '{primitive}' not implemented: give it a type "
            "rule with `def_abstract_eval`."
        )
    if len(primitive.types) >= _TYPE_CACHE_SIZE:
        primitive.types.clear()
    try:
        answer = _extended_type(primitive, avals, params)
    except (TypeError, ValueError) as error:
        raise errors.with_facts(error, rule=f"the types of {primitive}") from None
    primitive.types[key] = answer
    return answer


def _extended_type(primitive: Primitive, avals: tuple, params: dict) -> tuple:
    out, effects = primitive.type_rule(*avals, **params)
    for extension in type_extensions.values():
        out = extension.result(primitive, avals, params, out)
    return out, effects


# ----------------------------------------------------------------------------------
# Traces and tracers
# ----------------------------------------------------------------------------------


class Trace:
    """What the current transformation does with each primitive.

    There is one current trace, `state.trace`. The trace of a transformation holds its
    parent, the trace that was current when the transformation began, and makes it the
    current one again while it processes a primitive. There is no stack and no levels.

    In JAX: `core.py`, `Trace`.
    """

    # False after the trace has ended: a tracer that is used then has leaked.
    alive = True
    # Calls of functions with the user's own derivative rules. Every trace has these
    # methods; `programs/custom/calls_in_traces.py` defines them.
    process_custom_jvp_call: Callable
    process_custom_vjp_call: Callable

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        raise TypeError(f"{type(self).__name__} cannot process primitives")

    def __repr__(self) -> str:
        return type(self).__name__


@events.Hook
def run_eagerly(primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
    """Compute a primitive now.

    `core/dispatch.py` attaches a function that compiles a program of one equation and
    runs it on a device.
    """
    raise NotImplementedError(f"Import core/dispatch.py to compute '{primitive}'.")


class EvalTrace(Trace):
    """No transformation: compute now, through XLA.

    If `around` is given, a trace that has not ended, it gets operations on tracers.

    In JAX: `core.py`, `EvalTrace`; the setting `eager_constant_folding`.
    """

    def __init__(self, around: Trace | None = None):
        self.around = around

    def process_primitive(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        if self.around is not None:
            with set_current_trace(self.trace_for(args)) as trace:
                return trace.process_primitive(primitive, args, params)
        if primitive.impl is not None:
            for arg in args:
                if isinstance(arg, Tracer):
                    raise escaped_tracer_error(arg)
            return primitive.impl(*args, **params)
        return run_eagerly.run(primitive, args, params)

    def trace_for(self, args: Sequence[Any]) -> Any:
        """The trace that an operation goes to: `around` if an argument is a tracer."""
        return self.around if any(isinstance(x, Tracer) for x in args) else eval_trace


def chosen(trace_class: type) -> type:
    """`trace_class` itself, or the class that `minijax.replace` put in its place."""
    for name, replacement in state.replaced:
        if name == trace_class.__name__:
            return replacement
    return trace_class


eval_trace = EvalTrace()
install("trace", eval_trace)  # every thread starts with it


class set_current_trace:
    """Context manager: run the body with `trace` as the current trace."""

    __slots__ = ("trace", "previous")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.previous = state.trace
        state.trace = self.trace
        return self.trace

    def __exit__(self, *exception: Any) -> None:
        state.trace = self.previous


class TraceTag:
    """Identifies the tracers of one transformation.

    A transformation may make several traces (one for a function, one for its custom
    derivative rule). They share a tag, by which each recognises the others' tracers.
    """

    __slots__ = ()


class Tracer(Typed):
    """Represents a value that is not known yet, or one with a tangent or a batch axis.

    It has a type, `aval`, and belongs to a trace. Files above this one add the
    operators and array methods, to this class and to `Array`. Code that needs the value
    itself, such as `if x:`, raises an error that says where the tracer was made and
    what to write instead.

    In JAX: `core.py`, `Tracer`.
    """

    __slots__ = ("_trace", "aval", "__weakref__")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    has_tangent = False  # if True, a conversion to a Python float would lose it

    _trace: Trace
    aval: Any

    def __init__(self, trace: Trace, aval: AbstractValue):
        self._trace = trace
        self.aval = aval

    def __init_subclass__(cls) -> None:
        enter(aval_of_class, cls, operator.attrgetter("aval"))

    def full_lower(self) -> Any:
        """An equivalent value that is simpler, if there is one."""
        return self

    def to_concrete_value(self) -> Any | None:
        """The concrete value, or None; tracers of a `jvp` outside `jit` have one."""
        return None

    def birth(self) -> str:
        """Where this tracer was made, as the last sentence of an error message."""
        return ""

    def _error_repr(self) -> str:
        return f"traced array with shape {self.aval.str_short()}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"

    # Conversions to Python values. They need a concrete value, which a tracer of a
    # program that is being written down does not have.

    def __bool__(self) -> bool:
        errors.check_bool_conversion(self.aval.size)
        return bool(self._concrete(errors.TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self._concrete_scalar("int", "astype(int)"))

    def __float__(self) -> float:
        return float(self._concrete_scalar("float", "astype(float)", self.has_tangent))

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        error = errors.TracerArrayConversionError
        return np.asarray(self._concrete(error, self.has_tangent))

    def _concrete(self, error: Callable[[Tracer], Exception], no: bool = False) -> Any:
        value = None if no else self.to_concrete_value()
        if value is None:
            raise error(self)
        return value

    def _concrete_scalar(self, function: str, instead: str, no: bool = False) -> Any:
        advice = f" Write `x.{instead}` to convert inside jit." if instead else ""
        said = f"The problem arose with the `{function}` function.{advice}"
        return self._concrete(lambda x: errors.ConcretizationTypeError(x, said), no)


def to_concrete_value(value: Any) -> Any | None:
    """The value itself, or None for a tracer that has none yet."""
    return value.to_concrete_value() if isinstance(value, Tracer) else value


def is_tracer(value: Any) -> bool:
    return isinstance(value, Tracer)


def escaped_tracer_error(tracer: Tracer, detail: str = "") -> Exception:
    """The error for a tracer that is used after its transformation ended."""
    return errors.with_facts(
        errors.UnexpectedTracerError(
            "Encountered an unexpected tracer: a value of a function being transformed "
            "by minijax was kept and used after the transformation had ended.\n"
            f"The tracer: {tracer._error_repr()}.{tracer.birth()}{detail}\n"
            "A function that is transformed must hand out values only through its "
            "results: return the value instead of storing it in a global, an attribute "
            "or a list.",
            born=tracer.birth(),
        ),
        rule="a tracer lives as long as its transformation",
        instead="return the value",
    )


# ----------------------------------------------------------------------------------
# A cache keyed by programs
# ----------------------------------------------------------------------------------


def weakref_lru_cache(function: Callable, maxsize: int = 2048) -> Callable:
    """Cache a function whose first argument is a program (or a Python function).

    The first argument is held weakly and compared by identity; the others are compared
    by value. `state.trace_key`, which stands for all settings that tracing depends on
    (x64 mode, the mesh, ...), is part of the key.
    """
    return runtime.weakref_lru_cache(lambda: state.trace_key, function, maxsize)


def cached_by_program(function: AnyFunction) -> AnyFunction:
    """Like `weakref_lru_cache`, for calls with lists, which become tuples.

    So equal calls for one program return the same object, and share what it holds.
    """
    cached = weakref_lru_cache(function)

    @functools.wraps(function)
    def call(program: Any, *args: Any) -> Any:
        return cached(program, *[tuple(x) if type(x) is list else x for x in args])

    return call  # type: ignore[return-value]


def ensure_compile_time_eval() -> set_current_trace:
    """Context manager: operations on constants are computed now, also while tracing.

    Operations on tracers are traced as they are outside.
    """
    trace = state.trace
    return set_current_trace(trace if trace is eval_trace else EvalTrace(trace))


eval_context = ensure_compile_time_eval


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes."""
    return max(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes."""
    return min(d1, d2)
