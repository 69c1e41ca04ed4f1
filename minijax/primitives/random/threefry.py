"""The threefry block cipher, from which random bits are made.

A random number here is a pure function of a key and of its own position: the positions
0, 1, 2, ... are encrypted under the key, and what comes out is as good as random.
Nothing is stored between calls, every number can be computed alone, and so the numbers
do not depend on how an array is laid out over devices.

Source: "Parallel Random Numbers: As Easy as 1, 2, 3" (Salmon et al., 2011).
In JAX: `random/threefry2x32.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.backend import dynamic_shapes, hlo_parts
from minijax.core import hlo
from minijax.core.arithmetic import add
from minijax.core.language import ShapedArray, get_aval
from minijax.core.rules import (
    broadcast_shapes_of_operands,
    broadcasting_batch,
    def_zero_jvp,
)
from minijax.core.shaping import broadcast_in_dim, convert_element_type, reshape
from minijax.core.state import state
from minijax.primitives.elementwise.comparing import (
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_logical,
)
from minijax.primitives.families import several_results, without_operands
from minijax.primitives.shape.broadcasting import iota
from minijax.primitives.shape.joining import concatenate
from minijax.primitives.shape.slicing import index_in_dim, slice_in_dim
from minijax.primitives.shape.squeezing import expand_dims
from minijax.values.symbolic_sizes import is_symbolic, shape_variables

UINT32 = np.dtype(np.uint32)
UINT_DTYPES = {width: np.dtype(f"uint{width}") for width in (8, 16, 32, 64)}

Shape = tuple[int, ...]

# -- the cipher ---------------------------------------------------------------------

# By how many bits each of four rounds rotates, in even and in odd groups of rounds.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
# The third word of the key schedule is the parity of the other two and of this.
PARITY = 0x1BD11BDA


class NumpyWords:
    """Arithmetic on 32-bit words in NumPy."""

    add = staticmethod(np.add)
    xor = staticmethod(np.bitwise_xor)

    @staticmethod
    def constant(value: int) -> Any:
        return np.uint32(value)

    @staticmethod
    def rotate_left(x: np.ndarray, by: int) -> np.ndarray:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))


class StablehloWords:
    """Arithmetic on 32-bit words in StableHLO, for one shape."""

    def __init__(self, ctx: Any, aval: ShapedArray) -> None:
        self.constant = lambda value: ctx.full_like(value, aval)
        self.add = ctx.operation("add")
        self.xor = ctx.operation("xor")

    def rotate_left(self, x: Any, by: int) -> Any:
        left = hlo.stablehlo.shift_left(x, self.constant(by))
        right = hlo.stablehlo.shift_right_logical(x, self.constant(32 - by))
        return hlo.stablehlo.or_(left, right)


def encrypt(words: Any, key1: Any, key2: Any, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Encrypts the 64-bit block (x1, x2) under the 64-bit key (key1, key2).

    Twenty rounds of add, rotate and xor, with words of the key mixed in after every
    fourth. `words` says what these are, so that one text is both the meaning of the
    primitive and the program that XLA gets.
    """
    schedule = (key1, key2, words.xor(words.xor(key1, key2), words.constant(PARITY)))
    x1 = words.add(x1, schedule[0])
    x2 = words.add(x2, schedule[1])
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x1 = words.add(x1, x2)
            x2 = words.xor(words.rotate_left(x2, rotation), x1)
        x1 = words.add(x1, schedule[(group + 1) % 3])
        x2 = words.add(x2, schedule[(group + 2) % 3])
        x2 = words.add(x2, words.constant(group + 1))
    return x1, x2


def _threefry_type(*avals: ShapedArray) -> list[ShapedArray]:
    if any(aval.dtype != UINT32 for aval in avals):
        raise TypeError(
            "Arguments to threefry2x32 must have uint32 type, got "
            f"{', '.join(map(str, avals))}"
        )
    shape = broadcast_shapes_of_operands("threefry2x32", [aval.shape for aval in avals])
    return [ShapedArray(shape, UINT32)] * 2


def _threefry_meaning(*operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):
        return encrypt(NumpyWords, *np.broadcast_arrays(*operands))


def _threefry_lowering(ctx, *operands) -> Any:
    # One function of the module for each shape: the rounds are 170 operations.
    aval = ctx.avals_out[0]
    if shape_variables([aval.shape]):  # their values are those of this function
        return _encrypt(ctx, aval, ctx.broadcast(operands))
    functions = ctx.module_context.functions
    key = ("threefry2x32", aval.shape)
    if key not in functions:
        functions[key] = (_threefry_function(ctx, aval), None)
    name = hlo.ir.FlatSymbolRefAttr.get(functions[key][0].name.value)
    return hlo.func.CallOp([ctx.result_type()] * 2, name, ctx.broadcast(operands))


def _threefry_function(ctx: Any, aval: ShapedArray) -> Any:
    word = ctx.result_type()
    module_context = ctx.module_context
    function = hlo.func.FuncOp(
        "threefry2x32",
        hlo.ir.FunctionType.get([word] * 4, [word] * 2),
        ip=hlo.ir.InsertionPoint(module_context.module.body),
    )
    function.attributes["sym_visibility"] = hlo.string("private")
    module_context.symbols.insert(function)
    block = function.add_entry_block()
    with hlo.ir.InsertionPoint(block):
        hlo.func.ReturnOp(list(_encrypt(ctx, aval, list(block.arguments))))
    return function


def _encrypt(ctx: Any, aval: ShapedArray, arguments: list[Any]) -> tuple[Any, Any]:
    if ctx.platform == "cpu" and aval.size:
        return _encrypt_in_loop(ctx, aval, arguments)
    return encrypt(StablehloWords(ctx, aval), *arguments)


def _encrypt_in_loop(ctx, aval: ShapedArray, arguments: list[Any]) -> tuple[Any, Any]:
    """The rounds as the body of a loop that runs once.

    On CPU, XLA would fuse the rounds with whatever uses the bits, and a fused sampler
    may round its last digit differently. JAX has a loop of five steps here, and nothing
    is fused across a loop; with one step its samplers have the same bits, and this
    runs three times as fast. XLA must not see that there is one step, or it takes the
    loop away: the counter becomes `word | 1`, which is never 0.
    """
    counter = hlo.tensor_type((), UINT32)
    zero = ctx.constant(np.uint32(0))
    types = [counter, *(argument.type for argument in arguments)]
    loop = hlo.stablehlo.WhileOp(types, [zero, *arguments])

    def goes_on(word: Any, *_: Any) -> list[Any]:
        equal = hlo.stablehlo.ComparisonDirectionAttr.get("EQ")
        return [hlo.stablehlo.compare(word, ctx.constant(np.uint32(0)), equal)]

    def turn(_: Any, key1: Any, key2: Any, x1: Any, x2: Any) -> list[Any]:
        ones = hlo.int_array([1] * aval.ndim)
        corner = hlo.stablehlo.slice(key1, hlo.int_array([0] * aval.ndim), ones, ones)
        word = hlo.stablehlo.reshape(counter, corner)
        odd = hlo.stablehlo.or_(word, ctx.constant(np.uint32(1)))
        x1, x2 = encrypt(StablehloWords(ctx, aval), key1, key2, x1, x2)
        return [odd, key1, key2, x1, x2]

    hlo_parts.write_region(loop, types, goes_on)
    hlo_parts.write_region(loop, types, turn, 1)
    return loop.results[3], loop.results[4]


threefry2x32_p = several_results("threefry2x32", _threefry_type, _threefry_meaning)
threefry2x32_p.def_batch(broadcasting_batch(threefry2x32_p))
threefry2x32_p.def_lowering(_threefry_lowering)
def_zero_jvp(threefry2x32_p)


# -- positions ----------------------------------------------------------------------


def _positions_meaning(*, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    positions = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    high = (positions >> np.uint64(32)).astype(UINT32)
    return high, positions.astype(UINT32)


def _positions_lowering(ctx, *, shape: Shape) -> list[Any]:
    # Strides times coordinates, rather than one long iota reshaped: each device of a
    # mesh can compute its own part. In 64 bits, also while enable_x64 is off.
    wide = ShapedArray(shape, np.dtype(np.uint64))
    wide_type = hlo.tensor_type(shape, wide.dtype)
    total = None
    for axis in range(len(shape)):
        coordinate = hlo.stablehlo.iota(wide_type, hlo_parts.int_attribute(axis))
        stride = math.prod(shape[axis + 1 :])
        if is_symbolic(stride):
            scalar = ShapedArray((), wide.dtype)
            factor = dynamic_shapes.scalar(stride, hlo.tensor_type((), wide.dtype))
            scale = ctx.broadcast_in_dim(factor, scalar, shape, [])
            coordinate = hlo.stablehlo.multiply(coordinate, scale)
        elif stride != 1:
            scale = ctx.full_like(stride, wide)
            coordinate = hlo.stablehlo.multiply(coordinate, scale)
        total = coordinate if total is None else hlo.stablehlo.add(total, coordinate)
    high = hlo.stablehlo.shift_right_logical(total, ctx.full_like(32, wide))
    narrow = ctx.result_type()
    return [hlo.stablehlo.convert(narrow, high), hlo.stablehlo.convert(narrow, total)]


# The row-major position of every element of an array, as two 32-bit words.
iota_2x32_shape_p = several_results(
    "iota_2x32_shape",
    lambda *, shape: [ShapedArray(shape, UINT32)] * 2,
    _positions_meaning,
)
iota_2x32_shape_p.def_lowering(_positions_lowering)
without_operands(iota_2x32_shape_p)


# -- what a generator does ----------------------------------------------------------


def last_slice(x: Any, index: int) -> Any:
    """The slice `x[..., index]`."""
    return index_in_dim(x, index, get_aval(x).ndim - 1, keepdims=False)


def stack_last(x1: Any, x2: Any) -> Any:
    """Two arrays of words as one, with a new last axis of size 2."""
    axis = get_aval(x1).ndim
    return concatenate([expand_dims(x1, (axis,)), expand_dims(x2, (axis,))], axis)


def _encrypt_positions(keys: Any, shape: Shape) -> list[Any]:
    """Encrypts the positions of an array of `shape` under each of `keys`.

    `keys` are bits of shape (*batch, 2); the results have shape (*batch, *shape).
    """
    batch = get_aval(keys).shape[:-1]
    full = (*batch, *shape)
    if shape:
        positions = iota_2x32_shape_p.bind(shape=shape)
    else:
        positions = [np.zeros((), UINT32)] * 2
    tail = tuple(range(len(batch), len(full)))
    counts = [broadcast_in_dim(word, full, tail) for word in positions]
    return _encrypt_under(keys, full, counts)


def _encrypt_under(keys: Any, shape: Shape, words: list[Any]) -> list[Any]:
    """Encrypts pairs of words under each of `keys`, whose batch axes come first."""
    batch_axes = tuple(range(get_aval(keys).ndim - 1))
    own = [broadcast_in_dim(last_slice(keys, i), shape, batch_axes) for i in (0, 1)]
    return threefry2x32_p.bind(*own, *words)


def threefry_seed(seeds: Any) -> Any:
    """Key words of integer seeds: the seed's upper and lower 32 bits."""
    dtype = get_aval(seeds).dtype
    if dtype.itemsize < 8:
        # 32 bits and fewer have no upper half. Shifting them by 32 gives 0 in XLA.
        upper = np.zeros(get_aval(seeds).shape, UINT32)
    else:
        upper = shift_right_logical(seeds, np.array(32, dtype))
        upper = convert_element_type(upper, UINT32)
    return stack_last(upper, convert_element_type(seeds, UINT32))


def threefry_split(keys: Any, shape: Shape) -> Any:
    """New key words: the encrypted positions of an array of keys."""
    if not state.threefry_partitionable:
        words = _encrypt_sequence(keys, 2 * math.prod(shape))
        return reshape(words, (*get_aval(keys).shape[:-1], *shape, 2))
    return stack_last(*_encrypt_positions(keys, shape))


def threefry_random_bits(keys: Any, bit_width: int, shape: Shape) -> Any:
    """Random bits: both words of each encrypted position make 64, or fewer."""
    if bit_width not in UINT_DTYPES:
        raise TypeError(f"random bits come in widths of 8, 16, 32, 64; got {bit_width}")
    dtype = UINT_DTYPES[bit_width]
    if not state.threefry_partitionable:
        return _sequential_bits(keys, dtype, shape)
    word1, word2 = _encrypt_positions(keys, shape)
    if bit_width == 64:
        upper = shift_left(convert_element_type(word1, dtype), np.array(32, dtype))
        return bitwise_or(upper, convert_element_type(word2, dtype))
    bits = bitwise_xor(word1, word2)
    return bits if bit_width == 32 else convert_element_type(bits, dtype)


def threefry_fold_in(keys: Any, messages: Any) -> Any:
    """New key words: the message, made a block like a seed, encrypted under the key.

    The shapes of `keys`, without their last axis, and of `messages` broadcast.
    """
    block = threefry_seed(messages)
    words = threefry2x32_p.bind(
        last_slice(keys, 0),
        last_slice(keys, 1),
        last_slice(block, 0),
        last_slice(block, 1),
    )
    return stack_last(*words)


# -- the older way of counting ------------------------------------------------------

# With the flag `jax_threefry_partitionable` off, numbers are those of JAX before 0.5:
# words 0 to n are numbered, and word i is encrypted together with word i + n/2. A part
# of an array then cannot be computed without its counterpart elsewhere.


def _encrypt_sequence(keys: Any, count: int) -> Any:
    """`count` encrypted words from each of `keys`: shape (*batch, count)."""
    batch = get_aval(keys).shape[:-1]
    half = (count + 1) // 2
    first = iota(UINT32, half)
    second = add(first, np.uint32(half))
    if count % 2:
        # The word that fills up an odd number is 0.
        second = concatenate(
            [slice_in_dim(second, 0, half - 1), np.zeros(1, UINT32)], 0
        )
    axis, full = len(batch), (*batch, half)
    blocks = [broadcast_in_dim(part, full, (axis,)) for part in (first, second)]
    words = _encrypt_under(keys, full, blocks)
    return slice_in_dim(concatenate(words, axis), 0, count, axis=axis)


def _sequential_bits(keys: Any, dtype: np.dtype, shape: Shape) -> Any:
    """Random bits packed into as few words as they fill."""
    batch = get_aval(keys).shape[:-1]
    width = 8 * dtype.itemsize
    size = math.prod(shape)
    count = -(-size * width // 32)
    words = _encrypt_sequence(keys, count)
    axis = len(batch)
    if width == 64:
        upper = convert_element_type(slice_in_dim(words, 0, size, axis=axis), dtype)
        lower = convert_element_type(slice_in_dim(words, size, None, axis=axis), dtype)
        words = bitwise_or(shift_left(upper, np.array(32, dtype)), lower)
    elif width < 32:
        # Each word gives several numbers, the lowest bits first.
        parts = [
            shift_right_logical(words, np.uint32(shift))
            for shift in range(0, 32, width)
        ]
        columns = [expand_dims(part, (axis + 1,)) for part in parts]
        packed = concatenate(columns, axis + 1)
        flat = reshape(packed, (*batch, count * len(parts)))
        words = slice_in_dim(convert_element_type(flat, dtype), 0, size, axis=axis)
    return reshape(words, (*batch, *shape))
