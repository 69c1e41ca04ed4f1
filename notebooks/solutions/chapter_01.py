"""Chapter 01: a solution of each exercise, and two answers that must fail."""

import time

import numpy as np

import minijax.numpy as jnp


def stopwatch(f, x):
    """Compiles first, then waits for the result."""
    f(x).block_until_ready()
    start = time.perf_counter()
    f(x).block_until_ready()
    return time.perf_counter() - start


def stopwatch_without_waiting(f, x):
    """Wrong: it times queueing the work."""
    f(x)
    start = time.perf_counter()
    f(x)
    return time.perf_counter() - start


def stopwatch_with_compiling(f, x):
    """Wrong: the first call is in it."""
    start = time.perf_counter()
    f(x).block_until_ready()
    return time.perf_counter() - start


def running_mean(x):
    """All sums at once, divided by the number of terms."""
    return jnp.cumsum(x) / jnp.arange(1, len(x) + 1)


def running_mean_by_loop(x):
    """Wrong: right numbers, and as many equations as entries."""
    total = 0.0
    means = jnp.zeros(len(x))
    for k in range(len(x)):
        total = total + x[k]
        means = means.at[k].set(total / (k + 1))
    return means


def mean_so_far(x):
    """Wrong: one mean for all."""
    return jnp.full(len(x), jnp.mean(x))


def numpy_histogram(index):
    """Counts how often each number comes."""
    counts = np.zeros(5)
    for i in index:
        counts[i] += 1
    return counts


def histogram(index):
    """The same as one scatter."""
    return jnp.zeros(5).at[index].add(1)


def histogram_that_forgets(index):
    """Wrong: a number that comes twice is counted once."""
    return jnp.zeros(5).at[index].set(1)


def histogram_by_comparing(index):
    """Wrong: right numbers, but nothing is written into an array."""
    return jnp.sum(index[:, None] == jnp.arange(5), axis=0)


# One of 152 among the 4,368 ways to choose five cells of a square of 4 by 4.
LONG_LIVED = [(31, 32), (31, 33), (32, 31), (32, 32), (33, 32)]
GLIDER = [(29, 31), (30, 32), (31, 30), (31, 31), (31, 32)]

# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "01.1": (
        "a Python number is weak; True is a bool, the smallest type of all.",
        "an integer that meets a float takes the float's dtype; a sum of small "
        "integers is done in 32 bits.",
        "minijax/core/dtypes.py, the promotion lattice.",
    ),
    "01.2": (
        "a call only queues the work; what waits for it?",
        "call f once before the clock starts, and block_until_ready() before it stops.",
        "the cell of this chapter's puzzle that takes the time twice.",
    ),
    "01.3": (
        "entry k needs the sum of the first k + 1 entries: there is a function for "
        "all these sums at once.",
        "jnp.cumsum is all the sums at once; divide by how many went into each.",
        "minijax/numpy: cumsum and arange.",
    ),
    "01.4": (
        "an assignment into an array becomes one .at[...] with all its indices at "
        "once.",
        "start from jnp.zeros and return jnp.zeros(n).at[index].add(1) or .set(...).",
        "minijax/numpy/index/index_update.py, the methods of `.at[...]`.",
    ),
    "01.5": (
        "figures with a mirror image of themselves stay orderly; take a crooked one.",
        "itertools.combinations gives all ways to choose five cells of a square of 3 "
        "by 3: there are 126, and 16 of them do it.",
        "the R-pentomino, in any book on the Game of Life.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "01.1": lambda: (["float16", "float32", "float16", "float32", "int8", "int32"],),
    "01.2": lambda: (stopwatch,),
    "01.3": lambda: (running_mean,),
    "01.4": lambda: (numpy_histogram, histogram),
    "01.5": lambda: (LONG_LIVED,),
}
WRONG = {
    "01.1": [
        lambda: (["float32", "float32", "float16", "float32", "int8", "int32"],),
        lambda: (["float16", "float32", "float16", "float32", "int8", "int8"],),
    ],
    "01.2": [lambda: (stopwatch_without_waiting,), lambda: (stopwatch_with_compiling,)],
    "01.3": [lambda: (running_mean_by_loop,), lambda: (mean_so_far,)],
    "01.4": [
        lambda: (numpy_histogram, histogram_that_forgets),
        lambda: (numpy_histogram, histogram_by_comparing),
    ],
    "01.5": [lambda: (GLIDER,), lambda: (LONG_LIVED + GLIDER,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "01.1": ["h * 2 is not float32", "sum(i) is not int8"],
    "01.2": [
        "stopped before the result was ready",
        "with the first call's compiling in it",
    ],
    "01.3": ["a Python loop was written out", "and should be"],
    "01.4": ["NumPy gives [1. 1. 0. 2. 0.]", "No `.at[...]` leaves a scatter"],
    "01.5": ["After 100 turns 5 cells are alive", "These are 10 cells"],
}
