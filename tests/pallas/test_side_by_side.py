"""Axes of a grid that need no loop: which they are, and what is computed then.

Each kernel is compared with jax's interpret mode, which runs one program after another.
"""

import importlib

import numpy as np
import pytest

import minijax
from minijax.kernels import grid_programs

F32 = np.float32


class Library:
    """The names that a kernel needs, of minijax or of jax."""

    def __init__(self, name):
        ends = (
            "",
            ".numpy",
            ".lax",
            ".experimental.pallas",
            ".experimental.pallas.tpu",
        )
        modules = (importlib.import_module(name + end) for end in ends)
        self.mj, self.jnp, self.lax, self.pl, self.pltpu = modules

    def call(self, kernel, shape, grid, ins, outs, order=None, **options):
        if order is not None:
            params = self.pltpu.CompilerParams(dimension_semantics=order)
            options["compiler_params"] = params
        return self.pl.pallas_call(
            kernel,
            out_shape=self.mj.ShapeDtypeStruct(shape, F32),
            grid=grid,
            in_specs=ins,
            out_specs=outs,
            interpret=self.mj is not minijax,
            **options,
        )


X = np.random.RandomState(0).randn(8, 12).astype(F32)
Y = np.random.RandomState(1).randn(12, 8).astype(F32)
KERNELS = {}


def kernel(*axes):
    """Adds a function of a `Library`; `axes` are those that need no loop."""

    def add(make):
        KERNELS[make.__name__] = (make, axes)
        return make

    return add


def _twice(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]


@kernel(0, 1)
def blocks(lib):
    block = lib.pl.BlockSpec((4, 3), lambda i, j: (i, j))
    return lib.call(_twice, (8, 12), (2, 4), [block], block)(X)


@kernel(0, 1)
def transposed_blocks(lib):
    def transpose(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    ins = [lib.pl.BlockSpec((4, 3), lambda i, j: (i, j))]
    outs = lib.pl.BlockSpec((3, 4), lambda i, j: (j, i))
    return lib.call(transpose, (12, 8), (2, 4), ins, outs)(X)


@kernel(0)
def squeezed_rows(lib):
    row = lib.pl.BlockSpec((None, 12), lambda i: (i, 0))
    return lib.call(_twice, (8, 12), (8,), [row], row)(X)


@kernel(0)
def last_block_is_short(lib):
    block = lib.pl.BlockSpec((3, 12), lambda i: (i, 0))
    return lib.call(_twice, (8, 12), (3,), [block], block)(X)


@kernel(0)
def block_of_a_shared_operand(lib):
    def product(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] @ y_ref[...]

    ins = [
        lib.pl.BlockSpec((2, 12), lambda i: (i, 0)),
        lib.pl.BlockSpec((12, 8), lambda i: (0, 0)),
    ]
    outs = lib.pl.BlockSpec((2, 8), lambda i: (i, 0))
    return lib.call(product, (8, 8), (4,), ins, outs)(X, Y)


@kernel(0, 1)
def accumulated_product(lib):
    def product(x_ref, y_ref, o_ref):
        @lib.pl.when(lib.pl.program_id(2) == 0)
        def _():
            o_ref[...] = lib.jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...] @ y_ref[...]

    ins = [
        lib.pl.BlockSpec((4, 2), lambda i, j, k: (i, k)),
        lib.pl.BlockSpec((2, 4), lambda i, j, k: (k, j)),
    ]
    outs = lib.pl.BlockSpec((4, 4), lambda i, j, k: (i, j))
    return lib.call(product, (8, 8), (2, 2, 6), ins, outs)(X, Y)


def _with_scratch(lib, order):
    def sums(x_ref, o_ref, sum_ref):
        @lib.pl.when(lib.pl.program_id(1) == 0)
        def _():
            sum_ref[...] = lib.jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...].sum(axis=1, keepdims=True)
        o_ref[...] = sum_ref[...] * lib.jnp.ones((1, 3), F32)

    ins = [lib.pl.BlockSpec((4, 3), lambda i, j: (i, j))]
    outs = lib.pl.BlockSpec((4, 3), lambda i, j: (i, j))
    scratch = [lib.pltpu.VMEM((4, 1), F32)]
    return lib.call(
        sums, (8, 12), (2, 4), ins, outs, order=order, scratch_shapes=scratch
    )(X)


@kernel(0)
def scratch_of_declared_programs(lib):
    return _with_scratch(lib, ("parallel", "arbitrary"))


@kernel()
def scratch_without_a_word(lib):
    return _with_scratch(lib, None)


@kernel()
def scratch_from_program_to_program(lib):
    """A running sum: each program adds to what the last one left."""

    def sums(x_ref, o_ref, sum_ref):
        @lib.pl.when(lib.pl.program_id(0) == 0)
        def _():
            sum_ref[...] = lib.jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...]
        o_ref[...] = sum_ref[...]

    row = lib.pl.BlockSpec((1, 12), lambda i: (i, 0))
    scratch = [lib.pltpu.VMEM((1, 12), F32)]
    return lib.call(sums, (8, 12), (8,), [row], row, scratch_shapes=scratch)(X)


@kernel()
def asks_for_its_place(lib):
    def number(x_ref, o_ref):
        o_ref[...] = x_ref[...] + lib.pl.program_id(0)

    row = lib.pl.BlockSpec((1, 12), lambda i: (i, 0))
    return lib.call(number, (8, 12), (8,), [row], row)(X)


@kernel(1)
def asks_for_one_of_two_places(lib):
    def number(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 3 * lib.pl.program_id(0)

    block = lib.pl.BlockSpec((1, 3), lambda i, j: (i, j))
    return lib.call(number, (8, 12), (8, 4), [block], block)(X)


@kernel()
def backwards(lib):
    ins = [lib.pl.BlockSpec((1, 12), lambda i: (7 - i, 0))]
    outs = lib.pl.BlockSpec((1, 12), lambda i: (i, 0))
    return lib.call(_twice, (8, 12), (8,), ins, outs)(X)


@kernel()
def sum_of_all_programs(lib):
    def add(x_ref, o_ref):
        @lib.pl.when(lib.pl.program_id(0) == 0)
        def _():
            o_ref[...] = lib.jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    ins = [lib.pl.BlockSpec((1, 12), lambda i: (i, 0))]
    outs = lib.pl.BlockSpec((1, 12), lambda i: (0, 0))
    return lib.call(add, (1, 12), (8,), ins, outs)(X)


@kernel()
def every_program_writes_the_same_block(lib):
    """The last one wins."""
    ins = [lib.pl.BlockSpec((1, 12), lambda i: (i, 0))]
    outs = lib.pl.BlockSpec((1, 12), lambda i: (0, 0))
    return lib.call(_twice, (1, 12), (8,), ins, outs)(X)


@kernel()
def part_of_the_output(lib):
    """Four programs for eight rows: the other rows are never written."""
    row = lib.pl.BlockSpec((1, 12), lambda i: (i, 0))
    done = lib.call(_twice, (8, 12), (4,), [row], row)(X)
    return done[:4]


@kernel(0)
def in_place(lib):
    row = lib.pl.BlockSpec((1, 12), lambda i: (i, 0))
    call = lib.call(_twice, (8, 12), (8,), [row], row, input_output_aliases={0: 0})
    return call(X)


@kernel(0)
def branches_and_loops_on_values(lib):
    def halve(x_ref, o_ref):
        x = x_ref[...]
        small = lib.lax.while_loop(lambda v: v.max() > 0.1, lambda v: v / 2, x)
        o_ref[...] = lib.lax.cond(x[0, 0] > 0, lambda v: v, lambda v: -v, small)

    row = lib.pl.BlockSpec((1, 12), lambda i: (i, 0))
    return lib.call(halve, (8, 12), (8,), [row], row)(X)


@kernel(0, 1)
def mapped(lib):
    block = lib.pl.BlockSpec((4, 3), lambda i: (i, 0))
    call = lib.call(_twice, (8, 3), (2,), [block], block)
    return lib.mj.vmap(call)(X.reshape(4, 8, 3))


@pytest.fixture
def chosen(monkeypatch):
    """The axes without a loop, of each kernel that is compiled."""
    found = []
    plain = grid_programs.side_by_side

    def noting(*args):
        beside = plain(*args)
        found.append(beside.axes)
        return beside

    monkeypatch.setattr(grid_programs, "side_by_side", noting)
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_values_and_axes(name, chosen):
    make, axes = KERNELS[name]
    ours = minijax.jit(lambda: make(Library("minijax")))()
    theirs = make(Library("jax"))
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)
    assert chosen == [axes]


def test_a_large_value_keeps_the_loop(chosen):
    """A thousand programs at once would need 16 GiB."""
    lib = Library("minijax")

    def large(x_ref, o_ref):
        table = lib.jnp.broadcast_to(x_ref[...][:, :, None], (1, 2048, 2048))
        o_ref[...] = table.max(axis=2)

    row = lib.pl.BlockSpec((1, 2048), lambda i: (i, 0))
    call = lib.call(large, (1000, 2048), (1000,), [row], row)
    minijax.jit(call).lower(minijax.ShapeDtypeStruct((1000, 2048), F32))
    assert chosen == [()]


def test_no_loop_is_left():
    """Blocks that are all computed at once are one fusion, as without a kernel."""
    lib = Library("minijax")
    block = lib.pl.BlockSpec((4, 3), lambda i, j: (i, j))
    call = lib.call(_twice, (8, 12), (2, 4), [block], block)
    text = minijax.jit(call).lower(X).compile().as_text()
    assert "while" not in text
    loop = lib.pl.BlockSpec((1, 12), lambda i: (7 - i, 0))
    text = minijax.jit(lib.call(_twice, (8, 12), (8,), [loop], loop)).lower(X)
    assert "while" in text.compile().as_text()
