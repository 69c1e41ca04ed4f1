"""The recording behind `see.cache`: the calls of a jitted function.

A call is compared with the *nearest* key that the function had kept, not with the call
before: what differs from the nearest is what made the new program necessary.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
import weakref
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import numpy as np

from minijax.core.jit import JitFunction
from minijax.core.signatures import Bound
from minijax.core.trees import tree_unflatten
from minijax.support import event_watching
from minijax.support.element_types import promote_types
from minijax_lab.explain.flight_keys import short
from minijax_lab.explain.recording import (
    Recording,
    Sources,
    Span,
    count_in_words,
    user_frame_now,
)


@dataclass
class Change:
    """One part of a key that differs from the nearest one."""

    kind: str  # "type", "shape", "static", "tree", "setting", "device"
    name: str
    was: str
    now: str


@dataclass
class Call:
    """One call, or a run of hits (`count` of them) that stand in one row."""

    number: int
    count: int
    hit: bool
    first: bool  # the first call of all: there was no key to compare with
    changes: list[Change]
    nearest: int | None  # the row that made the nearest key
    advice: str  # what to write instead; there is some where a miss was avoidable
    span: Span | None
    program: int = 0  # which program answered, from 1 on; 0: made before the watch
    # Of a miss: whether the compiled program was read from disk, None where nothing
    # had to be compiled.
    from_disk: bool | None = None

    @property
    def avoidable(self) -> bool:
        """Whether a kept program would have served: then there is advice."""
        return bool(self.advice)


# Rows that a watch keeps, and runs of one program; later calls are only counted.
MOST_ROWS = 10_000
# From so many sizes of an axis on it is said that they could be padded to one.
SIZES_TO_PAD = 3


@dataclass
class Run:
    """Calls one after another that the same program answered."""

    first: int  # the number of the first of them
    count: int
    program: int
    made: bool  # the first of them traced and compiled it
    row: int  # among the calls


@dataclass(kw_only=True)
class CacheRecording(Recording):
    """All calls of one jitted function while it was watched."""

    kind = "cache"

    name: str
    calls: list[Call]
    kept: int  # keys in the cache at the end
    watched: bool  # False: there was no call, only the keys were looked at
    keys: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)  # the key of each in words
    seconds: dict[str, float] = field(default_factory=dict)  # of tracing, lowering, ...


@dataclass
class Key:
    """A cache key, taken apart: one entry for each thing that tracing could see."""

    names: tuple[str, ...]
    avals: tuple[Any, ...]
    statics: dict[str, Any]
    settings: Any
    place: tuple
    tree: Any = None
    examples: dict[str, Any] = field(default_factory=dict)  # scalars
    row: int | None = None
    program: int = 0


# Under "watch": the one that saw the last program made anew, while it is in use.
latest: weakref.WeakValueDictionary[str, CacheWatch] = weakref.WeakValueDictionary()


class CacheWatch:
    """Listens to the calls of one jitted function, until `stop` or its own end."""

    def __init__(self, function: Any) -> None:
        self.check(function)
        self.function = function
        called = getattr(function, "__name__", "function")
        self.name = called.replace("<lambda>", "lambda")
        self.sources = Sources()
        self.calls: list[Call] = []
        self.runs: list[Run] = []
        self.keys: dict[Any, Key] = {}
        # Functions that the same lines made and that were jitted, too: by their caches.
        self.others: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.made = itertools.count(1)
        # Of the misses seen: how long tracing, lowering and compiling took. `began` is
        # when the trace that a miss started began, and how many run inside of it.
        self.seconds: dict[str, float] = {}
        self.missing = False
        self.last_miss: Call | None = None
        self.began: float | None = None
        self.inner = 0
        self.total = 0
        self.hits = 0
        self.misses = 0
        self.subscription: weakref.finalize | None = None

    def check(self, function: Any) -> None:
        """TypeError for a function that is not jitted."""
        if not isinstance(function, JitFunction):
            raise TypeError(
                f"see.cache watches a jitted function, and got "
                f"{type(function).__name__}: pass jit(f), the very object that is "
                "called."
            )

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls the function; the watch sees this call as any other."""
        return self.function(*args, **kwargs)

    def identity(self, raw: tuple) -> Any:
        """A key under which equal kinds of calls meet."""
        return identity(raw)

    def numbered(self, raw: tuple, number: int) -> Any:
        """The same, of one of the functions that the same lines made."""
        return (number, self.identity(raw)) if number else self.identity(raw)

    def kept(self) -> list[Any]:
        """The keys that the function keeps now."""
        return list(self.function._caches.calls)

    def number_of(self, function: Any) -> int | None:
        """0 for the watched function, another number for each equal one that the
        same lines made anew, as in a loop; None for one that computes otherwise."""
        caches = function._caches
        if caches is self.function._caches:
            return 0
        if not made_alike(function._fun, self.function._fun):
            return None
        if caches not in self.others:
            self.others[caches] = next(self.made)
        return self.others[caches]

    # ---- listening -----------------------------------------------------------------

    def start(self) -> None:
        """Begins to listen; calls before it are known by their keys only."""
        if self.subscription is not None:
            return
        for raw in self.kept():
            self.know(raw, self.taken_apart(raw))
        # Events hold their subscribers: one that held this object would keep it, and
        # with it the listening, for ever.
        weakly = weakref.ref(self)

        def listen(name: str, data: dict[str, Any]) -> None:
            watch = weakly()
            if watch is not None:
                watch.listen(name, data)

        subscribed = event_watching.subscribe(listen)
        subscribed.__enter__()
        end = subscribed.__exit__
        self.subscription = weakref.finalize(self, end, None, None, None)

    def stop(self) -> None:
        """Stops listening."""
        if self.subscription is not None:
            self.subscription()
            self.subscription = None

    def listen(self, name: str, data: dict[str, Any]) -> None:
        """Notes a hit or a miss of this function, at the moment it happens."""
        if name not in ("jit.hit", "jit.miss"):
            if self.missing:
                self.note_time(name, data)
            return
        number = self.number_of(data["function"])
        if number is None:
            return
        self.total += 1
        self.missing = name == "jit.miss"
        if not self.missing:
            self.hits += 1
            self.note_hit(data["key"], number)
        else:
            self.misses += 1
            self.note_miss(data["key"], self.line_of_call(), number)

    def note_time(self, name: str, data: dict[str, Any]) -> None:
        """Adds what a miss of this function spends until its program is there."""
        if name == "trace.begin":
            self.inner += 1
            if self.inner == 1:
                self.began = time.perf_counter()
        elif name == "trace.end" and self.inner:
            self.inner -= 1
            if not self.inner and self.began is not None:
                self.spend("trace", time.perf_counter() - self.began)
        elif name in ("lower", "compile") and not self.inner:
            from_disk = data.get("from_disk", False)
            self.spend("read from disk" if from_disk else name, data["seconds"])
            self.missing = name != "compile"
            if name == "compile" and self.last_miss is not None:
                self.last_miss.from_disk = from_disk

    def spend(self, what: str, seconds: float) -> None:
        """Adds the time of one stage."""
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    def know(self, raw: tuple, key: Key, number: int = 0) -> Key:
        """Keeps a key, with a number for its program."""
        key.program = len(self.keys) + 1
        return self.keys.setdefault(self.numbered(raw, number), key)

    def note_run(self, program: int, made: bool) -> None:
        """Notes which program answered the call."""
        last = self.runs[-1] if self.runs else None
        if last is not None and not made and last.program == program:
            if last.first + last.count == self.total:
                last.count += 1
                return
        if len(self.runs) < MOST_ROWS:
            row = len(self.calls) - 1
            self.runs.append(Run(self.total, 1, program, made, row))

    def line_of_call(self) -> Span | None:
        """Where the user wrote the call that is being answered."""
        frame = user_frame_now()
        if frame is None:
            return None
        return self.sources.span(frame.f_code, frame.f_lasti)

    def note_hit(self, raw: tuple, number: int = 0) -> None:
        key = self.keys.get(self.numbered(raw, number))
        program = key.program if key is not None else 0
        last = self.calls[-1] if self.calls else None
        follows = last is not None and last.number + last.count == self.total
        if last is not None and last.hit and follows:
            last.count += 1
        elif len(self.calls) < MOST_ROWS:
            span = self.line_of_call()
            call = Call(self.total, 1, True, False, [], None, "", span, program)
            self.calls.append(call)
        else:
            return
        self.note_run(program, made=False)

    def note_miss(self, raw: tuple, span: Span | None, number: int = 0) -> None:
        self.last_miss = None
        if len(self.calls) >= MOST_ROWS:
            return
        key = self.taken_apart(raw)
        key.examples = self.scalars_of_call(key)
        nearest, changes = self.nearest(key)
        advice = self.advice(key, nearest, changes)
        if number and nearest is not None and not changes:
            changes = [Change("function", self.name, "jitted before", "jitted anew")]
            advice = "jit it once, above the loop, and call that"
        if nearest is not None:
            latest["watch"] = self
        key.row = len(self.calls)
        key = self.know(raw, key, number)
        self.calls.append(
            Call(
                number=self.total,
                count=1,
                hit=False,
                first=nearest is None,
                changes=changes,
                nearest=nearest.row if nearest is not None else None,
                advice=advice,
                span=span,
                program=key.program,
            )
        )
        self.last_miss = self.calls[-1]
        self.note_run(key.program, made=True)

    # ---- keys ----------------------------------------------------------------------

    def taken_apart(self, raw: tuple) -> Key:
        """A key as named parts."""
        place: tuple = ()
        if len(raw) == 3 and isinstance(raw[0], tuple):
            raw, place = raw[0], raw[1:]
        tree, avals, settings = raw[:3]
        statics = raw[3] if len(raw) > 3 else ()
        signature = self.function._signature
        positional = sum(isinstance(where, int) for where, _, _ in statics)
        dynamic, _ = tree_unflatten(tree, [None] * len(avals))
        count = positional + len(dynamic)
        bound = Bound([None] * len(avals), tree, statics, count)
        named = {
            signature.argument_name(where) if isinstance(where, int) else where: value
            for where, _, value in statics
        }
        names = signature.leaf_names(bound)
        return Key(names, avals, named, settings, place, tree)

    def scalars_of_call(self, key: Key) -> dict[str, Any]:
        """The plain numbers among the arguments of the call."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code not in CALL_CODES:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is None:
            return {}
        args, kwargs = frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {})
        bound = self.function._signature.bind(args, kwargs)
        found = {}
        for name, leaf in zip(key.names, bound.leaves):
            if isinstance(leaf, (bool, int, float, complex, np.generic)):
                found[name] = leaf
        return found

    def nearest(self, key: Key) -> tuple[Key | None, list[Change]]:
        """The kept key with the fewest differences, and these."""
        best: Key | None = None
        best_changes: list[Change] = []
        for known in self.keys.values():
            changes = differences(known, key)
            if best is None or weight(changes) <= weight(best_changes):
                best, best_changes = known, changes
        return best, best_changes

    def advice(self, key: Key, nearest: Key | None, changes: list[Change]) -> str:
        """What to write so that a kept program serves; "" where nothing fits.

        Who obeys gets the same answers: no value is changed, only how it is passed.
        """
        if nearest is None or not changes:
            return ""
        if all(change.kind == "shape" for change in changes):
            ragged = self.ragged(key, nearest, [change.name for change in changes])
            if ragged or len(changes) > 1:
                return ragged
            return self.padding(key, nearest, changes[0].name)
        if len(changes) > 1:
            names = ", ".join(change.name for change in changes)
            if all(change.was in PASSED for change in changes):
                return f"pass {names} by position each time, or each time by name"
            if any(change.kind != "type" for change in changes):
                return ""
            return f"pass {names} with the same dtypes each time"
        (change,) = changes
        if change.kind == "type":
            return type_advice(key, nearest, change)
        if change.kind == "static":
            return self.static_advice(key, nearest, change.name)
        if change.kind == "device":
            return "put the arguments in the same place each time"
        if change.was in PASSED:
            return f"pass {change.name} {change.was} each time"
        if change.kind == "tree" and sorted(nearest.names) == sorted(key.names):
            return "pass the same structure each time"
        return ""

    def static_advice(self, key: Key, nearest: Key, name: str) -> str:
        """What to do about a static argument that has another value."""
        value = key.statics.get(name)
        if isinstance(value, float):
            return f"make {name} an argument, not static"
        code = getattr(value, "__code__", None)
        before = getattr(nearest.statics.get(name), "__code__", None)
        if code is not None and code is before:
            return f"pass the same function as {name}, made once"
        values = {known.statics.get(name) for known in self.keys.values()} | {value}
        if isinstance(value, int) and len(values) >= SIZES_TO_PAD:
            return f"make {name} an argument, unless a shape or a branch needs it"
        return ""

    def ragged(self, key: Key, nearest: Key, names: list[str]) -> str:
        """What to do with a last batch that is smaller; "" for another change.

        The program before must have answered a few calls with full batches, and
        all leaves that changed must be shorter along their first axis alone.
        """
        calls = sum(run.count for run in self.runs if run.program == nearest.program)
        sizes: set[int] = set()
        for name in names:
            shape = key.avals[key.names.index(name)].shape
            kept = nearest.avals[nearest.names.index(name)].shape
            if not shape or not kept or shape[1:] != kept[1:]:
                return ""
            if not 0 < shape[0] < kept[0]:
                return ""
            sizes.add(kept[0])
        if calls < SIZES_TO_PAD or len(sizes) != 1:
            return ""
        (full,) = sizes
        listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        return f"pad {listed} to {full}, or drop the last batch"

    def padding(self, key: Key, nearest: Key, name: str) -> str:
        """What to pad, where one axis comes in many sizes; "" for another change.

        A change of rank is no matter of sizes, and a second size alone no habit.
        """
        shape = key.avals[key.names.index(name)].shape
        kept = nearest.avals[nearest.names.index(name)].shape
        if len(shape) != len(kept):
            return ""
        axes = [axis for axis, size in enumerate(shape) if size != kept[axis]]
        if len(axes) != 1:
            return ""
        (axis,) = axes
        sizes = {shape[axis]}
        for known in self.keys.values():
            if name not in known.names:
                continue
            other = known.avals[known.names.index(name)].shape
            if len(other) == len(shape) and drop(other, axis) == drop(shape, axis):
                sizes.add(other[axis])
        if len(sizes) < SIZES_TO_PAD:
            return ""
        where = f"axis {axis} of {name}" if len(shape) > 1 else name
        return f"pad {where} to one size"

    # ---- the result ----------------------------------------------------------------

    def recording(self) -> CacheRecording:
        """What was seen so far."""
        # Copies: calls go on, and would change what a view reads.
        calls = [replace(call) for call in self.calls]
        avoidable = sum(call.avoidable for call in calls)  # the rows with advice
        kept = len(self.kept())
        if not self.total:
            finding = f"{count_in_words(kept, 'key')} kept; no call since it is watched"
        else:
            finding = (
                f"{count_in_words(self.total, 'call')}, "
                f"{count_in_words(self.hits, 'hit')}, "
                f"{self.misses:,} {'miss' if self.misses == 1 else 'misses'}"
            )
            if avoidable:
                finding += f"; {avoidable} avoidable"
            unlisted = self.total - sum(call.count for call in calls)
            if unlisted:
                last = f"last {unlisted:,} are" if unlisted > 1 else "last one is"
                finding += f"; the {last} only counted"
        telling = next((i for i, call in enumerate(calls) if call.avoidable), None)
        if telling is None:
            missed = [i for i, call in enumerate(calls) if not call.hit]
            telling = missed[-1] if missed else 0
        raws = self.kept()
        return CacheRecording(
            call=self.name,
            headline=f"cache of {self.name}: {finding}",
            telling=telling,
            sources=self.sources.found,
            name=self.name,
            calls=calls,
            kept=kept,
            watched=self.total > 0,
            keys=[in_words(self.taken_apart(raw)) for raw in raws],
            runs=[replace(run) for run in self.runs],
            programs=[in_words(key) for key in self.keys.values()],
            seconds=dict(self.seconds) if self.misses else {},
        )


CALL_CODES: set[CodeType] = {JitFunction.__call__.__code__}


def type_advice(key: Key, nearest: Key, change: Change) -> str:
    """How to pass an argument as the kept program wants it, with the same value."""
    was, now = nearest.examples.get(change.name), key.examples.get(change.name)
    kept, new = (text.removeprefix("weak ") for text in (change.was, change.now))
    if was is not None and now is not None:
        as_kept = same_value(now, type(was))
        if as_kept is not None:
            return f"pass {written(as_kept)}, not {written(now)}"
        if same_value(was, type(now)) is not None:
            return f"pass {change.name} as {type(now).__name__} each time"
        return ""
    if kind_of(kept) != kind_of(new):
        return ""
    try:
        wider = promote_types(kept, new).name
    except TypeError:  # a key
        wider = kept
    if wider != kept:
        return f"pass {change.name} as {wider} each time"
    if now is not None:
        return f"pass an array of {kept}, not {written(now)}"
    return f"pass {change.name} as {kept} each time"


def kind_of(dtype: str) -> str:
    """ "bool", "complex", or "" for others: what one of them is passed to a function
    may refuse, or take otherwise, of another kind: `where`, `~` and `<` do."""
    return next((kind for kind in ("bool", "complex") if dtype.startswith(kind)), "")


def same_value(number: Any, kind: type) -> Any:
    """A number as another type, None where that changes its value."""
    try:
        made = kind(number)
    except (TypeError, ValueError, OverflowError):
        return None
    return made if made == number or (made != made and number != number) else None


def written(number: Any) -> str:
    """A number as it is written in a program."""
    if isinstance(number, np.generic):
        return f"np.{type(number).__name__}({number})"
    return repr(number)


def identity(raw: tuple) -> Any:
    """A key under which equal kinds of calls meet, whichever path they came."""
    if len(raw) == 3 and isinstance(raw[0], tuple):
        inner = raw[0]
        return (*inner[:3], inner[3] if len(inner) > 3 else (), *raw[1:])
    return (*raw[:3], raw[3] if len(raw) > 3 else ())


def drop(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """A shape without one axis."""
    return shape[:axis] + shape[axis + 1 :]


def differences(known: Key, key: Key) -> list[Change]:
    """What differs between two keys, leaf by leaf."""
    changes: list[Change] = []
    gone = [name for name in known.names if name not in key.names]
    new = [name for name in key.names if name not in known.names]
    passed, now_passed = ways_of_passing(known), ways_of_passing(key)
    if gone or new:
        leaves = ", ".join(gone) or "-", ", ".join(new) or "-"
        changes.append(Change("tree", "leaves", *leaves))
    elif known.tree != key.tree and passed == now_passed:
        texts = apart(structure(known.tree), structure(key.tree))
        changes.append(Change("tree", "structure", *texts))
    for name, way in passed.items():
        if now_passed.get(name, way) != way:
            changes.append(Change("tree", name, way, now_passed[name]))
    types = dict(zip(known.names, known.avals))
    for name, aval in zip(key.names, key.avals):
        before = types.get(name)
        if before is None or before is aval:
            continue
        shaped = getattr(before, "shape", None) != getattr(aval, "shape", None)
        kind = "shape" if shaped else "type"
        changes.append(Change(kind, name, *type_texts(before, aval)))
    for name in dict.fromkeys([*known.statics, *key.statics]):
        old, new_value = known.statics.get(name), key.statics.get(name)
        if type(old) is not type(new_value) or old != new_value:
            changes.append(Change("static", name, short(old), short(new_value)))
    if known.settings is not key.settings:
        for name in known.settings.differing(key.settings):
            changes.append(Change("setting", name, "", "changed"))
    if known.place != key.place:
        changes.append(
            Change("device", "device", place_text(known.place), place_text(key.place))
        )
    return changes


# How an argument that is not static is passed.
PASSED = ("by position", "by name")


def ways_of_passing(key: Key) -> dict[str, str]:
    """Whether each argument was passed by position or by name."""
    if key.tree is None:
        return {}
    first = key.tree.children()[0].num_leaves
    return {
        re.split(r"[\[.]", name, maxsplit=1)[0]: PASSED[number >= first]
        for number, name in enumerate(key.names)
    }


def in_a_sentence(change: Change) -> str:
    """What differs, as a part of a sentence: "x was float32 and is int32"."""
    name, was, now = change.name, change.was, change.now
    if change.kind == "setting":
        return f"{name} changed"
    if was in PASSED:
        return f"{name} was passed {was} and is passed {now}"
    if change.kind == "tree":
        told = f"{now} new" if was == "-" else f"{was} gone" if now == "-" else ""
        return f"the tree changed: {told or f'{was} -> {now}'}"
    return f"{name} was {was} and is {now}"


def leaves_in_words(change: Change) -> str:
    """Which leaves came and went with another structure."""
    if change.name != "leaves":
        return f"{change.name}: {change.was} -> {change.now}"
    if change.was == "-":
        return f"new leaves: {change.now}"
    if change.now == "-":
        return f"missing leaves: {change.was}"
    return f"leaves: {change.was} -> {change.now}"


def structure(tree: Any) -> str:
    """How arguments are nested: `(*, [*])`, behind it those passed by keyword."""
    args, kwargs = tree.children()
    text = str(args).removeprefix("PyTreeDef(")[:-1]
    if kwargs.num_leaves:
        text += " " + str(kwargs).removeprefix("PyTreeDef(")[:-1]
    return text


def apart(one: str, two: str) -> tuple[str, str]:
    """Two texts from shortly before the place where they begin to differ."""
    same = len(os.path.commonprefix([one, two]))
    start = max(0, same - 16)
    if start < 8:
        return one, two
    return f"...{one[start:]}", f"...{two[start:]}"


def type_texts(before: Any, after: Any) -> tuple[str, str]:
    """Two types, each by the part in which they differ."""
    if getattr(before, "shape", None) != getattr(after, "shape", None):
        return before.str_short(True), after.str_short(True)
    if before.dtype == after.dtype and before.weak_type == after.weak_type:
        return str(before.sharding), str(after.sharding)
    names = []
    for aval in (before, after):
        differ = before.weak_type != after.weak_type
        weak = "weak " if aval.weak_type and differ else ""
        names.append(f"{weak}{aval.dtype.name}")
    return names[0], names[1]


def place_text(place: tuple) -> str:
    """Where a program runs: a device, or wherever the default is."""
    return str(place[0]) if place else "default"


def weight(changes: list[Change]) -> int:
    """How far two keys are apart; another structure is farthest, weak types nearest."""
    costs = {"tree": 100, "setting": 30, "shape": 4, "static": 4, "device": 4}
    total = 0
    for change in changes:
        was, now = (text.removeprefix("weak ") for text in (change.was, change.now))
        if change.kind == "tree" and change.name != "leaves":
            total += 50  # the same leaves, passed in another way
            continue
        if change.kind == "shape":  # f32[3] is nearer to f32[4] than bf16[3] is
            total += 2 * (was.partition("[")[0] != now.partition("[")[0])
        if change.kind == "tree":
            total += sum(name != "-" for name in f"{was}, {now}".split(", "))
        total += costs.get(change.kind, 2 if was == now else 3)
    return total


def in_words(key: Key) -> str:
    """A whole key as one line."""
    parts = [
        f"{name}: {'~' if getattr(aval, 'weak_type', False) else ''}"
        f"{aval.str_short(short_dtypes=True)}"
        for name, aval in zip(key.names, key.avals)
    ]
    parts += [f"{name} = {short(value)}" for name, value in key.statics.items()]
    return ", ".join(parts) or "no arguments"


def made_alike(one: Any, other: Any) -> bool:
    """Whether two functions have the same code, and close over the same values."""
    code = getattr(one, "__code__", None)
    if code is None or getattr(other, "__code__", None) is not code:
        return False
    closed, others = (f.__closure__ or () for f in (one, other))
    values = [(a.cell_contents, b.cell_contents) for a, b in zip(closed, others)]
    values += zip(one.__defaults__ or (), other.__defaults__ or ())
    plain = (int, float, complex, str, bytes)
    return all(
        a is b or (isinstance(a, plain) and type(a) is type(b) and a == b)
        for a, b in values
    )
