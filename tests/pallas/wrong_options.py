"""More wrong kernels: options of pallas_call, names of `pl`, and indices of refs.

They join the table of `wrong_kernels.py`.
"""

import numpy as np

from tests.pallas.wrong_kernels import call, copy, with_map, wrong

# ----------------------------------------------------------------------------------
# Options
# ----------------------------------------------------------------------------------


@wrong("TypeError", "must be pl.GridSpec(grid=(4,)", in_jax=False)
def grid_spec_that_is_a_tuple(k):
    call(k, grid_spec=(2,))


@wrong("ValueError", "or of pairs (name, integer), got ((2,),)")
def grid_in_tuples(k):
    call(k, grid=((2,),))


@wrong("ValueError", "Grid must be a tuple of integers")
def grid_of_words(k):
    call(k, grid="8")


@wrong("ValueError", "Grid must be a tuple of integers", in_jax=False)
def traced_grid_of_floats(k):
    k.lib.jit(lambda size: call(k, grid=(size,)))(2.5)


@wrong("ValueError", "Grid must be a tuple of integers", in_jax=False)
def traced_grid_of_vectors(k):
    k.lib.jit(lambda size: call(k, grid=(size,)))(k.np.arange(2))


@wrong("TypeError", "input_output_aliases of pallas_call must be a dict", in_jax=False)
def aliases_in_a_list(k):
    call(k, input_output_aliases=[0])


@wrong("ValueError", "and to output with a different abstract value int32[8]")
def alias_of_another_dtype(k):
    call(k, lambda x, o: None, dtype=np.int32, input_output_aliases={0: 0})


@wrong("TypeError", "pltpu.CompilerParams(...) for a TPU or pltriton")
def parameters_in_a_dict(k):
    call(k, compiler_params={"num_warps": 4})


@wrong("TypeError", "cost_estimate of pallas_call must be pl.CostEstimate(")
def cost_in_a_dict(k):
    call(k, cost_estimate={"flops": 1})


@wrong("TypeError", "True, False or pltpu.InterpretParams(), got 'yes'", in_jax=False)
def interpret_that_is_a_word(k):
    f = k.pl.pallas_call(copy, out_shape=k.struct((8,)), interpret="yes")
    f(k.np.arange(8.0))


@wrong("TypeError", "metadata of pallas_call must be a dict of strings", in_jax=False)
def metadata_that_is_a_number(k):
    call(k, metadata=3)


@wrong("TypeError", "name of pallas_call must be a string")
def name_that_is_a_number(k):
    call(k, name=3)


@wrong("ValueError", "a shape cannot have negative sizes")
def output_of_negative_size(k):
    call(k, shape=k.struct((-1,)))


@wrong("TypeError", "a dimension that is a traced array")
def output_of_traced_size(k):
    k.lib.jit(lambda size: call(k, shape=k.struct((size,))))(8)


@wrong("TypeError", "unexpected keyword argument 'num_warps'")
def option_that_does_not_exist(k):
    call(k, num_warps=4)


# ----------------------------------------------------------------------------------
# Blocks and index maps
# ----------------------------------------------------------------------------------


@wrong("ValueError", "Value shape: (16,)")
def block_larger_than_the_array(k):
    with_map(k, lambda i: (i,), block=(16,))


@wrong("ValueError", "at least one element in each axis, got -4")
def block_of_negative_size(k):
    with_map(k, lambda i: (i,), block=(-4,))


@wrong("ValueError", "Unsupported block dimension type: <class 'float'>")
def block_of_floats(k):
    with_map(k, lambda i: (i,), block=(4.0,))


@wrong("TypeError", "must be a tuple with one entry", in_jax=False)
def block_without_a_tuple(k):
    k.pl.BlockSpec(4, lambda i: (i,))


@wrong("TypeError", "a space such as pltpu.VMEM", in_jax=False)
def memory_space_that_is_a_word(k):
    k.pl.BlockSpec(memory_space="vram")


@wrong("TypeError", "pl.Buffered(count)", in_jax=False)
def buffers_that_are_a_number(k):
    k.pl.BlockSpec(pipeline_mode=2)


@wrong("TypeError", "a pair (before, after)", in_jax=False)
def padding_that_is_a_number(k):
    k.pl.Element(4, padding=1)


@wrong("TypeError", "at position 0 it returned 'a'")
def map_with_a_word(k):
    with_map(k, lambda i: ("a",))


@wrong("TypeError", "at position 0 it returned (", in_jax=False)
def map_in_nested_tuples(k):
    with_map(k, lambda i: ((i,),))


@wrong("ValueError", "Output[0] has type bool[]")
def map_with_a_bool(k):
    with_map(k, lambda i: (i == 0,))


@wrong("TracerBoolConversionError", "truth value of a traced array")
def map_with_a_branch(k):
    with_map(k, lambda i: (0 if i > 0 else 1,))


@wrong("ValueError", "`in_specs` has 1 specs")
def specs_of_no_arguments(k):
    def kernel(o_ref):
        o_ref[...] = k.np.ones(8)

    k.call(kernel, (8,), in_specs=[k.pl.BlockSpec()])()


def prefetching(k, index_map, scalars):
    spec = k.tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[k.pl.BlockSpec((4,), index_map)],
        out_specs=k.pl.BlockSpec((4,), lambda i, s: (i,)),
    )
    k.call(lambda s, x, o: None, (8,), grid_spec=spec)(scalars, k.np.ones(8))


@wrong("TypeError", "must take 2 arguments: an index for each axis of the grid (1)")
def map_without_the_scalars(k):
    prefetching(k, lambda i: (i,), k.np.arange(2))


@wrong("ValueError", "args[1] must return integer scalars. Output[0] has type float32")
def map_of_prefetched_floats(k):
    prefetching(k, lambda i, s: (s[i],), k.np.arange(2.0))


@wrong("ValueError", "num_scalar_prefetch must be the number", in_jax=False)
def negative_number_of_scalars(k):
    k.tpu.PrefetchScalarGridSpec(num_scalar_prefetch=-1, grid=(2,))


# ----------------------------------------------------------------------------------
# How kernels are called
# ----------------------------------------------------------------------------------


@wrong("TypeError", "called with 3 refs: 1 of inputs, 1 of outputs, 1 of scratch")
def kernel_without_its_scratch(k):
    call(k, copy, scratch_shapes=[k.tpu.VMEM((8,), np.float32)])


@wrong("TypeError", "unexpected keyword argument 'total'")
def scratch_of_another_name(k):
    scratch = {"total": k.tpu.VMEM((8,), np.float32)}
    call(k, lambda x, o, *, sum_ref: None, scratch_shapes=scratch)


@wrong("TypeError", "called with 1 ref: 1 of outputs")
def call_without_arguments(k):
    k.call(copy, (8,))()


@wrong("ValueError", "Ref dtype: int32. Value dtype: float32")
def scratch_of_another_dtype(k):
    def kernel(x_ref, o_ref, s_ref):
        s_ref[...] = x_ref[...]

    call(k, kernel, scratch_shapes=[k.tpu.VMEM((8,), np.int32)])


@wrong("TypeError", "is a ref, Ref<default>{float32[8]}. Kernels take arrays")
def kernel_called_with_a_ref(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = call(k, copy, (8,), x_ref)

    call(k, kernel)


# ----------------------------------------------------------------------------------
# Inside of kernels
# ----------------------------------------------------------------------------------


@wrong("TypeError", "integers and slices, got 1.5", in_jax=False)
def index_that_is_a_float(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.np.full(8, x_ref[1.5])

    call(k, kernel)


@wrong("NonConcreteBooleanIndexError", "A boolean index must have known values")
def index_that_is_a_mask(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...][x_ref[...] > 0]

    call(k, kernel)


@wrong("ValueError", "step >= 1")
def slice_backwards(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[::-1]

    call(k, kernel)


@wrong("TypeError", "Write a whole number", in_jax=False)
def slice_of_traced_size(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[k.pl.ds(0, k.pl.program_id(0))]

    call(k, kernel, grid=(2,))


@wrong("TracerArrayConversionError", "cannot become a NumPy array")
def function_of_numpy(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = np.sin(x_ref[...])

    call(k, kernel)


@wrong("TracerIntegerConversionError", "cannot be used as a Python integer")
def program_id_of_a_traced_axis(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * k.pl.program_id(k.pl.program_id(0))

    call(k, kernel, grid=(2,))


@wrong("TypeError", "Pred must be a scalar")
def when_of_a_vector(k):
    def kernel(x_ref, o_ref):
        @k.pl.when(x_ref[...])
        def _():
            o_ref[...] = x_ref[...]

    call(k, kernel)


@wrong("TypeError", "pl.loop takes integers, but upper is 2.5")
def loop_to_a_float(k):
    def kernel(x_ref, o_ref):
        @k.pl.loop(0, 2.5)
        def _(i):
            o_ref[i] = x_ref[i]

    call(k, kernel)


@wrong("ZeroDivisionError", "pl.loop with step=0")
def loop_without_a_step(k):
    def kernel(x_ref, o_ref):
        @k.pl.loop(0, 4, step=0)
        def _(i):
            o_ref[i] = x_ref[i]

    call(k, kernel)


@wrong("IndexError", "has 2 places for values, and 1 were given", in_jax=False)
def print_with_too_few_values(k):
    def kernel(x_ref, o_ref):
        k.pl.debug_print("{} {}", x_ref[0])

    call(k, kernel)


@wrong("ValueError", "pl.multiple_of takes positive integers", in_jax=False)
def multiple_of_nothing(k):
    k.pl.multiple_of(k.np.int32(4), 0)


@wrong("TypeError", "pl.reciprocal takes floats, got int32", in_jax=False)
def reciprocal_of_integers(k):
    k.pl.reciprocal(k.np.arange(1, 9))


@wrong("ValueError", "must be an array of bools, got float32[8]", in_jax=False)
def mask_of_floats(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.triton.load(x_ref, mask=k.np.ones(8))

    call(k, kernel)


@wrong("ValueError", "Can only call `load` on a `Ref`")
def masked_load_of_an_array(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.triton.load(x_ref[...])

    call(k, kernel)


@wrong("TypeError", "run_scoped transforms functions")
def run_scoped_of_a_number(k):
    def kernel(x_ref, o_ref):
        k.pl.run_scoped(3, k.tpu.VMEM((8,), np.float32))

    call(k, kernel)
