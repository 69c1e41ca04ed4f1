"""`see.why`: the story of an exception, or of an equation."""

from __future__ import annotations

import itertools
from typing import Any

from minijax.core.jit import JitFunction
from minijax_lab.explain.cache import latest
from minijax_lab.explain.recording import span_text
from minijax_lab.explain.why import (
    Moment,
    WhyRecording,
    first_paragraph,
    last_exception,
    record_why,
)
from minijax_lab.explain.why_compiled import why_call_compiled, why_compiled
from minijax_widgets.cache_view import CacheView
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.view import WIDTH, View, cut, shows


def why(subject: Any = None) -> WhyView:
    """Explains an exception, an equation, or why a jitted function was compiled again.

    For an exception the view shows where the tracer was made and where it was used, the
    rule that was broken, what to write instead, and the program up to there. For an
    equation (one of `make_jaxpr(f)(x).eqns`) it shows the user's line, and the rules of
    the transformations that wrote it, if they were recorded
    (`minijax_lab.explain.causes.recording`). `see.jaxpr(f, x)` records them, and
    `see.jaxpr(f, x).why(3)` explains its third equation. For a jitted function, or for
    the view that `see.cache(f)` returned, which knows the lines of calls, it shows what
    made the last program necessary, by the leaf's path, and what to write instead.
    Without an argument it explains the last exception that was shown, or else the last
    time that a function watched by `see.cache` was compiled again. Raises LookupError
    if there is neither.
    """
    watch = latest.get("watch")
    if subject is None and watch is not None and last_exception() is None:
        return WhyView(why_call_compiled(watch.recording()))
    if isinstance(subject, CacheView):
        return WhyView(why_call_compiled(subject.recording))
    if isinstance(subject, JitFunction):
        return WhyView(why_compiled(subject))
    return WhyView(record_why(subject))


@shows("why")
class WhyView(View):
    """The places, the program, the rule, and the line to write."""

    recording: WhyRecording

    def text(self, full: bool = False) -> str:
        """Returns the story in lines of at most 100 columns."""
        record = self.recording
        rows = []
        for number, moment in enumerate(record.moments):
            mark = ">" if number == record.telling else " "
            rows.append(cut(f"{mark} {self.moment(moment)}", WIDTH))
        if record.program is not None:
            view = JaxprView(record.program)
            if record.hidden:
                rows.append(f"  ... {record.hidden:,} earlier equations")
            rows += [
                cut(f"    {view.short(eqn)}", WIDTH)
                for eqn in record.program.equations
                if eqn.parent is None
            ]
        said = first_paragraph(record.message)
        failed = record.headline.startswith("why: ")
        if failed and said and not record.rule.startswith(said[:40]):
            rows += wrapped("says: ", said)
        rows += [
            f"{'shapes: ' if not n else '        '}{t}"
            for n, t in enumerate(record.shapes)
        ]
        rows += wrapped("rule: ", record.rule)
        if record.repaired:
            rows.append(f"{self.repaired_title}: {record.repaired}")
        if record.instead:
            rows += wrapped("write: ", record.instead.removeprefix("Write "))
        return "\n".join([record.headline, *rows])

    @property
    def repaired_title(self) -> str:
        """Returns what stands before the repaired line."""
        at = self.recording.repaired_at
        return f"your line {at}" if at else "your line"

    def moment(self, moment: Moment) -> str:
        """Returns one place of the story."""
        where = ""
        if moment.span is not None:
            text = span_text(self.recording.sources, moment.span)
            where = f"{moment.span.line}: {text}"
        if moment.label in ("order", "result"):
            return f"{moment.label:6} {moment.text}"
        if moment.label == "rule" and moment.span is not None:
            return f"{moment.label:6} {moment.text}: {text}"
        return f"{moment.label:6} {where:40} {moment.text}".rstrip()

    def frame(self) -> Frame:
        """Returns the picture: the source with its marks, the program, the advice."""
        record = self.recording
        spans = [moment.span for moment in record.moments if moment.span is not None]
        sources = code_panes(record.sources, spans or None)
        panes = list(sources.panes)
        if record.program is not None:
            view = JaxprView(record.program)
            rows = view.rows()
            for row in rows:
                row.go = None
            panes.append(Pane("the program until then", rows, kind="listing"))
        told: list[Row] = []
        details: list[str] = []
        for number, moment in enumerate(record.moments):
            story = [Piece(moment.text)]
            details.append(moment.text)
            if moment.span is not None:
                where = f"line {moment.span.line}: "
                text = span_text(record.sources, moment.span)
                what = Piece(f", {moment.text}" if moment.text else "")
                story = [Piece(where), Piece(text, "code-text"), what]
                details[-1] = f"{where}{text}  |  {moment.text}"
            told.append(Row([moment.label, story], keys=[f"m{number}"], go=number))
        if record.shapes:
            told.append(Row(["shapes", marked_sizes(*record.shapes)]))
        if not any(moment.label == "rule" for moment in record.moments):
            told.append(Row(["rule", with_code(record.rule)]))
        if record.repaired:
            line = Piece(record.repaired, "code-text")
            told.append(Row([[Piece(self.repaired_title, "strong")], [line]]))
        if record.instead:
            instead = record.instead.removeprefix("Write ")
            told.append(Row([[Piece("write", "strong")], with_code(instead)]))
        panes.append(Pane("", told, kind="prose", wide=True))
        steps = []
        span = None
        users = spans[0] if spans else None  # the user's line
        for number, moment in enumerate(record.moments):
            failed = number == record.telling and record.headline.startswith("why: ")
            detail = first_paragraph(record.message) if failed else details[number]
            # A moment without a place belongs to the place of the one before.
            span = moment.span or span
            marks = mark_of(sources, span, first_pane=0)
            if not record.headline.startswith("why: ") and span != users:
                marks += mark_of(sources, users, first_pane=0)
            look = "error" if failed else ""
            on = [f"m{number}"]
            steps.append(FrameStep(moment.label, detail, on, marks, look=look))
        if not steps:
            steps.append(FrameStep("", record.message))
        return self.picture(panes, steps, record.telling)


def marked_sizes(shapes: str, signs: str) -> list[Piece]:
    """Returns shapes as code, the sizes above the signs marked."""
    parts = itertools.groupby(
        zip(shapes, signs.ljust(len(shapes)), strict=True), key=lambda pair: pair[1]
    )
    return [
        Piece(
            "".join(letter for letter, _ in part),
            "changed code-text" if sign == "^" else "code-text",
        )
        for sign, part in parts
    ]


def with_code(text: str) -> list[Piece]:
    """Returns a sentence whose parts between backticks are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [Piece(text)]
    pieces = [Piece(p, "code-text" if i % 2 else "") for i, p in enumerate(parts)]
    return [piece for piece in pieces if piece.text]


def wrapped(label: str, text: str) -> list[str]:
    """Returns a paragraph as lines of at most 100 columns behind a label."""
    lines: list[str] = []
    line = label
    for word in " ".join(text.split()).split(" "):
        if len(line) + len(word) + 1 > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * len(label)
        line += word + " "
    lines.append(line.rstrip())
    return lines
