"""Where the boxes of a graph stand: Graphviz says, in a child process with a deadline.

The engine comes with the wheel of pygraphviz, an extra of minijax; without it, and for
a graph on which it takes too long, there are no places, and a table serves.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Point = tuple[float, float]

ENGINE = Path(__file__).with_name("graph_engine.py")
# The engine ends itself after two seconds of processor time; this is for a machine
# that has other work.
LONGEST_WAIT = 20.0


@dataclass(frozen=True)
class Laid:
    """The places of a graph in pixels: middles of nodes, (left, top, right, bottom) of
    boxes, lines as the points of Bezier curves; `across`: it runs to the right."""

    nodes: dict[str, Point]
    clusters: dict[str, tuple[float, float, float, float]]
    lines: dict[str, list[Point]]
    w: float
    h: float
    across: bool


def lay_out(graphs: Sequence[tuple[str, bool]]) -> list[Laid]:
    """Places graphs written in Graphviz's language: those that it did in time. With
    each stands whether it is for a narrow page, on which it has to run down.

    A node has its sizes in inches of 72 pixels, a line its `id`. The list is as long as
    the engine came, and empty where there is none.
    """
    # With -P no file of the working directory takes the place of a module.
    command = [sys.executable, "-P", str(ENGINE)]
    try:
        child = subprocess.run(
            command,
            input=json.dumps(list(graphs)).encode(),
            capture_output=True,
            timeout=LONGEST_WAIT,
            check=False,
        )
        written = child.stdout
    except subprocess.TimeoutExpired as late:
        written = late.stdout or b""
    except OSError:
        return []
    pages = [json.loads(line) for line in written.splitlines(True) if b"\n" in line]
    return [Laid(**page) for page in pages]
