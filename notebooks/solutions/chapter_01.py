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
    """Wrong: it times the ordering of the work."""
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


# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "01.1": lambda: (["float16", "float32", "float16", "float32", "int8", "int32"],),
    "01.2": lambda: (stopwatch,),
    "01.3": lambda: (running_mean,),
    "01.4": lambda: (numpy_histogram, histogram),
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
}
