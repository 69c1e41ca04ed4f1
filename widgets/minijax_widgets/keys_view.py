"""`see.keys`: the tree of random keys in a function, and keys that are used twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax_lab.explain.keys import (
    KeyNode,
    KeysRecording,
    record_keys,
    times,
    use_text,
)
from minijax_widgets.code import code_panes, key_of_line, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.view import View, cut, shortened, views


def keys(function: Callable[..., Any], *args: Any, **kwargs: Any) -> KeysView:
    """Shows what becomes of the random keys in `function`.

    Each row is a key: from which it was split, and what drew from it. A key that is
    used more than once is marked: its numbers are not independent.
    """
    return KeysView(record_keys(function, *args, **kwargs))


class KeysView(View):
    """A row for each key, indented under the key it came from."""

    recording: KeysRecording

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each key."""
        rows = [
            self.row(node, number == self.recording.telling)
            for number, node in enumerate(self.recording.keys)
        ]
        return "\n".join([cut(self.recording.headline, 100), *shortened(rows, full)])

    def row(self, node: KeyNode, telling: bool) -> str:
        """Returns one key's row of the text twin."""
        mark = ">" if telling else " "
        left = f"{mark} {'  ' * node.depth}{node.how}"
        told = f"{left:34} {self.uses(node)}"
        if node.reused:
            told = f"{told:70} used {times(len(node.uses))}"
        return cut(told.rstrip(), 100)

    def uses(self, node: KeyNode) -> str:
        """Returns what used a key, in order."""
        return ", ".join(
            f"{use.what}{f' (line {use.span.line})' if use.span else ''}"
            for use in node.uses
        )

    def frame(self) -> Frame:
        """Returns the picture: the tree, and the lines that use the keys."""
        record = self.recording
        spans = [use.span for node in record.keys for use in node.uses if use.span]
        spans += [node.span for node in record.keys if node.span]
        sources = code_panes(record.sources, spans)
        rows, steps = [], []
        for number, node in enumerate(record.keys):
            chips: list[Piece] = []
            for use in node.uses:
                role = "miss" if node.reused else "value"
                line = f" (line {use.span.line})" if use.span else ""
                comma = "," if use is not node.uses[-1] else ""
                chips += [Piece(use.what, role), Piece(f"{line}{comma} ")]
            note = f"used {times(len(node.uses))}" if node.reused else ""
            links = [link for use in node.uses for link in key_of_line(use.span)]
            rows.append(
                Row(
                    [[Piece(node.how)], chips, [Piece(note, "miss" if note else "")]],
                    keys=[f"k{number}", *links],
                    go=number,
                    depth=node.depth,
                    look="miss" if node.reused else "",
                )
            )
            marks = [
                mark
                for use in node.uses or ()
                for mark in mark_of(sources, use.span, first_pane=1)
            ] or mark_of(sources, node.span, first_pane=1)
            on = [f"k{number}"]
            if node.parent is not None:
                on.append(f"k{node.parent}")
            steps.append(FrameStep(node.how, self.detail(node), on, first_of(marks)))
        if not steps:
            told = "The function makes no random key, splits none and draws from none."
            steps.append(FrameStep("", told))
        return Frame(
            kind="keys",
            call=record.call,
            headline=record.headline,
            panes=[Pane("", rows), *sources.panes],
            steps=steps,
            telling=record.telling,
            text=self.text(full=True),
        )

    def detail(self, node: KeyNode) -> str:
        """Returns a sentence about a key."""
        if not node.uses:
            return f"{node.how}: used by nothing"
        said = [
            f"{use.what} at {use_text(self.recording, use) or 'no line of yours'}"
            for use in node.uses
        ]
        told = f"{node.how}: {'; '.join(said)}"
        if node.reused:
            told += (
                "\nThe same key gives the same random bits each time, so what is drawn "
                "from it twice is not independent. Split it first, and use each part "
                "once."
            )
        return told


def first_of(marks: list[Any]) -> list[Any]:
    """Returns at most one mark a row: the player lights one part of a line."""
    seen: set[tuple[int, int]] = set()
    found = []
    for mark in marks:
        if mark[:2] not in seen:
            seen.add(mark[:2])
            found.append(mark)
    return found


views["keys"] = KeysView
