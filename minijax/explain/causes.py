"""Why is this equation here? The rule that wrote it, kept while recording.

A program that went through `grad` or `vmap` is full of equations that nobody wrote.
While `recording()` is on, each equation keeps its cause: the rule that was running when
it was written (`mul`'s jvp, with file and line) and the transformations around it,
outermost first. The rules are read off the Python stack at the moment of the event
`bind`, so that the core carries nothing for it and nothing is paid when it is off.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from minijax import events
from minijax.explain.source import short_path
from minijax.interpreters import ad, batching

# A function that calls a rule: the kind of rule, and the transformation it serves.
CALLERS: dict[CodeType, tuple[str, str]] = {
    ad.apply_jvp.__code__: ("jvp", "jvp"),
    ad.transpose_eqn.__code__: ("transpose", "transpose"),
    ad.LinearizeTrace.process_primitive.__code__: ("linearize", "jvp"),
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


# The equations stand beside their causes: an id is one's own only while one lives.
_causes: dict[int, tuple[Any, Cause]] = {}
_MOST = 200_000


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Context manager: equations that are written inside keep their causes."""
    with events.subscribe(_listen):
        yield


def cause_of(eqn: Any) -> Cause | None:
    """The cause of an equation; None if it was not written while recording."""
    found = _causes.get(id(eqn))
    return found[1] if found is not None else None


def forget() -> None:
    """Forgets all causes, and with them the equations."""
    _causes.clear()


def _listen(name: str, data: dict[str, Any]) -> None:
    if name != "bind":
        return
    if len(_causes) >= _MOST:
        _causes.clear()
    eqn = data["eqn"]
    _causes[id(eqn)] = (eqn, cause_now(sys._getframe(2)))


def cause_now(frame: FrameType | None) -> Cause:
    """The cause of what is being written, from the Python stack."""
    rules: list[Rule] = []
    transformations: list[str] = []
    inner: FrameType | None = None
    while frame is not None:
        caller = CALLERS.get(frame.f_code)
        if caller is not None and inner is not None:
            kind, transformation = caller
            is_rule = inner.f_code not in CALLERS and not is_machinery(inner)
            if is_rule:
                code = inner.f_code
                if code.co_name == "accum":
                    kind = "sum of cotangents"
                primitive = str(frame.f_locals.get("primitive"))
                file = short_path(Path(code.co_filename))
                rules.append(Rule(kind, primitive, file, code.co_firstlineno))
                if not transformations or transformations[-1] != transformation:
                    transformations.append(transformation)
        if frame.f_code.co_name not in ("<listcomp>", "<genexpr>"):
            inner = frame
        frame = frame.f_back
    return Cause(rules, transformations[::-1])


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


def is_machinery(frame: FrameType) -> bool:
    """Whether a frame only hands the primitive on, as it was."""
    return frame.f_code.co_name in MACHINERY


def in_words(cause: Cause | None) -> str:
    """A cause as a clause, such as "written by the jvp of sin (elementwise.py:640)"."""
    if cause is None:
        return "its cause was not recorded"
    if not cause.rules:
        return "written by the operation itself"
    said = [
        f"the {rule.kind} of {rule.primitive} ({rule.file}:{rule.line})"
        for rule in cause.rules
    ]
    return "written by " + ", for ".join(said)
