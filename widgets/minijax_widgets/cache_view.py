"""`see.cache`: the calls of a jitted function, hit or miss, and what changed."""

from __future__ import annotations

from typing import Any

from minijax.compile.pjit import JitFunction
from minijax_lab.explain.cache import CacheRecording, CacheWatch, Call, Change
from minijax_widgets.code import code_panes, key_of_line, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.view import View, cut, shortened, views


def cache(function: JitFunction) -> CacheView:
    """Watches the calls of a jitted function, from now on.

        view = see.cache(f)
        f(x)
        f(y)
        view

    The view shows the calls up to the moment at which it is shown: for each miss, what
    differs from the nearest key that was kept, and what to write instead. It watches
    until `view.close()`, or until nobody holds it; `with see.cache(f) as view:` closes
    it behind the block. Before the first call it shows the keys that the function
    keeps; how they came to be was not recorded. Raises TypeError for a function that is
    not jitted. Calls inside of other transformations have no cache of their own to hit.
    """
    watch = CacheWatch(function)
    watch.start()
    return CacheView(watch=watch)


class CacheView(View):
    """A row for each call; runs of hits share one."""

    def __init__(
        self, recording: CacheRecording | None = None, watch: CacheWatch | None = None
    ) -> None:
        self.watch = watch
        self.last = recording
        self.seen: tuple[int, int] | None = None

    @property
    def recording(self) -> CacheRecording:  # type: ignore[override]
        """The calls so far; after `close`, those until then."""
        if self.watch is not None and self.watch.subscription is not None:
            seen = (self.watch.total, len(self.watch.function._caches.calls))
            if self.last is None or seen != self.seen:
                self.last, self.seen = self.watch.recording(), seen
        assert self.last is not None
        return self.last

    def close(self) -> None:
        """Stops watching; the view keeps what it has seen."""
        if self.watch is not None and self.watch.subscription is not None:
            self.last = self.watch.recording()
            self.watch.stop()

    def __enter__(self) -> CacheView:
        if self.watch is None:
            raise TypeError("a recording that was opened from a file cannot go on.")
        self.watch.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each call."""
        record = self.recording
        if not record.watched:
            rows = [f"  {key}" for key in record.keys]
        else:
            rows = [
                self.row(call, number == record.telling)
                for number, call in enumerate(record.calls)
            ]
        return "\n".join([cut(record.headline, 100), *shortened(rows, full)])

    def row(self, call: Call, telling: bool) -> str:
        """Returns one call's row of the text twin."""
        mark = ">" if telling and not call.hit else " "
        left = f"{mark} {self.numbers(call)} {'+' if call.hit else 'x'} {said(call)}"
        return cut(f"{left:39} {call.advice}".rstrip(), 100)

    def numbers(self, call: Call) -> str:
        """Returns a call's number, or the first and last of a run of hits."""
        if call.count == 1:
            return f"{call.number:,}"
        return f"{call.number:,}-{call.number + call.count - 1:,}"

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture: the calls, and the lines that made them."""
        record = self.recording
        if not record.watched:
            kept = Pane("keys", [Row([key]) for key in record.keys])
            told = "The next call of any kind is traced and compiled."
            return Frame(
                "cache",
                record.call,
                record.headline,
                [kept] if record.keys else [],
                [] if record.keys else [FrameStep("", told)],
                text=self.text(full=True),
            )
        spans = [call.span for call in record.calls if call.span is not None]
        sources = code_panes(record.sources, spans)
        rows, steps = [], []
        for number, call in enumerate(record.calls):
            look = "" if call.hit else "miss"
            cells: list[Any] = [
                [Piece(f"{'✓' if call.hit else '✗'} {self.numbers(call)}")],
                # A miss that could not be avoided is no fault.
                [Piece(said(call), "miss" if call.advice else "")],
                [Piece(call.advice, "strong" if call.advice else "")],
            ]
            keys = [f"c{number}", *key_of_line(call.span)]
            rows.append(Row(cells, keys=keys, go=number, look=look))
            on = [f"c{number}"]
            if call.nearest is not None:
                on.append(f"c{call.nearest}")
            steps.append(
                FrameStep(
                    f"call {self.numbers(call)}",
                    self.detail(call),
                    on,
                    mark_of(sources, call.span, first_pane=1),
                )
            )
        columns = ["call", "what decided", "write instead"]
        return Frame(
            kind="cache",
            call=record.call,
            headline=record.headline,
            panes=[Pane("", rows, columns=columns), *sources.panes],
            steps=steps,
            telling=record.telling,
            text=self.text(full=True),
        )

    def detail(self, call: Call) -> str:
        """Returns a sentence about a call."""
        if call.hit:
            return "A program was kept for this kind of call: no Python ran."
        if call.first:
            return "The first call of this kind: traced, lowered, compiled, kept."
        told = "; ".join(
            leaves_in_words(change)
            if change.kind == "tree"
            else f"{change.name} was {change.was} and is {change.now}"
            for change in call.changes
        )
        rows = self.recording.calls
        text = f"Traced and compiled anew: {told}"
        if call.nearest is not None:
            text += f", compared with call {self.numbers(rows[call.nearest])}"
        text += "."
        if call.advice:
            text += f" To use the kept program, {call.advice}."
        return text


def leaves_in_words(change: Change) -> str:
    """Returns which leaves came and went with another structure."""
    if change.was == "-":
        return f"new leaves: {change.now}"
    if change.now == "-":
        return f"missing leaves: {change.was}"
    return f"leaves: {change.was} -> {change.now}"


def said(call: Call) -> str:
    """Returns in a few words what decided a call."""
    if call.hit:
        return "hit"
    if call.first:
        return "first call"
    return "; ".join(
        leaves_in_words(change)
        if change.kind == "tree"
        else f"{change.name}: {change.was} -> {change.now}".replace(":  ->", "")
        for change in call.changes
    )


views["cache"] = CacheView
