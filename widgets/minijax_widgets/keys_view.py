"""`see.keys`: the tree of random keys in a function, and keys that are used twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.key_values import (
    KeyNode,
    KeysRecording,
    Use,
    count_of,
    use_in_words,
    used_in_words,
)
from minijax_lab.explain.keys import record_keys, use_text
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.keys_scene import KeyTree, branches_of
from minijax_widgets.view import View, cut, shortened, shows

# The column in which it stands where a key came from, and the one behind it.
NAMES, ORIGINS = 30, 11
# Rounds of a loop that are shown before those that are the same.
ROUNDS = 2
# A tree that is wider stands downwards, on every page or on one with no room for it.
MOST_WIDE, MOST_MIDDLE = 1100, 560
# Text twins are plain ASCII: the lines of the tree.
RAILS = {"": "  ", "through": "| ", "branch": "+ ", "last": "+ "}


def keys(function: Callable[..., Any], *args: Any, **kwargs: Any) -> KeysView:
    """Shows what becomes of the random keys in `function`.

    Each row is a key: from which it was split, and what drew from it. A key that is
    used more than once is marked: its numbers are not independent. Rows of a split,
    rounds of a loop and examples of a `vmap` each count. Where only the run knows which
    key it is, the view says that it cannot tell.
    """
    return KeysView(record_keys(function, *args, **kwargs))


@dataclass
class Shown:
    """A row: a key, several keys of one split that share a fate, or rounds alike."""

    nodes: list[KeyNode]
    alike: int = 0  # so many rounds more are not shown


@shows("keys")
class KeysView(View):
    """A row for each key, with twigs for the keys that were split from it."""

    recording: KeysRecording

    def shown(self) -> list[Shown]:
        """Returns the rows: keys of one split that share a fate stand in one."""
        rows: list[Shown] = []
        parents = {node.parent for node in self.recording.keys}
        for node in self.recording.keys:
            last = rows[-1].nodes[-1] if rows else None
            if (
                last is not None
                and last.parent == node.parent
                and not {last.id, node.id} & parents
                and (node.depth, fate(node)) == (last.depth, fate(last))
                and self.follows(last, node)
            ):
                rows[-1].nodes.append(node)
            else:
                rows.append(Shown([node]))
        return self.folded(rows)

    def follows(self, last: KeyNode, node: KeyNode) -> bool:
        """Says whether two keys may stand in one row."""
        if node.how.startswith("fold_in ") and last.how.startswith("fold_in "):
            return node.name == last.name
        if not last.how == node.how == "split" or node.rank != last.rank + 1:
            return False
        if last.name.endswith("]") != node.name.endswith("]"):
            return False
        return node.name.endswith("]") or not node.uses

    def folded(self, rows: list[Shown]) -> list[Shown]:
        """Returns the rows without the rounds of a loop that are as those before."""
        starts = [i for i, row in enumerate(rows) if self.goes_on(row.nodes[0])]
        blocks = [(start, end) for start, end in zip(starts, [*starts[1:], len(rows)])]
        found = rows[: starts[0]] if starts else rows
        alike = 0
        seen: list[Any] = []
        for start, end in blocks:
            block = rows[start:end]
            said = [
                (row.nodes[0].name, row.nodes[0].depth, *fate(row.nodes[0]))
                for row in block
            ]
            seen = [*seen, said] if seen and seen[-1] == said else [said]
            if len(seen) > ROUNDS:
                alike += 1
                continue
            if alike:
                found = [*found, Shown(rows[start - 1].nodes[:1], alike)]
                alike = 0
            found = [*found, *block]
        if alike:
            found = [*found, Shown(rows[-1].nodes[:1], alike)]
        return found

    def goes_on(self, node: KeyNode) -> bool:
        """Says whether a key goes on in its parent's place."""
        if node.parent is None:
            return False
        return self.recording.keys[node.parent].depth == node.depth

    def rails(self, rows: list[Shown]) -> list[list[str]]:
        """Returns the lines of the tree before each row's name, by level."""
        depths = [row.nodes[0].depth for row in rows]
        found = []
        for number, depth in enumerate(depths):
            lines = []
            for level in range(1, depth + 1):
                more = self.continues(rows, number, level)
                if level < depth:
                    lines.append("through" if more else "")
                else:
                    lines.append("branch" if more else "last")
            found.append(lines)
        return found

    def continues(self, rows: list[Shown], number: int, level: int) -> bool:
        """Says whether the line at a level goes on below a row."""
        for row in rows[number + 1 :]:
            node = row.nodes[0]
            if node.depth == level:
                return True
            if node.depth < level:
                return node.depth == level - 1 and self.goes_on(node)
        return False

    def name(self, row: Shown) -> str:
        """Returns what a row's keys are called."""
        first, last = row.nodes[0], row.nodes[-1]
        if row.alike:
            return f"... {row.alike} more rounds"
        if first is last:
            return first.name
        if first.name.endswith("]"):
            return f"{first.name} to {last.name}"
        if first.name == last.name:
            return f"{first.name}, {len(row.nodes):,} keys"
        return ", ".join(node.name for node in row.nodes)

    def origin(self, row: Shown) -> str:
        """Returns where a row's keys come from."""
        first, last = row.nodes[0], row.nodes[-1]
        if first.how == last.how:
            return first.how
        return f"{first.how} to {last.how.removeprefix('fold_in ')}"

    # ---- text ------------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each key."""
        rows = self.shown()
        telling = self.telling(rows)
        said = [
            self.row(row, "".join(RAILS[line] for line in rail), number == telling)
            for number, (row, rail) in enumerate(zip(rows, self.rails(rows)))
        ]
        said += [f"  cannot tell: {why}" for why in self.recording.unsure]
        return "\n".join([cut(self.recording.headline, 100), *shortened(said, full)])

    def telling(self, rows: list[Shown]) -> int:
        """Returns the row to show first: the one of the telling key, or before it."""
        telling = self.recording.telling
        found = [
            number
            for number, row in enumerate(rows)
            if not row.alike and row.nodes[0].id <= telling
        ]
        return found[-1] if found else 0

    def row(self, row: Shown, rail: str, telling: bool) -> str:
        """Returns one row of the text twin."""
        left = f"{'>' if telling else ' '} {rail}{self.name(row)}"
        if row.alike:
            return left
        node = row.nodes[0]
        told = f"{left:{NAMES}} {self.origin(row):{ORIGINS}} {self.uses(node)}"
        note = self.note(node)
        if note:
            told = f"{told:70} {note}"
        return cut(told.rstrip(), 100)

    def note(self, node: KeyNode) -> str:
        """Returns the verdict on a key, where there is one to give."""
        if node.reused:
            count = count_of(node.uses)
            told = f"used {used_in_words(node.uses)}"
            return told if count > 1 else "folded into and drawn from"
        return "cannot tell" if node.unsure and node.uses else ""

    def uses(self, node: KeyNode) -> str:
        """Returns what used a key, in order."""
        return ", ".join(map(with_line, node.uses)) or "not used"

    # ---- the picture -----------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture: the tree, and the lines that use the keys."""
        record = self.recording
        spans = [use.span for node in record.keys for use in node.uses if use.span]
        spans += [node.span for node in record.keys if node.span]
        sources = code_panes(record.sources, spans)
        shown = self.shown()
        steps = []
        for row in shown:
            node = row.nodes[0]
            marks = [
                mark
                for use in node.uses or ()
                for mark in mark_of(sources, use.span, first_pane=1)
            ] or mark_of(sources, node.span, first_pane=1)
            on = [f"k{node.id}"]
            if node.parent is not None:
                on.append(f"k{node.parent}")
            label = self.name(row)
            steps.append(FrameStep(label, self.detail(row), on, first_of(marks)))
        if not steps:
            told = "The function makes no random key, splits none and draws from none."
            steps.append(FrameStep("", told))
        unsure = [
            Row([[Piece(f"cannot tell: {why}", "miss")]]) for why in record.unsure
        ]
        panes = [self.tree(shown), *sources.panes]
        if unsure:
            panes.append(Pane("", unsure, kind="prose", wide=True))
        return self.picture(panes, steps, self.telling(shown))

    def tree(self, shown: list[Shown]) -> Pane:
        """Returns the tree, drawn: to the right, and downwards on a narrow page."""
        if not shown:
            return Pane("", [])
        steps = {
            node.id: step
            for step, row in enumerate(shown)
            if not row.alike
            for node in row.nodes
        }
        branches = branches_of(self.recording.keys, fate)
        wide, narrow = (
            KeyTree(branches, steps, with_line, narrow).draw()
            for narrow in (False, True)
        )
        if wide.width > MOST_WIDE:
            wide = narrow
        middle = narrow if wide.width > MOST_MIDDLE else None
        return Pane("", [], kind="scene", scene=wide, middle=middle, narrow=narrow)

    def detail(self, row: Shown) -> str:
        """Returns a sentence about a row."""
        if row.alike:
            return f"{row.alike} more rounds use their keys as those above do"
        node = row.nodes[0]
        name = self.name(row)
        if not node.uses:
            return f"{name}, {node.how}: used by nothing"
        said = [
            f"{use_in_words(use)} at "
            f"{use_text(self.recording, use) or 'no line of yours'}"
            for use in node.uses
        ]
        told = f"{name}, {node.how}: {'; '.join(said)}"
        if node.again:
            told += (
                f"\nThe same key once more: {'; '.join(node.again)}. Key i of a "
                "split is what fold_in makes of i, however many keys the split makes."
            )
        if node.reused:
            told += (
                "\nThe same key gives the same random bits each time, so what is drawn "
                "from it twice is not independent. Split it first, and use each part "
                "once."
            )
            if any(use.each in ("round", "turn") for use in node.uses):
                told += (
                    " In a loop: split a key for each round before it, and loop over "
                    "them, or fold the round's number in."
                )
            elif any(use.each == "example" for use in node.uses):
                told += " Under vmap: split a key for each example, and map over them."
        elif node.unsure:
            told += f"\nThis view cannot tell: {node.unsure}."
        return told


def fate(node: KeyNode) -> tuple[Any, ...]:
    """What happened to a key, to be compared."""
    uses = [(use.kind, use.what, use.span, use.times, use.each) for use in node.uses]
    return node.how.partition(" ")[0], uses, node.unsure


def with_line(use: Use) -> str:
    """Returns for example "normal (line 3)"."""
    where = [f"line {use.span.line}"] if use.span else []
    where += [f"branch {use.branch[-1][1]}"] if use.branch else []
    return f"{use_in_words(use)} ({', '.join(where)})" if where else use_in_words(use)


def first_of(marks: list[Any]) -> list[Any]:
    """Returns at most one mark a row: the player lights one part of a line."""
    seen: set[tuple[int, int]] = set()
    found = []
    for mark in marks:
        if mark[:2] not in seen:
            seen.add(mark[:2])
            found.append(mark)
    return found
