"""Chapter 04: a solution of each exercise, and two answers that must fail."""

from dataclasses import dataclass, field

import minijax
import minijax.numpy as jnp
from minijax import tree


@minijax.tree_util.register_dataclass
@dataclass
class Scale:
    """`factor` is data, `axis` is static."""

    factor: float
    axis: int = field(metadata={"static": True})

    def __call__(self, x):
        return self.factor * jnp.sum(x, axis=self.axis)


@dataclass
class Unregistered:
    """Wrong: a leaf."""

    factor: float
    axis: int


@minijax.tree_util.register_dataclass
@dataclass
class AllData:
    """Wrong: the axis is traced."""

    factor: float
    axis: int


def clip_by_norm(gradients, largest):
    """One factor for all leaves."""
    squares = tree.map(lambda leaf: jnp.sum(leaf**2), gradients)
    norm = jnp.sqrt(tree.reduce(jnp.add, squares))
    factor = jnp.minimum(1.0, largest / jnp.maximum(norm, 1e-12))
    return tree.map(lambda leaf: factor * leaf, gradients)


def clip_each_leaf(gradients, largest):
    """Wrong: a factor for each leaf changes the direction."""

    def clip(leaf):
        norm = jnp.sqrt(jnp.sum(leaf**2))
        return leaf * jnp.minimum(1.0, largest / jnp.maximum(norm, 1e-12))

    return tree.map(clip, gradients)


def scale_to_norm(gradients, largest):
    """Wrong: small ones grow."""
    squares = tree.map(lambda leaf: jnp.sum(leaf**2), gradients)
    norm = jnp.sqrt(tree.reduce(jnp.add, squares))
    return tree.map(lambda leaf: leaf * largest / norm, gradients)


def adam_start(params):
    """Step number, first and second moments."""
    return 0, tree.map(jnp.zeros_like, params), tree.map(jnp.zeros_like, params)


def adam_step(state, params, slopes, correct=True):
    """Algorithm 1 of Kingma and Ba (2014)."""
    step, first, second = state
    step = step + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
    second = tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, slopes)
    if correct:
        rest, rest_2 = 1 - 0.9**step, 1 - 0.999**step
    else:
        rest, rest_2 = 1.0, 1.0

    def moved(p, m, v):
        return p - 0.001 * (m / rest) / (jnp.sqrt(v / rest_2) + 1e-8)

    return (step, first, second), tree.map(moved, params, first, second)


def adam_without_correction(state, params, slopes):
    """Wrong: the first steps are too small."""
    return adam_step(state, params, slopes, correct=False)


def descent_step(state, params, slopes):
    """Wrong: no Adam at all."""
    return state, tree.map(lambda p, g: p - 0.001 * g, params, slopes)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "04.1": (
        "sort the keys of each dict first.",
        "a list and a tuple keep their order; None has no leaf.",
        "what see.tree draws of it.",
    ),
    "04.2": (
        "the class Dense of this chapter has one field of each kind.",
        'field(metadata={"static": True}), and minijax.tree_util.register_dataclass.',
        "the cell with Dense in this chapter.",
    ),
    "04.3": (
        "the norm is the root of the sum of the squares of all entries of all leaves.",
        "sum the squares of all leaves, then scale by jnp.minimum(1, largest / norm).",
        "tree.leaves or tree.reduce, and jnp.maximum against a division by zero.",
    ),
    "04.4": (
        "the state is (step, first, second); one tree.map for each line of the recipe.",
        "start with step 0 and two trees of zeros; add one to step before it is used.",
        "momentum_step in this chapter.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "04.1": lambda: ([2, 3, 5, 4, 1],),
    "04.2": lambda: (Scale,),
    "04.3": lambda: (clip_by_norm,),
    "04.4": lambda: (adam_start, adam_step),
}
WRONG = {
    "04.1": [lambda: ([1, 2, 3, 4, 5],), lambda: ([2, None, 3, 5, 4, 1],)],
    "04.2": [lambda: (Unregistered,), lambda: (AllData,)],
    "04.3": [lambda: (clip_each_leaf,), lambda: (scale_to_norm,)],
    "04.4": [
        lambda: (adam_start, adam_without_correction),
        lambda: (adam_start, descent_step),
    ],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "04.1": [
        "in another order. At index 0: expected the leaf at ['a'][0], got 1.",
        "None is a container",
    ],
    "04.2": ["the class is not registered", "factor alone should be one"],
    "04.3": [
        "the leaf at ['b'][0]: Expected 0.8, got 1.",
        "the leaf at ['b'][0]: Expected 4, got 80.",
    ],
    "04.4": [
        "the bias correction is missing",
        "After step 1, the leaf at ['b'][0]: At index",
    ],
}
