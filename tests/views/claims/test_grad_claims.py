"""What `see.grad` claims, each claim held against jax over 52 functions."""

import collections
import functools
import re

import jax
import numpy as np
import pytest
from jax.interpreters.partial_eval import dce_jaxpr

import minijax
import minijax_widgets as see
from minijax_lab.explain.backward import bytes_in_words
from tests.views.claims.forty import CASES, DIFFERENTIABLE, Case, ones, title
from tests.views.claims.jax_programs import kept_by_jax, programs_in

CLAIMS = [
    "So many equations run forward, more for the derivative, and backward.",
    "The way back keeps so many bytes beside the arguments, and reads so many of them.",
    "A value that is kept is an argument, a constant, or made by an equation.",
    "So many sums of cotangents: a value that is used n times has n that add.",
    "An argument that is not used has a gradient of zero, and no other is said to.",
    "An argument's cotangent has its name, type, shape and bytes.",
    "A function without a gradient is refused.",
]


@functools.cache
def view_of(case: Case) -> see.GradView:
    return see.grad(case.loss(minijax), *case.args, argnums=floats(case))


def floats(case: Case) -> tuple[int, ...]:
    """The positions of the arguments that are differentiated: all those of floats."""
    return tuple(
        place
        for place, arg in enumerate(case.args)
        if all(np.issubdtype(x.dtype, np.floating) for x in jax.tree.leaves(arg))
    )


@functools.cache
def gradient_jaxpr(case: Case):
    gradient = jax.grad(case.loss(jax), argnums=floats(case))
    return jax.make_jaxpr(gradient)(*case.args).jaxpr


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_equations(case):
    program = view_of(case).recording.program
    every = program.forward + program.extra + program.unused + program.backward
    own = jax.make_jaxpr(case.loss(jax))(*case.args)
    # JAX opens a checkpointed function on the way down; the view has it as one row.
    bodies = [e.params["jaxpr"].eqns for e in own.eqns if "remat" in e.primitive.name]
    more = sum(len(body) - 1 for body in bodies)
    assert every + more == len(gradient_jaxpr(case).eqns)
    assert program.forward == len(own.eqns)
    said = re.search(r": ([\d,]+) forward", view_of(case).recording.headline)
    assert int(said[1].replace(",", "")) == program.forward


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_what_is_kept(case):
    record = view_of(case).recording
    theirs = kept_by_jax(case)
    kept = [aval for aval, source in theirs if "the argument" not in source]
    given = [aval for aval, source in theirs if "the argument" in source]
    own = [r for r in record.program.residuals if r.origin != "argument"]
    assert sorted(r.type for r in own) == sorted(a.str_short(True) for a in kept)
    assert record.bytes == sum(a.size * a.dtype.itemsize for a in kept)
    assert record.argument_bytes == sum(a.size * a.dtype.itemsize for a in given)
    assert f"keeps {bytes_in_words(record.bytes)}" in record.headline
    names = [re.search(r"the argument (\S+)", source) for _, source in theirs]
    read = [r for r in record.program.residuals if r.origin == "argument"]
    assert sorted(r.argument for r in read) == sorted(n[1] for n in names if n)


def additions(jaxpr) -> collections.Counter:
    """The sums of cotangents of a program of JAX, by their types."""
    return collections.Counter(
        eqn.outvars[0].aval.str_short(True)
        for eqn in jaxpr.eqns
        if eqn.primitive.name == "add_any"
    )


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_sums(case):
    """Each addition of cotangents is an `add_any` of JAX's program.

    A sum of n has n - 1 of them.
    """
    program = view_of(case).recording.program
    own = jax.make_jaxpr(case.loss(jax))(*case.args)
    # A function that is itself a gradient has such equations already.
    added = additions(gradient_jaxpr(case)) - additions(own.jaxpr)
    types = [found.type for found in program.sums for _ in range(found.equations)]
    assert collections.Counter(types) == added
    for found in program.sums:
        assert found.equations == len(found.rows) - 1


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_arguments(case):
    check_arguments(case)


def test_an_argument_that_is_not_used():
    unused = Case("unused", lambda m: lambda x, y: m.numpy.sin(x), (ones(3), ones(2)))
    check_arguments(unused)
    stopped = lambda m: lambda x, y: m.lax.stop_gradient(y) * x  # noqa: E731
    check_arguments(Case("stopped", stopped, (ones(3), ones(3))))


def check_arguments(case):
    program = view_of(case).recording.program
    closed = jax.make_jaxpr(case.loss(jax))(*case.args)
    names = dict(zip(closed.jaxpr.debug_info.arg_names, closed.in_avals))
    used = jax.grad(case.loss(jax), argnums=floats(case))(*case.args)
    assert len(program.arguments) == len(jax.tree.leaves(used))
    for argument, value in zip(program.arguments, jax.tree.leaves(used), strict=True):
        aval = names[argument.name]
        assert argument.type == aval.str_short(short_dtypes=True)
        assert tuple(argument.shape) == aval.shape
        assert argument.bytes == aval.size * aval.dtype.itemsize
        if argument.zero:
            assert not np.any(np.asarray(value))
    names = closed.jaxpr.debug_info.arg_names
    _, needed = dce_jaxpr(closed.jaxpr, [True])
    unused = {name for name, need in zip(names, needed) if not need}
    own = [argument for argument in program.arguments if argument.zero]
    assert unused & {a.name for a in program.arguments} <= {a.name for a in own}
    assert bool(own) == ("its gradient is zero" in view_of(case).recording.headline)


@pytest.mark.parametrize("case", [c for c in CASES if not c.differentiable], ids=title)
def test_what_has_no_gradient_is_refused(case):
    with pytest.raises((TypeError, ValueError)):
        see.grad(case.make(minijax), *case.args)


# ---- checkpoints ---------------------------------------------------------------------


def jitted_in_a_checkpoint(m):
    inner = m.jit(m.numpy.sin)
    return lambda x: m.numpy.sum(inner(x))


def called_twice_in_a_checkpoint(m):
    inner = m.jit(lambda x: m.numpy.tanh(x) * x)
    return lambda x: m.numpy.sum(inner(inner(x)))


def scan_in_a_checkpoint(m):
    def turn(c, y):
        return m.numpy.sin(c * y), c

    return lambda x: m.lax.scan(turn, m.numpy.sum(x), x)[0]


def cond_in_a_checkpoint(m):
    sines = [lambda y: m.numpy.sin(m.numpy.sin(y)), m.numpy.cos]
    return lambda x: m.numpy.sum(m.lax.cond(x[0] > 0, *sines, x))


def block_in_a_checkpoint(m):
    def block(x):
        scores = m.nn.softmax(x @ x.T)
        return m.numpy.sum(m.nn.gelu(scores @ x) + m.nn.relu(x))

    return lambda x: block(m.numpy.outer(x, x))


def leaves_of(eqns) -> int:
    """Equations, calls opened; of branches the longest."""
    count = 0
    for eqn in eqns:
        inside = [
            leaves_of(p.eqns) for v in eqn.params.values() for p in programs_in(v)
        ]
        count += (max if eqn.primitive.name == "cond" else sum)(inside or [1])
    return count


def computed_again(eqn) -> int:
    """The equations of jax's checkpoint that it marks as computed once more."""
    mark = "rematted_computation"
    again = [
        e for e in eqn.params["jaxpr"].eqns if mark in str(e.source_info.name_stack)
    ]
    return leaves_of(again)


@pytest.mark.parametrize(
    "make",
    [
        jitted_in_a_checkpoint,
        called_twice_in_a_checkpoint,
        scan_in_a_checkpoint,
        cond_in_a_checkpoint,
        block_in_a_checkpoint,
    ],
)
def test_what_runs_again_with_calls_inside(make):
    x = ones(4)
    theirs = jax.make_jaxpr(jax.grad(jax.checkpoint(make(jax))))(x)
    (eqn,) = [e for e in theirs.eqns if e.primitive.name in ("remat2", "checkpoint")]
    plain = make(minijax)
    program = see.grad(minijax.checkpoint(plain), x).recording.program
    assert program.again == computed_again(eqn) > 0
    told = see.grad(plain, x, beside=minijax.checkpoint(plain)).headline()
    assert re.search(r" (\d+) equations? more run again", told)[1] == str(
        computed_again(eqn)
    )
    # A checkpoint is not told as one equation.
    one, two = re.search(r"; ([\d,]+) and ([\d,]+) backward", told).groups()
    assert int(two) >= int(one) > 0
