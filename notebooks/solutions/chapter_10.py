"""Chapter 10: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import grad, lax, value_and_grad


def total(xs):
    """The carry begins as what it becomes: a float."""
    return lax.scan(lambda sum, x: (sum + jnp.sqrt(x), None), jnp.float32(0), xs)[0]


def fibonacci(n):
    """A tuple goes in, a tuple comes out."""

    def step(pair, _):
        a, b = pair
        return (b, a + b), a

    return lax.scan(step, (0, 1), None, length=n)[1]


def orbit(x, n):
    """The carry is one number; scan stacks what each step shows."""
    return lax.scan(lambda x, _: (2.5 * x * (1.0 - x), x), x, None, length=n)[1]


def orbit_by_python(x, n):
    """Wrong: no carry to go wrong, and an equation for each operation."""
    values = []
    for _ in range(n):
        values.append(x)
        x = 2.5 * x * (1.0 - x)
    return jnp.stack(values)


def fibonacci_too_late(n):
    """Wrong: shows the second number of each pair."""
    return lax.scan(lambda p, _: ((p[1], p[0] + p[1]), p[1]), (0, 1), None, n)[1]


def bounded_while(cond_fun, body_fun, init, steps):
    """A scan in which each step may do nothing."""

    def step(value, _):
        return lax.cond(cond_fun(value), body_fun, lambda v: v, value), None

    return lax.scan(step, init, None, length=steps)[0]


def still_a_while(cond_fun, body_fun, init, steps):
    """Wrong: counts the steps, and cannot go back."""

    def goes_on(state):
        value, count = state
        return cond_fun(value) & (count < steps)

    return lax.while_loop(
        goes_on, lambda state: (body_fun(state[0]), state[1] + 1), (init, 0)
    )[0]


def bounded_with_where(cond_fun, body_fun, init, steps):
    """Wrong: the body runs after the end, too, and its slope is nan."""

    def step(pair, _):
        goes_on = cond_fun(pair)
        new = body_fun(pair)
        return tuple(jnp.where(goes_on, n, o) for n, o in zip(new, pair)), None

    return lax.scan(step, init, None, length=steps)[0]


def train(loss, w, xs, ys):
    """The weights are the carry, the rows come in, the losses go out."""

    def step(w, row):
        value, slope = value_and_grad(loss)(w, *row)
        return w - 0.1 * slope, value

    return lax.scan(step, w, (xs, ys))


def train_by_python(loss, w, xs, ys):
    """Wrong: the loss is traced for each row."""
    losses = []
    for x, y in zip(xs, ys):
        value, slope = value_and_grad(loss)(w, x, y)
        w = w - 0.1 * slope
        losses.append(value)
    return w, jnp.stack(losses)


def train_and_look_later(loss, w, xs, ys):
    """Wrong: shows the loss after the step."""

    def step(w, row):
        w = w - 0.1 * grad(loss)(w, *row)
        return w, loss(w, *row)

    return lax.scan(step, w, (xs, ys))


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "10.1": (
        "how many operations does one round have, and how often does Python go round?",
        "x * x, minus 2, times 0.1, x minus that: four a round.",
        "the view of the live cell above: move its slider.",
    ),
    "10.2": (
        "read the error: each shows what the carry was and what it became.",
        "total: begin with a float. fibonacci: brackets of one kind. orbit: let the "
        "step return what is to be collected as the second of its pair.",
        "minijax/programs/control_flow/scans.py, the docstring of `scan`.",
    ),
    "10.3": (
        "a scan makes a number of rounds that is known; what does a round do when the "
        "loop is over?",
        "`lax.cond(cond_fun(value), body_fun, lambda v: v, value)` is one round.",
        "the table of derivatives in this chapter; `where` computes both sides, and "
        "the slope of the one that is not wanted may be nan.",
    ),
    "10.4": (
        "what changes from row to row, what comes in with each row, and what goes out?",
        "the carry is w, the rows are the tuple (xs, ys), the outputs are the losses.",
        "`value_and_grad` in chapter 00: the loss and its slope from one trace.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "10.1": lambda: ([400, 1, 5, 0],),
    "10.2": lambda: (total, fibonacci, orbit),
    "10.3": lambda: (bounded_while,),
    "10.4": lambda: (train,),
}
WRONG = {
    "10.1": [lambda: ([100, 1, 5, 0],), lambda: ([400, 1, 401, 0],)],
    "10.2": [
        lambda: (total, fibonacci, orbit_by_python),
        lambda: (total, fibonacci_too_late, orbit),
    ],
    "10.3": [lambda: (still_a_while,), lambda: (bounded_with_where,)],
    "10.4": [lambda: (train_by_python,), lambda: (train_and_look_later,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "10.1": ["equations of with_for: it is not 100", "those of the step: it is not"],
    "10.2": ["orbit has 0 scans for 4 rounds", "fibonacci gives [1 1 2 3]"],
    "10.3": ["grad of it raised ValueError", "The slope at 5 is nan"],
    "10.4": ["Python ran the loss 20 times", "The losses begin with"],
}
