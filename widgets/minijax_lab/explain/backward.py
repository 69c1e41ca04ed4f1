"""The recording behind `see.grad`: the forward pass, what it keeps, the way back.

`residuals.py` linearizes the function equation by equation. Here the linear program is
transposed, also one equation at a time and in the order of minijax's `backward_pass`,
with the same rules. Between two equations it is noted what was written and which sums
of cotangents grew. So each row of the recording is an equation of the function with
all that it becomes: what runs forward, what is kept for it, what runs backward.

Loops, branches and calls have rows of their own inside (`GradProgram`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.language import Atom, JaxprEqn, Literal, ShapedArray
from minijax_lab.explain.backward_rows import (
    GradProgram,
    GradSum,
    Program,
    Transposed,
    formula,
)
from minijax_lab.explain.calls import variables_of
from minijax_lab.explain.foreign_programs import ForeignProgram, taken
from minijax_lab.explain.leaf_values import rows_or_means
from minijax_lab.explain.recording import (
    Recording,
    Sources,
    count_in_words,
    later,
    signature,
)
from minijax_lab.explain.residuals import (
    Call,
    Facts,
    Linearized,
    is_array,
    letter_names,
)
from minijax_lab.explain.small_values import (
    Unasked,
    Values,
    cheap_inputs,
    check_choice,
    compute,
    read,
    unread,
    why_not,
)


@dataclass
class NotFinite:
    """The first value that is not finite: what it is, and where it was found."""

    what: str  # "NaN" or "infinity"
    place: str  # "argument", "forward" or "backward"
    row: int | None
    text: str
    count: int
    size: int
    # The equation that made it, nothing of an argument: its primitive, and the names of
    # the values that it reads and makes.
    primitive: str = ""
    reads: list[str] = field(default_factory=list)
    makes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class GradRecording(Recording):
    """`grad` of a function at some arguments."""

    kind = "grad"

    name: str
    program: GradProgram
    bytes: int  # kept beside the arguments
    argument_bytes: int
    result: str  # the value, with `values=True`
    first: list[NotFinite]  # the first NaN and the first infinity
    ran: bool  # with `values=True`
    beside: GradRecording | None = None  # another function, for comparison
    # What arrays hold, by their names.
    values: dict[str, Values] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # of what has values
    no_values: str = field(default_factory=str)  # what running it unasked raised
    # Why it was not run unasked, where that has to be said.
    unasked: str = field(default_factory=str)
    # Facts that a jaxpr of JAX does not carry, a sentence each.
    lost: list[str] = field(default_factory=list)


# ---- recording -----------------------------------------------------------------------


def record_grad(
    function: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    values: bool | None = None,
    **kwargs: Any,
) -> GradRecording:
    """Records `grad(function, argnums, has_aux)` at the given arguments.

    With `values=True` both passes are run, and the first NaN and the first infinity are
    noted. None: the values of a program that is soon run are kept. The function
    may be a jaxpr of JAX, at its own types where no arguments follow. Raises TypeError
    for what has no gradient, and what tracing raises.
    """
    check_choice(values, "see.grad", args, kwargs)
    function, args = taken(function, args, "see.grad")
    if isinstance(function, ForeignProgram):
        args = args or tuple(function.types)
        # The value comes first, and what is returned beside it behind.
        function.first_only, has_aux = has_aux, False
    call = Call(function, args, kwargs, argnums, has_aux, "see.grad")
    if values:
        check_values(call)
    check_scalar(call)
    linearized = Linearized(call.closed, call.differentiated)
    transposed = Transposed(linearized)
    given = cheap_inputs(call.leaves) if values is None else None
    why = ""
    if given is not None:
        names, known = [*linearized.constants], [*linearized.constants.values()]
        read = cheap_inputs(known)
        linearized.constants = dict(zip(names, read))
        why = unread([*call.leaves, *known], [*given, *read])

    def finish() -> GradRecording:
        return recorded(call, linearized, transposed, bool(values), given, why)

    return finish() if values else later(GradRecording, finish)


def recorded(
    call: Call,
    linearized: Linearized,
    transposed: Transposed,
    values: bool,
    given: list[np.ndarray | None] | None,
    why: str,
) -> GradRecording:
    """The recording, with the texts and names that only who looks at it needs, and with
    what arrays hold for the arguments given; `why` says of others that they are not."""
    sources = Sources()
    letters = letters_without([*call.names, *variables_of(call.function)])
    facts = Facts(linearized, call.names, sources, letters)
    told = Program(facts, transposed)
    program = told.facts("", "", 1, call.differentiated)
    recording = GradRecording(
        call="",
        headline="",
        sources=sources.found,
        name=call.closed.debug_info.func_name,
        program=program,
        bytes=sum(r.bytes for r in program.residuals if r.origin != "argument"),
        argument_bytes=sum(
            r.bytes for r in program.residuals if r.origin == "argument"
        ),
        result="",
        first=[],
        ran=values,
        lost=list(getattr(call.function, "lost", [])),
    )
    if recording.name == "<lambda>":
        recording.name = "lambda"
    if values:
        run(recording, call.leaves, told, None)
    elif given is not None:
        recording.no_values = why_not(partial(run_unasked, recording, given, told, why))
    types = [aval.str_short(short_dtypes=True) for aval in call.avals]
    recording.call = f"grad({recording.name})({signature(types)})"
    recording.headline = (
        f"grad of {recording.name}({signature(types)}): {finding(recording)}"
    )
    return recording


def letters_without(names: Sequence[str]) -> Iterator[str]:
    """Names for values that no argument has."""
    taken = {*names, "ct"}
    return (name for name in letter_names() if name not in taken)


def check_scalar(call: Call) -> None:
    """TypeError unless the function returns one real number."""
    avals = call.closed.out_avals
    name = call.closed.debug_info.func_name
    name = "the function" if name == "<lambda>" else name
    if len(avals) != 1:
        raise TypeError(
            f"see.grad needs a function with one number as its result, and {name} "
            f"returns {count_in_words(len(avals), 'array')}: return their sum, or "
            "return `value, aux` and pass has_aux=True."
        )
    aval = avals[0]
    kind = aval.str_short(short_dtypes=True)
    if not isinstance(aval, ShapedArray) or aval.shape != ():
        raise TypeError(
            f"see.grad needs a function with one number as its result, and {name} "
            f"returns {kind}: a gradient is of a scalar. Reduce it, with .sum() or "
            ".mean()."
        )
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        raise TypeError(
            f"see.grad needs a real result, and {name} returns {kind}: return its "
            "real part, or the square of its absolute value."
        )
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise TypeError(
            f"see.grad needs a result of floats, and {name} returns {kind}, which has "
            "no derivative: convert it with .astype(float) before a smooth function."
        )


def check_values(call: Call) -> None:
    """TypeError, naming the argument, unless all arguments have values."""
    for leaf, name in zip(call.leaves, call.names):
        concrete = isinstance(
            leaf, (Array, np.ndarray, np.generic, int, float, complex)
        )
        if not concrete and not (is_array(leaf) and hasattr(leaf, "__array__")):
            raise TypeError(
                f"see.grad got values=True, which runs the function, and the argument "
                f"{name} is {type(leaf).__name__}, a type without a value: pass an "
                "array, or leave out values=True."
            )


def finding(recording: GradRecording) -> str:
    """The headline's sentence: what runs, what is kept, what meets."""
    program = recording.program
    parts = [f"{program.forward:,} forward"]
    if program.extra:
        parts.append(f"{program.extra:,} more for the derivative")
    parts.append(f"{program.backward:,} backward")
    text = f"{', '.join(parts)}; keeps {bytes_in_words(recording.bytes)}"
    if recording.argument_bytes:
        arguments = [r.name for r in program.residuals if r.origin == "argument"]
        some = arguments[0] if len(arguments) == 1 else f"{len(arguments)} arguments"
        text += f" beside {some} ({bytes_in_words(recording.argument_bytes)})"
    if program.again:
        text += f"; {count_in_words(program.again, 'equation')} run again"
    for bad in recording.first[:1]:
        return f"{text}; the first {bad.what} is in {where_in_words(bad)}"
    zeros = [argument.name for argument in program.arguments if argument.zero]
    if zeros:
        some = zeros[0] if len(zeros) == 1 else f"{zeros[0]} and {len(zeros) - 1} more"
        text += f"; {some} is not used, its gradient is zero"
        return text
    if program.sums:
        own = [found for found in program.sums if not found.within]
        if not own:
            rules = ", ".join(dict.fromkeys(found.within for found in program.sums))
            count = count_in_words(len(program.sums), "sum")
            return f"{text}; {count} of cotangents, inside of rules: {rules}"
        text += f"; {sum_in_words(own[0])}"
        if len(own) > 1:
            text += f", one of {len(own):,} such sums"
    return text


def sum_in_words(found: GradSum) -> str:
    """Why cotangents add: "x is used twice, so two cotangents add"."""
    count = len(found.rows)
    number = {2: "two", 3: "three"}.get(count, f"{count:,}")
    times = {2: "twice", 3: "three times"}.get(count, f"{count:,} times")
    return f"{found.name} is used {times}, so {number} cotangents add"


def where_in_words(bad: NotFinite) -> str:
    """Where something not finite was found."""
    if bad.place == "argument":
        return f"the argument {bad.text}, before the first equation"
    return f"the {bad.place} pass: {bad.text}"


def bytes_in_words(count: int) -> str:
    """For example "8 B", "517 KiB", "1.5 MiB"."""
    if count < 1024:
        return f"{count} B"
    units = ["KiB", "MiB", "GiB", "TiB"]
    size = count / 1024
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}" if size < 1000 else f"{size:.0f} {units[0]}"


# ---- running -------------------------------------------------------------------------


def known_before(told: Program, given: Sequence[Any]) -> dict[Any, Any]:
    """The values of variables before the forward pass; None of those not read."""
    linearized = told.linearized
    known = dict(zip(linearized.inputs, given)) | linearized.constants
    return {var: value for var, value in known.items() if value is not None}


def run_unasked(
    recording: GradRecording, given: Sequence[Any], told: Program, why: str
) -> None:
    """Runs what costs little of both passes, and says why the rest does not run."""
    linearized, transposed = told.linearized, told.transposed
    before = known_before(told, given)
    if not before:
        return
    unasked = Unasked(before, why)
    chosen = unasked.chosen(linearized.forward_eqns)
    pairs = transposed.inputs
    unasked.known |= {var for var, atom in pairs if is_known(atom, unasked.known)}
    chosen |= unasked.chosen(transposed.eqns)
    recording.unasked = unasked.why
    run(recording, given, told, chosen)


def is_known(atom: Atom, known: Container[Any]) -> bool:
    """Whether an atom has a value."""
    return isinstance(atom, Literal) or atom in known


def run(
    recording: GradRecording,
    given: Sequence[Any],
    told: Program,
    chosen: set[int] | None,
) -> None:
    """Runs both passes equation by equation, and keeps what arrays hold.

    `chosen` are the ids of the equations to run. None runs all of them, by XLA, and
    notes what is not finite.
    """
    facts, linearized, transposed = told.known, told.linearized, told.transposed
    by_xla = chosen is None
    known = known_before(told, given)
    first: dict[str, NotFinite] = {}

    def runs(eqn: JaxprEqn) -> bool:
        return chosen is None or id(eqn) in chosen

    def look(
        value: Any,
        place: str,
        row: int | None,
        text: Callable[[], str],
        name: Callable[[Atom], str] = str,
        eqn: JaxprEqn | None = None,
    ) -> None:
        for what, count, size in not_finite(value) if by_xla else ():
            if what in first:
                continue
            first[what] = NotFinite(what, place, row, text(), count, size)
            if eqn is not None:
                first[what].primitive = eqn.primitive.name
                first[what].reads = [
                    name(v) for v in eqn.invars if type(v) is not Literal
                ]
                first[what].makes = [name(var) for var in eqn.outvars]

    for var, leaf in zip(linearized.inputs, given):
        look(leaf, "argument", None, partial(facts.name, var))
    for number, part in enumerate(linearized.parts):
        for eqn in filter(runs, part.forward):
            for value in compute(eqn, known, by_xla):
                text = partial(facts.text, eqn)
                look(value, "forward", number, text, facts.name, eqn)
    found = {name: known[var] for var, name in facts.names.items() if var in known}
    names = facts.names.items()
    found |= {f"ct_{name}": 1.0 for v, name in names if v is linearized.outputs[0]}
    known.update((var, known[atom]) for var, atom in transposed.inputs if atom in known)
    for step in transposed.pulled:
        for eqn in filter(runs, step.written):

            def back_text(eqn: JaxprEqn = eqn) -> str:
                names = (
                    [told.back_name(v) for v in vs] for vs in (eqn.outvars, eqn.invars)
                )
                return formula(eqn, *names)

            for value in compute(eqn, known, by_xla):
                look(value, "backward", step.place, back_text, told.back_name, eqn)
        ends = [*step.parts, *((var, eqn.outvars[0]) for var, eqn in step.sums)]
        for var, atom in ends:
            if is_known(atom, known):
                found[f"ct_{told.linear_names[var]}"] = read(atom, known)
    if by_xla:
        result = np.asarray(read(linearized.outputs[0], known))
        recording.result = f"{float(result):.6g}"
    recording.first = list(first.values())
    for var, parts in told.parts.items():
        for number, (_, atom) in enumerate(parts if len(parts) > 1 else []):
            if not is_known(atom, known):
                continue
            found[part_of(f"ct_{told.linear_names[var]}", number)] = read(atom, known)
    recording.values = rows_or_means(found)
    recording.types = {
        name: get_aval(found[name]).str_short(short_dtypes=True)
        for name in recording.values
    }


def part_of(cotangent: str, number: int) -> str:
    """What one of the cotangents that add up to `cotangent` is called."""
    return f"{cotangent}, part {number + 1}"


def not_finite(value: Any) -> list[tuple[str, int, int]]:
    """("NaN", how many, of how many), and the same for infinities, of an array."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return []
    if array.dtype.kind not in "fcV" or array.dtype.names is not None:
        return []
    if array.dtype.kind == "V":
        return []
    found = []
    nans, infinities = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    if nans:
        found.append(("NaN", nans, array.size))
    if infinities:
        found.append(("infinity", infinities, array.size))
    return found
