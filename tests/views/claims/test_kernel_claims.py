"""What `see.kernel` claims of the order of programs, held against jax's interpreter."""

import itertools
import re

import jax
import jax.numpy
import numpy as np
import pytest
from jax.experimental import pallas as their_pl
from jax.experimental.pallas import tpu as their_tpu

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax_lab.explain.roofline import h100

X = np.arange(16 * 16, dtype=np.float32).reshape(16, 16)


def k_loop(x, y, m=minijax, lib=pl, **options):
    """Blocks of 4 x 4, summed over the last axis of the grid."""

    def kernel(x_ref, y_ref, o_ref):
        @lib.when(lib.program_id(2) == 0)
        def _():
            o_ref[...] = m.numpy.zeros_like(o_ref)

        o_ref[...] += x_ref[...] @ y_ref[...]

    return lib.pallas_call(
        kernel,
        m.ShapeDtypeStruct((x.shape[0], y.shape[1]), np.float32),
        grid=(x.shape[0] // 4, y.shape[1] // 4, x.shape[1] // 4),
        in_specs=[
            lib.BlockSpec((4, 4), lambda i, j, k: (i, k)),
            lib.BlockSpec((4, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=lib.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        **options,
    )(x, y)


def test_a_loop_over_the_last_axis_is_right_on_a_tpu() -> None:
    told = their_tpu.InterpretParams(detect_races=True)
    by_jax = k_loop(X[:8, :8], X[:8, :8], jax, their_pl, interpret=told)
    np.testing.assert_allclose(by_jax, X[:8, :8] @ X[:8, :8])
    view = see.kernel(k_loop, X[:8, :8], X[:8, :8])
    assert not view.recording.wrong
    assert "race" not in view.recording.headline.partition("; on a GPU")[0]
    assert view.recording.headline.endswith("; on a GPU a race on o_ref")
    # What it says to declare fits the grid, and settles it.
    (problem,) = view.recording.problems
    advice = re.search(r"dimension_semantics=(\(.*?\))", problem.message)
    words = eval(advice[1])
    assert words == ("parallel", "parallel", "arbitrary")
    params = pltpu.CompilerParams(dimension_semantics=words)
    record = see.kernel(
        lambda x, y: k_loop(x, y, compiler_params=params), X[:8, :8], X[:8, :8]
    ).recording
    assert not record.problems and "GPU" not in record.headline


def test_on_a_gpu_it_is_a_race() -> None:
    record = see.kernel(k_loop, X[:8, :8], X[:8, :8], machine=h100()).recording
    assert "race on o_ref between programs (0, 0, 0) and (0, 0, 1)" in record.headline
    assert [problem.kind for problem in record.wrong] == ["race"]


def visits(x, order, m=minijax, lib=pl, **options):
    """Each program adds to a block that only some axes of the grid choose."""

    def kernel(x_ref, o_ref):
        first = lib.program_id(0) == 0
        for axis in range(1, 3):
            first &= lib.program_id(axis) == 0

        @lib.when(first)
        def _():
            o_ref[...] = m.numpy.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return lib.pallas_call(
        kernel,
        m.ShapeDtypeStruct((8, 8), np.float32),
        grid=(2, 2, 2),
        in_specs=[lib.BlockSpec((4, 4), lambda *p: (p[0], p[1]))],
        out_specs=lib.BlockSpec((4, 4), lambda *p: (p[order[0]], p[order[1]])),
        **options,
    )(x)


@pytest.mark.parametrize("order", list(itertools.product(range(3), repeat=2)))
def test_a_block_is_revisited_where_jax_says_so(order) -> None:
    words = ("arbitrary",) * 3
    refused = ""
    try:
        visits(
            X[:8, :8],
            order,
            jax,
            their_pl,
            interpret=their_tpu.InterpretParams(uninitialized_memory="zero"),
            compiler_params=their_tpu.CompilerParams(dimension_semantics=words),
        )
    except Exception as error:
        refused = str(error)
    params = pltpu.CompilerParams(dimension_semantics=words)
    view = see.kernel(lambda x: visits(x, order, compiler_params=params), X[:8, :8])
    found = [p for p in view.recording.problems if p.kind == "revisited"]
    assert bool(found) == ("Revisited block" in refused), refused
    if found:
        (problem,) = found
        program = re.search(r"in iteration (\(.*?\))", refused)
        assert eval(program[1]) == tuple(view.recording.places[problem.program])
        assert "was written back" in view.recording.headline
        assert view.frame().steps[view.frame().telling].look == "error"


def test_declared_parallel_is_a_race_and_no_more() -> None:
    params = pltpu.CompilerParams(dimension_semantics=("parallel",) * 3)
    record = see.kernel(
        lambda x: visits(x, (1, 2), compiler_params=params), jnp.asarray(X[:8, :8])
    ).recording
    assert {problem.kind for problem in record.wrong} == {"race", "uninitialized"}


# ---- bytes, counted by a walk over the grid and NumPy's arrays ----------------------


@minijax.jit
def helper(x):
    return jnp.tanh(x) * x


def of_helpers(x, w, o):
    o[...] = helper(x[...]) + helper(w[...])


def of_a_branch(x, w, o):
    o[...] = x[...]

    @pl.when(pl.program_id(1) == 0)
    def _():
        o[...] += w[...]


def of_turns(x, w, o):
    o[...] = lax.fori_loop(0, 3, lambda _, c: c * w[...], x[...])


def until(x, w, o):
    o[...] = lax.while_loop(lambda c: c.sum() < 1e4, lambda c: c * 2.0 + 1.0, x[...])


def of_equal_layers(x, w, o):
    for _ in range(3):
        o[...] = jnp.maximum(x[...] @ w[...], 0.0)


def of_slices(x, w, o):
    o[...] = (x[...].reshape(-1)[::-1] + w[...].reshape(-1)[:16]).reshape(4, 4)


ROWS, COLUMNS, ONE = (lambda i, j: (i, 0)), (lambda i, j: (0, j)), lambda i, j: (0, 0)
EACH, TURNED = (lambda i, j: (i, j)), lambda i, j: (j, i)
# The kernel, the maps of x, w and the output, and the shape of x and the output.
WALKED = {
    "helpers called twice": (of_helpers, (EACH, TURNED, EACH), (12, 12)),
    "a branch": (of_a_branch, (EACH, ROWS, EACH), (12, 8)),
    "a loop of known length": (of_turns, (ROWS, COLUMNS, EACH), (8, 12)),
    "a loop of unknown length": (until, (TURNED, ONE, EACH), (12, 12)),
    "an array from outside": (of_helpers, (EACH, ONE, EACH), (8, 16)),
    "equal layers": (of_equal_layers, (ROWS, ONE, EACH), (16, 8)),
    "an update in place": (of_a_branch, (EACH, COLUMNS, EACH), (8, 8)),
    "slices behind a reshape": (of_slices, (EACH, ROWS, EACH), (10, 7)),
}


def walked(index_map, shape, grid):
    """The bytes copied, those of all programs' blocks, those if each came once."""
    array = np.zeros(shape, np.float32)
    places = [index_map(*p) for p in itertools.product(*map(range, grid))]
    sizes = [array[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].nbytes for i, j in places]
    order = list(zip(places, sizes, strict=True))
    runs = [list(run) for _, run in itertools.groupby(order, key=lambda one: one[0])]
    copied = sum(run[0][1] for run in runs)
    return copied, sum(sizes), sum(dict(order).values())


@pytest.mark.parametrize("name", WALKED)
def test_bytes_are_those_of_a_walk_over_the_grid(name) -> None:
    kernel, maps, shape = WALKED[name]
    x = np.linspace(0.1, 1.0, np.prod(shape), dtype=np.float32).reshape(shape)
    w = np.ones((16, 16), np.float32)
    grid = tuple(-(-size // 4) for size in shape)
    aliases = {0: 0} if name == "an update in place" else {}

    def function(x, w):
        return pl.pallas_call(
            kernel,
            minijax.ShapeDtypeStruct(shape, np.float32),
            grid=grid,
            in_specs=[pl.BlockSpec((4, 4), one) for one in maps[:2]],
            out_specs=pl.BlockSpec((4, 4), maps[2]),
            input_output_aliases=aliases,
        )(x, w)

    view = see.kernel(function, x, w)
    record = view.recording
    counts = [walked(m, a, grid) for m, a in zip(maps, (shape, (16, 16), shape))]
    for operand, count in zip(record.operands, counts, strict=True):
        assert (operand.copied, operand.used, operand.ideal) == count, operand.name
    fetched, used, needed = (sum(c[n] for c in counts[:2]) for n in range(3))
    assert (record.fetched, record.needed) == (fetched, needed)
    assert record.written == counts[2][0]
    assert len(record.places) == np.prod(grid)
    counts_told = re.findall(r"([\d,]+) (?:B |would do)", record.headline)
    told = [int(number.replace(",", "")) for number in counts_told]
    if not record.wrong:
        again = [fetched, needed] if fetched > needed else [fetched, counts[2][0]]
        assert told[:2] == again
