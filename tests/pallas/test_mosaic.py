"""Kernels for TPUs: the modules of Mosaic, beside jax's, and compiled ahead of time."""

import collections
import importlib.util
import json
import os
import re

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.backend import hlo_parts, mosaic
from minijax.core.language import all_primitives
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.experimental.pallas import triton as pltriton
from minijax.kernels import kernel_rules
from minijax.kernels.mosaic import kernel_module
from minijax.kernels.mosaic.kernel_context import stored_dtype, tpu
from tests.pallas import mosaic_in_numpy, tpu_kernels
from tests.pallas.kernels import Library
from tests.pallas.test_random_kernels import random_kernel
from tests.pallas.tpu_kernels import KERNELS, NOT_IN_JAX

OURS = Library("minijax", interpret=False)
JAX = Library("jax", interpret=False)

kernels = pytest.mark.parametrize("build", KERNELS, ids=lambda build: build.__name__)
needs_libtpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu (minijax[tpu]) is missing",
)
TARGET = "tpu-v5e:2x2"
X = np.ones((8, 128), np.float32)


def lowered_text(function, *args):
    """The StableHLO program with the call of the kernel."""
    traced = minijax.jit(function).trace(*args)
    return traced.lower(lowering_platforms=("tpu",)).as_text()


def config(text):
    """What the call says beside its operands, as Python's dicts."""
    (found,) = re.findall(r'backend_config = "((?:[^"\\]|\\.)*)"', text)
    return json.loads(found.replace("\\22", '"'))


def module_text(text):
    """The kernel inside of a StableHLO program, read back."""
    with hlo_parts.context():
        (kernel,) = mosaic.kernels_in(hlo_parts.parse(text))
    return kernel


def operations(text):
    """How often each operation stands in a module, constants and casts aside."""
    found = re.findall(r"\b((?:arith|math|vector|tpu|scf|memref|func)\.\w+)[ (%]", text)
    found += re.findall(r"vector.multi_reduction (<\w+>)", text)
    ignored = ("arith.constant", "arith.index_cast", "arith.extui")
    return collections.Counter(name for name in found if name not in ignored)


def windows(text):
    """Attributes of the kernel: blocks, grid, buffers, order of programs."""
    pattern = r"window_params = \[.*?\]|iteration_bounds = [^,]*|dimension_sem[^\]]*"
    return re.findall(pattern, text)


@pytest.mark.skipif(
    jax.__version__ != "0.10.2",
    reason="other versions of jax write other modules, or need a TPU",
)
@kernels
def test_the_module_has_jax_s_operations(build):
    call, args = build(OURS)
    ours = lowered_text(call, *args)
    call, args = build(JAX)
    theirs = jax.jit(call).trace(*args).lower(lowering_platforms=("tpu",)).as_text()
    mine, other = module_text(ours), module_text(theirs)
    assert windows(mine) == windows(other)
    for name in ("tpu.matmul", "scf.if", "math.exp", "tpu.vector_store"):
        assert operations(mine)[name] == operations(other)[name]
    # JAX writes a loop of computed length as two, and more hints and conversions.
    if build.__name__ not in ("loops", "choices", "rows_by_number"):
        assert operations(mine) == operations(other)
    settings = config(theirs)
    settings["custom_call_config"].pop("body")
    found = config(ours)
    found["custom_call_config"].pop("body")
    assert found == settings


@pytest.mark.parametrize("build", KERNELS + NOT_IN_JAX, ids=lambda b: b.__name__)
def test_the_module_computes_what_a_cpu_does(build):
    call, args = build(OURS)
    random = np.random.RandomState(0)
    args = [
        np.asarray(random.randn(*x.shape) if x.dtype.kind not in "ib" else x, x.dtype)
        for x in args
    ]
    if build.__name__ == "bools":
        args[1] = random.rand(*args[1].shape) > 0.5
    expected = np.asarray(call(*args))
    lowered = minijax.jit(call).trace(*args).lower(lowering_platforms=("tpu",))
    stored = [x.astype(np.int32) if x.dtype == bool else np.array(x) for x in args]
    out = np.zeros_like(expected).astype(stored_dtype(expected.dtype))
    mosaic_in_numpy.run(lowered.as_text("mosaic"), [*stored, out])
    got = out.astype(expected.dtype).astype(np.float32)
    np.testing.assert_allclose(
        got, expected.astype(np.float32), rtol=2e-4, atol=2e-4, equal_nan=True
    )


RANDOM = 500 if os.environ.get("MINIJAX_TEST_ALL") else 40


def test_random_modules_compute_what_a_cpu_does(monkeypatch):
    """Blocks of any size, which no TPU has: only the modules are looked at."""
    monkeypatch.setattr(kernel_module, "check_block", lambda block, name: None)
    computed = 0
    for seed in range(RANDOM):
        build, args = random_kernel(seed)
        call = build(OURS)
        try:
            lowered = minijax.jit(call).trace(*args).lower(lowering_platforms=("tpu",))
        except NotImplementedError as error:
            assert "test_random_kernels.py" in str(error)  # the user's line
            continue
        expected = np.asarray(call(*args))
        out = np.zeros_like(expected)
        mosaic_in_numpy.run(lowered.as_text("mosaic"), [*map(np.array, args), out])
        tolerance = 3e-2 if out.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(
            out.astype(np.float32),
            expected.astype(np.float32),
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"seed {seed}",
        )
        computed += 1
    assert computed > RANDOM // 2


@needs_libtpu
@pytest.mark.parametrize("build", KERNELS + NOT_IN_JAX, ids=lambda b: b.__name__)
def test_compiled_for_a_tpu(build):
    call, args = build(OURS)
    compiled = minijax.jit(call).lower(*args).compile(target=TARGET)
    assert "tpu_custom_call" in compiled.as_text()
    assert compiled.memory_analysis().generated_code_size_in_bytes > 0
    assert "func.func @" in compiled.as_text("mosaic")


@needs_libtpu
def test_mosaic_s_own_complaints():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].reshape(64, 16)

    lowered = minijax.jit(OURS.call(kernel, (64, 16))).lower(X)
    with pytest.raises(minijax.errors.JaxRuntimeError) as caught:
        lowered.compile(target=TARGET)
    message = str(caught.value)
    assert "unsupported shape cast" in message
    assert "'reshape' at" in message and "test_mosaic.py" in message

    big = minijax.ShapeDtypeStruct((16384, 2048), np.float32)
    block = pl.BlockSpec((8192, 2048), lambda i: (i, 0))

    def double(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    call = OURS.call(double, big.shape, grid=2, in_specs=[block], out_specs=block)
    with pytest.raises(minijax.errors.JaxRuntimeError, match="2 buffering levels"):
        minijax.jit(call).lower(big).compile(target=TARGET)


def test_the_kernel_is_shown():
    call, args = tpu_kernels.softmax(OURS)
    lowered = minijax.jit(call).trace(*args).lower(lowering_platforms=("tpu",))
    text = lowered.as_text("mosaic")
    assert "vector.multi_reduction <maximumf>" in text
    assert "tpu.vector_store" in text and "window_bounds = array<i64: 8, 256>" in text
    on_a_cpu = minijax.jit(call).lower(*args)
    with pytest.raises(ValueError, match="unknown dialect: 'mosaic'"):
        on_a_cpu.as_text("mosaic")


def test_each_rule_is_of_a_primitive():
    assert {*tpu.rules, *kernel_rules.of_all_machines} <= set(all_primitives)


def refused(kernel, shape=(8, 128), args=(X,), **options):
    call = OURS.call(kernel, shape, **options)
    with pytest.raises((NotImplementedError, ValueError, TypeError)) as caught:
        lowered_text(call, *args)
    return str(caught.value)


def test_what_has_no_lowering_is_named_with_its_line():
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sort(x_ref[...], axis=1)

    message = refused(kernel)
    assert "no lowering of 'sort' to Mosaic" in message
    assert "test_mosaic.py" in message and "'kernel'" in message


def test_blocks_that_do_not_fit_registers():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((4, 128), lambda i: (i, 0))
    message = refused(kernel, grid=2, in_specs=[block], out_specs=block)
    assert "the block of args[0] has shape (4, 128)" in message
    assert "multiples of 8 and 128" in message
    row = pl.BlockSpec((100,), lambda i: (i,))
    args = [np.ones(200, np.float32)]
    message = refused(kernel, (200,), args, grid=2, in_specs=[row], out_specs=row)
    assert "a power of two of at least 128" in message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x, o: o.__setitem__((0, 0), 1.0), "a scalar written to VMEM"),
        (lambda x, o: o.__setitem__(..., x[jnp.arange(8)]), "that is an array"),
        (lambda x, o: o.__setitem__(..., jnp.cumsum(x[...], 1)), "'cumsum'"),
        (
            lambda x, o: o.__setitem__(..., x[...] + x[0] @ x[1]),
            "two arrays of one axis",
        ),
    ],
)
def test_what_a_tpu_cannot_do(body, words):
    def kernel(x_ref, o_ref):
        body(x_ref, o_ref)

    message = refused(kernel)
    assert words in message and "test_mosaic.py" in message


def test_parameters_of_another_machine():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    message = refused(kernel, compiler_params=pltriton.CompilerParams())
    assert "pltpu.CompilerParams" in message
    params = pltpu.CompilerParams(dimension_semantics=("parallel",))
    message = refused(kernel, compiler_params=params)
    assert "has 1 entries, but the grid has 0 axes" in message
    params = pltpu.CompilerParams(dimension_semantics=("sideways",))
    message = refused(kernel, grid=1, compiler_params=params)
    assert "'sideways'" in message and "'parallel'" in message


def test_a_block_without_a_grid():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    half = pl.BlockSpec((8, 128), lambda: (1, 0))
    args = [np.ones((16, 128), np.float32)]
    message = refused(kernel, args=args, in_specs=[half])
    assert "args[0] has a block of shape (8, 128) and the kernel no grid" in message


@needs_libtpu
def test_an_output_over_an_input():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    call = OURS.call(kernel, (8, 128), input_output_aliases={0: 0})
    lowered = minijax.jit(call).trace(X).lower(lowering_platforms=("tpu",))
    assert "output_operand_alias<output_tuple_indices = []" in lowered.as_text()
    compiled = minijax.jit(call).lower(X).compile(target=TARGET)
    assert "output_to_operand_aliasing={{}: (0, {})}" in compiled.as_text()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"use_tc_tiling_on_sc": True}, NotImplementedError),
        ({"fuse_transposed_lhs_in_matmul": True}, NotImplementedError),
        ({"collective_id": 3}, ValueError),
    ],
)
def test_parameters_without_effect_are_refused(options, error):
    with pytest.raises(error, match=f"{next(iter(options))}.*leave it out"):
        lowered_text(
            OURS.call(
                lambda x_ref, o_ref: None,
                (8, 128),
                compiler_params=pltpu.CompilerParams(**options),
            ),
            X,
        )


def test_parameters_are_written():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    params = pltpu.CompilerParams(
        flags={"xla_tpu_flag": True, "count": 3},
        disable_bounds_checks=True,
        has_side_effects=True,
        allow_input_fusion=[True],
        internal_scratch_in_bytes=1024,
    )
    cost = pl.CostEstimate(flops=1, transcendentals=2, bytes_accessed=3)
    call = OURS.call(kernel, (8, 128), compiler_params=params, cost_estimate=cost)
    text = lowered_text(call, X)
    found = config(text)
    own = found["custom_call_config"]
    assert own["disable_bounds_checks"] and own["allow_input_fusion"] == [True]
    assert own["internal_scratch_in_bytes"] == 1024
    assert own["cost_estimate"]["bytes_accessed"] == 3
    kinds = {flag["flag_type"]: flag["value"] for flag in found["flag_configs"]}
    assert kinds == {
        "xla_tpu_flag": {"boolean_value": True},
        "count": {"integer_value": 3},
    }
    assert "has_side_effect = true" in text


@needs_libtpu
def test_an_interpreted_kernel_is_a_loop_on_a_tpu():
    call, args = tpu_kernels.softmax(Library("minijax", interpret=True))
    compiled = minijax.jit(call).lower(*args).compile(target=TARGET)
    assert "tpu_custom_call" not in compiled.as_text()
    assert "while(" in compiled.as_text()


def test_memory_that_a_kernel_cannot_reach():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    assert "asynchronous copies" in refused(kernel, in_specs=[anywhere])
    scalars = pl.BlockSpec(memory_space=pltpu.SMEM)
    assert "which holds scalars" in refused(kernel, in_specs=[scalars])
