"""Graphviz in a process of its own: places for boxes and lines, nothing drawn.

`graph_layout.py` runs this file. It reads a JSON list of graphs, each in Graphviz's
language with whether it has to run down, and writes a line of JSON for each as soon as
it is laid out. The first graph decides whether the others run to the right or down: the
way in which it is seen larger on a page. What it takes to lay out the same graph in the
same way twice is spent once.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

# Processor time for all graphs, in seconds; another machine's load does not count.
DEADLINE = 2.0
PAGE = (1150.0, 620.0)


def laid(text: str, across: bool) -> dict[str, Any]:
    """Returns a graph's places in pixels, y downwards: middles of nodes, corners of
    clusters, points of lines by their `id`, and `w` and `h` of all."""
    import pygraphviz

    graph = pygraphviz.AGraph(string=text)
    graph.graph_attr["rankdir"] = "LR" if across else "TB"
    graph.layout(prog="dot")
    w, h = (float(part) for part in graph.graph_attr["bb"].split(",")[2:])

    def point(pair: str) -> list[float]:
        x, y = pair.split(",")[-2:]
        return [float(x), h - float(y)]

    clusters = {}
    left = list(graph.subgraphs_iter())
    while left:
        inner = left.pop()
        left += inner.subgraphs_iter()
        if (inner.name or "").startswith("cluster"):
            x, y, to_x, to_y = map(float, inner.graph_attr["bb"].split(","))
            clusters[inner.name[7:]] = [x, h - to_y, to_x, h - y]
    lines = {}
    for edge in graph.edges_iter():
        # The tip, after "e,", stands before the points of the curve.
        first, *rest = edge.attr["pos"].split()
        tip = [first] if first.startswith("e,") else []
        lines[edge.attr["id"]] = [point(p) for p in (rest if tip else [first, *rest])]
        lines[edge.attr["id"]] += [point(p) for p in tip]
    nodes = {str(node): point(node.attr["pos"]) for node in graph.nodes_iter()}
    return {
        "nodes": nodes,
        "clusters": clusters,
        "lines": lines,
        "w": w,
        "h": h,
        "across": across,
    }


def seen(page: dict[str, Any]) -> float:
    """Returns how large a graph is seen on a page: at most as large as it is."""
    return min(1.0, PAGE[0] / page["w"], PAGE[1] / page["h"])


def main() -> None:
    """Lays out the graphs on the standard input until the time is over."""
    try:
        import resource

        most = int(DEADLINE) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    except ImportError:
        pass
    first, *more = json.load(sys.stdin)
    page = laid(first[0], True)
    down = laid(first[0], False)
    known = {(first[0], True): page, (first[0], False): down}
    if seen(down) > 1.15 * seen(page):
        page = down
    print(json.dumps(page), flush=True)
    for text, narrow in more:
        if time.process_time() > DEADLINE:
            break
        key = text, page["across"] and not narrow
        if key not in known:
            known[key] = laid(*key)
        print(json.dumps(known[key]), flush=True)


if __name__ == "__main__":
    main()
