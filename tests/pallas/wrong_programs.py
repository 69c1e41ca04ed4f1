"""More wrong kernels: what shows only while programs run, and what a TPU refuses.

They join the table of `wrong_kernels.py`.
"""

import numpy as np

from tests.pallas.wrong_kernels import call, copy, wrong


class Found(Exception):
    """A finding of the teaching interpreter, which does not raise it."""


def watch(k, kernel, shape=(8,), *args, **options):
    """Interpret a kernel, one program at a time; raise what was found."""
    params = k.tpu.InterpretParams(detect_races=True)
    call(k, kernel, shape, *args, interpret=params, **options)
    for finding in k.tpu.findings():
        raise Found(f"{finding.message} At {finding.line}")


def on_a_tpu(k, kernel, shape=(8, 128), **options):
    """Lower a kernel on an array of one register for a TPU."""
    f = k.call(kernel, shape, interpret=False, **options)
    traced = k.lib.jit(f).trace(k.np.ones((8, 128), np.float32))
    traced.lower(lowering_platforms=("tpu",))


# ----------------------------------------------------------------------------------
# While programs run
# ----------------------------------------------------------------------------------


@wrong("Found", "o_ref[0]", in_jax=False)
def two_programs_write_one_element(k):
    def kernel(x_ref, o_ref):
        o_ref[0] = x_ref[k.pl.program_id(0)]

    params = k.tpu.CompilerParams(dimension_semantics=("parallel",))
    watch(k, kernel, (1,), grid=(8,), compiler_params=params)


@wrong("Found", "6 of 8 elements of o_ref", in_jax=False)
def output_that_is_not_written(k):
    def kernel(x_ref, o_ref):
        o_ref[1:3] = x_ref[:2]

    watch(k, kernel)


@wrong("Found", "o_ref", in_jax=False)
def assignment_to_the_name_of_a_ref(k):
    def kernel(x_ref, o_ref):
        o_ref = x_ref[...]  # noqa: F841

    watch(k, kernel)


@wrong("Found", "o_ref[0] and 7 more", in_jax=False)
def sum_without_a_start(k):
    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    watch(k, kernel)


@wrong("Found", "s_ref", in_jax=False)
def scratch_read_before_it_is_written(k):
    def kernel(x_ref, o_ref, s_ref):
        o_ref[...] = x_ref[...] + s_ref[...]

    watch(k, kernel, scratch_shapes=[k.tpu.VMEM((8,), np.float32)])


@wrong("IndexError", "program (1,) reads outside of", in_jax=False)
def read_beyond_the_end(k):
    def kernel(x_ref, o_ref):
        o_ref[0] = x_ref[k.pl.program_id(0) + 7]

    watch(k, kernel, grid=(3,))


@wrong("IndexError", "program (1,) writes outside of", in_jax=False)
def write_beyond_the_end(k):
    def kernel(x_ref, o_ref):
        o_ref[k.pl.program_id(0) + 7] = x_ref[0]

    watch(k, kernel, grid=(3,))


@wrong("IndexError", "index map of args[0] gives program (1,)", in_jax=False)
def map_beyond_the_end(k):
    far = k.pl.BlockSpec((4,), lambda i: (i + 1,))
    watch(k, copy, (4,), grid=(2,), in_specs=[far])


@wrong("ValueError", "uninitialized_memory must be one of", in_jax=False)
def memory_of_another_start(k):
    k.tpu.InterpretParams(uninitialized_memory="seven")


# ----------------------------------------------------------------------------------
# On a TPU
# ----------------------------------------------------------------------------------


@wrong("NotImplementedError", "no lowering of 'sort' to Mosaic")
def sort_on_a_tpu(k):
    def kernel(x_ref, o_ref):
        o_ref[...] = k.lax.sort(x_ref[...])

    on_a_tpu(k, kernel)


@wrong("ValueError", "multiples of 8 and 128")
def block_smaller_than_a_register(k):
    block = k.pl.BlockSpec((4, 128), lambda i: (i, 0))
    on_a_tpu(k, copy, grid=(2,), in_specs=[block], out_specs=block)


@wrong("NotImplementedError", "a scalar written to VMEM", in_jax=False)
def scalar_written_to_vmem(k):
    def kernel(x_ref, o_ref):
        o_ref[0, 0] = 1.0

    on_a_tpu(k, kernel)


@wrong("ValueError", "but the grid has 0 axes")
def semantics_of_no_axis(k):
    params = k.tpu.CompilerParams(dimension_semantics=("parallel",))
    on_a_tpu(k, copy, compiler_params=params)


@wrong("NotImplementedError", "asynchronous copies", in_jax=False)
def array_in_place_on_a_tpu(k):
    on_a_tpu(k, copy, in_specs=[k.pl.BlockSpec(memory_space=k.pl.ANY)])


@wrong("NotImplementedError", "which may reach beyond the memory")
def masked_read_on_a_tpu(k):
    def kernel(x_ref, o_ref):
        rows = k.pl.ds(k.pl.program_id(0) * 8, 8)
        o_ref[...] = k.triton.load(x_ref.at[rows], mask=o_ref[...] > 0, other=0.0)

    on_a_tpu(k, kernel, grid=(2,))


@wrong("NotImplementedError", "a copy that adds")
def adding_copy_on_a_tpu(k):
    def kernel(x_ref, o_ref, semaphore):
        k.tpu.async_copy(x_ref, o_ref, semaphore, add=True).wait()

    on_a_tpu(k, kernel, scratch_shapes=[k.tpu.SemaphoreType.DMA])


@wrong("ValueError", "In memory space", in_jax=True)
def blocks_of_an_array_in_place(k):
    block = k.pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=k.pl.ANY)

    def kernel(x_ref, o_ref):
        o_ref[...] = o_ref[...]

    f = k.call(kernel, (16, 128), interpret=False, grid=(2,), in_specs=[block])
    traced = k.lib.jit(f).trace(k.np.ones((16, 128), np.float32))
    traced.lower(lowering_platforms=("tpu",))


@wrong("TypeError", "is not for a TPU: give pltpu.CompilerParams", in_jax=False)
def parameters_of_a_gpu(k):
    on_a_tpu(k, copy, compiler_params=k.triton.CompilerParams())
