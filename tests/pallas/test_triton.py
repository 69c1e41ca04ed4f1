"""Kernels for a GPU: their Triton modules, and the PTX that an H100 would run."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.backend import cuda, triton
from minijax.core import hlo
from minijax.core.language import all_primitives
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.kernels.triton import kernel_call
from minijax.kernels.triton.kernel_context import gpu
from tests.pallas import gpu_kernels, kernels, triton_in_numpy
from tests.pallas.kernels import Library

OURS = Library("minijax", False)
needs_compiler = pytest.mark.skipif(
    not cuda.is_installed(), reason="jax-cuda13-pjrt (minijax[h100]) is missing"
)


def lowered_for_gpu(function, args):
    return minijax.jit(function).trace(*args).lower(lowering_platforms=("cuda",))


@pytest.fixture(scope="module", params=gpu_kernels.KERNELS)
def kernel(request):
    return (request.param, *gpu_kernels.KERNELS[request.param](OURS))


# ----------------------------------------------------------------------------------
# What the kernels compute
# ----------------------------------------------------------------------------------


def close(found, expected, dtype):
    tolerance = 2e-2 if np.dtype(dtype).itemsize == 2 else 2e-3
    np.testing.assert_allclose(
        np.asarray(found, np.float64), expected, rtol=tolerance, atol=tolerance
    )


def test_a_loop_on_the_cpu_gives_the_reference(kernel):
    _, function, args, expected = kernel
    with minijax.default_device(minijax.devices("cpu")[0]):
        found = minijax.jit(function)(*args)
    wanted = expected(*args)
    pairs = zip(found, wanted) if isinstance(wanted, list) else [(found, wanted)]
    for one, other in pairs:
        close(one, other, one.dtype)


def in_numpy(function, args):
    """The results of the only kernel of a function, its module run in NumPy."""
    lowered = lowered_for_gpu(function, args)
    (call,) = calls_in(lowered.compiler_ir())
    config = call.attributes["mhlo.backend_config"]
    grid = [config[f"grid_{axis}"].value for axis in "xyz"]
    closed = minijax.make_jaxpr(function)(*args)
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "pallas_call"]
    # What comes before the kernel runs on the CPU.
    before = closed.jaxpr.replace(
        eqns=closed.eqns[: closed.eqns.index(eqn)], outvars=list(eqn.invars)
    )
    given = minijax.core.eval_jaxpr(before, closed.consts, *args)
    inputs = [np.array(x) for x in given]
    aliases = {out: given for given, out in eqn.params["input_output_aliases"]}
    outputs = [
        inputs[aliases[n]].copy()
        if n in aliases
        else np.zeros(v.aval.shape, v.aval.dtype)
        for n, v in enumerate(eqn.outvars)
    ]
    flat = [x.reshape(-1) for x in (*inputs, *outputs)]
    bytes_of_bools = [x.view(np.int8) if x.dtype == bool else x for x in flat]
    triton_in_numpy.run(lowered.as_text("triton"), grid, bytes_of_bools)
    return [x.reshape(y.shape) for x, y in zip(flat[len(inputs) :], outputs)]


def calls_in(module):
    found = []

    def look(operation):
        for region in operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    name = inner.operation.name
                    if name == "stablehlo.custom_call":
                        found.append(inner)
                    look(inner.operation)

    look(module.operation)
    return found


def test_the_module_computes_the_reference(kernel):
    """Every operation of the module, carried out in NumPy for each program."""
    _, function, args, expected = kernel
    wanted = expected(*args)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    for found, one in zip(in_numpy(function, args), wanted, strict=True):
        close(found, one, found.dtype)


# Of the kernels for every machine, those whose sizes are powers of two.
def lowerable():
    for entry in kernels.TABLE:
        function = entry.build(OURS)
        try:
            lowered_for_gpu(function, entry.args).as_text("triton")
        except (NotImplementedError, TypeError):
            continue
        closed = minijax.make_jaxpr(function)(*entry.args)
        names = [eqn.primitive.name for eqn in closed.eqns]
        if names.count("pallas_call") == 1 and names[-1] == "pallas_call":
            if closed.jaxpr.outvars == list(closed.eqns[-1].outvars):
                yield entry


LOWERABLE = list(lowerable())


@pytest.mark.parametrize("entry", LOWERABLE, ids=lambda entry: entry.name)
def test_kernels_for_every_machine(entry):
    function = entry.build(OURS)
    found = in_numpy(function, entry.args)
    expected = minijax.tree_util.tree_leaves(minijax.jit(function)(*entry.args))
    for one, other in zip(found, expected):
        if one.shape == other.shape:
            np.testing.assert_allclose(one, np.asarray(other), rtol=1e-4, atol=1e-5)


def test_enough_of_them_can_be_lowered():
    assert len(LOWERABLE) >= 20


# ----------------------------------------------------------------------------------
# The program around it
# ----------------------------------------------------------------------------------


@needs_compiler
def test_ptx_for_an_h100(kernel):
    name, function, args, _ = kernel
    compiled = minijax.jit(function).lower(*args).compile(target="h100")
    text = compiled.as_text("ptx")
    assert ".target sm_90a" in text and text.count(".entry") >= 1
    assert "tt.func public" in compiled.as_text("triton")
    products = text.count("wgmma.mma") + text.count("mma.sync")
    assert bool(products) == (name.startswith(("matmul", "flash")))
    if name == "matmul_in_bfloat16":
        assert "wgmma.mma" in text and "cp.async" in text
    if name == "histogram":
        assert "atom" in text


def config_of(library, function, args):
    traced = library.jit(function).trace(*args)
    lowered = traced.lower(lowering_platforms=("cuda",))
    (call,) = calls_in(lowered.compiler_ir(dialect="stablehlo"))
    return call.attributes["mhlo.backend_config"]


KEYS = ("name", "num_warps", "num_stages", "grid_x", "grid_y", "grid_z", "debug")
# What computes; addresses and constants are written in other ways.
COMPARED = ("tt.dot", "tt.reduce", "tt.atomic_rmw", "tt.store", "scf.for", "scf.if")


@pytest.mark.parametrize("name", gpu_kernels.KERNELS)
def test_as_in_jax(name):
    """The call's parameters, and how often what computes stands in the module."""
    jax = pytest.importorskip("jax")
    theirs = Library("jax", False)
    built = {}
    for library in (OURS, theirs):
        if library is theirs and not hasattr(theirs.triton, "CompilerParams"):
            pytest.skip("this jax has no Triton")
        function, args, _ = gpu_kernels.KERNELS[name](with_triton(library))
        built[library] = config_of(library.lib, function, args)
    ours, of_jax = built[OURS], built[theirs]
    for key in KEYS:
        assert str(ours[key]) == str(of_jax[key]), key
    texts = []
    for config in (ours, of_jax):
        with triton.module("read"):
            made = hlo.ir.Module.parse(config["ir"].value_bytes)
            texts.append(hlo.module_to_text(made))
    for operation in COMPARED:
        counts = [len(re.findall(rf"\b{operation}\b(?!\.)", text)) for text in texts]
        assert counts[0] == counts[1], operation
    assert jax.__version__


def with_triton(library):
    """The library, with every kernel given Triton's parameters."""

    class Chosen(Library):
        def call(self, kernel, shape, dtype=np.float32, **options):
            options.setdefault("compiler_params", self.triton.CompilerParams())
            return super().call(kernel, shape, dtype, **options)

    return Chosen(library.lib.__name__, False)


def test_each_rule_is_of_a_primitive():
    assert set(gpu.rules) <= set(all_primitives)


def test_a_grid_of_many_axes():
    """x counts the programs; each axis is computed from it."""

    def write(o_ref):
        places = [pl.program_id(axis) for axis in range(4)]
        number = ((places[0] * 3 + places[1]) * 2 + places[2]) * 2 + places[3]
        o_ref[...] = jnp.full((1,), number, np.int32)

    call = pl.pallas_call(
        write,
        minijax.ShapeDtypeStruct((24,), np.int32),
        grid=(2, 3, 2, 2),
        out_specs=pl.BlockSpec((1,), lambda a, b, c, d: (a * 12 + b * 4 + c * 2 + d,)),
    )
    (found,) = in_numpy(call, ())
    assert found.tolist() == list(range(24))
    assert config_of(minijax, call, ())["grid_x"].value == 24


# ----------------------------------------------------------------------------------
# What cannot be
# ----------------------------------------------------------------------------------

X = np.ones((16, 16), np.float32)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def refused(kernel_function, shape=(16, 16), args=(X,), **options):
    call = OURS.call(kernel_function, shape, **options)
    with pytest.raises((NotImplementedError, TypeError)) as caught:
        lowered_for_gpu(call, args)
    return str(caught.value)


def test_sizes_that_are_no_power_of_two():
    message = refused(copy, (6, 8), (np.ones((6, 8), np.float32),))
    assert "each size must be a power of two" in message and "test_triton.py" in message


def test_an_operation_that_triton_lacks():
    def flipped(x_ref, o_ref):
        o_ref[...] = x_ref[...][::-1]

    message = refused(flipped)
    assert "no lowering of 'rev' to Triton" in message and "test_triton.py" in message


def test_parameters_of_another_machine():
    message = refused(copy, compiler_params=pltpu.CompilerParams())
    assert "is not for Triton" in message and "pltriton.CompilerParams" in message

    class MosaicGpuParams:
        pass

    with pytest.raises(TypeError, match=r"pltriton.CompilerParams\(...\) for a GPU"):
        OURS.call(copy, (16, 16), compiler_params=MosaicGpuParams())
    with pytest.raises(TypeError, match="does not compile by Mosaic GPU"):
        kernel_call.params_of(MosaicGpuParams())


def test_scratch_and_prefetched_scalars():
    def scratched(x_ref, o_ref, sum_ref):
        o_ref[...] = x_ref[...]

    message = refused(scratched, scratch_shapes=[pltpu.VMEM((16, 16), np.float32)])
    assert "scratch memory" in message and "fori_loop" in message
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[pl.BlockSpec((16, 16), lambda i, s: (0, 0))],
        out_specs=pl.BlockSpec((16, 16), lambda i, s: (0, 0)),
    )
    call = OURS.call(lambda s, x, o: copy(x, o), (16, 16), grid_spec=spec)
    with pytest.raises(NotImplementedError, match="prefetched scalars"):
        lowered_for_gpu(call, (np.zeros(1, np.int32), X))


def add(x_ref, o_ref):
    o_ref[...] += x_ref[...]


def add_by_loads(x_ref, o_ref):
    lib = OURS.triton
    lib.store(o_ref, lib.load(o_ref) + lib.load(x_ref))


def add_in_a_loop(x_ref, o_ref):
    minijax.lax.fori_loop(0, 3, lambda i, _: add(x_ref, o_ref), None)


def add_where(x_ref, o_ref):
    @pl.when(pl.program_id(1) < 3)
    def _():
        add(x_ref, o_ref)


def add_rows(x_ref, o_ref):
    for row in range(8):
        o_ref[row, :] = o_ref[row, :] + x_ref[row, :]


@pytest.mark.parametrize(
    "function", [add, add_by_loads, add_in_a_loop, add_where, add_rows]
)
def test_sums_over_programs(function):
    """One after another they are right on a TPU and here; a GPU runs them at once."""

    def summed(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        function(x_ref, o_ref)

    options = dict(
        grid=(2, 4),
        in_specs=[pl.BlockSpec((8, 4), lambda i, k: (i, k))],
        out_specs=pl.BlockSpec((8, 4), lambda i, k: (i, 0)),
    )
    message = refused(summed, (16, 4), **options)
    assert "along axis 1 of its grid" in message and "`fori_loop`" in message
    with minijax.default_device(minijax.devices("cpu")[0]):
        found = OURS.call(summed, (16, 4), **options)(X)
    times = {add_where: 3.0, add_in_a_loop: 12.0}.get(function, 4.0)
    np.testing.assert_array_equal(found, times)


def test_programs_that_write_before_they_read():
    def twice(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        o_ref[...] = o_ref[...] * 2

    block = pl.BlockSpec((16, 16), lambda i: (0, 0))
    call = OURS.call(twice, (16, 16), grid=(2,), in_specs=[block], out_specs=block)
    (found,) = in_numpy(call, (X,))
    np.testing.assert_array_equal(found, X * 2)


def test_programs_that_read_what_they_wrote_themselves():
    def kernel(x_ref, o_ref):
        mine = pl.ds(pl.program_id(0) * 8, 8)
        o_ref[mine, :] = x_ref[mine, :]
        o_ref[mine, :] = o_ref[mine, :] + 1.0

    call = OURS.call(kernel, (16, 16), grid=(2,))
    (found,) = in_numpy(call, (X,))
    np.testing.assert_array_equal(found, X + 1)


def test_small_products_and_mixed_dtypes():
    def small(x_ref, o_ref):
        o_ref[...] = x_ref[...] @ x_ref[...]

    message = refused(small, (8, 8), (np.ones((8, 8), np.float32),))
    assert "at least 16 elements" in message

    def of_integers(x_ref, o_ref):
        o_ref[...] = x_ref[...] @ x_ref[...]

    x = np.ones((16, 16), np.int32)
    call = OURS.call(of_integers, (16, 16), np.int32)
    with pytest.raises(NotImplementedError, match="of integers it is int8"):
        lowered_for_gpu(call, (x,))


def test_a_kernel_that_is_interpreted_is_a_loop():
    call = OURS.call(copy, (16, 16), interpret=True)
    assert "xla.gpu.triton" not in lowered_for_gpu(call, (X,)).as_text()


def test_dialects_of_other_machines():
    lowered = lowered_for_gpu(OURS.call(copy, (16, 16)), (X,))
    assert "tt.store" in lowered.as_text("triton")
    with pytest.raises(ValueError, match="unknown dialect"):
        lowered.as_text("mosaic")


# ----------------------------------------------------------------------------------
# On a GPU
# ----------------------------------------------------------------------------------


@pytest.mark.gpu
def test_on_a_gpu(kernel):
    _, function, args, expected = kernel
    gpu_device = minijax.devices("cuda")[0]
    # Products of float32 keep 11 bits there unless all are asked for.
    with minijax.default_matmul_precision("highest"):
        found = minijax.jit(function)(*minijax.device_put(args, gpu_device))
    wanted = expected(*args)
    pairs = zip(found, wanted) if isinstance(wanted, list) else [(found, wanted)]
    for one, other in pairs:
        close(one, other, one.dtype)


# jax 0.11 leaves out an addition whose result nobody reads.
@pytest.mark.gpu
@pytest.mark.parametrize("name", [n for n in gpu_kernels.KERNELS if n != "histogram"])
def test_on_a_gpu_as_in_jax(name):
    """The same bits as jax's kernel gives on this GPU, at each one's own precision."""
    pytest.importorskip("jax")
    theirs = Library("jax", False)
    if not hasattr(theirs.triton, "CompilerParams"):
        pytest.skip("this jax has no Triton")
    found = []
    _, args, _ = gpu_kernels.KERNELS[name](OURS)
    for library in (OURS, theirs):
        function, _, _ = gpu_kernels.KERNELS[name](with_triton(library))
        there = library.lib.device_put(args, library.lib.devices("cuda")[0])
        found.append(library.lib.tree.leaves(library.lib.jit(function)(*there)))
    for ours, of_jax in zip(*found):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(of_jax))
