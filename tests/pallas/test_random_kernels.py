"""Random kernels: the same values as in jax's interpreter and in the teaching one.

`make test` runs 15, and 500 where MINIJAX_TEST_ALL is set;
`python -m tests.pallas.test_random_kernels 500` runs as many as asked for, and prints
the seeds that fail.
"""

import os
import sys

import numpy as np
import pytest

from minijax.experimental.pallas import tpu as pltpu
from tests.pallas.kernels import Library

OURS = Library("minijax", interpret=False)
WATCHED = Library("minijax", interpret=pltpu.InterpretParams())
JAX = Library("jax", interpret=True)

COUNT = 500 if os.environ.get("MINIJAX_TEST_ALL") else 15

UNARY = ["negative", "abs", "square", "sin", "tanh"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]


def random_kernel(seed):
    """(build, arguments): a caller of a kernel for a `Library`, and its arrays."""
    draw = np.random.default_rng(seed)

    def pick(items):
        return items[draw.integers(len(items))]

    dtype = pick([np.float32, np.float32, np.float16, np.int32])
    rank = int(draw.integers(1, 4))
    shape = tuple(int(n) for n in draw.integers(1, 8, rank))
    block = tuple(int(draw.integers(1, n + 2)) for n in shape)
    squeezed = [b == 1 and draw.random() < 0.5 for b in block]
    counts = [-(-n // b) for n, b in zip(shape, block)]
    # The grid goes over the axes in some order; some axes are passed as one block.
    order = [int(axis) for axis in draw.permutation(rank)]
    if draw.random() < 0.2:
        block, counts = shape, [1] * rank
        squeezed = [False] * rank
    extra = int(draw.integers(0, 3))  # an axis over which results are added up
    num_inputs = int(draw.integers(1, 4))
    names = UNARY if dtype is not np.int32 else UNARY[:3]
    steps = [
        (pick(["unary", "binary", "scale", "reverse", "branch"]), pick(names))
        + (pick(BINARY), int(draw.integers(num_inputs)), int(draw.integers(1, 4)))
        for _ in range(int(draw.integers(1, 5)))
    ]
    accumulates = extra > 0
    args = []
    for _ in range(num_inputs):
        x = draw.standard_normal(shape) * 2
        args.append(x.astype(dtype))
    seen = tuple(b for b, flag in zip(block, squeezed) if not flag)
    loops = draw.random() < 0.3 and not accumulates and seen != ()
    use_scratch = draw.random() < 0.5

    def build(k):
        functions = {name: getattr(k.np, name) for name in UNARY + BINARY}

        def compute(refs):
            values = [ref[...] for ref in refs]
            y = values[0]
            for kind, unary, binary, other, factor in steps:
                if kind == "unary":
                    y = functions[unary](y)
                elif kind == "binary":
                    y = functions[binary](y, values[other])
                elif kind == "scale":
                    i = k.pl.program_id(len(order) - 1) + factor
                    y = y * i.astype(y.dtype)
                elif kind == "reverse" and y.ndim:
                    y = y[::-1]
                elif kind == "branch":
                    odd = k.pl.program_id(0) % 2 == 1
                    y = k.np.where(odd, y, -y)
            return y.astype(dtype)

        def kernel(*refs):
            scratch = refs[num_inputs + 1 :]
            inputs, o_ref = refs[:num_inputs], refs[num_inputs]
            y = compute(inputs)
            if scratch:
                scratch[0][...] = y
                y = scratch[0][...]
            if accumulates:

                @k.pl.when(k.pl.program_id(len(order)) == 0)
                def _():
                    o_ref[...] = k.np.zeros_like(o_ref)

                o_ref[...] += y
            elif loops:

                def body(i, carry):
                    o_ref[i] = y[i]
                    return carry

                k.lax.fori_loop(0, seen[0], body, 0)
            else:
                o_ref[...] = y

        def index_map(*indices):
            place = [0] * rank
            for position, axis in enumerate(order):
                place[axis] = indices[position]
            return tuple(place)

        dims = tuple(None if flag else b for b, flag in zip(block, squeezed))
        spec = k.pl.BlockSpec(dims, index_map)
        grid = tuple(counts[axis] for axis in order)
        return k.call(
            kernel,
            shape,
            dtype,
            grid=grid + ((extra,) if accumulates else ()),
            in_specs=[spec] * num_inputs,
            out_specs=spec,
            scratch_shapes=[k.tpu.VMEM(seen, dtype)] if use_scratch else (),
        )

    return build, args


def check(seed):
    build, args = random_kernel(seed)
    ours = np.asarray(build(OURS)(*args))
    theirs = np.asarray(JAX.lib.jit(build(JAX))(*args))
    watched = np.asarray(build(WATCHED)(*args))
    assert ours.dtype == theirs.dtype
    tolerance = 2e-2 if ours.dtype == np.float16 else 2e-5
    for other in (theirs, watched):
        np.testing.assert_allclose(ours, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(COUNT))
def test_values(seed):
    check(seed)


if __name__ == "__main__":
    failed = 0
    for number in range(int(sys.argv[1])):
        try:
            check(number)
        except Exception as error:
            failed += 1
            print(f"seed {number}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{failed} of {sys.argv[1]} random kernels differ")
    sys.exit(failed > 0)
