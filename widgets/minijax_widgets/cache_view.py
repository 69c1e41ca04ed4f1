"""`see.cache`: the calls of a jitted function, hit or miss, and what changed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from minijax_lab.explain.cache import (
    CacheRecording,
    CacheWatch,
    Call,
    Run,
    in_a_sentence,
    leaves_in_words,
)
from minijax_lab.explain.jax_cache import JaxCacheWatch, is_jitted_by_jax
from minijax_widgets.code import code_panes, key_of_line, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, scene_pane
from minijax_widgets.scene import Scene, text_width
from minijax_widgets.view import View, cut, short_name, shortened, shows

MOST_PROGRAMS = 12  # that have a line of their own in the strip of calls
# A row has at most this many changes, and cuts names to this many letters; the step
# has all of them.
MOST_TOLD = 4
MOST_NAME = 32
LINE = 22
# The least width of a mark: what would be nearer than that is one mark.
LEAST_MARK = 3.0


def cache(function: Any) -> CacheView:
    """Watches the calls of a jitted function, from now on.

        view = see.cache(f)
        f(x)
        f(y)
        view

    The view shows the calls that were made before it is shown. For each miss it says
    what differs from the nearest key that was kept, and what to write instead. It
    watches until `view.close()`, or until it is garbage; `with see.cache(f) as view:`
    closes it behind the block. Before the first call it shows the keys that the
    function keeps; how they came to be was not recorded. Raises TypeError for a
    function that is not jitted. Calls inside of other transformations have no cache of
    their own to hit.

    A function that JAX has jitted is taken, too. JAX answers calls in C++, which
    reports nothing, so make them through the view:

        step = see.cache(step)
        state = step(state, batch)
        step
    """
    watch = (
        JaxCacheWatch(function) if is_jitted_by_jax(function) else CacheWatch(function)
    )
    watch.start()
    return CacheView(watch=watch)


@shows("cache")
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
            seen = (self.watch.total, len(self.watch.kept()))
            if self.last is None or seen != self.seen:
                self.last, self.seen = self.watch.recording(), seen
        assert self.last is not None
        return self.last

    def tell(self, step: int) -> None:
        """Changes nothing: the view goes on watching, and `text` has the step."""

    def close(self) -> None:
        """Stops watching; the view keeps what it has seen."""
        if self.watch is not None and self.watch.subscription is not None:
            self.last = self.watch.recording()
            self.watch.stop()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function that is watched."""
        if self.watch is None:
            raise TypeError("a recording that was opened from a file has no function.")
        return self.watch.call(args, kwargs)

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
            telling = record.telling if self.first_step is None else self.first_step
            rows = [
                self.row(call, number == telling)
                for number, call in enumerate(record.calls)
            ]
        rows = shortened(rows, full)
        if record.seconds:
            times = (f"{k} {t * 1e3:.1f} ms" for k, t in record.seconds.items())
            rows += ["-- differs between machines --", f"in all: {', '.join(times)}"]
            rows += [come_from(record)] * any(c.from_disk for c in record.calls)
        return "\n".join([cut(record.headline, 100), *rows])

    def row(self, call: Call, telling: bool) -> str:
        """Returns one call's row of the text twin."""
        mark = ">" if telling and not call.hit else " "
        left = f"{mark} {self.numbers(call)} {SIGNS[kind(call)][0]} {said(call)}"
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
            told = (
                "No call was made since the watch began: call the function, and show "
                "the view again. The first call of each kind is traced and compiled."
            )
            return self.picture(
                [kept] if record.keys else [],
                [] if record.keys else [FrameStep("", told)],
            )
        spans = [call.span for call in record.calls if call.span is not None]
        sources = code_panes(record.sources, spans)
        rows, steps = [], []
        for number, call in enumerate(record.calls):
            look = "miss" if kind(call) == "miss" else ""
            letter, sign = SIGNS[kind(call)]
            cells: list[Any] = [
                [Piece(letter, f"sign {sign}"), Piece(f" {self.numbers(call)}")],
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
                    mark_of(sources, call.span, first_pane=2),
                )
            )
        columns = ["call", "what decided", "write instead"]
        if not any(call.advice for call in record.calls):
            columns.pop()
            for row in rows:
                row.cells.pop()
        return self.picture(
            [
                scene_pane(lambda width: strip(record, width), 900, 288, 690),
                Pane("", rows, columns=columns),
                *sources.panes,
            ],
            steps,
            record.telling,
        )

    def detail(self, call: Call) -> str:
        """Returns a sentence about a call."""
        if call.hit:
            return "A program was kept for this kind of call: no Python ran."
        compiled = "read from disk" if call.from_disk else "compiled"
        if call.first:
            how = f"traced, lowered, {compiled}, kept"
            return f"The first call of this kind: {how}."
        rows = self.recording.calls
        if not call.changes and call.nearest is not None:
            before = self.numbers(rows[call.nearest])
            return (
                f"Call {before} had the same key, but its program is kept no longer, "
                f"as after clear_caches: traced anew and {compiled}."
            )
        told = "; ".join(map(in_a_sentence, call.changes))
        text = f"Traced anew and {compiled}: {told}"
        if call.nearest is not None:
            text += f", compared with call {self.numbers(rows[call.nearest])}"
        text += "."
        if call.advice:
            text += f" To use the kept program, {call.advice}."
        return text


def come_from(record: CacheRecording) -> str:
    """Returns where the compiled programs of the misses came from."""
    misses = [call for call in record.calls if call.from_disk is not None]
    found = [call for call in misses if call.from_disk]
    rows = ", ".join(f"{call.number:,}" for call in found[:8])
    more = ", ..." if len(found) > 8 else ""
    return (
        f"{len(found)} of {len(misses)} compiled programs were read from disk: "
        f"{'call' if len(found) == 1 else 'calls'} {rows}{more}"
    )


def strip(record: CacheRecording, width: float) -> Scene:
    """Returns the calls from left to right, each on the line of its program.

    However many there are, they are one picture: calls nearer than a mark is wide share
    one. A mark that stands out made the program; a red one need not have been.
    """
    counts: dict[int, int] = {}
    for run in record.runs:
        counts[run.program] = counts.get(run.program, 0) + run.count
    shown = list(counts)[:MOST_PROGRAMS]
    others = len(counts) - len(shown)
    beside = width > 560  # else a program's name stands over its line
    names = labels({n: name_of(record, n) for n in shown}, 44 if beside else 36)
    room = max((text_width(text, 12, True) for text in names.values()), default=0)
    left, right = 20 + room if beside else 8, width - 70
    each = LINE if beside else 2 * LINE
    calls = max(1, sum(counts.values()))
    step = (right - left) / calls
    lines = len(shown) + bool(others)
    scene = Scene(width, each * lines + 30, "calls over time, by program")
    for place, number in enumerate(shown):
        y = each * place + 4
        scene.text(8, y + 13, names[number], size=12, mono=True)
        y += each - LINE
        middle = y + 9
        scene.arrow((left, middle), (right, middle), head=False, thick=0.8)
        # The calls seen before a run begins, since some may be counted only.
        runs = [run for run in record.runs if run.program == number]
        for start, end, run in joined(runs, left, step):
            made = record.calls[run.row]
            look = "" if not run.made else "miss" if made.advice else "kernel"
            tall = 18 if run.made else 10
            scene.box(
                start,
                middle - tall / 2,
                max(LEAST_MARK + 1, end - start),
                tall,
                key=f"c{run.row}",
                role=look or "value",
                go=run.row,
                says=told(record, run),
            )
        times = f"{counts[number]:,} x"
        scene.note(right + 8, y + 13, times)
    if others:
        rest = sum(counts[n] for n in list(counts)[MOST_PROGRAMS:])
        said = f"{others:,} more programs, {rest:,} calls"
        scene.note(8, each * len(shown) + 17, said)
    y = each * lines + 20
    scene.text(left, y, "call 1", role="constant", size=11)
    scene.text(right, y, f"{calls:,}", role="constant", size=11, anchor="end")
    return scene


def labels(names: dict[int, str], most: int) -> dict[int, str]:
    """Returns short names of programs: of their leaves those that tell them apart.

    Where that is too long for the room, the types without the leaves' names.
    """
    parts = {number: name.split(", ") for number, name in names.items()}
    rows = [row for row in parts.values() if len(row) > 1]
    if len({len(row) for row in rows}) == 1 and len(rows) > 1:
        same = [len(set(column)) == 1 for column in zip(*rows)]
        for number, row in parts.items():
            if len(row) == len(same):
                kept = [leaf for leaf, is_same in zip(row, same) if not is_same]
                parts[number] = kept or row
    found = {number: ", ".join(row) for number, row in parts.items()}
    if any(len(text) > most for text in found.values()):
        parts = telling_leaves(parts)
        found = {n: ", ".join(map(short_leaf, row)) for n, row in parts.items()}
    if any(len(text) > most for text in found.values()):
        types = {
            n: [leaf.rpartition(": ")[2] for leaf in row] for n, row in parts.items()
        }
        found = {number: ", ".join(row) for number, row in types.items()}
        if len({cut(text, most) for text in found.values()}) < len(found):
            found = unusual_leaves(parts)
    return {number: cut(text, most) for number, text in found.items()}


def unusual_leaves(parts: dict[int, list[str]]) -> dict[int, str]:
    """Returns how programs differ from the usual one: leaves whose type most others do
    not have, and "no x" for a leaf that others have."""
    types = {
        number: {leaf.rpartition(": ")[0]: leaf.rpartition(": ")[2] for leaf in row}
        for number, row in parts.items()
    }
    names = list(dict.fromkeys(name for row in types.values() for name in row))
    usual = {
        name: Counter(row.get(name, "") for row in types.values()).most_common(1)[0][0]
        for name in names
    }
    found = {}
    for number, row in types.items():
        other = [name for name in names if row.get(name, "") != usual[name]]
        told = [
            short_leaf(f"{name}: {row[name]}") if name in row else f"no {name}"
            for name in other
        ]
        found[number] = ", ".join(told or parts[number])
    return found


def telling_leaves(parts: dict[int, list[str]]) -> dict[int, list[str]]:
    """Returns, of programs with equally many leaves, only as many leaves as it takes to
    tell the programs apart: first those that differ most often."""
    rows = list(parts.values())
    if len({len(row) for row in rows}) != 1 or len(rows) < 2:
        return parts
    columns = sorted(range(len(rows[0])), key=lambda n: -len({row[n] for row in rows}))
    chosen: list[int] = []
    for column in columns:
        before = {tuple(row[n] for n in chosen) for row in rows}
        with_it = {tuple(row[n] for n in [*chosen, column]) for row in rows}
        if len(with_it) > len(before):
            chosen.append(column)
    kept = sorted(chosen) or list(range(len(rows[0])))
    return {number: [row[n] for n in kept] for number, row in parts.items()}


def short_leaf(leaf: str) -> str:
    """Returns a leaf with its type, the beginning of a long name left out."""
    name, sign, kind = leaf.rpartition(": ")
    return f"{short_name(name, 16)}{sign}{kind}"


def joined(runs: list[Run], left: float, step: float) -> list[tuple[float, float, Run]]:
    """Returns runs of a program as (start, end, run), neighbours joined to one mark.

    The run that made the program stands alone, and so is never hidden.
    """
    found: list[tuple[float, float, Run]] = []
    for run in runs:
        start = left + (run.first - 1) * step
        end = start + run.count * step
        if found and not run.made and not found[-1][2].made:
            before = found[-1]
            if start - max(before[1], before[0] + LEAST_MARK) < 1:
                found[-1] = (before[0], end, before[2])
                continue
        if run.made and run.count > 1:
            # The call that made it, and the hits that followed at once.
            found.append((start, start + step, run))
            rest = Run(run.first + 1, run.count - 1, run.program, False, run.row)
            found.append((start + step, end, rest))
        else:
            found.append((start, end, run))
    return found


def name_of(record: CacheRecording, program: int) -> str:
    """Returns a program as the types that it was made for."""
    if not 0 < program <= len(record.programs):
        return "made before"
    return record.programs[program - 1]


def told(record: CacheRecording, run: Run) -> str:
    """Returns a sentence about a mark of the strip."""
    did = "made and kept" if run.made else "found"
    many = f"calls {run.first:,}-{run.first + run.count - 1:,}"
    which = many if run.count > 1 and not run.made else f"call {run.first:,}"
    return f"{which}: the program for {name_of(record, run.program)} was {did}"


# Kinds of calls, as the twin and the picture sign them.
SIGNS = {"hit": ("+", "tick"), "first": ("o", "ring"), "miss": ("x", "cross")}


def kind(call: Call) -> str:
    """Returns whether a call hit, missed, or was the first, which cannot hit."""
    if call.hit:
        return "hit"
    return "first" if call.first else "miss"


def said(call: Call) -> str:
    """Returns in a few words what decided a call."""
    if call.hit:
        return "hit"
    if call.first:
        return "first call"
    if not call.changes:
        return "same key, kept no longer"
    told = [
        leaves_in_words(change)
        if change.kind == "tree"
        else f"{short_name(change.name, MOST_NAME)}: {change.was} -> {change.now}"
        for change in call.changes[:MOST_TOLD]
    ]
    more = len(call.changes) - len(told)
    told += [f"and {more} more"] if more else []
    return "; ".join(told).replace(":  ->", "")
