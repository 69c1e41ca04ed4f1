"""What the backward pass keeps of the forward pass, and why.

    kept = residuals(loss, params, x)
    kept.bytes                      # of what is kept beside the arguments
    for value in kept.residuals:
        print(value.name, value.type, value.bytes, value.reasons)

The facts come from minijax's own linearization. The function is traced, and its
equations are bound one after another under a `LinearizeTrace`, as `eval_jaxpr` does it
for `grad`; between two of them it is noted what was written. So each equation of the
function has the equations that the forward pass runs for it and the linear equations
that the backward pass transposes. The constants of the linear program are the
residuals. `backward.py` goes on from here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.core import dtypes, errors, source_info
from minijax.core.autodiff import LinearizeTrace, instantiate_wanted
from minijax.core.avals import get_aval, shaped_abstractify
from minijax.core.jit import JitFunction, jit_p
from minijax.core.language import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Tracer,
    Var,
    eval_jaxpr,
    set_current_trace,
)
from minijax.core.partial_eval import DynamicJaxprTrace, trace_to_jaxpr
from minijax.core.rules import Zero
from minijax.core.signatures import CallSignature, lazy_debug_info
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.support import special_errors
from minijax_lab.explain.foreign_programs import told_of_jax
from minijax_lab.explain.recording import Sources, Span, span_text

# What the transpose of a linear operation needs besides the cotangent.
NEEDS = {
    "mul": "its other factor",
    "div": "the divisor",
    "dot_general": "its other operand",
    "conv_general_dilated": "its other operand",
    "select_n": "which case was chosen",
    "gather": "the indices",
    "scatter": "the indices",
    "scatter-add": "the indices",
    "dynamic_slice": "where the slice begins",
    "dynamic_update_slice": "where the slice begins",
    "checkpoint": "it to run the checkpointed function again",
    "remat2": "it to run the checkpointed function again",
    "custom_lin": "it: a residual that the user's fwd returned",
    "triangular_solve": "the matrix",
    "scan": "it at each turn",
    "while": "it at each turn",
    "pad": "the padding",
}


# ---- plain facts ---------------------------------------------------------------------


@dataclass
class Residual:
    """A value that the forward pass keeps for the backward pass.

    `origin` is "value" (an equation made it), "argument" or "constant" (an array that
    the function closes over); in a program inside of another it is also "outside" (an
    input that is there anyway), "copy" (an input that a branch returns) or "carry" (of
    a loop). `row` is the equation of the function that it was made for, `readers` are
    those whose transposes read it; `reasons` has a sentence for each use.
    """

    id: int
    name: str
    type: str
    shape: list[int]
    dtype: str
    bytes: int
    origin: str
    position: int | None  # of an argument: which input of the program it is
    row: int | None
    made_by: str  # the equation, as text; "" for arguments and constants
    argument: str  # the name of the argument, with the path to the leaf
    span: Span | None
    source: str  # the user's expression
    readers: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


@dataclass
class Residuals:
    """All residuals of a function at given types."""

    residuals: list[Residual]
    literals: int  # numbers written into the linear program; they take no memory

    @property
    def bytes(self) -> int:
        """The bytes of what is kept beside the arguments, which exist anyway."""
        return sum(r.bytes for r in self.residuals if r.origin != "argument")

    @property
    def argument_bytes(self) -> int:
        """The bytes of the arguments that the backward pass reads."""
        return sum(r.bytes for r in self.residuals if r.origin == "argument")


def residuals(
    function: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    **kwargs: Any,
) -> Residuals:
    """What the backward pass of `function` keeps, as `vjp` would at these arguments.

    `argnums` says which arguments are differentiated, by default all. Arguments may be
    `ShapeDtypeStruct`s: nothing is computed. Raises TypeError for arguments that cannot
    be differentiated, and what tracing raises.
    """
    call = Call(function, args, kwargs, argnums, has_aux, "residuals")
    linearized = Linearized(call.closed, call.differentiated)
    facts = Facts(linearized, call.names, Sources())
    return Residuals(facts.residuals, facts.literals)


# ---- the call ------------------------------------------------------------------------


class Call:
    """A function with its arguments, traced: `closed` is its program.

    Inputs of the program are the leaves that are differentiated, and the arrays among
    the others; numbers, texts and the like stay what they are, as under `grad`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple,
        kwargs: dict[str, Any],
        argnums: int | Sequence[int] | None,
        has_aux: bool,
        who: str,
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"{who} takes a function and its arguments, and got "
                f"{type(function).__name__} first."
            )
        self.who = who
        self.function = function
        signature = CallSignature(function)
        self.positions = self.positions_of(argnums, args)
        leaves, tree = tree_flatten((args, kwargs))
        names = getattr(function, "input_names", None)
        if names is None or kwargs or len(names) != len(leaves):
            names = signature.leaf_names(signature.bind(args, kwargs))
        wanted = [
            flag
            for position, arg in enumerate(args)
            for flag in [position in self.positions] * len(tree_flatten(arg)[0])
        ]
        wanted += [False] * (len(leaves) - len(wanted))
        places = []
        for place, (leaf, name, flag) in enumerate(zip(leaves, names, wanted)):
            if flag:
                self.check_differentiable(leaf, name)
            if flag or is_array(leaf):
                places.append(place)
        self.places = places
        self.names = [names[place] for place in places]
        self.differentiated = [wanted[place] for place in places]
        self.leaves = [leaves[place] for place in places]
        self.avals = [type_of(leaf) for leaf in self.leaves]
        self.out_tree: Any = None
        self.jitted = isinstance(function, JitFunction)

        def flat(*traced: Any) -> list[Any]:
            full = list(leaves)
            for place, value in zip(places, traced):
                full[place] = value
            own_args, own_kwargs = tree_unflatten(tree, full)
            answer = function(*own_args, **own_kwargs)
            if has_aux:
                if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                    raise TypeError(
                        f"{who} got has_aux=True, so the function must return a pair "
                        f"(value, aux), and it returned {type(answer).__name__}."
                    )
                answer = answer[0]
            outputs, self.out_tree = tree_flatten(answer)
            return outputs

        info = lazy_debug_info(function, tree, "grad")
        try:
            traced = trace_to_jaxpr(flat, self.avals, info)
        except (
            errors.ConcretizationTypeError,
            errors.TracerArrayConversionError,
            special_errors.TracerIntegerConversionError,
        ) as error:
            error.add_note(
                f"{who} traces the function, as jit does: no array has a value then. "
                "grad alone runs a function with values, and Python may decide by "
                "them; wrap what depends on such a value, or use jnp.where."
            )
            raise
        except TypeError as error:
            told = told_of_jax(function, who, error)
            if told is None:
                raise
            raise told from None
        self.closed = opened(ClosedJaxpr(*traced))

    def positions_of(
        self, argnums: int | Sequence[int] | None, args: tuple
    ) -> tuple[int, ...]:
        """The positions of the arguments to differentiate."""
        if argnums is None:
            return tuple(range(len(args)))
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for number in numbers:
            if not isinstance(number, int) or not -len(args) <= number < len(args):
                raise TypeError(
                    f"{self.who} got argnums={argnums}, and {len(args)} positional "
                    "arguments: argnums counts them from 0; keyword arguments are not "
                    "differentiated."
                )
        found = tuple(number % len(args) for number in numbers)
        if not found or len(set(found)) < len(found):
            raise TypeError(
                f"{self.who} got argnums={argnums}: name at least one argument, and "
                "none twice."
            )
        return found

    def check_differentiable(self, leaf: Any, name: str) -> None:
        """TypeError, naming the argument, unless it is an array of floats."""
        try:
            aval = type_of(leaf)
        except TypeError:
            raise TypeError(
                f"{self.who} differentiates with respect to {name}, which is "
                f"{type(leaf).__name__} and not an array: choose other arguments with "
                "argnums."
            ) from None
        if not isinstance(aval, ShapedArray) or not dtypes.issubdtype(
            aval.dtype, np.inexact
        ):
            kind = aval.str_short(short_dtypes=True)
            raise TypeError(
                f"{self.who} differentiates with respect to {name}, which is {kind}; "
                "derivatives exist for floats: pass 2.0 instead of 2, write "
                f"{name}.astype(float), or choose other arguments with argnums."
            )


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array, or stands for one; numbers are not."""
    if isinstance(leaf, np.generic):
        return False
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def type_of(leaf: Any) -> Any:
    """The type of an array, a number or a `ShapeDtypeStruct`."""
    if isinstance(leaf, Tracer):
        return leaf.aval
    try:
        return get_aval(leaf)
    except TypeError:
        return shaped_abstractify(leaf)


def opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of a jitted function itself, where it is only called."""
    while len(closed.eqns) == 1 and closed.eqns[0].primitive is jit_p:
        (eqn,) = closed.eqns
        inner = eqn.params["jaxpr"]
        outvars = closed.jaxpr.outvars
        if outvars != list(eqn.outvars) or closed.consts:
            break

        def call(*args: Any, eqn: JaxprEqn = eqn, outer: Any = closed) -> list[Any]:
            env = dict(zip(outer.jaxpr.invars, args))
            values = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            inner = eqn.params["jaxpr"]
            return eval_jaxpr(inner.jaxpr, inner.consts, *values)

        closed = ClosedJaxpr(*trace_to_jaxpr(call, closed.in_avals, inner.debug_info))
    return closed


# ---- linearization, equation by equation ---------------------------------------------


@dataclass
class Part:
    """What linearizing one equation of the function wrote."""

    eqn: JaxprEqn
    forward: list[JaxprEqn]
    linear: list[JaxprEqn]
    main: list[JaxprEqn] = field(default_factory=list)  # of `forward`, for the results

    @property
    def extra(self) -> list[JaxprEqn]:
        """Of the forward equations, those that only the derivative needs."""
        main = set(map(id, self.main))
        return [eqn for eqn in self.forward if id(eqn) not in main]


class Linearized:
    """A program linearized, with what each of its equations became.

    `nonzeros` says which inputs are differentiated. With `wanted`, the tangents of
    those outputs are there even where they are zero.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        nonzeros: Sequence[bool],
        wanted: Sequence[bool] = (),
    ) -> None:
        self.closed = closed
        self.parts: list[Part] = []
        self.atoms: dict[Var, Atom] = {}  # of the forward pass, by variable of `closed`
        self.tangents: dict[Var, Var] = {}  # linear variables, by variable of `closed`
        forward = self.forward = DynamicJaxprTrace(closed.debug_info)
        linear = DynamicJaxprTrace(closed.debug_info, dead_code=True)
        trace = LinearizeTrace(forward, linear)
        env: dict[Var, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))
        for var, nonzero in zip(closed.jaxpr.invars, nonzeros, strict=True):
            primal = forward.new_arg(var.aval)
            aval = var.aval.to_tangent_aval()
            tangent: Any = Zero(aval)
            argument = linear.new_arg(aval)
            if nonzero and not dtypes.is_float0(getattr(aval, "dtype", None)):
                tangent = argument
            env[var] = trace.tracer(primal, tangent)
            self.note(var, trace.to_pair(env[var]))
        for var, value in zip(closed.jaxpr.constvars, closed.consts):
            self.atoms[var] = forward.to_atom(value)
        outer = source_info.current_name_stack()
        for eqn in closed.eqns:
            starts = len(forward.eqns), len(linear.eqns)
            inputs = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            with set_current_trace(trace):
                with source_info.user_context(eqn.source_info, outer=outer):
                    results = eqn.primitive.rebind(inputs, eqn.params)
            results = results if eqn.primitive.multiple_results else [results]
            env.update(zip(eqn.outvars, results))
            for var, value in zip(eqn.outvars, results):
                self.note(var, trace.to_pair(value))
            part = Part(eqn, forward.eqns[starts[0] :], linear.eqns[starts[1] :])
            self.parts.append(part)
        outputs = [
            v.val if type(v) is Literal else env[v] for v in closed.jaxpr.outvars
        ]
        pairs = [trace.to_pair(value) for value in outputs]
        self.outputs = [forward.to_atom(primal) for primal, _ in pairs]
        with set_current_trace(linear):
            tangents = instantiate_wanted([tangent for _, tangent in pairs], wanted)
        self.nonzeros = [type(tangent) is not Zero for tangent in tangents]
        self.jaxpr, values = linear.finish(
            [tangent for tangent in tangents if type(tangent) is not Zero]
        )
        self.residuals = [forward.to_atom(value) for value in values]
        trace.alive = forward.alive = linear.alive = False
        self.inputs: list[Var] = list(forward.invars)
        self.constants: dict[Var, Any] = forward.constants.values()
        self.find_main()
        self.find_living()

    def note(self, var: Var, pair: tuple[Any, Any]) -> None:
        """Notes what a variable of the program is in the two programs."""
        primal, tangent = pair
        self.atoms[var] = self.forward.to_atom(primal)
        if type(tangent) is not Zero:
            atom = getattr(tangent, "atom", None)
            if isinstance(atom, Var):
                self.tangents.setdefault(var, atom)

    def find_main(self) -> None:
        """Tells the equations that a result needs from those for the derivative."""
        for part in self.parts:
            needed: set[Any] = {self.atoms.get(var) for var in part.eqn.outvars}
            for eqn in reversed(part.forward):
                if eqn.effects or not needed.isdisjoint(eqn.outvars):
                    part.main.append(eqn)
                    needed.update(v for v in eqn.invars if isinstance(v, Var))
            part.main.reverse()

    def find_living(self) -> None:
        """Keeps of the linear equations those that are left in the linear program."""
        place: dict[Var, int] = {}
        for number, part in enumerate(self.parts):
            place.update((v, number) for eqn in part.linear for v in eqn.outvars)
            part.linear = []
        # Where each living equation belongs, in the order of the linear program. One
        # that dead-code elimination made smaller keeps some of its variables.
        self.places: list[int | None] = []
        for eqn in self.jaxpr.eqns:
            numbers = [place[v] for v in eqn.outvars if v in place]
            self.places.append(numbers[0] if numbers else None)
            if numbers:
                self.parts[numbers[0]].linear.append(eqn)

    @property
    def forward_eqns(self) -> list[JaxprEqn]:
        """All equations of the forward pass."""
        return self.forward.eqns


# ---- names, and the facts about residuals --------------------------------------------


class Facts:
    """Names for the variables of a linearized program, and its residuals as facts."""

    def __init__(
        self,
        linearized: Linearized,
        input_names: Sequence[str],
        sources: Sources,
        letters: Iterator[str] | None = None,
    ) -> None:
        self.linearized = linearized
        self.sources = sources
        self.names: dict[Var, str] = {}
        if letters is None:
            taken = set(input_names)
            letters = (name for name in letter_names() if name not in taken)
        self.letters = letters
        for var, name in zip(linearized.inputs, input_names):
            self.names[var] = name
        for var in linearized.constants:
            self.names[var] = next(letters)
        self.row_of: dict[Var, int] = {}
        self.maker: dict[Var, JaxprEqn] = {}
        for number, part in enumerate(linearized.parts):
            for eqn in part.forward:
                for var in eqn.outvars:
                    self.row_of[var] = number
                    self.maker[var] = eqn
                    if not isinstance(var, DropVar):
                        self.names[var] = next(letters)
        self.read = {v for e in linearized.forward_eqns for v in e.invars}
        self.read.update(linearized.outputs, linearized.residuals)
        # The places of the residuals among the constants of the linear program.
        self.by_atom: dict[Any, Residual] = {}
        self.residuals: list[Residual] = []
        pairs = zip(linearized.jaxpr.constvars, linearized.residuals)
        self.of_constvar: dict[Var, Residual] = {}
        for constvar, atom in pairs:
            if isinstance(atom, Literal):
                continue
            residual = self.by_atom.get(atom)
            if residual is None:
                residual = self.by_atom[atom] = self.fact(atom)
                self.residuals.append(residual)
            self.of_constvar[constvar] = residual
        self.add_reasons()
        self.literals = len(
            {
                id(atom.val)
                for eqn in linearized.jaxpr.eqns
                for atom in eqn.invars
                if isinstance(atom, Literal)
            }
        )

    def fact(self, atom: Var) -> Residual:
        """What is known of one residual."""
        aval = atom.aval
        maker = self.maker.get(atom)
        row = self.row_of.get(atom)
        inputs = self.linearized.inputs
        origin = "value" if maker is not None else "constant"
        if atom in inputs:
            origin = "argument"
        span = self.sources.of_operation(maker.source_info) if maker else None
        return Residual(
            id=len(self.residuals),
            name=self.names[atom],
            type=aval.str_short(short_dtypes=True),
            shape=list(getattr(aval, "shape", ())),
            dtype=str(getattr(aval, "dtype", "")),
            bytes=bytes_of(aval),
            origin=origin,
            position=inputs.index(atom) if origin == "argument" else None,
            row=row,
            made_by=self.text(maker) if maker is not None else "",
            argument=self.names[atom] if origin == "argument" else "",
            span=span,
            source=span_text(self.sources.found, span),
        )

    def add_reasons(self) -> None:
        """Says of each residual which transposes read it, and as what."""
        places = self.linearized.places
        for eqn, place in zip(self.linearized.jaxpr.eqns, places):
            for position, atom in enumerate(eqn.invars):
                residual = self.of_constvar.get(atom)  # type: ignore[arg-type]
                if residual is None:
                    continue
                reason = why_needed(eqn, position)
                if place is not None:
                    part = self.linearized.parts[place]
                    reason = f"{self.result(part)}: {reason}"
                    if place not in residual.readers:
                        residual.readers.append(place)
                if reason not in residual.reasons:
                    residual.reasons.append(reason)

    def name(self, atom: Atom) -> str:
        """The name of a variable of the forward pass; a literal's number."""
        if isinstance(atom, Literal):
            return literal_text(atom.val)
        return self.names.get(atom, "_")

    def text(self, eqn: JaxprEqn) -> str:
        """An equation of the forward pass as `c = cos x`."""
        return equation_text(
            eqn,
            [self.name(v) if v in self.read else "_" for v in eqn.outvars],
            [self.name(v) for v in eqn.invars],
        )

    def result(self, part: Part) -> str:
        """An equation of the function, as the forward pass runs it: `b = sin x`."""
        names = [self.name(self.linearized.atoms[var]) for var in part.eqn.outvars]
        inputs = [
            literal_text(atom.val)
            if isinstance(atom, Literal)
            else self.name(self.linearized.atoms[atom])
            for atom in part.eqn.invars
        ]
        return equation_text(part.eqn, names, inputs)


def equation_text(
    eqn: JaxprEqn, results: Sequence[str], operands: Sequence[str]
) -> str:
    """`b = sin x`; calls and loops with what they call."""
    shown = [name for name in results if name != "_"] or ["_"]
    left = ", ".join(shown if len(shown) <= 3 else [*shown[:2], "..."])
    right = list(operands) if len(operands) <= 4 else [*operands[:3], "..."]
    return f"{left} = {operation(eqn)} {' '.join(right)}".rstrip()


def shown_name(primitive: str) -> str:
    """A primitive's name as programs print it."""
    return "checkpoint" if primitive == "remat2" else primitive


def operation(eqn: JaxprEqn) -> str:
    """The name of an operation, with what tells one call from another."""
    name = eqn.primitive.name
    params = eqn.params
    if name == "jit":
        return f"jit {params['name']}"
    if name == "scan":
        return f"scan[{params['length']}]"
    if name == "custom_vjp_call" or name == "custom_jvp_call":
        called = getattr(params.get("call_jaxpr"), "debug_info", None)
        return f"{name.removesuffix('_call')} {called.func_name}" if called else name
    if name == "integer_pow":
        return f"integer_pow[{params['y']}]"
    if name == "name":
        return f"name {params['name']!r}"
    return shown_name(name)


def literal_text(value: Any) -> str:
    """A number in a program, short."""
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}" if np.isfinite(value) else str(value)
    return str(value)


def why_needed(eqn: JaxprEqn, position: int) -> str:
    """Why the transpose of a linear equation needs its input at a position."""
    name = eqn.primitive.name
    if name == "jit":
        inner = eqn.params["jaxpr"].jaxpr
        reason = reason_inside(inner, position)
        return f"in jit {eqn.params['name']}, {reason}" if reason else "jit reads it"
    if name == "cond":
        if position == 0:
            return "cond's transpose needs to know which branch ran"
        inner = [branch.jaxpr for branch in eqn.params["branches"]]
        reasons = [reason_inside(branch, position - 1) for branch in inner]
        reason = next((reason for reason in reasons if reason), "")
        return f"in a branch, {reason}" if reason else "a branch of cond reads it"
    if name == "scan":
        reason = reason_inside(eqn.params["jaxpr"].jaxpr, position)
        return f"at each turn of scan, {reason}" if reason else "scan reads it"
    if name == "custom_lin":
        return "the user's bwd takes it: fwd returned it as a residual"
    need = NEEDS.get(name)
    if name == "select_n" and position:
        need = "the other case"
    if need is None:
        return f"{name}'s transpose reads it"
    return f"{shown_name(name)}'s transpose needs {need}"


def reason_inside(jaxpr: Jaxpr, position: int) -> str:
    """Why a linear program needs its input at a position; "" if nothing reads it."""
    if position >= len(jaxpr.invars):
        return ""
    var = jaxpr.invars[position]
    for eqn in jaxpr.eqns:
        for place, atom in enumerate(eqn.invars):
            if atom is var:
                return why_needed(eqn, place)
    return ""


def bytes_of(aval: Any) -> int:
    """The bytes of an array of a type; 0 if it is not an array's."""
    if not isinstance(aval, ShapedArray):
        return 0
    itemsize = getattr(aval.dtype, "itemsize", 0)
    return int(np.prod(aval.shape, dtype=np.int64)) * itemsize


def letter_names() -> Iterator[str]:
    """a, b, ..., z, aa, ab, ..."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for length in itertools.count(1):
        for name in itertools.product(letters, repeat=length):
            yield "".join(name)
