"""tiny, over minijax. This piece: gradient transformations, an Optax of 90 lines."""

from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import tree
from minijax.tree_util import tree_map_with_path


class Transform(NamedTuple):
    """init(params) gives a state, update(grads, state, params) updates and a state."""

    init: Any
    update: Any


class AdamState(NamedTuple):
    """How many steps, and the two running means, each a tree like the weights."""

    count: Any
    mean: Any
    square: Any


def chain(*transforms):
    """One transform out of several: what the first gives goes to the second, ..."""

    def init(params):
        return tuple(one.init(params) for one in transforms)

    def update(grads, states, params=None):
        after = []
        for one, state in zip(transforms, states, strict=True):
            grads, state = one.update(grads, state, params)
            after.append(state)
        return grads, tuple(after)

    return Transform(init, update)


def stateless(function):
    """A transform that remembers nothing: function(grads, params)."""
    return Transform(
        lambda params: (),
        lambda grads, state, params=None: (function(grads, params), state),
    )


def scale(factor):
    return stateless(lambda grads, _: tree.map(lambda g: factor * g, grads))


def running(grads, means, decay, power):
    """The running means of grads ** power, one step later."""
    return tree.map(lambda g, m: (1 - decay) * g**power + decay * m, grads, means)


def corrected(means, decay, count):
    """Running means that began at zero, made as large as if they had not."""
    share = 1 - decay**count
    return tree.map(lambda m: m / share, means)


def counted(count):
    """One more; the largest integer stays what it is."""
    most = jnp.array(jnp.iinfo(count.dtype).max, count.dtype)
    return jnp.where(count < most, count + jnp.array(1, count.dtype), most)


def scale_by_adam(b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0):
    """Divides the mean of the gradients by the root of the mean of their squares."""

    def init(params):
        mean, square = (tree.map(jnp.zeros_like, params) for _ in range(2))
        return AdamState(jnp.zeros((), jnp.int32), mean, square)

    def update(grads, state, params=None):
        mean = running(grads, state.mean, b1, 1)
        square = running(grads, state.square, b2, 2)
        count = counted(state.count)
        updates = tree.map(
            lambda m, s: m / (jnp.sqrt(s + eps_root) + eps),
            corrected(mean, b1, count),
            corrected(square, b2, count),
        )
        return updates, AdamState(count, mean, square)

    return Transform(init, update)


def add_decayed_weights(rate, chosen=lambda path: True):
    """Adds rate * weight where chosen(path), with a path such as "Dense_0/kernel"."""

    def one(path, grad, weight):
        name = "/".join(entry.key for entry in path)
        return grad + rate * weight if chosen(name) else grad

    return stateless(lambda grads, params: tree_map_with_path(one, grads, params))


def apply_updates(params, updates):
    """New weights: each with its update."""
    return tree.map(lambda p, u: (p + u).astype(p.dtype), params, updates)


def adam(rate):
    return chain(scale_by_adam(), scale(-rate))


def adamw(rate, decay=1e-4, chosen=lambda path: True):
    return chain(scale_by_adam(), add_decayed_weights(decay, chosen), scale(-rate))
