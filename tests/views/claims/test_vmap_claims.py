"""What `see.vmap` claims, each claim held against jax over 52 functions."""

import functools
import re

import jax
import jax.extend
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from tests.views.claims.forty import CASES, Case, title
from tests.views.claims.jax_programs import programs_in

CLAIMS = [
    "So many equations of one example became so many of the batch.",
    "The batch axis moved so often: a move is a transpose that no example asked for.",
    "Inputs and results have these types, and the batch axis first where they have it.",
    "Each batched equation has this primitive and these types.",
    "The batch axis of each value is this one; a value without is the same for all.",
    "An equation is inserted: no equation of one example does its work.",
]
SIZE = 3
# Each function with the batch axis first, and second where there is a second one.
BATCHES = [(case, place) for case in CASES for place in (0, 1)]


@functools.cache
def batch(case: Case, place: int) -> tuple[tuple, tuple]:
    """The arguments as a batch, and their axes: `place`, or 0 for numbers.

    Where there are several, the last one stays the same for all.
    """
    ranks = [min(map(np.ndim, jax.tree.leaves(arg))) for arg in case.args]
    axes: list[int | None] = [min(place, rank) for rank in ranks]
    if len(axes) > 1:
        axes[-1] = None
    many = []
    for arg, axis in zip(case.args, axes):
        leaves = jax.tree.map(np.asarray, arg)
        if axis is not None:
            stack = functools.partial(np.stack, axis=axis)
            leaves = jax.tree.map(lambda x, stack=stack: stack([x] * SIZE), leaves)
        many.append(leaves)
    return tuple(many), tuple(axes)


@functools.cache
def recorded(case: Case, place: int):
    many, axes = batch(case, place)
    return see.vmap(case.make(minijax), *many, in_axes=axes).recording


@functools.cache
def theirs(case: Case, place: int):
    many, axes = batch(case, place)
    one = jax.make_jaxpr(case.make(jax))(*case.args)
    return one, jax.make_jaxpr(jax.vmap(case.make(jax), axes))(*many)


def calls(case: Case) -> int:
    """How many calls are opened: a function may be only a call of a jitted one."""
    closed, found = theirs(case, 0)[0], 0
    while [eqn.primitive.name for eqn in closed.eqns] == ["jit"]:
        (eqn,) = closed.eqns
        if list(eqn.invars) != closed.jaxpr.invars or closed.consts:
            break
        closed, found = eqn.params["jaxpr"], found + 1
    return found


def equations(jaxpr):
    """All equations, with those of programs inside, as often as they stand there."""
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn)
        for value in eqn.params.values():
            for program in programs_in(value):
                found += equations(program)
    return found


def outermost(closed, opened: int):
    """The equations of JAX's batched program, those of opened calls in their place."""
    eqns = list(closed.eqns)
    return outermost(eqns[0].params["jaxpr"], opened - 1) + eqns[1:] if opened else eqns


@pytest.mark.parametrize("case, place", BATCHES, ids=title)
def test_equations_and_moves(case, place):
    record, (one, many) = recorded(case, place), theirs(case, place)
    before, after = equations(one.jaxpr), equations(many.jaxpr)
    assert record.before == len(before) - calls(case)
    assert record.after == len(after) - calls(case)
    added = [
        sum(eqn.primitive.name == "transpose" for eqn in eqns)
        for eqns in (after, before)
    ]
    assert record.moves == added[0] - added[1]
    assert f" {record.after:,};" in record.headline


@pytest.mark.parametrize("case, place", BATCHES, ids=title)
def test_inputs_and_results(case, place):
    record, (_, many) = recorded(case, place), theirs(case, place)

    def types(values):
        return [f"{v.dtype}[{','.join(map(str, v.shape))}]" for v in values]

    def avals(found):
        return [aval.str_short(short_dtypes=True) for aval in found]

    assert types(record.batched_inputs) == avals(many.in_avals)
    assert types(record.results) == avals(many.out_avals)
    _, axes = batch(case, place)
    flat = [a for arg, a in zip(case.args, axes) for _ in jax.tree.leaves(arg)]
    assert [value.batch for value in record.batched_inputs] == flat
    assert {value.batch for value in record.results} <= {0}


# How the view says what an equation does.
SAID = {"checkpoint": "remat2", "custom_jvp": "custom_jvp_call"}
SAID["custom_vjp"] = "custom_vjp_call"


def plain(said: str) -> str:
    """The primitive alone: of `jit cumsum`, `scan[6]` and `integer_pow[2]`."""
    name = re.split(r"[ \[]", said)[0]
    return SAID.get(name, name)


@pytest.mark.parametrize("case, place", BATCHES, ids=title)
def test_primitives_and_types(case, place):
    record = recorded(case, place)
    own = [
        (plain(eqn.primitive), [(v.dtype, tuple(v.shape)) for v in eqn.results])
        for row in record.rows
        if row.parent is None
        for eqn in row.batched
    ]
    other = [
        (
            eqn.primitive.name,
            [
                (v.aval.str_short(True).partition("[")[0], v.aval.shape)
                for v in eqn.outvars
            ],
        )
        for eqn in outermost(theirs(case, place)[1], calls(case))
    ]
    assert [name for name, _ in own] == [name for name, _ in other]
    assert own == other


@pytest.mark.parametrize("case, place", BATCHES, ids=title)
def test_the_batch_axis_by_changing_one_example(case, place):
    """What depends on example 1 alone lies in place 1 of the batch axis.

    JAX's batched program runs twice, equation by equation, the second time with other
    numbers in example 1: every value may differ in place 1 of its batch axis only, and
    a value without one not at all.
    """
    (many, axes), record = batch(case, place), recorded(case, place)
    values = []
    for number in range(2):
        given = []
        for arg, axis in zip(many, axes):
            for leaf in jax.tree.leaves(arg):
                leaf = np.array(leaf)
                if number and axis is not None:
                    one = np.moveaxis(leaf, axis, 0)[1:2]
                    one[...] = one // 2 if leaf.dtype.kind == "i" else one * 0.7
                given.append(leaf)
        values.append(run(theirs(case, place)[1], given, calls(case))[0])
    rows = [row for row in record.rows if row.parent is None]
    shown = [eqn for row in rows for eqn in row.batched]
    assert len(shown) == len(values[0])
    found = 0
    for eqn, first, second in zip(shown, *values):
        for value, a, b in zip(eqn.results, first, second):
            if not value.followed:
                continue
            differs = np.asarray(a != b) & ~(np.isnan(a) & np.isnan(b))
            found += differs.any()
            if value.batch is None:
                assert not differs.any(), (eqn.text, value.name)
            else:
                assert value.shape[value.batch] == SIZE
                rest = np.delete(differs, 1, axis=value.batch)
                assert not rest.any(), (eqn.text, value.name)
    assert found or case.name == "empty"  # the change is seen


def run(closed, given, opened: int):
    """The results of each equation of a jaxpr of JAX, and those of the program.

    So many calls are opened, each the first equation of its program.
    """
    env = dict(zip(closed.jaxpr.constvars, closed.consts))
    env.update(zip(closed.jaxpr.invars, given))

    def read(atoms):
        literal = jax.extend.core.Literal
        return [atom.val if isinstance(atom, literal) else env[atom] for atom in atoms]

    found = []
    for number, eqn in enumerate(closed.eqns):
        values = read(eqn.invars)
        if opened and not number:
            inner, out = run(eqn.params["jaxpr"], values, opened - 1)
            found += inner
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            out = eqn.primitive.bind(*values, **params)
            out = list(out) if eqn.primitive.multiple_results else [out]
            found.append([np.asarray(value) for value in out])
        env.update(zip(eqn.outvars, out))
    return found, read(closed.jaxpr.outvars)


@pytest.mark.parametrize("case, place", BATCHES, ids=title)
def test_inserted(case, place):
    """One equation does the work of each equation of one example, or none need be."""
    for row in recorded(case, place).rows:
        work = [eqn for eqn in row.batched if not eqn.inserted]
        if row.kind == "results":
            assert not work
        elif row.batched and not row.grid:
            assert len(work) == 1


def test_an_axis_that_a_rule_moves_without_a_transpose():
    """Where jax's program has no transpose, and yet the axis stands elsewhere."""

    def told(function, *args, in_axes):
        program = jax.make_jaxpr(jax.vmap(function(jax), in_axes))(*args)
        transposes = sum(e.primitive.name == "transpose" for e in program.eqns)
        view = see.vmap(function(minijax), *args, in_axes=in_axes)
        assert view.recording.moves == transposes == 0
        return view.recording.headline

    w, x = np.ones((3, 8, 4), np.float32), np.ones((4, 8), np.float32)
    headline = told(lambda m: lambda w, x: w @ x, w, x, in_axes=(1, 1))
    assert "the batch axis moved, by no transpose" in headline
    headline = told(lambda m: lambda x: x * 2.0, x.T, in_axes=0)
    assert "never moved" in headline
