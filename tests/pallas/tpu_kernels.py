"""Kernels for a TPU, each written once and built for minijax and for jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.pallas.kernels import Library


def ones(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def add(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    block = lib.pl.BlockSpec((128, 128), lambda i: (i, 0))
    call = lib.call(
        kernel, (512, 128), grid=(4,), in_specs=[block, block], out_specs=block
    )
    return call, [ones(512, 128), ones(512, 128)]


def matmul(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """Sums over the last axis of the grid; the last program applies gelu."""
    pl, lax = lib.pl, lib.lax

    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _start():
            sum_ref[...] = lib.np.zeros_like(sum_ref)

        sum_ref[...] += lax.dot_general(
            x_ref[...],
            y_ref[...],
            (((1,), (0,)), ((), ())),
            preferred_element_type=np.float32,
        )

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _finish():
            o_ref[...] = lib.lib.nn.gelu(sum_ref[...]).astype(o_ref.dtype)

    params = lib.tpu.CompilerParams(
        dimension_semantics=("parallel", "parallel", "arbitrary"),
        vmem_limit_bytes=32 * 2**20,
    )
    call = lib.call(
        kernel,
        (512, 512),
        grid=(4, 4, 4),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[lib.tpu.VMEM((128, 128), np.float32)],
        compiler_params=params,
    )
    return call, [ones(512, 512), ones(512, 512)]


def softmax(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        e = lib.np.exp(x - lib.np.max(x, axis=1, keepdims=True))
        o_ref[...] = e / lib.np.sum(e, axis=1, keepdims=True)

    block = lib.pl.BlockSpec((8, 256), lambda i: (i, 0))
    call = lib.call(kernel, (64, 256), grid=(8,), in_specs=[block], out_specs=block)
    return call, [ones(64, 256)]


def layer_norm(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    def kernel(x_ref, scale_ref, shift_ref, o_ref):
        x = x_ref[...]
        mean = x.mean(axis=1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        normal = (x - mean) * lib.lax.rsqrt(variance + 1e-5)
        o_ref[...] = normal * scale_ref[...] + shift_ref[...]

    block = lib.pl.BlockSpec((8, 256), lambda i: (i, 0))
    row = lib.pl.BlockSpec((1, 256), lambda i: (0, 0))
    call = lib.call(
        kernel, (64, 256), grid=(8,), in_specs=[block, row, row], out_specs=block
    )
    return call, [ones(64, 256), ones(1, 256), ones(1, 256)]


def flash_attention(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """One pass over the keys: a running maximum, a running sum, a running product."""
    pl, jnp = lib.pl, lib.np

    def kernel(q_ref, k_ref, v_ref, o_ref, high_ref, total_ref, sum_ref):
        step = pl.program_id(1)

        @pl.when(step == 0)
        def _start():
            high_ref[...] = jnp.full_like(high_ref, -jnp.inf)
            total_ref[...] = jnp.zeros_like(total_ref)
            sum_ref[...] = jnp.zeros_like(sum_ref)

        scores = jnp.dot(q_ref[...], k_ref[...].T, preferred_element_type=jnp.float32)
        high = jnp.maximum(high_ref[...], jnp.max(scores, axis=1, keepdims=True))
        weights = jnp.exp(scores - high[:, :1])
        scale = jnp.exp(high_ref[...] - high)
        total_ref[...] = total_ref[...] * scale + jnp.sum(weights, 1, keepdims=True)
        sum_ref[...] = sum_ref[...] * scale + jnp.dot(
            weights, v_ref[...], preferred_element_type=jnp.float32
        )
        high_ref[...] = high

        @pl.when(step == pl.num_programs(1) - 1)
        def _finish():
            o_ref[...] = sum_ref[...] / total_ref[...]

    query = pl.BlockSpec((128, 128), lambda i, j: (i, 0))
    key = pl.BlockSpec((128, 128), lambda i, j: (j, 0))
    call = lib.call(
        kernel,
        (512, 128),
        grid=(4, 4),
        in_specs=[query, key, key],
        out_specs=query,
        scratch_shapes=[lib.tpu.VMEM((128, 128), np.float32)] * 3,
        compiler_params=lib.tpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary")
        ),
    )
    return call, [ones(512, 128)] * 3


def rows_by_number(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """The index map reads prefetched numbers; so does the kernel, from SMEM."""
    pl = lib.pl

    def kernel(rows_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * rows_ref[pl.program_id(0)].astype(np.float32)

    grid = lib.tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
    )
    call = lib.call(kernel, (32, 128), grid_spec=grid)
    return call, [np.array([3, 2, 1, 0], np.int32), ones(32, 128)]


def loops(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """A loop of known and one of computed length, on slices with a computed start."""
    pl, lax = lib.pl, lib.lax

    def kernel(count_ref, x_ref, o_ref):
        def body(i, total):
            return total + x_ref[pl.ds(pl.multiple_of(i * 8, 8), 8), :]

        first = lax.fori_loop(0, 4, body, lib.np.zeros((8, 128), np.float32))
        o_ref[...] = lax.fori_loop(0, count_ref[0], body, first)

    scalar = pl.BlockSpec(memory_space=lib.tpu.SMEM)
    call = lib.call(kernel, (8, 128), in_specs=[scalar, pl.BlockSpec()])
    return call, [np.array([3], np.int32), ones(128, 128)]


def choices(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """Masks from iota, comparisons, clamps, powers, conversions, run_scoped."""
    pl, jnp, lax = lib.pl, lib.np, lib.lax

    def kernel(x_ref, o_ref):
        lane = lax.broadcasted_iota(np.int32, (8, 128), 1)
        x = jnp.where(lane < 100, x_ref[...], -jnp.inf)
        x = jnp.where(jnp.isfinite(x), jnp.clip(x, 0.0, 1.0) ** 3, lax.floor(x))

        def inner(temporary_ref):
            temporary_ref[...] = lax.logistic(x)
            o_ref[...] = temporary_ref[...] + (x > 0).astype(np.float32)

        pl.run_scoped(inner, lib.tpu.VMEM((8, 128), np.float32))

    return lib.call(kernel, (8, 128)), [ones(8, 128)]


def more_operations(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """What jax lowers only where a TPU is."""
    jnp, lax = lib.np, lib.lax

    def kernel(x_ref, o_ref):
        x = x_ref[...]
        whole = lax.convert_element_type(x, np.int32) << 2
        bits = lax.bitcast_convert_type(x, np.int32) | whole
        y = lax.sign(x) + lax.square(x) - lax.rem(x, jnp.abs(x) + 1.0)
        y = jnp.concatenate([y[:4] ** -2, -lax.clamp(-1.0, y[4:], 1.0)], axis=0)
        y += jnp.where(bits >= -3, lib.pl.reciprocal(y), jnp.log1p(y))
        o_ref[...] = y + lax.rsqrt(jnp.sum(y * (x != 0)))

    return lib.call(kernel, (8, 128)), [ones(8, 128)]


def pieces(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """Joining, cutting, repeating, finding entries, products with a vector."""
    jnp = lib.np

    def kernel(x_ref, o_ref):
        x = x_ref[...]
        left, right = jnp.split(x, 2, axis=1)
        x = jnp.concatenate([right, left], axis=1) + jnp.tile(x[:1], (8, 1))
        x += jnp.stack([x, x]).sum(0) + jnp.pad(x, ((8, 0), (0, 0)))[8:]
        x += jnp.argmax(x, axis=1, keepdims=True) - jnp.argmin(x, 1, keepdims=True)
        x = jnp.where(jnp.any(x > 0, axis=1, keepdims=True), x, -x)
        x = jnp.where(jnp.all(x > 0), x, jnp.round(x))
        x += (x @ x[0])[:, None] + jnp.arange(128.0)[None]
        positive, below = x > 0, x < 3
        o_ref[...] = jnp.where((positive == below) | (positive < below), x, 0.0)

    return lib.call(kernel, (8, 128)), [ones(8, 128)]


def bools(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """Memory of bools, of vectors and of a scalar; a masked read."""

    def kernel(flag_ref, x_ref, y_ref, o_ref, kept_ref):
        kept_ref[...] = x_ref[...] & flag_ref[0]
        y = lib.triton.load(y_ref, mask=x_ref[...], other=np.float32(0))
        o_ref[...] = kept_ref[...] | (y > 0.5)

    scalar = lib.pl.BlockSpec(memory_space=lib.tpu.SMEM)
    block = lib.pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = lib.call(
        kernel,
        (16, 128),
        np.bool_,
        grid=(2,),
        in_specs=[scalar, block, block],
        out_specs=block,
        scratch_shapes=[lib.tpu.VMEM((8, 128), np.bool_)],
    )
    args = [ones(1, dtype=bool), ones(16, 128, dtype=bool), ones(16, 128)]
    return call, args


def functions(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """Functions that are made of others, which jax does not lower."""
    jnp, lax, nn = lib.np, lib.lax, lib.lib.nn

    def kernel(x_ref, o_ref):
        x = x_ref[...]
        x = nn.gelu(x, approximate=False) + nn.elu(x) + jnp.sinh(x) * jnp.cosh(x)
        x += jnp.arctan2(x, x + 1) + jnp.floor_divide(x, 2.0)
        o_ref[...] = x + lax.population_count(x.astype(np.int32)).astype(np.float32)

    return lib.call(kernel, (8, 128)), [ones(8, 128)]


def squeezed_batches(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """A block without its first axis, under vmap, in bfloat16."""
    import ml_dtypes

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    block = lib.pl.BlockSpec((None, 16, 128), lambda i: (i, 0, 0))
    call = lib.call(
        kernel,
        (4, 16, 128),
        ml_dtypes.bfloat16,
        grid=(4,),
        in_specs=[block],
        out_specs=block,
    )
    return lib.lib.vmap(call), [ones(3, 4, 16, 128, dtype=ml_dtypes.bfloat16)]


def pipelined_matmul(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """A pipeline inside of the kernel: blocks of arrays in HBM, two buffers each."""
    pl = lib.pl

    def kernel(x_hbm_ref, y_hbm_ref, o_hbm_ref):
        def body(x_ref, y_ref, o_ref):
            @pl.when(pl.program_id(2) == 0)
            def _():
                o_ref[...] = lib.np.zeros_like(o_ref)

            o_ref[...] += x_ref[...] @ y_ref[...]

        pipeline = lib.tpu.emit_pipeline(
            body,
            grid=(2, 2, 3),
            in_specs=[
                pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
                pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        )
        pipeline(x_hbm_ref, y_hbm_ref, o_hbm_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = lib.call(
        kernel, (256, 256), in_specs=[anywhere, anywhere], out_specs=anywhere
    )
    return call, [ones(256, 384), ones(384, 256)]


def copied_halves(lib: Library) -> tuple[Callable, list[np.ndarray]]:
    """Two copies at once into a buffer, and one back."""
    pl, tpu = lib.pl, lib.tpu

    def kernel(x_ref, o_ref, buffer_ref, semaphores):
        copies = [
            tpu.make_async_copy(
                x_ref.at[pl.ds(16 + 8 * i, 8)],
                buffer_ref.at[pl.ds(8 * i, 8)],
                semaphores.at[i],
            )
            for i in range(2)
        ]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()
        buffer_ref[...] = buffer_ref[...] * 2
        tpu.sync_copy(buffer_ref, o_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = lib.call(
        kernel,
        (16, 128),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[tpu.VMEM((16, 128), np.float32), tpu.SemaphoreType.DMA((2,))],
    )
    return call, [ones(32, 128)]


KERNELS = [
    add,
    matmul,
    softmax,
    layer_norm,
    flash_attention,
    rows_by_number,
    loops,
    choices,
    squeezed_batches,
    copied_halves,
]
NOT_IN_JAX = [more_operations, pipelined_matmul, pieces, functions, bools]
