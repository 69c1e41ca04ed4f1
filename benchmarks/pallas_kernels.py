"""Kernels of Pallas compiled on the CPU: minijax beside jax's interpret mode under jit.

    python benchmarks/pallas_kernels.py [--rounds 5]

Each round runs both libraries, one after the other, each in a process of its own, where
a kernel's time is the best of several repeats. Printed are microseconds for a call, the
median of the rounds' ratios, and their range. The last line is the blocked matmul of
512 beside XLA's own product, both in minijax's process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from rounds import measured_in_rounds

KERNELS = """
import importlib, json, sys, time
import numpy as np

name = sys.argv[1]
lib, jnp, lax, pl, pltpu = (importlib.import_module(name + end) for end in
    ("", ".numpy", ".lax", ".experimental.pallas", ".experimental.pallas.tpu"))
interpret = name == "jax"
f32 = jnp.float32

def call(kernel, shape, **options):
    struct = lib.ShapeDtypeStruct(shape, f32)
    call = pl.pallas_call(kernel, out_shape=struct, interpret=interpret, **options)
    return lib.jit(call)

def in_order(*words):
    return pltpu.CompilerParams(dimension_semantics=words)

def numbers(*shape):
    return jnp.asarray(np.random.RandomState(0).randn(*shape).astype(np.float32))

def add():
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]
    block = pl.BlockSpec((128, 1024), lambda i: (i, 0))
    f = call(kernel, (1024, 1024), grid=8, in_specs=[block] * 2, out_specs=block)
    return f, numbers(1024, 1024), numbers(1024, 1024)

def softmax():
    def kernel(x_ref, o_ref):
        e = jnp.exp(x_ref[...] - jnp.max(x_ref[...], axis=1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)
    block = pl.BlockSpec((64, 1024), lambda i: (i, 0))
    return call(kernel, (1024, 1024), grid=16, in_specs=[block], out_specs=block), \\
        numbers(1024, 1024)

def layer_norm():
    def kernel(x_ref, scale_ref, shift_ref, o_ref):
        x = x_ref[...]
        mean = x.mean(axis=1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        normal = (x - mean) * lax.rsqrt(variance + 1e-5)
        o_ref[...] = normal * scale_ref[...] + shift_ref[...]
    block = pl.BlockSpec((64, 1024), lambda i: (i, 0))
    row = pl.BlockSpec((1, 1024), lambda i: (0, 0))
    f = call(kernel, (1024, 1024), grid=16, in_specs=[block, row, row], out_specs=block)
    return f, numbers(1024, 1024), numbers(1, 1024), numbers(1, 1024)

def matmul():
    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)
        o_ref[...] += jnp.dot(x_ref[...], y_ref[...])
    f = call(kernel, (512, 512), grid=(4, 4, 4),
             in_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
                       pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
             out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)))
    return f, numbers(512, 512), numbers(512, 512)

def matmul_with_gelu():
    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)
        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...])
        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = lib.nn.gelu(sum_ref[...])
    f = call(kernel, (512, 512), grid=(4, 4, 4),
             in_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
                       pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
             out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
             scratch_shapes=[pltpu.VMEM((128, 128), f32)],
             compiler_params=in_order("parallel", "parallel", "arbitrary"))
    return f, numbers(512, 512), numbers(512, 512)

def flash_attention():
    def kernel(q_ref, k_ref, v_ref, o_ref, high_ref, total_ref, sum_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            high_ref[...] = jnp.full_like(high_ref, -jnp.inf)
            total_ref[...] = jnp.zeros_like(total_ref)
            sum_ref[...] = jnp.zeros_like(sum_ref)
        scores = jnp.dot(q_ref[...], k_ref[...].T)
        high = jnp.maximum(high_ref[...], jnp.max(scores, axis=1, keepdims=True))
        weights = jnp.exp(scores - high)
        scale = jnp.exp(high_ref[...] - high)
        total_ref[...] = total_ref[...] * scale + jnp.sum(weights, 1, keepdims=True)
        sum_ref[...] = sum_ref[...] * scale + jnp.dot(weights, v_ref[...])
        high_ref[...] = high
        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = sum_ref[...] / total_ref[...]
    query = pl.BlockSpec((128, 64), lambda i, j: (i, 0))
    key = pl.BlockSpec((128, 64), lambda i, j: (j, 0))
    column = pltpu.VMEM((128, 1), f32)
    f = call(kernel, (1024, 64), grid=(8, 8), in_specs=[query, key, key],
             out_specs=query,
             scratch_shapes=[column, column, pltpu.VMEM((128, 64), f32)],
             compiler_params=in_order("parallel", "arbitrary"))
    return f, numbers(1024, 64), numbers(1024, 64), numbers(1024, 64)

def xla_dot():
    return lib.jit(jnp.dot), numbers(512, 512), numbers(512, 512)

def best(f, *args):
    for _ in range(3):
        lib.block_until_ready(f(*args))
    times = []
    for _ in range(40):
        start = time.perf_counter()
        lib.block_until_ready(f(*args))
        times.append(time.perf_counter() - start)
    return min(times) * 1e6

makers = [add, softmax, layer_norm, matmul, matmul_with_gelu, flash_attention, xla_dot]
print(json.dumps({make.__name__: best(*make()) for make in makers}))
"""


def microseconds(library: str) -> dict[str, float]:
    """The time of a call of each kernel, in a process of its own."""
    command = [sys.executable, "-c", KERNELS, library]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def line(name: str, pairs: list[tuple[float, float]]) -> str:
    """Medians of both columns, and of the rounds' ratios with their range."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(column) for column in zip(*pairs))
    return (
        f"| {name} | {ours:,.0f} | {theirs:,.0f} | {statistics.median(ratios):.2f} | "
        f"{ratios[0]:.2f} to {ratios[-1]:.2f} |"
    )


def main() -> None:
    """Runs the rounds and prints a table."""
    rounds = measured_in_rounds(microseconds, __doc__)
    print("| kernel | minijax, us | jax interpreted, us | ratio | rounds |")
    print("|---|---|---|---|---|")
    for name in rounds[0]["jax"]:
        if name != "xla_dot":
            pairs = [(both["minijax"][name], both["jax"][name]) for both in rounds]
            print(line(name, pairs))
    ours = [(both["minijax"]["matmul"], both["minijax"]["xla_dot"]) for both in rounds]
    print(line("matmul, beside XLA's own product in minijax", ours))


if __name__ == "__main__":
    main()
