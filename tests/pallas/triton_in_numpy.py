"""Runs a kernel's Triton module in NumPy: what its operations mean, one at a time.

A check of addresses, masks and loops on machines without a GPU. It knows nothing of
minijax's rules: it reads the module. A pointer is (buffer, place of the element); an
address outside of its buffer that no mask takes out raises IndexError, as a GPU does
not. Whatever is not masked out must be finite in the tests' data.
"""

import itertools

import numpy as np

from minijax.backend import triton
from minijax.core import dtypes, hlo

_LIBRARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sin": np.sin,
    "pow": np.power,
    "floor": np.floor,
    "log1p": np.log1p,
}
_BINARY = {
    "addi": np.add,
    "addf": np.add,
    "subi": np.subtract,
    "subf": np.subtract,
    "muli": np.multiply,
    "mulf": np.multiply,
    "divf": np.divide,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "remui": np.remainder,
    "divui": np.floor_divide,
    "remsi": np.fmod,
}
_INT_COMPARED = [
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater),
    *(np.greater_equal, np.less, np.less_equal, np.greater, np.greater_equal),
]
_FLOAT_COMPARED = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
}
_DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": dtypes.bfloat16,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}


class Pointer:
    """Places in a buffer; one for each element of a tensor."""

    def __init__(self, buffer, places):
        self.buffer, self.places = buffer, places


class Program:
    """One program of the grid."""

    def __init__(self, place):
        self.place = place
        self.values = {}

    def block(self, block, args):
        """Runs a block; what its last operation hands out."""
        for argument, value in zip(block.arguments, args, strict=True):
            self.values[argument] = value
        for operation in block.operations:
            inputs = [self.values[value] for value in operation.operands]
            name = operation.operation.name
            if name.endswith((".return", ".yield", ".condition")):
                return inputs
            outputs = self.run(operation.operation, name, inputs)
            if not isinstance(outputs, list):
                outputs = [outputs] if len(operation.results) else []
            for result, value in zip(operation.results, outputs, strict=True):
                self.values[result] = value
        return []

    def run(self, op, name, inputs):
        room, _, short = name.partition(".")
        if room == "arith" and short in _BINARY:
            with np.errstate(all="ignore"):
                made = _BINARY[short](*inputs)
            return np.asarray(made, np.asarray(inputs[0]).dtype)
        return getattr(self, f"{room}_{short}")(op, *inputs)

    # -- arith and math

    def arith_constant(self, op):
        attribute = op.attributes["value"]
        return _dtype(op.results[0].type)(attribute.value)

    def arith_cmpi(self, op, x, y):
        number = int(op.attributes["predicate"].value)
        if number >= 6:
            x, y = (
                np.asarray(v).view(f"u{np.asarray(v).dtype.itemsize}") for v in (x, y)
            )
        return _INT_COMPARED[number](x, y)

    def arith_cmpf(self, op, x, y):
        return _FLOAT_COMPARED[int(op.attributes["predicate"].value)](x, y)

    def arith_select(self, op, which, x, y):
        return np.where(which, x, y).astype(np.asarray(x).dtype)

    def arith_negf(self, op, x):
        return -x

    def _converted(self, op, x):
        return np.asarray(x).astype(_dtype(op.results[0].type))

    arith_extf = arith_truncf = arith_sitofp = arith_fptosi = arith_extsi = _converted
    arith_extui = arith_trunci = arith_uitofp = _converted

    def math_absf(self, op, x):
        return np.abs(x)

    # -- scf

    def scf_for(self, op, low, high, step, *carry):
        carry = list(carry)
        for turn in range(int(low), int(high), int(step)):
            carry = self.block(op.regions[0].blocks[0], [np.int32(turn), *carry])
        return carry

    def scf_while(self, op, *carry):
        carry = list(carry)
        while True:
            go, *carry = self.block(op.regions[0].blocks[0], carry)
            if not go:
                return carry
            carry = self.block(op.regions[1].blocks[0], carry)

    def scf_if(self, op, which):
        region = op.regions[0 if which else 1]
        return self.block(region.blocks[0], []) if len(region.blocks) else []

    # -- tt

    def tt_get_program_id(self, op):
        return np.int32(self.place[int(op.attributes["axis"].value)])

    def tt_make_range(self, op):
        size = _shape(op.results[0].type)[0]
        return np.arange(size, dtype=np.int32)

    def tt_splat(self, op, x):
        return self.tt_broadcast(op, x)

    def tt_broadcast(self, op, x):
        shape = _shape(op.results[0].type)
        if isinstance(x, Pointer):
            return Pointer(x.buffer, np.broadcast_to(x.places, shape))
        return np.broadcast_to(x, shape)

    def tt_expand_dims(self, op, x):
        return np.expand_dims(x, int(op.attributes["axis"].value))

    def tt_reshape(self, op, x):
        return np.reshape(x, _shape(op.results[0].type))

    def tt_trans(self, op, x):
        return np.transpose(x, list(op.attributes["order"]))

    def tt_join(self, op, x, y):
        return np.stack([x, y], -1)

    def tt_extern_elementwise(self, op, *inputs):
        name = op.attributes["symbol"].value.removeprefix("__nv_")
        with np.errstate(all="ignore"):
            made = _LIBRARY.get(name) or _LIBRARY[name.removesuffix("f")]
            return made(*inputs).astype(inputs[0].dtype)

    def tt_addptr(self, op, pointer, offset):
        return Pointer(pointer.buffer, np.asarray(pointer.places + offset))

    def tt_load(self, op, pointer, mask=None, other=None):
        places, kept = _kept(pointer, mask)
        found = pointer.buffer[places]
        if mask is None:
            return found
        if other is None:
            # What is masked out has no value: one that would be noticed.
            other = np.full(found.shape, 77).astype(found.dtype)
        return np.where(kept, found, other).astype(found.dtype)

    def tt_store(self, op, pointer, value, mask=None):
        places, kept = _kept(pointer, mask)
        value = np.broadcast_to(value, places.shape)
        pointer.buffer[places[kept]] = value[kept]

    def tt_atomic_rmw(self, op, pointer, value, mask=None):
        places, kept = _kept(pointer, mask)
        old = pointer.buffer[places]
        number = int(op.attributes["atomic_rmw_op"].value)
        update = {4: np.add, 5: np.add, 6: np.maximum, 7: np.minimum}[number]
        update.at(pointer.buffer, places[kept], np.asarray(value)[kept])
        return old

    def tt_dot(self, op, x, y, z):
        wide = z.dtype
        return np.matmul(x.astype(wide), y.astype(wide)) + z

    def tt_reduce(self, op, *inputs):
        axis = int(op.attributes["axis"].value)
        first, *rest = zip(*(_slices(x, axis) for x in inputs))
        found = list(first)
        for other in rest:
            found = self.block(op.regions[0].blocks[0], [*found, *other])
        return found

    def tt_scan(self, op, *inputs):
        axis = int(op.attributes["axis"].value)
        rows = list(zip(*(_slices(x, axis) for x in inputs)))
        if op.attributes["reverse"].value:
            rows.reverse()
        found = [list(rows[0])]
        for other in rows[1:]:
            found.append(self.block(op.regions[0].blocks[0], [*found[-1], *other]))
        if op.attributes["reverse"].value:
            found.reverse()
        return [np.stack(column, axis) for column in zip(*found)]


def _slices(x, axis):
    return list(np.moveaxis(np.asarray(x), axis, 0))


def _kept(pointer, mask):
    """(places, which of them count); IndexError for one that is outside."""
    places = np.asarray(pointer.places)
    kept = np.broadcast_to(True if mask is None else mask, places.shape)
    outside = kept & ((places < 0) | (places >= pointer.buffer.size))
    if outside.any():
        raise IndexError(f"{outside.sum()} addresses outside of an array")
    return np.where(kept, places, 0), kept


def _shape(kind):
    return tuple(hlo.ir.RankedTensorType(kind).shape)


def _dtype(kind):
    text = str(kind)
    return np.dtype(_DTYPES[text.rstrip(">").rpartition("x")[2]]).type


def run(text, grid, arrays):
    """Runs a kernel for each program of the grid, over flat arrays, in place."""
    with triton.module("read"):
        made = hlo.ir.Module.parse(text)
        (function,) = made.body.operations
        entry = function.operation.regions[0].blocks[0]
        for z, y, x in itertools.product(*map(range, reversed(grid))):
            pointers = [Pointer(array, np.int64(0)) for array in arrays]
            Program((x, y, z)).block(entry, pointers)
