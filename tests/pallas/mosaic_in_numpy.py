"""Runs a kernel's Mosaic module in NumPy: its windows, then its operations one by one.

A check of blocks, accumulators, loops and copies on machines without a TPU. It knows
nothing of minijax's rules: it reads the module. A memref is a NumPy array, a part of
one is a view; memory that nobody wrote holds NaN. An output's block is written back
when its window moves, as Mosaic's pipeline does it.
"""

import itertools
import re

import numpy as np

from minijax.backend import mosaic
from minijax.core import hlo
from tests.pallas.triton_in_numpy import _DTYPES, Program

_FUNCTIONS = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log1p", "sqrt")},
    **{name: getattr(np, name) for name in ("tanh", "sin", "cos", "tan", "floor")},
    "ceil": np.ceil,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "absf": np.abs,
    "absi": np.abs,
    "powf": np.power,
    "atan2": np.arctan2,
    "roundeven": np.round,
    "round": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "erf": np.vectorize(__import__("math").erf, otypes=[np.float32]),
    "ctpop": np.vectorize(lambda x: (int(x) & 0xFFFFFFFF).bit_count()),
}
_ARITHMETIC = {"shli": np.left_shift, "shrsi": np.right_shift, "remf": np.fmod}
_REDUCTIONS = {
    "add": np.add,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxsi": np.maximum,
    "minsi": np.minimum,
}


class TpuProgram(Program):
    """One program of the grid."""

    def run(self, op, name, inputs):
        room, _, short = name.partition(".")
        if room == "math":
            with np.errstate(all="ignore"):
                made = _FUNCTIONS[short](*inputs)
            return np.asarray(made, np.asarray(inputs[0]).dtype)
        if room == "arith" and short in _ARITHMETIC:
            return _ARITHMETIC[short](*inputs)
        if room == "arith" and short == "divsi":
            quotient = np.trunc(np.true_divide(*inputs))
            return np.asarray(quotient, np.asarray(inputs[0]).dtype)
        return super().run(op, name, inputs)

    def block(self, block, args):
        with np.errstate(all="ignore"):
            return super().block(block, args)

    # -- arith

    def arith_constant(self, op):
        value, kind = op.attributes["value"], op.results[0].type
        if hasattr(value, "get_splat_value"):
            scalar = value.get_splat_value().value
            return np.full(_shape(kind), scalar, _dtype(kind))
        return _dtype(kind).type(value.value)

    def _converted(self, op, x):
        return np.asarray(x).astype(_dtype(op.results[0].type))

    arith_extf = arith_truncf = arith_sitofp = arith_fptosi = arith_extsi = _converted
    arith_extui = arith_trunci = arith_uitofp = _converted

    def arith_index_cast(self, op, x):
        return np.int64(x)

    # -- vector

    def vector_broadcast(self, op, x):
        return np.broadcast_to(x, _shape(op.results[0].type))

    def vector_shape_cast(self, op, x):
        return np.reshape(x, _shape(op.results[0].type))

    def vector_extract(self, op, x):
        return x[tuple(op.attributes["static_position"])]

    def vector_extract_strided_slice(self, op, x):
        starts = [item.value for item in op.attributes["offsets"]]
        return x[_part(starts, _shape(op.results[0].type))]

    def vector_multi_reduction(self, op, x, start):
        kind = re.search(r"<(\w+)>", str(op.attributes["kind"]))[1]
        axes = tuple(op.attributes["reduction_dims"])
        reduce = _REDUCTIONS[kind]
        return reduce(reduce.reduce(x, axis=axes), start).astype(x.dtype)

    def vector_load(self, op, memory, *starts):
        return memory[_part(starts, _shape(op.results[0].type))].copy()

    # -- memref

    def memref_load(self, op, memory, *place):
        return memory[place]

    def memref_store(self, op, value, memory, *place):
        memory[place] = value

    def memref_alloca(self, op):
        return _fresh(op.results[0].type)

    # -- tpu

    def tpu_region(self, op):
        return self.block(op.regions[0].blocks[0], [])

    def tpu_sem_alloc(self, op):
        return np.zeros(_shape(op.results[0].type))

    def tpu_vector_store(self, op, value, memory, *places):
        mask = True
        if len(places) > memory.ndim:
            *places, mask = places
        part = memory[_part(places, value.shape)]
        part[...] = np.where(mask, value, part)

    def tpu_strided_load(self, op, memory, *starts):
        shape = _shape(op.results[0].type)
        return memory[_part(starts, shape, op.attributes["strides"])].copy()

    def tpu_strided_store(self, op, value, memory, *starts):
        memory[_part(starts, value.shape, op.attributes["strides"])] = value

    def tpu_memref_slice(self, op, memory, *starts):
        return memory[_part(starts, _shape(op.results[0].type))]

    def tpu_memref_squeeze(self, op, memory):
        """The axes of size 1 that are not in the result; it stays a view."""
        left = list(_shape(op.results[0].type))
        index = []
        for place, size in enumerate(memory.shape):
            rest = list(memory.shape[place:])
            index.append(slice(None) if rest == left or size != 1 else 0)
            if not isinstance(index[-1], int):
                left = left[1:]
        return memory[(*index, ...)]

    def tpu_enqueue_dma(self, op, source, target, *semaphores):
        target[...] = source

    def tpu_wait_dma2(self, op, *memories):
        """The copy is done when it is begun."""

    def tpu_iota(self, op):
        (axis,) = op.attributes["dimensions"]
        shape = _shape(op.results[0].type)
        numbers = np.arange(shape[axis], dtype=np.int32)
        return np.broadcast_to(
            numbers.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape
        )

    def tpu_concatenate(self, op, *parts):
        return np.concatenate(parts, op.attributes["dimension"].value)

    def tpu_transpose(self, op, x):
        return np.transpose(x, list(op.attributes["permutation"]))

    def tpu_reciprocal(self, op, x):
        return 1 / x

    def tpu_assume_multiple(self, op, x):
        assert x % op.attributes["multiple"].value == 0
        return x

    def tpu_bitcast(self, op, x):
        return np.ascontiguousarray(x).view(_dtype(op.results[0].type))

    def tpu_reduce_index(self, op, x):
        find = np.argmax if "arg_max" in str(op.attributes["kind"]) else np.argmin
        return find(x, axis=op.attributes["axis"].value).astype(np.int32)

    def tpu_matmul(self, op, x, y, start):
        groups = re.findall(r"\[([\d, ]*)\]", str(op.attributes["dimension_numbers"]))
        axes = [[int(n) for n in group.split(",") if n.strip()] for group in groups]
        product = np.tensordot(
            x.astype(start.dtype), y.astype(start.dtype), (axes[0], axes[1])
        )
        return product + start


def _part(starts, sizes, strides=None):
    """The index of a block."""
    steps = [1] * len(sizes) if strides is None else list(strides)
    return tuple(
        slice(int(a), int(a) + n * step, step)
        for a, n, step in zip(starts, sizes, steps, strict=True)
    )


def _shape(kind):
    return tuple(int(n) for n in re.findall(r"(\d+)x", str(kind).split(",")[0]))


def _dtype(kind):
    text = str(kind).split(",")[0]
    element = re.search(r"(bf16|index|[if]\d+)\W*$", text)[1]
    return np.dtype(np.int64 if element == "index" else _DTYPES[element])


def _fresh(kind):
    """Memory that nobody wrote."""
    dtype = _dtype(kind)
    return np.full(_shape(kind), np.nan if dtype.kind not in "iub" else 77, dtype)


class _Window:
    """An array of the kernel, and the block of it that is in the core's memory."""

    def __init__(self, array, kind, params, functions):
        self.array, self.kind = array, kind
        self.place, self.block = None, None
        names = {item.name: item.attr for item in params}
        self.sizes = [int(n) for n in names.get("window_bounds", ())]
        self.whole = not names
        self.function = self.whole or functions[names["transform_indices"].value]
        self.by_element = "window_kind" in names

    def move(self, given):
        """The block for a program; what was there is written back when it changes."""
        if self.whole:
            return self.array
        entry = self.function.operation.regions[0].blocks[0]
        found = [int(i) for i in TpuProgram(()).block(entry, given)]
        steps = [1] * len(found) if self.by_element else self.sizes
        place = [i * step for i, step in zip(found, steps)]
        if place != self.place:
            self.write_back()
            self.place, self.block = place, _fresh(self.kind)
            part = self.array[_part(place, self.sizes)]
            self.block[tuple(map(slice, part.shape))] = part
        return self.block

    def write_back(self):
        if self.place is not None:
            part = self.array[_part(self.place, self.sizes)]
            part[...] = self.block[tuple(map(slice, part.shape))]


def run(text, arrays):
    """Runs a kernel over its grid; arrays are scalars, inputs, outputs, in place."""
    with mosaic.module():
        made = hlo.ir.Module.parse(text)
        functions = {f.attributes["sym_name"].value: f for f in made.body.operations}
        (main,) = (f for name, f in functions.items() if "transform_" not in name)
        entry = main.operation.regions[0].blocks[0]
        scalars = main.attributes["scalar_prefetch"].value
        scratch = main.attributes["scratch_operands"].value
        grid = []
        if "iteration_bounds" in main.attributes:
            grid = list(main.attributes["iteration_bounds"])
        kinds = [argument.type for argument in entry.arguments][len(grid) :]
        count = len(kinds) - scalars - scratch
        params = [()] * count
        if grid:
            params = list(main.attributes["window_params"])
        windows = [
            _Window(array, kind, window, functions)
            for array, kind, window in zip(
                arrays[scalars:], kinds[scalars:], params, strict=False
            )
        ]
        own = [
            np.zeros(_shape(kind)) if "semaphore" in str(kind) else _fresh(kind)
            for kind in kinds[len(kinds) - scratch :]
        ]
        for place in itertools.product(*map(range, grid)):
            given = [*map(np.int32, place), *arrays[:scalars]]
            blocks = [window.move(given) for window in windows]
            TpuProgram(place).block(entry, [*given, *blocks, *own])
        for window in windows:
            window.write_back()
