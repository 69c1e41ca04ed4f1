"""The tree of `see.keys`, drawn: a box for each key, an array for what is drawn.

A key that goes on under its parent's name stands below it, the others to its right.
Siblings that share a fate, and rounds of a loop that do, are drawn once and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.key_values import KeyNode, Use, count_of, used_in_words
from minijax_widgets.code import key_of_line
from minijax_widgets.glyph import LEAST_TEXT, glyph_size, text_width
from minijax_widgets.scene import Placed, Scene, Times, fitting

# The shortest row of siblings or rounds that are drawn once.
LEAST_ALIKE = 3
# The keys that are drawn; the text twin has all.
MOST_DRAWN = 150
NAME, SMALL, LEFT = 150.0, 0.6, 8.0
# On a narrow page: how far a level stands to the right.
INDENT = 26.0


@dataclass
class Branch:
    """A key that is drawn, for itself and for those that are alike."""

    node: KeyNode
    parent: Branch | None
    ids: list[int]  # this key, and those that are not drawn because of it
    alike: int = 1
    trunk: bool = False  # goes on under its parent's name
    box: Placed | None = None

    @property
    def level(self) -> int:
        """How many columns it stands to the right."""
        return 0 if self.parent is None else self.parent.level + (not self.trunk)

    @property
    def below(self) -> str:
        """What is written below the name: a verdict, a count, or where it is from."""
        node = self.node
        count = f"x {self.alike:,} alike" if self.alike > 1 else ""
        if node.reused:
            used = count_of(node.uses)
            verdict = f"used {used_in_words(node.uses)}"
            verdict = verdict if used > 1 else "folded and drawn from"
            return " ".join(filter(None, [verdict, count]))
        if node.unsure and node.uses:
            return "cannot tell"
        return count or ("" if self.parent else node.how)


def branches_of(
    keys: Sequence[KeyNode], fate: Callable[[KeyNode], tuple[Any, ...]]
) -> list[Branch]:
    """Returns what is drawn of the keys, each behind the one it came from."""
    below: dict[int, list[KeyNode]] = {node.id: [] for node in keys}
    for node in keys:
        if node.parent is not None:
            below[node.parent].append(node)
    trunks: dict[int, int] = {}
    for node in keys:
        own = [child for child in below[node.id] if child.name == node.name]
        if len(own) == 1 and below[node.id][-1] is own[0]:
            trunks[node.id] = own[0].id
    # What becomes of a key and of those to its right, and of all below it: as numbers.
    numbers: dict[Any, int] = {}
    rounds: dict[int, int] = {}
    fates: dict[int, int] = {}
    runs: dict[int, int] = {}
    for node in reversed(keys):
        trunk = trunks.get(node.id, -1)
        beside = [fates[child.id] for child in below[node.id] if child.id != trunk]
        said = (str(fate(node)), node.reused, *beside)
        rounds[node.id] = numbers.setdefault(said, len(numbers))
        whole = (rounds[node.id], fates.get(trunk, -1))
        fates[node.id] = numbers.setdefault(whole, len(numbers))
        goes_on = rounds.get(trunk) == rounds[node.id]
        runs[node.id] = 1 + (runs[trunk] if goes_on else 0)
    alike = Counter((node.parent, fates[node.id]) for node in keys)
    stands: dict[int, Branch] = {}
    first: dict[tuple[int, int], Branch] = {}
    covered: set[int] = set()
    found: list[Branch] = []
    for node in keys:
        known: Branch | None = None
        parent = None
        trunk_here = False
        if node.parent is not None:
            parent = stands[node.parent]
            trunk_here = trunks.get(node.parent) == node.id
            again = (node.parent, fates[node.id])
            if node.parent in covered or (
                not trunk_here and node.parent != parent.node.id
            ):
                known = parent
                covered.add(node.id)
            elif trunk_here:
                same = rounds[parent.node.id] == rounds[node.id]
                if parent.trunk and same and runs[parent.node.id] >= LEAST_ALIKE:
                    known = parent
                    known.alike += 1
            elif alike[again] >= LEAST_ALIKE and again in first:
                known = first[again]
                known.alike += 1
                covered.add(node.id)
        if known is not None:
            known.ids.append(node.id)
            stands[node.id] = known
            continue
        branch = Branch(node, parent, [node.id], trunk=trunk_here)
        if node.parent is not None:
            first[node.parent, fates[node.id]] = branch
        stands[node.id] = branch
        found.append(branch)
    return found


class KeyTree:
    """Draws branches, one row after the other.

    `steps` says to which step a key belongs, `said` what a use is called, `narrow`
    that each key and each draw takes a row for itself.
    """

    def __init__(
        self,
        branches: list[Branch],
        steps: dict[int, int],
        said: Callable[[Use], str],
        narrow: bool,
    ) -> None:
        self.branches = branches[:MOST_DRAWN]
        self.left_out = len(branches) - len(self.branches)
        self.steps, self.said, self.narrow = steps, said, narrow
        levels = max((branch.level for branch in self.branches), default=0)
        self.columns = [LEFT + INDENT * level for level in range(levels + 2)]
        if not narrow:
            self.spread()
        self.scene = Scene(0, 0, "tree of the keys; the text says the same")
        self.right = self.y = LEFT
        # Keys that have nothing to their right yet: it stands in their row.
        self.free: set[int] = set()

    def spread(self) -> None:
        """Gives each level a column as wide as its boxes and what leads on from it."""
        for level in range(len(self.columns) - 1):
            here = [b for b in self.branches if b.level == level]
            box = max((box_width(branch) for branch in here), default=0.0)
            leads = [
                text_width(b.node.how, LEAST_TEXT)
                for b in self.branches
                if b.level == level + 1 and not b.trunk
            ]
            gap = max([*leads, 20.0]) + 26
            self.columns[level + 1] = self.columns[level] + box + gap

    def draw(self) -> Scene:
        """Returns the picture."""
        for branch in self.branches:
            self.key(branch)
            for use in branch.node.uses:
                if use.kind not in ("split", "fold"):
                    self.use(branch, use)
        if self.left_out:
            told = f"{self.left_out:,} more keys: the text has them"
            self.scene.note(LEFT, self.y + 14, told)
            self.y += 24
        self.scene.width, self.scene.height = self.right + LEFT, self.y + LEFT
        return self.scene

    def row(self, parent: Branch | None, high: float, beside: bool) -> float:
        """Returns the top of a row for what comes from a key."""
        if beside and parent and not self.narrow and parent.node.id in self.free:
            self.free.discard(parent.node.id)
            assert parent.box is not None
            top = parent.box.y
        else:
            top = self.y
        self.y = max(self.y, top + high)
        return top

    def key(self, branch: Branch) -> None:
        """Draws a key and the edge to it."""
        node, below = branch.node, branch.below
        high = 38.0 if below else 24.0
        if branch.trunk:
            self.y += 12  # room for what made it
        top = self.row(branch.parent, high + 12, not branch.trunk)
        steps = [self.steps[i] for i in branch.ids if i in self.steps]
        keys = [f"k{i}" for i in branch.ids if i in self.steps]
        leads: Times = {"label": f"{node.name}, {node.how} {below}".strip()}
        if steps:
            leads["go"] = steps[0]
        role = "miss" if node.reused else "value"
        links = [link for use in node.uses for link in key_of_line(use.span)]
        branch.box = box = self.scene.box(
            self.columns[branch.level],
            top,
            box_width(branch),
            high,
            key=dict.fromkeys([*keys, *links]),
            role=role,
            text=fitting(node.name, NAME),
            detail=below,
            mono=True,
            **leads,
        )
        self.free.add(node.id)
        self.right = max(self.right, box.x + box.w)
        if branch.parent:
            self.edge(branch.parent, (box.x, top + 12), node.how, branch.trunk)
        remarks = [] if node.uses else ["not used"]
        if self.narrow and branch.parent and not branch.trunk:
            remarks.insert(0, node.how)
        if remarks:
            self.beside(box.x + box.w + 8, top + 16, ", ".join(remarks))

    def beside(self, x: float, y: float, text: str) -> None:
        """Writes a small remark."""
        placed = self.scene.note(x, y, text, size=LEAST_TEXT, label="")
        self.right = max(self.right, placed.x + placed.w)

    def use(self, branch: Branch, use: Use) -> None:
        """Draws what used a key: the array that came out, and the sampler's name."""
        shape, said = use.shape, self.said(use)
        wide, high = (0.0, 16.0)
        if shape is not None:
            wide, high = glyph_size(shape, scale=SMALL)
        tall = max(24.0, high)
        top = self.row(branch, tall + 12, True)
        x, middle = self.columns[branch.level + 1], top + tall / 2
        role = "miss" if branch.node.reused else "value"
        keys = [f"k{branch.node.id}", *key_of_line(use.span)]
        self.edge(branch, (x, min(middle, top + 12)), "", False)
        if shape is not None:
            self.scene.glyph(shape, x + 4, middle - high / 2, scale=SMALL, label="")
        placed = self.scene.text(
            x + wide + 12,
            middle + 4,
            said,
            key=keys,
            role=role,
            size=12,
            weight=600 if branch.node.reused else 400,
        )
        self.right = max(self.right, placed.x + placed.w)

    def edge(
        self, parent: Branch, end: tuple[float, float], text: str, trunk: bool
    ) -> None:
        """Draws the line from a key to what became of it."""
        box = parent.box
        assert box is not None
        role = "miss" if parent.node.reused else ""
        x, y = end
        foot = (box.x + 12, box.y + box.h + 1)
        if trunk:
            self.scene.arrow(foot, (foot[0], y - 13), role=role, label="")
            self.beside(foot[0] + 8, y - 17, text)
        elif self.narrow:
            corner = [(foot[0], y)]
            self.scene.arrow(foot, (x - 1, y), via=corner, role=role, label="")
        else:
            start = (box.x + box.w + 1, box.y + 12)
            turn = start[0] + 10
            corners = [] if y == start[1] else [(turn, start[1]), (turn, y)]
            self.scene.arrow(start, (x - 1, y), via=corners, role=role, label="")
            if text:
                self.beside(x - 10 - text_width(text, LEAST_TEXT), y - 5, text)


def box_width(branch: Branch) -> float:
    """Returns the width of a key's box."""
    name = text_width(fitting(branch.node.name, NAME), 12, True) * 1.05
    return max(34.0, name + 12, text_width(branch.below, LEAST_TEXT) + 12)
