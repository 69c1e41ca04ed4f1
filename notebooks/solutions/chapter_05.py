"""Chapter 05: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import random, tree, vmap


def dropout(key, x):
    """Half of the entries become zero, the others are doubled."""
    return jnp.where(random.bernoulli(key, 0.5, x.shape), 2.0 * x, 0.0)


def dropout_batch(key, x):
    """A key for each row."""
    return vmap(dropout)(random.split(key, len(x)), x)


def dropout_with_one_mask(key, x):
    """Wrong: all rows share the key."""
    return vmap(dropout, in_axes=(None, 0))(key, x)


def dropout_without_scale(key, x):
    """Wrong: its own masks, but nothing is doubled."""
    keys = random.split(key, len(x))
    keep = vmap(lambda k: random.bernoulli(k, 0.5, x.shape[1:]))(keys)
    return jnp.where(keep, x, 0.0)


def shuffle(key, x):
    """Sorts the rows by random words."""
    return x[jnp.argsort(random.bits(key, (len(x),)))]


def shuffle_with_permutation(key, x):
    """Wrong: a permutation, but the library's."""
    return random.permutation(key, x)


def roll(key, x):
    """Wrong: some orders never come."""
    return jnp.roll(x, random.randint(key, (), 0, len(x)), axis=0)


def noise_like(key, example):
    """A key for each leaf."""
    leaves, structure = tree.flatten(example)
    keys = random.split(key, len(leaves))
    noise = [random.normal(k, jnp.shape(leaf)) for k, leaf in zip(keys, leaves)]
    return tree.unflatten(structure, noise)


def noise_from_one_key(key, example):
    """Wrong: leaves of the same shape are equal."""
    return tree.map(lambda leaf: random.normal(key, jnp.shape(leaf)), example)


def noise_in_a_list(key, example):
    """Wrong: the structure is lost."""
    leaves = tree.leaves(example)
    keys = random.split(key, len(leaves))
    return [random.normal(k, jnp.shape(leaf)) for k, leaf in zip(keys, leaves)]


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "05.1": (
        "write down each key and how often it is split or drawn from; more than "
        "once is a reuse.",
        "a key made by fold_in with another number is another key.",
        "the tree that see.keys(f, key) draws of each.",
    ),
    "05.2": (
        "one key gives one mask: how many keys are needed?",
        "split the key into as many as there are rows, and vmap over both.",
        "the cell with `random.split(key, 3)` in this chapter.",
    ),
    "05.3": (
        "give each row a random number, and put the rows in the order of their "
        "numbers.",
        "one random word for each row; jnp.argsort of the words is a random order.",
        "minijax/random, `permutation`: it sorts by random words, several times.",
    ),
    "05.4": (
        "a tree can be taken apart into leaves and built again; chapter 04.",
        "tree.flatten, as many keys as leaves, one normal for each, tree.unflatten.",
        "`make_params` in chapter 00.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "05.1": lambda: (["b", "d"],),
    "05.2": lambda: (dropout_batch,),
    "05.3": lambda: (shuffle,),
    "05.4": lambda: (noise_like,),
}
WRONG = {
    "05.1": [lambda: (["b"],), lambda: (["b", "c", "d"],)],
    "05.2": [lambda: (dropout_with_one_mask,), lambda: (dropout_without_scale,)],
    "05.3": [lambda: (shuffle_with_permutation,), lambda: (roll,)],
    "05.4": [lambda: (noise_from_one_key,), lambda: (noise_in_a_list,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "05.1": ["You found 1 of 2", "In c every key is used once"],
    "05.2": ["Row 1 has the mask of row 0", "At index (0, 0): expected 0 or 2, got 1."],
    "05.3": ["Its jaxpr shows _shuffle", "100 keys gave 3; [0, 2, 1] did not come"],
    "05.4": [
        "The leaves at ['layers'][0]['b'] and ['layers'][0]['w'] begin with",
        "The structure should be",
    ],
}
