"""Chapter 18: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, lax
from minijax.experimental import pallas as pl

PLACES = [8, 8, 6, 2]


def _row_sums(kernel, x, index_map, interpret):
    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((x.shape[0],), x.dtype),
        grid=(x.shape[0] // 4, x.shape[1] // 8),
        in_specs=[pl.BlockSpec((4, 8), index_map)],
        out_specs=pl.BlockSpec((4,), lambda i, j: (i,)),
        interpret=interpret,
    )
    return call(x)


def _add(x_ref, o_ref):
    o_ref[...] += x_ref[...].sum(1)


def _start_and_add(x_ref, o_ref):
    @pl.when(pl.program_id(1) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    _add(x_ref, o_ref)


def row_sums(x, interpret=False):
    """The map counts blocks, and the first program of a row writes zeros."""
    return _row_sums(_start_and_add, x, lambda i, j: (i, j), interpret)


def without_a_start(x, interpret=False):
    """Wrong: it adds to what nobody wrote."""
    return _row_sums(_add, x, lambda i, j: (i, j), interpret)


def by_elements(x, interpret=False):
    """Wrong: the map counts elements."""
    return _row_sums(_start_and_add, x, lambda i, j: (4 * i, 8 * j), interpret)


def _squares(x_ref, o_ref):
    rows, columns = o_ref.shape
    o_ref[...] = x_ref[...].reshape(rows, 2, columns, 2).max((1, 3))


def _pool(x, size):
    n, m = x.shape
    call = pl.pallas_call(
        _squares,
        ShapeDtypeStruct((n // 2, m // 2), x.dtype),
        grid=(n // size[0], m // size[1]),
        in_specs=[pl.BlockSpec(size, lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((size[0] // 2, size[1] // 2), lambda i, j: (i, j)),
    )
    return call(x)


def pool(x):
    """Blocks of 16 x 16: 1 KiB."""
    return _pool(x, (16, 16))


def pool_of_all(x):
    """Wrong: one program has all of x."""
    return _pool(x, x.shape)


def pool_without_kernel(x):
    """Wrong: there is no kernel."""
    n, m = x.shape
    return jnp.asarray(x).reshape(n // 2, 2, m // 2, 2).max((1, 3))


def _layer_norm(kernel, x, rows, grid):
    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct(x.shape, x.dtype),
        grid=grid,
        in_specs=[block],
        out_specs=block,
    )
    return call(x)


def _normalized(x_ref, o_ref):
    x = x_ref[...]
    x = x - x.mean(1, keepdims=True)
    o_ref[...] = x * lax.rsqrt((x * x).mean(1, keepdims=True) + 1e-5)


def layer_norm(x):
    """Rows beyond the end change no other row."""
    return _layer_norm(_normalized, x, 8, (pl.cdiv(x.shape[0], 8),))


def rounded_down(x):
    """Wrong: the last rows are in no block."""
    return _layer_norm(_normalized, x, 8, (max(1, x.shape[0] // 8),))


def not_for_a_gpu(x):
    """Wrong: Triton has no `flip`, and it is not needed."""

    def kernel(x_ref, o_ref):
        _normalized(x_ref, o_ref)
        o_ref[...] = jnp.flip(jnp.flip(o_ref[...], 1), 1)

    return _layer_norm(kernel, x, 8, (pl.cdiv(x.shape[0], 8),))


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "18.1": (
        "the map says (j, i): what is j in program (1, 2)?",
        "block number times block size, along each axis.",
        "`block` in tiny/kernels.py; the second map depends on i only.",
    ),
    "18.2": (
        "what does an index map count?",
        "which program is the first one that adds to a block of the output?",
        "`sums` in this chapter: `pl.when(pl.program_id(1) == 0)`.",
    ),
    "18.3": (
        "a block of the output is half as high and half as wide as one of x.",
        "in the kernel: reshape to (rows, 2, columns, 2), and take the largest.",
        "`softmax`: give it a grid of two axes, and a spec for the output of its own.",
    ),
    "18.4": (
        "what a program computes for rows beyond the end is dropped.",
        "`pl.cdiv(rows, 8)` programs, blocks of (8, 128).",
        "`softmax` in this chapter; the mean goes over axis 1.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "18.1": lambda: (PLACES,),
    "18.2": lambda: (row_sums,),
    "18.3": lambda: (pool,),
    "18.4": lambda: (layer_norm,),
}
WRONG = {
    "18.1": [lambda: ([4, 16, 6, 2],), lambda: (6,)],
    "18.2": [lambda: (without_a_start,), lambda: (by_elements,)],
    "18.3": [lambda: (pool_of_all,), lambda: (pool_without_kernel,)],
    "18.4": [lambda: (rounded_down,), lambda: (not_for_a_gpu,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "18.1": ["The first row of program (1, 2) is not 4", "a list of 4 numbers"],
    "18.2": ["before any program wrote there", "out of bounds"],
    "18.3": ["A program holds 16,384 B", "There is no pallas_call in it"],
    "18.4": ["For x of shape (20, 128)", "For a GPU"],
}
