"""Chapter 13: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import jit, lax

COUNTS = [1, 2, 1, 3]


def by_largest(x):
    """A maximum is a reduction, which XLA knows; a sort is opaque."""
    return x / jnp.max(x, axis=-1, keepdims=True)


def by_largest_of_order(x):
    """Wrong: it finds the largest entry by another sort."""
    last = jnp.argsort(x, axis=-1)[:, -1:]
    return x / jnp.take_along_axis(x, last, axis=-1)


def by_largest_of_all(x):
    """Wrong: the largest entry of all rows."""
    return x / jnp.max(x)


def layer_norm(x):
    """No mean waits for the other; the squares are of what is left beside one entry."""
    first = x[:, :1]
    mean = jnp.mean(x, axis=-1, keepdims=True)
    squares = jnp.mean((x - first) ** 2, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(squares - (mean - first) ** 2 + 1e-5)


def layer_norm_of_squares(x):
    """Wrong: the difference of two large numbers, where the mean is large."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    squares = jnp.mean(x * x, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(squares - mean * mean + 1e-5)


def layer_norm_in_a_book(x):
    """Wrong: the variance waits for the mean, so x is read once more."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5)


def layer_norm_without_root(x):
    """Wrong: it forgets the mean in the variance."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


@jit
def prepare(images):
    """One program: the 32-bit numbers never lie in memory."""
    x = images[:, ::-1].astype(jnp.float32)
    return (x / 127.5 - 1.0).astype(jnp.bfloat16)


def prepare_with_a_stop(images):
    """Wrong: a running sum, which is opaque, and its differences."""
    x = jnp.cumsum(images[:, ::-1].astype(jnp.float32), axis=0)
    x = jnp.concatenate([x[:1], x[1:] - x[:-1]])
    return (x / 127.5 - 1.0).astype(jnp.bfloat16)


def prepare_wide(images):
    """Wrong: it stays with 32 bits."""
    return minijax.numpy.asarray(images[:, ::-1], jnp.float32) / 127.5 - 1.0


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "13.1": (
        "an equation joins a kernel if it computes entry by entry, in the same shape.",
        "a sum is a kernel of its own, and what uses it comes after it.",
        "kernels_of(trace(a, rows)).",
    ),
    "13.2": (
        "what does XLA not look into?",
        "you need the largest entry only, not the order of the others.",
        "jnp.max(x, axis=-1, keepdims=True).",
    ),
    "13.3": (
        "the variance waits for the mean, so x is read for each of them.",
        "the variance is the mean of the squares minus the square of the mean; and it "
        "does not change if something near the mean is taken from all entries first.",
        "`see.fusion(layer_norm, X)` of both; any entry of a row is near its mean.",
    ),
    "13.4": (
        "how many programs are there?",
        "one `jit` around all steps, and no waiting inside.",
        "`in_steps` in this chapter.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "13.1": lambda: (COUNTS,),
    "13.2": lambda: (by_largest,),
    "13.3": lambda: (layer_norm,),
    "13.4": lambda: (prepare,),
}
WRONG = {
    "13.1": [lambda: ([1, 2, 2, 3],), lambda: ([1, 2, 1],)],
    "13.2": [lambda: (by_largest_of_order,), lambda: (by_largest_of_all,)],
    "13.3": [
        lambda: (layer_norm_in_a_book,),
        lambda: (layer_norm_without_root,),
        lambda: (layer_norm_of_squares,),
    ],
    "13.4": [
        lambda: (prepare_with_a_stop,),
        lambda: (prepare_wide,),
        lambda: (prepare.__wrapped__,),
    ],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "13.1": ["look again at c", "list of 4 numbers"],
    "13.2": ["It moves", "The values are others"],
    "13.3": ["It moves", "The values are others", "for rows around 1,000"],
    "13.4": ["It moves", "dtype float32", "compiled programs; one `jit`"],
}
