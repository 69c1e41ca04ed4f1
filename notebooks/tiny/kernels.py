"""tiny, a toy over NumPy. This piece: kernels, run block by block over a grid."""

import itertools

import numpy as np

place = []  # of the program that runs: its index along each axis of the grid
fetched = []  # the bytes of each block that was copied


class BlockSpec:
    """Blocks of a shape. `index_map` turns a program's place into block numbers."""

    def __init__(self, shape, index_map):
        self.shape, self.index_map = shape, index_map


def program_id(axis):
    """Where the program stands along an axis of the grid."""
    return place[axis]


def when(condition):
    """A decorator: the function runs at once, or not at all."""
    return lambda function: function() if condition else None


def block(array, spec, numbers):
    """The block with these numbers: a view, so that writing changes the array."""
    starts = [number * size for number, size in zip(numbers, spec.shape)]
    return array[tuple(slice(at, at + n) for at, n in zip(starts, spec.shape))]


def pallas_call(kernel, shape, grid, in_specs, out_spec):
    """A function of arrays that runs the kernel for each place of the grid."""

    def run(*arrays):
        out = np.full(shape, np.nan, np.float32)
        last = [None] * (len(arrays) + 1)
        for place[:] in itertools.product(*map(range, grid)):
            refs = []
            for n, (x, spec) in enumerate(zip([*arrays, out], [*in_specs, out_spec])):
                numbers = spec.index_map(*place)
                refs.append(block(x, spec, numbers))
                if numbers != last[n]:
                    fetched.append(refs[-1].nbytes)
                last[n] = numbers
            kernel(*refs)
        return out

    return run
