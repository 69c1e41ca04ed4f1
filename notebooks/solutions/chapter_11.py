"""Chapter 11: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import checkpoint, checkpoint_policies
from minijax_lab.explain.residuals import residuals

COUNTS = [1, 0, 2, 0, 1]


def sigmoid(x):
    """The slope of softplus, without an overflow on either side."""
    small = jnp.exp(-jnp.abs(x))
    return jnp.where(x >= 0, 1.0, small) / (1.0 + small)


@minijax.custom_jvp
def slope(x):
    return sigmoid(x)


@slope.defjvp
def slope_moves(values, tangents):
    """The slope has a slope, too: for the second derivative."""
    s = slope(*values)
    return s, tangents[0] * s * (1.0 - s)


@minijax.custom_jvp
def softplus(x):
    """The larger of x and 0, and a rest that is never large."""
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def softplus_moves(values, tangents):
    return softplus(*values), tangents[0] * slope(*values)


def with_backward(function, backward):
    """For the wrong answers: a function with a backward rule."""
    made = minijax.custom_vjp(function)
    made.defvjp(lambda x: (function(x), x), backward)
    return made


def overflowing_softplus():
    """Wrong: the derivative is right, and the value still overflows."""
    return with_backward(lambda x: jnp.log1p(jnp.exp(x)), lambda x, c: (c * slope(x),))


def forgetful_softplus():
    """Wrong: the backward pass forgets the cotangent."""
    return with_backward(softplus, lambda x, c: (slope(x),))


def within(f, budget, *args):
    """The first policy that fits, from the one that keeps most."""
    for policy in (
        checkpoint_policies.everything_saveable,
        checkpoint_policies.dots_saveable,
    ):
        made = checkpoint(f, policy=policy)
        if residuals(made, *args).bytes <= budget:
            return made
    return checkpoint(f, policy=checkpoint_policies.nothing_saveable)


def within_by_nothing(f, budget, *args):
    """Wrong: it fits each budget, and computes all again."""
    return checkpoint(f)


def within_by_products(f, budget, *args):
    """Wrong: the products alone may be too much."""
    if residuals(f, *args).bytes <= budget:
        return f
    return checkpoint(f, policy=checkpoint_policies.dots_saveable)


@minijax.custom_jvp
def round_through(x):
    """The value of round, the derivative of x."""
    return jnp.round(x)


@round_through.defjvp
def rounded_moves(values, tangents):
    return round_through(*values), tangents[0]


def round_back_only():
    """Wrong: it has no forward mode."""
    return with_backward(lambda x: jnp.round(x), lambda x, c: (c,))


def round_to_one():
    """Wrong: its cotangent is 1, whatever comes."""
    return with_backward(lambda x: jnp.round(x), lambda x, c: (jnp.ones_like(c),))


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "11.1": (
        "sin keeps cos x; a product with a number keeps nothing.",
        "a checkpoint keeps its own argument. In e, whose result is the second one's?",
        "see.grad(f, x) of each.",
    ),
    "11.2": (
        "softplus(x) is max(x, 0) plus something that never overflows.",
        "the slope is 1 / (1 + exp(-x)); write it with exp(-abs(x)), and give it a "
        "rule as well.",
        "`own_sinc` in this chapter.",
    ),
    "11.3": (
        "go through the policies, from the one that keeps most.",
        "return the first checkpoint(f, policy=policy) whose residuals fit.",
        "minijax/programs/saving_policies.py.",
    ),
    "11.4": (
        "which of the two decorators gives both jvp and grad?",
        "the tangent goes through as it came.",
        "`own_sinc` in this chapter.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "11.1": lambda: (COUNTS,),
    "11.2": lambda: (softplus,),
    "11.3": lambda: (within,),
    "11.4": lambda: (round_through,),
}
WRONG = {
    "11.1": [lambda: ([1, 1, 2, 0, 1],), lambda: ([1, 0, 2, 0],)],
    "11.2": [lambda: (overflowing_softplus(),), lambda: (forgetful_softplus(),)],
    "11.3": [lambda: (within_by_nothing,), lambda: (within_by_products,)],
    "11.4": [lambda: (round_back_only(),), lambda: (round_to_one(),)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "11.1": ["look again at b", "list of 5 numbers"],
    "11.2": ["softplus(100.0) is inf", "The gradient of 3 * softplus"],
    "11.3": ["would do", "it keeps"],
    "11.4": ["TypeError", "The gradient of sum(round_through(3 x)**2)"],
}
