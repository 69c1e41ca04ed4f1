"""The recording of lowering: which rule wrote which StableHLO, equation by equation.

The text is the module's own. Each line knows the equation that it was written for (none
for the frame of functions and modules). Each equation knows the rule that wrote it and
the block of its primitive, as places in minijax's source.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minijax
from minijax.core import lowering
from minijax.core.language import JaxprEqn, Primitive
from minijax_lab.explain.equation_marks import equation_in
from minijax_lab.explain.jaxpr import JaxprRecording
from minijax_lab.explain.levels import Levels, levels_of, target_named
from minijax_lab.explain.recording import Recording, count_in_words, file_label
from minijax_lab.explain.source import defined_in

PACKAGE = Path(minijax.__file__).parent.parent


@dataclass
class Place:
    """A place in minijax's source, relative to the folder that minijax is in."""

    name: str
    path: str
    line: int


@dataclass
class StableLine:
    """A line of StableHLO: its text, its operation, and the equation behind it."""

    text: str
    operation: str
    equation: int | None


@dataclass
class LoweredEquation:
    """How an equation was lowered: by which rule, to which lines.

    `lines` are positions in the text. Empty for an equation that was not needed, or
    whose lines all belong to the equations of a program that it carries.
    """

    equation: int
    rule: Place | None
    block: Place | None
    lines: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class LoweringRecording(Recording):
    """A program and its StableHLO. Its steps are the equations that wrote something."""

    kind = "lowering"

    jaxpr: JaxprRecording
    platform: str
    lines: list[StableLine]
    lowered: list[LoweredEquation]

    @property
    def text(self) -> str:
        """The StableHLO."""
        return "\n".join(line.text for line in self.lines)

    @property
    def operations(self) -> int:
        """How many operations there are, those of closed-over constants too."""
        return sum(1 for line in self.lines if line.operation)


def record_lowering(
    function: Any, args: tuple, kwargs: dict[str, Any], target: str | None = None
) -> LoweringRecording:
    """Records how a function is lowered for a target, by default this machine's CPU."""
    return lowering_of(levels_of(function, args, kwargs), target_named(target).platform)


def lowering_of(
    levels: Levels, platform: str, lowered: lowering.Lowered | None = None
) -> LoweringRecording:
    """The recording of levels that may have been lowered already."""
    lowered = levels.lower(platform) if lowered is None else lowered
    lines = stable_lines(lowered)
    told = [
        LoweredEquation(number, rule_place(eqn, platform), block_place(eqn.primitive))
        for number, eqn in enumerate(levels.equations)
    ]
    for number, line in enumerate(lines):
        if line.equation is not None:
            told[line.equation].lines.append(number)
    telling = max(
        range(len(told)), key=lambda number: len(told[number].lines), default=0
    )
    operations = [line for line in lines if line.operation]
    equations = count_in_words(len(told), "equation")
    return LoweringRecording(
        call=levels.jaxpr.call,
        headline=f"lowering of {levels.jaxpr.call}: {equations} became "
        f"{count_in_words(len(operations), 'StableHLO operation')}",
        telling=telling,
        sources=levels.jaxpr.sources,
        jaxpr=levels.jaxpr,
        platform=platform,
        lines=lines,
        lowered=told,
    )


# ---- the text, and where each line comes from ----------------------------------------

LOCATION = re.compile(r'^#(loc\d*) = loc\("((?:[^"\\]|\\.)*)"[()]')
ENDING = re.compile(r" loc\(#(loc\d*)\)$")
OPERATION = re.compile(r'^(?:%\S+(?::\d+)? = )?"?((?:[a-z_]+\.)?[a-z_]+)"?')
FRAME = ("}", "^", "cond {", "reducer(", "module", "#")


def stable_lines(lowered: lowering.Lowered) -> list[StableLine]:
    """The lines of a module, each with its operation and its equation.

    An operation with regions has its location behind the last of its lines, which has
    the indentation of the first.
    """
    names: dict[str, str] = {}
    plain = lowered.text().rstrip("\n").split("\n")
    located: list[str] = []
    for line in lowered.text(locations=True).rstrip("\n").split("\n"):
        if found := LOCATION.match(line):
            names[found[1]] = found[2]
        elif not line.startswith("#loc"):
            located.append(line)
    if len(plain) != len(located):
        raise ValueError("the module has other lines with locations than without.")
    lines: list[StableLine] = []
    waiting: dict[int, list[StableLine]] = {}
    for text, with_location in zip(plain, located):
        body = text.strip()
        indent = (len(text) - len(text.lstrip())) // 2  # "reducer" has one more
        told = StableLine(text, operation_of(body), None)
        lines.append(told)
        waiting.setdefault(indent, []).append(told)
        if found := ENDING.search(with_location):
            equation = equation_in(names.get(found[1], ""))
            for each in waiting.pop(indent):
                each.equation = equation
    return lines


def operation_of(body: str) -> str:
    """The operation that a line begins, without its dialect; "" if it begins none."""
    if body.startswith(FRAME):
        return ""
    found = OPERATION.match(body)
    name = found[1] if found else ""
    last = name.rpartition(".")[2]
    return "" if name == "func.func" or last == "return" else last


# ---- the rules -----------------------------------------------------------------------


def rule_place(eqn: JaxprEqn, platform: str) -> Place | None:
    """Where the lowering rule of an equation stands; None if Python does not know."""
    try:
        return place_of(lowering.lowering_rule(eqn, platform))
    except NotImplementedError:
        return None


def place_of(function: Callable) -> Place | None:
    """The place of a function; of one that is not minijax's, the file's name alone."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return None
    return Place(code.co_qualname, relative(code.co_filename), code.co_firstlineno)


def relative(file_name: str) -> str:
    """A file of minijax from its package on, another one without its folders."""
    path = Path(file_name)
    if path.is_relative_to(PACKAGE / "minijax"):
        return path.relative_to(PACKAGE).as_posix()
    return file_label(file_name)


@functools.cache
def block_place(primitive: Primitive) -> Place | None:
    """Where the block of a primitive begins; None for one that minijax has not made."""
    found = defined_in(primitive)
    if found is None:
        return None
    path, variable = found
    lines = path.read_text(encoding="utf-8").split("\n")
    begins = re.compile(rf"{re.escape(variable)}\b.*=")
    for number, line in enumerate(lines, 1):
        if begins.match(line):
            return Place(variable, relative(str(path)), number)
    return None
