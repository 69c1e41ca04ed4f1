"""Recordings: what happened in one run, as plain data that can be kept and shown.

A recording is a dataclass that holds texts, numbers and lists of such; no arrays, no
HTML, no path of the machine. `to_dict()` makes it JSON, `from_dict()` makes it a
recording again, `write` and `read` keep it in a file. The views draw recordings and
nothing else, so what a saved file shows is what a live notebook showed.

Every recording has a headline (one sentence with numbers computed from it), the source
texts that it points into, and steps, of which `telling` is the one to show first.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import inspect
import json
import linecache
import os.path
import platform
import re
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from minijax.core import runtime, source_info

SCHEMA = 1
R = TypeVar("R", bound="Recording")
T = TypeVar("T")


@dataclass
class Source:
    """A piece of the user's source: a function, a cell. `first_line` counts from 1."""

    id: int
    name: str
    file: str  # a label: the file's base name, or "cell"
    first_line: int
    lines: list[str]


@dataclass
class Span:
    """A part of a source. Lines are the source's own; columns are characters from 0."""

    source: int
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass
class Step:
    """One step of a view: a word for the bar, a sentence for the line below."""

    label: str
    detail: str


@dataclass(kw_only=True)
class Recording:
    """What all recordings have. `kind` names the view that draws it."""

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type[Recording]]] = {}

    call: str
    headline: str
    # By a factory: a default would be an attribute of the class, there too early for
    # a recording that is finished later.
    telling: int = field(default_factory=int)
    sources: list[Source] = field(default_factory=list)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.kind:
            Recording.kinds[cls.kind] = cls

    def __getattr__(self, name: str) -> Any:
        """Python asks here for what is missing: the fields of one made by `later`."""
        finish = self.__dict__.get("_finish")
        if finish is None:
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
        finished = finish()
        self.__dict__.update(finished.__dict__)
        self.__dict__.pop("_finish", None)
        return getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        """Returns the recording as dicts, lists, texts and numbers, ready for JSON."""
        return {"schema": SCHEMA, "kind": self.kind, **_plain(self)}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Recording:
        """The recording that `to_dict` gave `data`.

        Raises ValueError for data that is no recording, or one of a newer minijax.
        """
        if not isinstance(data, dict) or "schema" not in data or "kind" not in data:
            raise ValueError("this is no recording of minijax: it names no schema.")
        if data["schema"] > SCHEMA:
            raise ValueError(
                f"this recording has schema {data['schema']}, and this minijax reads "
                f"up to {SCHEMA}; upgrade minijax to open it."
            )
        kind = Recording.kinds.get(data["kind"])
        if kind is None:
            raise ValueError(f"there is no view for recordings of {data['kind']!r}.")
        return _built(kind, data)

    def write(self, path: str | os.PathLike[str], command: str = "") -> None:
        """Writes the recording as gzipped JSON, with versions and the date inside."""
        page = {"made": versions() | {"command": command}, **self.to_dict()}
        data = json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode()
        # Without a time inside, equal recordings are equal files.
        Path(path).write_bytes(gzip.compress(data, mtime=0))


def later(kind: type[R], finish: Callable[[], R]) -> R:
    """A recording that `finish` makes when its first attribute is read.

    Watching a program must cost little, and only views need texts, names and places in
    the source.
    """
    recording = object.__new__(kind)
    recording.__dict__["_finish"] = finish
    return recording


def read(path: str | os.PathLike[str]) -> Recording:
    """The recording that was written to `path`; ValueError if there is none in it."""
    try:
        data = json.loads(gzip.decompress(Path(path).read_bytes()))
    except (gzip.BadGzipFile, UnicodeDecodeError, json.JSONDecodeError, EOFError):
        raise ValueError(f"{path} holds no recording (gzipped JSON).") from None
    return Recording.from_dict(data)


def versions() -> dict[str, str]:
    """With what, and when, something was recorded."""
    return {
        "jaxlib": runtime.jaxlib_version_text,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "date": date.today().isoformat(),
    }


def _plain(value: Any) -> Any:
    """`value` as JSON has it. Faster than `dataclasses.asdict`, which copies deeply."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return {name: _plain(getattr(value, name)) for name in _field_names(type(value))}


_names: dict[type, list[str]] = {}


def _field_names(kind: type) -> list[str]:
    names = _names.get(kind)
    if names is None:
        if not dataclasses.is_dataclass(kind):
            raise TypeError(f"a recording holds plain data, not {kind.__name__}")
        names = _names[kind] = [f.name for f in dataclasses.fields(kind)]
    return names


def _built(kind: Any, value: Any) -> Any:
    """The inverse of `_plain`, guided by the types that dataclasses declare."""
    if value is None:
        return None
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = [one for one in typing.get_args(kind) if one is not type(None)]
        return _built(options[0], value) if len(options) == 1 else value
    if origin is list:
        (item,) = typing.get_args(kind)
        return [_built(item, part) for part in value]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = [name for name in _field_names(kind) if name in value]
        return kind(**{name: _built(hints[name], value[name]) for name in names})
    return value


# ---- sources ------------------------------------------------------------------------

MOST_CODES = 4096


def once_a_code(work_out: Callable[[types.CodeType], T]) -> Callable[..., T]:
    """Decorator: what a function works out about a code object is kept.

    By the identity of the code object. Those of two cells can be equal while their
    sources are not; and to hash one, Python goes through all that is in it.
    """
    kept: dict[int, tuple[T, types.CodeType]] = {}

    @functools.wraps(work_out)
    def known(code: types.CodeType) -> T:
        found = kept.get(id(code))
        if found is None:
            if len(kept) >= MOST_CODES:
                kept.clear()
            found = kept[id(code)] = (work_out(code), code)
        return found[0]

    return known


class Sources:
    """Collects the source texts that a recording points into, each once."""

    def __init__(self) -> None:
        self.found: list[Source] = []
        # By the id of a function's code, which stands beside so that it stays its own.
        self.ids: dict[int, tuple[int | None, types.CodeType]] = {}
        self.files: dict[str, list[tuple[int, int, int]]] = {}

    def add_function(self, function: Callable) -> int | None:
        """The id of a function's source; None when Python cannot find any."""
        function = inspect.unwrap(function)
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        return None if code is None else self.add_code(code)

    def add_code(self, code: types.CodeType) -> int | None:
        """The id of the source of a function's code."""
        found = self.ids.get(id(code))
        if found is not None:
            return found[0]
        number: int | None = None
        lines, first = lines_of(code)
        if lines:
            number = self.covering(code.co_filename, first, first + len(lines) - 1)
            if number is None:
                number = self.add_lines(code.co_name, code.co_filename, first, lines)
        self.ids[id(code)] = (number, code)
        return number

    def covering(self, file: str, first: int, last: int) -> int | None:
        """The source that already holds these lines, as that of an inner function."""
        for start, end, number in self.files.get(file, ()):
            if start <= first and last <= end:
                return number
        return None

    def add_lines(self, name: str, file: str, first: int, lines: list[str]) -> int:
        """Adds a text; returns its id: that of a function inside of it, if there is."""
        text = [line.rstrip("\n") for line in lines]
        last = first + len(text) - 1
        known = self.files.setdefault(file, [])
        for index, (start, end, number) in enumerate(known):
            if first <= start and end <= last:
                # Spans count the file's own lines, so they hold in the longer text too.
                self.found[number] = Source(number, name, file_label(file), first, text)
                known[index] = (first, last, number)
                return number
        number = len(self.found)
        self.found.append(Source(number, name, file_label(file), first, text))
        known.append((first, last, number))
        return number

    def span(self, code: types.CodeType, instruction: int) -> Span | None:
        """The span of the expression that a frame's instruction belongs to."""
        number = self.add_code(code)
        positions = positions_of(code)
        index = instruction // 2
        if number is None or not 0 <= index < len(positions):
            return None
        line, end_line, column, end_column = positions[index]
        if line is None or end_line is None or column is None or end_column is None:
            return None
        return self.in_characters(number, line, column, end_line, end_column)

    def place(self, instruction: tuple[types.CodeType, int] | None) -> str:
        """The file and line of an instruction of a function, "" if unknown."""
        span = self.span(*instruction) if instruction is not None else None
        return f"{self.found[span.source].file}:{span.line}" if span else ""

    def of_operation(self, info: Any, call: Span | None = None) -> Span | None:
        """Where the user wrote an operation, from its SourceInfo; None if unknown.

        In a program that `call` calls, the call where no user's line is inside of it:
        a kept program has the traceback of the call that traced it first.
        """
        if info is None or info.traceback is None:
            return call
        for code, instruction in zip(*info.traceback.raw_frames()):
            if source_info.is_user_filename(code.co_filename):
                return self.span(code, instruction)
            if call and code.co_name == "trace_to_jaxpr":
                return call
        return call

    def in_characters(
        self, number: int, line: int, column: int, end_line: int, end_column: int
    ) -> Span:
        """A span whose columns Python counted in bytes of UTF-8."""
        return Span(
            number,
            line,
            self.characters(number, line, column),
            end_line,
            self.characters(number, end_line, end_column),
        )

    def characters(self, number: int, line: int, column: int) -> int:
        """A column that Python counts in bytes of UTF-8, in characters."""
        source = self.found[number]
        index = line - source.first_line
        if not 0 <= index < len(source.lines):
            return column
        text = source.lines[index]
        if text.isascii():
            return column
        return len(text.encode()[:column].decode(errors="ignore"))


@once_a_code
def lines_of(code: types.CodeType) -> tuple[list[str], int]:
    """The lines of a function, or of a whole file or cell, and the first one's number.

    No lines where Python finds no source.
    """
    name = code.co_filename
    if name.startswith("<") and not name.startswith("<ipython"):
        return [], 0  # made by exec or eval: lines of that name would be others
    if code.co_name == "<module>":
        return linecache.getlines(code.co_filename), 1
    if code.co_name in PARTS:
        return lines_around(code)
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return [], 0
    return lines, max(first, 1)


# Functions that Python makes of a part of a statement.
PARTS = {"<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"}
DEFINES = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")


def lines_around(code: types.CodeType) -> tuple[list[str], int]:
    """The lines of the function that a comprehension stands in, and the first's number.

    Outside of any function, its own lines. Python itself has no good answer: 3.11 takes
    the nearest `def` above, also that of a function that ends before; 3.13 begins with
    the comprehension and goes on behind it.
    """
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno
    last = max(line for _, _, line in code.co_lines() if line is not None)
    return block_around(lines, first, last) or (lines[first - 1 : last], first)


def block_around(
    lines: list[str], first: int, last: int
) -> tuple[list[str], int] | None:
    """The innermost function around some lines of a file, and its first line."""
    for start in range(min(first, len(lines)) - 1, -1, -1):
        if DEFINES.match(lines[start]):
            block = inspect.getblock(lines[start:])
            if last <= start + len(block):
                return block, start + 1
    return None


@once_a_code
def positions_of(code: types.CodeType) -> list[tuple]:
    """For each instruction: first line, last line, first column, last column."""
    return list(code.co_positions())


def span_text(sources: list[Source], span: Span | None) -> str:
    """The expression that a span of a recording covers, on one line."""
    if span is None:
        return ""
    source = sources[span.source]
    line = source.lines[span.line - source.first_line]
    end = span.end_column if span.line == span.end_line else None
    return line[span.column : end].strip()


def file_label(file_name: str) -> str:
    """Returns a file's name without its folders; a notebook's cell is "cell".

    A recording may be shown to others: it carries no path of the machine.
    """
    if "ipykernel" in file_name or file_name.startswith("<ipython"):
        return "cell"
    return os.path.basename(file_name)


def count_in_words(number: int, noun: str) -> str:
    """Returns for example "1 equation" or "5 equations"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def signature(types_of_inputs: list[str]) -> str:
    """Returns the inputs, as types or in words, with the middle of a long list cut."""
    if len(types_of_inputs) <= 4:
        return ", ".join(types_of_inputs)
    first, last = types_of_inputs[0], types_of_inputs[-1]
    return f"{first}, ... {len(types_of_inputs)} inputs ..., {last}"


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    parts = file.replace("\\", "/").split("/")
    return "site-packages" in parts or "dist-packages" in parts


def user_frame_now() -> types.FrameType | None:
    """The user's innermost frame on the Python stack of this thread."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if source_info.is_user_filename(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None
