"""A kernel whose programs are run once for each sort has the recording that running all
of them one by one gives."""

import dataclasses
import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.experimental.pallas import triton
from minijax.kernels import interpreter
from minijax_lab.explain import equal_programs, pallas_kernels
from tests.pallas.kernels import TABLE, Library

OURS = Library("minijax", interpret=False)
IN_LOOPS = {"inside_of_a_loop", "scalars_under_vmap"}


def numbers(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32) % 7).reshape(shape)


@pytest.fixture
def both(monkeypatch):
    """Records a kernel both ways; tells whether equal programs were run once."""

    def records(function, *args):
        outcomes = []

        def kept(*given):
            outcomes.append(equal_programs.outcome_of(*given))
            return outcomes[-1]

        made = []
        for way in (kept, lambda *given: None):
            monkeypatch.setattr(pallas_kernels, "outcome_of", way)
            made.append(see.kernel(function, *args, values=False).recording)
        one, other = map(dataclasses.asdict, made)
        for name, value in other.items():
            assert one[name] == value, name
        return bool(outcomes and outcomes[0]), made[0]

    return records


def kernel_of(body, maps, shape, grid, scratch=(), **options):
    """Blocks of 4 x 4 of two arrays and of an output of a shape."""
    each = [pl.BlockSpec((4, 4), one) for one in maps]
    if scratch:
        options["scratch_shapes"] = scratch
    return pl.pallas_call(
        body,
        minijax.ShapeDtypeStruct(shape, np.float32),
        grid=grid,
        in_specs=each[:2],
        out_specs=each[2],
        **options,
    )


def sums(x, w, o):
    @pl.when(pl.program_id(1) == 0)
    def _():
        o[...] = jnp.zeros_like(o)

    o[...] += x[...] @ w[...]


def adds(x, w, o):
    o[...] += x[...] + w[...]


def writes_a_half(x, w, o):
    o[:2] = x[:2] * w[2:]


def reads_three_times(x, w, o):
    o[...] = x[...] + w[...]
    o[1:3] = o[1:3] + x[0:2]
    o[...] = o[...] + w[...]


def loops(x, w, o):
    def turn(i, c):
        o[i] = c[i] + w[i]
        return c * w[...]

    o[...] = lax.fori_loop(0, 4, turn, x[...])


def masked(x, w, o):
    mask = lax.broadcasted_iota(np.int32, (4, 4), 0) < 3
    o[...] = triton.load(x, mask=mask, other=0.0) + w[...]
    triton.store(o, w[...], mask=mask)


def keeps_in_scratch(x, w, o, s):
    s[...] += x[...]
    o[...] = s[...] + w[...]


def asks_data(x, w, o):
    @pl.when(x[0, 0] > 2)
    def _():
        o[...] = w[...]


def follows_data(x, w, o):
    """Only the second turn of the loop asks what the first has read."""

    def turn(_, at):
        o[at] = w[at]
        return x[at, 0].astype(np.int32) % 4

    o[...] = x[...]
    lax.fori_loop(0, 3, turn, 0)


def leaves_its_ref(x, w, o):
    o[...] = x[...]
    o[pl.program_id(0) + 3, 0] = 1.0


ROW, COLUMN, ONE = (lambda i, j: (i, 0)), (lambda i, j: (0, j)), lambda i, j: (0, 0)
EACH, TURNED = (lambda i, j: (i, j)), lambda i, j: (j, i)
BODIES = {
    body.__name__: body
    for body in (
        sums, adds, writes_a_half, reads_three_times, loops, masked,
        keeps_in_scratch, asks_data, follows_data, leaves_its_ref,
    )
}  # fmt: skip
APART = {"asks_data", "follows_data", "leaves_its_ref"}
WORDS = [None, ("parallel", "arbitrary"), ("arbitrary", "arbitrary")]


@pytest.mark.parametrize("name", BODIES)
def test_kernels_right_and_wrong(both, name) -> None:
    body = BODIES[name]
    scratch = [pltpu.VMEM((4, 4), np.float32)] if name == "keeps_in_scratch" else ()
    kinds, used = set(), 0
    maps = [(EACH, EACH, EACH), (ROW, COLUMN, EACH), (EACH, ONE, ROW), (ROW, ROW, ONE)]
    for chosen, words in itertools.product(maps, WORDS):
        # The last block of the columns reaches beyond the arrays.
        shape, grid = (12, 10), (3, 3)
        options = {}
        if words:
            options["compiler_params"] = pltpu.CompilerParams(dimension_semantics=words)
        call = kernel_of(body, chosen, shape, grid, scratch, **options)
        was_used, record = both(call, numbers(12, 10), numbers(12, 10))
        used += was_used
        kinds |= {problem.kind for problem in record.problems}
    assert bool(used) == (name not in APART)
    if name in ("adds", "keeps_in_scratch"):
        assert {"uninitialized", "padding"} <= kinds
    if name in ("sums", "adds", "loops"):
        assert {"race", "race on a GPU"} & kinds


@pytest.mark.parametrize(
    "entry",
    [entry for entry in TABLE if entry.name not in IN_LOOPS],
    ids=lambda entry: entry.name,
)
def test_kernels_of_the_table(both, entry) -> None:
    both(entry.build(OURS), *entry.args)


def test_every_rule_of_the_interpreter_is_known() -> None:
    """A new one has to be put among those that are followed, or those that are not."""
    known = equal_programs.KNOWN | equal_programs.APART
    assert known == set(interpreter._rules)
