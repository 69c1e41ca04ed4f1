"""What a primitive does to small arrays, drawn: a cell for each number."""

from __future__ import annotations

from minijax_lab.explain.cards import SmallArray
from minijax_widgets.scene import Scene

SIDE = 26.0
LETTER = 7.8
GAP = 28.0


def numbers_scene(inputs: list[SmallArray], outputs: list[SmallArray]) -> Scene:
    """Returns the arrays that go in, an arrow, and those that come out."""
    arrays = [*inputs, *outputs]
    widths = [cell_width(array) * columns(array) for array in arrays]
    height = max(SIDE * len(array.rows) for array in arrays) + 26
    width = sum(widths) + GAP * (len(arrays) + 1) + 20
    scene = Scene(width, height)
    x = 8.0
    middle = 22 + (height - 26) / 2
    for number, (array, wide) in enumerate(zip(arrays, widths)):
        if number == len(inputs):
            scene.arrow((x - GAP + 8, middle), (x + 12, middle), role="")
            x += 20
        role = "constant" if number < len(inputs) else "value"
        scene.text(x, 12, array.type, role=role, size=12, mono=True)
        cell = cell_width(array)
        top = middle - SIDE * len(array.rows) / 2
        for line, row in enumerate(array.rows):
            for column, text in enumerate(row):
                scene.box(
                    x + cell * column,
                    top + SIDE * line,
                    cell,
                    SIDE,
                    role=role,
                    text=text,
                    mono=True,
                )
        x += wide + GAP
    return scene


def columns(array: SmallArray) -> int:
    """Returns how many cells stand side by side."""
    return max(len(row) for row in array.rows)


def cell_width(array: SmallArray) -> float:
    """Returns the width of a cell that has room for each of the numbers."""
    letters = max(len(text) for row in array.rows for text in row)
    return max(SIDE, LETTER * letters + 12, len(array.type) * LETTER / columns(array))
