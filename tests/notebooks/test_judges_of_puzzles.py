"""Kernel puzzles: other kernels that are right, and mistakes, each told apart."""

import os

import pytest

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax_lab import grading, puzzle

pytestmark = pytest.mark.skipif(
    "MINIJAX_TEST_ON_EIGHT_DEVICES" in os.environ, reason="for one device"
)


def call(kernel, shape, grid, ins, out, scratch=()):
    """A pallas_call; a block is its shape and its index map."""
    return pl.pallas_call(
        kernel,
        ShapeDtypeStruct(shape, jnp.float32),
        grid=grid,
        in_specs=[pl.BlockSpec(*spec) for spec in ins],
        out_specs=pl.BlockSpec(*out),
        scratch_shapes=[pltpu.VMEM(size, jnp.float32) for size in scratch],
    )


def here(i):
    return (i,)


def first(i):
    return (0,)


PART = ((16,), here)
ONE = ((1,), first)


def add(number, size=16, out=here):
    def made(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + number

        spec = ((size,), here)
        return call(kernel, x.shape, (x.size // size,), [spec], ((size,), out))(x)

    return made


def times(operation, second=here):
    def made(x, y):
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = operation(x_ref[...], y_ref[...])

        return call(kernel, x.shape, (x.size // 16,), [PART, ((16,), second)], PART)(
            x, y
        )

    return made


def guarded(inside, begin=True):
    def made(x):
        def kernel(x_ref, o_ref):
            i = pl.program_id(0)

            @pl.when((i == 0) & begin)
            def _():
                o_ref[...] = jnp.zeros_like(o_ref)

            place = i * 16 + jnp.arange(16)
            o_ref[...] += jnp.sum(inside(place, x, x_ref[...]), keepdims=True)

        return call(kernel, (1,), (pl.cdiv(x.size, 16),), [PART], ONE)(x)

    return made


def outer(operation, rows=16, columns=16):
    def made(x, y):
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = operation(x_ref[...], y_ref[...])

        ins = [((rows,), lambda i, j: (i,)), ((columns,), lambda i, j: (j,))]
        out = ((rows, columns), lambda i, j: (i, j))
        grid = (x.size // rows, y.size // columns)
        return call(kernel, (x.size, y.size), grid, ins, out)(x, y)

    return made


def turned(inside=True, blocks=True):
    def made(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...].T if inside else x_ref[...]

        n, m = x.shape
        out = (lambda i, j: (j, i)) if blocks else (lambda i, j: (i, j))
        ins = [((16, 16), lambda i, j: (i, j))]
        return call(kernel, (m, n), (n // 16, m // 16), ins, ((16, 16), out))(x)

    return made


def transposed_in_eights(x):
    """Blocks of 8 x 16 become blocks of 16 x 8."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.swapaxes(x_ref[...], 0, 1)

    n, m = x.shape
    ins = [((8, 16), lambda i, j: (i, j))]
    out = ((16, 8), lambda i, j: (j, i))
    return call(kernel, (m, n), (n // 8, m // 16), ins, out)(x)


def largest(start=-jnp.inf, use=True, last=True, room=(16,)):
    """The largest of each of 16 columns, told by scratch memory, or by the output."""

    def made(x):
        def kernel(x_ref, o_ref, *scratch):
            i = pl.program_id(0)
            top = scratch[0] if use else o_ref

            @pl.when(i == 0)
            def _():
                top[...] = jnp.full((16,), start)

            top[...] = jnp.maximum(top[...], x_ref[...])
            if use:

                @pl.when(i == (pl.num_programs(0) - 1) if last else i >= 0)
                def _():
                    o_ref[...] = top[...]

        grid = (x.size // 16,)
        return call(
            kernel, (16,), grid, [PART], ((16,), first), [room] if room else []
        )(x)

    return made


def total(operation, start=0.0, begin=True):
    def made(x, y):
        def kernel(x_ref, y_ref, o_ref):
            @pl.when((pl.program_id(0) == 0) | (not begin))
            def _():
                o_ref[...] = jnp.full((1,), start)

            o_ref[...] += jnp.sum(operation(x_ref[...], y_ref[...]), keepdims=True)

        return call(kernel, (1,), (x.size // 16,), [PART, PART], ONE)(x, y)

    return made


def prefix(carry):
    def made(x):
        def kernel(x_ref, o_ref, sum_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                sum_ref[...] = jnp.zeros_like(sum_ref)

            part = jnp.cumsum(x_ref[...])
            o_ref[...] = part + sum_ref[...]
            sum_ref[...] = carry(sum_ref[...], part, x_ref[...])

        return call(kernel, x.shape, (x.size // 16,), [PART], PART, [(1,)])(x)

    return made


def row_sums(axis=1, begin=lambda i, j: j == 0, width=8):
    def made(x):
        def kernel(x_ref, o_ref):
            @pl.when(begin(pl.program_id(0), pl.program_id(1)))
            def _():
                o_ref[...] = jnp.zeros_like(o_ref)

            o_ref[...] += x_ref[...].sum(axis)

        n, m = x.shape
        grid = (n // 8, m // width)
        ins = [((8, width), lambda i, j: (i, j))]
        return call(kernel, (n,), grid, ins, ((8,), lambda i, j: (i,)))(x)

    return made


def soft(shifted=True, axis=-1, rows=8):
    def made(x):
        def kernel(x_ref, o_ref):
            x = x_ref[...]
            e = jnp.exp(x - x.max(axis, keepdims=True) if shifted else x * 2)
            o_ref[...] = e / e.sum(axis, keepdims=True)

        spec = ((rows, x.shape[1]), lambda i: (i, 0))
        return call(kernel, x.shape, (pl.cdiv(x.shape[0], rows),), [spec], spec)(x)

    return made


def windows(start=0.0):
    """Each program takes the two elements that it needs from the block before."""

    def made(x):
        def kernel(x_ref, before_ref, o_ref):
            i = pl.program_id(0)
            before = jnp.where(i > 0, before_ref[...][-2:], start)
            part = jnp.concatenate([before, x_ref[...]])
            o_ref[...] = part[:-2] + part[1:-1] + part[2:]

        before = ((16,), lambda i: (jnp.maximum(i - 1, 0),))
        return call(kernel, x.shape, (x.size // 16,), [PART, before], PART)(x, x)

    return made


def overlapping(x):
    def kernel(x_ref, o_ref):
        part = x_ref[...]
        part = jnp.where(jnp.isnan(part), 0.0, part)
        o_ref[...] = sum(part[n : n + 16] for n in range(3))

    part = ((pl.Element(18, (2, 0)),), lambda i: (16 * i,))
    return call(kernel, x.shape, (x.size // 16,), [part], PART)(x)


def square(side, where=lambda i, j, k, *_: (i, j, k), scratch=False):
    """A product in squares, summed in the output or in scratch memory."""

    def made(x, y):
        def kernel(x_ref, y_ref, o_ref, *sums):
            total = sums[0] if scratch else o_ref

            @pl.when(pl.program_id(2) == 0)
            def _():
                total[...] = jnp.zeros((side, side))

            total[...] = total[...] + jnp.dot(x_ref[...], y_ref[...])
            if scratch:
                o_ref[...] = total[...]

        (n, depth), m = x.shape, y.shape[1]

        def of(one, other):
            def named(i, j, k):
                found = where(i, j, k, depth // side, m // side)
                return found[one], found[other]

            return ((side, side), named)

        grid = (n // side, m // side, depth // side)
        ins = [of(0, 2), of(2, 1)]
        room = [(side, side)] if scratch else []
        return call(kernel, (n, m), grid, ins, of(0, 1), room)(x, y)

    return made


def there_and_back(i, j, k, depth, columns):
    j = jnp.where(i % 2, columns - 1 - j, j)
    return i, j, jnp.where((i * columns + j + i) % 2, depth - 1 - k, k)


def by_turns(i, j, k, depth, columns):
    turn = i * columns + j
    backwards = depth - 1 - k
    return i, (j + i * (columns - 1)) % columns, jnp.where(turn % 2, backwards, k)


def attends(scaled=True, mean=False, rows=16):
    """Flash attention; `mean`: the output is a weighted mean all the way."""

    def made(q, k, v):
        width = q.shape[1]

        def kernel(q_ref, k_ref, v_ref, o_ref, top_ref, sum_ref):
            j = pl.program_id(1)

            @pl.when(j == 0)
            def _():
                top_ref[...] = jnp.full((rows, 1), -1e30)
                sum_ref[...] = jnp.zeros((rows, 1))
                o_ref[...] = jnp.zeros((rows, width))

            scores = jnp.dot(q_ref[...], k_ref[...].T)
            scores = scores / width**0.5 if scaled else scores
            top = jnp.maximum(top_ref[...], scores.max(1, keepdims=True))
            e = jnp.exp(scores - top)
            old = sum_ref[...] * jnp.exp(top_ref[...] - top)
            new = old + e.sum(1, keepdims=True)
            if mean:
                o_ref[...] = o_ref[...] * (old / new) + e @ v_ref[...] / new
            else:
                shrink = jnp.exp(top_ref[...] - top)
                total = o_ref[...] * shrink + e @ v_ref[...]
                last = j == pl.num_programs(1) - 1
                o_ref[...] = jnp.where(last, total / new, total)
            top_ref[...], sum_ref[...] = top, new

        queries = ((rows, width), lambda i, j: (i, 0))
        keys = ((16, width), lambda i, j: (j, 0))
        grid = (len(q) // rows, len(k) // 16)
        ins, room = [queries, keys, keys], [(rows, 1), (rows, 1)]
        return call(kernel, q.shape, grid, ins, queries, room)(q, k, v)

    return made


RIGHT = {
    "18.pool": [windows(), overlapping],
    "19.matmul": [square(16, scratch=True), square(16, there_and_back)],
    "19.attention": [attends(), attends(mean=True)],
    "19.budget": [square(32, there_and_back), square(32, by_turns, scratch=True)],
    "18.map": [add(10), add(10.0, size=8)],
    "18.zip": [times(lambda x, y: y * x), times(lambda x, y: x / (1 / y))],
    "18.guard": [
        guarded(lambda at, x, part: jnp.where(at < x.size, part, 0)),
        guarded(lambda at, x, part: jnp.where(at >= x.size, 0.0, part)),
    ],
    "18.broadcast": [
        outer(lambda x, y: x[:, None] + y),
        outer(lambda x, y: (y[:, None] + x).T, rows=8),
    ],
    "18.blocks": [turned(), transposed_in_eights],
    "18.scratch": [largest(), largest(start=-1e30)],
    "19.dot": [total(lambda x, y: x * y), total(lambda x, y: y * x)],
    "19.prefix": [
        prefix(lambda before, part, x: before + part[15:]),
        prefix(lambda before, part, x: before + jnp.sum(x)),
    ],
    "19.sums": [row_sums(), row_sums(width=16)],
    "19.softmax": [soft(), soft(rows=4)],
}
WRONG = {
    "18.map": [
        (add(1), "At index "),
        (add(10, out=first), "At index 16"),
        (add(10, size=32), "holds 128 B"),
        (lambda x: x + 10, "There is no pallas_call"),
    ],
    "18.zip": [
        (times(lambda x, y: x + y), "At index "),
        (times(lambda x, y: x * x), "At index "),
        (times(lambda x, y: x * y, first), "At index "),
        (lambda x, y: x * y, "There is no pallas_call"),
    ],
    "18.guard": [
        (guarded(lambda at, x, part: part), "At index 0"),
        (guarded(lambda at, x, part: jnp.where(at < 48, part, 0)), "At index 0"),
        (guarded(lambda at, x, part: jnp.where(at <= x.size, part, 0)), "At index 0"),
        (guarded(lambda at, x, part: jnp.where(at < x.size, part, 0), False), "At ind"),
    ],
    "18.broadcast": [
        (outer(lambda x, y: x[:, None] * y), "At index ("),
        (outer(lambda x, y: x + y[:, None]), "At index ("),
        (outer(lambda x, y: x[:, None] + y, 16, 32), ""),
        (lambda x, y: x[:, None] + y, "There is no pallas_call"),
    ],
    "18.blocks": [
        (turned(inside=False), "At index ("),
        (turned(blocks=False), "At index ("),
        (turned(inside=False, blocks=False), "At index ("),
        (lambda x: x.T, "There is no pallas_call"),
    ],
    "18.scratch": [
        (largest(use=False, room=None), "There is no scratch memory"),
        (largest(use=False), "No program reads the scratch memory"),
        (largest(last=False), "4 programs write"),
        (largest(start=0.0), "At index "),
        (largest(start=jnp.inf), "At index "),
        (largest(room=(32,)), ""),
    ],
    "18.pool": [
        (windows(start=1.0), "At index "),
        (windows(start=jnp.nan), "At index "),
        (add(0), "At index "),
        (lambda x: x, "At index "),
        (prefix(lambda before, part, x: before + part[15:]), "At index "),
        (lambda x: jnp.convolve(x, jnp.ones(3))[: x.size], "There is no pallas_call"),
    ],
    "19.dot": [
        (total(lambda x, y: x + y), "At index 0"),
        (total(lambda x, y: x * x), "At index 0"),
        (total(lambda x, y: x * y, begin=False), "At index 0"),
        (total(lambda x, y: x * y, start=1.0), "At index 0"),
    ],
    "19.prefix": [
        (prefix(lambda before, part, x: part[15:]), "At index "),
        (prefix(lambda before, part, x: before), "At index "),
        (prefix(lambda before, part, x: before + x[15:]), "At index "),
        (prefix(lambda before, part, x: before + part[:1]), "At index "),
    ],
    "19.sums": [
        (row_sums(axis=0), "At index "),
        (row_sums(begin=lambda i, j: i == 0), "At index "),
        (row_sums(begin=lambda i, j: j >= 0), "At index "),
        (row_sums(width=32), ""),
    ],
    "19.softmax": [
        (soft(axis=0), "At index ("),
        (soft(shifted=False), "At index ("),
        (soft(rows=16), "holds 4,096 B"),
        (lambda x: jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True), "no pallas_call"),
    ],
    "19.matmul": [
        (square(32), ""),
        (square(16, lambda i, j, k, *_: (j, i, k)), ""),
        (lambda x, y: x @ y, "There is no pallas_call"),
        (lambda x, y: y @ x, "the result has shape"),
        (lambda x, y: 0 * (x @ y), "At index ("),
        (outer(lambda x, y: x[:, None] + y), "It raised"),
    ],
    "19.attention": [
        (attends(scaled=False), "At index ("),
        (lambda q, k, v: q @ k.T @ v, "At index ("),
        (lambda q, k, v: v, ""),
        (lambda q, k, v: jnp.ones_like(q), "At index ("),
        (lambda q, k, v: q[:, :1], "the result has shape"),
    ],
    "19.budget": [
        (square(16), "B are fetched"),
        (square(32), "B are fetched"),
        (lambda x, y: x @ y, "There is no pallas_call"),
        (lambda x, y: y @ x, "At index ("),
        (lambda x, y: x * y, "At index ("),
        (lambda x, y: (x @ y)[:8], "the result has shape"),
    ],
}


@pytest.mark.parametrize(
    "name, made", [(name, f) for name, found in RIGHT.items() for f in found]
)
def test_another_kernel_is_taken(name, made, capsys):
    puzzle(name, made)
    assert capsys.readouterr().out.startswith(f"{name}: solved. ")
    assert grading.outcomes[-1].state == "passed"


@pytest.mark.parametrize(
    "name, made, said",
    [(name, *case) for name, cases in WRONG.items() for case in cases],
)
def test_a_mistake_is_told(name, made, said, capsys):
    puzzle(name, made)
    told = capsys.readouterr().out
    assert f"{name}: not yet. " in told and said in told, told
