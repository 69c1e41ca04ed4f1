"""`see.tree`: a pytree, its leaves with their paths, and two trees compared."""

from __future__ import annotations

from typing import Any

from minijax_lab.explain.leaf_values import Held
from minijax_lab.explain.small_values import check_choice
from minijax_lab.explain.tree import Node, TreeRecording, record_tree, size_in_words
from minijax_widgets.cells import largest_of, values_parts, widest
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, in_parts
from minijax_widgets.glyph import as_inline, line, path
from minijax_widgets.view import View, cut, shortened, shows

MARKS = {"": " ", "add": "+", "del": "-", "changed": "!"}
ONE_SIDED = {"add": "only in the second tree", "del": "only in the first tree"}
# The length of the longest bar.
MOST_PIXELS = 90
# An array in its row: a line of cells with numbers, and the room of all cells.
LINE, TALLEST, WIDEST = 16, 80, 200
# How wide an array is at least.
LEAST = 8
# Containers of a tree of more nodes are folded at first.
MOST_OPEN = 300
_MISSING: Any = object()


def tree(value: Any, other: Any = _MISSING, *, values: bool | None = None) -> TreeView:
    """Shows a pytree: its containers, and each leaf with its path, type and bytes, and
    its array as a heat map, with lines where the pieces of an array with one or two
    axes on several devices end.

    With a second tree the view shows where they differ: in structure, shape or dtype;
    numbers are not compared. A leaf that no transformation takes, such as a string or a
    class that is not registered, is pointed out.

    Args:
      value: the tree.
      other: a second tree.
      values: whether arrays are drawn: all of them, cell by cell up to 32 x 32, else as
        means of blocks (True); none (False); by default until 20,000 cells are drawn
        and four million numbers are read, and large arrays in 16 x 16 cells.
    """
    check_choice(values, "see.tree")
    if other is _MISSING:
        return TreeView(record_tree(value, values=values))
    return TreeView(record_tree(value, other, compare=True, values=values))


@shows("tree")
class TreeView(View):
    """A row for each container and leaf, indented."""

    recording: TreeRecording

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each node."""
        rows = [
            self.row(node, number == self.recording.telling)
            for number, node in enumerate(self.recording.nodes)
        ]
        return "\n".join([cut(self.recording.headline, 100), *shortened(rows, full)])

    def row(self, node: Node, telling: bool) -> str:
        """Returns one node's row of the text twin."""
        mark = ">" if telling else MARKS[node.change]
        left = f"{mark} {'  ' * node.depth}{node.key or 'tree'}"
        right = self.what(node)
        size = size_in_words(node.bytes) if node.bytes else ""
        note = node.note
        if telling and node.change in ONE_SIDED:
            # The mark of the telling row hides the one that says this.
            note = "; ".join(filter(None, [ONE_SIDED[node.change], note]))
        told = f"{left:26} {right:24} {size:>10}  {note}".rstrip()
        return cut(told, 100)

    def what(self, node: Node) -> str:
        """Returns a leaf's type, or a container's name with its static fields."""
        return node.type if node.leaf is not None else f"{node.kind}{node.static}"

    def frame(self) -> Frame:
        """Returns the picture: the indented rows; containers fold, and those of a large
        tree are folded."""
        rows, steps = [], []
        large = len(self.recording.nodes) > MOST_OPEN
        most = max((node.bytes for node in self.recording.nodes), default=0)
        for number, node in enumerate(self.recording.nodes):
            leaf = node.leaf is not None
            type_piece = Piece(self.what(node), "chip" if leaf else "constant")
            size = size_in_words(node.bytes) if node.bytes else ""
            side = ONE_SIDED.get(node.change, "")
            note = Piece("; ".join(filter(None, [side, node.note])))
            note.role = "miss" if node.note else "constant" if side else ""
            shown = self.array(node, number)
            if shown and note.text:
                shown.append(Piece("; "))
            look = {"add": "add", "del": "del", "changed": "miss"}.get(node.change, "")
            rows.append(
                Row(
                    [
                        node.key or "tree",
                        [type_piece],
                        [Piece(size, "size")],
                        self.bar(node, most),
                        [*shown, note],
                    ],
                    keys=[f"n{number}"],
                    go=number,
                    depth=node.depth,
                    look=look,
                    folded=large and not leaf and node.depth > 0,
                )
            )
            steps.append(
                FrameStep(node.path or "tree", self.detail(node), [f"n{number}"])
            )
        glyphs = {
            f"array {number}": drawn(node.held, node.path or "it")
            for number, node in enumerate(self.recording.nodes)
            if node.held and node.held.rows
        }
        panes = [Pane("", in_parts(rows))]
        return self.picture(panes, steps, self.recording.telling, glyphs=glyphs)

    def array(self, node: Node, number: int) -> list[Piece]:
        """Returns an array drawn, and what it holds in words."""
        if node.held is None or not node.held.rows:
            return []
        told = f"  {node.held.told}"
        return [Piece("", f"array {number}"), Piece(told, "constant")]

    def bar(self, node: Node, most: int) -> list[Piece]:
        """Returns a node's bytes as a bar, as long as its part of the largest tree."""
        if not node.bytes:
            return []
        return [Piece(f"{max(1, MOST_PIXELS * node.bytes / most):.0f}", "bytes")]

    def detail(self, node: Node) -> str:
        """Returns a sentence about a node."""
        path = node.path or "the tree itself"
        if node.leaf is None:
            told = f"{path}: a {node.kind}"
            if not node.path and not self.recording.nodes[1:]:
                told += " without leaves: give a tree that has arrays or numbers"
            if node.kind == "None":
                told = f"{path}: None, a container without leaves"
            if node.static:
                told += f", static {node.static}: part of the structure"
        else:
            told = f"{path}: leaf {node.leaf}, {node.type}"
        if node.bytes:
            told += f", {size_in_words(node.bytes)}"
        if node.held:
            told += f"; {node.held.told}"
        if node.note:
            told += f"; {node.note}"
        if node.change:
            said = ONE_SIDED.get(node.change, "not the same in both trees")
            told += f"; {said}"
        return told


def drawn(held: Held, name: str) -> dict[str, Any]:
    """Returns an array as a heat map in a line: with its numbers where all of them have
    room, else as small squares; `name` is what the pointer is told."""
    rows, columns = len(held.rows), len(held.rows[0])
    each = max(widest(held.rows) + 4, LINE)
    tall = float(LINE)
    if rows * LINE > TALLEST or columns * each > WIDEST:
        tall = min(LINE, TALLEST / rows)
        each = min(max(tall, LEAST / columns), WIDEST / columns)
    parts = values_parts(
        held.rows,
        largest_of([held.rows]),
        (each, tall),
        name=name if held.exact else "",
    )
    wide, high = columns * each, rows * tall
    for y in held.cuts[0]:
        parts.append(path(line([(0, y * tall), (wide, y * tall)]), "text", 2.0))
    for x in held.cuts[1]:
        parts.append(path(line([(x * each, 0), (x * each, high)]), "text", 2.0))
    return as_inline(-1, -1, wide + 2, high + 2, parts)
