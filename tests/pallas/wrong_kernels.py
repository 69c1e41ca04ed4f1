"""A table of wrong kernels: what is wrong, the error, and a phrase of its message.

Each is a function of a `Library`. `in_jax` is False where JAX raises something else:
an AssertionError, an AttributeError, or nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Wrong:
    name: str
    run: Callable
    error: str
    phrase: str
    in_jax: bool


TABLE: list[Wrong] = []


def wrong(error: str, phrase: str, in_jax: bool = True) -> Callable:
    def add(run: Callable) -> Callable:
        TABLE.append(Wrong(run.__name__, run, error, phrase, in_jax))
        return run

    return add


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def call(k, kernel=copy, shape=(8,), *args, dtype=np.float32, **options):
    """Call a kernel that takes one array of eight numbers."""
    f = k.call(kernel, shape, dtype, **options)
    return f(*(args or (k.np.arange(8.0),)))


def with_map(k, index_map, block=(4,)):
    return call(k, grid=(2,), in_specs=[k.pl.BlockSpec(block, index_map)])


# ----------------------------------------------------------------------------------
# Index maps and specs
# ----------------------------------------------------------------------------------


@wrong("ValueError", "must return 1 values")
def map_with_too_many_values(k):
    with_map(k, lambda i: (i, 0))


@wrong("ValueError", "must return integer scalars. Output[0] has type")
def map_with_a_float(k):
    with_map(k, lambda i: (i * 1.0,))


@wrong("ValueError", "must return integer scalars. Output[0] has type int32[2]")
def map_with_a_vector(k):
    with_map(k, lambda i: (k.np.arange(2),))


@wrong("ValueError", "an integer scalar at position 0", in_jax=False)
def map_with_none(k):
    with_map(k, lambda i: None)


@wrong("ValueError", "must not capture constants")
def map_with_a_constant(k):
    table = k.np.arange(3)
    with_map(k, lambda i: (table[i],))


@wrong("TypeError", "missing 1 required positional argument")
def map_with_too_many_arguments(k):
    with_map(k, lambda i, j: (i,))


@wrong("ValueError", "same number of dimensions as the array shape")
def block_of_another_rank(k):
    with_map(k, lambda i: (i, 0), block=(4, 4))


@wrong("ValueError", "Unsupported block dimension type")
def block_of_words(k):
    with_map(k, lambda i: (i,), block=("x",))


@wrong("ValueError", "a pl.ds at position 0")
def bounded_slice_without_slice(k):
    with_map(k, lambda i: (i,), block=(k.pl.BoundedSlice(4),))


@wrong("ValueError", "at least one element", in_jax=False)
def block_of_nothing(k):
    k.call(copy, (8,), in_specs=[k.pl.BlockSpec((0,), lambda: (0,))])(k.np.ones(8))


@wrong("TypeError", "index_map of a BlockSpec must be a function")
def two_shapes(k):
    with_map(k, (0,))


@wrong("TypeError", "got two functions")
def two_functions(k):
    with_map(k, lambda i: (i,), block=lambda i: i)


@wrong("ValueError", "`in_specs` has 1 specs")
def too_few_specs(k):
    block = k.pl.BlockSpec((4,), lambda i: (i,))
    f = k.call(lambda x, y, o: None, (8,), grid=(2,), in_specs=[block])
    f(k.np.ones(8), k.np.ones(8))


@wrong("ValueError", "`in_specs` has 2 specs")
def too_many_specs(k):
    block = k.pl.BlockSpec((4,), lambda i: (i,))
    call(k, grid=(2,), in_specs=[block, block])


@wrong("ValueError", "`out_specs` has 2 specs")
def too_many_out_specs(k):
    block = k.pl.BlockSpec((4,), lambda i: (i,))
    call(k, grid=(2,), out_specs=[block, block])


@wrong("ValueError", "the spec of args[0] must be a pl.BlockSpec", in_jax=False)
def spec_that_is_a_number(k):
    call(k, grid=(2,), in_specs=[3])


@wrong("ValueError", "`in_specs` must be a tuple or a list")
def specs_without_list(k):
    call(k, grid=(2,), in_specs=k.pl.BlockSpec((4,), lambda i: (i,)))


# ----------------------------------------------------------------------------------
# Grids, outputs, aliases, scratch
# ----------------------------------------------------------------------------------


@wrong("ValueError", "Grid must be a tuple of integers")
def grid_of_floats(k):
    call(k, grid=(2.5,))


@wrong("ValueError", "Grid must be a tuple of integers")
def named_grid_of_floats(k):
    call(k, grid=(("i", 2.5),))


@wrong("ValueError", "cannot have a negative size", in_jax=False)
def negative_grid(k):
    call(k, grid=(-2,))


@wrong("ValueError", "then `grid` must be `()`")
def grid_twice(k):
    call(k, grid=(2,), grid_spec=k.pl.GridSpec(grid=(2,)))


@wrong("ValueError", "then `in_specs` must be `no_block_spec`")
def specs_twice(k):
    call(k, in_specs=[], grid_spec=k.pl.GridSpec(grid=(2,)))


@wrong("ValueError", "then `scratch_shapes` must be `()`")
def scratch_twice(k):
    scratch = [k.tpu.VMEM((8,), k.np.float32)]
    call(k, scratch_shapes=scratch, grid_spec=k.pl.GridSpec(grid=(2,)))


@wrong("ValueError", "num_scalar_prefetch is 2, but the kernel", in_jax=False)
def too_few_scalars(k):
    call(k, grid_spec=k.tpu.PrefetchScalarGridSpec(num_scalar_prefetch=2, grid=(2,)))


@wrong("ValueError", "Invalid out_shape type: <class 'float'>")
def out_shape_that_is_a_number(k):
    call(k, shape=3.0)


@wrong("ValueError", "Invalid out_shape type")
def out_shape_in_pieces(k):
    call(k, shape=((8,), "float32"))


@wrong("ValueError", "input index 1 outside the range [0, 1)")
def alias_of_no_input(k):
    call(k, input_output_aliases={1: 0})


@wrong("ValueError", "output index 1 outside the range [0, 1)")
def alias_of_no_output(k):
    call(k, input_output_aliases={0: 1})


@wrong("ValueError", "with a different abstract value float32[4]")
def alias_of_another_shape(k):
    call(k, lambda x, o: None, (4,), input_output_aliases={0: 0})


@wrong("ValueError", "gives one output to several inputs", in_jax=False)
def alias_twice(k):
    x = k.np.ones(8)
    call(k, lambda x, y, o: None, (8,), x, x, input_output_aliases={0: 0, 1: 0})


@wrong("ValueError", "scratch_shapes must hold memory", in_jax=False)
def scratch_that_is_a_shape(k):
    call(k, lambda x, o, s: None, scratch_shapes=[(8,)])


@wrong("ValueError", "All fields in CostEstimate must be ints")
def cost_that_is_a_float(k):
    k.pl.CostEstimate(flops=1.5, transcendentals=0, bytes_accessed=0)


@wrong("TypeError", "Error interpreting argument")
def argument_that_is_a_word(k):
    call(k, copy, (8,), "x")


# ----------------------------------------------------------------------------------
# Kernels
# ----------------------------------------------------------------------------------


@wrong("TypeError", "pallas_call transforms functions")
def kernel_that_is_a_number(k):
    call(k, 3)


@wrong("TypeError", "takes 1 positional argument but 2 were given")
def kernel_with_too_few_arguments(k):
    call(k, lambda x: None)


@wrong("ValueError", "should return None. It returns a PyTree")
def kernel_that_returns(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        return x_ref[...]

    call(k, kernel)


@wrong("ValueError", "captures constants [f32[8]]")
def kernel_that_captures(k):
    table = k.np.arange(8.0)

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + table

    call(k, kernel)


@wrong("ValueError", "Ref shape: (8,). Expected shape: (8,). Value shape: (4,)")
def store_of_another_shape(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:4]

    call(k, kernel)


@wrong("ValueError", "Ref dtype: float32. Value dtype: int32")
def store_of_another_dtype(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(k.np.int32)

    call(k, kernel)


@wrong("TypeError", "the content of a ref is `ref[...]`", in_jax=False)
def ref_as_an_operand(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref + 1

    call(k, kernel)


@wrong("TypeError", "sin takes arrays")
def ref_as_an_argument(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.np.sin(x_ref)

    call(k, kernel)


@wrong("ValueError", "Did you forget to load from it using `[...]`")
def ref_stored_in_a_ref(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref

    call(k, kernel)


@wrong("ValueError", "idx=8, dim=8")
def index_out_of_bounds(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[8]

    call(k, kernel)


@wrong("ValueError", "Out of bound slice: start=6, size=4")
def slice_out_of_bounds(k):
    def kernel(x_ref, o_ref):
        o_ref[:4] = x_ref[k.pl.ds(6, 4)]

    call(k, kernel)


@wrong("ValueError", "`indices` must not be longer than `shape`")
def too_many_indices(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[0, 0]

    call(k, kernel)


@wrong("TypeError", "add got incompatible shapes")
def operands_that_do_not_fit(k):
    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[:3]

    call(k, kernel)


@wrong("ValueError", "Axis 1 is out of bounds for grid (2,)")
def program_id_of_no_axis(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * k.pl.program_id(1)

    call(k, kernel, grid=(2,))


@wrong("ValueError", "Axis 2 is out of bounds for grid (2,)")
def num_programs_of_no_axis(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * k.pl.num_programs(2)

    call(k, kernel, grid=(2,))


@wrong("ValueError", "program_id was called outside of a kernel", in_jax=False)
def program_id_outside(k):
    k.pl.program_id(0)


@wrong("TracerBoolConversionError", "truth value of a traced array")
def python_branch(k):
    def kernel(x_ref, o_ref):
        if x_ref[0] > 0:
            o_ref[...] = x_ref[...]

    call(k, kernel)


@wrong("TracerIntegerConversionError", "cannot be used as a Python integer")
def python_loop(k):
    def kernel(x_ref, o_ref):
        for i in range(k.pl.program_id(0)):
            o_ref[i] = x_ref[i]

    call(k, kernel, grid=(2,))


@wrong("TypeError", "must have the same pytree structure")
def when_with_a_result(k):
    def kernel(x_ref, o_ref):
        @k.pl.when(x_ref[0] > 0)
        def _():
            return x_ref[0]

    call(k, kernel)


@wrong("TypeError", "must have the same pytree structure")
def loop_with_a_result(k):
    def kernel(x_ref, o_ref):
        @k.pl.loop(0, 4)
        def _(i):
            return x_ref[i]

    call(k, kernel)


@wrong("UnexpectedTracerError", "was kept and used after")
def ref_that_leaks(k):
    kept = []

    def kernel(x_ref, o_ref):
        kept.append(x_ref)
        o_ref[...] = x_ref[...]

    call(k, kernel)
    kept[0][...]


@wrong("ValueError", "Cannot broadcast mask shape (3,) to load shape (8,)")
def mask_of_another_shape(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.triton.load(x_ref, mask=k.np.ones(3, bool))

    call(k, kernel)


@wrong("ValueError", "Cannot broadcast mask shape (3,) to store shape (8,)")
def mask_of_another_shape_in_a_store(k):
    def kernel(x_ref, o_ref):
        k.triton.store(o_ref, x_ref[...], mask=k.np.ones(3, bool))

    call(k, kernel)


@wrong("ValueError", "`atomic_add` does not support int8")
def atomic_update_of_bytes(k):
    def kernel(x_ref, o_ref):
        k.triton.atomic_add(o_ref, (0,), x_ref[0])

    x = k.np.arange(8, dtype=k.np.int8)
    call(k, kernel, (8,), x, dtype=np.int8)


@wrong("ValueError", "run_scoped takes memory such as", in_jax=False)
def memory_that_is_a_shape(k):
    def kernel(x_ref, o_ref):
        k.pl.run_scoped(lambda ref: None, (8,))

    call(k, kernel)


@wrong("ValueError", "requires a non-negative integer")
def power_of_a_negative_number(k):
    k.pl.next_power_of_2(-1)


# ----------------------------------------------------------------------------------
# Derivatives
# ----------------------------------------------------------------------------------


@wrong("ValueError", "Linearization failed to produce known values")
def gradient_without_a_rule(k):
    k.lib.grad(lambda x: call(k, copy, (8,), x).sum())(k.np.arange(8.0))


@wrong("NotImplementedError", "input_output_aliases is not supported")
def derivative_with_aliases(k):
    x = k.np.arange(8.0)
    f = k.call(copy, (8,), input_output_aliases={0: 0})
    k.lib.jvp(f, (x,), (x,))


@wrong("NotImplementedError", "scratch memory is not supported", in_jax=False)
def derivative_with_scratch(k):
    def kernel(x_ref, o_ref, s_ref):
        s_ref[...] = x_ref[...]
        o_ref[...] = s_ref[...]

    x = k.np.arange(8.0)
    f = k.call(kernel, (8,), scratch_shapes=[k.tpu.VMEM((8,), k.np.float32)])
    k.lib.jvp(f, (x,), (x,))
