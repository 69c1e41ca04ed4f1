"""A table of kernels, each written once and built for minijax and for jax.

An entry has a function of a `Library` that builds the caller, example arguments, and
what the result must be in NumPy.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class Library:
    """The names kernels use, of minijax or jax; JAX runs kernels only interpreted."""

    def __init__(self, name: str, interpret: bool):
        self.lib = importlib.import_module(name)
        self.np = importlib.import_module(f"{name}.numpy")
        self.lax = importlib.import_module(f"{name}.lax")
        self.pl = importlib.import_module(f"{name}.experimental.pallas")
        self.tpu = importlib.import_module(f"{name}.experimental.pallas.tpu")
        self.triton = importlib.import_module(f"{name}.experimental.pallas.triton")
        self.interpret = interpret

    def call(self, kernel, shape, dtype=np.float32, **options):
        """`pallas_call` with one output; or with `shape` as the whole `out_shape`."""
        out_shape = shape
        if isinstance(shape, tuple) and all(isinstance(d, int) for d in shape):
            out_shape = self.struct(shape, dtype)
        options.setdefault("interpret", self.interpret)
        return self.pl.pallas_call(kernel, out_shape=out_shape, **options)

    def struct(self, shape, dtype=np.float32):
        return self.lib.ShapeDtypeStruct(shape, dtype)


@dataclass(frozen=True)
class Entry:
    name: str
    build: Callable[[Library], Callable]
    args: tuple[np.ndarray, ...]
    expected: Callable[..., Any]
    in_jax: bool = True  # whether JAX's interpreter can run it


TABLE: list[Entry] = []


def entry(expected: Callable, *args: Any, in_jax: bool = True) -> Callable:
    def add(build: Callable) -> Callable:
        arrays = tuple(map(np.asarray, args))
        TABLE.append(Entry(build.__name__, build, arrays, expected, in_jax))
        return build

    return add


def values(*shape: int, dtype=np.float32, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return draw.integers(0, 9, shape).astype(dtype)
    return draw.standard_normal(shape).astype(dtype)


X8, Y8 = values(8), values(8, seed=1)
X10 = values(10)
X46 = values(4, 6)
I8 = values(8, dtype=np.int32)


# ----------------------------------------------------------------------------------
# Without a grid
# ----------------------------------------------------------------------------------


@entry(lambda x, y: x + y, X8, Y8)
def add(k):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    return k.call(kernel, (8,))


@entry(lambda x: x * 2 + 1, X46)
def whole_matrix(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + 1

    return k.call(kernel, (4, 6))


@entry(lambda x: (x + 1, x.sum(axis=1)), X46)
def two_outputs(k):
    def kernel(x_ref, o_ref, sum_ref):
        o_ref[...] = x_ref[...] + 1
        sum_ref[...] = x_ref[...].sum(axis=1)

    return k.call(kernel, (k.struct((4, 6)), k.struct((4,))))


@entry(lambda x, y: {"sum": x + y, "both": [x * y, x - y]}, X8, Y8)
def trees(k):
    def kernel(pair, out):
        x, y = pair["x"][...], pair["y"][...]
        out["sum"][...] = x + y
        out["both"][0][...] = x * y
        out["both"][1][...] = x - y

    s = k.struct((8,))
    f = k.call(kernel, {"sum": s, "both": [s, s]})
    return lambda x, y: f({"x": x, "y": y})


@entry(lambda x: np.concatenate([x[2:4], x[:6]]), X8)
def slices(k):
    def kernel(x_ref, o_ref):
        o_ref[:2] = x_ref[2:4]
        o_ref[k.pl.ds(2, 6)] = x_ref[k.pl.ds(0, 6)]

    return k.call(kernel, (8,))


@entry(lambda x: x[::-1], X8)
def reverse_by_loop(k):
    def kernel(x_ref, o_ref):
        def body(i, carry):
            o_ref[7 - i] = x_ref[i]
            return carry

        k.lax.fori_loop(0, 8, body, 0)

    return k.call(kernel, (8,))


@entry(lambda x: np.cumsum(x), X8)
def prefix_sum(k):
    def kernel(x_ref, o_ref):
        @k.pl.loop(0, 8, init_carry=k.np.float32(0))
        def last(i, total):
            total = total + x_ref[i]
            o_ref[i] = total
            return total

    return k.call(kernel, (8,))


@entry(lambda x: np.repeat(x[::2], 2), X8)
def loop_with_steps(k):
    def kernel(x_ref, o_ref):
        @k.pl.loop(0, 8, step=2)
        def _(i):
            i = k.pl.multiple_of(i, 2)
            o_ref[i] = x_ref[i]
            o_ref[i + 1] = x_ref[i]

    return k.call(kernel, (8,))


@entry(lambda x: np.where(x > 0, x, 0.1 * x), X46)
def leaky(k):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        o_ref[...] = k.np.where(x > 0, x, 0.1 * x)

    return k.call(kernel, (4, 6))


@entry(lambda x, i: x[i], X46, np.array([3, 0, 2], np.int32))
def rows_by_index(k):
    def kernel(x_ref, i_ref, o_ref):
        for row in range(3):
            o_ref[row, :] = x_ref[i_ref[row], :]

    return k.call(kernel, (3, 6))


@entry(lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), X10)
def softmax_of_a_row(k):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        e = k.np.exp(x - k.np.max(x))
        o_ref[...] = e / k.np.sum(e)

    return k.call(kernel, (10,))


# ----------------------------------------------------------------------------------
# Grids and blocks
# ----------------------------------------------------------------------------------


@entry(lambda x, y: x + y, X8, Y8)
def add_in_blocks(k):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    return k.call(kernel, (8,), grid=(2,), in_specs=[block, block], out_specs=block)


@entry(lambda x: x * 2, X10)
def blocks_that_do_not_divide(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    return k.call(kernel, (10,), grid=(3,), in_specs=[block], out_specs=block)


@entry(lambda x: x.T, values(5, 7))
def transpose_in_blocks(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    return k.call(
        kernel,
        (7, 5),
        grid=(3, 4),
        in_specs=[k.pl.BlockSpec((2, 2), lambda i, j: (i, j))],
        out_specs=k.pl.BlockSpec((2, 2), lambda i, j: (j, i)),
    )


@entry(lambda: np.arange(6, dtype=np.int32).reshape(2, 3))
def program_ids(k):
    def kernel(o_ref):
        o_ref[...] = k.pl.program_id(0) * k.pl.num_programs(1) + k.pl.program_id(1)

    return k.call(
        kernel,
        (2, 3),
        np.int32,
        grid=(2, 3),
        out_specs=k.pl.BlockSpec((None, None), lambda i, j: (i, j)),
    )


@entry(lambda x: x + np.arange(4, dtype=np.float32)[:, None], X46)
def squeezed_rows(k):
    def kernel(x_ref, o_ref):
        assert x_ref.shape == (6,)
        o_ref[...] = x_ref[...] + k.pl.program_id(0).astype(k.np.float32)

    block = k.pl.BlockSpec((None, 6), lambda i: (i, 0))
    return k.call(kernel, (4, 6), grid=(4,), in_specs=[block], out_specs=block)


@entry(lambda x: x + 1, X46)
def squeezed_by_name(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    block = k.pl.BlockSpec((k.pl.Squeezed(), k.pl.Blocked(3)), lambda i, j: (i, j))
    return k.call(kernel, (4, 6), grid=(4, 2), in_specs=[block], out_specs=block)


@entry(lambda x: x[:6] + x[1:7] + x[2:8], X8)
def windows_by_element(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.np.sum(x_ref[...], keepdims=True)

    return k.call(
        kernel,
        (6,),
        grid=(6,),
        in_specs=[k.pl.BlockSpec((k.pl.Element(3),), lambda i: (i,))],
        out_specs=k.pl.BlockSpec((1,), lambda i: (i,)),
    )


@entry(lambda x: np.array([np.nansum(x[max(i - 1, 0) : i + 2]) for i in range(8)]), X8)
def windows_with_padding(k):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        o_ref[...] = k.np.sum(k.np.where(k.np.isnan(x), 0.0, x), keepdims=True)

    return k.call(
        kernel,
        (8,),
        grid=(8,),
        in_specs=[k.pl.BlockSpec((k.pl.Element(3, (1, 1)),), lambda i: (i,))],
        out_specs=k.pl.BlockSpec((1,), lambda i: (i,)),
    )


@entry(lambda x: x.sum(axis=0), values(12, 5))
def accumulate_over_an_axis(k):
    def kernel(x_ref, o_ref):
        @k.pl.when(k.pl.program_id(0) == 0)
        def _():
            o_ref[...] = k.np.zeros_like(o_ref)

        o_ref[...] += x_ref[...].sum(axis=0)

    return k.call(
        kernel,
        (5,),
        grid=(4,),
        in_specs=[k.pl.BlockSpec((3, 5), lambda i: (i, 0))],
        out_specs=k.pl.BlockSpec((5,), lambda i: (0,)),
    )


def _matmul(k, size, block, activation=None, dtype=np.float32):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @k.pl.when(k.pl.program_id(2) == 0)
        def _():
            acc_ref[...] = k.np.zeros_like(acc_ref)

        acc_ref[...] += k.np.dot(
            x_ref[...], y_ref[...], preferred_element_type=k.np.float32
        )

        @k.pl.when(k.pl.program_id(2) == k.pl.num_programs(2) - 1)
        def _():
            result = acc_ref[...]
            if activation is not None:
                result = activation(result)
            o_ref[...] = result.astype(o_ref.dtype)

    m, n, p = size
    a, b, c = block
    return k.call(
        kernel,
        (m, p),
        dtype,
        grid=(k.pl.cdiv(m, a), k.pl.cdiv(p, c), k.pl.cdiv(n, b)),
        in_specs=[
            k.pl.BlockSpec((a, b), lambda i, j, q: (i, q)),
            k.pl.BlockSpec((b, c), lambda i, j, q: (q, j)),
        ],
        out_specs=k.pl.BlockSpec((a, c), lambda i, j, q: (i, j)),
        scratch_shapes=[k.tpu.VMEM((a, c), k.np.float32)],
        compiler_params=k.tpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
    )


@entry(lambda x, y: x @ y, values(8, 12), values(12, 4))
def matmul(k):
    return _matmul(k, (8, 12, 4), (4, 4, 2))


@entry(lambda x, y: np.maximum(x @ y, 0), values(7, 8), values(8, 5))
def matmul_with_activation(k):
    return _matmul(k, (7, 8, 5), (4, 4, 4), lambda x: k.np.maximum(x, 0))


@entry(
    lambda x, y: x.astype(np.float32) @ y.astype(np.float32),
    values(8, 8, dtype=np.float16),
    values(8, 8, dtype=np.float16),
)
def matmul_in_half_precision(k):
    return _matmul(k, (8, 8, 8), (4, 4, 4))


@entry(
    lambda x: (
        np.exp(x - x.max(1, keepdims=True))
        / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    values(10, 6),
)
def softmax_of_rows(k):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        e = k.np.exp(x - x.max(axis=1, keepdims=True))
        o_ref[...] = e / e.sum(axis=1, keepdims=True)

    block = k.pl.BlockSpec((4, 6), lambda i: (i, 0))
    return k.call(kernel, (10, 6), grid=(3,), in_specs=[block], out_specs=block)


@entry(lambda x: x.cumsum().astype(np.float32), X8)
def carried_in_scratch(k):
    def kernel(x_ref, o_ref, total_ref):
        @k.pl.when(k.pl.program_id(0) == 0)
        def _():
            total_ref[0] = 0.0

        total_ref[0] += x_ref[0]
        o_ref[0] = total_ref[0]

    block = k.pl.BlockSpec((1,), lambda i: (i,))
    return k.call(
        kernel,
        (8,),
        grid=(8,),
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[k.tpu.SMEM((1,), k.np.float32)],
    )


@entry(lambda x: x + 3, X8)
def scratch_by_name(k):
    def kernel(x_ref, o_ref, *, space):
        space[...] = x_ref[...] + 1
        o_ref[...] = space[...] + 2

    return k.call(
        kernel, (8,), scratch_shapes={"space": k.tpu.VMEM((8,), k.np.float32)}
    )


@entry(lambda i, x: x.reshape(4, 2)[i].ravel(), np.int32([3, 1, 0, 2]), X8)
def prefetched_indices(k):
    def kernel(i_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return k.call(
        kernel,
        (8,),
        grid_spec=k.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[k.pl.BlockSpec((2,), lambda p, i_ref: (i_ref[p],))],
            out_specs=k.pl.BlockSpec((2,), lambda p, i_ref: (p,)),
        ),
    )


@entry(lambda x, s: x * s[np.arange(8) // 4], X8, np.int32([2, 5]))
def scalars_in_the_kernel(k):
    def kernel(s_ref, x_ref, o_ref):
        s = s_ref[k.pl.program_id(0)]
        o_ref[...] = x_ref[...] * s.astype(k.np.float32)

    block = k.pl.BlockSpec((4,), lambda p, s_ref: (p,))
    f = k.call(
        kernel,
        (8,),
        grid_spec=k.tpu.PrefetchScalarGridSpec(1, (2,), [block], block),
    )
    return lambda x, s: f(s, x)


@entry(lambda x: np.where(np.arange(8) < 4, x + 1, x), X8)
def aliased_output(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    return k.call(
        kernel,
        (8,),
        grid=(1,),
        in_specs=[block],
        out_specs=block,
        input_output_aliases={0: 0},
    )


@entry(lambda x: x + 1, X8)
def grid_spec(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    block = k.pl.BlockSpec((2,), lambda i: (i,))
    return k.call(
        kernel,
        (8,),
        grid_spec=k.pl.GridSpec(grid=4, in_specs=[block], out_specs=block),
        name="adds_one",
        cost_estimate=k.pl.CostEstimate(flops=8, transcendentals=0, bytes_accessed=64),
    )


@entry(lambda x: x[:, :3].sum() + np.zeros((2, 2), np.float32), X46)
def block_chosen_by_the_map(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.np.full((2, 2), x_ref[...].sum())

    return k.call(
        kernel, (2, 2), in_specs=[k.pl.BlockSpec((4, 3), lambda: (0, 0))], grid=()
    )


@entry(lambda x: x * 2, I8)
def integers(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    block = k.pl.BlockSpec((3,), lambda i: (i,))
    return k.call(kernel, (8,), np.int32, grid=(3,), in_specs=[block], out_specs=block)


@entry(lambda x: x > 3, I8)
def booleans(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] > 3

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    return k.call(kernel, (8,), np.bool_, grid=(2,), in_specs=[block], out_specs=block)


@entry(lambda x: x + x, values(8, dtype=np.float16))
def half_precision(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + x_ref[...]

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    return k.call(
        kernel, (8,), np.float16, grid=(2,), in_specs=[block], out_specs=block
    )


@entry(lambda x: x + 1, values(3, 8))
def under_vmap(k):
    return k.lib.vmap(add_one(k))


@entry(lambda x: x.T + 1, values(8, 3))
def under_vmap_of_columns(k):
    return k.lib.vmap(add_one(k), in_axes=1)


@entry(lambda x, y: x + y, values(3, 8), Y8)
def under_vmap_of_one(k):
    return k.lib.vmap(add_in_blocks(k), in_axes=(0, None))


@entry(lambda x, y: x @ y, values(3, 8, 12), values(12, 4))
def matmul_under_vmap(k):
    return k.lib.vmap(matmul(k), in_axes=(0, None))


@entry(lambda x: x + 1, values(2, 3, 8))
def under_vmap_twice(k):
    return k.lib.vmap(k.lib.vmap(add_one(k)))


@entry(
    lambda i, x: np.stack([x.reshape(4, 2)[row].ravel() for row in i]),
    np.int32([[3, 1, 0, 2], [0, 0, 1, 1]]),
    X8,
)
def scalars_under_vmap(k):
    return k.lib.vmap(prefetched_indices(k), in_axes=(0, None))


@entry(lambda x: 2 * (x + 1), X8)
def inside_of_jit(k):
    f = add_one(k)
    return k.lib.jit(lambda x: 2 * f(x))


@entry(lambda x: x + 3, X8)
def inside_of_a_loop(k):
    f = add_one(k)
    return lambda x: k.lax.fori_loop(0, 3, lambda i, y: f(y), x)


@entry(lambda x: 2 * x, X8)
def derivative_of_square(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * x_ref[...]

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    f = k.call(kernel, (8,), grid=(2,), in_specs=[block], out_specs=block)
    return lambda x: k.lib.jvp(f, (x,), (k.np.ones_like(x),))[1]


@entry(lambda x: 3 * np.ones_like(x), X8)
def gradient_by_custom_rule(k):
    f = add_one(k)
    g = k.lib.custom_vjp(lambda x: f(x))
    g.defvjp(lambda x: (f(x), None), lambda _, ct: (3 * ct,))
    return k.lib.grad(lambda x: g(x).sum())


def add_one(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    block = k.pl.BlockSpec((4,), lambda i: (i,))
    return k.call(kernel, (8,), grid=(2,), in_specs=[block], out_specs=block)


# ----------------------------------------------------------------------------------
# Masks, views, memory of a kernel's own
# ----------------------------------------------------------------------------------


@entry(lambda x, y: x + y, X10, values(10, seed=1))
def masked_vectors(k):
    def kernel(x_ref, y_ref, o_ref):
        start = k.pl.program_id(0) * 4
        index = start + k.np.arange(4)
        mask = index < 10
        x = k.triton.load(x_ref.at[k.pl.ds(start, 4)], mask=mask, other=0.0)
        y = k.triton.load(y_ref.at[k.pl.ds(start, 4)], mask=mask)
        k.triton.store(o_ref.at[k.pl.ds(start, 4)], x + y, mask=mask)

    return k.call(kernel, (10,), grid=(3,))


@entry(lambda x: np.concatenate([x[6:], [-1.0, -1.0]]).astype(np.float32), X8)
def masked_beyond_the_end(k):
    def kernel(x_ref, o_ref):
        start = k.pl.program_id(0) + 6
        mask = start + k.np.arange(4) < 8
        o_ref[...] = k.triton.load(x_ref.at[k.pl.ds(start, 4)], mask=mask, other=-1.0)

    return k.call(kernel, (4,), grid=(1,))


@entry(lambda x: x[np.array([3, 1])] * 2, X8)
def loaded_by_indices(k):
    def kernel(x_ref, o_ref):
        rows = 3 - 2 * k.np.arange(2)
        o_ref[...] = k.triton.load(x_ref.at[rows]) * 2

    return k.call(kernel, (2,))


@entry(lambda x: np.where(np.arange(8) % 2 == 0, x, 0), X8)
def stored_where_even(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.np.zeros_like(o_ref)
        k.triton.store(o_ref, x_ref[...], mask=k.np.arange(8) % 2 == 0)

    return k.call(kernel, (8,))


@entry(lambda x: x[2:6][1:3], X8)
def view_of_a_view(k):
    def kernel(x_ref, o_ref):
        part = x_ref.at[2:6]
        o_ref[...] = part.at[1:3][...]

    return k.call(kernel, (2,))


@entry(lambda x: x[1:5] * 2, X8)
def memory_of_its_own(k):
    def kernel(x_ref, o_ref):
        def body(space):
            space[...] = x_ref[...] * 2
            o_ref[...] = space[1:5]

        k.pl.run_scoped(body, k.tpu.VMEM((8,), k.np.float32))

    return k.call(kernel, (4,))


@entry(lambda x: x.sum(keepdims=True), X8)
def memory_that_returns(k):
    def kernel(x_ref, o_ref):
        @k.pl.with_scoped(total=k.tpu.SMEM((1,), k.np.float32))
        def run(ref, total):
            total[0] = k.np.sum(ref[...])
            return total[0]

        o_ref[0] = run(x_ref)

    return k.call(kernel, (1,))


@entry(lambda x: 1 / (x + 10), X8)
def reciprocals(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.pl.reciprocal(x_ref[...] + 10)

    return k.call(kernel, (8,))


@entry(lambda x: np.bincount(x, minlength=9).astype(np.int32), I8)
def histogram_by_atomics(k):
    def kernel(x_ref, o_ref):
        @k.pl.when(k.pl.program_id(0) == 0)
        def _():
            o_ref[...] = k.np.zeros_like(o_ref)

        k.triton.atomic_add(o_ref, (x_ref[0],), k.np.int32(1))

    return k.call(
        kernel,
        (9,),
        np.int32,
        grid=(8,),
        in_specs=[k.pl.BlockSpec((1,), lambda i: (i,))],
        out_specs=k.pl.BlockSpec((9,), lambda i: (0,)),
    )


# JAX's interpreter has no program_id inside of other programs.
@entry(lambda x: np.full(3, x.sum(), np.float32), X8, in_jax=False)
def nested_jit_and_ids(k):
    @k.lib.jit
    def place(x):
        return x * 0 + k.pl.program_id(0).astype(k.np.float32) * 0 + x.sum()

    def kernel(x_ref, o_ref):
        o_ref[...] = place(x_ref[...])[:1]

    return k.call(
        kernel, (3,), grid=(3,), out_specs=k.pl.BlockSpec((1,), lambda i: (i,))
    )


@entry(
    lambda x: x * np.arange(3)[:, None].astype(np.float32), values(3, 4), in_jax=False
)
def ids_in_a_loop(k):
    def kernel(x_ref, o_ref):
        def body(j, carry):
            i = k.pl.program_id(0)
            o_ref[0, j] = x_ref[0, j] * i.astype(k.np.float32)
            return carry

        k.lax.fori_loop(0, 4, body, 0)

    block = k.pl.BlockSpec((1, 4), lambda i: (i, 0))
    return k.call(kernel, (3, 4), grid=(3,), in_specs=[block], out_specs=block)
