"""Why is this equation here? The rule that wrote it, kept while recording.

A program that went through `grad` or `vmap` is full of equations that nobody wrote.
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
from minijax.core import autodiff, batching, source_info
from minijax.support import event_watching
from minijax_lab.explain.recording import PARTS
from minijax_lab.explain.source import short_path

# Of a rule that is longer, so many lines are shown.
MOST_LINES = 12
# The folder in which minijax's package lies: files of rules count from there.
ROOT = Path(minijax.__file__).parents[1]
# A function that calls a rule: the kind of rule, and the transformation it serves.
CALLERS: dict[CodeType, tuple[str, str]] = {
    autodiff.apply_jvp.__code__: ("jvp", "jvp"),
    autodiff.transpose_eqn.__code__: ("transpose", "transpose"),
    autodiff.LinearizeTrace.process_primitive.__code__: ("linearize", "jvp"),
    batching.BatchTrace.process_primitive.__code__: ("batch", "vmap"),
}


@dataclass
class Rule:
    """A rule that was running, and where its code begins."""

    kind: str  # "jvp", "transpose", "batch", "linearize"
    primitive: str
    file: str
    line: int


@dataclass
class Cause:
    """What wrote an equation: the running rules, the innermost first.

    Without rules it was the user's own operation. `transformations` are those around
    it, outermost first: ["vmap", "jvp"].
    """

    rules: list[Rule]
    transformations: list[str]


# Running rules, the innermost first, each with the transformation that it serves.
Rules = list[tuple[Rule, str]]

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
    cause = cause_now(sys._getframe(2))
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
    rules: Rules = []
    cause = Cause([], [])


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

    __slots__ = ("code", "file", "part", "plain", "rule", "serves", "users")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        # The kind of the rules that it calls, and the transformation that they serve.
        self.serves = CALLERS.get(code)
        # Whether, called by a caller of rules, it is the rule.
        self.rule = self.serves is None and code.co_name not in MACHINERY
        self.file = short_path(Path(code.co_filename))
        # The user's, and what is around it stays while it runs.
        pauses = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE)
        self.users = source_info.is_user_filename(code.co_filename) and not pauses
        self.part = code.co_name in PARTS
        self.plain = self.serves is None and not self.users and not self.part


_kinds: dict[int, _Kind] = {}


def kind_of(code: CodeType) -> _Kind:
    """What a function is that was not seen before."""
    kind = _kinds[id(code)] = _Kind(code)
    return kind


def cause_now(frame: FrameType | None) -> Cause:
    """The cause of what is being written, from the Python stack."""
    rules: Rules = []
    inner: _Kind | None = None
    users: FrameType | None = None
    inside = 0
    around = _known.frame
    while frame is not None:
        if frame is around:
            return from_rules(rules + _known.rules) if rules else _known.cause
        code = frame.f_code
        kind = _kinds.get(id(code)) or kind_of(code)
        if kind.plain:
            inner = kind
        else:
            if kind.serves is not None:
                if inner is not None and inner.rule:
                    rules.append(rule_that_runs(kind.serves, frame, inner))
            elif users is None and kind.users:
                users, inside = frame, len(rules)
            if not kind.part:
                inner = kind
        frame = frame.f_back
    if users is not None:
        _known.frame, _known.rules = users, rules[inside:]
        _known.cause = from_rules(_known.rules)
    return from_rules(rules)


def cause_of_traceback(eqn: Any) -> Cause | None:
    """The cause of an equation as its traceback tells it, which is always kept.

    Frames have no variables there, so primitives are those that the rules' own source
    names. An equation of a backward pass has the traceback of the one that it was
    transposed from.
    """
    traceback = getattr(eqn.source_info, "traceback", None)
    if traceback is None:
        return None
    rules: Rules = []
    inner: _Kind | None = None
    for code, _ in zip(*traceback.raw_frames()):
        kind = _kinds.get(id(code)) or kind_of(code)
        if kind.serves is not None and inner is not None and inner.rule:
            what, transformation = kind.serves
            line = inner.code.co_firstlineno
            said = Rule(what, primitive_at(inner.file, line), inner.file, line)
            rules.append((said, transformation))
        if not kind.part:
            inner = kind
    return from_rules(rules)


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


def rule_that_runs(
    serves: tuple[str, str], caller: FrameType, called: _Kind
) -> tuple[Rule, str]:
    """The rule that was called in the frame `caller`, and what it serves."""
    kind, transformation = serves
    code = called.code
    if code.co_name == "accum":
        kind = "sum of cotangents"
    primitive = str(caller.f_locals.get("primitive"))
    return Rule(kind, primitive, called.file, code.co_firstlineno), transformation


def from_rules(rules: Rules) -> Cause:
    """The cause that running rules are, the innermost first."""
    transformations: list[str] = []
    for _, transformation in rules:
        if not transformations or transformations[-1] != transformation:
            transformations.append(transformation)
    return Cause([rule for rule, _ in rules], transformations[::-1])


def moments_of(cause: Cause | None) -> list[str]:
    """The rules that a cause names, the outermost first."""
    rules = cause.rules if cause is not None else []
    return [
        f"{rule.kind} rule{rule.primitive and f' of {rule.primitive}'}, "
        f"{rule.file}:{rule.line}"
        for rule in reversed(rules)
    ]


def in_words(cause: Cause | None) -> str:
    """A cause as a clause, such as "written by the jvp of sin (elementwise.py:640)"."""
    if cause is None:
        return "its cause was not recorded"
    if not cause.rules:
        return "written by the operation itself"
    said = [
        f"the {rule.kind} {rule.primitive and 'of '}{rule.primitive or 'rule'} "
        f"({rule.file}:{rule.line})"
        for rule in cause.rules
    ]
    return "written by " + ", for ".join(said)


TRANSFORMATIONS = ("vmap", "jvp", "transpose")


def order_in_words(stack: str) -> str:
    """The order of transformations that a name stack tells; "" without any.

    `vmap(transpose(jvp()))` is "vmap of grad, on the way back: jvp first, then
    transpose, then vmap".
    """
    around = [name for name in re.findall(r"(\w+)\(", stack) if name in TRANSFORMATIONS]
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
    elif "jvp" in whole:
        way = ", which is also grad's way forward"
    first, *later = names[::-1]
    steps = ", then ".join([f"{first} first", *later]) if later else ""
    return f"{told}{way}" + (f": {steps}" if steps else "")
