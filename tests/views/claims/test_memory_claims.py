"""What `see.memory` claims, each claim held against jax over 52 functions."""

import functools

import jax
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.memory import record_memory
from minijax_lab.explain.tree import size_in_words
from tests.views.claims.forty import CASES, DIFFERENTIABLE, UNSEEN, Case, title
from tests.views.claims.jax_programs import closed_jaxpr, kept_by_jax
from tests.views.test_memory_view import flat, peak

CLAIMS = [
    "So many bytes are alive at the peak, counted in the order of the program.",
    "The peak is at this equation, and these arrays are alive there.",
    "The program has so many equations in line, calls opened.",
    "Autodiff asks to keep so many bytes.",
    "The arguments have so many bytes, constants included.",
    "The compiler allocates so many bytes of temporaries.",
]


def floats(case: Case) -> tuple[int, ...]:
    return tuple(
        place
        for place, arg in enumerate(case.args)
        if all(np.issubdtype(x.dtype, np.floating) for x in jax.tree.leaves(arg))
    )


def gradient(case: Case, m):
    return m.grad(case.loss(m), argnums=floats(case))


@functools.cache
def account(case: Case):
    own = gradient(case, minijax)
    return record_memory(own, case.args, {}, compiled=False).accounts[0]


def outside(closed):
    jaxpr = closed.jaxpr
    return {v: ("outside", 0) for v in (*jaxpr.invars, *jaxpr.constvars)}


def check_peak(own, closed):
    assert own.most == peak(closed.jaxpr)
    assert len(own.points) == len(flat(closed.jaxpr, outside(closed), [0]))
    if own.points:
        point = own.points[own.peak]
        alive = own.alive(own.peak)
        assert sum(value.bytes for value in alive) + point.inside == own.most
    # The arguments, and the constants of the program and of those that it calls.
    given = sum(a.size * a.dtype.itemsize for a in closed.in_avals)
    assert sum(v.bytes for v in own.values if v.role == "argument") == given
    assert own.arguments == given + sum(held_by(closed).values())


def held_by(program) -> dict[int, int]:
    """The bytes of each array that a program of jax and those inside close over."""
    jaxpr = getattr(program, "jaxpr", program)
    found = {id(value): value.nbytes for value in getattr(program, "consts", ())}
    for eqn in jaxpr.eqns:
        for param in eqn.params.values():
            for part in param if isinstance(param, tuple) else (param,):
                if hasattr(part, "eqns"):
                    found |= held_by(part)
    return found


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_peak_of_the_gradient(case):
    closed = jax.make_jaxpr(gradient(case, jax))(*case.args)
    check_peak(account(case), closed)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_peak_of_the_function(case):
    record = record_memory(case.make(minijax), case.args, {}, compiled=False)
    check_peak(record.accounts[0], closed_jaxpr(case))
    if record.accounts[0].points:
        assert f"peak {size_in_words(record.accounts[0].most)}" in record.headline
    # A jaxpr of JAX gives the same account.
    (other,) = record_memory(closed_jaxpr(case), (), {}).accounts
    assert [p.live for p in other.points] == [p.live for p in record.accounts[0].points]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_kept(case):
    theirs = kept_by_jax(case)
    kept = [a for a, source in theirs if "the argument" not in source]
    assert account(case).kept == sum(a.size * a.dtype.itemsize for a in kept)


@pytest.mark.parametrize("case", [c for c in UNSEEN if c.differentiable], ids=title)
def test_allocated(case):
    own = see.memory(gradient(case, minijax), *case.args).recording.accounts[0]
    compiled = jax.jit(gradient(case, jax)).lower(*case.args).compile()
    stats = compiled.memory_analysis()
    assert own.compiled["temporaries"] == stats.temp_size_in_bytes
    assert own.compiled["results"] == stats.output_size_in_bytes
    assert own.compiled["arguments"] == stats.argument_size_in_bytes
