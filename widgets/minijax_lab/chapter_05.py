"""Questions and exercises of chapter 05, "Random numbers"."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import jit, make_jaxpr, random, tree
from minijax.tree_util import keystr
from minijax_lab.evidence import equations
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "05.r1": Prediction(
        1,
        "NumPy's number is drawn while tracing, once, and stands in the program as a "
        "constant.",
        "the puzzle of chapter 03",
        because={3: "That would need Python at each call; NumPy is Python's."},
    ),
    "05.r2": Prediction(
        1,
        "None is a tree without leaves.",
        "the puzzle of chapter 04",
        because={2: "That counts None, which is a container without leaves."},
    ),
    "05.r3": Prediction(
        "float32",
        "A NumPy scalar has a dtype, and it counts; only 1.0 would be weak.",
        '"Which dtype comes out" in chapter 01',
        because={
            "bfloat16": "That holds for a Python number, which is weak; this one has "
            "a dtype.",
            "float64": "64 bits are off unless you ask, and np.float32 has 32.",
        },
    ),
    "05.p1": Prediction(
        1,
        "normal is a function: the same key gives the same number.",
        because={
            3: "That would be a generator with a state; a key is a value, and drawing "
            "changes nothing in it.",
            2: "jit changes nothing: compiled or not, it is the same function of the "
            "key.",
        },
    ),
}

REUSED = {"b", "d"}


def grade_reuse(letters: Any) -> str | None:
    """Which of the four snippets use a key twice?"""
    if isinstance(letters, str):
        letters = [letter for letter in letters if letter.isalpha()]
    if not isinstance(letters, (list, tuple, set)):
        return "Give a list of letters, such as ['a', 'c']."
    said = {str(letter).strip().lower() for letter in letters}
    if said == REUSED:
        return None
    innocent = sorted(said - REUSED)
    if innocent:
        return f"In {innocent[0]} every key is used once."
    return f"You found {len(said)} of {len(REUSED)}."


def grade_dropout(dropout_batch: Callable[..., Any]) -> str | None:
    """Each row has its own mask, half of the entries survive, doubled."""
    x = np.ones((40, 50), np.float32)
    found = np.asarray(dropout_batch(random.key(3), x))
    if found.shape != x.shape:
        return f"For x of shape {x.shape} it returns shape {found.shape}."
    if not np.isin(found, (0.0, 2.0)).all():
        index = tuple(np.argwhere(~np.isin(found, (0.0, 2.0)))[0].tolist())
        return (
            "Entries must be zero or twice what they were. "
            f"At index {index}: expected 0 or 2, got {found[index]:.6g}."
        )
    if not 0.4 < np.mean(found == 2.0) < 0.6:
        return f"{np.mean(found == 2.0):.0%} of the entries survive; half should."
    first: dict[bytes, int] = {}
    for number, row in enumerate(found):
        other = first.setdefault(row.tobytes(), number)
        if other != number:
            return f"Row {number} has the mask of row {other}; each needs its own."
    if not np.array_equal(found, np.asarray(dropout_batch(random.key(3), x))):
        return "Twice with the same key, and the masks differ: where is the state?"
    if np.array_equal(found, np.asarray(dropout_batch(random.key(4), x))):
        return "Another key gives the same masks."
    return None


def grade_shuffle(shuffle: Callable[..., Any]) -> str | None:
    """A permutation of the rows, every order, from bits and a sort."""
    x = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    found = np.asarray(shuffle(random.key(0), x))
    if found.shape != x.shape or not np.array_equal(np.sort(found, axis=0), x):
        return f"These are not the rows of x in another order:\n{found}"
    if not np.array_equal(found, np.asarray(jit(shuffle)(random.key(0), x))):
        return "Under jit the same key gives another order."
    closed = make_jaxpr(lambda k, x: shuffle(k, x))(random.key(0), x)
    called = {eqn.params.get("name") for eqn in equations(closed)}
    for forbidden in ("_shuffle", "permutation", "choice"):
        if forbidden in called:
            return f"Its jaxpr shows {forbidden}; use random.bits and a sort."
    three = np.arange(3)
    shuffled = jit(shuffle)
    drawn = [np.asarray(shuffled(random.key(s), three)) for s in range(100)]
    orders = {tuple(order.tolist()) for order in drawn}
    for order in itertools.permutations(range(3)):
        if order not in orders:
            return (
                f"Of the 6 orders of three numbers, 100 keys gave {len(orders)}; "
                f"{list(order)} did not come."
            )
    return None


def grade_noise_like(noise_like: Callable[..., Any]) -> str | None:
    """The same structure and shapes; no two leaves from one key."""
    one = partial(np.ones, dtype=np.float32)
    example = {
        "layers": [{"w": one((4, 3)), "b": one(3)} for _ in range(3)],
        "scale": (one(()), None),
    }
    found = noise_like(random.key(1), example)
    if tree.structure(found) != tree.structure(example):
        return (
            f"The structure should be {tree.structure(example)} and is "
            f"{tree.structure(found)}."
        )
    leaves = [np.asarray(leaf) for leaf in tree.leaves(found)]
    paths = [keystr(path) for path, _ in tree.leaves_with_path(example)]
    for path, leaf, wanted in zip(paths, leaves, tree.leaves(example)):
        if leaf.shape != np.shape(wanted):
            return (
                f"The leaf at {path} has shape {np.shape(wanted)}, and became one of "
                f"{leaf.shape}."
            )
    # Leaves that share a key begin with the same numbers, also if one is longer.
    seen: dict[float, str] = {}
    for path, leaf in zip(paths, leaves):
        other = seen.setdefault(float(leaf.ravel()[0]), path)
        if other != path:
            return f"The leaves at {other} and {path} begin with the same numbers."
    numbers = np.concatenate([leaf.ravel() for leaf in leaves])
    if abs(numbers.mean()) > 0.6 or not 0.5 < numbers.std() < 1.6:
        return f"Mean {numbers.mean():.2f}, deviation {numbers.std():.2f}: not normal."
    again = noise_like(random.key(1), example)
    if not all(map(np.array_equal, leaves, tree.leaves(again))):
        return "Twice with the same key, and the noise differs."
    return None


EXERCISES = {
    "05.1": Exercise(grade_reuse),
    "05.2": Exercise(grade_dropout),
    "05.3": Exercise(grade_shuffle),
    "05.4": Exercise(grade_noise_like),
}
