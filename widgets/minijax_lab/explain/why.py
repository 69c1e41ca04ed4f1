"""The recording behind `see.why`: the story of an exception, or of an equation."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

from minijax import tree_util
from minijax.core import source_info
from minijax.core.language import JaxprEqn, Literal, Tracer, Var
from minijax.core.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer
from minijax.support import special_errors
from minijax_lab.explain import causes, culprits, leaks
from minijax_lab.explain.jaxpr import (
    JaxprRecording,
    leave_open,
    record_jaxpr,
    unfinished,
)
from minijax_lab.explain.recording import (
    Recording,
    Sources,
    Span,
    file_label,
    is_installed,
    span_text,
)
from minijax_lab.explain.repaired import Fault, repaired_line, static_line
from minijax_lab.explain.user_source import Source, places_of
from minijax_lab.explain.words import meaning

LAST_EQUATIONS = 10
TRACE_AGAIN = (
    "`see.jaxpr(f, x).why(3)` for its third equation: the view records causes while "
    "it traces."
)


DOT = re.compile(
    r"got lhs_contracting \(([\d, ]*)\) and lhs_batch \([\d, ]*\) of shape "
    r"\(([\d, ]*)\), rhs_contracting \(([\d, ]*)\) and rhs_batch \([\d, ]*\) of "
    r"shape \(([\d, ]*)\)"
)
BROADCAST = re.compile(r"ncompatible shapes for broadcasting: (.*?)\. ")
ABSOLUTE_PATH = re.compile(r"(?:[A-Za-z]:)?[/\\][\w./\\ -]*\.py")


@dataclass
class Moment:
    """A place in the story: where a tracer was born, where it was used."""

    label: str  # "born", "kept", "gives", "used"; of equations "line", "rule", ...
    span: Span | None
    text: str


@dataclass(kw_only=True)
class WhyRecording(Recording):
    """What went wrong or came to be, where, by which rule; what to write instead."""

    kind = "why"

    moments: list[Moment]
    message: str
    rule: str
    instead: str
    program: JaxprRecording | None  # the last equations before it happened
    hidden: int  # earlier equations that are not shown
    shapes: list[str] = field(default_factory=list)  # that clash, and signs below
    repaired: str = ""  # the line of the user's own code, as it may be traced
    repaired_at: int = 0  # its number, where it is another line than the telling one


def last_exception() -> BaseException | None:
    """The exception that is being handled, or the last one that Python showed."""
    shown = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return sys.exc_info()[1] or shown


def record_why(subject: Any = None) -> WhyRecording:
    """Records why an exception happened, or why an equation is where it is.

    Without a subject, the exception that is being handled, or the last one that Python
    showed. Raises TypeError for anything else, and LookupError when there was none.
    """
    if isinstance(subject, JaxprEqn):
        return why_equation(subject)
    if subject is None:
        subject = last_exception()
        if subject is None:
            raise LookupError(
                "see.why() tells about the last exception that was shown, or the "
                "last program that a function watched by see.cache made anew, and "
                "there was neither. Pass what it is to tell about: an exception "
                "(`except Exception as error: see.why(error)`), an equation of "
                "make_jaxpr(f)(x).eqns, or a jitted function."
            )
    if not isinstance(subject, BaseException):
        whose = "JAX's " if type(subject).__module__.startswith("jax.") else ""
        way = " Write `see.jaxpr(closed_jaxpr).why(3)` for its third equation."
        if hasattr(subject, "lower"):
            way = " Watch it: `f = see.cache(f)`, call f, and `see.why(f)`."
        way = way if whose or hasattr(subject, "lower") else ""
        raise TypeError(
            "see.why takes an exception or an equation (of jaxpr.eqns), or a jitted "
            f"function, and got {whose}{type(subject).__name__}.{way}"
        )
    return why_exception(subject)


# ---- exceptions ---------------------------------------------------------------------


def why_exception(error: BaseException) -> WhyRecording:
    """The story of an exception."""
    facts = special_errors.facts_of(error)
    sources = Sources()
    frames = user_frames_of(error)
    moments: list[Moment] = []
    tracer = tracer_in(error)
    kind = type(error).__name__
    program, hidden, born = program_of(tracer, sources)
    if born is not None:
        moments.append(born)
    elif facts.get("born"):
        moments.append(Moment("born", None, scrubbed(str(facts["born"]), frames)))
    # What is kept is at fault only where it was used too late.
    late = kind == "UnexpectedTracerError"
    kept = keeping_line(tracer, sources) if late else None
    if kept is not None:
        moments.append(kept)
    # The moment at fault: what kept a tracer, what a loop's step returns, else the use.
    telling = max(0, len(moments) - (kept is not None))
    if frames:
        frame, instruction = frames[-1]
        code = frame.f_code
        span = sources.span(code, instruction)
        broken = str(facts.get("rule", ""))
        for name, place in culprits.returning_lines(broken, frame, span, sources):
            moments.append(Moment("gives", place, f"what {name} returns"))
            telling = len(moments) - 1
        moments.append(Moment("used", span, f"in {code.co_name}"))
    message = scrubbed(str(error).strip(), frames)
    where = ""
    if frames:
        fault = moments[telling].span
        at = fault.line if fault else code.co_firstlineno
        function = code.co_name
        if fault is not None and telling < len(moments) - 1:
            function = sources.found[fault.source].name
        where = f" in {function}, line {at}"
    rule = str(facts.get("rule", "")) or first_paragraph(message)
    instead = scrubbed(str(facts.get("instead", "")), frames) or advice_in(message)
    operands = operands_at(frames, moments[-1].span, sources) if frames else []
    shapes, repair = clash(message, operands)
    instead = instead or repair
    if kept is not None and kept.span is not None:
        line = span_text(sources.found, kept.span)
        instead = leaks.instead_of(line)
    repaired, at = repair_of(error, sources, moments, telling, frames, tracer)
    return WhyRecording(
        call=kind,
        headline=f"why: {kind}{where}",
        telling=telling,
        sources=sources.found,
        moments=moments,
        message=message,
        rule=scrubbed(rule, frames),
        instead=instead,
        program=program,
        hidden=hidden,
        shapes=shapes,
        repaired=repaired,
        repaired_at=at,
    )


def repair_of(
    error: BaseException,
    sources: Sources,
    moments: list[Moment],
    telling: int,
    frames: list[tuple[FrameType, int]],
    tracer: Tracer | None,
) -> tuple[str, int]:
    """The repaired line of the user's own code, and its number where it is not the one
    at fault; ("", 0) where none is known."""
    if not frames:
        return "", 0
    message, kind = str(error), type(error).__name__
    jnp = next(
        (
            name
            for name, value in frames[-1][0].f_globals.items()
            if getattr(value, "__name__", "") in ("minijax.numpy", "jax.numpy")
        ),
        "jnp",
    )
    frame, code = frames[-1][0], frames[-1][0].f_code
    local = [*code.co_varnames, *code.co_cellvars]
    if code.co_name == "<module>":
        local += frame.f_globals
    inside = all_frames(error)
    for moment in (moments[telling], moments[-1]):
        if moment.span is None:
            continue
        source = Source.of_part(sources.found[moment.span.source])
        places = source.places(moment.span)
        fault = Fault(kind, message, source, *places, jnp, callers(frames))
        fault.inside = [frame.f_code.co_name for frame in inside]
        fault.aux = any(frame.f_locals.get("has_aux") is True for frame in inside)
        found = repaired_line(fault, moment.label == "gives", local)
        if found:
            return found, 0
    function, argument = static_argument(message, tracer)
    files = [frame.f_code.co_filename for frame, _ in frames]
    line, found = 0, ""
    if argument and is_hashable_argument(error, function, argument):
        line, found = static_line(files, function, argument)
    at = moments[telling].span
    return found, 0 if at and at.line == line else line


def callers(frames: list[tuple[FrameType, int]]) -> list[tuple[str, Source]]:
    """What each function that runs while one is traced calls, with its file, inside
    out: up to the first that has no tracer."""
    found = []
    for (inner, _), (outer, _) in zip(frames[::-1], frames[-2::-1]):
        if not any(map(holds_tracer, [*outer.f_locals.values()])):
            break
        found.append((inner.f_code.co_name, Source(outer.f_code.co_filename)))
    return found


def holds_tracer(value: Any) -> bool:
    """Whether a tracer is a leaf of a value; not of one that cannot be flattened."""
    try:
        leaves = tree_util.tree_leaves(value)
    except Exception:  # keys that cannot be sorted, a list in itself, a user's own rule
        return False
    return any(isinstance(leaf, Tracer) for leaf in leaves)


def is_hashable_argument(error: BaseException, function: str, name: str) -> bool:
    """Whether what was passed to a jitted function as an argument may be static."""
    for frame in all_frames(error):
        jitted: Any = frame.f_locals.get("self")
        if getattr(jitted, "__name__", "") == function and "kwargs" in frame.f_locals:
            given = frame.f_locals["args"], frame.f_locals["kwargs"]
            bound = inspect.signature(jitted).bind(*given[0], **given[1])
            bound.apply_defaults()
            value = bound.arguments.get(name)
            return isinstance(value, Hashable) and not isinstance(value, Tracer)
    return False


def all_frames(error: BaseException) -> list[FrameType]:
    """The frames of an exception, the library's too, outermost first."""
    frames = []
    traceback = getattr(error, "whole_traceback", error.__traceback__)
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames


STATIC = re.compile(r"argument to (\w+) as an abstract .* static_argnames='(\w+)'")


def static_argument(message: str, tracer: Tracer | None) -> tuple[str, str]:
    """The traced function and the name of its argument that Python needs the value of,
    and that may be static; ("", "") where it is another value."""
    told = STATIC.search(message)
    if told is not None:
        return told[1], told[2]
    inner = leaks.innermost(tracer)
    if inner is None or not isinstance(inner._trace, DynamicJaxprTrace):
        return "", ""
    debug_info, atom = inner._trace.debug_info, inner.atom
    if not re.search(r"static|Python integer|truth value", message):
        return "", ""
    # Another whole number may be needed in a line below; an array cannot be static.
    fitting = [
        (var, name)
        for var, name in zip(inner._trace.invars, debug_info.arg_names)
        if may_be_static(var.aval)
    ]
    if len(fitting) == 1 and fitting[0][0] is atom and debug_info.traced_for == "jit":
        if fitting[0][1].isidentifier():
            return debug_info.func_name, fitting[0][1]
    return "", ""


def may_be_static(aval: Any) -> bool:
    """Whether an argument is a whole number or a truth value of Python's."""
    if getattr(aval, "shape", None) != ():
        return False
    return aval.dtype.kind == "b" or aval.dtype.kind == "i" and aval.weak_type


def operands_at(
    frames: list[tuple[FrameType, int]], span: Span | None, sources: Sources
) -> list[ast.expr]:
    """The two operands of the operator or product at a span; none for other code."""
    if span is None:
        return []
    source = Source.of_part(sources.found[span.source])
    for node in source.parents:
        if places_of(node) != source.places(span):
            continue
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = culprits.value_of(node.func.value, frames[-1][0])
            first = [] if inspect.ismodule(of) else [node.func.value]
            operands = first + node.args
            if node.func.attr in ("dot", "matmul") and len(operands) == 2:
                return operands
    return []


def written_behind(operand: ast.expr, behind: str) -> str:
    """An expression with what is to stand behind it: `x.T`, `(a + b).T`."""
    if behind == ".T" and isinstance(operand, ast.Attribute) and operand.attr == "T":
        return ast.unparse(operand.value)
    text = ast.unparse(operand)
    bare = ast.Name, ast.Attribute, ast.Subscript, ast.Call
    return f"{text}{behind}" if isinstance(operand, bare) else f"({text}){behind}"


def clash(message: str, operands: list[ast.expr]) -> tuple[list[str], str]:
    """The shapes that a message says do not fit, signs under the sizes, what to do
    with the operands, if these are known.

    Nothing for other messages.
    """
    found = DOT.search(message)
    if found:
        axes = [sizes_in(found[group]) for group in (1, 3)]
        shapes = [sizes_in(found[group]) for group in (2, 4)]
        told = [
            f"axis {axis} of the {which} ({shape[axis]})"
            for which, mine, other, shape, its in zip(
                ("first", "second"), axes, axes[::-1], shapes, shapes[::-1]
            )
            for axis, against in zip(mine, other)
            if shape[axis] != its[against]
        ]
        pairs = list(zip(*axes))
        marked = [
            {p[side] for p in pairs if shapes[0][p[0]] != shapes[1][p[1]]}
            for side in (0, 1)
        ]
        if not told:
            return [], ""
        repair = f"Write a product in which {' and '.join(told)} have one size"
        swapped = len(shapes[0]) == 2 and shapes[0][0] == shapes[1][axes[1][0]]
        if swapped:
            told = [f", `{written_behind(each, '.T')}`" for each in operands[:1]]
            repair += f": transpose the first{''.join(told)}"
        repair += "."
        return drawn_shapes(shapes, marked, "@"), repair
    found = BROADCAST.search(message)
    if not found:
        return [], ""
    shapes = [sizes_in(text) for text in re.findall(r"\(([\d, ]*)\)", found[1])]
    if len(shapes) != 2:
        return [], ""
    one, two = shapes
    behind = range(1, min(len(one), len(two)) + 1)
    bad = [n for n in behind if one[-n] != two[-n] and 1 not in (one[-n], two[-n])]
    if not bad:
        return [], ""
    marked = [{len(shape) - n for n in bad} for shape in shapes]
    repair = "Write operands whose sizes there are equal or 1"
    if len(one) == len(two) == 1:
        told = [f"`{written_behind(each, '[:, None]')}`" for each in operands[:1]]
        column = "".join(told) or "a column (`[:, None]`)"
        repair += f"; for all pairs of entries, {column} as the first"
    return drawn_shapes(shapes, marked, "with"), repair + "."


def sizes_in(text: str) -> tuple[int, ...]:
    """The numbers of a tuple as a message prints it."""
    return tuple(int(size) for size in re.findall(r"\d+", text))


def drawn_shapes(
    shapes: list[tuple[int, ...]], marked: list[set[int]], between: str
) -> list[str]:
    """Two lines: the shapes, and signs under the sizes of the marked axes."""
    above, below = "", ""
    for position, shape in enumerate(shapes):
        if position:
            above += f" {between} "
        above += "("
        for axis, size in enumerate(shape):
            above += "," if axis else ""
            below = below.ljust(len(above))
            below += ("^" if axis in marked[position] else " ") * len(str(size))
            above += str(size)
        above += ",)" if len(shape) == 1 else ")"
    return [above, below.rstrip()]


def user_frames_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the user's code with their instructions, outermost first."""
    found = []
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if source_info.is_user_filename(frame.f_code.co_filename):
            found.append((frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    own = [one for one in found if not is_installed(one[0].f_code.co_filename)]
    return own or found


def tracer_in(error: BaseException) -> Tracer | None:
    """The tracer that an exception is about: the one that its message describes, else
    an argument of its innermost frames."""
    frames = all_frames(error)
    inner = itertools.takewhile(
        lambda frame: not source_info.is_user_filename(frame.f_code.co_filename),
        reversed(frames),
    )
    message = str(error)
    found: Tracer | None = None
    for frame in inner:
        for name, value in frame.f_locals.items():
            parts = (value.start, value.stop) if type(value) is slice else (value,)
            for part in parts if not isinstance(value, (tuple, list)) else value:
                if not isinstance(part, Tracer):
                    continue
                if part._error_repr() in message or repr(part) in message:
                    return part
                if found is None and part is value and name in ARGUMENTS:
                    found = part
    return found


# What functions of minijax call the argument that they are about.
ARGUMENTS = ("self", "tracer", "value", "x", "arg")


def program_of(
    tracer: Tracer | None, sources: Sources
) -> tuple[JaxprRecording | None, int, Moment | None]:
    """The program that the tracer belongs to, and where the tracer came from."""
    inner = leaks.innermost(tracer)
    if inner is None or not isinstance(inner._trace, DynamicJaxprTrace):
        return None, 0, None
    trace, atom = inner._trace, inner.atom
    file = trace.debug_info.place.rpartition(":")[0]
    if not file or not source_info.is_user_filename(file):
        return None, 0, None  # a program of the library's own
    hidden = max(0, len(trace.eqns) - LAST_EQUATIONS)
    shown = trace.eqns[hidden:]
    defined = {var for eqn in shown for var in eqn.outvars}
    inputs: dict[Var, None] = dict.fromkeys(trace.invars)
    for eqn in shown:
        for operand in eqn.invars:
            if not isinstance(operand, Literal) and operand not in defined:
                inputs[operand] = None
    program = record_jaxpr(unfinished([], list(inputs), shown, trace.debug_info))
    leave_open(program)
    names = trace.debug_info.arg_names
    function = trace.debug_info.func_name
    purpose = trace.debug_info.traced_for
    # `make_jaxpr` traces as jit does, though nobody has called jit.
    traced = function if purpose == "jit" else f"{purpose}({function})"
    for position, var in enumerate(trace.invars):
        if var is atom:
            name = names[position] if position < len(names) else str(position)
            text = f"argument {name} of {traced}"
            return program, hidden, Moment("born", None, text)
    for eqn in trace.eqns:
        if any(var is atom for var in eqn.outvars):
            span = sources.of_operation(eqn.source_info)
            text = f"result of {eqn.primitive} in {traced}"
            return program, hidden, Moment("born", span, text)
    return program, hidden, None


def keeping_line(tracer: Tracer | None, sources: Sources) -> Moment | None:
    """The line that put a tracer where it outlived its trace; None without one.

    It may stand in the function that made the tracer, in one that called that, or in
    the one that was traced.
    """
    inner = leaks.innermost(tracer)
    if inner is None or getattr(inner._trace, "invars", None) is None:
        return None
    for add in functions_around(inner):
        found = None
        tried = Sources()
        number = add(tried)
        if number is not None:
            found = leaks.keeping_assignment(tracer, tried.found[number])
        if found is not None:
            number = add(sources)
            assert number is not None
            span = replace(found.span, source=number)
            return Moment("kept", span, f"kept in {found.holder}, beyond its trace")
    return None


def functions_around(inner: DynamicJaxprTracer) -> list[Callable[[Sources], Any]]:
    """What adds the source of each function of the user that ran around a tracer's
    birth, the innermost first, up to the traced one.
    """
    debug_info = inner._trace.debug_info
    file, _, first = debug_info.place.rpartition(":")
    found: list[Callable[[Sources], Any]] = []
    made = (eqn for eqn in inner._trace.eqns if inner.atom in eqn.outvars)
    for eqn in made:
        if eqn.source_info is None or eqn.source_info.traceback is None:
            continue
        for code, _ in zip(*eqn.source_info.traceback.raw_frames()):
            if source_info.is_user_filename(code.co_filename):
                found.append(functools.partial(added, code))
            if (code.co_filename, str(code.co_firstlineno)) == (file, first):
                return found
    if not first.isdigit() or not source_info.is_user_filename(file):
        return found
    lines = linecache.getlines(file)[int(first) - 1 :]
    if lines:
        block = inspect.getblock(lines)
        name = debug_info.func_name
        found.append(lambda s: s.add_lines(name, file, int(first), block))
    return found


def added(code: CodeType, sources: Sources) -> int | None:
    """The id that sources give to the source of a function's code."""
    return sources.add_code(code)


def scrubbed(text: str, frames: list[tuple[FrameType, int]]) -> str:
    """A message without the machine's paths."""
    for frame, _ in frames:
        file = frame.f_code.co_filename
        text = text.replace(file, file_label(file))
    # The place where a leaked tracer was born is in no frame of the traceback.
    return ABSOLUTE_PATH.sub(lambda found: file_label(found[0]), text)


def first_paragraph(message: str) -> str:
    """The beginning of a message, up to where it tells the place."""
    return message.partition("\nIt happened at")[0].strip()


# What to write instead of what a message says, where the message itself does not.
ADVICE = [
    (
        r"axis -?\d+ is out of bounds for array of dimension ([1-9]\d*)",
        "Write an axis below {0}: the array has {0} axes, counted from 0.",
    ),
    (
        r"along axis -?\d+, which implies .* but is only ([1-9]\d*)",
        "Write an axis below {0} in in_axes, or None for what all examples share.",
    ),
    (
        r"len\(in_axes\)=\d+, len\(args\)=(\d+)",
        "Write {0} entries in in_axes, one for each argument; None for what all "
        "examples share.",
    ),
    (
        r"carry output must have the same pytree structure",
        "Write the step so that it returns its carry as it got it; scan's body returns "
        "`(carry, row)`.",
    ),
    (
        r"^cond branch",
        "Write both branches so that they return arrays of the same shapes and dtypes, "
        "in the same containers.",
    ),
    (
        r"^Shapes must be 1D sequences|must have static start/stop/step",
        "Write `jit(f, static_argnames=(...))` with every argument that a size is made "
        "of, and pass numbers of Python for them.",
    ),
    (
        r"^Non-hashable static arguments",
        "Write a tuple in the place of a list; an array cannot be static.",
    ),
    (
        r"^unsupported format string passed to \w*Tracer",
        'Write `minijax.debug.print("{{}}", x)`: it prints the value when it runs.',
    ),
]


def advice_in(message: str) -> str:
    """The sentence of a message that says what to write, if there is one."""
    for pattern, advice in ADVICE:
        found = re.search(pattern, message)
        if found is not None:
            return advice.format(*found.groups())
    for sentence in message.replace("\n", " ").split(". "):
        words = sentence.strip().split(" ", 1)
        if words[0] in ("Write", "Use", "Pass", "Mark", "Return", "Convert", "Instead"):
            return sentence.strip().rstrip(".") + "."
    return ""


# ---- equations ----------------------------------------------------------------------


def why_equation(eqn: JaxprEqn) -> WhyRecording:
    """Why an equation is in its program: the user's line and the rules in between."""
    sources = Sources()
    span = sources.of_operation(eqn.source_info)
    cause = causes.cause_of(eqn)
    stack = str(eqn.source_info.name_stack)
    told = cause or causes.cause_of_traceback(eqn)
    story = causes.in_words(told) if told is not None else ""
    if cause is None and story and "transpose(" in stack:
        story = f"transposed from what is {story}"
        if eqn.primitive.name == "add_any":
            story = f"a sum of cotangents, {story}"
    name, what = eqn.primitive.name, meaning(eqn.primitive.name, eqn.params)
    rules = causes.moments_of(told, sources.place(told.within if told else None))
    order = causes.order_in_words(stack, cause)
    return story_of(name, sources, span, what, story, rules, order, TRACE_AGAIN)


def why_recorded(program: JaxprRecording, number: int) -> WhyRecording:
    """Why an equation of a recorded program is there; IndexError if there is none."""
    if not 0 <= number < len(program.equations):
        raise IndexError(
            f"equation {number + 1} of {len(program.equations)}: there is no such one."
        )
    eqn = program.equations[number]
    sources = Sources()
    sources.found = list(program.sources)
    return story_of(
        eqn.primitive,
        sources,
        eqn.span,
        eqn.meaning,
        eqn.story,
        eqn.rules,
        eqn.order,
        "the function itself, `see.jaxpr(f, x)`, whose inner functions nothing has "
        "traced before: causes are those of what this view traced.",
    )


PLACE = re.compile(r"(minijax/[\w/]+\.py):(\d+)$")
YOURS = re.compile(r"your backward rule, (.+):(\d+)$")
PLACES = re.compile(r" \(minijax/[\w/]+\.py:\d+\)")


def story_of(
    name: str,
    sources: Sources,
    span: Span | None,
    what: str,
    story: str,
    rules: list[str],
    order: str,
    instead: str,
) -> WhyRecording:
    """The story of an equation; without one, what to write instead.

    It goes from the user's line over the transformations, in the order in which they
    came, and the rules, with their source, to the operation.
    """
    moves = any(rule.startswith("out_axes") for rule in rules[:1])
    wrote = "your call of vmap" if moves else "the operation that you wrote"
    moments = [Moment("line", span, wrote)]
    if order:
        moments.append(Moment("order", None, order))
    for rule in rules:
        moments.append(Moment("rule", rule_span(rule, sources), rule))
    result = f"{name}: {what}" if what else name
    moments.append(Moment("result", None, result))
    line = f" from line {span.line}" if span is not None else ""
    told = story or causes.in_words(None)
    return WhyRecording(
        call=name,
        headline=f"why {name}{line}: {PLACES.sub('', told)}",
        telling=max(0, len(moments) - 2),
        sources=sources.found,
        moments=moments,
        message=result,
        rule=told,
        instead="" if story else instead,
        program=None,
        hidden=0,
    )


def line_of(sources: Sources, file: str, line: int) -> Span | None:
    """A whole line of a source that was found, by its file's name."""
    for source in sources.found:
        index = line - source.first_line
        if source.file == file and 0 <= index < len(source.lines):
            text = source.lines[index].rstrip()
            start = len(text) - len(text.lstrip())
            return Span(source.id, line, start, line, len(text))
    return None


def rule_span(rule: str, sources: Sources) -> Span | None:
    """The line at which a rule begins, in minijax's own source."""
    yours = YOURS.match(rule)
    if yours is not None:
        return line_of(sources, yours[1], int(yours[2]))
    place = PLACE.search(rule)
    if place is None:
        return None
    line = int(place[2])
    block, first = causes.block_of(place[1], line)
    if not block:
        return None
    number = sources.covering(place[1], first, first + len(block) - 1)
    if number is None:
        number = sources.add_lines("module", place[1], first, block)
    text = block[line - first].rstrip()
    return Span(number, line, len(text) - len(text.lstrip()), line, len(text))
