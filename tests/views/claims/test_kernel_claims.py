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
