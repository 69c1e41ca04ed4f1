"""Kernels for a GPU, each written once and built for minijax and for jax.

`KERNELS[name](library)` gives the function, its arguments and a NumPy reference. Sizes
are powers of two, as Triton wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from tests.pallas.kernels import Library

Built = tuple[Callable[..., Any], list[np.ndarray], Callable[..., Any]]
rng = np.random.default_rng(0)


def random(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return rng.normal(size=shape).astype(dtype)


def guarded_add(lib: Library) -> Built:
    """Masks where 1,000 elements do not fill eight programs of 128."""

    def kernel(x_ref, y_ref, o_ref):
        start = lib.pl.program_id(0) * 128
        place = lib.pl.ds(start, 128)
        mask = start + lib.np.arange(128) < 1000
        x = lib.triton.load(x_ref.at[place], mask=mask, other=0.0)
        y = lib.triton.load(y_ref.at[place], mask=mask)
        lib.triton.store(o_ref.at[place], lib.np.exp(x + y), mask=mask)

    call = lib.call(kernel, (1000,), grid=(8,))
    return call, [random(1000), random(1000)], lambda x, y: np.exp(x + y)


def softmax(lib: Library) -> Built:
    """Each program has a row."""

    def kernel(x_ref, o_ref):
        x = x_ref[...]
        e = lib.np.exp(x - lib.np.max(x))
        o_ref[...] = e / lib.np.sum(e)

    row = lib.pl.BlockSpec((None, 256), lambda i: (i, 0))
    call = lib.call(kernel, (48, 256), grid=(48,), in_specs=[row], out_specs=row)

    def expected(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return call, [random(48, 256)], expected


def layer_norm(lib: Library) -> Built:
    """Four rows a program, in bfloat16, computed in float32."""

    def kernel(x_ref, scale_ref, shift_ref, o_ref):
        x = x_ref[...].astype(np.float32)
        x = x - lib.np.mean(x, axis=1, keepdims=True)
        variance = lib.np.mean(x * x, axis=1, keepdims=True)
        y = x * lib.lax.rsqrt(variance + 1e-5) * scale_ref[...] + shift_ref[...]
        o_ref[...] = y.astype(o_ref.dtype)

    rows = lib.pl.BlockSpec((4, 128), lambda i: (i, 0))
    whole = lib.pl.BlockSpec((1, 128), lambda i: (0, 0))
    call = lib.call(
        kernel,
        (64, 128),
        dtypes.bfloat16,
        grid=(16,),
        in_specs=[rows, whole, whole],
        out_specs=rows,
    )

    def expected(x, scale, shift):
        x = x.astype(np.float32)
        x = x - x.mean(1, keepdims=True)
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * scale + shift

    args = [random(64, 128, dtype=dtypes.bfloat16), random(1, 128), random(1, 128)]
    return call, args, expected


def matmul(lib: Library, dtype: Any = np.float32) -> Built:
    """A loop over blocks of what is summed over, and relu."""

    def kernel(x_ref, y_ref, o_ref):
        def body(k, total):
            place = lib.pl.ds(k * 32, 32)
            x, y = x_ref[:, place], y_ref[place, :]
            return total + lib.np.dot(x, y, preferred_element_type=np.float32)

        total = lib.lax.fori_loop(0, 4, body, lib.np.zeros((64, 64), np.float32))
        o_ref[...] = lib.np.maximum(total, 0.0)

    call = lib.call(
        kernel,
        (128, 192),
        grid=(2, 3),
        in_specs=[
            lib.pl.BlockSpec((64, 128), lambda i, j: (i, 0)),
            lib.pl.BlockSpec((128, 64), lambda i, j: (0, j)),
        ],
        out_specs=lib.pl.BlockSpec((64, 64), lambda i, j: (i, j)),
        compiler_params=lib.triton.CompilerParams(num_warps=4, num_stages=2),
    )

    def expected(x, y):
        return np.maximum(x.astype(np.float32) @ y.astype(np.float32), 0)

    return (
        call,
        [random(128, 128, dtype=dtype), random(128, 192, dtype=dtype)],
        expected,
    )


def matmul_in_bfloat16(lib: Library) -> Built:
    """The same on numbers of 16 bits, for which the tensor cores are made."""
    return matmul(lib, dtypes.bfloat16)


def _attention(q, k, v):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / 8
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def flash_attention(lib: Library) -> Built:
    """Blocks of queries; keys and values block by block, with the online softmax."""

    def kernel(q_ref, k_ref, v_ref, o_ref):
        q = q_ref[...]

        def body(j, carry):
            total, largest, weight = carry
            place = lib.pl.ds(j * 32, 32)
            k, v = k_ref[place, :], v_ref[place, :]
            scores = lib.np.dot(q, k.T, preferred_element_type=np.float32) / 8
            larger = lib.np.maximum(largest, lib.np.max(scores, axis=1))
            shrink = lib.np.exp(largest - larger)
            e = lib.np.exp(scores - larger[:, None])
            new = lib.np.dot(e.astype(v.dtype), v, preferred_element_type=np.float32)
            weight = weight * shrink + lib.np.sum(e, axis=1)
            return total * shrink[:, None] + new, larger, weight

        start = (
            lib.np.zeros((32, 64), np.float32),
            lib.np.full((32,), -np.inf, np.float32),
            lib.np.zeros((32,), np.float32),
        )
        total, _, weight = lib.lax.fori_loop(0, k_ref.shape[0] // 32, body, start)
        o_ref[...] = (total / weight[:, None]).astype(o_ref.dtype)

    queries = lib.pl.BlockSpec((32, 64), lambda i: (i, 0))
    whole = lib.pl.BlockSpec((128, 64), lambda i: (0, 0))
    call = lib.call(
        kernel, (64, 64), grid=(2,), in_specs=[queries, whole, whole], out_specs=queries
    )
    args = [random(3, 64, 64), random(3, 128, 64), random(3, 128, 64)]
    return lib.lib.vmap(call), args, _attention


def flash_attention_backward(lib: Library) -> Built:
    """The cotangents of keys and values: one program for each block of them."""

    def kernel(q_ref, k_ref, v_ref, do_ref, log_ref, delta_ref, dk_ref, dv_ref):
        k, v = k_ref[...], v_ref[...]

        def body(i, carry):
            dk, dv = carry
            place = lib.pl.ds(i * 32, 32)
            q, do = q_ref[place, :], do_ref[place, :]
            scores = lib.np.dot(q, k.T, preferred_element_type=np.float32) / 8
            p = lib.np.exp(scores - log_ref[place][:, None])
            dv = dv + lib.np.dot(p.T, do, preferred_element_type=np.float32)
            dp = lib.np.dot(do, v.T, preferred_element_type=np.float32)
            ds = p * (dp - delta_ref[place][:, None]) / 8
            return dk + lib.np.dot(ds.T, q, preferred_element_type=np.float32), dv

        zeros = lib.np.zeros((32, 64), np.float32)
        dk, dv = lib.lax.fori_loop(0, q_ref.shape[0] // 32, body, (zeros, zeros))
        dk_ref[...], dv_ref[...] = dk, dv

    block = lib.pl.BlockSpec((32, 64), lambda j: (j, 0))
    whole = lib.pl.BlockSpec((64, 64), lambda j: (0, 0))
    row = lib.pl.BlockSpec((64,), lambda j: (0,))
    call = lib.call(
        kernel,
        [lib.struct((128, 64)), lib.struct((128, 64))],
        grid=(4,),
        in_specs=[whole, block, block, whole, row, row],
        out_specs=[block, block],
    )

    def of_arrays(q, k, v, do):
        scores = q @ k.T / 8
        largest = lib.np.max(scores, axis=1)
        log = largest + lib.np.log(
            lib.np.sum(lib.np.exp(scores - largest[:, None]), axis=1)
        )
        out = lib.np.exp(scores - log[:, None]) @ v
        return call(q, k, v, do, log, lib.np.sum(out * do, axis=1))

    def expected(q, k, v, do):
        scores = q @ k.T / 8
        e = np.exp(scores - scores.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        dp = do @ v.T
        ds = p * (dp - (p * dp).sum(1, keepdims=True)) / 8
        return [ds.T @ q, p.T @ do]

    args = [random(64, 64), random(128, 64), random(128, 64), random(64, 64)]
    return of_arrays, args, expected


def histogram(lib: Library) -> Built:
    """Atomic additions at computed places, into an array that is given."""

    def kernel(x_ref, start_ref, o_ref):
        ones = lib.np.ones((64,), np.int32)
        lib.triton.atomic_add(o_ref, (x_ref[...],), ones)

    call = lib.call(
        kernel,
        (16,),
        np.int32,
        grid=(4,),
        in_specs=[
            lib.pl.BlockSpec((64,), lambda i: (i,)),
            lib.pl.BlockSpec((16,), lambda i: (0,)),
        ],
        out_specs=lib.pl.BlockSpec((16,), lambda i: (0,)),
        input_output_aliases={1: 0},
    )
    x = rng.integers(0, 16, 256).astype(np.int32)
    return call, [x, np.zeros(16, np.int32)], lambda x, _: np.bincount(x, minlength=16)


def last_block(lib: Library) -> Built:
    """Blocks of 16 rows in 50: what is beyond the end is masked out."""

    def kernel(x_ref, o_ref):
        o_ref[...] = lib.np.sin(x_ref[...]) * 2.0

    block = lib.pl.BlockSpec((16, 64), lambda i: (i, 0))
    call = lib.call(kernel, (50, 64), grid=(4,), in_specs=[block], out_specs=block)
    return call, [random(50, 64)], lambda x: np.sin(x) * 2


def branches_and_loops(lib: Library) -> Built:
    """`when`, a while loop, an argmax and a cumulative sum."""

    def kernel(x_ref, o_ref):
        def double(state):
            turn, x = state
            return turn + 1, x * 2.0

        _, x = lib.lax.while_loop(lambda s: s[0] < 3, double, (0, x_ref[...]))
        first = lib.np.argmax(x).astype(np.float32)
        o_ref[...] = lib.np.cumsum(x) + first

        @lib.pl.when(lib.pl.program_id(0) == 1)
        def _second():
            o_ref[...] = -o_ref[...]

    block = lib.pl.BlockSpec((64,), lambda i: (i,))
    call = lib.call(kernel, (128,), grid=(2,), in_specs=[block], out_specs=block)

    def expected(x):
        x = x.reshape(2, 64) * 8
        y = x.cumsum(1) + x.argmax(1)[:, None]
        return (y * [[1], [-1]]).reshape(-1)

    return call, [random(128)], expected


KERNELS = {
    function.__name__: function
    for function in (
        guarded_add,
        softmax,
        layer_norm,
        matmul,
        matmul_in_bfloat16,
        flash_attention,
        flash_attention_backward,
        histogram,
        last_block,
        branches_and_loops,
    )
}
