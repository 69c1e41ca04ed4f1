"""`see.tangent`, `see.nested`, `see.compare`: small drawings of what a chapter says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import minijax
from minijax import Array
from minijax_lab.answers import difference
from minijax_lab.evidence import count
from minijax_lab.explain.calls import short
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.sketch import Sketch
from minijax_widgets.cells import number_text
from minijax_widgets.frame import Frame, FrameStep, Pane
from minijax_widgets.glyph import line, path, text_width
from minijax_widgets.scene import Scene
from minijax_widgets.view import View, shows

WIDTH, HEIGHT, EDGE = 360.0, 220.0, 12.0
CELL = 30.0
MOST_CELLS = 12
# Between boxes inside each other, and the line of a box's text.
PAD, LINE = 14.0, 24.0


def tangent(
    function: Callable[..., Any], x: float, low: float = -6.0, high: float = 6.0
) -> SketchView:
    """Draws a function of one number from `low` to `high`, and its tangent at `x`.

    Value and slope are those of one `jvp`. Raises ValueError for x outside, and for
    low = high.
    """
    if low == high:
        raise ValueError(f"low and high are both {low}: there is no curve to draw.")
    if not low <= x <= high:
        raise ValueError(f"x = {x} is not between low = {low} and high = {high}.")
    one = np.float32(1.0)
    value_and_slope = minijax.jvp(function, (np.float32(x),), (one,))
    if not all(isinstance(leaf, Array) and not leaf.shape for leaf in value_and_slope):
        raise TypeError(
            "see.tangent draws a function of one number whose result is one number; "
            f"this one returned {short(value_and_slope[0])}."
        )
    value, slope = map(float, value_and_slope)
    places = np.linspace(low, high, 121, dtype=np.float32)
    heights = np.asarray(minijax.vmap(function)(places), np.float64)
    finite = heights[np.isfinite(heights)]
    least, most = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    room = max(1e-6, 0.1 * (most - least))  # above and below the curve

    def at(place: float, height: float) -> tuple[float, float]:
        across = EDGE + (place - low) / (high - low) * (WIDTH - 2 * EDGE)
        down = (most + room - height) / (most - least + 2 * room) * HEIGHT
        return round(across, 1), round(down, 1)

    def shown(height: float) -> bool:
        return bool(least - room <= height <= most + room)

    curve = [at(p, h) for p, h in zip(places.tolist(), heights.tolist()) if shown(h)]
    touching = [(p, value + slope * (p - x)) for p in places.tolist()]
    straight = [at(p, h) for p, h in touching if shown(h)]
    marks = [
        ["line", "constant", [at(low, 0.0), at(high, 0.0)]],
        ["line", "value", curve],
        ["line", "batch", [straight[0], straight[-1]] if straight else []],
        ["dot", "batch", *at(x, value)],
    ]
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = max(power * k for k in (1, 2, 5) if power * k <= (high - low) / 4)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        across, down = at(number * step, 0.0)
        said = f"{number * step:.6g}"
        left = min(max(across, EDGE + 4), WIDTH - EDGE - 4) - text_width(said, 13) / 2
        marks.append(["line", "constant", [(across, down - 3), (across, down + 3)]])
        marks.append(["text", "constant", left, down + 15, said])
    name = getattr(function, "__name__", "f")
    told = f"at x = {x:g}: value {value:.4f}, slope {slope:.4f}"
    meanings = {
        "value": "the function",
        "constant": "the axis: value 0",
        "batch": "the tangent, and where it touches",
    }
    return sketched(name, told, told, (WIDTH, HEIGHT), marks, meanings)


def nested(
    layers: Mapping[str, Callable[..., Any]],
    *args: Any,
    arguments: int = 1,
    others: Sequence[Mapping[str, Callable[..., Any]]] = (),
) -> SketchView:
    """Draws functions as boxes inside each other, the outermost first.

    Each box tells how many equations and loops its function's jaxpr has. The outermost
    one is traced with all of `args`, those inside with the first `arguments` of them.
    `others` are more of such layers, to compare with; they stand below.
    """
    every = [layers, *others]
    if not all(isinstance(each, Mapping) and each for each in every):
        raise TypeError(
            "see.nested takes functions by name, the outermost first, such as "
            f"see.nested({{'grad': grad(f), 'f': f}}, x), and got {short(layers)}."
        )
    told = [texts_of_layers(each, args, arguments) for each in every]
    widths = [
        text_width(text, 13) + 2 * PAD * (depth + 1)
        for texts in told
        for depth, text in enumerate(texts)
    ]
    wide, top = max(widths), 4.0
    marks: list[list[Any]] = []
    for texts in told:
        height = len(texts) * (LINE + PAD)
        for depth, text in enumerate(texts):
            role = "value" if depth + 1 == len(texts) else "mesh"
            x, y = 4 + PAD * depth, top + LINE * depth
            high = height - depth * (LINE + PAD)
            marks.append(["box", role, x, y, wide - 2 * PAD * depth, high, ""])
            marks.append(["text", "", x + PAD, y + 17, text])
        top += height + PAD
    twin = "\n".join("  " * n + text for texts in told for n, text in enumerate(texts))
    orders = "; ".join(" of ".join(each) for each in every)
    meanings = {"value": "the innermost function", "mesh": "a function around others"}
    size = wide + 8, top - PAD + 4
    return sketched(orders, orders, twin, size, marks, meanings)


def texts_of_layers(
    layers: Mapping[str, Callable[..., Any]], args: Sequence[Any], arguments: int
) -> list[str]:
    """Returns what each function's jaxpr has, the outermost first."""
    texts: list[str] = []
    for name, function in layers.items():
        given = args[:arguments] if texts else args
        closed = minijax.make_jaxpr(function)(*given)
        equations = count_in_words(len(closed.eqns), "equation")
        loops = count_in_words(count(closed, "scan", "while"), "loop")
        texts.append(f"{name}: {equations}, {loops}")
    return texts


def compare(got: Any, expected: Any) -> SketchView:
    """Draws two arrays cell by cell, what differs in the second colour.

    Of more than two axes the first entries are drawn, of long ones the first twelve.
    Raises ValueError for arrays of other shapes, TypeError for what is no array.
    """
    got, expected = numbers("got", got), numbers("expected", expected)
    if got.shape != expected.shape:
        raise ValueError(f"got has shape {got.shape}, expected {expected.shape}.")
    told = difference(got, expected, 1e-4, 1e-4)
    wrong = ~np.isclose(got, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
    marks: list[list[Any]] = []
    grids = [drawn_part(array) for array in (got, expected)]
    off = drawn_part(wrong)
    rows, side = off.shape
    every = [said(number) for grid in grids for number in grid.flat]
    wide = max([CELL, *(text_width(text, 13, mono=True) + 12 for text in every)])
    for title, grid in zip(("got", "expected"), grids):
        top = 0.0 if title == "got" else rows * CELL + 34
        marks.append(["text", "", 4.0, top + 16, title + part_in_words(got, off)])
        for (i, j), number in np.ndenumerate(grid):
            role = "miss" if off[i, j] and title == "got" else "value"
            place = 4 + j * wide, top + 24 + i * CELL
            marks.append(["box", role, *place, wide - 2, CELL - 2, said(number)])
    share = f"{int(wrong.sum())} of {wrong.size} entries differ. {told}"
    share = share if told else f"All {wrong.size} entries are the same."
    size = side * wide + 12, 2 * (rows * CELL + 34)
    meanings = {"value": "an entry", "miss": "an entry that differs from the expected"}
    return sketched("compare", share, share, size, marks, meanings)


def numbers(name: str, value: Any) -> np.ndarray:
    """Returns a value as an array of numbers or truth values."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unlike lengths
        array = np.asarray(None)
    if array.dtype.kind in "OSUMm":
        raise TypeError(
            f"see.compare draws arrays of numbers, and {name} is {short(value)}. Pass "
            "two arrays of one shape; see.tree(a, b) compares trees."
        )
    return array


def drawn_part(array: np.ndarray) -> np.ndarray:
    """Returns the rows and columns of an array that are drawn."""
    grid = np.atleast_2d(array)
    while grid.ndim > 2:
        grid = grid[0] if len(grid) else np.zeros((*grid.shape[1:-2], 0, 1))
    return grid[:MOST_CELLS, :MOST_CELLS]


def part_in_words(array: np.ndarray, drawn: np.ndarray) -> str:
    """Returns which part of an array is drawn: `[0]`, or `, the first 12 x 4`."""
    entries = "[0]" * max(0, array.ndim - 2)
    shape = array.shape[max(0, array.ndim - 2) :]
    whole = math.prod(shape) == drawn.size or not array.size
    sides = " x ".join(map(str, drawn.shape[-max(1, len(shape)) :]))
    return entries + ("" if whole else f", the first {sides}")


def said(number: Any) -> str:
    """Returns a number, or a truth value, in a few letters."""
    if isinstance(number, (bool, np.bool_)):
        return str(number)
    if np.iscomplexobj(number):
        return f"{number:.2g}"
    return number_text(float(number)) if np.isfinite(number) else str(number)


def sketched(
    call: str,
    headline: str,
    twin: str,
    size: tuple[float, float],
    marks: list,
    meanings: dict[str, str],
) -> SketchView:
    """Returns the view of marks in a picture of a size, whose colours have meanings."""
    width, height = size
    return SketchView(
        Sketch(
            call=call,
            headline=headline,
            twin=twin,
            width=width,
            height=height,
            marks=marks,
            meanings=meanings,
        )
    )


@shows("sketch")
class SketchView(View):
    """One picture without steps."""

    recording: Sketch

    def text(self, full: bool = False) -> str:
        """Returns what the picture says."""
        return self.recording.twin

    def frame(self) -> Frame:
        """Returns the picture."""
        record = self.recording
        scene = Scene(record.width, record.height, label=record.headline)
        for kind, role, *rest in record.marks:
            if kind == "line" and rest[0]:
                drawn = [path(line([tuple(p) for p in rest[0]]), role, 2.0)]
                scene.drawn(0, 0, record.width, record.height, drawn, label="")
            elif kind == "dot":
                scene.dot(rest[0], rest[1], 5.0, role=role, label="")
            elif kind == "box":
                x, y, w, h, text = rest
                scene.box(x, y, w, h, role=role, text=text, mono=True)
            elif kind == "text":
                scene.text(rest[0], rest[1], rest[2], role=role)
        pane = Pane("", [], kind="scene", scene=scene)
        made = self.picture([pane], [FrameStep("", "")])
        made.meanings = record.meanings
        return made
