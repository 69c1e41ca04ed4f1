"""What `see.jaxpr` claims, and each claim held against jax's own jaxpr.

It claims, in its headline and rows:
1. how many equations the program has;
2. how many with those of inner programs, each program counted once;
3. which intermediate is used most, and by how many equations;
4. the types of the inputs, and their names where they come from a tree;
5. the text of the program, word for word.
The counts here are made from jax's objects alone.
"""

import re

import jax
import jax.extend
import numpy as np
import pytest

import minijax
import minijax_widgets as see

X = np.linspace(0.1, 0.9, 4, dtype=np.float32)
M = np.ones((4, 4), np.float32)


def chain(lib):
    return lambda x: lib.numpy.sin(lib.numpy.cos(x)) * 2.0, (X,)


def reused(lib):
    def f(x):
        y = lib.numpy.exp(x)
        return y * y + y / (1.0 + y)

    return f, (X,)


def gradient(lib):
    return lib.grad(lambda x: lib.numpy.sum(lib.numpy.tanh(x) * x)), (X,)


def batched(lib):
    return lib.vmap(lambda a, b: a * b, in_axes=(None, 0)), (X, M)


def batched_gradient(lib):
    loss = lib.grad(lambda w, x: lib.numpy.sum(lib.numpy.sin(w * x)))
    return lib.vmap(loss, in_axes=(None, 0)), (X, M)


def loop(lib):
    def f(x):
        step = lambda c, a: (c * 0.5 + a, c)  # noqa: E731
        return lib.lax.scan(step, np.float32(0), x)

    return f, (X,)


def branch(lib):
    def f(x):
        return lib.lax.cond(x[0] > 0, lib.numpy.sin, lib.numpy.cos, x)

    return f, (X,)


def until(lib):
    def f(x):
        return lib.lax.while_loop(lambda v: v < 9.0, lambda v: v * 2.0 + v, x)

    return f, (np.float32(1),)


def jitted(lib):
    inner = lib.jit(lambda x: lib.numpy.log(x) + 1.0)
    return lambda x: inner(x) * inner(x), (X,)


def layers(lib):
    def f(params, x):
        for layer in params:
            x = lib.numpy.tanh(x @ layer["w"] + layer["b"])
        return x

    return f, ([{"w": M, "b": X}] * 3, X)


def layers_gradient(lib):
    f, args = layers(lib)
    return lib.grad(lambda params, x: lib.numpy.sum(f(params, x))), args


def checkpointed(lib):
    f = lib.checkpoint(lambda x: lib.numpy.sin(lib.numpy.sin(x)))
    return lib.grad(lambda x: lib.numpy.sum(f(x))), (X,)


def nothing(lib):
    return lambda x: x, (X,)


MADE = [chain, reused, gradient, batched, batched_gradient, loop, branch, until, jitted]
MADE += [layers, layers_gradient, checkpointed, nothing]


def programs_in(value):
    if isinstance(value, jax.extend.core.ClosedJaxpr):
        return [value.jaxpr]
    if isinstance(value, jax.extend.core.Jaxpr):
        return [value]
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in programs_in(part)]
    return []


def every_equation(jaxpr, seen):
    """The equations of a program and of those in it, each program once."""
    if id(jaxpr) in seen:
        return []
    seen[id(jaxpr)] = jaxpr
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn)
        for name in sorted(eqn.params):
            for inner in programs_in(eqn.params[name]):
                found += every_equation(inner, seen)
    return found


@pytest.mark.parametrize("made", MADE, ids=lambda f: f.__name__)
def test_claims(made):
    function, args = made(minijax)
    record = see.jaxpr(function, *args).recording
    theirs, same = made(jax)
    closed = jax.make_jaxpr(theirs)(*same)
    outer, total = len(closed.eqns), len(every_equation(closed.jaxpr, {}))
    headline = record.headline.replace(",", "")
    # 1 and 2
    assert int(re.search(r"(\d+) equations?\b", headline).group(1)) == outer
    inner = re.search(r"(\d+) with those of inner", headline)
    assert (int(inner.group(1)) if inner else outer) == total == len(record.equations)
    # 3
    uses: dict = {}
    made_here = set()
    for eqn in every_equation(closed.jaxpr, {}):
        made_here |= {id(v) for v in eqn.outvars}
        for var in {id(v) for v in eqn.invars if isinstance(v, jax.extend.core.Var)}:
            uses[var] = uses.get(var, 0) + 1
    counts = [count for var, count in uses.items() if var in made_here and count > 1]
    several = [v for v in record.variables if v.role == "value" and len(v.uses) > 1]
    assert sorted(len(v.uses) for v in several) == sorted(counts)
    most = re.search(r"(\d+) times$|(twice)$", headline)
    if counts:
        assert int(most.group(1) or 2) == max(counts)
    elif outer:
        assert "no intermediate is used twice" in headline
    # 4
    names = closed.jaxpr.debug_info.arg_names
    labels = [v.label for v in record.variables if v.label]
    assert labels == list(names)
    assert record.inputs == [v.str_short(short_dtypes=True) for v in closed.in_avals]
    # 5
    text = re.sub(r"np\.\w+\((\d+)\)", r"\1", str(closed))  # a number's repr in jax
    assert record.text.split() == text.split()
