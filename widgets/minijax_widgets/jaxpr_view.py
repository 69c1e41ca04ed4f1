"""`see.jaxpr`: the printed jaxpr, each variable linked to its definition and uses.

The left column is the printer's text, letter for letter. The right one gives, for each
equation, the user's line and what the primitive does; the source stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from minijax.core.language import ClosedJaxpr, Jaxpr
from minijax_lab.explain import foreign
from minijax_lab.explain.jaxpr import (
    Equation,
    JaxprRecording,
    Line,
    Piece,
    is_path,
    record_call,
    record_jaxpr,
)
from minijax_widgets import frame as picture
from minijax_widgets.code import code_panes, key_of_line, mark_of
from minijax_widgets.view import NOTHING, WIDTH, View, cut, shortened, shows

# Above this many equations, those of one source line fold into a group.
MANY = 300
# Parameters of more letters, or on lines of their own, stand behind `...`.
MOST_LETTERS = 22
# A group of more than this opens in parts, so that a page never draws them all.
PART = 200
PARTS = {
    "backward": "of the backward pass",
    "kept": "kept for the backward pass, which reads it",
}
NEXT_PARAMETER = re.compile(r"(?= \w+=)")
# A line of parameters that carries no program.
PARAMETER = re.compile(r"\s*\w+=[^{}]*")
# What follows a literal: `2.0:f32[]`.
# Where a rule stands: `view.why(n)` tells it, a line of detail would be too long.
PLACE = re.compile(r" \([^()]*:\d+\)")
TYPE_OF_LITERAL = re.compile(r"(?<=[\w.)]):(?:~?[a-z]+\d+|bool)\w*\[[^\]]*\]")


def jaxpr(function: Callable[..., Any] | Any, *args: Any, **kwargs: Any) -> View:
    """Shows a jaxpr, or that of `function` traced on the given arguments.

    `args` and `kwargs` are the function's own; arrays and `ShapeDtypeStruct`s serve
    alike, since only shapes and types are looked at. A jaxpr may be minijax's or JAX's
    own. With two jaxprs the view shows what changed from the first to the second.
    `.graph()` of the view draws the same equations as a graph.
    Raises TypeError for arguments beside a jaxpr, and what tracing raises.
    """
    if is_jaxpr(function):
        if len(args) == 1 and is_jaxpr(args[0]) and not kwargs:
            from minijax_widgets.difference_view import difference

            return difference(function, args[0])
        if args or kwargs:
            raise TypeError(
                "see.jaxpr got a jaxpr and arguments; a jaxpr is traced already, so "
                "pass it alone, or pass the function with its arguments."
            )
        return JaxprView(record_jaxpr(function))
    if not callable(function):
        raise TypeError(
            "see.jaxpr takes a function and its arguments, or a jaxpr, and got "
            f"{type(function).__name__} first."
        )
    return JaxprView(record_call(function, args, kwargs))


def is_jaxpr(value: Any) -> bool:
    """Whether `value` is a jaxpr, of minijax or of JAX."""
    return isinstance(value, (ClosedJaxpr, Jaxpr)) or foreign.is_jaxpr(value)


@shows("jaxpr")
class JaxprView(View):
    """A jaxpr as a table in a notebook, as rows of text in a terminal."""

    recording: JaxprRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and one row for each equation, at most 100 columns."""
        record = self.recording
        rows = [self.row(equation) for equation in record.equations]
        return "\n".join([record.headline, *shortened(rows, full)])

    def graph(self, around: int | None = None) -> Any:
        """Returns the equations as a graph, in boxes that open and close.

        `around` is the number of an equation whose boxes are open at first (the telling
        one by default). Graphviz lays it out, which comes with `pip install
        pygraphviz`; without it a table says what flows.
        """
        from minijax_widgets.graph_view import GraphView

        return GraphView(self.recording, around)

    def why(self, step: int | None = None) -> View:
        """Returns the story of an equation: your line, and the rules that wrote it.

        `step` counts the equations from 1 on, as the player does; by default the one
        that is shown first. Raises IndexError if there is no such equation.
        """
        from minijax_lab.explain.why import why_recorded
        from minijax_widgets.why_view import WhyView

        if not isinstance(step, int | None):
            raise TypeError(
                f"why takes the number of an equation, from 1 on, and got {step!r}."
            )
        number = self.recording.telling if step is None else step - 1
        return WhyView(why_recorded(self.recording, number))

    def row(self, equation: Equation) -> str:
        """Returns one equation's row of the text twin."""
        mark = ">" if equation.id == self.recording.telling else " "
        left = f"{mark} {'  ' * self.depth(equation)}{self.short(equation)}"
        line = str(equation.span.line) if equation.span else ""
        words = cut(equation.meaning, 26)
        uses = self.uses_in_words(equation)
        return cut(f"{cut(left, 46):46} {line:>3}  {words:26} {uses}".rstrip(), WIDTH)

    def depth(self, equation: Equation) -> int:
        """Returns how many programs an equation stands inside of."""
        depth = 0
        while equation.parent is not None:
            depth += 1
            equation = self.recording.equations[equation.parent]
        return depth

    def name(self, operand: int | str) -> str:
        """Returns an operand as printed: a variable's name or a literal."""
        if isinstance(operand, int):
            return self.recording.variables[operand].name or "?"
        return operand

    def short(self, equation: Equation) -> str:
        """Returns an equation with its parameters cut short."""
        variables = self.recording.variables
        results = " ".join(
            f"{variables[r].name}:{variables[r].type}" for r in equation.results
        )
        # A called program's name tells most; the rest stand in the printed order.
        printed = sorted(equation.printed, key=lambda name: name != "name")
        parameters = [f"{name}={equation.parameters[name]}" for name in printed]
        told = ""
        if parameters:
            told = f"[{parameters[0]}{' ...' if len(parameters) > 1 else ''}]"
        operands = " ".join(self.name(operand) for operand in equation.operands)
        return f"{results or '_'} = {equation.primitive}{told} {operands}"

    def uses_in_words(self, equation: Equation) -> str:
        """Returns who reads an equation's results, by the names of what they make."""
        record = self.recording
        readers: list[str] = []
        returned = False
        for result in equation.results:
            returned = returned or record.variables[result].returned
            for use in record.variables[result].uses:
                made = record.equations[use].results
                name = self.name(made[0]) if made else record.equations[use].primitive
                if name not in readers:
                    readers.append(name)
        said = [self.label(operand) for operand in self.inputs_of(equation)]
        said = [f"reads {', '.join(said)}"] if said else []
        said += [f"used by {', '.join(readers)}"] if readers else []
        if returned:
            said.append("returned")
        return "; ".join(said) or "not used"

    def label(self, operand: int) -> str:
        """Returns what an input is called in the user's call."""
        return self.recording.variables[operand].label

    def inputs_of(self, equation: Equation) -> list[int]:
        """Returns the inputs that an equation reads and that lead into a tree."""
        found = [o for o in equation.operands if isinstance(o, int)]
        return [o for o in dict.fromkeys(found) if is_path(self.label(o))]

    def inputs(self) -> picture.Pane | None:
        """Returns the inputs by their names, where letters alone tell too little."""
        named = [v for v in self.recording.variables if v.label]
        if len(named) <= 4 and not any(is_path(v.label) for v in named):
            return None
        rows = [
            picture.Row(
                [
                    [picture.Piece(v.name, "constant", f"v{v.id}", True)],
                    [picture.Piece(v.label, "strong", f"v{v.id}")],
                    [picture.Piece(v.type, "type")],
                ],
                keys=[f"e{use}" for use in v.uses],
                go=v.uses[0] if v.uses else None,
            )
            for v in named
        ]
        return picture.Pane("inputs", rows, below=True)

    def detail(self, equation: Equation) -> str:
        """Returns all that is known about an equation, as a few sentences."""
        parts = [self.short(equation)]
        if equation.meaning:
            parts.append(equation.meaning)
        if equation.part:
            parts.append(PARTS[equation.part])
        if equation.span is not None:
            span = equation.span
            source = self.recording.sources[span.source]
            text = self.recording.span_text(equation)
            parts.append(f"{source.file}, line {span.line}: {text}")
        parts.append(self.uses_in_words(equation))
        if equation.rules:
            parts.append(PLACE.sub("", equation.story))
        for operand in self.inputs_of(equation):
            parts.append(f"{self.name(operand)} is {self.label(operand)}")
        told = "  |  ".join(parts)
        named = [f"{n} = {t}" for n, t in equation.parameters.items() if t != "None"]
        if named:
            told += "\n" + "   ".join(named)
        return told

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> picture.Frame:
        """Returns the picture: the program, and the source that made it."""
        record = self.recording
        spans = [e.span for e in record.equations if e.span is not None]
        sources = code_panes(record.sources, spans)
        program = picture.Pane("jaxpr", self.rows(), kind="listing")
        # The program comes first; the source panes follow in their order.
        panes = [program, *sources.panes]
        inputs = self.inputs()
        if inputs is not None:
            panes.append(inputs)
        steps = []
        for equation in record.equations:
            on = [f"e{equation.id}", *(f"v{r}" for r in equation.results)]
            marks = mark_of(sources, equation.span, first_pane=1)
            step = picture.FrameStep(
                equation.primitive, self.detail(equation), on, marks
            )
            steps.append(step)
        return self.picture(
            panes,
            steps or [picture.FrameStep("", NOTHING)],
            record.telling,
            only=bool(steps),
            text=record.text,
        )

    def rows(self) -> list[picture.Row]:
        """Returns the printed lines as rows; the lines of an inner program fold."""
        record = self.recording
        entries = self.entries()
        if len(record.equations) <= MANY:
            return [self.line(lines, 0) for lines in entries]
        rows: list[picture.Row] = []
        last_line: int | None = -1
        inside = total = 0  # equations of this group so far, and in all
        for lines in entries:
            line = lines[0]
            if line.equation is None:
                rows.append(self.line(lines, 0))
                continue
            equation = record.equations[line.equation]
            if self.opens(line, equation) and equation.parent is None:
                here = equation.span.line if equation.span is not None else None
                if here != last_line:
                    last_line, inside = here, 0
                    total = self.group_size(equation.id, here)
                    rows.append(self.group(equation.id, here, total))
                if total > PART and inside % PART == 0:
                    last = min(inside + PART, total)
                    rows.append(
                        picture.Row(
                            [f"{inside + 1:,} to {last:,}"],
                            look="group",
                            go=equation.id,
                            depth=1,
                            folded=True,
                        )
                    )
                inside += 1
            rows.append(self.line(lines, 2 if total > PART else 1))
        return rows

    def entries(self) -> list[list[Line]]:
        """Returns the lines of each row.

        All of an equation are one row, and where it carries programs, the lines of
        other parameters with the bracket that closes them.
        """
        found: list[list[Line]] = []
        for line in self.recording.lines:
            number = line.equation
            if found and number is not None and found[-1][0].equation == number:
                text = "".join(piece.text for piece in line.pieces)
                if not self.recording.equations[number].programs or (
                    is_parameter(found[-1][-1])
                    and (is_parameter(line) or text.lstrip().startswith("]"))
                ):
                    found[-1].append(line)
                    continue
            found.append([line])
        return found

    def group_size(self, first: int, line: int | None) -> int:
        """Returns how many equations in a row one source line made, from `first` on."""
        count = 0
        equations = self.recording.equations
        for number in range(first, len(equations)):
            equation = equations[number]
            if equation.parent is not None:
                continue
            here = equation.span.line if equation.span else None
            if here != line:
                break
            count += 1
        return count

    def group(self, first: int, line: int | None, count: int) -> picture.Row:
        """Returns the row over the equations that one source line made in a row."""
        record = self.recording
        where = f"line {line}" if line is not None else "no line of yours"
        equations = "1 equation" if count == 1 else f"{count:,} equations"
        text = f"{where}: {equations}"
        told, keys = "", []
        span = record.equations[first].span
        if span is not None:
            source = record.sources[span.source]
            told = source.lines[span.line - source.first_line].strip()
            keys = key_of_line(span)
        return picture.Row(
            [text, "", told], keys=keys, look="group", go=first, folded=True
        )

    def line(self, lines: list[Line], depth: int) -> picture.Row:
        """Returns a printed line, or all those of one equation, with the rail."""
        line = lines[0]
        code = self.pieces(line)
        for more in lines[1:]:
            first, *rest = self.pieces(more)
            code += [replace(first, text=f"\n{first.text}"), *rest]
        if line.equation is None:
            return picture.Row([code])
        record = self.recording
        equation = record.equations[line.equation]
        if len(lines) > 1 and is_parameter(line):
            code = ending_apart(code)
        else:
            code = parameters_apart(code, equation.primitive)
        keys = [f"e{equation.id}"]
        if equation.span is not None:
            keys.append(f"l{equation.span.source}:{equation.span.line}")
        if not self.opens(line, equation):
            return picture.Row(
                [code], keys=keys[:1], go=equation.id, depth=depth, look=equation.part
            )
        where = str(equation.span.line) if equation.span else ""
        labels = [self.label(operand) for operand in self.inputs_of(equation)]
        told = ", ".join([*labels, equation.meaning])
        cells: list[Any] = [code, where, told]
        return picture.Row(
            cells, keys=keys, go=equation.id, depth=depth, look=equation.part
        )

    def opens(self, line: Line, equation: Equation) -> bool:
        """Says whether `line` is the one that defines the equation's results."""
        if not equation.results:
            return True
        return any(p.defines and p.variable in equation.results for p in line.pieces)

    def pieces(self, line: Line) -> list[picture.Piece]:
        """Returns a line's parts, the types apart, so that they can be hidden."""
        found: list[picture.Piece] = []
        before = ""  # the type of the variable that was just defined
        for piece in line.pieces:
            if piece.variable is not None:
                found.append(self.piece(piece))
                kind = self.recording.variables[piece.variable].type
                before = f":{kind}" if piece.defines else ""
                continue
            text = piece.text
            if before and text.startswith(before):
                found.append(picture.Piece(before, "type"))
                text = text[len(before) :]
            before = ""
            done = 0
            for literal in TYPE_OF_LITERAL.finditer(text):
                found.append(picture.Piece(text[done : literal.start()]))
                found.append(picture.Piece(literal.group(), "type"))
                done = literal.end()
            found.append(picture.Piece(text[done:]))
        return [piece for piece in found if piece.text]

    def piece(self, piece: Piece) -> picture.Piece:
        """Returns a part of a line; a variable knows its id."""
        if piece.variable is None:
            return picture.Piece(piece.text)
        variable = self.recording.variables[piece.variable]
        role = "value"
        if variable.role != "value":
            role = "constant"
        elif variable.returned:
            role = "batch"
        return picture.Piece(piece.text, role, f"v{piece.variable}", piece.defines)


def parameters_apart(code: list[picture.Piece], name: str) -> list[picture.Piece]:
    """Returns the pieces of an equation, long parameters as a piece of their own.

    The first parameter stays before it if it is short. Nothing changes where variables
    stand among the parameters: they belong to a program inside.
    """
    text = "".join(piece.text for piece in code)
    start = text.find(f"{name}[") + len(name) + 1
    end = closing(text, start) if start > len(name) else -1
    inside = text[start:end]
    if end < 0 or (len(inside) <= MOST_LETTERS and "\n" not in inside):
        return code
    first = NEXT_PARAMETER.split(inside, maxsplit=1)[0]
    if "\n" not in inside and len(first) < min(len(inside), MOST_LETTERS):
        start += len(first)
    before: list[picture.Piece] = []
    after: list[picture.Piece] = []
    at = 0
    for piece in code:
        stop = at + len(piece.text)
        if piece.key and at < end and stop > start:
            return code
        if at < start:
            before.append(replace(piece, text=piece.text[: start - at]))
        if stop > end:
            after.append(replace(piece, text=piece.text[max(0, end - at) :]))
        at = stop
    return [*before, picture.Piece(text[start:end], "params"), *after]


def is_parameter(line: Line) -> bool:
    """Whether a line holds a parameter and nothing else."""
    text = "".join(piece.text for piece in line.pieces)
    return PARAMETER.fullmatch(text) is not None


def ending_apart(code: list[picture.Piece]) -> list[picture.Piece]:
    """Returns lines of parameters as a piece of their own, before what closes them."""
    text = "".join(piece.text for piece in code)
    first = len(text) - len(text.lstrip())
    last = text.rfind("\n") + 1
    closes = text[last:].lstrip().startswith("]")
    end = text.index("]", last) if closes else len(text)
    found = [picture.Piece(text[:first]), picture.Piece(text[first:end], "params")]
    at = 0
    for piece in code:
        stop = at + len(piece.text)
        if stop > end:
            found.append(replace(piece, text=piece.text[max(0, end - at) :]))
        at = stop
    return found


def closing(text: str, start: int) -> int:
    """Returns where the bracket closes that opens before `start`, or -1."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if not depth:
            return place
    return -1
