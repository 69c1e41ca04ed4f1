"""Chapter 15: a solution of each exercise, and answers that must fail."""

from typing import NamedTuple

import minijax.numpy as jnp
from minijax import make_jaxpr, tree

PLACES = "weights state neither state neither weights neither state".split()


def only_kernels(path):
    """The last name of the path is the weight's own."""
    return path.split("/")[-1] == "kernel"


def anything_named_kernel(path):
    """Wrong: a module may be named so, too."""
    return "kernel" in path


def no_bias(path):
    """Wrong: scales and embeddings decay as well."""
    return not path.endswith("bias")


class Both(NamedTuple):
    """The two functions of a transform."""

    init: object
    update: object


def lion(rate, b1=0.9, b2=0.99):
    """Updates by the sign of a mean; the state is that mean."""

    def init(params):
        return tree.map(jnp.zeros_like, params)

    def update(grads, mean, params=None):
        def toward(g, m):
            return -rate * jnp.sign(b1 * m + (1 - b1) * g)

        after = tree.map(lambda g, m: b2 * m + (1 - b2) * g, grads, mean)
        return tree.map(toward, grads, mean), after

    return Both(init, update)


def lion_with_one_mean(rate, b=0.9):
    """Wrong: the mean is updated first, and its sign is taken."""

    def update(grads, mean, params=None):
        mean = tree.map(lambda g, m: b * m + (1 - b) * g, grads, mean)
        return tree.map(lambda m: -rate * jnp.sign(m), mean), mean

    return Both(lion(rate).init, update)


def lion_uphill(rate):
    """Wrong: the sign of the update."""
    made = lion(-rate)
    return Both(made.init, made.update)


def lion_with_memory(rate):
    """Wrong: the state is in Python, where tracing does not see it."""
    kept = []

    def update(grads, state, params=None):
        if not kept:
            kept.append(tree.map(jnp.zeros_like, grads))
        updates, kept[0] = lion(rate).update(grads, kept[0])
        return updates, state

    return Both(lambda params: (), update)


def same_program(f, g, *args):
    """The printed programs are equal; names of variables are given in order."""
    return str(make_jaxpr(f)(*args)) == str(make_jaxpr(g)(*args))


def same_values(f, g, *args):
    """Wrong: other programs give these numbers, too."""
    return bool(jnp.allclose(f(*args), g(*args)))


def same_primitives(f, g, *args):
    """Wrong: the operands and the parameters are not looked at."""
    return [e.primitive for e in make_jaxpr(f)(*args).jaxpr.eqns] == [
        e.primitive for e in make_jaxpr(g)(*args).jaxpr.eqns
    ]


def same_set(f, g, *args):
    """Wrong: the lines of the text, in any order and number."""
    texts = [set(str(make_jaxpr(h)(*args)).split()) for h in (f, g)]
    return texts[0] == texts[1]


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "15.1": (
        "what does `init` of the module return, and what `init` of the optimizer?",
        "what never changes while the network learns is in neither of them.",
        "the question in this chapter how many arrays are in Adam's state.",
    ),
    "15.2": (
        "a path names modules, and at its end the weight.",
        "`path.split('/')`",
        "the names of weights that this chapter prints.",
    ),
    "15.3": (
        "the shape of `scale_by_adam`: `init` makes the mean, `update` returns a new "
        "one.",
        "two different mixtures of the mean and the gradient: one for the update, the "
        "other for the next state.",
        "`scale_by_adam` and `Transform` in `tiny/optimizers.py`.",
    ),
    "15.4": (
        "what does `make_jaxpr` print? Variables get their names in order.",
        "compare the whole texts: operands, parameters and inner programs are in them.",
        "the comparison with Flax in this chapter.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "15.1": lambda: (PLACES,),
    "15.2": lambda: (only_kernels,),
    "15.3": lambda: (lion,),
    "15.4": lambda: (same_program,),
}
WRONG = {
    "15.1": [
        lambda: ("weights state state state neither weights neither state".split(),),
        lambda: ("weights state neither state neither weights weights state".split(),),
        lambda: (
            "weights state neither neither neither weights neither state".split(),
        ),
        lambda: (["weights"],),
    ],
    "15.2": [
        lambda: (anything_named_kernel,),
        lambda: (no_bias,),
        lambda: (lambda path: path.startswith("Dense"),),
        lambda: (lambda path: True,),
    ],
    "15.3": [
        lambda: (lion_with_one_mean,),
        lambda: (lion_uphill,),
        lambda: (lion_with_memory,),
        lambda: (lambda rate: lion(rate, 0.99, 0.9),),
    ],
    "15.4": [
        lambda: (same_values,),
        lambda: (same_primitives,),
        lambda: (same_set,),
        lambda: (lambda f, g, *args: True,),
    ],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "15.1": ["look again at c", "look again at g", "look again at d", "list of 8"],
    "15.2": [
        "kernels_0/bias does not decay",
        "Norm_1/scale does not decay",
        "Block_1/Attention_0/Dense_2/kernel decays",
        "Dense_0/bias does not decay",
    ],
    "15.3": [
        "lion(0.5), update",
        "update 1 of a",
        "update 4 of a",
        "lion(0.5), update",
    ],
    "15.4": ["ran on numbers", "x * w and w * x", "Of ", "x * w and w * x"],
}
