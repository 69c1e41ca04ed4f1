"""`see.jaxpr(f, x).graph()`: the equations as boxes, and what flows between them.

The text of the graph is DOT. Coordinates come from Graphviz through `pygraphviz`, whose
wheel brings the engine (the extra `minijax[graph]`): in a process of its own with a
deadline, since the engine holds Python's lock. Without it the listing serves alone.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from html import escape
from typing import Any

from minijax_lab.explain.jaxpr import Equation, JaxprRecording
from minijax_widgets.frame import Frame, Pane
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.style import CODE, LIGHT, PALETTE
from minijax_widgets.view import View

MOST_NODES = 120
DEADLINE = 2.0  # seconds
HEIGHT = 28
# Runs in the child: DOT comes in, coordinates in points go out.
CHILD = """
import json, sys
import pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.read())
graph.layout("dot")
nodes = {n: n.attr["pos"] for n in graph.nodes()}
edges = [[e[0], e[1], e.attr["pos"]] for e in graph.edges()]
box = graph.graph_attr["bb"]
json.dump({"box": box, "nodes": nodes, "edges": edges}, sys.stdout)
"""


class GraphView(View):
    """The graph of a jaxpr's equations, beside its listing."""

    recording: JaxprRecording

    def __init__(self, recording: JaxprRecording, around: int | None = None) -> None:
        super().__init__(recording)
        self.listing = JaxprView(recording)
        self.inside: Equation | None = None  # what calls the program that is drawn
        drawn = [e for e in recording.equations if e.parent is None]
        while len(drawn) == 1:
            # One box says nothing: what stands inside of it does.
            inner = [e for e in recording.equations if e.parent == drawn[0].id]
            if not inner:
                break
            self.inside, drawn = drawn[0], inner
        self.total = len(drawn)
        if len(drawn) > MOST_NODES:
            start = recording.telling if around is None else around
            level = {equation.id for equation in drawn}
            near = neighbours(recording, self.box_of(start, level), hops=2)
            drawn = [e for e in drawn if e.id in near][:MOST_NODES]
        self.shown = drawn
        self.placed = layout(self.dot())

    def box_of(self, number: int, boxes: set[int]) -> int:
        """Returns which of `boxes` an equation is, or stands inside of; else itself."""
        parent: int | None = number
        while parent is not None and parent not in boxes:
            parent = self.recording.equations[parent].parent
        return number if parent is None else parent

    def text(self, full: bool = False) -> str:
        """Returns the headline and an arrow for each value that flows."""
        arrows = [
            f"  {self.label(a)} -> {self.label(b)}  {name}"
            for a, b, name in edges_of(self.recording, self.shown)
        ]
        return "\n".join([self.recording.headline, *arrows])

    def label(self, equation: Equation) -> str:
        """Returns what stands in an equation's box."""
        names = [self.recording.variables[r].name for r in equation.results]
        return f"{' '.join(names) or '_'} = {equation.primitive}"

    def dot(self) -> str:
        """Returns the graph in Graphviz's language."""
        lines = ["digraph jaxpr {", f"  node [shape=box, height={HEIGHT / 72:.3f}]"]
        for equation in self.shown:
            label = self.label(equation)
            width = width_of(label) / 72
            lines.append(
                f"  e{equation.id} [label={json.dumps(label)}, width={width:.3f}, "
                "fixedsize=true]"
            )
        for a, b, name in edges_of(self.recording, self.shown):
            lines.append(f"  e{a.id} -> e{b.id} [comment={json.dumps(name)}]")
        return "\n".join([*lines, "}"])

    def graph(self) -> dict[str, Any] | None:
        """Returns boxes and lines for the player; None without the engine."""
        if self.placed is None or not self.shown:
            return None
        width, height = (float(x) for x in self.placed["box"].split(",")[2:])
        nodes = []
        for equation in self.shown:
            place = self.placed["nodes"][f"e{equation.id}"]
            x, y = (float(part) for part in place.split(","))
            label = self.label(equation)
            nodes.append(
                {
                    "key": f"e{equation.id}",
                    "label": label,
                    "x": round(x + 4, 1),
                    "y": round(height - y + 4, 1),
                    "w": width_of(label),
                    "h": HEIGHT,
                }
            )
        edges = []
        for start, end, spline in self.placed["edges"]:
            points = [p.split(",") for p in spline.split() if not p.startswith("s,")]
            line = [
                [round(float(p[-2]) + 4, 1), round(height - float(p[-1]) + 4, 1)]
                for p in points
            ]
            # Graphviz gives the arrow's tip first.
            edges.append({"points": [*line[1:], line[0]], "keys": [start, end]})
        size = {"width": width + 8, "height": height + 8}
        return {**size, "nodes": nodes, "edges": edges}

    def frame(self) -> Frame:
        """Returns the picture: the graph, if there is an engine, and the listing."""
        frame = self.listing.frame()
        graph = self.graph()
        if graph is not None:
            title = "graph"
            if self.inside is not None:
                title += f" inside of {self.inside.primitive}"
            if len(self.shown) < self.total:
                title += f": {len(self.shown):,} of {self.total:,} equations"
            frame.panes.insert(0, Pane(title, [], kind="graph", graph=graph))
            for pane in frame.panes[2:]:
                pane.below = True
            boxes = {equation.id for equation in self.shown}
            for number, step in enumerate(frame.steps):
                step.marks = [(p + 1, r, a, b) for p, r, a, b in step.marks]
                # A step inside of a called program lights the box of the call.
                box = self.box_of(number, boxes)
                if box != number and box in boxes:
                    step.on.append(f"around e{box}")
        frame.text = self.text(full=True)
        return frame

    def to_svg(self) -> str:
        """Returns the graph as SVG; ImportError without the engine."""
        graph = self.graph()
        if graph is None and self.shown:
            raise ImportError(
                "a picture of the graph needs Graphviz: install the extra with "
                "`pip install 'minijax[graph]'`, or use `.dot()`."
            )
        graph = graph or {"width": 8, "height": 8, "nodes": [], "edges": []}
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{graph["width"]:.0f}" '
            f'height="{graph["height"]:.0f}" font-family="{escape(CODE)}" '
            f'font-size="12"><rect width="100%" height="100%" fill="{LIGHT["base"]}"/>'
        ]
        for edge in graph["edges"]:
            path = " L".join(f"{x},{y}" for x, y in edge["points"])
            ink = LIGHT["line"]
            parts.append(
                f'<path d="M{path}" fill="none" stroke="{ink}"/>'
                f'<polygon points="{arrow(edge["points"])}" fill="{ink}"/>'
            )
        for node in graph["nodes"]:
            x, y = node["x"] - node["w"] / 2, node["y"] - node["h"] / 2
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{node["w"]}" height="{HEIGHT}" '
                f'rx="4" fill="{PALETTE["value"][1]}" stroke="{PALETTE["value"][0]}"/>'
                f'<text x="{node["x"]}" y="{node["y"] + 4}" text-anchor="middle" '
                f'fill="{LIGHT["text"]}">{escape(node["label"])}</text>'
            )
        return "".join([*parts, "</svg>"])


def arrow(points: list[list[float]]) -> str:
    """Returns the corners of an arrow's head at the end of a line."""
    (from_x, from_y), (x, y) = points[max(0, len(points) - 3)], points[-1]
    length = math.hypot(x - from_x, y - from_y) or 1.0
    dx, dy = (x - from_x) / length, (y - from_y) / length
    corners = [
        (x, y),
        (x - 8 * dx - 4 * dy, y - 8 * dy + 4 * dx),
        (x - 8 * dx + 4 * dy, y - 8 * dy - 4 * dx),
    ]
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)


def width_of(label: str) -> int:
    """Returns the width of a box in points: ours, whatever fonts the engine knows."""
    return 16 + 8 * len(label)


def edges_of(
    record: JaxprRecording, shown: list[Equation]
) -> list[tuple[Equation, Equation, str]]:
    """Returns what flows between the shown equations: (from, to, variable)."""
    inside = {equation.id for equation in shown}
    found = []
    for equation in shown:
        for operand in equation.operands:
            if not isinstance(operand, int):
                continue
            variable = record.variables[operand]
            if variable.definition in inside:
                maker = record.equations[variable.definition]
                found.append((maker, equation, variable.name))
    return found


def neighbours(record: JaxprRecording, start: int, hops: int) -> set[int]:
    """Returns the equations within some steps along the flow, in either direction."""
    near = {start}
    for _ in range(hops):
        more = set(near)
        for number in near:
            equation = record.equations[number]
            for operand in equation.operands:
                if isinstance(operand, int):
                    definition = record.variables[operand].definition
                    more |= set() if definition is None else {definition}
            for result in equation.results:
                more |= set(record.variables[result].uses)
        near = more
    return near


def layout(dot: str) -> dict[str, Any] | None:
    """Returns Graphviz's coordinates; None without it, or when it is too slow."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=dot,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0:
        return None
    return json.loads(answer.stdout)
