"""Where the columns of the picture of `see.grad` stand, its steps and its keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import wrap

from minijax_lab.explain.backward_rows import GradSum
from minijax_lab.explain.residuals import Residual
from minijax_widgets.grad_bands import Band
from minijax_widgets.view import cut


@dataclass(frozen=True)
class Layout:
    """The places and widths of the columns, in pixels."""

    width: float
    label: float
    forward: float
    kept: float
    kept_width: float
    cotangent: float
    gradients: float
    indent: float
    scale: float
    side: float  # of the largest residual

    @property
    def wide(self) -> bool:
        """Whether there is room for formulas on both sides."""
        return self.width > 600


WIDE = Layout(1040, 30, 284, 358, 236, 676, 764, 22, 1.0, 56)
MIDDLE = Layout(690, 30, 188, 244, 164, 442, 518, 16, 0.8, 48)
NARROW = Layout(288, 60, 46, 80, 88, 200, 240, 4, 0.55, 54)


@dataclass
class Steps:
    """In which step a band is passed downwards and upwards, and the turn between.

    `again` is the step that the last one shows once more, with the finished picture.
    """

    down: dict[str, int] = field(default_factory=dict)
    up: dict[str, int] = field(default_factory=dict)
    sums: dict[tuple[str, str], int] = field(default_factory=dict)
    turn: int = 0
    again: int | None = None


def path_of(band: Band) -> str:
    """A prefix that keeps the names of a band's program apart from other programs'."""
    return band.key.rpartition(":")[0]


def residual_key(band: Band, residual: Residual) -> str:
    """The key of a residual's box."""
    return f"r{path_of(band)}/{residual.id}"


def sum_key(band: Band, found: GradSum) -> str:
    """The key of a sum of cotangents."""
    return f"s{path_of(band)}/{found.name}"


# A word of more letters may break.
LONG = 12


def folded(formulas: str, room: int) -> list[str]:
    """Returns formulas in at most two lines of so many letters."""
    if len(formulas) <= room:
        return [formulas]
    at = formulas.rfind(" ; ", 0, room + 1)
    if at >= 0:
        rest = formulas[at + 3 :]
        end = rest.rfind(" ; ", 0, room - 3)
        if len(rest) > room and end >= 0:
            rest = f"{rest[:end]} ; ..."
        if len(rest) <= room:
            return [formulas[: at + 2], rest]
    # A long word breaks behind an underscore; `wrap` knows only hyphens.
    words = [w.replace("_", "_-") if len(w) > LONG else w for w in formulas.split(" ")]
    lines = wrap(" ".join(words), room, max_lines=2, placeholder="...")
    return [line.replace("_-", "_") for line in lines]


def whole_or_less(remark: str, wide: float) -> str:
    """Returns the remark under a band's label, or less of it that is a whole phrase."""
    room = int(wide / 6.8)
    if len(remark) > room:
        remark = remark.removeprefix("the same ")
    which, sign, _ = remark.partition(": ")
    if len(remark) > room and sign and " of " in which:
        remark = which
    return cut(remark, room)
