"""Chapter 00: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import jit, random, value_and_grad, vmap
from minijax.lab import digits


def scores(params, image):
    """The network of the chapter."""
    hidden, output = params
    x = jnp.tanh(image @ hidden["w"] + hidden["b"])
    return x @ output["w"] + output["b"]


def relu_scores(params, image):
    """The same with `maximum(0, x)`."""
    hidden, output = params
    x = jnp.maximum(0, image @ hidden["w"] + hidden["b"])
    return x @ output["w"] + output["b"]


def untouched_after_relu(params, image):
    """Wrong: the old activation still stands below the new one."""
    hidden, output = params
    x = jnp.maximum(0, jnp.tanh(image @ hidden["w"] + hidden["b"]))
    return x @ output["w"] + output["b"]


def make_params(key, sizes):
    """Random weights, and offsets of zero."""
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (n, m)) / n**0.5, "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes[:-1], sizes[1:])
    ]


def loss(params, images, labels):
    """The mean loss over many images."""

    def loss_of_one(image, label):
        s = scores(params, image)
        return jnp.log(jnp.sum(jnp.exp(s))) - s[label]

    return jnp.mean(vmap(loss_of_one)(images, labels))


@jit
def step(params, images, labels):
    """One step down, with a rate of 0.5."""
    _, gradient = value_and_grad(loss)(params, images, labels)
    return minijax.tree.map(lambda p, g: p - 0.5 * g, params, gradient)


def train(steps):
    """Returns the parameters of a wider network after `steps` steps."""
    data = digits.load()
    params = make_params(random.key(1), [64, 64, 10])
    for _ in range(steps):
        params = step(params, data.train_images, data.train_labels)
    return params


def damped(x):
    """A function of one number with a few operations."""
    return jnp.sin(3.0 * x) * jnp.exp(-x)


# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "00.1": lambda: (2,),
    "00.2": lambda: (relu_scores, "max"),
    "00.3": lambda: (scores, train(1000)),
    "00.4": lambda: (damped, 0.7),
}
WRONG = {
    "00.1": [lambda: (3,), lambda: (1,)],
    "00.2": [lambda: (untouched_after_relu, "max"), lambda: (relu_scores, "tanh")],
    "00.3": [
        lambda: (scores, train(3)),
        lambda: (lambda params, image: scores(params, image)[:5], train(3)),
    ],
    "00.4": [lambda: (lambda x: x, 1.0), lambda: (lambda x: float(x) ** 2, 1.0)],
}
