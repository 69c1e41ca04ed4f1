"""`see.trace`: the user's source beside the jaxpr that grows while it runs."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import Any

from minijax_lab.explain.recording import span_text
from minijax_lab.explain.statements import is_plain_statement
from minijax_lab.explain.trace import (
    MOST_NAMES,
    LineRuns,
    Name,
    TraceRecording,
    TraceStep,
    record_trace,
)
from minijax_widgets.code import CodePanes, code_panes, dedented, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.values_strip import Flow, Strip, reduced
from minijax_widgets.view import (
    NOTHING,
    WIDTH,
    View,
    cut,
    shortened,
    shows,
    with_options,
)

# Of the product of two matrices, row by column.
PRODUCT = "(((1,), (0,)), ((), ()))"
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
    ast.Pow: "**",
    ast.Mod: "%",
    ast.FloorDiv: "//",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}


@with_options
def trace(
    function: Callable[..., Any],
    *args: Any,
    values: bool | None = None,
    **kwargs: Any,
) -> TraceView:
    """Shows how `function` is traced on the given arguments, step by step.

    Each step is an equation that was written, with the expression that wrote it, or a
    line that ran in Python only. What the function prints is part of the recording; an
    exception that it raises is shown where it happened, and is not raised again.

    While a function is traced its arrays have no values. So the view also runs a cheap
    program, one of at most 200 equations, four million numbers and thirty million steps
    of arithmetic (on large arrays, 60 different operations). The cells below then show
    what each equation reads and makes: the numbers of arrays of at most 32 rows and
    columns, and the means of blocks of larger ones. `values=True` runs any program,
    with its effects, and `values=False` none. Raises TypeError if a function has an
    argument `values` of its own that is given by name (pass a lambda), and for
    `values=True` with an argument that has no value.
    """
    return TraceView(record_trace(function, *args, values=values, **kwargs))


@shows("trace")
class TraceView(View):
    """Source on the left, jaxpr on the right, live names below."""

    recording: TraceRecording

    @functools.cached_property
    def jaxpr(self) -> JaxprView:
        """The jaxpr that was written."""
        return JaxprView(self.recording.jaxpr)

    @functools.cached_property
    def runs(self) -> dict[tuple[int, int], LineRuns]:
        """How often each line ran."""
        return {(runs.source, runs.line): runs for runs in self.recording.lines}

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline, the source with `py` lines, and the equations."""
        record = self.recording
        source_rows: list[str] = []
        for source in record.sources:
            source_rows += self.source_rows(source.id)
        steps = [
            self.row(step, number == record.telling)
            for number, step in enumerate(record.steps)
            if step.kind in ("equation", "print", "error", "leak")
        ]
        constants = [
            cut(f"  constant {c.variable}:{c.text} is {c.name}", WIDTH)
            for c in record.constants
        ]
        return "\n".join(
            [
                *split_headline(record.headline),
                *shortened(source_rows, full, first=25),
                *constants,
                *shortened(steps, full),
            ]
        )

    def source_rows(self, number: int) -> list[str]:
        """Returns a source's lines, those that ran in Python only marked `py`."""
        source = self.recording.sources[number]
        rows = []
        for offset, line in enumerate(dedented(source.lines)):
            place = source.first_line + offset
            left = f"{place:>3} {self.gutter(number, place):<4} {line}"
            if offset == self.first_code_line(source.lines) and number == 0:
                names = [name_in_words(name) for name in self.recording.arguments]
                left = f"{left:42} {', '.join(names)}"
            rows.append(cut(left.rstrip(), WIDTH))
        return rows

    def first_code_line(self, lines: list[str]) -> int:
        """Returns the position of the line with `def`, behind any decorators."""
        for position, line in enumerate(lines):
            if not line.lstrip().startswith("@"):
                return position
        return 0

    def gutter(self, source: int, line: int) -> str:
        """Returns what stands beside a line: `py`, or how often it ran."""
        runs = self.runs.get((source, line))
        if runs is None:
            return ""
        if runs.equations == 0:
            text = self.recording.sources[source].lines
            first = self.recording.sources[source].first_line
            if is_plain_statement(text[line - first].strip()):
                return ""
            return "py"
        return f"x{runs.runs}" if runs.runs > 1 else ""

    def row(self, step: TraceStep, telling: bool) -> str:
        """Returns one step's row of the text twin."""
        mark = ">" if telling else " "
        left = f"{mark} {place(step)} {self.expression(step)}"
        return cut(f"{left:36} {self.what(step)}".rstrip(), WIDTH)

    def expression(self, step: TraceStep) -> str:
        """Returns the expression of a step: an operator for a binary operation."""
        text = span_text(self.recording.sources, step.span)
        if step.kind == "print":
            return "prints"
        return operator_of(text) or cut(text, 24)

    def what(self, step: TraceStep) -> str:
        """Returns what a step did, in a few words."""
        if step.kind == "equation":
            if step.equation is None:
                return f"{step.label}, of a program in between"
            return self.jaxpr.short(self.recording.jaxpr.equations[step.equation])
        if step.kind == "leak":
            return step.label
        if step.kind == "error":
            return f"{step.label}: {first_line(step.text)}"
        if step.kind == "print":
            return " / ".join(step.text.strip().splitlines())
        return step.text

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture."""
        record = self.recording
        sources = code_panes(record.sources)
        self.mark_lines(sources)
        born: dict[int, int] = {}
        for number, step in enumerate(record.steps):
            if step.equation is not None:
                born.setdefault(step.equation, number)
        program = Pane("jaxpr", self.program_rows(born), kind="listing")
        steps = []
        # The names of each running function, the innermost last.
        running = [{name.name: name for name in record.arguments}]
        # Whose source each of them has, and the last names of each source: a rule of a
        # function that has ended writes equations at the lines of that function.
        owners = [0]
        last: dict[int, dict[str, Name]] = {}
        for number, step in enumerate(record.steps):
            called = step.kind == "call"
            del running[max(1, step.depth + (not called)) :]
            del owners[len(running) :]
            while len(running) <= step.depth:
                # A lambda sees the names around it.
                running.append({} if called else dict(running[-1]))
                owners.append(step.span.source if step.span else owners[-1])
            for name in step.names:
                if name.depth < len(running):
                    running[name.depth][name.name] = name
            last[owners[-1]] = live = running[-1]
            if step.span is not None and step.span.source != owners[-1]:
                live = last.get(step.span.source, {})
            on = [] if step.equation is None else [f"e{step.equation}"]
            if step.equation is not None:
                results = record.jaxpr.equations[step.equation].results
                on += [f"v{result}" for result in results]
            if step.span is not None:
                on.append(f"s{step.span.source}:{step.span.line}")
            newest = list(itertools.islice(reversed(live.values()), MOST_NAMES))
            shown = [
                (name.name, value_in_words(name), name.traced)
                for name in reversed(newest)
            ]
            steps.append(
                FrameStep(
                    self.label(step),
                    self.detail(step, number),
                    on,
                    mark_of(sources, step.span, first_pane=0),
                    shown,
                    look="error" if step.kind in ("error", "leak") else "",
                )
            )
        types = {variable.name: variable.type for variable in record.jaxpr.variables}
        holds = {
            f"{n}:{types[n]}": (n, rows)
            for n, rows in record.values.items()
            if not reduced(types[n], rows)
        }
        steps_of = [self.flow(step) for step in record.steps]
        known = dict(record.values)
        for text in {read for flow in steps_of for read in flow.reads} - types.keys():
            with contextlib.suppress(ValueError):  # a literal that is no number
                known[text] = [[float(text.partition(":")[0])]] if record.values else []
        flows = Strip(steps_of, known, types)
        strip = flows.panes(record.no_values, record.unasked)
        panes = [*sources.panes, program, *strip]
        steps = steps or [FrameStep("", NOTHING)]
        return self.picture(panes, steps, record.telling, live="names", holds=holds)

    def flow(self, step: TraceStep) -> Flow:
        """Returns what a step reads and makes, of the arrays that have values."""
        jaxpr = self.recording.jaxpr
        equation = jaxpr.equations[step.equation] if step.equation is not None else None
        if equation is None:
            return Flow(why="no values: this step runs in Python only, while tracing")
        if equation.parent is not None:
            return Flow(why="values inside of an inner program are not recorded")
        names = [
            jaxpr.variables[operand].name if isinstance(operand, int) else operand
            for operand in equation.operands
        ]
        made = [jaxpr.variables[result].name for result in equation.results]
        product = equation.parameters.get("dimension_numbers") == PRODUCT
        if product:
            left, right = (self.recording.values.get(name, []) for name in names)
            product = left != [] and len(left[0]) == len(right)
        return Flow(names, equation.primitive, made, product=product)

    def mark_lines(self, sources: CodePanes) -> None:
        """Writes `py`, and how often a line ran, behind the line numbers."""
        for number, position in sources.numbers.items():
            first = self.recording.sources[number].first_line
            for offset, row in enumerate(sources.panes[position].rows):
                gutter = self.gutter(number, first + offset)
                if gutter == "py":
                    row.look = "py"
                row.cells[0] = f"{gutter} {first + offset}".strip()

    def program_rows(self, born: dict[int, int]) -> list[Row]:
        """Returns the printed jaxpr; each equation is there from its step on."""
        rows = self.jaxpr.rows()
        last = max(0, len(self.recording.steps) - 1)
        for row in rows:
            row.go, equation = None, row.go
            if equation is not None:
                row.at = row.go = born.get(equation, last)
            row.cells = row.cells[:1] + row.cells[2:]
        if rows and not self.recording.error:
            rows[-1].at = last if rows[-1].go is None else rows[-1].at
        for constant in reversed(self.recording.constants):
            text = [
                Piece("constant ", "constant"),
                Piece(f"{constant.variable}:{constant.text}", "dash"),
                Piece(f" is {constant.name}", "constant"),
            ]
            rows.insert(0, Row([text]))
        return rows

    def label(self, step: TraceStep) -> str:
        """Returns the word for the bar."""
        return {"py": "Python only", "call": f"call {step.label}"}.get(
            step.kind, step.label
        )

    def detail(self, step: TraceStep, number: int) -> str:
        """Returns a sentence about a step."""
        text = span_text(self.recording.sources, step.span)
        where = f"line {step.span.line}: {text}" if step.span else "no line of yours"
        if step.kind == "py":
            key = (step.span.source, step.span.line) if step.span else (-1, -1)
            runs = self.runs.get(key)
            times = f", {runs.runs} times" if runs is not None and runs.runs > 1 else ""
            return (
                f"{where}  |  ran in Python while tracing{times}; the program knows "
                "nothing of it"
            )
        if step.kind == "call":
            return f"{step.label} is called; Python goes into it as usual"
        if step.kind == "print":
            return f"{where}  |  prints, once, while tracing:\n{step.text.rstrip()}"
        if step.kind == "leak":
            return f"{where}  |  {step.label}\n{step.text}"
        if step.kind == "error":
            return f"{where}  |  {step.label}\n{in_short(step.text)}"
        if step.equation is None:
            return f"{where}  |  {step.label}, of a program in between"
        equation = self.recording.jaxpr.equations[step.equation]
        told = f"{where}  |  {self.jaxpr.short(equation)}"
        return f"{told}  |  {equation.meaning}" if equation.meaning else told


@functools.lru_cache(maxsize=4096)
def operator_of(text: str) -> str:
    """Returns the operator of a binary operation, "" for another expression."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if isinstance(tree, (ast.BinOp, ast.AugAssign)):
        return OPERATORS.get(type(tree.op), "operator")
    if isinstance(tree, ast.Compare):
        return OPERATORS.get(type(tree.ops[0]), "compare")
    return ""


def place(step: TraceStep) -> str:
    """Returns where a step happened: `3:11-21`, or `3` for several lines."""
    span = step.span
    if span is None:
        return "-"
    if span.end_line != span.line:
        return f"{span.line}-{span.end_line}"
    return f"{span.line}:{span.column}-{span.end_column}"


def name_in_words(name: Name) -> str:
    """Returns for example `x = a:f32[2]`."""
    return f"{name.name} = {value_in_words(name)}"


def value_in_words(name: Name) -> str:
    """Returns what a name holds; of a tracer never a number, since it has none."""
    return f"{name.variable}:{name.text}" if name.variable else name.text


def in_short(message: str) -> str:
    """Returns what went wrong and what to write instead: not where, which is lit."""
    lines = message.strip().splitlines()
    kept = [line for line in lines[1:] if line.startswith("Write ")]
    return "\n".join([*lines[:1], *kept])


def first_line(text: str) -> str:
    """Returns a text's first line."""
    return text.strip().partition("\n")[0]


def split_headline(text: str) -> list[str]:
    """Returns the headline in lines of at most 100 columns."""
    if len(text) <= WIDTH:
        return [text]
    at = text.rfind("; ", 0, WIDTH)
    return [text] if at < 0 else [text[: at + 1], f"  {text[at + 2 :]}"]
