"""Random transformations around a callback: the same calls, values and text as JAX's.

`MINIJAX_RANDOM_CALLBACKS=300` runs as many programs; the default is small.
"""

import os
import random
import re

import numpy as np
import pytest

import minijax
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.programs.sides import LIBRARIES

X = np.array([0.5, -1.0, 2.0], np.float32)
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]\d+)?|nan|inf")
COUNT = int(os.environ.get("MINIJAX_RANDOM_CALLBACKS", "16"))


def a_print(lib, rng):
    ordered = rng.random() < 0.7

    def f(x):
        lib.debug.print("seen {}", x * 2.0, ordered=ordered)
        return lib.numpy.sin(x) * x

    return f


def a_callback(lib, rng):
    ordered = rng.random() < 0.7

    def f(x):
        lib.debug.callback(lambda v: print("seen", v), x, ordered=ordered)
        return lib.numpy.sin(x) * x

    return f


def a_pure_callback(lib, rng):
    method = rng.choice(["sequential", "expand_dims", "broadcast_all"])

    @lib.custom_jvp
    def sine(x):
        kind = lib.ShapeDtypeStruct(x.shape, x.dtype)
        return lib.pure_callback(
            lambda v: np.sin(np.asarray(v)), kind, x, vmap_method=method
        )

    sine.defjvp(lambda primals, tangents: (sine(*primals), tangents[0] * 2.0))
    return lambda x: sine(x) * x


def an_io_callback(lib, rng):
    ordered = rng.random() < 0.5

    def f(x):
        lib.experimental.io_callback(
            lambda v: print("seen", np.asarray(v).sum()),
            None,
            lib.lax.stop_gradient(x),
            ordered=ordered,
        )
        return lib.numpy.sin(x) * x

    return f


def in_scan(lib, rng, f):
    options = dict(unroll=rng.randint(1, 3), reverse=rng.random() < 0.5)
    step = lambda carry, row: (f(carry) * 0.5, carry * row)
    return lambda x: lib.lax.scan(step, x, lib.numpy.asarray(X), **options)[0]


def in_while(lib, rng, f):
    def run(x):
        fixed = lib.lax.stop_gradient(x)
        body = lambda state: (state[0] + 1, f(state[1]))
        out = lib.lax.while_loop(lambda state: state[0] < 2, body, (0, fixed))
        return lib.lax.stop_gradient(out[1]) + x

    return run


def in_switch(lib, rng, f):
    branches = [f, lambda x: f(x) + 1.0]
    return lambda x: lib.lax.switch(lib.numpy.int32(x.sum() > 0), branches, x)


def in_custom_vjp(lib, rng, f):
    g = lib.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
    return g


def in_vmap(lib, rng, f):
    return lambda x: lib.vmap(f)(lib.numpy.stack([x, x + 1.0])).sum(0)


def in_fori(lib, rng, f):
    return lambda x: lib.lax.fori_loop(0, 2, lambda i, v: f(v) * 0.7, x)


def in_checkpoint(lib, rng, f):
    policies = lib.checkpoint_policies
    return lib.checkpoint(f, policy=rng.choice([None, policies.everything_saveable]))


CALLS = [a_print, a_callback, a_pure_callback, an_io_callback]
LOOPS = [in_scan, in_fori]
WRAPPERS = [
    in_while,
    in_switch,
    in_custom_vjp,
    in_vmap,
    in_checkpoint,
    lambda lib, rng, f: lib.jit(f),
    lambda lib, rng, f: lambda x: lib.lax.cond(x[0] > 0.1, f, lambda v: v * 3.0, x),
    lambda lib, rng, f: lambda x: lib.vjp(f, x)[1](x)[0],
    lambda lib, rng, f: lambda x: lib.jvp(f, (x,), (x * 0.5,))[1],
    lambda lib, rng, f: lib.grad(lambda x: f(x).sum()),
    lambda lib, rng, f: lambda x: f(f(x) * 0.5),
    lambda lib, rng, f: lambda x: lib.jit(lambda y: f(y) + x)(x * 2.0),
]


def generate(lib, seed):
    """The same function for the same seed, of either library."""
    rng = random.Random(seed)
    call = rng.choice(CALLS)
    function = call(lib, rng)
    # JAX loses io callbacks in scans that are differentiated.
    wrappers = WRAPPERS if call is an_io_callback else WRAPPERS + LOOPS
    for _ in range(rng.randint(1, 3)):
        function = rng.choice(wrappers)(lib, rng, function)
    return function


def outcome(lib, seed, capsys):
    """(the numbers printed, a row a line, in no order; values or exception class)."""
    capsys.readouterr()
    try:
        value = np.asarray(generate(lib, seed)(lib.numpy.asarray(X)))
        lib.effects_barrier()
    except Exception as error:
        value = type(error).__name__
    lines = capsys.readouterr().out.splitlines()
    return sorted([float(n) for n in _NUMBER.findall(line)] for line in lines), value


@pytest.mark.parametrize("seed", range(COUNT))
def test_calls_and_values(seed, capsys):
    ours, theirs = (outcome(lib, seed, capsys) for lib in LIBRARIES)
    assert len(ours[0]) == len(theirs[0])
    for our_numbers, their_numbers in zip(ours[0], theirs[0]):
        np.testing.assert_allclose(our_numbers, their_numbers, rtol=1e-4, atol=1e-5)
    if isinstance(ours[1], str) or isinstance(theirs[1], str):
        assert ours[1] == theirs[1]
    else:
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)


def text(lib, seed):
    try:
        return normalise(str(lib.make_jaxpr(generate(lib, seed))(X)))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("seed", range(COUNT))
def test_texts(seed):
    with plain_numpy_scalars():
        ours, theirs = (text(lib, seed) for lib in LIBRARIES)
    assert ours == theirs


def test_generated_programs_reach_every_callback():
    names = {eqn.primitive.name for seed in range(40) for eqn in _equations(seed)}
    assert {
        "debug_print",
        "debug_callback",
        "pure_callback",
        "io_callback",
    } <= names


def _equations(seed):
    try:
        closed = minijax.make_jaxpr(generate(minijax, seed))(X)
    except Exception:  # some programs are errors, in JAX as here
        return []
    pending, found = [closed.jaxpr], []
    while pending:
        for eqn in pending.pop().eqns:
            found.append(eqn)
            pending.extend(minijax.core.language.jaxprs_in_params(eqn.params))
    return found
