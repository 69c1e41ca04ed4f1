"""Chapter 07: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import jvp, vmap


def back(steps):
    """Adds what comes to a value, and takes nothing from what the result never saw."""
    slope = {"out": 1.0}
    for result, operand, factor in reversed(steps):
        slope[operand] = slope.get(operand, 0.0) + factor * slope.get(result, 0.0)
    return slope["x"]


def back_that_overwrites(steps):
    """Wrong: the last cotangent takes the place of those before."""
    slope = {"out": 1.0}
    for result, operand, factor in reversed(steps):
        slope[operand] = factor * slope.get(result, 0.0)
    return slope["x"]


def back_of_all(steps):
    """Wrong: it adds, and asks for the cotangent of a value that is never used."""
    slope = {"out": 1.0}
    for result, operand, factor in reversed(steps):
        slope[operand] = slope.get(operand, 0.0) + factor * slope[result]
    return slope["x"]


def safe_roots(x):
    """The root is only ever asked for positive numbers."""
    positive = x > 0
    inside = jnp.where(positive, x, 1.0)
    return jnp.sum(jnp.where(positive, jnp.sqrt(inside), 0.0))


def roots_with_where(x):
    """Wrong: as in the chapter."""
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))


def roots_of_absolute_values(x):
    """Wrong: what is not positive counts, too."""
    return jnp.sum(jnp.sqrt(jnp.abs(x)))


def rows(f, x):
    """One vjp; its way back for each unit cotangent."""
    value, pull = minijax.vjp(f, x)
    return vmap(lambda c: pull(c)[0])(jnp.eye(len(value)))


def rows_as_columns(f, x):
    """Wrong: each row stands in a column."""
    value, pull = minijax.vjp(f, x)
    return vmap(lambda c: pull(c)[0], out_axes=1)(jnp.eye(len(value)))


def rows_by_forward_mode(f, x):
    """Wrong: the numbers are right, and a direction for each entry goes along."""
    return vmap(lambda t: jvp(f, (x,), (t,))[1], out_axes=-1)(jnp.eye(len(x)))


def scaled_back(c):
    """The transpose of a factor is the factor."""
    return 3.0 * c


def summed_back(c):
    """Each of the four entries was added once."""
    return jnp.full(4, c)


def product_back(W, c):
    """The transpose of a matrix."""
    return W.T @ c


def inverse(c):
    """Wrong: it undoes the product, where the transpose multiplies again."""
    return c / 3.0


def mean(c):
    """Wrong: it shares c out among the four."""
    return jnp.full(4, c / 4.0)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "07.1": (
        "what is the change of x multiplied by, in the linear program?",
        "constants of Python's stand in the program; exp is its own slope.",
        "make_jaxpr(linearize(f, x)[1])(x): what stands before the semicolon.",
    ),
    "07.2": (
        "what happens to the cotangent that was there before?",
        "slope.get(name, 0.0) is the cotangent of a value that has none yet.",
        "`add` in `backward` of tiny/transposes.py.",
    ),
    "07.3": (
        "the cotangent of the root is 0 already; its slope must not be infinite.",
        "two where: one gives the root something harmless, one throws it away.",
        '"Zero times infinity" in this chapter.',
    ),
    "07.4": (
        "vjp runs f once, and its second result goes back, as often as you like.",
        "vmap the way back over jnp.eye(len(value)).",
        "`slopes_one_by_one` in chapter 06, with the roles exchanged.",
    ),
    "07.5": (
        "write each as a matrix: the way back multiplies with its transpose.",
        "a sum adds four entries; its transpose hands c to each of the four.",
        "`see.grad(lambda x: jnp.sum(W @ x), x)`, and the rules below.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "07.1": lambda: ([0, 1, 1, 3],),
    "07.2": lambda: (back,),
    "07.3": lambda: (safe_roots,),
    "07.4": lambda: (rows,),
    "07.5": lambda: (scaled_back, summed_back, product_back),
}
WRONG = {
    "07.1": [lambda: ([1, 1, 1, 3],), lambda: ([0, 1, 1, 2],)],
    "07.2": [lambda: (back_that_overwrites,), lambda: (back_of_all,)],
    "07.3": [lambda: (roots_with_where,), lambda: (roots_of_absolute_values,)],
    "07.4": [lambda: (rows_as_columns,), lambda: (rows_by_forward_mode,)],
    "07.5": [
        lambda: (inverse, summed_back, product_back),
        lambda: (scaled_back, mean, product_back),
    ],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "07.1": ["a does not need 1", "d does not need 2"],
    "07.2": ["A value used twice", "there is no cotangent of 'z'"],
    "07.3": ["The gradient should be", "should be 2.5 and is 3.5"],
    "07.4": ["The Jacobian of W @ x should be", "an array has 1,000,000 numbers"],
    "07.5": ["a, for c = [", "b, for c = ["],
}
