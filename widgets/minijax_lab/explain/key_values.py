"""What `see.keys` knows about a value while it follows a program.

An array of keys is an array of numbers, one for each different key. Small integers are
known as numbers, so that indices and counters are. What comes out
is a tree of keys (`KeyNode`) with their draws (`Use`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from minijax.core import batching
from minijax.core.language import JaxprEqn
from minijax.core.state import state
from minijax_lab.explain.recording import Recording, Span

# How many rounds are followed, of all loops together, and how many keys of one split.
MOST_ROUNDS = 1024


MOST_KEYS = 4096


# Integers of at most this many entries are computed, for indices and counters.
MOST_NUMBERS = 4096


# Primitives that move keys about; their meaning does the same to our numbers.
MOVES = {
    "broadcast_in_dim",
    "concatenate",
    "copy",
    "copy_p",
    "device_put",
    "name",
    "optimization_barrier",
    "reshape",
    "rev",
    "slice",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
}


# These choose: by an index, or by a condition. Their keys come first or last.
CHOOSES = {"dynamic_slice", "dynamic_update_slice", "gather", "scatter", "select_n"}


MAKES = {"random_seed": "seed", "random_wrap": "raw key"}


DRAWS = {"random_bits", "threefry2x32", "random_gamma"}


# These run one program with their own operands, once.
CALLS = {
    "closed_call",
    "composite",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vmap_call",
    "jit",
    "pjit",
    "remat2",
}


LOOPS = {"scan", "while", "cond"}


# Functions of `random` that make keys and draw nothing.
CALLED = re.compile(r"(?:\w+\.)*(\w+)\(")


NO_SAMPLERS = {"split", "fold_in", "key", "PRNGKey", "clone"}


@dataclass
class Use:
    """Something that happened to a key, `times` times.

    `each` says of what it happened once each: "round" of a loop, "turn" of a loop
    whose length is not known, "example" of a `vmap`; "" for what was simply written
    so often. Uses with the same first number in `branch` never happen in the same run
    unless the second is the same, too.
    """

    kind: str  # "split", "fold", "draw", "read"
    what: str  # "split", "fold_in", "normal"
    span: Span | None
    times: int = 1
    each: str = ""
    branch: list[list[int]] = field(default_factory=list)
    shape: list[Any] | None = None  # of what is drawn, for one key


@dataclass
class KeyNode:
    """A key: where it came from, and what was done with it."""

    id: int
    parent: int | None
    name: str  # as in the user's source: "key", "ks[0]"
    how: str  # "argument", "seed 0", "split", "fold_in 3"
    depth: int
    span: Span | None
    uses: list[Use] = field(default_factory=list)
    reused: bool = False
    unsure: str = ""  # why it cannot be told whether it is used once
    rank: int = 0  # which of the keys of one split
    # Where the same key was made once more in another way: "c, by fold_in 0".
    again: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class KeysRecording(Recording):
    """The keys of a function in the order of the tree."""

    kind = "keys"

    keys: list[KeyNode]
    unsure: list[str]  # what the view cannot tell


@dataclass
class Within:
    """Stands for a function that exists only while another one runs."""

    __globals__: dict[str, Any]
    __closure__: tuple = ()


class Shared:
    """Hears which equations were written once for all examples of a `vmap`."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.kept: list[JaxprEqn] = []  # an id is one's own only while one lives

    def listen(self, name: str, data: dict[str, Any]) -> None:
        if name != "bind":
            return
        size = 1
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code is APPLIES_BATCH_RULES and frame.f_locals.get("unmapped"):
                size *= frame.f_locals["self"].axis_data.size
            frame = frame.f_back
        if size > 1:
            self.sizes[id(data["eqn"])] = size
            self.kept.append(data["eqn"])


APPLIES_BATCH_RULES = batching.BatchTrace.process_primitive.__code__


def is_key(aval: Any) -> bool:
    """Whether a type is surely that of typed keys."""
    return str(getattr(aval, "dtype", "")).startswith("key<")


def may_be_raw(aval: Any) -> bool:
    """Whether a type may be that of keys of the old kind: two 32-bit words."""
    shape = getattr(aval, "shape", ())
    return str(getattr(aval, "dtype", "")) == "uint32" and shape[-1:] == (2,)


# ---- what is known about a value ----------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """Keys by their numbers. Raw ones have an axis of `words` words at the end.

    A word's number is that of its key times `words`, plus its place.
    """

    numbers: np.ndarray
    words: int = 0

    @property
    def ids(self) -> np.ndarray:
        """The number of each key."""
        if not self.words:
            return self.numbers
        return self.numbers[..., 0] // self.words


@dataclass(frozen=True)
class Known:
    """An array of integers or truth values that is known before the run."""

    array: np.ndarray


@dataclass(frozen=True)
class Symbol:
    """A value that only the run knows; two with equal texts are the same."""

    text: Any


Value = Keys | Known | Symbol


def raw(ids: np.ndarray, words: int) -> Keys:
    """Raw keys of these numbers; ids alone where keys are typed (`words` is 0)."""
    if not words:
        return Keys(ids)
    return Keys(ids[..., None] * words + np.arange(words), words)


PROGRAMS = {"custom_linear_solve", "linear_call", "pallas_call", "run_state"}


def is_program(names: list[str]) -> bool:
    """Whether one of these primitives runs a program that may draw."""
    return any(name in PROGRAMS or name.startswith("shard_map") for name in names)


def known_integers(const: Any) -> Value | None:
    """A constant that is integers, and not too many."""
    kind = getattr(getattr(const, "dtype", None), "kind", "")
    if kind in ("i", "u", "b") and const.size <= MOST_NUMBERS:
        return Known(np.asarray(const))
    return None


def is_small_integer(aval: Any) -> bool:
    """Whether values of a type are integers, and few."""
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    return kind in ("i", "u", "b") and np.prod(aval.shape) <= MOST_NUMBERS


def is_long(value: Any) -> bool:
    """Whether a symbol's text has grown too long to be compared."""
    return isinstance(value, Symbol) and len(repr(value.text)) > 2000


def text_of(value: Any) -> Any:
    """What can be compared of a value: equal texts are equal values."""
    if isinstance(value, Known):
        return (value.array.tobytes(), str(value.array.dtype), value.array.shape)
    if isinstance(value, Keys):
        return (value.numbers.tobytes(), value.numbers.shape)
    return value


def numbers_in(value: Any) -> np.ndarray | None:
    """The numbers of keys, or of an index; None if they are not known."""
    if isinstance(value, Keys):
        return value.numbers
    return value.array if isinstance(value, Known) else None


def row_of(value: Any, number: int, length: int) -> Any:
    """What one round of a loop gets of an array that it goes along."""
    if isinstance(value, Keys):
        return Keys(value.numbers[number], value.words)
    if isinstance(value, Known):
        return Known(value.array[number])
    return Symbol((value, "row", number)) if isinstance(value, Symbol) else None


def stack(values: Sequence[Any]) -> Value | None:
    """What the rounds of a loop gave, as one array."""
    if values and all(isinstance(value, Keys) for value in values):
        return Keys(np.stack([v.numbers for v in values]), values[0].words)
    if values and all(isinstance(value, Known) for value in values):
        return Known(np.stack([value.array for value in values]))
    return None


def aligned(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array that lacks some of a shape's last axes, repeated along them."""
    while array.ndim < len(shape):
        array = array[..., None]
    return np.broadcast_to(array, shape)


def same_keys(one: Any, two: Any) -> bool:
    """Whether two values are the same keys."""
    if not isinstance(one, Keys) or not isinstance(two, Keys):
        return False
    return np.array_equal(one.numbers, two.numbers)


def consuming(node: KeyNode) -> list[Use]:
    """The uses of a key that are to happen once: draws and splits."""
    return [use for use in node.uses if use.kind in ("draw", "split")]


def count_of(uses: Sequence[Use], level: int = 0) -> int:
    """How often a key is used in one run: of branches, the one that uses it most."""
    count = 0
    branches: dict[int, dict[int, list[Use]]] = {}
    for use in uses:
        if len(use.branch) <= level:
            count += use.times if use.kind in ("draw", "split") else 0
            continue
        around, number = use.branch[level]
        branches.setdefault(around, {}).setdefault(number, []).append(use)
    for options in branches.values():
        count += max(count_of(part, level + 1) for part in options.values())
    return count


def tally(nodes: Iterable[KeyNode]) -> dict[tuple[int, int], int]:
    """How often each use of each key has happened so far."""
    return {(n.id, i): use.times for n in nodes for i, use in enumerate(n.uses)}


def grown(nodes: Iterable[KeyNode], before: dict) -> Iterator[tuple[Use, int]]:
    """The uses that happened since a tally, and how often."""
    for node in nodes:
        for i, use in enumerate(node.uses):
            more = use.times - before.get((node.id, i), 0)
            if more:
                yield use, more


def in_order(nodes: list[KeyNode]) -> list[KeyNode]:
    """Each key behind the one it came from, numbered anew.

    A key that goes on under its parent's name comes last and stands as deep as it:
    `key, now = split(key)` again and again is one line with twigs.
    """
    below: dict[int | None, list[KeyNode]] = {}
    there = {node.id for node in nodes}
    for node in nodes:
        parent = node.parent if node.parent in there else None
        node.parent = parent
        below.setdefault(parent, []).append(node)
    ordered: list[KeyNode] = []
    pending = list(reversed(below.get(None, [])))
    while pending:
        node = pending.pop()
        ordered.append(node)
        children = below.get(node.id, [])
        trunk = trunk_of(node, children)
        for child in children:
            child.depth = node.depth + (child is not trunk)
        rest = [child for child in children if child is not trunk]
        pending += ([trunk] if trunk else []) + list(reversed(rest))
    numbers = {node.id: position for position, node in enumerate(ordered)}
    for node in ordered:
        node.parent = None if node.parent is None else numbers[node.parent]
    for node in ordered:
        node.id = numbers[node.id]
    return ordered


def trunk_of(node: KeyNode, children: list[KeyNode]) -> KeyNode | None:
    """The child that goes on in place of a key: it has the key's own name."""
    own = [child for child in children if child.name == node.name]
    return own[0] if len(own) == 1 and own[0].how == "split" else None


def drawn_for_one(eqn: JaxprEqn, ids: np.ndarray) -> list[Any]:
    """The shape that an equation draws for each key of an array of keys."""
    shape = [n if isinstance(n, int) else str(n) for n in eqn.outvars[0].aval.shape]
    rows = list(ids.shape)
    return shape[len(rows) :] if shape[: len(rows)] == rows else shape


def times(number: int) -> str:
    """Returns for example "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def used_in_words(uses: Sequence[Use]) -> str:
    """How often a key is used: "twice", "5 times", "in each round"."""
    if any(use.each == "turn" for use in uses):
        return "in each round"
    return times(count_of(uses))


def use_in_words(use: Use) -> str:
    """Returns for example "normal", or "normal in each of 3 rounds"."""
    if use.times == 1:
        return use.what
    if use.each == "round":
        return f"{use.what} in each of {use.times:,} rounds"
    if use.each == "turn":
        return f"{use.what} in each round"
    if use.each == "example":
        return f"{use.what} for each of {use.times:,} examples"
    return f"{use.what} {times(use.times)}"


def said_of_splits(hows: Iterable[str]) -> str:
    """What to add where a number folded in may give a key of a split."""
    split = any(how.startswith("split") for how in hows)
    return " or count a key of its split" if split else ""


# Key `i` of a split is what `fold_in` makes of `i`.
FOLDLIKE = "child"


def children_of(eqn: JaxprEqn) -> str:
    """How a split numbers its keys: as `fold_in` does, or for itself.

    "" where its keys depend on how many there are: of JAX before 0.5.
    """
    kind = str(eqn.invars[0].aval.dtype)
    if kind == "key<urbg>":
        return "split"
    known = kind in ("key<fry>", "key<rbg>") and state.threefry_partitionable
    return FOLDLIKE if known else ""


def cloned_draws(nodes: list[KeyNode]) -> str:
    """Says of a clone that what is drawn from it was drawn before."""
    known = {node.id: node for node in nodes}
    drawn: dict[int, KeyNode] = {}
    for node in nodes:
        origin = node
        while origin.how == "clone" and origin.parent in known:
            origin = known[origin.parent]
        if any(use.kind in ("draw", "split") for use in node.uses):
            first = drawn.setdefault(origin.id, node)
            if first is not node:
                return f"; the clone of {first.name} gives the same numbers as it"
    return ""
