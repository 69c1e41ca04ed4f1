"""Compiled programs of real JAX: their instructions, and the user's lines behind them.

What real JAX compiled has no numbers of equations in it (`levels.py`). But XLA keeps,
for each instruction, the name of the operation (`jit(f)/sin`) and the stack of Python
frames. Instructions with the same name and the same frame come from one operation: it
stands here for the equation, with the line of the innermost frame that is not JAX's.

Nothing of JAX is imported: its objects are asked through their public methods.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

from minijax.core import source_info
from minijax_lab.explain import foreign
from minijax_lab.explain.hlo_text import Module, parse
from minijax_lab.explain.jaxpr import Equation, JaxprRecording
from minijax_lab.explain.recording import (
    DEFINES,
    Sources,
    Span,
    block_around,
    is_installed,
)
from minijax_lab.explain.words import meaning

# A frame: file, function, line, column, last line, last column.
Frame = tuple[str, str, int, int, int, int]
PLATFORMS = {"gpu": "cuda"}


def is_stage(value: Any) -> bool:
    """Whether a value is a lowered or compiled program of real JAX."""
    names = ("Lowered", "Compiled")
    return foreign.is_of_jax(value) and type(value).__name__ in names


def is_jitted(value: Any) -> bool:
    """Whether a value is a function that real JAX jitted."""
    return type(value).__name__ == "PjitFunction" and hasattr(value, "lower")


def check_target(target: str | None, platform: str) -> None:
    """Raises ValueError for a target other than JAX compiled the program for."""
    if target not in (None, platform):
        raise ValueError(
            f"target={target!r} was asked for, but JAX compiled the program for "
            f"{platform}. Give the function itself, to be compiled by minijax, or "
            "leave target out."
        )


def platform_of(compiled: Any) -> str:
    """The platform of a compiled program of JAX, by the name that rules have."""
    executable = compiled.runtime_executable()
    devices: list[Any] = getattr(executable, "local_devices", list)()
    platform = devices[0].platform if devices else "cpu"
    return PLATFORMS.get(platform, platform)


def read_program(text: str) -> tuple[Module, JaxprRecording]:
    """A program's text as data, its operations as equations without operands."""
    module = parse(text)
    frames = user_frames(text)
    sources = Sources()
    equations: list[Equation] = []
    known: dict[tuple[str, int | None], int] = {}
    for instruction in module.instructions:
        name = instruction.op_name
        if not name or instruction.opcode == "parameter":
            continue
        key = (name, instruction.frame)
        if key not in known:
            known[key] = len(equations)
            frame = frames.get(instruction.frame or 0)
            primitive = name.rpartition("/")[2]
            equations.append(
                Equation(
                    id=len(equations),
                    parent=None,
                    primitive=primitive,
                    operands=[],
                    results=[],
                    parameters={},
                    printed=[],
                    meaning=meaning(primitive, {}),
                    span=span_of(frame, sources) if frame else None,
                )
            )
        instruction.equation = known[key]
    title = module.name.removeprefix("jit_")
    entry = [i for i in module.body(module.entry.id) if i.opcode == "parameter"]
    types = [instruction.type for instruction in entry]
    return module, JaxprRecording(
        call=f"{title}({', '.join(types)})",
        headline=f"{title}, as compiled by JAX",
        sources=sources.found,
        name=title,
        inputs=types,
        outputs=[],
        variables=[],
        equations=equations,
        lines=[],
    )


def renumber(module: Module, like: JaxprRecording, text: str) -> None:
    """Gives a second compilation of a program the numbers of the first one's equations.

    Frames are numbered anew by each compilation, so places are compared.
    """
    frames = user_frames(text)
    places: dict[tuple[str, tuple[int, int] | None], int] = {}
    for equation in like.equations:
        span = equation.span
        place = None if span is None else (span.line, span.column)
        places.setdefault((equation.primitive, place), equation.id)
    for instruction in module.instructions:
        if instruction.op_name and instruction.opcode != "parameter":
            frame = frames.get(instruction.frame or 0)
            place = None if frame is None else (frame[2], frame[3])
            primitive = instruction.op_name.rpartition("/")[2]
            instruction.equation = places.get((primitive, place))


# ---- frames --------------------------------------------------------------------------

QUOTED = re.compile(r'^(\d+) "(.*)"$', re.MULTILINE)
LOCATION = re.compile(
    r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+) end_line=(\d+) "
    r"column=(\d+) end_column=(\d+)\}$",
    re.MULTILINE,
)
STACK = re.compile(
    r"^(\d+) \{file_location_id=(\d+) parent_frame_id=(\d+)\}$", re.MULTILINE
)


def user_frames(
    text: str, wanted: Callable[[str], bool] | None = None
) -> dict[int, Frame]:
    """The innermost frame of each stack that is the user's.

    One in a package that is installed, such as Flax, stands only where there is none of
    the user's own. `wanted` tells whose files are meant, if it is given.
    """
    head = text.partition("\n%")[0]
    files = dict(QUOTED.findall(section(head, "FileNames")))
    functions = dict(QUOTED.findall(section(head, "FunctionNames")))
    places: dict[str, Frame] = {}
    for number, file, function, line, end, column, last in LOCATION.findall(head):
        where = (files.get(file, ""), functions.get(function, ""))
        places[number] = (*where, int(line), int(column), int(end), int(last))
    stacks = {int(n): (place, int(p)) for n, place, p in STACK.findall(head)}
    found = {}
    for number in stacks:
        each = number
        # A parent is printed one too high: 1 stands for none.
        while each in stacks:
            place, parent = stacks[each]
            frame = places.get(place)
            if frame is not None and (wanted or is_users)(frame[0]):
                if wanted or not is_installed(frame[0]):
                    found[number] = frame
                    break
                found.setdefault(number, frame)
            each = parent - 1
    return found


def section(head: str, title: str) -> str:
    """The table of a program's text that stands under a title."""
    return head.partition(f"\n{title}\n")[2].partition("\n\n")[0]


def is_users(file: str) -> bool:
    """Whether a frame's file is the user's, and not a part of JAX."""
    parts = re.split(r"[\\/]", file)
    inside = "site-packages" in parts and ("jax" in parts or "jaxlib" in parts)
    return not inside and source_info.is_user_filename(file)


def span_of(frame: Frame, sources: Sources) -> Span | None:
    """The span of a frame, in the function around it; None without its source."""
    file, function, line, column, end_line, end_column = frame
    lines, first = function_around(file, line)
    if not lines:
        return None
    number = sources.covering(file, first, first + len(lines) - 1)
    if number is None:
        around = DEFINES.match(lines[0])
        name = function or (around[1] if around else "<module>")
        number = sources.add_lines(name, file, first, lines)
    return sources.in_characters(number, line, column, end_line, end_column)


def function_around(file: str, line: int) -> tuple[list[str], int]:
    """The lines of the function that a line is in, or of the file, and the first."""
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return [], 0
    return block_around(lines, line, line) or (lines, 1)
