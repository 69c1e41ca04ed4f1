"""Chapter 12: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import make_jaxpr

KINDS = "bool none integer type array type concrete mask none type".split()


def normalize(x):
    """Divides by 1 where the norm is zero; the square root never sees a zero."""
    square = jnp.sum(x * x)
    positive = square > 0
    norm = jnp.sqrt(jnp.where(positive, square, 1.0))
    return jnp.where(positive, x / norm, 0.0 * x)


def normalize_outside(x):
    """Wrong: the value is right, and the gradient at zero still is a NaN."""
    norm = jnp.sqrt(jnp.sum(x * x))
    return jnp.where(norm > 0, x / norm, 0.0)


def normalize_with_epsilon(x):
    """Wrong: near zero the result is too short."""
    return x / (jnp.sqrt(jnp.sum(x * x) + 1e-6))


def first_nan(f, *args):
    """Computes the equations one after another and looks at each result."""
    closed = make_jaxpr(f)(*args)
    values = dict(zip(closed.jaxpr.invars, args))
    values.update(zip(closed.jaxpr.constvars, closed.consts))
    for eqn in closed.jaxpr.eqns:
        operands = [a.val if hasattr(a, "val") else values[a] for a in eqn.invars]
        result = eqn.primitive.bind(*operands, **eqn.params)
        results = result if eqn.primitive.multiple_results else [result]
        if any(bool(jnp.isnan(r).any()) for r in results):
            return eqn.primitive.name
        values.update(zip(eqn.outvars, results))
    return None


def last_primitive(f, *args):
    """Wrong: names the last equation, if the result is a NaN."""
    closed = make_jaxpr(f)(*args)
    return closed.jaxpr.eqns[-1].primitive.name if jnp.isnan(f(*args)) else None


def first_infinity(f, *args):
    """Wrong: stops at an infinity, which is not a NaN yet."""
    closed = make_jaxpr(f)(*args)
    values = dict(zip(closed.jaxpr.invars, args))
    for eqn in closed.jaxpr.eqns:
        operands = [a.val if hasattr(a, "val") else values[a] for a in eqn.invars]
        result = eqn.primitive.bind(*operands, **eqn.params)
        if not bool(jnp.isfinite(result).all()):
            return eqn.primitive.name
        values[eqn.outvars[0]] = result
    return None


FAULTS = {2: "sub", 6: "max", 7: "broadcast_in_dim", 9: "select_n", 20: "reduce_max"}

# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "12.1": (
        "ask of each function: does Python need a number here, or only a shape?",
        "run them; then read the first line of each message.",
        'the section "Four mistakes" of this chapter.',
    ),
    "12.2": (
        "where does the NaN come from: which operation has an infinite slope at 0?",
        "give sqrt a 1 where the sum of squares is 0, and choose afterwards.",
        "`safer_sqrt` in this chapter.",
    ),
    "12.3": (
        "keep a dict from variables to values; literals have `.val`.",
        "after each equation ask jnp.isnan of its result.",
        "minijax/core/language.py, `eval_jaxpr`: it is the same walk.",
    ),
    "12.4": (
        "read the symptom, and write the smallest function that has it.",
        "check_grads with modes=['fwd'] and ['rev'] tells a wrong forward rule from a "
        "wrong transpose; the jaxpr of the wrong gradient says which equation differs.",
        "widgets/minijax_lab/sabotage.py, when you are done.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "12.1": lambda: (KINDS,),
    "12.2": lambda: (normalize,),
    "12.3": lambda: (first_nan,),
    "12.4": lambda: (FAULTS,),
}
WRONG = {
    "12.1": [lambda: (["bool"] * 10,), lambda: (["none"],)],
    "12.2": [lambda: (normalize_outside,), lambda: (normalize_with_epsilon,)],
    "12.3": [lambda: (last_primitive,), lambda: (first_infinity,)],
    "12.4": [lambda: ({2: "sub"},), lambda: ({**FAULTS, 9: "select_and_gather_add"},)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "12.1": ["look again at b", "list of 10 words"],
    "12.2": ["Its gradient at zero is", "Near zero it is no longer of length 1"],
    "12.3": ["It says 'mul', not 'log'", "It says 'log', not 'mul'"],
    "12.4": ["Fault 6 is not in your dict", "look again at fault 9"],
}
