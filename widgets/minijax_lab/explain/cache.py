"""The recording behind `see.cache`: the calls of a jitted function.

A call is compared with the *nearest* key that the function had kept, not with the call
before: what differs from the nearest is what made the new program necessary.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import numpy as np

from minijax.compile.pjit import JitFunction
from minijax.support import event_watching
from minijax.support.trees import tree_unflatten
from minijax.transforms.api_util import Bound
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
    advice: str
    avoidable: bool
    span: Span | None


# Rows that a watch keeps; later calls are only counted.
MOST_ROWS = 10_000


@dataclass(kw_only=True)
class CacheRecording(Recording):
    """All calls of one jitted function while it was watched."""

    kind = "cache"

    name: str
    calls: list[Call]
    kept: int  # keys in the cache at the end
    watched: bool  # False: there was no call, only the keys were looked at
    keys: list[str] = field(default_factory=list)


@dataclass
class Key:
    """A cache key, taken apart: one entry for each thing that tracing could see."""

    names: tuple[str, ...]
    avals: tuple[Any, ...]
    statics: dict[str, Any]
    settings: Any
    place: tuple
    examples: dict[str, str] = field(default_factory=dict)  # scalars, as written
    row: int | None = None


class CacheWatch:
    """Listens to the calls of one jitted function, until `stop` or its own end."""

    def __init__(self, function: JitFunction) -> None:
        if not isinstance(function, JitFunction):
            raise TypeError(
                f"see.cache watches a jitted function, and got "
                f"{type(function).__name__}: pass jit(f), the very object that is "
                "called."
            )
        self.function = function
        self.sources = Sources()
        self.calls: list[Call] = []
        self.keys: dict[Any, Key] = {}
        self.total = 0
        self.hits = 0
        self.misses = 0
        self.subscription: weakref.finalize | None = None

    # ---- listening -----------------------------------------------------------------

    def start(self) -> None:
        """Begins to listen; calls before it are known by their keys only."""
        if self.subscription is not None:
            return
        for raw in list(self.function._caches.calls):
            self.keys.setdefault(identity(raw), self.taken_apart(raw))
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
            return
        if data["function"]._caches is not self.function._caches:
            return
        self.total += 1
        if name == "jit.hit":
            self.hits += 1
            self.note_hit()
        else:
            self.misses += 1
            if len(self.calls) < MOST_ROWS:
                self.note_miss(data["key"], self.line_of_call())

    def line_of_call(self) -> Span | None:
        """Where the user wrote the call that is being answered."""
        frame = user_frame_now()
        if frame is None:
            return None
        return self.sources.span(frame.f_code, frame.f_lasti)

    def note_hit(self) -> None:
        last = self.calls[-1] if self.calls else None
        follows = last is not None and last.number + last.count == self.total
        if last is not None and last.hit and follows:
            last.count += 1
        elif len(self.calls) < MOST_ROWS:
            span = self.line_of_call()
            self.calls.append(
                Call(self.total, 1, True, False, [], None, "", False, span)
            )

    def note_miss(self, raw: tuple, span: Span | None) -> None:
        key = self.taken_apart(raw)
        key.examples = self.scalars_of_call(key)
        nearest, changes = self.nearest(key)
        row = len(self.calls)
        advice, avoidable = self.advice(key, nearest, changes)
        self.calls.append(
            Call(
                number=self.total,
                count=1,
                hit=False,
                first=nearest is None,
                changes=changes,
                nearest=nearest.row if nearest is not None else None,
                advice=advice,
                avoidable=avoidable,
                span=span,
            )
        )
        key.row = row
        self.keys[identity(raw)] = key

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
        return Key(signature.leaf_names(bound), avals, named, settings, place)

    def scalars_of_call(self, key: Key) -> dict[str, str]:
        """The plain numbers among the arguments of the call, as they were written."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code not in CALL_CODES:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is None:
            return {}
        args, kwargs = frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {})
        bound = self.function._signature.bind(args, kwargs)
        found = {}
        for name, leaf in zip(key.names, bound.leaves):
            if isinstance(leaf, (bool, int, float, complex)):
                found[name] = repr(leaf)
            elif isinstance(leaf, np.generic):
                found[name] = f"np.{type(leaf).__name__}({leaf})"
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

    def advice(
        self, key: Key, nearest: Key | None, changes: list[Change]
    ) -> tuple[str, bool]:
        """What to write instead, and whether the miss could have been avoided."""
        if nearest is None or len(changes) != 1:
            alike = changes and all(change.kind == "type" for change in changes)
            if nearest is not None and alike:
                names = ", ".join(change.name for change in changes)
                return f"pass {names} with the same dtypes each time", True
            return "", False
        (change,) = changes
        was = nearest.examples.get(change.name)
        now = key.examples.get(change.name)
        if change.kind == "type":
            if was and now:
                return f"pass {was}, not {now}", True
            kept = change.was.removeprefix("weak ")
            if now:
                return f"pass an array of {kept}, not {now}", True
            return f"pass {change.name} as {kept} each time", True
        if change.kind == "shape":
            shapes = {
                known.avals[known.names.index(change.name)].shape
                for known in self.keys.values()
                if change.name in known.names
            }
            return ("pad to one size" if len(shapes) >= 3 else ""), False
        if change.kind == "static":
            value = key.statics.get(change.name)
            if isinstance(value, float):
                return f"make {change.name} an argument, not static", True
            return "", False
        if change.kind == "tree":
            return "pass the same structure each time", False
        return "", False

    # ---- the result ----------------------------------------------------------------

    def recording(self) -> CacheRecording:
        """What was seen so far."""
        name = getattr(self.function, "__name__", "function").strip("<>")
        # Copies: the calls go on while somebody looks at them.
        calls = [replace(call) for call in self.calls]
        avoidable = sum(call.avoidable for call in calls)
        kept = len(self.function._caches.calls)
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
                finding += f"; the last {unlisted:,} are only counted"
        telling = next((i for i, call in enumerate(calls) if call.avoidable), None)
        if telling is None:
            missed = [i for i, call in enumerate(calls) if not call.hit]
            telling = missed[-1] if missed else 0
        raws = list(self.function._caches.calls)
        return CacheRecording(
            call=name,
            headline=f"cache of {name}: {finding}",
            telling=telling,
            sources=self.sources.found,
            name=name,
            calls=calls,
            kept=kept,
            watched=self.total > 0,
            keys=[in_words(self.taken_apart(raw)) for raw in raws],
        )


CALL_CODES: set[CodeType] = {JitFunction.__call__.__code__}


def identity(raw: tuple) -> Any:
    """A key under which equal kinds of calls meet, whichever path they came."""
    if len(raw) == 3 and isinstance(raw[0], tuple):
        inner = raw[0]
        return (*inner[:3], inner[3] if len(inner) > 3 else (), *raw[1:])
    return (*raw[:3], raw[3] if len(raw) > 3 else ())


def differences(known: Key, key: Key) -> list[Change]:
    """What differs between two keys, leaf by leaf."""
    changes: list[Change] = []
    if known.names != key.names:
        gone = [name for name in known.names if name not in key.names]
        new = [name for name in key.names if name not in known.names]
        was, now = ", ".join(gone) or "-", ", ".join(new) or "-"
        if not gone and not new:
            was, now = ", ".join(known.names), ", ".join(key.names)
        changes.append(Change("tree", "leaves", was, now))
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
    if not changes and known.place != key.place:
        changes.append(
            Change("device", "device", place_text(known.place), place_text(key.place))
        )
    return changes


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


def short(value: Any) -> str:
    """A static value in at most forty letters."""
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def weight(changes: list[Change]) -> int:
    """How far two keys are apart; another structure is farthest, weak types nearest."""
    costs = {"tree": 100, "setting": 30, "shape": 4, "static": 4, "device": 4}
    total = 0
    for change in changes:
        was, now = (text.removeprefix("weak ") for text in (change.was, change.now))
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
