"""A solution of each of the fourteen puzzles, and answers that must fail."""

import math

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu


def call(kernel, shape, **options):
    """`pallas_call` with one output of float32."""
    return pl.pallas_call(kernel, ShapeDtypeStruct(shape, jnp.float32), **options)


PART = pl.BlockSpec((16,), lambda i: (i,))
ONE = pl.BlockSpec((1,), lambda i: (0,))


def add_ten(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 10

    grid = (x.size // 16,)
    return call(kernel, x.shape, grid=grid, in_specs=[PART], out_specs=PART)(x)


def product(x, y):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * y_ref[...]

    grid = (x.size // 16,)
    return call(kernel, x.shape, grid=grid, in_specs=[PART] * 2, out_specs=PART)(x, y)


def _total(x, guarded):
    def kernel(x_ref, o_ref):
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        part = x_ref[...]
        if guarded:
            part = jnp.where(i * 16 + jnp.arange(16) < x.size, part, 0.0)
        o_ref[...] += part.sum(keepdims=True)

    grid = (pl.cdiv(x.size, 16),)
    return call(kernel, (1,), grid=grid, in_specs=[PART], out_specs=ONE)(x)


def total(x):
    """What lies beyond the end is no number: a guard leaves it out."""
    return _total(x, guarded=True)


def unguarded_total(x):
    """Wrong: it adds what lies beyond the end."""
    return _total(x, guarded=False)


def table(x, y):
    """All of x, and eight of y: every number is fetched once."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...][:, None] + y_ref[...][None, :]

    n, m = x.size, y.size
    return call(
        kernel,
        (n, m),
        grid=(m // 8,),
        in_specs=[
            pl.BlockSpec((n,), lambda j: (0,)),
            pl.BlockSpec((8,), lambda j: (j,)),
        ],
        out_specs=pl.BlockSpec((n, 8), lambda j: (0, j)),
    )(x, y)


def transposed(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    n, m = x.shape
    return call(
        kernel,
        (m, n),
        grid=(n // 16, m // 16),
        in_specs=[pl.BlockSpec((16, 16), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((16, 16), lambda i, j: (j, i)),
    )(x)


def in_one_block(x):
    """Wrong: a program has the whole matrix."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    return call(kernel, x.shape[::-1])(x)


def largest(x):
    """The largest so far stays in scratch memory; the last program writes it."""

    def kernel(x_ref, o_ref, top_ref):
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _():
            top_ref[...] = jnp.full_like(top_ref, -jnp.inf)

        top_ref[...] = jnp.maximum(top_ref[...], x_ref[...])

        @pl.when(i == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = top_ref[...]

    return call(
        kernel,
        (16,),
        grid=(x.size // 16,),
        in_specs=[PART],
        out_specs=pl.BlockSpec((16,), lambda i: (0,)),
        scratch_shapes=[pltpu.VMEM((16,), jnp.float32)],
    )(x)


def windows(x):
    """The last two elements of a block are carried to the next one."""

    def kernel(x_ref, o_ref, before_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            before_ref[...] = jnp.zeros_like(before_ref)

        part = jnp.concatenate([before_ref[...], x_ref[...]])
        o_ref[...] = part[2:] + part[1:-1] + part[:-2]
        before_ref[...] = x_ref[...][14:]

    return call(
        kernel,
        x.shape,
        grid=(x.size // 16,),
        in_specs=[PART],
        out_specs=PART,
        scratch_shapes=[pltpu.VMEM((2,), jnp.float32)],
    )(x)


def overlapping_windows(x):
    """Blocks of 18 elements that overlap; before the array there is NaN."""

    def kernel(x_ref, o_ref):
        place = pl.program_id(0) * 16 - 2 + jnp.arange(18)
        part = jnp.where(place >= 0, x_ref[...], 0.0)
        o_ref[...] = part[2:] + part[1:-1] + part[:-2]

    return call(
        kernel,
        x.shape,
        grid=(x.size // 16,),
        in_specs=[pl.BlockSpec((pl.Element(18, (2, 0)),), lambda i: (16 * i,))],
        out_specs=PART,
    )(x)


def dot(x, y):
    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += (x_ref[...] * y_ref[...]).sum(keepdims=True)

    grid = (x.size // 16,)
    return call(kernel, (1,), grid=grid, in_specs=[PART] * 2, out_specs=ONE)(x, y)


def prefix(x):
    """The sum of all blocks before is carried in scratch memory."""

    def kernel(x_ref, o_ref, before_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            before_ref[...] = jnp.zeros_like(before_ref)

        part = x_ref[...]
        o_ref[...] = before_ref[...] + jnp.cumsum(part)
        before_ref[...] += part.sum(keepdims=True)

    return call(
        kernel,
        x.shape,
        grid=(x.size // 16,),
        in_specs=[PART],
        out_specs=PART,
        scratch_shapes=[pltpu.VMEM((1,), jnp.float32)],
    )(x)


def forgetful_prefix(x):
    """Wrong: each block begins with zero."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...])

    grid = (x.size // 16,)
    return call(kernel, x.shape, grid=grid, in_specs=[PART], out_specs=PART)(x)


def row_sums(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...].sum(1)

    n, m = x.shape
    return call(
        kernel,
        (n,),
        grid=(n // 8, m // 16),
        in_specs=[pl.BlockSpec((8, 16), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8,), lambda i, j: (i,)),
    )(x)


def _multiply(x_ref, y_ref, o_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...] @ y_ref[...]


def _matmul(x, y, side, numbers):
    """The product in squares; `numbers(i, j, k)` are those of the blocks."""
    (n, depth), m = x.shape, y.shape[1]
    turns = depth // side, m // side

    def of(*axes):
        def index_map(i, j, k):
            numbered = numbers(i, j, k, *turns)
            return tuple(numbered[axis] for axis in axes)

        return pl.BlockSpec((side, side), index_map)

    return call(
        _multiply,
        (n, m),
        grid=(n // side, m // side, depth // side),
        in_specs=[of(0, 2), of(2, 1)],
        out_specs=of(0, 1),
    )(x, y)


def matmul(x, y):
    return _matmul(x, y, 16, lambda i, j, k, *_: (i, j, k))


def there_and_back(x, y):
    """j and k turn round at each end, so that one of two blocks stays where it is."""

    def numbers(i, j, k, depth, columns):
        turn = i * columns + j
        j = jnp.where(i % 2 == 0, j, columns - 1 - j)
        k = jnp.where(turn % 2 == 0, k, depth - 1 - k)
        return i, j, k

    return _matmul(x, y, 32, numbers)


def always_from_the_left(x, y):
    """Wrong: both blocks change at each step."""
    return _matmul(x, y, 32, lambda i, j, k, *_: (i, j, k))


def softmax(x):
    def kernel(x_ref, o_ref):
        e = jnp.exp(x_ref[...] - x_ref[...].max(1, keepdims=True))
        o_ref[...] = e / e.sum(1, keepdims=True)

    rows = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    grid = (pl.cdiv(x.shape[0], 8),)
    return call(kernel, x.shape, grid=grid, in_specs=[rows], out_specs=rows)(x)


def attention(q, k, v):
    """Flash attention: the output's block stays, and is corrected on the way."""

    def kernel(q_ref, k_ref, v_ref, o_ref, top_ref, weight_ref):
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _():
            top_ref[...] = jnp.full_like(top_ref, -jnp.inf)
            weight_ref[...] = jnp.zeros_like(weight_ref)
            o_ref[...] = jnp.zeros_like(o_ref)

        scores = q_ref[...] @ k_ref[...].T / math.sqrt(q.shape[1])
        top = jnp.maximum(top_ref[...], scores.max(1, keepdims=True))
        shrink = jnp.exp(top_ref[...] - top)
        e = jnp.exp(scores - top)
        top_ref[...] = top
        weight_ref[...] = weight_ref[...] * shrink + e.sum(1, keepdims=True)
        o_ref[...] = o_ref[...] * shrink + e @ v_ref[...]

        @pl.when(j == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = o_ref[...] / weight_ref[...]

    width = q.shape[1]
    queries = pl.BlockSpec((16, width), lambda i, j: (i, 0))
    keys = pl.BlockSpec((16, width), lambda i, j: (j, 0))
    return call(
        kernel,
        q.shape,
        grid=(q.shape[0] // 16, k.shape[0] // 16),
        in_specs=[queries, keys, keys],
        out_specs=queries,
        scratch_shapes=[
            pltpu.VMEM((16, 1), jnp.float32),
            pltpu.VMEM((16, 1), jnp.float32),
        ],
    )(q, k, v)


SOLUTIONS = {
    "18.map": lambda: (add_ten,),
    "18.zip": lambda: (product,),
    "18.guard": lambda: (total,),
    "18.broadcast": lambda: (table,),
    "18.blocks": lambda: (transposed,),
    "18.scratch": lambda: (largest,),
    "18.pool": lambda: (windows,),
    "19.dot": lambda: (dot,),
    "19.prefix": lambda: (prefix,),
    "19.sums": lambda: (row_sums,),
    "19.matmul": lambda: (matmul,),
    "19.softmax": lambda: (softmax,),
    "19.attention": lambda: (attention,),
    "19.budget": lambda: (there_and_back,),
}


def without_kernel(function):
    """Wrong: the right numbers, and no kernel."""
    return lambda: (function,)


WRONG = {
    "18.map": [without_kernel(lambda x: jnp.asarray(x) + 10)],
    "18.zip": [lambda: (lambda x, y: x + y,)],
    "18.guard": [lambda: (unguarded_total,)],
    "18.broadcast": [lambda: (lambda x, y: x[:, None] * y[None, :],)],
    "18.blocks": [lambda: (in_one_block,)],
    "18.scratch": [without_kernel(lambda x: jnp.asarray(x).reshape(-1, 16).max(0))],
    "18.pool": [lambda: (add_ten,)],
    "19.dot": [lambda: (lambda x, y: product(x, y),)],
    "19.prefix": [lambda: (forgetful_prefix,)],
    "19.sums": [without_kernel(lambda x: jnp.asarray(x).sum(1))],
    "19.matmul": [without_kernel(lambda x, y: jnp.asarray(x) @ y)],
    "19.softmax": [lambda: (lambda x: jnp.asarray(x),)],
    "19.attention": [lambda: (lambda q, k, v: jnp.asarray(q),)],
    "19.budget": [lambda: (always_from_the_left,)],
}
COMPLAINTS = {
    "18.map": ["There is no pallas_call"],
    "18.zip": ["the numbers are others"],
    "18.guard": ["For (50,) the numbers are others"],
    "18.broadcast": ["the numbers are others"],
    "18.blocks": ["A program holds"],
    "18.scratch": ["There is no pallas_call"],
    "18.pool": ["the numbers are others"],
    "19.dot": ["the result has shape"],
    "19.prefix": ["the numbers are others"],
    "19.sums": ["There is no pallas_call"],
    "19.matmul": ["There is no pallas_call"],
    "19.softmax": ["the numbers are others"],
    "19.attention": ["the numbers are others"],
    "19.budget": ["65,536 B are fetched"],
}
