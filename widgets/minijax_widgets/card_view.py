"""`see.card`: a primitive's card; `see.primitives`: the table of all of them."""

from __future__ import annotations

from typing import Any

from minijax_lab.explain.cards import (
    FAMILIES,
    CardRecording,
    PrimitivesRecording,
    record_card,
    record_primitives,
)
from minijax_lab.explain.words import PHRASES
from minijax_widgets.card_scene import numbers_scene
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.view import View, cut, shows
from minijax_widgets.why_view import wrapped

SIGNS = {"holds": ("+", "tick"), "fails": ("x", "cross")}


def card(primitive: Any, target: str = "cpu") -> CardView:
    """Shows a primitive's card: meaning, derivative, block, checks as run, what it
    becomes.

    `primitive` is a name such as "sin", or the primitive itself. `target` is the
    machine that its example is compiled for, such as "h100" or "tpu-v5e:2x2"; the
    checks run here. Raises KeyError, with near names, for a primitive that does not
    exist, ValueError for such a target, and ModuleNotFoundError, with what to install,
    where its compiler is not there.
    """
    return CardView(record_card(primitive, target))


def primitives() -> PrimitivesView:
    """Shows all primitives by family: the periodic table, and index of the cards."""
    return PrimitivesView(record_primitives())


def way_of(told: str) -> str:
    """Returns the direction of a formula; "with" if it defines a name."""
    if told.startswith("d "):
        return "forwards"
    if told.startswith("ct_"):
        return "backwards"
    return "with" if " = " in told else ""


@shows("card")
class CardView(View):
    """One primitive: what it is, and what was checked."""

    recording: CardRecording

    def text(self, full: bool = False) -> str:
        """Returns the card; what compiled on this machine stands below its line."""
        record = self.recording
        rows = [f"  block    {record.path}, {len(record.block)} lines"]
        for told in record.derivative:
            way = way_of(told)
            head = "formula" if way.endswith("wards") else way
            rows += wrapped(f"  {head:9}", told)
        rows += [cut(f"  {name:8} {told}", 100) for name, told in record.rules]
        rows += [
            cut(f"  {check.name:32} {check.result}", 100) for check in record.checks
        ]
        if full:
            rows += ["", *record.block, "", record.example]
        rows += [cut(f"  {line}", 100) for line in record.stablehlo]
        if record.compiled:
            rows.append("-- differs between machines --")
            rows.append(
                cut(f"  XLA for {record.target}: {', '.join(record.compiled)}", 100)
            )
            rows += [
                f"  {check.name}: largest difference {check.difference:.1e}"
                for check in record.checks
                if check.difference is not None
            ]
        return "\n".join([cut(record.headline, 100), *rows])

    def drawn(self) -> list[Pane]:
        """Returns a picture of the example's numbers, where they are few."""
        record = self.recording
        if not record.inputs or not record.outputs:
            return []
        pane = Pane("what it does", [], kind="scene", below=True)
        pane.scene = numbers_scene(record.inputs, record.outputs)
        pane.narrow = numbers_scene(record.inputs, record.outputs, narrow=True)
        return [pane]

    def derivative(self) -> list[Pane]:
        """Returns the formulas of the derivative, where they are known."""
        rows = []
        for told in self.recording.derivative:
            role = "code-text" if " = " in told else ""
            rows.append(Row([way_of(told), [Piece(told, role)]]))
        return [Pane("derivative", rows, kind="prose", below=True)] if rows else []

    def frame(self) -> Frame:
        """Returns the picture: block on the left, facts on the right."""
        record = self.recording
        block = [Row([str(i), line]) for i, line in enumerate(record.block, start=1)]
        rows = [Row([[Piece("rules")], ""], look="head")]
        rows += [Row([name, told], depth=1) for name, told in record.rules]
        if record.checks:
            rows.append(Row([[Piece("checks, as run")], ""], look="head"))
        for check in record.checks:
            look = "miss" if check.result == "fails" else ""
            told = f" {check.result}" if check.result in SIGNS else check.result
            if check.difference is not None:
                near = check.difference
                by = "within" if check.result == "holds" else "off by"
                told += f", {by} {near:.2g}" if near else ", exactly"
            pieces = [Piece(told)]
            if check.result in SIGNS:
                letter, sign = SIGNS[check.result]
                pieces.insert(0, Piece(letter, f"sign {sign}"))
            rows.append(Row([check.name, pieces], depth=1, look=look))
        rows.append(Row([[Piece("compiled")], ""], look="head"))
        compiled = ", ".join(record.compiled) or "no example was compiled"
        machine = "CPU" if record.target == "cpu" else record.target
        rows.append(Row([machine, compiled], depth=1))
        if record.target == "cpu":
            call = f'see.card("{record.name}", target="h100")'
            rows.append(Row(["GPU, TPU", [Piece(call, "code-text")]], depth=1))
        example = [Row([line]) for line in record.example.splitlines()]
        if record.stablehlo:
            example.append(Row([[Piece("becomes StableHLO")]], look="head"))
        example += [Row([line], depth=1) for line in record.stablehlo]
        return self.picture(
            [
                Pane(f"block, {record.path}", block, kind="code"),
                *self.drawn(),
                *self.derivative(),
                Pane("example", example, below=True),
                Pane("", rows, kind="prose"),
            ],
            [FrameStep("", f"{record.name}, in {record.family}")],
        )


@shows("primitives")
class PrimitivesView(View):
    """A periodic table: a row for each family, a tile for each primitive."""

    recording: PrimitivesRecording
    # Where the cards are, as "cards/{}.html", for a page that has them beside it.
    links: str = ""

    def text(self, full: bool = False) -> str:
        """Returns for each family a line or more of each kind of derivative."""
        rows = []
        for family, names in self.recording.groups.items():
            rows.append(f"  {family}")
            for kind in LOOKS:
                line = start = f"    {kind:8}"
                for name in self.of_kind(names, kind):
                    if len(line) + len(name) + 1 > 100:
                        rows.append(line)
                        line = " " * len(start)
                    line += f" {name}"
                if line != start:
                    rows.append(line)
        return "\n".join([self.recording.headline, *rows])

    def of_kind(self, names: list[str], kind: str) -> list[str]:
        """Returns those primitives that are differentiated in one way."""
        kinds = self.recording.derivatives
        return [name for name in names if kinds[name] == kind]

    def frame(self) -> Frame:
        """Returns the picture: a row for each family, a tile in its kind's ink."""
        legend = [Piece(LEGEND[kind], f"{LOOKS[kind][0]} tile") for kind in LOOKS]
        rows = [Row([[Piece("a tile's ink: how it is differentiated")], legend])]
        steps: list[FrameStep] = []
        for family, names in self.recording.groups.items():
            tiles: list[Piece] = []
            for kind, (role, told) in LOOKS.items():
                for name in self.of_kind(names, kind):
                    link = self.links.format(name)
                    tiles.append(Piece(name, f"{role} tile", f"p{name}", link=link))
                    meaning = PHRASES.get(name, "")
                    detail = f"{name}: {meaning}" if meaning else name
                    detail += f'  |  {told}  |  see.card("{name}")'
                    steps.append(FrameStep(name, detail, [f"p{name}"]))
            label = [Piece(family, "strong"), Piece(" ")]
            if family in SIGNS_OF_FAMILIES:
                label.append(Piece("", f"sign {SIGNS_OF_FAMILIES[family]}"))
            label.append(Piece(f" {FAMILIES.get(family, '')}", "constant"))
            rows.append(Row([label, tiles]))
        telling = next((i for i, step in enumerate(steps) if step.label == "sin"), 0)
        return self.picture(
            [Pane("", rows, kind="tiles")], steps, telling, call="primitives"
        )


# The look of a tile, and what it means, for each kind of derivative.
LOOKS = {
    "linear": ("batch", "linear in an operand: backward mode transposes it"),
    "derived": ("value", "its derivative is made of linear ones"),
    "program": ("residual", "differentiated as the program inside of it is"),
    "forward": ("constant", "differentiated in forward mode only"),
    "none": ("constant", "no derivative, or always zero"),
}
LEGEND = {
    "linear": "linear in an operand",
    "derived": "made of linear ones",
    "program": "as the program inside",
    "forward": "in forward mode only",
    "none": "no derivative, or zero",
}
# What each family does to an array, as a drawn sign.
SIGNS_OF_FAMILIES = {
    "elementwise": "grid arrow grid",
    "shape": "wide arrow tall",
    "index": "grid open one close",
    "reduce": "grid arrow one",
    "linear algebra": "tall times wide arrow grid",
    "random": "die arrow grid",
    "programs": "program arrow grid",
    "devices": "grid exchange grid",
    "refs": "grid turn",
    "order": "grid later grid",
}
