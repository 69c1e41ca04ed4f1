"""`see.stages`: one function at every level, and what became of each line.

The picture has four columns: the user's lines, the equations, the StableHLO operations,
the kernels. Below it stand the texts of the four levels; what is selected in one is lit
in all.
"""

from __future__ import annotations

from typing import Any

from minijax_lab.explain.compiled import stands_for
from minijax_lab.explain.kernels import NO_KERNELS
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.stages import Stage, StagesRecording, record_stages
from minijax_lab.explain.stages_difference import stages_difference
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, in_parts
from minijax_widgets.stages_difference_view import StagesDifferenceView
from minijax_widgets.stages_scene import draw, told, told_of_code
from minijax_widgets.view import NOTHING, WIDTH, View, cut, shows, with_options

LONGEST = 160
# Instructions of one pass that are shown.
MOST_CHANGES = 40


@with_options
def stages(
    function: Any,
    *args: Any,
    target: str = "cpu",
    code: bool = False,
    passes: bool = False,
    beside: Any = None,
    **kwargs: Any,
) -> View:
    """Shows `function` as lines, equations, StableHLO and compiled kernels, linked.

    Args:
      function: any function of arrays, or a jaxpr of minijax or of JAX; it is traced
        and compiled, not run.
      args, kwargs: its arguments, arrays or `ShapeDtypeStruct`s.
      target: "cpu", "h100" or a slice of TPUs such as "tpu-v5e:2x2"; the last two need
        the extras `minijax[h100]` and `minijax[tpu]`, and no such machine.
      code: show each kernel's code as a fifth level: on the CPU LLVM's language, as XLA
        wrote it and as LLVM optimised it; for the H100 PTX. libtpu shows none.
      passes: show, below, what each of XLA's passes did to the selected line; the key
        `s` hides and shows it.
      beside: a second function of the same arguments, such as this one after an edit:
        what the edit changes at each level is shown. The difference of two views that
        are there already is `before.difference(after)`.

    A step is a line of yours: all that it became is lit. Instructions that XLA made on
    its own have rows of their own. Raises what tracing or compiling raises; ValueError
    for an unknown target.
    """
    if beside is None:
        return StagesView(record_stages(function, args, kwargs, target, code, passes))
    if code or passes:
        raise ValueError(
            f"see.stages: {'code' if code else 'passes'}=True shows one program, and "
            "beside= is a second one. Leave one of the two out."
        )
    before, after = (
        record_stages(each, args, kwargs, target) for each in (function, beside)
    )
    return StagesDifferenceView(stages_difference(before, after))


@shows("stages")
class StagesView(View):
    """Four levels, linked line by line."""

    recording: StagesRecording

    def difference(self, after: StagesView) -> StagesDifferenceView:
        """Shows what is different in another view, as of the function after an edit,
        or of the same function compiled for another target."""
        if not isinstance(after, StagesView):
            raise TypeError(
                "difference takes another view that see.stages gave, and got "
                f"{type(after).__name__}."
            )
        return StagesDifferenceView(stages_difference(self.recording, after.recording))

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns a row for each line with its equations and operations, and below the
        line of what differs what became of each."""
        record = self.recording
        rows = [cut(record.headline, WIDTH)]
        shown = record.stages if full else record.stages[:16]
        equations = record.compiled.jaxpr.equations
        below = []
        for number, stage in enumerate(shown):
            mark = ">" if number == record.telling else " "
            line = "-" if stage.span is None else str(stage.span.line)
            code = cut(record.line_text(stage) or "(no line of yours)", 34)
            names = " ".join(equations[e].primitive for e in stage.equations)
            made = " ".join(
                record.lowering.lines[o].operation for o in stage.operations
            )
            row = f"{mark} {line:>3} {code:34}  {cut(names, 24):24}  {made}"
            rows.append(cut(row.rstrip(), WIDTH))
            kernels = ", ".join(self.kernel_name(k) for k in stage.kernels)
            told = kernels or self.without_kernels(stage)
            below.append(cut(f"  line {line}: {told}", WIDTH))
        if len(shown) < len(record.stages):
            rows.append(f"  ... {len(record.stages) - len(shown)} more lines")
        program = record.compiled.program
        many = count_in_words(len(program.kernels), "kernel")
        rows.append("-- differs between machines --")
        moved = f"{size_in_words(program.bytes)} moved{stands_for(program.traffic)}"
        rows.append(f"{record.compiled.target}: {many}, {moved}")
        return "\n".join([*rows, *below, *self.code_rows(full)])

    def without_kernels(self, stage: Stage) -> str:
        """Returns what became of a line that no kernel stands under."""
        record = self.recording
        carried = {
            equation.id
            for equation in record.compiled.jaxpr.equations
            if equation.parent in stage.equations
        }
        lines = [
            str(each.span.line)
            for each in record.stages
            if each.span is not None and each.kernels and carried & {*each.equations}
        ]
        if not lines:
            return "nothing is left"
        return f"what it calls stands under line {' and line '.join(lines)}"

    def code_rows(self, full: bool) -> list[str]:
        """Returns a row for each kernel that has code of its own."""
        code = self.recording.code
        if code is None:
            return []
        rows = [cut(code.headline, WIDTH)]
        if code.note:
            rows.append(f"  {code.note}")
        shown = code.codes if full else code.codes[:12]
        rows += [cut(f"  {c.kernel}: {told_of_code(c)}", WIDTH) for c in shown]
        if len(shown) < len(code.codes):
            rows.append(f"  ... {len(code.codes) - len(shown)} more kernels")
        return rows

    def kernel_name(self, number: int) -> str:
        """Returns a kernel by its number and XLA's name."""
        program = self.recording.compiled.program
        name = program.instruction(program.kernels[number]).name.lstrip("%")
        return f"K{number + 1} {name}"

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture, and the texts of the four levels."""
        record = self.recording
        if not record.stages:
            return self.empty(NOTHING)
        spans = [stage.span for stage in record.stages if stage.span is not None]
        sources = code_panes(record.sources, spans)
        for stage_number, stage in enumerate(record.stages):
            if stage.span is not None and stage.span.source in sources.numbers:
                source = sources.sources[stage.span.source]
                pane = sources.panes[sources.numbers[stage.span.source]]
                row = pane.rows[stage.span.line - source.first_line]
                row.keys.append(f"g{stage_number}")
                row.go = stage_number
        home = {e: n for n, s in enumerate(record.stages) for e in s.equations}
        steps = []
        for number, stage in enumerate(record.stages):
            label = "no line" if stage.span is None else f"line {stage.span.line}"
            marks = mark_of(sources, None, first_pane=1)
            steps.append(FrameStep(label, self.detail(stage), [f"g{number}"], marks))
        scene = Pane(
            "",
            [],
            kind="scene",
            wide=True,
            scene=draw(record, 1080),
            middle=draw(record, 690),
            narrow=draw(record, 288),
        )
        texts = [
            self.jaxpr_pane(home),
            self.stable_pane(home),
            self.compiled_pane(home),
            *self.code_panes(),
            *self.passes_panes(home),
        ]
        return self.picture([scene, *sources.panes, *texts], steps, record.telling)

    def detail(self, stage: Stage) -> str:
        """Returns what a line became, and the rules that wrote it."""
        record = self.recording
        rules: dict[str, str] = {}
        for equation in stage.equations:
            rule = record.lowering.lowered[equation].rule
            if rule is not None:
                name = record.compiled.jaxpr.equations[equation].primitive
                rules.setdefault(name, f"{rule.path}:{rule.line}")
        wrote = ", ".join(f"{name} by {place}" for name, place in rules.items())
        said = told(record, stage)
        return f"{said}.\nlowered: {wrote}" if wrote else f"{said}."

    def jaxpr_pane(self, home: dict[int, int]) -> Pane:
        """Returns the equations as text."""
        record = self.recording.compiled.jaxpr
        rows = []
        for line in record.lines:
            text = cut("".join(piece.text for piece in line.pieces), LONGEST)
            rows.append(linked([text], line.equation, home))
        return Pane("jaxpr", in_parts(rows), kind="listing")

    def stable_pane(self, home: dict[int, int]) -> Pane:
        """Returns the StableHLO as text."""
        lines = self.recording.lowering.lines
        rows = [
            linked([cut(each.text, LONGEST)], each.equation, home) for each in lines
        ]
        return Pane("StableHLO", in_parts(rows), kind="listing")

    def compiled_pane(self, home: dict[int, int]) -> Pane:
        """Returns the compiled program as text, those of XLA's own marked as such."""
        record = self.recording.compiled
        module = record.program.module
        rows: list[Row] = []
        for computation in module.computations:
            name = "the program" if computation.entry else computation.name.lstrip("%")
            rows.append(Row([[Piece(name, "strong")]]))
            for number in computation.instructions:
                instruction = module.instructions[number]
                text = "  " + cut(module.line(instruction), LONGEST)
                inside = record.equations_of(number)
                row = linked([text], inside[0] if inside else None, home)
                row.keys = list(dict.fromkeys(f"g{home[e]}" for e in inside))
                if not inside and instruction.opcode not in NO_KERNELS:
                    row.cells = [[Piece(text, "constant")]]
                    row.tell = "XLA made this; it belongs to no equation."
                rows.append(row)
        return Pane(f"compiled for {record.target}", in_parts(rows), kind="listing")

    def code_panes(self) -> list[Pane]:
        """Returns the code of the kernels as text, a kernel folded into a row."""
        record, code = self.recording, self.recording.code
        if code is None:
            return []
        rows: list[Row] = []
        for number in range(len(record.compiled.program.kernels)):
            found = record.code_of(number)
            if found is None:
                continue
            homes = [n for n, s in enumerate(record.stages) if number in s.kernels]
            keys = [f"g{home}" for home in homes]
            title = f"{self.kernel_name(number)}: {told_of_code(found)}"
            rows.append(
                Row([title], keys, go=homes[0] if homes else None, folded=True,
                    look="group")
            )  # fmt: skip
            for name, text in (
                ("as XLA wrote it", found.written),
                ("as LLVM optimised it" if found.written else "", found.optimised),
            ):
                if text and name:
                    rows.append(Row([[Piece(name, "strong")]], keys, depth=1))
                lines = text.split("\n") if text else []
                rows += [Row([cut(line, LONGEST)], keys, depth=1) for line in lines]
        if not rows:
            said = code.note or "no kernel has code of its own: libraries are called"
            rows.append(Row([[Piece(said, "constant")]]))
        return [Pane("machine code", rows, kind="listing")]

    def passes_panes(self, home: dict[int, int]) -> list[Pane]:
        """Returns what XLA's passes changed, lit with the line that it was done to."""
        passes = self.recording.passes
        if passes is None:
            return []
        rows: list[Row] = []
        for each in passes.passes:
            touched = [("+", x) for x in each.added] + [("~", x) for x in each.altered]
            homes = [home[x.equation] for _, x in touched if x.equation in home]
            keys = [f"g{stage}" for stage in dict.fromkeys(homes)]
            counts = f"+{len(each.added)} ~{len(each.altered)} -{len(each.removed)}"
            rows.append(Row([f"{each.name}  {counts}"], keys, look="group"))
            for sign, line in touched[:MOST_CHANGES]:
                row = linked([cut(f"{sign} {line.text}", LONGEST)], line.equation, home)
                row.depth, row.look = 1, "add" if sign == "+" else ""
                rows.append(row)
            for name in each.removed[:MOST_CHANGES]:
                rows.append(Row([cut(f"- {name}", LONGEST)], depth=1, look="del"))
            hidden = max(0, len(touched) - MOST_CHANGES)
            hidden += max(0, len(each.removed) - MOST_CHANGES)
            if hidden:
                said = [Piece(f"... {hidden:,} more", "constant")]
                rows.append(Row([said], depth=1))
        title = "XLA's passes: + new, ~ changed, - gone"
        return [Pane(title, rows, kind="listing", key="s")]


def linked(cells: list[Any], equation: int | None, home: dict[int, int]) -> Row:
    """Returns a row that is lit with the line of its equation, and goes there."""
    if equation is None or equation not in home:
        return Row(cells)
    return Row(cells, keys=[f"g{home[equation]}"], go=home[equation])
