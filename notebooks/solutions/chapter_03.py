"""Chapter 03: a solution of each exercise, and two answers that must fail."""

from functools import partial

import numpy as np

import minijax.numpy as jnp
from minijax import grad, jit


def loss(w):
    """What the training loop makes small."""
    return jnp.sum((w - 1.0) ** 2)


@jit
def step(w, rate):
    """One step down; the rate is an argument."""
    return w - rate * grad(loss)(w)


def train(w, steps):
    """One jitted step, called with another rate each time."""
    for i in range(steps):
        w = step(w, 0.1 / (1 + i))
    return w


def train_with_new_functions(w, steps):
    """Wrong: a function for each step."""
    for i in range(steps):
        w = jit(lambda w, rate: w - rate * grad(loss)(w))(w, 0.1 / (1 + i))
    return w


def train_with_constant_rate(w, steps):
    """Wrong: a single trace, but the rate does not fall."""
    for _ in range(steps):
        w = step(w, 0.1)
    return w


def normalize(x, mean):
    """The mean comes in."""
    return x - mean


def update(mean, x):
    """The new mean goes out."""
    return mean + 0.1 * (jnp.mean(x) - mean)


kept = {"mean": 0.0}


def normalize_with_global(x, mean):
    """Wrong: the mean is read while tracing."""
    return x - kept["mean"]


def update_to_the_end(mean, x):
    """Wrong: it goes the whole way."""
    return mean + (jnp.mean(x) - mean)


def padding_solution():
    """A vector of 64 entries is all that the jitted function sees."""
    squares = jit(lambda x: jnp.sum(x**2))

    def padded(x):
        return squares(np.pad(np.asarray(x), (0, 64 - len(x))))

    return padded, squares


def not_padded():
    """Wrong: a program for each length."""
    squares = jit(lambda x: jnp.sum(x**2))
    return (lambda x: squares(x)), squares


def padded_with_ones():
    """Wrong: one program, but the ones are counted."""
    squares = jit(lambda x: jnp.sum(x**2))

    def padded(x):
        return squares(np.pad(np.asarray(x), (0, 64 - len(x)), constant_values=1.0))

    return padded, squares


@partial(jit, static_argnames="n")
def f(x, y, n=2):
    """What the ten puzzles call."""
    return n * jnp.sum(x * y)


def hit_calls():
    """Three floats that are not weak, and a Python float."""
    return f, [
        lambda: f(jnp.arange(3.0), 2.0),
        lambda: f(jnp.ones(3), 5.0),
        lambda: f(jnp.ones(3), 4.0),
        lambda: f(np.array([1.0, 2.0, 5.0]), 2.0),  # NumPy's 64 bits arrive as 32
        lambda: f(jnp.array([[1.0], [3.0], [5.0]]).ravel(), 2.0),
        lambda: f(jnp.array([7.0, 8.0, 0.0]), 2.0),
        lambda: f(jnp.ones(3), 3.0),
        lambda: f(jnp.array([1.0, 2.0, 3.0]), 3.0),
        lambda: f(jnp.ones(3, jnp.bfloat16).astype(jnp.float32), 7.0),
        lambda: f(jnp.array([2.0, 3.0, 4.0]), 2.0),
    ]


def one_call_is_a_miss():
    """Wrong: 5 is a weak integer."""
    _, calls = hit_calls()
    return f, [calls[0], lambda: f(jnp.ones(3), 5), *calls[2:]]


def another_number():
    """Wrong: a hit, but the eight is lost."""
    _, calls = hit_calls()
    return f, [*calls[:5], lambda: f(jnp.array([7.0, 0.0, 0.0]), 2.0), *calls[6:]]


HITS = ["miss", "hit", "hit", "miss", "miss", "miss", "hit", "miss"]

# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "03.1": (
        "go call by call: has there been one with the same shape, dtype, weak type "
        "and n?",
        "np.ones(3) has 64 bits and arrives with 32; a Python number has its own type.",
        "the frame that see.cache(f) draws of the eight calls.",
    ),
    "03.2": (
        "which object is new in each round, and which number is written into the "
        "program?",
        "one jitted step outside of the loop, with the rate as an argument.",
        "minijax/core/jit.py, what a program is kept under.",
    ),
    "03.3": (
        "what does the jitted lambda read that is not an argument?",
        "the mean is an argument of normalize, and what update returns.",
        "the puzzle of this chapter: it is the same mistake.",
    ),
    "03.4": (
        "the jitted function may only ever see one shape: (64,).",
        "np.pad(x, (0, 64 - len(x))), or jnp.zeros(64).at[:len(x)].set(x), outside "
        "of the jitted function.",
        "`jnp.pad`, and why zeros do not change a sum of squares.",
    ),
    "03.5": (
        "what the kept program was written for: f32[3], not weak; and a weak float32, "
        "both by position.",
        "5 is an integer and 5.0 is not; jnp.float32(4.0) is not weak and 4.0 is; a "
        "zero more does not change a sum.",
        "the table of what makes a new program, in this chapter.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "03.1": lambda: (HITS,),
    "03.2": lambda: (train,),
    "03.3": lambda: (jit(normalize), jit(update)),
    "03.4": padding_solution,
    "03.5": hit_calls,
}
WRONG = {
    "03.1": [lambda: (["miss"] * 8,), lambda: (HITS[:6] + ["miss", "miss"],)],
    "03.2": [
        lambda: (train_with_new_functions,),
        lambda: (train_with_constant_rate,),
    ],
    "03.3": [
        lambda: (jit(normalize_with_global), jit(update)),
        lambda: (jit(normalize), jit(update_to_the_end)),
    ],
    "03.4": [not_padded, padded_with_ones],
    "03.5": [one_call_is_a_miss, another_number],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "03.1": ["Call 2 is not a miss", "Call 7 is not a miss"],
    "03.2": ["missed the cache 8 times", "After five steps w should be"],
    "03.3": ["Does the mean come in", "should give a mean of 0.200"],
    "03.4": ["Four lengths made 4 programs", "For [0.] it gives 63, not 0."],
    "03.5": ["Puzzle 2 is a miss", "Puzzle 6 is a hit, and gives 28.0, not 60.0"],
}
