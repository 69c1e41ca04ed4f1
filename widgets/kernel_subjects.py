"""Kernels that the gallery shows. Their lines stand in the reference pictures: add new
ones at the end."""

from __future__ import annotations

from typing import Any

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from subjects import EVIL

SIDE = 16


def matmul(x, y):
    """A block of the result is summed in scratch memory, over the grid's last axis."""

    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = sum_ref[...]

    (m, depth), n = x.shape, y.shape[1]
    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // SIDE, n // SIDE, depth // SIDE),
        in_specs=[
            pl.BlockSpec((SIDE, SIDE), lambda i, j, k: (i, k)),
            pl.BlockSpec((SIDE, SIDE), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((SIDE, SIDE), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((SIDE, SIDE), x.dtype)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
    )(x, y)


def softmax_rows(x):
    """Four rows at a time; the last block may reach beyond the array."""

    def kernel(x_ref, o_ref):
        x = x_ref[...]
        e = jnp.exp(x - x.max(axis=1, keepdims=True))
        o_ref[...] = e / e.sum(axis=1, keepdims=True)

    block = pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(x.shape[0], 4),),
        in_specs=[block],
        out_specs=block,
    )(x)


def column_sums(x):
    """Every program adds to the same block, and all may run at the same time."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...].sum(axis=0)

    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct((x.shape[1],), x.dtype),
        grid=(x.shape[0] // 4,),
        in_specs=[pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((x.shape[1],), lambda i: (0,)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def shifted(x):
    """The index map leaves the array."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 4,),
        in_specs=[pl.BlockSpec((4, x.shape[1]), lambda i: (i + 1, 0))],
        out_specs=pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0)),
    )(x)


def whole(x):
    """One program, on the whole array."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1.0

    return pl.pallas_call(kernel, ShapeDtypeStruct(x.shape, x.dtype))(x)


def no_programs(x):
    """A grid without any program."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=(0,))(x)


def many_heads(x):
    """Leading axes, of which each program has one slab."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.tanh(x_ref[...])

    heads, rows, columns = x.shape
    block = pl.BlockSpec((None, 8, columns), lambda h, i: (h, i, 0))
    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct(x.shape, x.dtype),
        grid=(heads, rows // 8),
        in_specs=[block],
        out_specs=block,
    )(x)


def hostile(tree: Any):
    """Names that try to be HTML."""

    def kernel(tree, o_ref):
        o_ref[...] = tree[EVIL][...]

    x = tree[EVIL]
    return pl.pallas_call(kernel, ShapeDtypeStruct(x.shape, x.dtype), name=EVIL)(tree)
