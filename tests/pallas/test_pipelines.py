"""Pipelines, copies and core meshes inside of kernels, and other names of a TPU."""

import re

import jax
import numpy as np
import pytest
from jax.experimental import pallas as jax_pl
from jax.experimental.pallas import tpu as jax_pltpu

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from tests.pallas.kernels import Library

OURS = Library("minijax", interpret=False)
JAX = Library("jax", interpret=True)
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
WATCHED = pltpu.InterpretParams(detect_races=True)


def struct(*shape, dtype=np.float32):
    return minijax.ShapeDtypeStruct(shape, dtype)


def numbers(*shape):
    return np.random.RandomState(0).randn(*shape).astype(np.float32)


@pytest.mark.parametrize("interpret", [False, WATCHED])
def test_a_pipeline_of_products(interpret):
    def kernel(x_ref, y_ref, o_ref, sum_ref):
        def body(x_ref, y_ref, o_ref, sum_ref):
            @pl.when(pl.program_id(2) == 0)
            def _():
                sum_ref[...] = jnp.zeros_like(sum_ref)

            sum_ref[...] += x_ref[...] @ y_ref[...]

            @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
            def _():
                o_ref[...] = sum_ref[...]

        pipeline = pltpu.emit_pipeline(
            body,
            grid=(2, 2, 3),
            in_specs=[
                pl.BlockSpec((4, 8), lambda i, j, k: (i, k)),
                pl.BlockSpec((8, 4), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        )
        pipeline(x_ref, y_ref, o_ref, scratches=(sum_ref,))

    f = pl.pallas_call(
        kernel,
        struct(8, 8),
        in_specs=[ANYWHERE] * 2,
        out_specs=ANYWHERE,
        scratch_shapes=[pltpu.VMEM((4, 4), np.float32)],
        interpret=interpret,
    )
    x, y = numbers(8, 24), numbers(24, 8)
    np.testing.assert_allclose(f(x, y), x @ y, rtol=1e-5, atol=1e-5)


def test_a_pipeline_in_each_program():
    """The pipeline's grid is its own; rows of the outer grid come from outside."""

    def kernel(x_ref, o_ref):
        outer = pl.program_id(0)

        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...] + 10 * outer + pl.program_id(0)

        row = pl.BlockSpec((None, 2), lambda j: (0, j))
        pltpu.emit_pipeline(body, grid=(3,), in_specs=[row], out_specs=[row])(
            x_ref, o_ref
        )

    row = pl.BlockSpec((1, 6), lambda i: (i, 0))
    f = pl.pallas_call(kernel, struct(2, 6), grid=(2,), in_specs=[row], out_specs=row)
    expected = np.array([[0, 0, 1, 1, 2, 2], [10, 10, 11, 11, 12, 12]])
    np.testing.assert_array_equal(f(np.zeros((2, 6), np.float32)), expected)


def pipelined(x=np.ones(8, np.float32), refs=1, body=None, **options):
    def kernel(x_ref, o_ref):
        def copy(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        options.setdefault("in_specs", [pl.BlockSpec((4,), lambda i: (i,))])
        options.setdefault("out_specs", [pl.BlockSpec((4,), lambda i: (i,))])
        options.setdefault("grid", (2,))
        pltpu.emit_pipeline(body or copy, **options)(*[x_ref] * refs, o_ref)

    return pl.pallas_call(kernel, struct(*x.shape))(x)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"grid": (0,)}, ValueError, "strictly positive"),
        ({"refs": 2}, ValueError, "2 specs .* 3 refs"),
        ({"body": lambda x, o: x[...]}, ValueError, "must return None"),
        ({"x": np.ones(6, np.float32)}, NotImplementedError, "must divide the array"),
        ({"x": np.ones((8, 2), np.float32)}, ValueError, "number of dimensions"),
        (
            {"in_specs": [pl.BlockSpec((4,), lambda i: (i, 0))]},
            ValueError,
            "must return 1 values",
        ),
        ({"core_axis": 0}, NotImplementedError, "core_axis=0 is for the cores"),
    ],
)
def test_wrong_pipelines(options, error, words):
    with pytest.raises(error, match=words):
        pipelined(**options)


def copying(library, watched=None):
    """The second half doubled by way of a buffer, in two copies at once."""
    pl, pltpu = library.pl, library.tpu

    def kernel(x_ref, o_ref, buffer_ref, semaphores):
        halves = [
            pltpu.make_async_copy(
                x_ref.at[pl.ds(8 + 4 * i, 4)],
                buffer_ref.at[pl.ds(4 * i, 4)],
                semaphores.at[i],
            )
            for i in range(2)
        ]
        for half in halves:
            half.start()
        for half in halves:
            half.wait()
        buffer_ref[...] = buffer_ref[...] * 2
        pltpu.sync_copy(buffer_ref, o_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    interpret = pltpu.InterpretParams() if library is JAX else watched or False
    return library.call(
        kernel,
        (8, 128),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[
            pltpu.VMEM((8, 128), np.float32),
            pltpu.SemaphoreType.DMA((2,)),
        ],
        interpret=interpret,
    )


def test_copies():
    x = numbers(16, 128)
    np.testing.assert_array_equal(copying(OURS)(x), copying(JAX)(x))
    np.testing.assert_array_equal(copying(OURS, WATCHED)(x), x[8:] * 2)
    np.testing.assert_array_equal(copying(OURS)(x), x[8:] * 2)


def test_copies_print_as_in_jax():
    x = numbers(16, 128)
    texts = (
        str(minijax.make_jaxpr(copying(OURS))(x)),
        str(jax.make_jaxpr(copying(JAX))(x)).replace("dma_sem[", "i32["),
    )
    ours, theirs = (
        [
            line.strip()
            for line in text.splitlines()
            if re.search("dma_(start|wait)|Ref<", line)
        ]
        for text in texts
    )
    assert ours == theirs and len(ours) > 8


def test_copies_that_do_not_fit():
    def kernel(x_ref, o_ref, semaphores):
        pltpu.make_async_copy(x_ref.at[pl.ds(0, 2)], o_ref, semaphores.at[0])

    scratch = [pltpu.SemaphoreType.DMA((2,))]
    with pytest.raises(ValueError, match="must have the same shape and dtype"):
        pl.pallas_call(kernel, struct(8), scratch_shapes=scratch)(jnp.ones(8))

    def kernel(x_ref, o_ref, semaphores):
        pltpu.async_copy(x_ref, o_ref, semaphores)

    with pytest.raises(ValueError, match="choose one with `sem.at"):
        pl.pallas_call(kernel, struct(8), scratch_shapes=scratch)(jnp.ones(8))


def on_cores(library, **options):
    """Each core takes eight rows, and multiplies them by its number plus one."""
    mesh = library.tpu.create_tensorcore_mesh("core", num_cores=2)

    @library.pl.kernel(
        out_type=library.struct((16, 128)),
        mesh=mesh,
        scratch_types=[library.tpu.VMEM((8, 128), np.float32)],
        **options,
    )
    def kernel(x_ref, o_ref, buffer_ref):
        core = library.lax.axis_index("core")
        rows = library.pl.ds(core * 8, 8)
        library.tpu.sync_copy(x_ref.at[rows], buffer_ref)
        buffer_ref[...] = buffer_ref[...] * (core + 1)
        library.tpu.sync_copy(buffer_ref, o_ref.at[rows])

    return kernel


def test_a_kernel_on_a_mesh_of_cores():
    x = numbers(16, 128)
    theirs = on_cores(JAX, interpret=jax_pltpu.InterpretParams())(x)
    np.testing.assert_array_equal(on_cores(OURS)(x), theirs)
    np.testing.assert_array_equal(minijax.jit(on_cores(OURS))(x), theirs)
    np.testing.assert_array_equal(on_cores(OURS, interpret=WATCHED)(x), theirs)
    with pytest.raises(TypeError, match="create_tensorcore_mesh"):
        pl.kernel(lambda x, o: None, struct(8), mesh=None)
    with pytest.raises(ValueError, match="num_cores must be"):
        pltpu.create_tensorcore_mesh("core")


def test_axes_of_the_grid_have_names():
    def kernel(o_ref):
        i, j = lax.axis_index("rows"), pl.program_id(1)
        o_ref[i, j] = 10 * i + j

    f = pl.pallas_call(
        kernel, struct(2, 3, dtype=np.int32), grid=(("rows", 2), ("columns", 3))
    )
    np.testing.assert_array_equal(f(), [[0, 1, 2], [10, 11, 12]])


@pytest.mark.parametrize(
    "options",
    [{"shift": 3, "axis": 1}, {"shift": 1, "axis": 1, "stride": 2, "stride_axis": 0}],
)
def test_roll(options):
    def build(library):
        def kernel(x_ref, o_ref):
            o_ref[...] = library.tpu.roll(x_ref[...], **options)

        return library.call(kernel, (8, 128))

    x = numbers(8, 128)
    np.testing.assert_array_equal(build(OURS)(x), build(JAX)(x))
    with pytest.raises(ValueError, match="axis is out of range"):
        pltpu.roll(x, 1, 2)


def test_roll_by_a_computed_number():
    x = numbers(4, 8)
    rolled = minijax.jit(lambda x, n: pltpu.roll(x, n, 1))(x, 11)
    np.testing.assert_array_equal(rolled, np.roll(x, 11, 1))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16])
def test_bitcast(dtype):
    def build(library):
        rows = 16 * 2 // np.dtype(dtype).itemsize

        def kernel(x_ref, o_ref):
            o_ref[...] = library.tpu.bitcast(x_ref[...], dtype)

        return library.call(kernel, (rows, 128), dtype)

    x = np.arange(2048, dtype=np.int16).reshape(16, 128) * 7
    np.testing.assert_array_equal(build(OURS)(x), build(JAX)(x))
    with pytest.raises(ValueError, match="cannot be packed"):
        pltpu.bitcast(np.ones((1, 128), np.int8), np.int32)


def test_load_and_store():
    def build(library):
        def kernel(x_ref, o_ref):
            o_ref[...] = library.np.zeros_like(o_ref)
            doubled = library.tpu.load(x_ref) * 2
            library.tpu.store(o_ref, doubled, mask=x_ref[...] > 3)

        return library.call(kernel, (8,))

    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(build(OURS)(x), build(JAX)(x))


def test_estimated_costs():
    def layer(x, w, activation):
        return activation(x @ w) ** 3 / 2 + minijax.numpy.max(x)

    def theirs(x, w, activation):
        return activation(x @ w) ** 3 / 2 + jax.numpy.max(x)

    x, w = numbers(8, 16), numbers(16, 4)
    ours = pl.estimate_cost(layer, struct(8, 16), w, activation=jnp.tanh)
    other = jax_pl.estimate_cost(theirs, x, w, activation=jax.numpy.tanh)
    assert ours.flops == other.flops > 0
    assert ours.transcendentals == other.transcendentals == 32
    assert ours.bytes_accessed == other.bytes_accessed


def test_memory_without_values():
    tree = pl.empty_like(
        {"a": np.ones(3, np.float32), "b": struct(2, 2, dtype=np.int32)}
    )
    assert tree["b"].shape == (2, 2) and tree["b"].dtype == np.int32
    assert pl.empty((2,), np.float32).shape == (2,)
    assert pl.empty_ref_like(pltpu.VMEM((8,), np.float32)).shape == (8,)
    with pytest.raises(ValueError, match="does not support"):
        pl.empty_ref_like(3)


@pytest.mark.parametrize(
    "options",
    [{}, {"trans_a": True}, {"trans_b": True}, {"allow_tf32": False}],
)
def test_dot_of_a_gpu(options):
    shapes = {"trans_a": [(8, 4), (8, 6)], "trans_b": [(4, 8), (6, 8)]}
    left, right = shapes.get(next(iter(options), ""), [(4, 8), (8, 6)])

    def build(library):
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = library.triton.dot(x_ref[...], y_ref[...], **options)

        return library.call(kernel, (4, 6))

    x, y = numbers(*left).astype(np.float16), numbers(*right).astype(np.float16)
    np.testing.assert_allclose(build(OURS)(x, y), build(JAX)(x, y), rtol=1e-5)
    with pytest.raises(ValueError, match="must be 2D arrays"):
        OURS.triton.dot(x[0], y)


def test_max_contiguous():
    x = jnp.arange(8)
    assert OURS.triton.max_contiguous(x, 8) is x
    with pytest.raises(ValueError, match="positive"):
        OURS.triton.max_contiguous(x, 0)
