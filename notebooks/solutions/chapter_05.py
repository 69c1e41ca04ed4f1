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
