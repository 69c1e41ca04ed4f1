"""How the grid of a kernel is drawn: arrays cut into blocks, a window that moves.

Each array is a rectangle of blocks; leading axes are a pile of cards, whose front card
is the one that the program is at. Blocks that were used are grey, `x2` stands on one
that was copied twice. The window with the corners is this program's block: it moves
from step to step; what of it lies outside of the array is hatched.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.kernel_facts import KernelRecording, Operand, Problem
from minijax_widgets.glyph import (
    CARD_STEP,
    LEAST_TEXT,
    Drawn,
    line,
    numeral,
    path,
    rect,
    stripes,
    text_width,
    words,
)
from minijax_widgets.scene import Scene
from minijax_widgets.view import cut

# An array is drawn with at most so many blocks along a side, the grid with twice that.
MOST_CELLS = 16
LEAST_CELL = 10.0
# How round the corners of a block are, and how a path goes around one.
ROUND = 1.5
CORNER = f"{ROUND} {ROUND} 0 0 1"
# The values of an array stand in its picture as numbers up to so many columns.
MOST_WRITTEN = 8
# A block far outside of its array is drawn at most so far from it.
MOST_BEYOND = 40.0
OUTSIDE = "outside of the array"
Parts = list[Drawn]
Sides = tuple[float, float, float, float]


@dataclass(frozen=True)
class Sizes:
    """How large a layout draws."""

    width: float
    longest: float
    shortest: float


WIDE = Sizes(900, 168, 30)
MIDDLE = Sizes(690, 168, 30)
LESS = Sizes(424, 150, 30)
NARROW = Sizes(288, 116, 28)


def kind_of(operand: Operand, program: int) -> str:
    """What happens to an operand's block at a program, in a word or two."""
    said = operand.kinds.get(program)
    if said is None:
        said = operand.kinds[program] = found_kind(operand, program)
    return said


def found_kind(operand: Operand, program: int) -> str:
    """The same, worked out."""
    if not operand.starts:
        return ""
    if operand.is_outside(program):
        return OUTSIDE
    if not operand.moved:
        return f"stays in {operand.space}"
    if operand.role == "input":
        if operand.again[program]:
            return "fetched again"
        return "fetched" if operand.moves[program] else "stays"
    if operand.again[program]:
        return "written back again"
    return "written back" if operand.moves[program] else "stays"


class Tiles:
    """How an array is cut for drawing: the last two axes as cells, others as cards."""

    def __init__(self, operand: Operand, sizes: Sizes, most: int) -> None:
        self.operand = operand
        shape = operand.shape
        self.rank = len(shape)
        self.rows_n = shape[-2] if self.rank > 1 else 1
        self.columns_n = shape[-1] if self.rank else 1
        # Elements of a cell along each of the two axes.
        self.tall_cell = self.cell(-2, most)
        self.wide_cell = self.cell(-1, most)
        self.rows = math.ceil(self.rows_n / self.tall_cell)
        self.columns = math.ceil(self.columns_n / self.wide_cell)
        least = 28 if most > MOST_CELLS else 0
        self.w = self.side(self.columns_n, self.columns, least, sizes)
        self.h = self.side(self.rows_n, self.rows, least, sizes)
        if any(operand.values) and self.columns_n <= MOST_WRITTEN:
            # Room for the numbers.
            self.w = max(self.w, 24.0 * self.columns_n)
            self.h = max(self.h, 17.0 * min(self.rows_n, MOST_WRITTEN))
        cards = math.prod(shape[:-2]) if self.rank > 2 else 1
        self.cards = min(4, cards)
        self.deep = CARD_STEP * (self.cards - 1)

    def cell(self, axis: int, most: int) -> int:
        """Returns how many elements a cell has along an axis."""
        operand = self.operand
        if len(operand.shape) < -axis:
            return 1
        n = operand.shape[axis]
        size = max(1, operand.block[axis])
        tile = size if not operand.starts or operand.aligned[axis] else 1
        return tile * max(1, math.ceil(math.ceil(n / tile) / most))

    @property
    def is_coarse(self) -> bool:
        """Whether a cell stands for several blocks, or for a part of one."""
        operand = self.operand
        if not operand.starts or not self.rank:
            return False
        block = [1, *operand.block][-2:] if self.rank == 1 else operand.block[-2:]
        return [self.tall_cell, self.wide_cell] != [max(1, size) for size in block]

    @staticmethod
    def side(n: int, cells: int, least: float, sizes: Sizes) -> float:
        """Returns how long a side is drawn."""
        wanted = sizes.shortest + 16 * math.log2(max(1, n))
        if n == 1:
            wanted = sizes.shortest
        return max(min(sizes.longest, max(wanted, least * cells)), sizes.shortest)

    def place(self, program: int) -> tuple[float, float]:
        """Returns where a program's block begins in the picture."""
        start = self.operand.starts[program]
        x = start[-1] / max(1, self.columns_n) * self.w if self.rank else 0.0
        y = start[-2] / max(1, self.rows_n) * self.h if self.rank > 1 else 0.0
        w, h = self.window
        beyond = MOST_BEYOND
        x = min(max(x, -beyond), max(self.w - w, 0.0) + beyond)
        return x, min(max(y, -beyond), max(self.h - h, 0.0) + beyond)

    @functools.cached_property
    def window(self) -> tuple[float, float]:
        """Returns how large a block is in the picture."""
        block = self.operand.block
        w = block[-1] / max(1, self.columns_n) * self.w if self.rank else self.w
        h = block[-2] / max(1, self.rows_n) * self.h if self.rank > 1 else self.h
        return max(w, 5.0), max(h, 5.0)

    def overhang(self) -> float:
        """Returns how far a block reaches below the array, in the picture."""
        if self.rank < 2:
            return 0.0
        last = int(self.operand.places[:, -2].max())
        beyond = last / self.rows_n * self.h + self.window[1] - self.h
        return min(max(0.0, beyond), MOST_BEYOND)

    def slab(self, program: int) -> tuple[int, ...]:
        """Returns which card a program is at."""
        return tuple(self.operand.starts[program][: max(0, self.rank - 2)])

    def covered(self, program: int) -> list[tuple[int, int]]:
        """Returns the cells that a program's block covers."""
        sides = [(0, 1), (0, 1), *self.operand.inside(program)][-2:]
        (top, low), (left, right) = sides
        if top >= low or left >= right:
            return []
        return [
            (row, column)
            for row in range(top // self.tall_cell, (low - 1) // self.tall_cell + 1)
            for column in range(
                left // self.wide_cell, (right - 1) // self.wide_cell + 1
            )
        ]

    def cells(self) -> list[tuple[int, int]]:
        """Returns the cells, each as its row and column."""
        return [(r, c) for r in range(self.rows) for c in range(self.columns)]

    def box(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Returns where a cell stands: x, y, width, height."""
        left = column * self.wide_cell / self.columns_n * self.w
        top = row * self.tall_cell / self.rows_n * self.h
        right = min(1.0, (column + 1) * self.wide_cell / self.columns_n) * self.w
        low = min(1.0, (row + 1) * self.tall_cell / self.rows_n) * self.h
        return left, top, right - left, low - top


# ---- parts --------------------------------------------------------------------------


def cell_parts(w: float, h: float, count: int) -> Parts:
    """Returns a block on the ground of all: 0 is not yet used, which the ground shows,
    1 was, more: copied so often."""
    if not count:
        return []
    if min(w, h) < LEAST_CELL:  # lines would cover what they cut
        return [rect(0, 0, w, h, "constant-wash", round_by=0)]
    w, h = w - 1, h - 1
    made = [rect(0, 0, w, h, "constant-wash", "line", 0.8, "2 2", ROUND)]
    said = f"x{count}"
    if count > 1 and text_width(said, LEAST_TEXT) + 2 <= w and h >= 14:
        made.append(
            words(w / 2, h / 2 + 4, said, "constant", LEAST_TEXT, "middle", 600)
        )
    return made


def ground_parts(w: float, h: float, boxes: Iterable[Sides]) -> Parts:
    """Returns the ground of an array, with the blocks that are not yet used."""
    made = [rect(0, 0, w, h, "base", round_by=0)]
    lines = [
        f"M{numeral(x + ROUND)} {numeral(y)}"
        f"h{numeral(wide - 1 - 2 * ROUND)}a{CORNER} {ROUND} {ROUND}"
        f"v{numeral(high - 1 - 2 * ROUND)}a{CORNER} -{ROUND} {ROUND}"
        f"h-{numeral(wide - 1 - 2 * ROUND)}a{CORNER} -{ROUND} -{ROUND}"
        f"v-{numeral(high - 1 - 2 * ROUND)}a{CORNER} {ROUND} -{ROUND}z"
        for x, y, wide, high in boxes
        if min(wide, high) >= LEAST_CELL
    ]
    if lines:
        made.append(path("".join(lines), "line", 0.8, dash="2 2"))
    return made


def window_parts(
    w: float,
    h: float,
    inside: Sides,
    look: str,
    bare: bool = False,
) -> Parts:
    """Returns the window on a block; `look` is what kind_of says of it.

    `inside` is the part of it that lies in the array: x, y, width, height. A `bare`
    window has room for numbers.
    """
    again = look.endswith("again")
    ink = "miss" if again else "value"
    left, top, wide, tall = inside
    if min(w, h) < LEAST_CELL:
        return [rect(0, 0, w, h, ink, "base", 1.0, round_by=1)]
    made = [rect(0, 0, w, h, "base", round_by=2)]
    if wide > 0 and tall > 0:
        made.append(rect(left, top, wide, tall, f"{ink}-wash", round_by=2))
    for x, y, a, b in (
        (0.0, 0.0, left, h),
        (left + wide, 0.0, w - left - wide, h),
        (left, 0.0, wide, top),
        (left, top + tall, wide, h - top - tall),
    ):
        if a > 1 and b > 1:
            made.append(path(stripes(x, y, a, b), "miss", 1.3))
    arm = max(2.0, min(12.0, w / 3, h / 3))
    corners = "".join(
        line([(x + dx * arm, y), (x, y), (x, y + dy * arm)])
        for x, dx in ((0.0, 1), (w, -1))
        for y, dy in ((0.0, 1), (h, -1))
    )
    made.append(path(corners, ink, 2.4))
    said = "again" if again and not bare else ""
    if said and text_width(said, 12) + 4 <= wide and tall >= 18:
        made.append(
            words(left + wide / 2, top + tall / 2 + 4, said, ink, 12, "middle", 700)
        )
    return made


@functools.lru_cache(8192)
def code_parts(said: str) -> Parts:
    """Returns a line of code: one drawing for all layouts that have it."""
    return [words(0, 12, said, size=12, mono=True)]


def cross_parts(side: float) -> Parts:
    """Returns a cross around (0, 0)."""
    two = line([(-side, -side), (side, side)]) + line([(-side, side), (side, -side)])
    return [path(two, "base", 5.5), path(two, "miss", 2.4)]


# ---- an array -----------------------------------------------------------------------


@dataclass
class Laid:
    """Where an array was drawn: the corner of its front card, and its extent."""

    tiles: Tiles
    x: float
    y: float
    right: float
    low: float

    def middle(self, program: int) -> tuple[float, float]:
        """Returns the middle of a program's block."""
        px, py = self.tiles.place(program)
        w, h = self.tiles.window
        return self.x + px + w / 2, self.y + py + h / 2


def draw_array(
    scene: Scene,
    operand: Operand,
    x: float,
    y: float,
    sizes: Sizes,
    programs: Sequence[int],
    key: str,
    axes: str = "",
    known: KnownUses | None = None,
) -> Laid:
    """Draws an operand, or the grid itself, with its window; returns where.

    `programs` are those that the steps show. `axes` are the names of the grid's axes,
    for the grid. `known` are the uses that other layouts have counted; without it no
    cells are drawn, which need no more room.
    """
    tiles = Tiles(operand, sizes, 2 * MOST_CELLS if axes else MOST_CELLS)
    kind = operand.type.partition("[")[0]
    title = f"{operand.name} {operand.type}" if not axes else operand.name
    letters = int((sizes.width - 12) / text_width("m", mono=True))
    name = cut(operand.name, letters)
    shown = scene.text(x, y + 13, name, weight=700, mono=True, key=key)
    if not axes and name == operand.name:
        sides = operand.type.removeprefix(kind)
        shown = scene.note(shown.x + shown.w + 6, y + 13, kind + sides, mono=True)
    right = shown.x + shown.w
    under = axes or operand.index_map or role_text(operand)
    below = scene.note(x, y + 30, under, mono=not axes)
    right = max(right, below.x + below.w)
    top = y + 40 + tiles.deep
    for card in reversed(range(1, tiles.cards)):
        shift = CARD_STEP * card
        scene.box(x + shift, top - shift, tiles.w, tiles.h, filled=False, label="")
    at = (key, tiles.tall_cell, tiles.wide_cell, len(programs))
    if known is not None:
        if at not in known:
            known[at] = uses_of(operand, tiles, programs, key)
        draw_cells(scene, operand, tiles, x, top, known[at], title)
    low = top + tiles.h
    if operand.starts:
        draw_window(scene, operand, tiles, x, top, programs, key)
        low += 17 + tiles.overhang()
        told = caption(operand, programs, key == "grid", letters)
        widest = max(text_width(one, 12, mono=True) for _, one in told)
        scene.drawn(
            x,
            low - 13,
            widest,
            16,
            code_parts(told[0][1]),
            turns=[(step, code_parts(one)) for step, one in told],
            label="",
        )
        right = max(right, x + widest)
        if key != "grid":
            low += 16
            draw_kind(scene, operand, x, low, programs)
            said = OUTSIDE if operand.leaves_its_array else "written back again"
            right = max(right, x + text_width(said, 12, weight=600))
    if tiles.is_coarse:
        low += 15
        said = f"one cell: {tiles.tall_cell} x {tiles.wide_cell} elements"
        if axes:
            said = f"one cell: {tiles.tall_cell} x {tiles.wide_cell} programs"
        scene.text(x, low, said, role="constant", size=LEAST_TEXT)
        right = max(right, x + text_width(said, LEAST_TEXT))
    return Laid(tiles, x, top, max(right, x + tiles.w + tiles.deep), low)


def role_text(operand: Operand) -> str:
    """Returns what an operand without blocks is."""
    if operand.role == "scalars":
        return "prefetched scalars"
    return f"scratch, {operand.space or 'memory'}"


def caption(
    operand: Operand, programs: Sequence[int], is_grid: bool, letters: int
) -> list[tuple[int, str]]:
    """Returns the block as a slice, for each step in which it is another one."""
    found: list[tuple[int, str]] = []
    for step, program in enumerate(programs):
        if is_grid:
            said = f"program {tuple(operand.starts[program])}"
        else:
            said = cut(operand.slice_text(program), letters)
        if not found or found[-1][1] != said:
            found.append((step, said))
    return found


def draw_kind(
    scene: Scene, operand: Operand, x: float, y: float, programs: Sequence[int]
) -> None:
    """Writes what happens to the block: fetched, fetched again, stays."""
    turns: list[tuple[int, Parts]] = []
    before = ""
    for step, program in enumerate(programs):
        said = kind_of(operand, program)
        if said != before:
            before = said
            ink = "miss" if said.endswith("again") or said == OUTSIDE else "constant"
            bold = 400 if said == "stays" else 600
            turns.append((step, [words(0, 12, said, ink, 12, weight=bold)]))
    scene.drawn(x, y - 12, 100, 16, turns[0][1], turns=turns, label="")


@dataclass(frozen=True)
class Uses:
    """When the cells of an array are used, by (row, column).

    `turns` are (step, count): from that step on it was used so often; `first` is the
    step that uses it first. `most` is the largest count that is written: 1 where
    numbers need the room.
    """

    turns: dict[tuple[int, int], list[tuple[int, int]]]
    first: dict[tuple[int, int], int]
    most: int


# Uses by the key of a drawing, the elements of a cell, and the number of steps.
KnownUses = dict[tuple[str, int, int, int], Uses]


def uses_of(operand: Operand, tiles: Tiles, programs: Sequence[int], key: str) -> Uses:
    """Counts the uses of the cells: the same in layouts of any size."""
    turns: dict[tuple[int, int], list[tuple[int, int]]] = {}
    first: dict[tuple[int, int], int] = {}
    cells = tiles.cells()
    now = dict.fromkeys(cells, 0)
    seen: dict[tuple[int, ...], dict[tuple[int, int], int]] = {}
    slab: tuple[int, ...] | None = None
    done = 0
    counted = operand.moved and not tiles.is_coarse and key != "grid"
    for step, program in enumerate(programs if operand.starts else ()):
        while done <= program:  # steps may leave programs out
            states = seen.setdefault(tiles.slab(done), {})
            for cell in tiles.covered(done):
                copies = int(counted and operand.moves[done])
                states[cell] = states.get(cell, 0) + copies
            done += 1
        states = seen.get(tiles.slab(program), {})
        here = tiles.covered(program)
        changed = here if tiles.slab(program) == slab else cells
        slab = tiles.slab(program)
        for cell in changed:
            count = max(1, states[cell]) if cell in states else 0
            if count != now[cell]:
                now[cell] = count
                turns.setdefault(cell, []).append((step, count))
        for cell in here:
            first.setdefault(cell, step)
    return Uses(turns, first, 1 if any(operand.values) else done + 1)


def draw_cells(
    scene: Scene,
    operand: Operand,
    tiles: Tiles,
    x: float,
    top: float,
    uses: Uses,
    title: str,
) -> None:
    """Draws the blocks, each with what it looks like from which step on."""
    drawn = functools.cache(cell_parts)
    boxes = {cell: tiles.box(*cell) for cell in tiles.cells()}
    if operand.starts:
        ground = ground_parts(tiles.w, tiles.h, boxes.values())
        scene.drawn(x, top, tiles.w, tiles.h, ground, label="")
    for (row, column), (left, low, w, h) in boxes.items():
        looks = uses.turns.get((row, column), [])
        scene.drawn(
            x + left,
            top + low,
            w,
            h,
            drawn(w, h, int(not operand.starts)),
            turns=[(step, drawn(w, h, min(count, uses.most))) for step, count in looks],
            label=title if (row, column) == (0, 0) else "",
            go=uses.first.get((row, column)),
        )
    scene.box(x, top, tiles.w, tiles.h, filled=False, label="")
    # The frame alone: a filled box would cover the blocks.
    mark = scene.marks[-1]
    mark.drawn = [rect(0, 0, tiles.w, tiles.h, "none", "text", 1.2, round_by=2)]
    mark.halo = None


def draw_window(
    scene: Scene,
    operand: Operand,
    tiles: Tiles,
    x: float,
    top: float,
    programs: Sequence[int],
    key: str,
) -> None:
    """Draws the window on a program's block, with all of its places."""
    w, h = tiles.window
    moves: list[tuple[int, float, float]] = []
    turns: list[tuple[int, Parts]] = []
    before: tuple = ()
    at: tuple[float, float] | None = None
    has_values = any(operand.values)

    def found(program: int) -> tuple[tuple[float, float], Sides]:
        px, py = tiles.place(program)
        left, up = max(0.0, -px), max(0.0, -py)
        wide = max(0.0, min(px + w, tiles.w + 0.5) - max(px, 0.0))
        tall = max(0.0, min(py + h, tiles.h + 0.5) - max(py, 0.0))
        return (px, py), (left, up, wide, tall)

    # Blocks by their start: many programs have the same block.
    known: dict[tuple[int, ...], tuple[tuple[float, float], Sides]] = {}
    for step, program in enumerate(programs):
        start = tuple(operand.starts[program][-2:])
        if start not in known:
            known[start] = found(program)
        place, inside = known[start]
        if place != at:
            at = place
            moves.append((step, x + place[0], top + place[1]))
        look = "" if key == "grid" else kind_of(operand, program)
        now = (inside, look.endswith("again"))
        if now != before:
            before = now
            turns.append((step, window_parts(w, h, inside, look, has_values)))
    scene.drawn(
        moves[0][1],
        moves[0][2],
        w,
        h,
        turns[0][1],
        moves=moves,
        turns=turns,
        label=f"this program's block of {operand.name}" if key != "grid" else "",
    )


def draw_problem(
    scene: Scene,
    problem: Problem,
    number: int,
    grid: Laid,
    arrays: Sequence[Laid | None],
    step: int,
) -> None:
    """Draws a finding: crosses on its programs, and on the element where it is."""
    key = [f"e{number}"]
    told = f"{problem.kind}: {problem.message}"
    found: Any = {"tell": told, "label": problem.kind}
    found |= {"key": key, "go": step, "at": step}
    places = [grid.middle(problem.program)]
    if problem.other is not None:
        places.append(grid.middle(problem.other))
        if math.dist(*places) > 12:
            scene.arrow(places[1], places[0], role="miss", thick=1.6, key=key, at=step)
    for cx, cy in places:
        scene.drawn(cx, cy, 0, 0, cross_parts(4.5), **found)
    laid = None if problem.operand is None else arrays[problem.operand]
    if laid is None:
        return
    tiles = laid.tiles
    if problem.element:
        row = problem.element[-2] + 0.5 if tiles.rank > 1 else 0.5
        column = problem.element[-1] + 0.5
        cx = laid.x + column / tiles.columns_n * tiles.w
        cy = laid.y + row / tiles.rows_n * tiles.h
    elif tiles.operand.starts:
        cx, cy = laid.middle(problem.program)
        cx = min(max(cx, laid.x - 8), laid.x + tiles.w + 8)
        cy = min(max(cy, laid.y - 8), laid.y + tiles.h + 8)
    else:
        return
    scene.drawn(cx, cy, 0, 0, cross_parts(5.5), **found)


# ---- bytes --------------------------------------------------------------------------


# For the name of a bar: its drawings, each with its first step.
KnownBars = dict[str, list[tuple[int, Parts]]]


def bars_of(
    moved: Sequence[Operand], number: int, wide: float, role: str, programs: Any
) -> list[tuple[int, Parts]]:
    """Returns the bar of the bytes that moved so far, from step to step."""
    turns: list[tuple[int, Parts]] = []
    frame = rect(0, 0, wide, 16, "none", role, 1.3)
    total = before = counted = 0
    for step, program in enumerate(programs if moved else ()):
        while counted <= program:
            for one in moved:
                if one.moves[counted]:
                    total += one.block_bytes(counted)
            counted += 1
        if not turns or total != before:
            before = total
            part = wide * total / max(1, number)
            turns.append(
                (step, [rect(0, 0, part, 16, f"{role}-wash", role, 1.3), frame])
            )
    return turns


def draw_bytes(
    scene: Scene,
    record: KernelRecording,
    x: float,
    y: float,
    programs: Sequence[int],
    known: KnownBars,
) -> float:
    """Draws bytes against the ideal as bars; returns the lower end.

    `known` are the bars that other layouts have drawn.
    """
    inputs, outputs = record.of_role("input"), record.of_role("output")
    rows: list[tuple[str, str, int, list[Operand]]] = []
    for title, members in (("in", inputs), ("out", outputs)):
        moved = [one for one in members if one.moved]
        if not moved:
            continue
        done = "fetched" if title == "in" else "written"
        rows.append((f"{title}: needed", "constant", sum(o.ideal for o in moved), []))
        rows.append((done, "value", sum(o.copied for o in moved), moved))
        if title == "in":
            rows.append(("read", "text", sum(o.used for o in moved), []))
    most = max([number for _, _, number, _ in rows], default=0)
    scene.text(x, y + 13, "bytes", weight=700)
    scene.note(x, y + 30, "filled: so far")
    row_y = y + 42
    for name, role, number, moved in rows:
        scene.text(x + 78, row_y + 13, name, size=12, anchor="end")
        wide = max(3.0, 110 * number / most) if most else 3.0
        parts = [rect(0, 0, wide, 16, "base", role, 1.3)]
        turns = known.get(name)
        if turns is None:
            filled = bars_of(moved, number, wide, role, programs)
            turns = known.setdefault(name, filled)
        if not moved:
            parts = [rect(0, 0, wide, 16, f"{role}-wash", role, 1.3)]
            if role == "text":
                parts = [rect(0, 0, wide, 16, "panel", "line", 1.3)]
        label = f"{name} {number:,} bytes"
        scene.drawn(x + 84, row_y, wide, 16, parts, turns=turns, label=label)
        scene.text(x + 90 + wide, row_y + 13, f"{number:,}", size=12)
        row_y += 22
    return row_y
