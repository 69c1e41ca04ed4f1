"""What a primitive does to small arrays, drawn: a cell for each number."""

from __future__ import annotations

from minijax_lab.explain.cards import SmallArray
from minijax_widgets.scene import Scene

SIDE = 26.0
LETTER = 7.8
GAP = 28.0


def numbers_scene(
    inputs: list[SmallArray], outputs: list[SmallArray], narrow: bool = False
) -> Scene:
    """Returns the arrays that go in, an arrow, and those that come out: side by side,
    or one below the other where there is little room."""
    arrays = [*inputs, *outputs]
    widths = [cell_width(array) * columns(array) for array in arrays]
    if narrow:
        heights = [SIDE * len(array.rows) + GAP for array in arrays]
        scene = Scene(max(widths) + 16, sum(heights) + 24)
        y = 12.0
        for number, (array, high) in enumerate(zip(arrays, heights)):
            if number == len(inputs):
                scene.arrow((20, y - 8), (20, y + 12), role="")
                y += 24
            draw_array(scene, array, 8, y, role_of(number, inputs))
            y += high
        return scene
    height = max(SIDE * len(array.rows) for array in arrays) + 26
    width = sum(widths) + GAP * (len(arrays) + 1) + 20
    scene = Scene(width, height)
    x = 8.0
    middle = 22 + (height - 26) / 2
    for number, (array, wide) in enumerate(zip(arrays, widths)):
        if number == len(inputs):
            scene.arrow((x - GAP + 8, middle), (x + 12, middle), role="")
            x += 20
        above = middle - SIDE * len(array.rows) / 2 - 22
        draw_array(scene, array, x, 12, role_of(number, inputs), above)
        x += wide + GAP
    return scene


def role_of(number: int, inputs: list[SmallArray]) -> str:
    """Returns the colour of an array: what goes in is grey."""
    return "constant" if number < len(inputs) else "value"


def draw_array(
    scene: Scene, array: SmallArray, x: float, y: float, role: str, lower: float = 0
) -> None:
    """Draws a type with its base at `y`, and its cells `lower` pixels further down."""
    scene.text(x, y, array.type, role=role, size=12, mono=True)
    cell = cell_width(array)
    for line, row in enumerate(array.rows):
        top = y + 10 + lower + SIDE * line
        for column, text in enumerate(row):
            left = x + cell * column
            scene.box(left, top, cell, SIDE, role=role, text=text, mono=True)


def columns(array: SmallArray) -> int:
    """Returns how many cells stand side by side."""
    return max(len(row) for row in array.rows)


def cell_width(array: SmallArray) -> float:
    """Returns the width of a cell that has room for each of the numbers."""
    letters = max(len(text) for row in array.rows for text in row)
    return max(SIDE, LETTER * letters + 12, len(array.type) * LETTER / columns(array))
