"""The teaching interpreter: values of the table, and what it finds in wrong kernels."""

import linecache
import tempfile

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.experimental.pallas import triton as pltriton
from tests.pallas.kernels import TABLE, Library
from tests.pallas.test_kernels import flat

WATCHED = pltpu.InterpretParams(detect_races=True)
OURS = Library("minijax", interpret=WATCHED)
X = np.arange(8, dtype=np.float32)


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_values(entry):
    got = flat(OURS, entry.build(OURS)(*entry.args))
    expected = flat(OURS, entry.expected(*entry.args))
    for ours, by_numpy in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, by_numpy, rtol=1e-4, atol=1e-4)
    assert {f.kind for f in pltpu.findings()} <= {"padding", "race"}


def struct(*shape, dtype=jnp.float32):
    return minijax.ShapeDtypeStruct(shape, dtype)


def found(kernel, out_shape, *args, params=WATCHED, **options):
    """The findings of one interpreted call, without notes on padding."""
    pl.pallas_call(kernel, out_shape, interpret=params, **options)(*args)
    return [f for f in pltpu.findings() if f.kind != "padding"]


def total(x_ref, o_ref):
    o_ref[...] += x_ref[...]


ROWS = pl.BlockSpec((1, 4), lambda i: (i, 0))
SAME = pl.BlockSpec((1, 4), lambda i: (0, 0))


def test_race_between_two_programs(capsys):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    x = jnp.ones((3, 4))
    (race,) = found(kernel, struct(1, 4), x, grid=(3,), in_specs=[ROWS], out_specs=SAME)
    assert race.kind == "race"
    assert race.memory == "o_ref"
    assert (race.program, race.other_program) == ((1,), (0,))
    assert "test_interpreter.py" in race.line and "o_ref[...] = x_ref[...]" in race.line
    assert race.other_line == race.line
    assert race.element == (0, 0)
    assert "dimension_semantics" in race.message
    assert str(race) in capsys.readouterr().out


def test_a_line_of_a_notebook():
    text = "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n"
    path = f"{tempfile.gettempdir()}/ipykernel_77/1234.py"
    linecache.cache[path] = len(text), None, text.splitlines(True), path
    names: dict = {}
    exec(compile(text, path, "exec"), names)
    x = jnp.ones((3, 4))
    specs = {"in_specs": [ROWS], "out_specs": SAME}
    (race,) = found(names["kernel"], struct(1, 4), x, grid=(3,), **specs)
    assert race.line == "cell:2: o_ref[...] = x_ref[...]"


@pytest.mark.parametrize(
    "params, kinds",
    [
        (None, {"race"}),
        (pltriton.CompilerParams(), {"race"}),
        (pltpu.CompilerParams(dimension_semantics=("parallel",)), {"race"}),
        (pltpu.CompilerParams(dimension_semantics=(pltpu.ARBITRARY,)), set()),
    ],
)
def test_sequential_axes_have_no_races(params, kinds):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    got = found(
        kernel,
        struct(1, 4),
        jnp.ones((3, 4)),
        grid=(3,),
        in_specs=[ROWS],
        out_specs=SAME,
        compiler_params=params,
    )
    assert {f.kind for f in got} == kinds


def test_a_race_with_a_program_that_read_before_the_writer_read():
    def kernel(x_ref, o_ref, next_ref):
        i = pl.program_id(0)
        next_ref[i] = x_ref[jnp.minimum(i + 1, 3)]
        o_ref[i] = x_ref[i] + 1.0

    aliases = {"input_output_aliases": {0: 0}, "grid": (4,)}
    (race,) = found(kernel, [struct(4), struct(4)], jnp.ones(4), **aliases)
    assert (race.memory, race.element, race.program) == ("o_ref", (1,), (1,))
    assert race.other_program == (0,) and "next_ref[i] =" in race.other_line


def test_races_are_not_looked_for_unless_asked():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    got = found(
        kernel,
        struct(1, 4),
        jnp.ones((3, 4)),
        params=pltpu.InterpretParams(),
        grid=(3,),
        in_specs=[ROWS],
        out_specs=SAME,
    )
    assert got == []


def test_scratch_that_another_core_filled():
    def kernel(x_ref, o_ref, s_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            s_ref[...] = x_ref[...]

        o_ref[...] = s_ref[...]

    (race,) = found(
        kernel,
        struct(3, 4),
        jnp.ones((3, 4)),
        grid=(3,),
        in_specs=[ROWS],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((1, 4), jnp.float32)],
    )
    assert (race.memory, race.program, race.other_program) == ("s_ref", (1,), (0,))
    assert "another core" in race.message


def test_race_with_a_reader():
    def kernel(x_ref, o_ref):
        i = pl.program_id(0)
        o_ref[i] = x_ref[i]
        o_ref[3 - i] = o_ref[i] + 1

    got = found(kernel, struct(4), jnp.ones(4), grid=(4,))
    assert {f.kind for f in got} == {"race"}


def test_atomic_updates_do_not_race():
    def kernel(x_ref, start_ref, o_ref):
        pltriton.atomic_add(o_ref, (0,), x_ref[0])

    one = pl.BlockSpec((1,), lambda i: (i,))
    same = pl.BlockSpec((1,), lambda i: (0,))
    got = found(
        kernel,
        struct(1),
        jnp.ones(3),
        jnp.zeros(1),
        grid=(3,),
        in_specs=[one, same],
        out_specs=same,
        input_output_aliases={1: 0},
    )
    assert got == []


def test_uninitialized_read():
    (first,) = found(total, struct(8), X)
    assert first.kind == "uninitialized"
    assert (first.memory, first.element, first.program) == ("o_ref", (0,), ())
    assert "o_ref[0] and 7 more" in first.message
    assert "o_ref[...] += x_ref[...]" in first.line


def test_zeros_are_values_when_asked_for():
    zeros = pltpu.InterpretParams(uninitialized_memory="zero")
    f = pl.pallas_call(total, struct(8), interpret=zeros)
    np.testing.assert_array_equal(f(X), X)


def test_missing_write():
    def kernel(x_ref, o_ref):
        o_ref[1:3] = x_ref[:2]

    (missing,) = found(kernel, struct(8), X)
    assert missing.kind == "missing write"
    assert "6 of 8 elements of o_ref" in missing.message
    assert missing.element == (0,)


def test_blocks_that_no_program_writes():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((4,), lambda i: (i,))
    (missing,) = found(
        kernel, struct(8), X, grid=(1,), in_specs=[block], out_specs=block
    )
    assert missing.element == (4,)


def test_a_grid_without_programs():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    (missing,) = found(kernel, struct(8), X, grid=(0,))
    assert missing.kind == "missing write" and missing.program == ()


@pytest.mark.parametrize("where", ["reads", "writes"])
def test_out_of_bounds(where):
    def kernel(x_ref, o_ref):
        i = pl.program_id(0) + 3
        if where == "reads":
            o_ref[0] = x_ref[i]
        else:
            o_ref[i] = x_ref[0]

    f = pl.pallas_call(kernel, struct(4), grid=(3,), interpret=WATCHED)
    with pytest.raises(IndexError, match=rf"program \(1,\) {where} outside of"):
        f(jnp.ones(4))
    (finding,) = [f for f in pltpu.findings() if f.kind == "out of bounds"]
    assert finding.program == (1,)
    assert "[i]" in finding.line


def test_out_of_bounds_reads_may_have_no_value():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(pl.program_id(0) + 2, 4)]

    loose = pltpu.InterpretParams(out_of_bounds_reads="uninitialized")
    f = pl.pallas_call(kernel, struct(4), grid=(1,), interpret=loose)
    got = np.asarray(f(jnp.arange(4.0)))
    np.testing.assert_array_equal(got, [2, 3, np.nan, np.nan])
    assert [f.kind for f in pltpu.findings()] == ["out of bounds"]


@pytest.mark.parametrize("interpret", [True, WATCHED])
def test_index_map_that_asks_for_its_place_inside_of_jit_or_cond(interpret):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    place = minijax.jit(lambda: pl.program_id(0))
    for ask in (place, lambda: lax.cond(True, place, lambda: 0)):
        f = pl.pallas_call(
            kernel,
            struct(8),
            grid=(2,),
            in_specs=[pl.BlockSpec((4,), lambda i, ask=ask: (ask(),))],
            out_specs=pl.BlockSpec((4,), lambda i: (i,)),
            interpret=interpret,
        )
        np.testing.assert_array_equal(f(X), 2 * np.asarray(X))


def test_index_map_out_of_bounds():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((4,), lambda i: (i,))
    ahead = pl.BlockSpec((4,), lambda i: (i + 1,))
    f = pl.pallas_call(
        kernel,
        struct(8),
        grid=(2,),
        in_specs=[ahead],
        out_specs=block,
        interpret=WATCHED,
    )
    with pytest.raises(
        IndexError, match=r"index map of args\[0\] gives program \(1,\)"
    ):
        f(X)


def test_padding_is_noted_and_not_printed(capsys):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((3,), lambda i: (i,))
    assert (
        found(kernel, struct(8), X, grid=(3,), in_specs=[block], out_specs=block) == []
    )
    (note,) = pltpu.findings()
    assert note.kind == "padding" and note.program == (2,)
    assert capsys.readouterr().out == ""
    pltpu.reset_tpu_interpret_mode_state()
    assert pltpu.findings() == []


def test_inside_of_jit():
    f = pl.pallas_call(total, struct(8), interpret=WATCHED)
    out = minijax.jit(lambda x: f(x) + 1)(X)
    assert np.isnan(np.asarray(out)).all()
    assert [f.kind for f in pltpu.findings()] == ["uninitialized"]


def test_order_and_recorder():
    seen = []
    params = pltpu.InterpretParams(
        random_seed=3, grid_point_recorder=lambda place, core: seen.append(place)
    )

    def kernel(o_ref):
        o_ref[...] = pl.program_id(0) * 10 + pl.program_id(1)

    f = pl.pallas_call(
        kernel,
        struct(4, 3, dtype=jnp.int32),
        grid=(4, 3),
        out_specs=pl.BlockSpec((None, None), lambda i, j: (i, j)),
        interpret=params,
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary")
        ),
    )
    got = np.asarray(f())
    np.testing.assert_array_equal(got, 10 * np.arange(4)[:, None] + np.arange(3))
    assert sorted(seen) != seen and len(set(seen)) == 12
    assert [place[1] for place in seen] == [0, 1, 2] * 4


def test_forced_for_all_kernels():
    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    with pltpu.force_tpu_interpret_mode():
        f = pl.pallas_call(kernel, struct(8))
    f(X)
    assert [f.kind for f in pltpu.findings()] == ["uninitialized"]


@pytest.mark.parametrize(
    "options, error",
    [
        ({"uninitialized_memory": "one"}, ValueError),
        ({"out_of_bounds_reads": "ignore"}, ValueError),
        ({"num_cores_or_threads": 0}, ValueError),
        ({"num_cores_or_threads": 2}, NotImplementedError),
        ({"skip_floating_point_ops": True}, NotImplementedError),
        ({"buffer_bounds": "padded"}, NotImplementedError),
        ({"vector_clock_size": 8}, NotImplementedError),
    ],
)
def test_parameters_are_honoured_or_refused(options, error):
    with pytest.raises(error, match="(?i)" + next(iter(options)).split("_")[0][:3]):
        pltpu.InterpretParams(**options)
