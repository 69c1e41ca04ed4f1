"""Questions and exercises of chapter 04, "Pytrees and state"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import grad, jit, tree
from minijax.tree_util import keystr
from minijax_lab.answers import difference, listed, same
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "04.r1": Prediction(
        1,
        "Numbers are not part of the key; types are.",
        "the view of `f` in chapter 03, its second call",
        because={2: "That would be a key with the numbers in it; it has their types."},
    ),
    "04.r2": Prediction(
        2,
        "A static value is part of the key.",
        "the function `power` in chapter 03",
        because={
            1: "That holds for an argument that is traced; of a static one the value "
            "itself is in the key.",
        },
    ),
    "04.r3": Prediction(
        "yes",
        "`.at` gives a new array.",
        '"No assignment" in chapter 01',
        because={"no": "NumPy's `x[0] += 1.0` changes x; `.at` writes into a copy."},
    ),
    "04.p1": Prediction(
        4,
        "Three weights and the 3.0 of the pair; None and {} are containers without "
        "leaves.",
        because={
            1: "That takes the dict for one input; it is taken apart into its arrays.",
            3: "That counts the entries of the dict; what lies in them is counted.",
            5: "That counts None; it is an empty container, and no input.",
            6: "That counts None and {}; both are containers without anything in them.",
        },
    ),
    "04.p2": Prediction(
        2,
        "A static field belongs to the structure, and the structure to the key; the "
        "third call finds the program of the first.",
        because={
            1: "That takes the name for something that tracing does not see; a static "
            "field is in the key.",
            3: "That is Python running each call; the third one is like the first.",
        },
    ),
}

EXERCISE_1 = [2, 3, 5, 4, 1]
PATHS_1 = ["['a'][0]", "['a'][2][0]", "['m']['x']", "['m']['y']", "['z']"]


def grade_leaves(leaves: Any) -> str | None:
    """The leaves of exercise 1's tree, in order."""
    given = listed(leaves)
    if given is None:
        return "Give a list of leaves, such as [1, 2, 3]."
    if same(given, EXERCISE_1):
        return None
    if None in given:
        return "None is a container, an empty one: the one at ['a'][1] has no leaf."
    if sorted(map(str, given)) == sorted(map(str, EXERCISE_1)):
        told = "These are the leaves, in another order."
    else:
        told = f"The tree has {len(EXERCISE_1)} leaves; you gave {len(given)}."
        told = "One is another." if len(given) == len(EXERCISE_1) else told
    for index, (path, leaf) in enumerate(zip(PATHS_1, EXERCISE_1)):
        if index == len(given) or not same(given[index], leaf):
            got = "the end" if index == len(given) else repr(given[index])
            return f"{told} At index {index}: expected the leaf at {path}, got {got}."
    return f"{told} After the leaf at {PATHS_1[-1]} there is none."


def grade_scale(scale_class: Any) -> str | None:
    """`factor` is a leaf, `axis` belongs to the structure; grad and jit take it."""
    scale = scale_class(factor=2.0, axis=0)
    leaves = tree.leaves(scale)
    if leaves == [scale]:
        return "An instance is a leaf itself: the class is not registered."
    if leaves != [2.0]:
        return f"Its leaves are {leaves}; factor alone should be one."
    if tree.structure(scale) == tree.structure(scale_class(factor=2.0, axis=1)):
        return "Two axes give the same structure, so one program would serve both."
    x = jnp.ones((3, 2))
    if jit(lambda s, x: s(x))(scale, x).shape != (2,):
        return "Under jit, Scale(2.0, 0) of a (3, 2) array should have shape (2,)."
    slope = grad(lambda s: jnp.sum(s(x)))(scale)
    if not isinstance(slope, scale_class) or float(slope.factor) != 6.0:
        return f"The derivative for factor is 6, and grad returns {slope}."
    return None


def grade_clip(clip_by_norm: Callable[..., Any]) -> str | None:
    """Scaled down as a whole when too long, otherwise untouched."""
    example = {"w": np.array([[3.0, 0.0]]), "b": [np.array(4.0), None]}
    for name, function in (("", clip_by_norm), (" under jit", jit(clip_by_norm))):
        for largest, factor in ((1.0, 0.2), (5.0, 1.0), (100.0, 1.0)):
            found = function(example, largest)
            if tree.structure(found) != tree.structure(example):
                return f"The structure{name} became {tree.structure(found)}."
            wanted = tree.map(partial(np.multiply, factor), example)
            pairs = zip(tree.leaves_with_path(found), tree.leaves(wanted))
            for (path, leaf), right in pairs:
                told = difference(leaf, right)
                if told:
                    return (
                        f"The norm of {example} is 5. With largest={largest}{name}, "
                        f"the leaf at {keystr(path)}: {told}"
                    )
    zeros = tree.map(np.zeros_like, example)
    for path, leaf in tree.leaves_with_path(clip_by_norm(zeros, 1.0)):
        if not np.all(leaf == 0):
            return (
                f"A tree of zeros should stay zero, and the leaf at {keystr(path)} "
                f"becomes {leaf} (look at what you divide by)."
            )
    return None


def adam_by_hand(w: np.ndarray, slopes: list[np.ndarray]) -> np.ndarray:
    """Algorithm 1 of Kingma and Ba (2014), in 64 bits."""
    first, second = np.zeros_like(w), np.zeros_like(w)
    for step, g in enumerate(slopes, start=1):
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g**2
        corrected = first / (1 - 0.9**step)
        scale = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        w = w - 0.001 * corrected / scale
    return w


def off_from_adam(
    found: Any, wanted: Any, start: Any, number: int, path: str
) -> str | None:
    """What is wrong with the leaf at `path` after step `number`, or None."""
    told = difference(found, wanted, atol=2e-6)
    if told is None:
        return None
    # Without correction the first step is 0.1 / sqrt(0.001) times as long.
    if number == 1 and np.allclose(found - start, (wanted - start) * 0.1**-0.5):
        return "The first step is too long: the bias correction is missing."
    return f"After step {number}, the leaf at {path}: {told}"


def grade_adam(adam_start: Callable, adam_step: Callable) -> str | None:
    """Four steps on a tree agree with the paper; the step is pure and can be jitted."""
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(2, 3)), "b": [rng.normal(size=3), None]}
    slopes = [tree.map(lambda p: rng.normal(size=p.shape), params) for _ in range(4)]
    state, found = adam_start(params), params
    step = jit(adam_step)
    for number, slope in enumerate(slopes, start=1):
        state, found = step(state, found, slope)
        if tree.structure(found) != tree.structure(params):
            return f"The structure of params became {tree.structure(found)}."
        for position, (path, leaf) in enumerate(tree.leaves_with_path(found)):
            history = [tree.leaves(s)[position] for s in slopes[:number]]
            wanted = adam_by_hand(tree.leaves(params)[position], history)
            start, leaf = tree.leaves(params)[position], np.asarray(leaf)
            told = off_from_adam(leaf, wanted, start, number, keystr(path))
            if told:
                return told
    return None


EXERCISES = {
    "04.1": Exercise(grade_leaves),
    "04.2": Exercise(grade_scale),
    "04.3": Exercise(grade_clip),
    "04.4": Exercise(grade_adam),
}
