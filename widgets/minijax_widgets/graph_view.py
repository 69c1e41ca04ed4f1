"""`see.jaxpr(f, x).graph()`: the equations as boxes, and what flows between them.

Graphviz gives the places. Inputs and values stand there by the names that the user
wrote, each box has the glyph of its result. A source line, a program inside of an
equation and the repeats of a Python loop are boxes that open and close; what a loop
hands to its next turn goes round. The same as text for other tools is DOT.
"""

from __future__ import annotations

import functools
import json

from minijax_lab.explain.jaxpr import Equation, JaxprRecording
from minijax_widgets.frame import Frame, Pane, Row
from minijax_widgets.graph_boxes import Boxes
from minijax_widgets.graph_layout import Laid, lay_out
from minijax_widgets.graph_scene import Drawer
from minijax_widgets.graph_sketch import DOWN_LETTERS, NARROW_LETTERS, PAD, Sketch
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.scene import Scene
from minijax_widgets.view import View

# One that runs down, with many boxes open, is not higher than two windows.
MOST_DOWN = 1300
# The pages that a graph is laid out for, by the numbers of their first layouts.
WIDE, DOWN, NARROW = 0, 1, 2
# Letters in a line of a title, on each; 0: as many as fit.
LETTERS_OF = (0, DOWN_LETTERS, NARROW_LETTERS)
# A wider graph stands above the listing.
MOST_BESIDE = 520
# Boxes stay closed at first where more would be drawn, and never so many are open.
MOST_AT_FIRST = 45
MOST_DRAWN = 120
# At most this many marks in all layouts together.
MOST_MARKS = 8000
NO_ENGINE = "graph, as a table: pip install pygraphviz draws it"


class GraphView(View):
    """The graph of a jaxpr's equations, beside its listing.

    `around` is the equation whose boxes are open at first; the telling one by default,
    but for repeats, which stay closed.
    """

    recording: JaxprRecording

    def __init__(self, recording: JaxprRecording, around: int | None = None) -> None:
        super().__init__(recording)
        self.listing = JaxprView(recording)
        self.boxes = Boxes(recording, recording.telling if around is None else around)
        self.first = self.opened_first(asked=around is not None)

    def tell(self, step: int) -> None:
        """Opens the listing at the step, too; the same boxes are open."""
        super().tell(step)
        self.listing = JaxprView(self.recording)
        self.listing.first_step = step

    def opened_first(self, asked: bool) -> set[str]:
        """Returns the boxes that are open at first: as many as can be read."""
        boxes = self.boxes
        if not self.recording.equations:
            return set()
        opened: set[str] = set()
        for unit in reversed(boxes.way_to(f"e{boxes.around}")):
            if not asked and boxes.is_aside(unit):
                break
            opened.add(unit)
        for unit in boxes.units:
            if set(boxes.way_to(unit)) <= opened and not boxes.is_aside(unit):
                more = {*opened, unit}
                if len(Sketch(boxes, more).nodes) <= MOST_AT_FIRST:
                    opened = more
        return opened

    # ---- text ------------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and an arrow for each value that flows."""
        arrows = [
            f"  {self.boxes.label(a)} -> {self.boxes.label(b)}  {name}"
            for a, b, name in edges_of(self.recording)
        ]
        if not full and len(arrows) > 200:
            hidden = len(arrows) - 200
            note = f"  ... {hidden:,} more: print(v.text(full=True))"
            arrows = [*arrows[:200], note]
        return "\n".join([self.recording.headline, *arrows])

    def dot(self) -> str:
        """Returns the graph in Graphviz's language."""
        lines = ["digraph jaxpr {", "  node [shape=box]"]
        for equation in self.recording.equations:
            label = json.dumps(self.boxes.label(equation))
            lines.append(f"  e{equation.id} [label={label}]")
        for a, b, name in edges_of(self.recording):
            lines.append(f"  e{a.id} -> e{b.id} [label={json.dumps(name)}]")
        return "\n".join([*lines, "}"])

    # ---- the picture -----------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture: the graph, and the listing."""
        frame = self.listing.frame()
        frame.text = self.text(full=True)
        scenes = self.scenes()
        if not scenes:
            rows = [
                Row(
                    [self.boxes.label(a), name, self.boxes.label(b)],
                    keys=[f"e{a.id}", f"e{b.id}"],
                )
                for a, b, name in edges_of(self.recording)
            ]
            table = Pane(NO_ENGINE, rows, below=True)
            frame.panes.append(table)
            return frame
        graph = Pane("graph", [], kind="scene", scene=scenes[0], layouts=scenes)
        # A small one stands beside the listing.
        graph.wide = scenes[0].width > MOST_BESIDE
        if graph.wide and len(scenes) > NARROW:
            # Where it does not fit, it runs down; with fewer boxes open, if need be.
            graph.narrow = scenes[NARROW]
            if (
                scenes[DOWN].width < scenes[WIDE].width
                and scenes[DOWN].height < MOST_DOWN
            ):
                graph.middle = scenes[DOWN]
        frame.panes.insert(0, graph)
        for pane in frame.panes[2:]:
            pane.below = True
        for number, step in enumerate(frame.steps):
            step.marks = [(p + 1, r, a, b) for p, r, a, b in step.marks]
            # A step in a closed box lights the box.
            step.on += [f"closed {unit}" for unit in self.boxes.way_to(f"e{number}")]
        return frame

    @functools.cached_property
    def laid(
        self,
    ) -> tuple[list[tuple[Sketch, int]], list[dict[str, int]], list[Laid]]:
        """The sketches, which of them the click on a box shows, and their places."""
        sketches, states = self.sketches()
        return (
            sketches,
            states,
            lay_out([(one.dot(), form > 0) for one, form in sketches]),
        )

    @functools.cached_property
    def firsts(self) -> list[set[str]]:
        """The boxes that are open at first: on a wide page; on one where the graph has
        to run down; and on a narrow one, where those around an equation are open."""
        narrow = self.first & set(self.boxes.way_to(f"e{self.boxes.around}"))
        return [self.first, self.first, narrow]

    def sketches(self) -> tuple[list[tuple[Sketch, int]], list[dict[str, int]]]:
        """Returns the graph as it is at first on the three pages, and with each box
        opened or closed; each with which page it is for, those that only run down
        last. For each page, the number of the sketch that a click on a box shows."""
        firsts = self.firsts
        found = [
            (Sketch(self.boxes, first, LETTERS_OF[n]), n)
            for n, first in enumerate(firsts)
        ]
        states: list[dict[str, int]] = [{}, {}, {}]
        for form in (WIDE, NARROW, DOWN):
            first = firsts[form]
            for unit in self.boxes.units:
                alone = {unit, *self.boxes.way_to(unit)}
                opened = first - {unit}
                if unit not in first:
                    opened = alone if form == NARROW else {*first, *alone}
                sketch = Sketch(self.boxes, opened, LETTERS_OF[form])
                if len(sketch.nodes) > MOST_DRAWN:
                    sketch = Sketch(self.boxes, alone, LETTERS_OF[form])
                states[form][unit] = len(found)
                found.append((sketch, form))
        return found, states

    def scenes(self) -> list[Scene]:
        """Returns the pictures, the one that is shown first at the front: those of the
        sketches that were laid out, none without Graphviz."""
        sketches, states, laid = self.laid
        scenes: list[Scene] = []
        marks = 0
        for (sketch, form), places in zip(sketches, laid, strict=False):
            if form == DOWN and len(scenes) > NARROW and not laid[0].across:
                break  # it runs down on a wide page, too
            goes = dict(states[form])
            for unit in self.boxes.units:
                # What is not as at first becomes so again.
                if (unit in sketch.opened) != (unit in self.firsts[form]):
                    goes[unit] = form
            scene = Scene(
                places.w + 2 * PAD,
                places.h + 2 * PAD,
                "graph of the equations; the listing beside it says the same",
            )
            Drawer(sketch, places, scene, goes, self.listing.detail).draw()
            marks += len(scene.marks)
            if marks > MOST_MARKS and scenes:
                break
            scenes.append(scene)
        # Where one that runs down had too many marks, that of a narrow page serves.
        spare = {states[DOWN][unit]: states[NARROW][unit] for unit in self.boxes.units}
        for scene in scenes:
            for mark in scene.marks:
                if mark.opens is not None and mark.opens >= len(scenes):
                    mark.opens = spare.get(mark.opens)
                    if mark.opens is not None and mark.opens >= len(scenes):
                        mark.opens = None
        return scenes


def edges_of(record: JaxprRecording) -> list[tuple[Equation, Equation, str]]:
    """Returns what flows between equations: (from, to, variable)."""
    found = []
    for equation in record.equations:
        for operand in dict.fromkeys(equation.operands):
            if not isinstance(operand, int):
                continue
            variable = record.variables[operand]
            if variable.definition is not None:
                maker = record.equations[variable.definition]
                found.append((maker, equation, variable.name))
    return found
