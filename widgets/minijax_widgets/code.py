"""Source panes: the user's lines beside a picture, and the spans that steps light."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from minijax_lab.explain.recording import PARTS, Source, Span, block_around
from minijax_widgets.frame import Pane, Row

FUNCTION = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")
PARTS_IN_WORDS = {
    "<genexpr>": "a generator",
    "<listcomp>": "a list",
    "<setcomp>": "a set",
    "<dictcomp>": "a dict",
}


@dataclass
class CodePanes:
    """One pane for each source that is shown, and where each source went."""

    panes: list[Pane]
    numbers: dict[int, int]  # source id -> position among `panes`
    depths: dict[int, int]  # source id -> columns that all of its lines leave empty
    sources: list[Source]


def code_panes(sources: list[Source], spans: Iterable[Span] | None = None) -> CodePanes:
    """Returns the panes of the sources that `spans` point into (None: of all).

    They stand under each other. Of a file only the functions and statements that the
    spans are in are shown, and what stands between.
    """
    if spans is not None:
        spans = list(spans)
        sources = [around(source, spans) for source in sources]
    used = None if spans is None else {span.source for span in spans}
    panes: list[Pane] = []
    numbers: dict[int, int] = {}
    depths: dict[int, int] = {}
    for source in sources:
        if used is not None and source.id not in used:
            continue
        numbers[source.id] = len(panes)
        depths[source.id] = indentation(source.lines)
        rows = [
            Row(
                [str(source.first_line + offset), line],
                # Linked with what the line made, and lit alone at a step.
                keys=[
                    f"l{source.id}:{source.first_line + offset}",
                    f"s{source.id}:{source.first_line + offset}",
                ],
            )
            for offset, line in enumerate(dedented(source.lines))
        ]
        title = title_of(source)
        panes.append(Pane(title, rows, kind="code", below=bool(panes)))
    return CodePanes(panes, numbers, depths, sources)


def around(source: Source, spans: list[Span]) -> Source:
    """Returns a file without what stands before and after all functions of spans."""
    own = [span for span in spans if span.source == source.id]
    if source.name != "<module>" or source.file == "cell" or not own:
        return source
    first, last = len(source.lines), 0
    for span in own:
        lines, start = block_around(source.lines, span.line, span.end_line) or (
            source.lines[span.line - 1 : span.end_line],
            span.line,
        )
        first, last = min(first, start), max(last, start + len(lines) - 1)
    kept = source.lines[first - 1 : last]
    return replace(source, first_line=source.first_line + first - 1, lines=kept)


def title_of(source: Source) -> str:
    """Returns what stands over a source: `softmax, model.py`, or `cell` alone."""
    name = re.sub(r"^<(\w+)>$", r"\1", source.name)
    if source.name in PARTS:
        # Python names a part of a statement by its kind; what it stands in has a name.
        around = FUNCTION.match(source.lines[0] if source.lines else "")
        name = around[1] if around else PARTS_IN_WORDS[source.name]
    return source.file if name == "module" else f"{name}, {source.file}"


def indentation(lines: list[str]) -> int:
    """Returns by how many columns all lines are indented."""
    depths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    return min(depths, default=0)


def dedented(lines: list[str]) -> list[str]:
    """Returns the lines without the columns that all of them leave empty."""
    depth = indentation(lines)
    return [line[depth:] for line in lines]


def mark_of(
    sources: CodePanes, span: Span | None, first_pane: int
) -> list[tuple[int, int, int, int]]:
    """Returns a span as the player's marks, one for each of its lines."""
    if span is None or span.source not in sources.numbers:
        return []
    source = sources.sources[span.source]
    pane = first_pane + sources.numbers[span.source]
    depth = sources.depths[span.source]
    marks = []
    for line in range(span.line, span.end_line + 1):
        row = line - source.first_line
        if not 0 <= row < len(source.lines):
            continue
        text = source.lines[row]
        start = span.column if line == span.line else len(text) - len(text.lstrip())
        end = span.end_column if line == span.end_line else len(text)
        if end > start:
            marks.append((pane, row, max(0, start - depth), end - depth))
    return marks


def key_of_line(span: Span | None) -> list[str]:
    """Returns the keys that link a row with its source line."""
    return [] if span is None else [f"l{span.source}:{span.line}"]
