"""What the colours of a picture mean: an entry for each kind of mark that is in it.

The kind of a mark is the role of its ink; cells of numbers are kinds of their own. The
help of each view, behind `?`, shows the entries with a small mark each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

ROLES = (
    "value", "constant", "residual", "cotangent", "batch", "mesh", "meshy", "meshz",
    "miss",
)  # fmt: skip
CELL = " cell"
# What roles mean in listings of equations.
OF_LISTINGS = {
    "value": "made by an equation",
    "constant": "comes in, or is constant",
    "batch": "comes out",
    "residual": "double edge: kept for the backward pass",
    "cotangent": "thick edge: of the backward pass",
}
LOOKS = {"kept": "residual", "backward": "cotangent"}
# What marks mean in pictures, if their view says nothing else.
OF_SCENES = {
    "value": "a value",
    "constant": "constant, or known to Python",
    "residual": "kept for the backward pass",
    "cotangent": "a cotangent",
    "batch": "the batch axis",
    "mesh": "cut along an axis of the mesh",
    "meshy": "cut along its second axis",
    "meshz": "cut along its third axis",
    "miss": "no number, or one that is not finite",
    "value cell": "a positive number, the deeper the larger",
    "miss cell": "a negative number, the deeper the larger",
}
# What they mean in pictures of one kind.
OF_KINDS: dict[str, dict[str, str]] = {
    "jaxpr": {
        "value": "a value, and where it goes; a frame: a program inside",
        "constant": "opens or folds a frame",
    },
    "trace": {"value": "from operands to the result"},
    "memory": {
        "value": "an array, and the sum of what is alive",
        "cotangent": "made in the backward pass",
        "constant": "of the program beside it, or of many small arrays",
    },
    "buffers": {
        "value": "for temporaries, and the sum of all places",
        "constant": "for arguments and constants",
        "batch": "for results",
        "mesh": "in memory on the chip",
        "miss": "the peak",
    },
    "stages": {
        "value": "a line of yours; of code, its instructions",
        "constant": "made by XLA, from no line of yours",
    },
    "stages_difference": {
        "value": "bytes that kernels move",
        "constant": "in both",
        "miss": "before only",
        "batch": "after only",
    },
    "passes": {
        "value": "new instructions, filled; changed ones, open",
        "miss": "instructions that are gone",
    },
    "compiled": {
        "value": "bytes, read (filled) and written (open); a dot: a kernel",
    },
    "cache": {
        "value": "a key that was made, and the calls that it answered",
        "miss": "a key that the call could have avoided",
    },
    "keys": {
        "value": "a key, and what was drawn from it",
        "miss": "a key that is used twice",
    },
    "vmap": {
        "value": "a value of one example",
        "batch": "the batch axis, and equations that move it",
    },
    "card": {"value": "results", "constant": "arguments"},
    "grad": {
        "value": "a value, on the way down",
        "residual": "kept for the backward pass; dashed: made again",
        "cotangent": "a cotangent, on the way up",
    },
    "kernel": {
        "value": "this program's block, and bytes that are copied",
        "constant": "read before; in bars, bytes that must be copied",
        "miss": "copied again, written twice, or out of bounds",
    },
    "placement": {
        "mesh": "cut along the mesh's first axis",
        "miss": "copies that nobody asked for",
    },
    "propagation": {
        "mesh": "cut along the mesh's first axis",
        "meshy": "cut along its second axis; a band: a collective",
        "constant": "whole, not cut",
        "miss": "copies that nobody asked for",
    },
    "collectives": {
        "mesh": "a device, and what it holds",
        "meshy": "a message, and an axis of the mesh",
        "residual": "a part on its way",
        "value": "the least that it costs",
    },
    "scale": {
        "value": "arguments; arithmetic; tracing",
        "residual": "kept by the forward pass; memory",
        "batch": "the forward pass again; lowering",
        "cotangent": "the backward pass",
        "mesh": "sent over the mesh's first axis, or over several; links",
        "meshy": "sent over its second axis",
        "meshz": "sent over its third axis",
        "constant": "spare; compiling",
        "miss": "the memory of a device",
    },
}


def legend(page: dict[str, Any], told_here: dict[str, str]) -> list[list[Any]]:
    """Returns an entry for each kind of mark in a frame's JSON: the kind, what it
    means (`told_here`, or else in pictures of its kind), and for marks of pictures a
    small glyph."""
    drawn = False
    letters: set[str] = set()
    marks: dict[str, Counter[tuple[str, str, str]]] = {}
    for pane in page["panes"]:
        if pane["kind"] == "listing":
            for row in pane["rows"]:
                letters |= {piece[1] for piece in row["c"][0] if len(piece) > 2}
                letters.add(LOOKS.get(row.get("s", ""), ""))
        looks = [list(marks_in(parts)) for parts in pane.get("draws", ())]
        for scene in scenes_of(pane):
            drawn = True
            for number in drawings_of(scene):
                for kind, look in looks[number]:
                    marks.setdefault(kind, Counter())[look] += 1
    found: list[list[Any]] = []
    if not drawn:
        found += [[role, told] for role, told in OF_LISTINGS.items() if role in letters]
    meanings = OF_SCENES | OF_KINDS.get(page["kind"], {}) | told_here
    for kind, told in meanings.items():
        if kind in marks:
            found.append([kind, told, swatch(*marks[kind].most_common(1)[0][0])])
    return found


def scenes_of(pane: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All layouts of a pane's picture."""
    names = ("scene", "middle", "less", "narrow")
    yield from (pane[name] for name in names if name in pane)
    yield from pane.get("layouts", ())


def drawings_of(scene: dict[str, Any]) -> dict[int, None]:
    """The numbers of the drawings that a layout has, each once."""
    found: dict[int, None] = {}
    for mark in scene["marks"]:
        found[mark["d"]] = None
        if "h" in mark:
            found[mark["h"]] = None
        if "v" in mark:
            found |= dict.fromkeys([number for _, number in mark["v"]])
    return found


def marks_in(parts: list[Any]) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The kinds of marks in a drawing, and the fill, the edge and the dashes of each.

    Words say themselves what they mean.
    """
    for tag, has, *_ in parts:
        fill, edge = str(has.get("fill", "none")), str(has.get("stroke", "none"))
        if tag == "text":
            continue
        for role in {fill.removesuffix("-wash"), edge}.intersection(ROLES):
            if "stroke-opacity" in has:
                yield role + CELL, (f"{role}-wash", "none", "")
            else:
                yield role, (fill, edge, str(has.get("stroke-dasharray", "")))


def swatch(fill: str, edge: str, dash: str) -> dict[str, Any]:
    """A small mark, as a glyph of the player."""
    has = {"x": 1, "y": 1, "width": 20, "height": 10, "rx": 2, "fill": fill}
    has |= {"stroke": edge, "stroke-width": 1.4}
    if dash:
        has["stroke-dasharray"] = dash
    return {"x": 0, "y": 0, "w": 22, "h": 12, "d": [["rect", has]]}
