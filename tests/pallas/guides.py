"""What JAX's guides on Pallas do, cell by cell, in our own words.

Each function takes a `Library` and gives a dict {cell: arrays}; the same code runs with
minijax's names and with jax's. The guides: quickstart, grids and BlockSpecs, software
pipelining, pipelining on a TPU, matrix multiplication.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from tests.pallas.kernels import Library

Cells = dict[str, Any]


def random_pair(lib: Library, *shape: int, dtype: Any = np.float32) -> list[Any]:
    keys = lib.lib.random.split(lib.lib.random.PRNGKey(0))
    return [lib.lib.random.normal(key, shape, dtype) for key in keys]


# ----------------------------------------------------------------------------------
# Quickstart
# ----------------------------------------------------------------------------------


def quickstart(lib: Library) -> Cells:
    """Adding vectors, a grid, blocks, activation, vmap."""
    pl, jnp = lib.pl, lib.np

    def add(x_ref, y_ref, o_ref):
        x, y = x_ref[...], y_ref[...]
        o_ref[...] = x + y

    def number(o_ref):
        i = pl.program_id(0)
        o_ref[i] = i

    def product(x_ref, y_ref, z_ref, *, activation):
        z_ref[...] = activation(x_ref[...] @ y_ref[...])

    @lib.lib.jit
    def add_vectors(x, y):
        return lib.call(add, x.shape, x.dtype)(x, y)

    def count(size, **options):
        return lib.call(number, (size,), np.int32, grid=(size,), **options)()

    def matmul(x, y, *, activation=lambda z: z):
        m, k = x.shape
        n = y.shape[1]
        return lib.call(
            functools.partial(product, activation=activation),
            (m, n),
            x.dtype,
            grid=(2, 2),
            in_specs=[
                pl.BlockSpec((m // 2, k), lambda i, j: (i, 0)),
                pl.BlockSpec((k, n // 2), lambda i, j: (0, j)),
            ],
            out_specs=pl.BlockSpec((m // 2, n // 2), lambda i, j: (i, j)),
        )(x, y)

    x, y = random_pair(lib, 64, 64)
    xs, ys = random_pair(lib, 4, 32, 32)
    relu = lib.lib.nn.relu
    batched = lib.lib.vmap(functools.partial(matmul, activation=relu))
    in_smem = pl.BlockSpec(memory_space=lib.tpu.SMEM)
    return {
        "add": add_vectors(jnp.arange(8), jnp.arange(8)),
        "grid": count(8),
        "grid, in SMEM": count(8, out_specs=in_smem),
        "matmul": matmul(x, y),
        "matmul with activation": matmul(x, y, activation=relu),
        "vmap": batched(xs, ys),
        "vmap, expected": relu(lib.lib.vmap(jnp.matmul)(xs, ys)),
    }


# ----------------------------------------------------------------------------------
# Grids and BlockSpecs
# ----------------------------------------------------------------------------------


def slices_of_program(shape, spec, grid, indices):
    """Which slices of an array a program gets, from the public parts of a BlockSpec."""
    assert len(indices) == len(grid)
    assert all(0 <= i < n for i, n in zip(indices, grid))
    numbers = spec.index_map(*indices)
    starts = [i * size for i, size in zip(numbers, spec.block_shape, strict=True)]
    assert all(start < n for start, n in zip(starts, shape, strict=True))
    return [(a, a + size) for a, size in zip(starts, spec.block_shape)]


def program_ids(lib, shape, block, grid, index_map=lambda i, j: (i, j)):
    """Each block filled with the digits of the indices of the program that wrote it."""

    def kernel(o_ref):
        digits = 0
        for axis in range(len(grid)):
            digits += lib.pl.program_id(axis) * 10 ** (len(grid) - 1 - axis)
        o_ref[...] = lib.np.full(o_ref.shape, digits)

    spec = lib.pl.BlockSpec(block, index_map)
    return lib.call(kernel, shape, np.int32, grid=grid, in_specs=[], out_specs=spec)()


def grids_and_blocks(lib: Library) -> Cells:
    """Slices of programs; blocks that fit, do not fit, come twice, lack an axis."""
    pl = lib.pl
    show = functools.partial(program_ids, lib)
    block = pl.BlockSpec((10, 20), lambda i, j: (i, j))
    longer = pl.BlockSpec((10, 20), lambda i, j, k: (i, j))

    def row(o_ref):
        assert o_ref.shape == (2,)
        o_ref[...] = lib.np.full((2,), 10 * pl.program_id(1) + pl.program_id(0))

    def rows(first):
        spec = pl.BlockSpec((first, 2), lambda i, j: (i, j))
        return lib.call(row, (3, 4), np.int32, out_specs=spec, grid=(3, 2))()

    def elements(shape, grid, pads):
        sizes = [pl.Element(n, pad) for n, pad in zip((2, 3), pads)]
        return show(shape, sizes, grid, lambda i, j: (2 * i, 3 * j))

    return {
        "slices": slices_of_program((100, 100), block, (10, 5), (2, 4)),
        "slices, revisited": slices_of_program(
            (100, 100), longer, (10, 5, 4), (2, 4, 0)
        ),
        "slices, cut": slices_of_program((100, 90), block, (10, 5), (2, 4)),
        "even": show((8, 6), (2, 3), (4, 2)),
        "beyond the end": show((7, 5), (2, 3), (4, 2)),
        "smaller than a block": show((1, 2), (2, 3), (1, 1)),
        "revisited": show((8, 6), (2, 3), (4, 2, 10), lambda i, j, k: (i, j)),
        "squeezed by None": rows(None),
        "squeezed": rows(pl.squeezed),
        "no shape, no map": show((4, 4), None, (2, 3), None),
        "no map": show((4, 4), (4, 4), (2, 3), None),
        "from elements": elements((8, 6), (4, 2), [(0, 0), (0, 0)]),
        "from elements, padded": elements((7, 7), (4, 3), [(1, 0), (2, 0)]),
    }


# ----------------------------------------------------------------------------------
# Software pipelining
# ----------------------------------------------------------------------------------


def add_kernel(x_ref, y_ref, z_ref):
    x = x_ref[:, :]
    y = y_ref[:, :]
    z_ref[:, :] = x + y


def pipelining(lib: Library) -> Cells:
    """Whole arrays, blocks of several sizes, a wrong and a right sum over blocks."""
    pl, jnp = lib.pl, lib.np

    def add(x, y, rows=None, columns=None):
        m, n = x.shape
        if rows is None:
            return lib.call(add_kernel, x.shape, x.dtype)(x, y)
        block = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
        return lib.pl.pallas_call(
            add_kernel,
            out_shape=x,
            in_specs=[block, block],
            out_specs=block,
            grid=(m // rows, n // columns),
            interpret=lib.interpret,
        )(x, y)

    def wrong(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    def right(x_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    def total(kernel, x, last, size=32):
        count, m, n = x.shape
        blocks = (m // size, n // size)
        grid = (*blocks, count) if last else (count, *blocks)
        take = (lambda i, j, k: (k, i, j)) if last else (lambda i, j, k: (i, j, k))
        put = (lambda i, j, k: (i, j)) if last else (lambda i, j, k: (j, k))
        return lib.call(
            kernel,
            (m, n),
            x.dtype,
            grid=grid,
            in_specs=[pl.BlockSpec((None, size, size), take)],
            out_specs=pl.BlockSpec((size, size), put),
        )(x)

    keys = [lib.lib.random.key(0), lib.lib.random.key(1)]
    x, y = (lib.lib.random.uniform(key, (128, 128)) for key in keys)
    ones = jnp.ones((8, 64, 64))
    sizes = {f"blocks of {n}": add(x, y, n, n) for n in (32, 64, 128)}
    return {
        "whole": add(jnp.ones((64, 64)), jnp.ones((64, 64))),
        **sizes,
        "expected": x + y,
        "the wrong sum has no values": jnp.isnan(total(wrong, ones, last=False)),
        "the right sum": total(right, ones, last=True),
    }


def pipelining_on_a_tpu(lib: Library) -> Cells:
    """Memory spaces, buffers, and the order of programs, which a CPU need not follow"""
    pl, tpu, jnp = lib.pl, lib.tpu, lib.np
    x, y = jnp.ones((64, 128)), jnp.full((64, 128), 2.0)

    def add(space=None, mode=None, params=None):
        spec = pl.BlockSpec((32, 128), lambda i: (i, 0), memory_space=space)
        if mode is not None:
            spec = pl.BlockSpec((32, 128), lambda i: (i, 0), pipeline_mode=mode)
        return lib.call(
            add_kernel,
            x.shape,
            grid=(2,),
            in_specs=[spec, spec],
            out_specs=pl.BlockSpec((32, 128), lambda i: (i, 0)),
            compiler_params=params,
        )(x, y)

    semantics = tpu.CompilerParams(dimension_semantics=("parallel",))
    enums = tpu.CompilerParams(dimension_semantics=(tpu.PARALLEL,))
    return {
        "in VMEM": add(space=tpu.VMEM),
        "two cores": add(params=semantics),
        "two cores, by the constant": add(params=enums),
        "one buffer": add(mode=pl.Buffered(1)),
        "two buffers": add(mode=pl.Buffered(buffer_count=2)),
    }


# ----------------------------------------------------------------------------------
# Matrix multiplication
# ----------------------------------------------------------------------------------


def matmul_in_numpy(x: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """The product as a sum over blocks."""
    (m, k), n = x.shape, y.shape[1]
    z = np.zeros((m, n), x.dtype)
    blocks = itertools.product(range(0, m, size), range(0, n, size), range(0, k, size))
    for i, j, r in blocks:
        a, b = x[i : i + size, r : r + size], y[r : r + size, j : j + size]
        z[i : i + size, j : j + size] += a @ b
    return z


def matmul_call(lib, x, y, *, size=32, transposed=False, activation=lambda z: z):
    """The guide's last kernel: float32 sums in scratch, two fusions by choice."""
    pl = lib.pl
    (m, k), n = x.shape, y.shape[1]
    steps = k // size

    def kernel(x_ref, y_ref, z_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = lib.np.zeros_like(sum_ref)

        axes = ((1,), (1 if transposed else 0,)), ((), ())
        sum_ref[...] += lib.lax.dot_general(
            x_ref[...], y_ref[...], axes, preferred_element_type=np.float32
        )

        @pl.when(pl.program_id(2) == steps - 1)
        def _():
            z_ref[...] = activation(sum_ref[...]).astype(z_ref.dtype)

    right = pl.BlockSpec((size, size), lambda i, j, r: (r, j))
    if transposed:
        y = y.swapaxes(0, 1)
        right = pl.BlockSpec((size, size), lambda i, j, r: (j, r))
    return lib.call(
        kernel,
        (m, n),
        x.dtype,
        grid_spec=lib.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            grid=(m // size, n // size, steps),
            in_specs=[pl.BlockSpec((size, size), lambda i, j, r: (i, r)), right],
            out_specs=pl.BlockSpec((size, size), lambda i, j, r: (i, j)),
            scratch_shapes=[lib.tpu.VMEM((size, size), np.float32)],
        ),
        compiler_params=lib.tpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
    )(x, y)


def matrix_multiplication(lib: Library) -> Cells:
    """Sums in the output, then in scratch: bfloat16, transposed, with activation."""
    pl, jnp = lib.pl, lib.np

    def accumulate(x_ref, y_ref, z_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            z_ref[...] = jnp.zeros_like(z_ref)

        z_ref[...] += x_ref[...] @ y_ref[...]

    def first(x, y, size=32):
        (m, k), n = x.shape, y.shape[1]
        return lib.call(
            accumulate,
            (m, n),
            x.dtype,
            grid=(m // size, n // size, k // size),
            in_specs=[
                pl.BlockSpec((size, size), lambda i, j, r: (i, r)),
                pl.BlockSpec((size, size), lambda i, j, r: (r, j)),
            ],
            out_specs=pl.BlockSpec((size, size), lambda i, j, r: (i, j)),
        )(x, y)

    x, y = random_pair(lib, 64, 64)
    narrow = random_pair(lib, 64, 64, dtype=jnp.bfloat16)
    relu = lib.lib.nn.relu
    static = ("size", "transposed", "activation")
    jitted = lib.lib.jit(functools.partial(matmul_call, lib), static_argnames=static)
    wide = [z.astype(np.float32) for z in narrow]
    return {
        "first": first(x, y),
        "by hand": matmul_in_numpy(np.asarray(x), np.asarray(y), 32),
        "expected": x @ y,
        "bfloat16": jitted(*narrow).astype(np.float32),
        "bfloat16, expected": (wide[0] @ wide[1]),
        "blocks of 16": jitted(x, y, size=16),
        "transposed": jitted(x, y, transposed=True),
        "with activation": jitted(x, y, activation=relu),
    }


GUIDES = [
    quickstart,
    grids_and_blocks,
    pipelining,
    pipelining_on_a_tpu,
    matrix_multiplication,
]
