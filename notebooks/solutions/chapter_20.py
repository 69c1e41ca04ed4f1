"""Chapter 20: a solution of each exercise, and two answers that must fail."""

from functools import partial

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, custom_vjp, lax, pure_callback
from minijax.experimental import io_callback

COUNTS = [1, 3, 4, 1, 5, 1]


def ranks(host, x):
    """The ranks are integers, and `host` takes leading axes as they come."""
    kind = ShapeDtypeStruct(x.shape, jnp.int32)
    return pure_callback(
        lambda x: host(x).astype("int32"), kind, x, vmap_method="expand_dims"
    )


def ranks_one_by_one(host, x):
    """Wrong: it calls Python for each example."""
    kind = ShapeDtypeStruct(x.shape, jnp.int32)
    return pure_callback(
        lambda x: host(x).astype("int32"), kind, x, vmap_method="sequential"
    )


def ranks_as_floats(host, x):
    """Wrong: it says float32."""
    kind = ShapeDtypeStruct(x.shape, jnp.float32)
    return pure_callback(
        lambda x: host(x).astype("float32"), kind, x, vmap_method="expand_dims"
    )


def halving(save, x):
    """Four steps, each reported by a callback that keeps its place."""

    def step(x, number):
        x = x / 2
        io_callback(save, None, number, x, ordered=True)
        return x, None

    return lax.scan(step, x, jnp.arange(4))[0]


def halving_without_order(save, x):
    """Wrong: nothing keeps the callbacks in their order."""

    def step(x, number):
        x = x / 2
        io_callback(save, None, number, x)
        return x, None

    return lax.scan(step, x, jnp.arange(4))[0]


def halving_while_tracing(save, x):
    """Wrong: Python's `save` meets a tracer."""
    for number in range(4):
        x = x / 2
        save(number, x)
    return x


def differentiable(forward, backward):
    """A custom rule around two opaque functions."""

    @partial(custom_vjp, nondiff_argnums=(1,))
    def norm(x, eps):
        return forward(x, eps=eps)

    def keep(x, eps):
        return forward(x, eps=eps), x

    def pull(eps, x, dy):
        return (backward(x, dy, eps=eps),)

    norm.defvjp(keep, pull)
    return norm


def not_differentiable(forward, backward):
    """Wrong: no rule."""
    return lambda x, eps: forward(x, eps=eps)


def straight_through(forward, backward):
    """Wrong: the gradient goes through as if nothing were computed."""

    @partial(custom_vjp, nondiff_argnums=(1,))
    def norm(x, eps):
        return forward(x, eps=eps)

    norm.defvjp(lambda x, eps: (forward(x, eps=eps), None), lambda eps, _, dy: (dy,))
    return norm


def guess_by(answer):
    """A game that halves what is left, by `answer(ask, number)`."""

    def guess(ask):
        def halve(state):
            low, high = state
            middle = (low + high) // 2
            larger = answer(ask, middle)
            return jnp.where(larger, middle + 1, low), jnp.where(larger, high, middle)

        all_of_them = jnp.int32(1), jnp.int32(1000)
        return lax.while_loop(lambda state: state[0] < state[1], halve, all_of_them)[0]

    return guess


def asked(ask, number):
    """One question to Python."""
    return io_callback(ask, ShapeDtypeStruct((), jnp.bool_), number)


def until_two_agree(ask, number):
    """Two answers that agree are true, since there is one lie at most."""
    first, second = asked(ask, number), asked(ask, number)
    third = lambda: asked(ask, number)  # noqa: E731
    return lax.cond(first == second, lambda: first, third)


def once(ask, number):
    """Wrong: it believes the first answer."""
    return asked(ask, number)


def best_of_three(ask, number):
    """Wrong: three questions each time are 30."""
    answers = [asked(ask, number) for _ in range(3)]
    return sum(answer.astype(jnp.int32) for answer in answers) >= 2


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "20.1": (
        "what Python prints it prints while tracing; how often is it traced?",
        "a callback runs each time its equation runs: in each turn, for each example.",
        "the puzzle of this chapter, and `vmap` of a callback.",
    ),
    "20.2": (
        "the ranks are integers: who says what the callback returns?",
        "`host` takes the last axis, so it can take a batch axis in front.",
        "`vmap_method` in this chapter.",
    ),
    "20.3": (
        "which of the callbacks may have an effect, and keeps its order?",
        "`lax.scan` over `jnp.arange(4)`; the callback stands in its body.",
        "`io_callback` in this chapter.",
    ),
    "20.4": (
        "the rule of chapter 11 says what to do with a cotangent.",
        "keep x as the residual; `eps` is no array: `nondiff_argnums=(1,)`.",
        "`norm` in this chapter, which does it for the C++ handlers.",
    ),
    "20.5": (
        "if the same question gets the same answer twice, both are true.",
        "where two answers differ, one was the lie: ask a third time, by `lax.cond`, "
        "and believe it.",
        "`guess` at the beginning of this chapter: only `larger` changes.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "20.1": lambda: (COUNTS,),
    "20.2": lambda: (ranks,),
    "20.3": lambda: (halving,),
    "20.4": lambda: (differentiable,),
    "20.5": lambda: (guess_by(until_two_agree),),
}
WRONG = {
    "20.1": [lambda: ([1, 3, 4, 4, 5, 1],), lambda: ([1, 3, 4],)],
    "20.2": [lambda: (ranks_one_by_one,), lambda: (ranks_as_floats,)],
    "20.3": [lambda: (halving_without_order,), lambda: (halving_while_tracing,)],
    "20.4": [lambda: (not_differentiable,), lambda: (straight_through,)],
    "20.5": [lambda: (guess_by(once),), lambda: (guess_by(best_of_three),)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "20.1": ["look again at d", "list of 6 numbers"],
    "20.2": ["Python was called 4 times", "not int32[6]"],
    "20.3": ["nothing in the jaxpr is ordered", "ConcretizationTypeError"],
    "20.4": ["It raised ValueError", "The gradient is another"],
    "20.5": ["answer 1 was a lie, and it says 501", "it asked 30 times"],
}
