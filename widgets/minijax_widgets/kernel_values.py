"""The values of a kernel's blocks, as cells that change from program to program.

Positive values are in one ink and negative ones in another, the deeper the larger;
small blocks have their numbers written. What has no value is hatched.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from minijax_lab.explain.kernel_facts import Operand
from minijax_lab.explain.small_values import Values
from minijax_widgets.cells import largest_of, number_text, values_parts, widest
from minijax_widgets.glyph import LEAST_TEXT, text_width, words
from minijax_widgets.kernel_scene import Laid
from minijax_widgets.scene import Scene, fitting

# Cells of one operand in all of its steps: a page has to carry them.
MOST_CELLS = 16384
# Numbers are written into blocks of so many rows that are not wider than this.
WRITTEN_ROWS, WRITTEN_WIDTH = 16, 250.0
LINE, LEAST_WIDE = 17.0, 24.0
LONGEST = 150.0
NOTHING = "not written yet"


def steps_with_values(operand: Operand, programs: Sequence[int]) -> dict[int, Values]:
    """Returns the values of each step that has some to be drawn."""
    found: dict[int, Values] = {}
    cells = 0
    for step, program in enumerate(programs):
        if program >= len(operand.values) or not operand.values[program]:
            continue
        values = operand.values[program]
        cells += len(values) * len(values[0])
        if cells > MOST_CELLS:
            break
        found[step] = values
    return found


def cell_size(tables: Sequence[Values]) -> tuple[float, float]:
    """Returns how large a cell is drawn: with room for its number in a small block."""
    rows, columns = len(tables[0]), max(1, len(tables[0][0]))
    if columns * LEAST_WIDE <= WRITTEN_WIDTH and rows <= WRITTEN_ROWS:
        wide = max(LEAST_WIDE, *(widest(table) + 8 for table in tables))
        if columns * wide <= WRITTEN_WIDTH:
            return wide, LINE
    return min(16.0, LONGEST / columns), min(16.0, LONGEST / rows)


# ---- in main memory ------------------------------------------------------------------


def draw_in_array(
    scene: Scene, operand: Operand, laid: Laid, programs: Sequence[int]
) -> None:
    """Draws the values of an array in its picture, as far as programs have them.

    Those of an input are there from the first step on, those of an output from the
    step in which its block is written back.
    """
    found = steps_with_values(operand, programs)
    tiles = laid.tiles
    if not found or not operand.starts or tiles.rank > 2:
        return
    size = tiles.w / tiles.columns_n, tiles.h / tiles.rows_n
    largest = largest_of(list(found.values()))
    blocks: dict[tuple[int, ...], list[tuple[int, Values]]] = {}
    for step, values in found.items():
        program = programs[step]
        if operand.role == "output" and not operand.moves[program]:
            continue
        sides = [(0, 1), (0, 1), *operand.inside(program)][-2:]
        skipped = [max(0, -start) for start in (0, 0, *operand.starts[program])][-2:]
        (rows, first), (columns, left) = zip((b - a for a, b in sides), skipped)
        part = [row[left : left + columns] for row in values[first : first + rows]]
        if part and part[0]:
            at = tuple(start for start, _ in sides)
            blocks.setdefault(at, []).append((step, part))
    for (top, left), states in blocks.items():
        turns = [(step, values_parts(v, largest, size, False)) for step, v in states]
        first_parts = turns[0][1] if operand.role == "input" else []
        x, y = laid.x + left * size[0], laid.y + top * size[1]
        scene.drawn(x, y, 0, 0, first_parts, turns=turns, label="")


# ---- on the chip ---------------------------------------------------------------------


@dataclass
class Held:
    """A block on the chip: whose, what it is then, and what it holds by step."""

    operand: Operand
    what: str
    states: dict[int, Values | None]
    notes: dict[int, str]
    # Steps in which it is a product, with what was there before and the factors.
    products: dict[int, str] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """Returns what stands above it."""
        return f"{self.operand.name}, {self.what}"


def blocks_on_chip(
    operands: Sequence[Operand], programs: Sequence[int], names: Sequence[str]
) -> tuple[list[Held], list[Held]]:
    """Returns what programs have before and what they leave, of blocks with values.

    `names` are the programs' places in the grid.
    """
    before, after = [], []
    for operand in operands:
        found = steps_with_values(operand, programs)
        if not found:
            continue
        if operand.role in ("input", "scalars"):
            notes = {step: arrival(operand, programs[step]) for step in found}
            before.append(Held(operand, "read", dict(found), notes))
            continue
        kept: dict[int, Values | None] = {}
        notes, left = {}, {}
        for step in found:
            program = programs[step]
            stays = program > 0 and (
                operand.role == "scratch"
                or operand.starts[program - 1] == operand.starts[program]
            )
            kept[step] = operand.values[program - 1] if stays else None
            notes[step] = f"left by {names[program - 1]}" if stays else NOTHING
            left[step] = arrival(operand, program)
        if largest_of([state for state in kept.values() if state is not None]):
            before.append(Held(operand, "before", kept, notes))
        after.append(Held(operand, "after", dict(found), left))
    for held in after:
        for step in held.states:
            held.products[step] = product_of(held, before, step)
    return before, after


def product_of(held: Held, before: Sequence[Held], step: int) -> str:
    """Returns what was there before and the two factors, by what stands above them, if
    a block is their product; "" if the numbers do not say so."""
    found = np.array(held.states[step])
    had = {one.said: one.states.get(step) for one in before}
    tables = {said: np.array(state) for said, state in had.items() if state}
    own = f"{held.operand.name}, before"
    read = [one.said for one in before if one.what == "read" and one.said in tables]
    for left, right in itertools.permutations(read, 2):
        if tables[left].shape[1] != tables[right].shape[0]:
            continue
        product = tables[left] @ tables[right]
        for start in ("", own):
            total = product + tables[start] if start in tables else product
            if total.shape == found.shape and np.allclose(total, found, 1e-3, 1e-5):
                return f"{start}|{left}|{right}"
    return ""


def arrival(operand: Operand, program: int) -> str:
    """Returns what happens to a block of a program, with its bytes."""
    if not operand.starts or operand.is_outside(program) or not operand.moved:
        return "stays on the chip" if operand.role == "scratch" else ""
    if not operand.moves[program]:
        return "stays"
    verb = "arrives" if operand.role == "input" else "goes out"
    again = " again" if operand.again[program] else ""
    return f"{verb}{again}, {operand.block_bytes(program):,} B"


def draw_on_chip(
    scene: Scene,
    operands: Sequence[Operand],
    arrays: Mapping[str, Laid],
    programs: Sequence[int],
    names: Sequence[str],
    y: float,
) -> float:
    """Draws the blocks on the chip with their values; returns the lower end.

    A block of an input slides there from its array in the step in which it arrives.
    Nothing is drawn without values.
    """
    before, after = blocks_on_chip(operands, programs, names)
    if not before and not after:
        return y
    scene.text(6, y + 16, "on the chip", weight=700)
    said = "hatched: no value, or masked"
    if scene.width > 500:
        said = f"what a program has, and what it leaves; {said}"
    scene.note(94, y + 16, said)
    top, x, low = y + 50, 6.0, y
    for held in (*before, *after):
        tables = [state for state in held.states.values() if state is not None]
        size = cell_size(tables)
        wide, tall = size[0] * len(tables[0][0]), size[1] * len(tables[0])
        name = fitting(held.said, scene.width - 12)
        room = max(wide, text_width(name, 12, True), 118.0)
        arrow = 30.0 if after and held is after[0] and before else 0.0
        if x > 6 and x + arrow + room > scene.width:
            x, top = 6.0, low + 34
        if arrow:
            end = (x + arrow - 6, top + 30)
            scene.arrow((x - 10, top + 30), end, role="value", thick=2.4)
            x += arrow
        scene.text(x, top - 6, name, size=12, weight=700, mono=True)
        draw_held(scene, held, (x, top), size, programs, arrays.get(held.operand.name))
        low = max(low, top + tall + 20)
        x += room + 22
    return low


def draw_held(
    scene: Scene,
    held: Held,
    place: tuple[float, float],
    size: tuple[float, float],
    programs: Sequence[int],
    array: Laid | None,
) -> None:
    """Draws what a block holds, step by step, and what happens to it."""
    x, y = place
    operand = held.operand
    tables = [state for state in held.states.values() if state is not None]
    largest = largest_of(tables)
    wide, tall = size[0] * len(tables[0][0]), size[1] * len(tables[0])
    hole = [[math.nan] * len(tables[0][0])] * len(tables[0])
    turns = [
        (
            step,
            values_parts(
                hole if state is None else state,
                largest,
                size,
                name=held.said,
                product=held.products.get(step, ""),
            ),
        )
        for step, state in held.states.items()
    ]
    notes = [
        (step, [words(0, 0, note, "miss" if "again" in note else "constant", 12)])
        for step, note in held.notes.items()
    ]
    last = max(held.states) + 1
    if last < len(programs):
        turns.append((last, [words(0, 13, "values not kept", "constant", LEAST_TEXT)]))
        notes.append((last, []))
    scene.drawn(x, y + tall + 15, 0, 0, notes[0][1], turns=notes, label="")
    tell = f"{held.said}: positive values in blue, negative ones in red, "
    tell += f"the deeper the larger, up to {largest:.3g}; hatched: no value, or masked"
    label = f"values of {held.said}"
    # Each arrival is a mark of its own, that comes from its place in the array.
    starts = [
        step
        for step in held.states
        if array is not None and held.what == "read" and operand.moved
        and operand.moves[programs[step]] and not operand.is_outside(programs[step])
    ]  # fmt: skip
    ends = [*starts[1:], len(programs)]
    still = [turn for turn in turns if not starts or turn[0] < starts[0]]
    if still or not starts:
        shown = [*still, (starts[0], [])] if starts else turns
        scene.drawn(x, y, wide, tall, shown[0][1], turns=shown, label=label, tell=tell)
    for start, end in zip(starts, ends):
        assert array is not None
        dx, dy = array.tiles.place(programs[start])
        shown = [turn for turn in turns if start <= turn[0] < end]
        shown += [(end, [])] if end < len(programs) else []
        home = (array.x + dx, array.y + dy)
        if start == 0:
            home = (x, y)
        scene.drawn(
            *home, wide, tall, shown[0][1] if start == 0 else [], turns=shown,
            moves=[(start, x, y)], label=label, tell=tell,
        )  # fmt: skip


def values_text(values: Values) -> str:
    """Returns values as text: all of a few, else the first ones and the extent."""
    flat = [x for row in values for x in row]
    if not flat:
        return "none"
    shown = " ".join(number_text(x) if math.isfinite(x) else "nan" for x in flat[:6])
    if len(flat) <= 6:
        return shown
    finite = [x for x in flat if math.isfinite(x)]
    if not finite:
        return f"{shown} ..."
    return f"{shown} ... from {min(finite):.3g} to {max(finite):.3g}"
