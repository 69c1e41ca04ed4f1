"""Programs of real JAX, made ready to run under minijax's transformations.

`foreign.py` reads a jaxpr for looking at. Here it is read for running: each primitive
must be one that minijax has, under the same name and with the same parameters, and what
parameters hold of JAX's own classes (dimension numbers, modes, generators, policies,
rules) is made into minijax's. So `see.grad` and `see.vmap` can differentiate and batch
a program that JAX traced, with minijax's rules.

Nothing of JAX is imported; what a jaxpr holds is read by its attributes and called.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

import minijax
from minijax.core.avals import get_aval
from minijax.core.jit import UNSPECIFIED
from minijax.core.language import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Var,
    all_primitives,
    eval_jaxpr,
)
from minijax.core.rules import instantiate, zeros_of
from minijax.core.source_info import NameStack, SourceInfo
from minijax.extend.core import primitives  # noqa: F401  now all are in the table
from minijax.primitives.elementwise.accuracy import AccuracyMode
from minijax.primitives.elementwise.rounding import RoundingMethod
from minijax.primitives.index.index_vectors import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from minijax.primitives.linear.convolution_shapes import ConvDimensionNumbers
from minijax.primitives.linear.matmul_precision import DotAlgorithmPreset, Precision
from minijax.primitives.random.random_bits import keys_aval, prngs
from minijax.primitives.rare.rbg import RandomAlgorithm
from minijax.transforms.rematerialize import Offloadable
from minijax_lab.explain import foreign
from minijax_lab.explain.recording import user_frame_now
from minijax_lab.explain.user_source import Source

# What a jaxpr of JAX lacks for every view that runs it.
OWN_RULES = (
    "JAX traced this program; minijax's rules transformed it. A jaxpr does not carry "
    "which of JAX's rules would run, so what JAX writes may differ in its equations."
)
FLAT = (
    "A jaxpr's inputs are its arrays, one by one: the containers that they came in are "
    "known by their names, and by the arguments if you pass them."
)


class ForeignProgram:
    """A jaxpr of JAX as a function of its inputs, for minijax to transform.

    `lost` has a sentence for each fact that the jaxpr does not carry. Raises TypeError,
    naming the primitive, for one that minijax does not have.
    """

    def __init__(self, program: Any, who: str) -> None:
        foreign.leave_out_jax_frames()
        if hasattr(program, "with_consts"):
            raise TypeError(
                f"{who} runs jaxprs of jax 0.10, and this one is of a later JAX, whose "
                "equations have other parameters. see.jaxpr shows it as it is; with "
                "jax 0.10.2 it runs."
            )
        if type(program).__name__ == "Jaxpr" and program.constvars:
            raise TypeError(
                f"{who} got a Jaxpr of JAX whose {len(program.constvars)} constants "
                "have no values: pass what jax.make_jaxpr(f)(...) returns."
            )
        reader = _Reader(who)
        whole = type(program).__name__ == "ClosedJaxpr"
        self.closed = reader.closed(program) if whole else reader.closed_of(program, ())
        info = getattr(program, "jaxpr", program).debug_info
        self.__name__ = getattr(info, "func_name", None) or "function"
        names = getattr(info, "arg_names", None) or ()
        count = len(self.closed.jaxpr.invars)
        self.input_names = [str(name) for name in names]
        if len(self.input_names) != count:
            self.input_names = [f"input {number}" for number in range(count)]
        self.lost = [OWN_RULES, FLAT, *reader.lost]
        self.who = who

    first_only = False

    def __call__(self, *args: Any) -> Any:
        inputs = minijax.tree_util.tree_leaves(args)
        count = len(self.input_names)
        if len(inputs) != count:
            raise TypeError(
                f"{self.who} got {len(inputs)} arguments for a jaxpr of JAX with "
                f"{count} inputs ({', '.join(self.input_names[:6])}): pass an array or "
                "a ShapeDtypeStruct for each, in this order."
            )
        for name, value, aval in zip(self.input_names, inputs, self.closed.in_avals):
            given = get_aval(value)
            if (given.shape, given.dtype) != (aval.shape, aval.dtype):
                raise TypeError(
                    f"{self.who} got {given.str_short(short_dtypes=True)} for {name}, "
                    "and JAX traced this jaxpr for "
                    f"{aval.str_short(short_dtypes=True)}: trace it anew, with "
                    "jax.make_jaxpr(f)(...)."
                )
        outs = eval_jaxpr(self.closed.jaxpr, self.closed.consts, *inputs)
        return outs[0] if len(outs) == 1 or self.first_only else outs

    @property
    def types(self) -> list[minijax.ShapeDtypeStruct]:
        """The types of the inputs, as arguments."""
        return [
            minijax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
            for aval in self.closed.in_avals
        ]


def taken(function: Any, args: tuple, who: str) -> tuple[Any, tuple]:
    """What a view runs for `function`: a jaxpr of JAX as a `ForeignProgram`.

    Arrays of JAX among its arguments become NumPy's, trees stay trees, but for those of
    classes that minijax does not know: they become their leaves. A function of JAX is
    refused, with what to pass instead.
    """
    if not foreign.is_jaxpr(function):
        refuse_function(function, who, args)
        return function, args
    library = sys.modules["jax"].tree_util

    def own(leaf: Any) -> Any:
        return np.asarray(leaf) if is_jax(leaf) and hasattr(leaf, "dtype") else leaf

    given = library.tree_map(own, args)
    leaves = library.tree_leaves(given)
    same = len(minijax.tree_util.tree_leaves(given)) == len(leaves)
    return ForeignProgram(function, who), given if same else tuple(leaves)


def refuse_function(
    function: Any, who: str, args: Any = (), way: str = "jaxpr"
) -> None:
    """TypeError for a function of JAX, such as `jax.jit` makes, or for one that is
    called with arrays of JAX, with the way out.

    The `way` is "jaxpr" where the view takes what JAX traced, "minijax" where it must
    watch minijax trace.
    """
    kind = type(function).__name__
    if kind in ("Lowered", "Compiled") and is_jax(function):
        raise TypeError(
            f"{who} takes a jaxpr, and a {kind} of JAX has none. Pass "
            f"what it was made of, {who}(jax.make_jaxpr(f)(x), x); "
            "see.memory(jitted.lower(x), compiled=True) shows what was compiled."
        )
    if not callable(function) or not is_of_jaxs(function, args):
        return
    name, given = as_called(who) or as_declared(function, args)
    if way == "jaxpr":
        raise TypeError(
            f"{who} takes a function of JAX as its jaxpr, which JAX must trace: "
            f"{who}(jax.make_jaxpr({name})({given}), {given})"
            + (", where make_jaxpr gets one example." if who == "see.vmap" else ".")
        )
    raise TypeError(
        f"{who} watches minijax while it traces, and {name} calls JAX, or gets arrays "
        "of JAX. Write it with minijax.numpy and pass NumPy arrays, or see what JAX "
        f"traced: see.jaxpr({name}, {given})."
    )


def as_called(who: str) -> tuple[str, str] | None:
    """How the user wrote the function and the arguments of a view's call, such as
    `jax.vmap(f)` and `p, x`; None where the call is not found."""
    frame = user_frame_now()
    if frame is None:
        return None
    code, number = frame.f_code, frame.f_lasti // 2
    line, _, column, _ = next(itertools.islice(code.co_positions(), number, None))
    for call in ast.walk(Source(code.co_filename).tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == who:
            if call.args and call.lineno == line and call.col_offset == column:
                name, *given = map(ast.unparse, call.args)
                return name, ", ".join(given)
    return None


def as_declared(function: Any, args: tuple) -> tuple[str, str]:
    """The name of a function, and of its parameters that get arguments."""
    name = getattr(function, "__name__", "f")
    name = "f" if name == "<lambda>" else name
    try:
        given = ", ".join(list(inspect.signature(function).parameters)[: len(args)])
    except (TypeError, ValueError):
        given = ""
    return name, given or "x"


def is_of_jaxs(function: Any, args: Any) -> bool:
    """Whether a function is one for JAX to trace: by its class, by what it calls, or by
    the arrays that it is called with."""
    if "jax" not in sys.modules:
        return False
    leaves = sys.modules["jax"].tree_util.tree_leaves(args)
    return is_jax(function) or uses_jax(function) or any(map(is_jax, leaves))


def traced_by_jax(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The jaxpr of a function that is JAX's (see `is_of_jaxs`), None for others."""
    if not callable(function) or not is_of_jaxs(function, (args, kwargs)):
        return None
    return sys.modules["jax"].make_jaxpr(function)(*args, **kwargs)


def is_jax(value: Any) -> bool:
    """Whether a value's class belongs to JAX or to its library of compiled code."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


# So many functions are followed to find out whether one calls JAX.
MOST_FOLLOWED = 200


def uses_jax(function: Any) -> bool:
    """Whether a function calls JAX: itself, or by what it closes over, such as a module
    of Flax, and by functions of the user's that it calls."""
    return leads_to_jax(function, (), {})


def leads_to_jax(value: Any, names: Sequence[str], seen: dict[int, Any]) -> bool:
    """Whether a value that some code reads is JAX's, or code that reads such.

    `names` are those in the code, among them the methods that it calls. Functions of
    minijax and NumPy lead nowhere.
    """
    if id(value) in seen or len(seen) >= MOST_FOLLOWED:
        return False
    seen[id(value)] = value
    if isinstance(value, types.ModuleType):
        if value.__name__.partition(".")[0] in ("jax", "jaxlib"):
            return True
        parts = [vars(value).get(name) for name in names]
        return any(callable(one) and leads_to_jax(one, (), seen) for one in parts)
    if isinstance(value, (list, tuple, dict)):
        held = value.values() if isinstance(value, dict) else value
        return any(callable(one) and leads_to_jax(one, names, seen) for one in held)
    code = getattr(value, "__code__", None)
    module = getattr(value, "__module__", None) or (
        "" if code else type(value).__module__
    )
    root = str(module).partition(".")[0]
    if root in ("jax", "jaxlib") or is_jax(value):
        return callable(value)
    if root in ("minijax", "minijax_lab", "minijax_widgets", "numpy", "builtins"):
        return False
    if code is None:
        bound = getattr(value, "__func__", None) or getattr(value, "func", None)
        if bound is not None:
            owner = getattr(value, "__self__", None)
            return leads_to_jax(bound, (), seen) or leads_to_jax(owner, (), seen)
        kind = value if isinstance(value, type) else type(value)
        methods = [getattr(kind, name, None) for name in ("__call__", *names)]
        codes = [getattr(method, "__code__", None) for method in methods]
        asked = {*names, *(n for code in codes if code for n in names_in(code))}
        own = {} if kind is value else getattr(value, "__dict__", {})
        methods += [one for name, one in own.items() if name in asked and callable(one)]
        return any(leads_to_jax(method, (), seen) for method in methods)
    used = list(names_in(code))
    if any(name.startswith("jax.") for name in used):
        return True  # it imports a module of JAX itself
    scope = getattr(value, "__globals__", {})
    cells = [cell_of(cell) for cell in value.__closure__ or ()]
    read = [scope.get(name) for name in used]
    wrapped = getattr(value, "__wrapped__", None)
    return any(leads_to_jax(one, used, seen) for one in (*read, *cells, wrapped))


def names_in(code: types.CodeType) -> Iterator[str]:
    """The names that a function's code reads, those of functions in it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def cell_of(cell: Any) -> Any:
    """What a closure's cell holds; None if it is empty yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def told_of_jax(function: Any, who: str, error: Exception) -> TypeError | None:
    """What to do about a function that failed because it calls JAX's; else None."""
    if not uses_jax(function):
        return None
    name = getattr(function, "__name__", "f")
    return TypeError(
        f"{who} could not trace {name}, which calls functions of JAX ({error}): write "
        "it with minijax.numpy, or let JAX trace it, "
        f"{who}(jax.make_jaxpr({name})(x), x)."
    )


class _Reader:
    """Reads programs for running; one that occurs twice is read once."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.programs: dict[int, tuple[Any, Any]] = {}
        self.primitives: dict[str, Any] = {}
        self.lost: list[str] = []

    def closed(self, program: Any) -> ClosedJaxpr:
        known = self.programs.get(id(program))
        if known is None:
            # Kept with what it was read from, whose id is not given anew then.
            own = self.closed_of(program.jaxpr, program.consts)
            known = self.programs[id(program)] = program, own
        return known[1]

    def closed_of(self, jaxpr: Any, consts: Sequence[Any]) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr(jaxpr), [self.constant(c) for c in consts])

    def constant(self, value: Any) -> Any:
        """An array of JAX as one of NumPy's."""
        kind = getattr(value, "dtype", None)
        if type(kind).__name__ == "KeyTy":
            raise TypeError(
                f"{self.who} got a jaxpr of JAX that closes over an array of random "
                "keys: pass the keys as an argument."
            )
        return np.asarray(value)

    def jaxpr(self, program: Any) -> Jaxpr:
        known = self.programs.get(id(program))
        if known is not None:
            return known[1]
        env: dict[int, Any] = {}
        constvars = [self.new(var, env) for var in program.constvars]
        invars = [self.new(var, env) for var in program.invars]
        eqns: list[JaxprEqn] = []
        self.equations(program, env, eqns)
        outvars = [self.read(atom, env) for atom in program.outvars]
        name = getattr(program.debug_info, "func_name", None) or "function"
        info = DebugInfo("jit", name)
        effects = frozenset().union(*(eqn.effects for eqn in eqns))
        own = Jaxpr(constvars, invars, outvars, eqns, effects, info)
        self.programs[id(program)] = program, own
        return own

    def new(self, var: Any, env: dict[int, Any]) -> Var:
        kind = DropVar if type(var).__name__ == "DropVar" else Var
        own = env[id(var)] = kind(self.aval(var.aval))
        return own

    def read(self, atom: Any, env: dict[int, Any]) -> Any:
        if type(atom).__name__ != "Literal":
            return env[id(atom)]
        aval = self.aval(atom.aval)
        value = np.asarray(atom.val)
        weak = isinstance(aval, ShapedArray) and aval.weak_type
        return Literal(value.item() if weak else value.astype(aval.dtype)[()], aval)

    def equations(self, program: Any, env: dict[int, Any], eqns: list) -> None:
        """Adds the equations of a program; calls with rules of `custom_vjp` opened."""
        for eqn in program.eqns:
            inputs = [self.read(atom, env) for atom in eqn.invars]
            if eqn.primitive.name == "custom_vjp_call":
                inner = eqn.params["call_jaxpr"]
                self.lose_rule(inner.jaxpr.debug_info.func_name)
                if inner.consts:
                    self.refuse(eqn, "it closes over constants")
                within = dict(zip(map(id, inner.jaxpr.invars), inputs))
                self.equations(inner.jaxpr, within, eqns)
                for var, atom in zip(eqn.outvars, inner.jaxpr.outvars):
                    env[id(var)] = self.read(atom, within)
                continue
            primitive = all_primitives.get(eqn.primitive.name)
            if primitive is None:
                self.refuse(eqn, "minijax has no primitive of this name")
            self.primitives[eqn.primitive.name] = eqn.primitive
            params = {k: self.value(eqn, k, v) for k, v in eqn.params.items()}
            place = SourceInfo(eqn.source_info.traceback, NameStack())
            outs = [self.new(var, env) for var in eqn.outvars]
            eqns.append(JaxprEqn(inputs, outs, primitive, params, frozenset(), place))

    def lose_rule(self, name: str) -> None:
        said = (
            f"The backward rule of {name} (custom_vjp) is a Python function, which the "
            "jaxpr names and does not hold: minijax differentiates the function itself."
        )
        if said not in self.lost:
            self.lost.append(said)

    def refuse(self, eqn: Any, why: str) -> NoReturn:
        raise TypeError(
            f"{self.who} cannot run the primitive {eqn.primitive.name!r} of this jaxpr "
            f"of JAX: {why}. see.jaxpr shows the program as it is."
        )

    def aval(self, given: Any) -> Any:
        """A type as minijax's; TypeError for one that minijax does not have."""
        kind: Any = getattr(given, "dtype", None)
        if type(kind).__name__ == "KeyTy":
            return keys_aval(given.shape, prngs[kind._impl.name])
        own = foreign.aval(given)
        if isinstance(own, foreign.ForeignType):
            raise TypeError(
                f"{self.who} cannot run this jaxpr of JAX: minijax has no type like "
                f"{own.text}. see.jaxpr shows the program as it is."
            )
        return own

    def value(self, eqn: Any, name: str, value: Any) -> Any:
        """A parameter, in minijax's classes."""
        kind = type(value).__name__
        if foreign.is_jaxpr(value):
            whole = kind == "ClosedJaxpr"
            return self.closed(value) if whole else self.jaxpr(value)
        if isinstance(value, (tuple, list)) and any(map(foreign.is_jaxpr, value)):
            return tuple(self.value(eqn, name, item) for item in value)
        if name == "policy" and value is not None:
            return self.policy(value)
        if name == "jvp_jaxpr_fun":
            return self.jvp(eqn, value)
        if kind in _COPIED:
            made = _COPIED[kind]
            return made(**{f: getattr(value, f) for f in made._fields})
        if kind in _ENUMS:
            return _ENUMS[kind][value.name]
        named = (*_ENUMS, "UnspecifiedValue")
        if isinstance(value, tuple) and any(type(v).__name__ in named for v in value):
            return tuple(self.value(eqn, name, part) for part in value)
        if kind == "PRNGImpl":
            return prngs[value.name]
        if kind == "Mesh" and not value.axis_names:
            return None
        if foreign.is_of_jax(value) and not isinstance(value, tuple):
            if kind == "UnspecifiedValue":
                return UNSPECIFIED
            self.refuse(eqn, f"its parameter {name} is a {kind} of JAX")
        return value

    def policy(self, policy: Callable[..., Any]) -> Callable[..., Any]:
        """A policy of JAX: it is asked about JAX's own primitives."""

        def asked(primitive: Any, *avals: Any, **params: Any) -> Any:
            theirs = self.primitives.get(primitive.name, primitive)
            answer = policy(theirs, *avals, **params)
            kind = type(answer).__name__
            if kind == "Offloadable":
                return Offloadable(src=answer.src, dst=answer.dst)
            if kind in ("SaveableType", "RecomputeType"):
                return kind == "SaveableType"
            return answer

        asked.__name__ = getattr(policy, "__name__", "policy")
        return asked

    def jvp(self, eqn: Any, rule: Any) -> Callable[..., list[Any]]:
        """The rule of a `custom_jvp` call, which JAX traces to a jaxpr when asked."""

        def own(*values: Any) -> list[Any]:
            half = len(values) // 2
            jaxpr, consts, zeros = rule.call_wrapped(*[False] * half)
            closed = self.closed_of(jaxpr, consts)
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *values)
            results, tangents = outs[: len(zeros)], iter(outs[len(zeros) :])
            avals = closed.out_avals
            return [
                *results,
                *(
                    instantiate(zeros_of(aval)) if zero else next(tangents)
                    for zero, aval in zip(zeros, avals)
                ),
            ]

        own.__name__ = "jvp"
        return own


# Classes of names: the same names in both libraries.
_ENUMS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        GatherScatterMode,
        RoundingMethod,
        Precision,
        DotAlgorithmPreset,
        AccuracyMode,
        RandomAlgorithm,
    )
}
_COPIED: dict[str, Any] = {
    "GatherDimensionNumbers": GatherDimensionNumbers,
    "ScatterDimensionNumbers": ScatterDimensionNumbers,
    "ConvDimensionNumbers": ConvDimensionNumbers,
}
