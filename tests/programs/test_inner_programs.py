"""Equations that carry programs say how these are wired to their inputs and outputs."""

import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.language import typecompat
from minijax.programs.control_flow.operands import (
    Operands,
    agree,
    order_beside_tangents,
    settle,
    split_groups_of_tangents,
)
from minijax.values.inner_programs import descriptions, in_python, inner_programs


def scan(x, y):
    return lax.scan(lambda c, row: (c * x.sum(), c + row), 1.0, y)


def while_loop(x, y):
    def goes_on(state):
        return state[0] < x.sum()

    return lax.while_loop(goes_on, lambda s: (s[0] + y[0], s[1] * 2), (0.0, 1.0))


def cond(x, y):
    return lax.cond(x[0] > 0, lambda a, b: a + b, lambda a, b: a * b, x, y)


@minijax.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda primals, tangents: (cube(*primals), tangents[0]))

FUNCTIONS = {
    "scan": scan,
    "while": while_loop,
    "cond": cond,
    "jit": minijax.jit(lambda x, y: x + y),
    "remat2": minijax.checkpoint(lambda x, y: jnp.sin(x) * y),
    "custom_jvp_call": lambda x, y: cube(x) + y,
}


def equation_of(name):
    x = jnp.ones(3)
    closed = minijax.make_jaxpr(FUNCTIONS[name])(x, x)
    return next(eqn for eqn in closed.eqns if eqn.primitive.name == name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_ends_of_inner_programs_have_the_types_of_the_equations(name):
    eqn = equation_of(name)
    programs = inner_programs(eqn)
    assert programs
    for program in programs:
        inner = program.jaxpr
        assert len(program.inputs) == len(inner.invars)
        carry = program.carry
        for place, (position, var) in enumerate(zip(program.inputs, inner.invars)):
            aval = eqn.invars[position].aval
            if carry is not None and place >= carry.stop:
                assert aval.shape[1:] == var.aval.shape, "a row of an array"
            else:
                assert typecompat(aval, var.aval)
        if not program.decides:
            assert len(inner.outvars) == len(eqn.outvars)
        if carry is not None and not program.decides:
            for place, out in zip(carry, inner.outvars):
                assert typecompat(inner.invars[place].aval, out.aval)


def test_an_ordinary_operation_carries_no_program():
    closed = minijax.make_jaxpr(lambda x: x + 1.0)(1.0)
    assert inner_programs(closed.eqns[0]) == []


def test_what_runs_as_python_is_described_too():
    assert set(in_python) <= set(descriptions)
    assert {primitive.name for primitive in in_python} == {"scan", "while", "cond"}


def test_groups_followed_by_their_tangents_and_back():
    nonzeros = [[True, False], [False, True, True]]
    order = order_beside_tangents(nonzeros)
    assert order == [0, 1, 5, 2, 3, 4, 6, 7]
    values = [jnp.float32(place) for place in order]
    outs, tangents = split_groups_of_tangents(values, *nonzeros)
    assert [float(x) for x in outs] == [0, 1, 2, 3, 4]
    assert [float(t) for t in (tangents[0], tangents[3], tangents[4])] == [5, 6, 7]
    assert all(type(tangents[i]).__name__ == "Zero" for i in (1, 2))


def test_flags_of_a_carry_grow_until_a_step_keeps_them():
    """Each step moves the entries on by one, so every entry is flagged in the end."""
    steps = []

    def step(flags, wanted):
        steps.append(flags)
        carry = flags[1:4]
        return [w or c for w, c in zip(wanted, (flags[0], *carry[:-1], False))], "last"

    flags, answer = settle(Operands([True], [False] * 3), 0, step)
    assert (flags.carry, answer) == ([True] * 3, "last")
    assert steps[0] == (True, False, False, False)
    assert len(steps) == 4


def test_branches_agree_on_what_any_of_them_flags():
    flags, answers = agree(
        [(True, False), (False, False)], lambda branch, wanted: (branch, wanted)
    )
    assert flags == (True, False)
    assert answers == ((True, False), (True, False))
