"""Chapter 00: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import jit, random, value_and_grad, vmap


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
def step(params, images, labels, rate):
    """One step down."""
    _, gradient = value_and_grad(loss)(params, images, labels)
    return minijax.tree.map(lambda p, g: p - rate * g, params, gradient)


def train(images, labels, hidden=64, rate=1.0):
    """Returns the parameters of a wider network that learned in longer steps."""
    params = make_params(random.key(1), [64, hidden, 10])
    for _ in range(400):
        params = step(params, images, labels, rate)
    return params


def train_as_before(images, labels):
    """Wrong: the chapter's own network."""
    return train(images, labels, hidden=32, rate=0.2)


def scores_of_five(params, image):
    """Wrong: half of the digits have no score."""
    return scores(params, image)[:5]


def damped(x):
    """A function of one number with a few operations."""
    return jnp.sin(3.0 * x) * jnp.exp(-x)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "00.1": (
        "the printed x had a type and no value: what may change without a new type?",
        "count the different shapes.",
        "minijax/core/jit.py, where the key of a traced program is made.",
    ),
    "00.2": (
        "copy scores, and change the one line with tanh.",
        "look at see.jaxpr(my_scores, params, data.test_images[0]): which line is new?",
        "minijax/primitives/elementwise/extrema.py, the block of `max_p`.",
    ),
    "00.3": (
        "more steps, a larger rate, or a wider hidden layer; change one at a time.",
        "64 numbers in the hidden layer and a rate of 1 are enough. Put make_params "
        "and the loop over step into train, and return params.",
        "the cell `params = ...` and the training loop of this chapter.",
    ),
    "00.4": (
        "a function of one float that returns one float, such as lambda x: "
        "jnp.sin(x) * x + x ** 2.",
        "use jnp's functions; float(x) or math.sin(x) ask a tracer for a number.",
        "minijax/core/api.py, `grad`.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "00.1": lambda: (2,),
    "00.2": lambda: (relu_scores, "max"),
    "00.3": lambda: (scores, train),
    "00.4": lambda: (damped, 0.7),
}
WRONG = {
    "00.1": [lambda: (3,), lambda: (1,)],
    "00.2": [lambda: (untouched_after_relu, "max"), lambda: (relu_scores, "tanh")],
    "00.3": [
        lambda: (scores, train_as_before),
        lambda: (scores_of_five, train_as_before),
    ],
    "00.4": [lambda: (lambda x: x, 1.0), lambda: (lambda x: float(x) ** 2, 1.0)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "00.1": ["a shape that it has seen", "a shape that is new"],
    "00.2": ["tanh still stands", "The new equation is not called 'tanh'"],
    "00.3": ["96.5% are asked for", "must return 10 scores for one image"],
    "00.4": [
        "Equations in its jaxpr: 0;",
        "ConcretizationTypeError in chapter_00.py at line",
    ],
}
