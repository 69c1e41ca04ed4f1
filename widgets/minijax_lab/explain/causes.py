"""Why is this equation here? The rule that wrote it, kept while recording.

A program that went through `grad` or `vmap` is full of equations that rules wrote.
While `recording()` is on, each equation keeps its cause: the rule that was running when
it was written (`mul`'s jvp, with file and line) and the transformations around it,
outermost first. The rules are read off the Python stack at the moment of the event
`bind`, so that the core carries nothing for it and nothing is paid when it is off.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import linecache
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import minijax
from minijax.compile import inlining
from minijax.core import api, autodiff, batching, language, source_info
from minijax.support import event_watching
from minijax.transforms import walking
from minijax_lab.explain.recording import PARTS
from minijax_lab.explain.source import short_path

# Of a rule that is longer, so many lines are shown.
MOST_LINES = 12
# The folder in which minijax's package lies: files of rules count from there.
ROOT = Path(minijax.__file__).parents[1]
SUM = "sum of cotangents"
# A function that calls a rule, and the kind of rule.
CALLERS: dict[CodeType, str] = {
    autodiff.apply_jvp.__code__: "jvp",
    autodiff.transpose_eqn.__code__: "transpose",
    autodiff.LinearizeTrace.process_primitive.__code__: "linearize",
    batching.BatchTrace.process_primitive.__code__: "batch",
    api.move_output.__code__: "out_axes",
}
# The transformation that a kind of rule serves.
SERVES = {"linearize": "jvp", SUM: "transpose", "batch": "vmap", "out_axes": "vmap"}
# Functions that evaluate a program: what they write is a copy of its equation `eqn`.
COPIERS = {
    language.eval_jaxpr.__code__,
    autodiff.backward_pass.__code__,
    walking.run_equations.__code__,
    inlining.copy_into.__code__,
}


@dataclass
class Rule:
    """A rule that was running, and where its code begins.

    `form` is the function that made it, such as `def_linear`, for rules that many
    primitives share.
    """

    kind: str  # "jvp", "transpose", "batch", "linearize", "out_axes", SUM
    primitive: str
    file: str
    line: int
    form: str = ""


@dataclass
class Cause:
    """What wrote an equation: the running rules, the innermost first.

    Without rules it was the user's own operation. `again` is how many transformations
    its name stack has twice: it is a copy of an equation that the same rule wrote.
    `within` is where in the user's own backward rule it was written: the code and the
    instruction.
    """

    rules: list[Rule]
    again: int = 0
    within: tuple[CodeType, int] | None = None

    @property
    def transformations(self) -> list[str]:
        """Those that the rules serve, outermost first: ["vmap", "jvp"]."""
        served = [SERVES.get(rule.kind, rule.kind) for rule in reversed(self.rules)]
        return [name for name, _ in itertools.groupby(served)]


# The equations stand beside their causes: an id is one's own only while one lives.
_causes: dict[int, tuple[Any, Cause]] = {}
# By the place where the equation was written, and its primitive: what splits a program
# makes equations of those that were there. None: it had several causes there.
_by_place: dict[tuple[int, str], Cause | None] = {}
_MOST = 200_000


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Context manager: equations that are written inside keep their causes."""
    with event_watching.subscribe(_listen):
        yield
    _known.frame = None  # frames keep what their functions held


def cause_of(eqn: Any) -> Cause | None:
    """The cause of an equation; None if it was not written while recording."""
    found = _causes.get(id(eqn))
    if found is not None:
        return found[1]
    return _by_place.get((id(eqn.source_info), eqn.primitive.name))


def forget() -> None:
    """Forgets all causes, and with them the equations."""
    _causes.clear()
    _by_place.clear()


def _listen(name: str, data: dict[str, Any]) -> None:
    if name != "bind":
        return
    if len(_causes) >= _MOST:
        forget()
    eqn = data["eqn"]
    cause = cause_now(sys._getframe(2), eqn.primitive.name)
    _causes[id(eqn)] = (eqn, cause)
    place = (id(eqn.source_info), eqn.primitive.name)
    known = _by_place.setdefault(place, cause)
    if known is not cause and known != cause:
        _by_place[place] = None


class _Known(threading.local):
    """The function of the user that ran last, and the rules that run around it.

    What is around a running function stays the same while it runs, so the frames there
    are looked at once, and not again for each of its operations.
    """

    frame: FrameType | None = None
    rules: list[Rule] = []
    cause = Cause([])
    backward = False  # whether the function is a backward rule


_known = _Known()

# Functions that only hand the primitive on, as it was.
MACHINERY = {
    "process_primitive",
    "bind",
    "rebind",
    "__enter__",
    "__exit__",
    "apply_jvp",
    "tracer",
    "linear",
}


class _Kind:
    """What a function is, worked out once: it is asked for each frame of each equation.

    Kept by the id of its code, which stands in it so that the id stays its own: to hash
    a code object, Python 3.12 and later go through all of its instructions.
    """

    __slots__ = (
        "code",
        "copies",
        "evaluates",
        "file",
        "form",
        "part",
        "plain",
        "rule",
        "serves",
        "users",
    )

    def __init__(self, code: CodeType) -> None:
        self.code = code
        # The kind of the rules that it calls.
        self.serves = CALLERS.get(code)
        # Whether, called by a caller of rules, it is the rule.
        self.rule = self.serves is None and code.co_name not in MACHINERY
        self.file = short_path(Path(code.co_filename))
        self.copies = code in COPIERS
        self.evaluates = self.copies and code is not autodiff.backward_pass.__code__
        # What made the function, if it was made inside of another.
        made = code.co_qualname.split(".<locals>.")
        self.form = made[-2].rpartition(".")[2] if len(made) > 1 else ""
        # The user's, and what is around it stays while it runs.
        pauses = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE)
        self.users = source_info.is_user_filename(code.co_filename) and not pauses
        self.part = code.co_name in PARTS
        special = self.serves is not None or self.users or self.part or self.copies
        self.plain = not special


_kinds: dict[int, _Kind] = {}


def kind_of(code: CodeType) -> _Kind:
    """What a function is that was not seen before."""
    kind = _kinds[id(code)] = _Kind(code)
    return kind


def cause_now(frame: FrameType | None, name: str) -> Cause:
    """The cause of what is being written, a primitive of that name, from the stack."""
    rules: list[Rule] = []
    # The function that the one at hand calls, its frame, and what it calls itself.
    inner: _Kind | None = None
    called: FrameType | None = None
    deeper: _Kind | None = None
    users: FrameType | None = None
    original: Any = None
    adds = True  # whether what is copied adds to the name stack
    anew = 0  # so many rules make something else of what is copied
    inside = 0
    around = _known.frame
    while frame is not None:
        if frame is around:
            if not rules and original is None and not _known.backward:
                return _known.cause
            users = users or frame
            rules += _known.rules
            break
        code = frame.f_code
        kind = _kinds.get(id(code)) or kind_of(code)
        if kind.plain:
            deeper, inner, called = inner, kind, frame
        else:
            if kind.serves is not None:
                if inner is not None and inner.rule:
                    form = is_form_of(called, deeper)
                    runs = deeper if form and deeper is not None else inner
                    rules.append(rule_that_runs(kind.serves, frame, runs))
            elif kind.copies and original is None and (not rules or kind.evaluates):
                original = frame.f_locals.get("eqn")
                adds, anew = code is not inlining.copy_into.__code__, len(rules)
            elif users is None and kind.users:
                users, inside = frame, len(rules)
            if not kind.part:
                deeper, inner, called = inner, kind, frame
        frame = frame.f_back
    if users is not None and users is not around:
        _known.frame, _known.rules = users, rules[inside:]
        _known.cause = Cause(_known.rules)
        _known.backward = bool(_known.rules) and _known.rules[0].kind == "transpose"
    if original is not None and (anew or original.primitive.name == name):
        return copied(rules[:anew], rules[anew:], original, adds)
    place = (users.f_code, users.f_lasti) if users and _known.backward else None
    return Cause(rules, within=place)


def is_form_of(frame: FrameType | None, called: _Kind | None) -> bool:
    """Whether a running rule only hands on to what it was made for: the function that
    it called is one of those that it closes over."""
    if frame is None or called is None:
        return False
    held = [frame.f_locals.get(name) for name in frame.f_code.co_freevars]
    parts = [p for one in held for p in (one if isinstance(one, tuple) else (one,))]
    return any(getattr(one, "__code__", None) is called.code for one in parts)


def copied(inner: list[Rule], outer: list[Rule], original: Any, adds: bool) -> Cause:
    """The cause of a copy of an equation: what wrote the equation, who copies it, and
    the rules that make something else of it."""
    before = cause_of(original)
    if before is None or not before.rules:
        return Cause(inner + outer)
    again = before.again
    if outer and before.rules[-len(outer) :] == outer:
        # The rule that wrote the equation copies it.
        stack = str(original.source_info.name_stack) if adds else ""
        again += len(transformations_in(stack))
        outer = []
    return Cause([*inner, *before.rules, *outer], again, before.within)


def cause_of_traceback(eqn: Any) -> Cause | None:
    """The cause of an equation as its traceback tells it, which is always kept.

    Frames have no variables there, so primitives are those that the rules' own source
    names. An equation of a backward pass has the traceback of the one that it was
    transposed from.
    """
    traceback = getattr(eqn.source_info, "traceback", None)
    if traceback is None:
        return None
    rules: list[Rule] = []
    inner: _Kind | None = None
    deeper: _Kind | None = None
    for code, _ in zip(*traceback.raw_frames()):
        kind = _kinds.get(id(code)) or kind_of(code)
        if kind.serves is not None and inner is not None and inner.rule:
            # Without variables, what a shared form hands on to is known by its looks.
            runs = inner
            if inner.form and deeper is not None and deeper.code.co_name == "<lambda>":
                runs = deeper
            line = runs.code.co_firstlineno
            name = primitive_at(runs.file, line)
            rules.append(Rule(kind.serves, name, runs.file, line, runs.form))
        if not kind.part:
            deeper, inner = inner, kind
    return Cause(rules)


PRIMITIVE = re.compile(r"(?:^|\()(\w+)_p\b")


def block_of(file: str, line: int) -> tuple[list[str], int]:
    """The statement or function of minijax's own source around a line, and its first
    line: of a long one what is near."""
    lines = linecache.getlines(str(ROOT / file))
    if not 0 < line <= len(lines):
        return [], 0
    first = line
    while first > 1 and not (
        lines[first - 1].strip() and lines[first - 1][0] not in " )"
    ):
        first -= 1
    block = inspect.getblock(lines[first - 1 :])
    if len(block) <= line - first:  # a statement that is no function
        block = list(itertools.takewhile(str.strip, lines[first - 1 :]))
    if len(block) > MOST_LINES:
        first = max(first, line - 2)
        block = lines[first - 1 : first - 1 + MOST_LINES]
    return block, first


def primitive_at(file: str, line: int) -> str:
    """The primitive whose block of rules a line is in, "" in a family's own code."""
    block, _ = block_of(file, line)
    found = PRIMITIVE.search(block[0]) if block else None
    return found[1] if found else ""


def rule_that_runs(kind: str, caller: FrameType, called: _Kind) -> Rule:
    """The rule that was called in the frame `caller`."""
    code = called.code
    if code.co_name in ("accum", "_accumulate_in"):
        kind = SUM
    primitive = str(caller.f_locals.get("primitive") or "")
    form = "" if code.co_name == "<lambda>" else called.form
    return Rule(kind, primitive, called.file, code.co_firstlineno, form)


def moments_of(cause: Cause | None, within: str = "") -> list[str]:
    """The rules that a cause names, the outermost first; `within` is the place in the
    user's own backward rule."""
    rules = cause.rules if cause is not None else []
    told = []
    for rule in reversed(rules):
        said = f"{rule.kind} rule{rule.primitive and f' of {rule.primitive}'}"
        if rule.kind == "out_axes":
            said = "out_axes of vmap, which say where a result has its batch axis"
        elif rule.kind == SUM:
            said = f"{SUM}, after the transpose of {rule.primitive}"
        elif rule.form:
            said += f", made by {rule.form}"
        told.append(f"{said}, {rule.file}:{rule.line}")
    return [*told, f"your backward rule, {within}"] if within else told


def in_words(cause: Cause | None) -> str:
    """A cause as a clause, such as "written by the jvp of sin (elementwise.py:640)"."""
    if cause is None:
        return "its cause was not recorded"
    if not cause.rules:
        return "written as your function ran, by no rule"
    said = []
    for rule in cause.rules:
        what = f"{rule.kind} {rule.primitive and 'of '}{rule.primitive or 'rule'}"
        if rule.kind == "out_axes":
            what = "out_axes of vmap"
        said.append(f"the {what} ({rule.file}:{rule.line})")
    if cause.within is not None:
        said.insert(0, "your backward rule")
    return "written by " + ", for ".join(said)


TRANSFORMATIONS = ("vmap", "jvp", "transpose")


def transformations_in(stack: str) -> list[str]:
    """The transformations that a name stack names, the outermost first."""
    return [name for name in re.findall(r"(\w+)\(", stack) if name in TRANSFORMATIONS]


def order_in_words(stack: str, cause: Cause | None = None) -> str:
    """The order of transformations that a name stack tells; "" without any.

    `vmap(transpose(jvp()))` is "vmap of grad, on the way back: jvp first, then
    transpose, then vmap". In a program inside of another the stack begins anew: there
    the cause tells.
    """
    around = transformations_in(stack)
    if cause is not None:
        # Of what stands there twice, the part that the copy added.
        n = cause.again
        if n and around[-2 * n : -n] == around[-n:]:
            around = around[:-n]
        kinds = [rule.kind for rule in cause.rules[:1]]
        if not around:
            around = [*cause.transformations]
            if "transpose" in around:
                around.insert(around.index("transpose") + 1, "jvp")
        elif kinds in (["transpose"], [SUM]) and "transpose" not in around:
            around.insert(around.index("jvp") if "jvp" in around else 0, "transpose")
    # What was made linear within vmap and then transposed names the same vmap again.
    said = re.sub(r"(vmap.* transpose) (vmap )+jvp", r"\1 jvp", " ".join(around))
    names = said.split()
    if not names:
        return ""
    whole = said.replace("transpose jvp", "grad").split()
    told = " of ".join(whole)
    way = ""
    if "grad" in whole:
        way = ", on the way back"
    elif "rematted_computation" in stack:
        way = ", run again on grad's way back"
    elif "jvp" in whole:
        way = ", which is also grad's way forward"
    first, *later = names[::-1]
    steps = ", then ".join([f"{first} first", *later]) if later else ""
    return f"{told}{way}" + (f": {steps}" if steps else "")
