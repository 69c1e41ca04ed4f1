"""Broadcasting, reshaping, moving axes, joining, casting and creating arrays."""

import numpy as np

from tests.golden.programs.registry import boolean, f32, family, i32, program, u32


@program("a")
def broadcast_leading(jax):
    return lambda x: jax.lax.broadcast(x, (4, 2)), (f32(3),)


@program("a")
def broadcast_in_dim_middle(jax):
    return lambda x: jax.lax.broadcast_in_dim(x, (2, 3, 4), (1,)), (f32(3),)


@program("a")
def broadcast_in_dim_stretches(jax):
    return lambda x: jax.lax.broadcast_in_dim(x, (2, 3), (0, 1)), (f32(1, 3),)


@program("a")
def broadcast_to_rank(jax):
    return lambda x: jax.lax.broadcast_to_rank(x, 3), (f32(3),)


@program("a")
def reshape_flat(jax):
    return lambda x: jax.lax.reshape(x, (6,)), (f32(2, 3),)


@program("a")
def reshape_same_shape(jax):
    return lambda x: jax.lax.reshape(x, (2, 3)), (f32(2, 3),)


@program("a")
def reshape_with_dimensions(jax):
    return lambda x: jax.lax.reshape(x, (6,), dimensions=(1, 0)), (f32(2, 3),)


@program("a")
def collapse_axes(jax):
    return lambda x: jax.lax.collapse(x, 1, 3), (f32(2, 3, 4),)


@program("a")
def expand_and_squeeze(jax):
    def expand_and_squeeze(x):
        y = jax.lax.expand_dims(x, (0, 2))
        return jax.lax.squeeze(y, (0,))

    return expand_and_squeeze, (f32(3),)


@program("a")
def transpose_three(jax):
    return lambda x: jax.lax.transpose(x, (2, 0, 1)), (f32(2, 3, 4),)


@program("a")
def transpose_identity(jax):
    return lambda x: jax.lax.transpose(x, (0, 1)), (f32(2, 3),)


@program("a")
def rev_two_axes(jax):
    return lambda x: jax.lax.rev(x, (0, 1)), (f32(2, 3),)


@program("a")
def concatenate_three(jax):
    return lambda x, y: jax.lax.concatenate([x, y, x], 1), (f32(2, 3), f32(2, 1))


@program("a")
def pad_edges_and_interior(jax):
    return lambda x: jax.lax.pad(x, 0.0, [(1, 2, 0), (0, -1, 1)]), (f32(2, 3),)


@program("a")
def split_by_sizes(jax):
    return lambda x: jax.lax.split(x, (1, 3, 2), axis=0), (f32(6),)


@program("a")
def tile_twice(jax):
    return lambda x: jax.lax.tile(x, (2, 3)), (f32(2, 3),)


@program("a")
def stack_two(jax):
    return lambda x, y: jax.lax.stack([x, y], axis=1), (f32(3), f32(3))


@program("a")
def unstack_rows(jax):
    return lambda x: jax.lax.unstack(x, axis=0), (f32(2, 3),)


@program("a")
def full_of_a_traced_scalar(jax):
    return lambda x: jax.lax.full((2, 3), x), (1.5,)


@program("a")
def full_of_a_literal(jax):
    return lambda: (jax.lax.full((2, 3), 1.5), jax.lax.full((2,), 1, np.int8)), ()


@program("a")
def full_like_zero(jax):
    return lambda x: jax.lax.full_like(x, 0), (f32(2, 3),)


@program("a")
def iota_kinds(jax):
    def iota_kinds():
        line = jax.lax.iota(np.int32, 5)
        plane = jax.lax.broadcasted_iota(np.float32, (2, 3), 1)
        return line, plane

    return iota_kinds, ()


@family("a", "float16 bfloat16 int32 uint8 bool complex64 float8_e4m3fn")
def cast_to(jax, name):
    dtype = np.dtype(bool) if name == "bool" else getattr(jax.numpy, name)
    return lambda x: jax.lax.convert_element_type(x, dtype), (f32(3),)


@family("a", "float32 int32 uint8 bool")
def cast_from_int(jax, name):
    dtype = np.dtype(name)
    return lambda x: jax.lax.convert_element_type(x, dtype), (i32(3),)


@program("a")
def cast_of_a_python_scalar(jax):
    return lambda: jax.lax.convert_element_type(3, np.float32), ()


@program("a")
def cast_of_a_weak_argument(jax):
    return lambda x: jax.lax.convert_element_type(x, np.float32), (2.0,)


@program("a", enable_x64=True)
def cast_to_float64(jax):
    return lambda x: jax.lax.convert_element_type(x, np.float64), (f32(3),)


@program("a")
def bitcast_same_width(jax):
    return lambda x: jax.lax.bitcast_convert_type(x, np.int32), (f32(3),)


@program("a")
def bitcast_to_bytes(jax):
    return lambda x: jax.lax.bitcast_convert_type(x, np.uint8), (f32(3),)


@program("a")
def bitcast_from_halves(jax):
    def bitcast_from_halves(x):
        halves = jax.lax.bitcast_convert_type(x, np.uint16)
        return jax.lax.bitcast_convert_type(halves, np.uint32)

    return bitcast_from_halves, (u32(3),)


@program("a")
def reduce_precision_to_bfloat16(jax):
    return lambda x: jax.lax.reduce_precision(x, 8, 7), (f32(3),)


@program("a")
def optimization_barrier_of_a_tree(jax):
    return jax.lax.optimization_barrier, ({"a": f32(3), "b": i32(2)},)


@program("a")
def stop_gradient_of_a_tree(jax):
    return lambda x: jax.lax.stop_gradient((x, x * 2)), (f32(3),)


@program("a")
def select_between_two(jax):
    return jax.lax.select, (boolean(3), f32(3), f32(3))


@program("a")
def select_n_scalar_predicate(jax):
    return jax.lax.select_n, (np.bool_(True), f32(3), f32(3))


@program("a")
def select_n_three_cases(jax):
    which = np.array([0, 1, 2], np.int32)
    return jax.lax.select_n, (which, f32(3), f32(3), f32(3))


@program("a")
def clamp_scalars(jax):
    return lambda x: jax.lax.clamp(0.0, x, 1.0), (f32(3),)


@program("a")
def clamp_arrays(jax):
    return jax.lax.clamp, (f32(3), f32(3), f32(3))


@program("a")
def sort_one(jax):
    return jax.lax.sort, (f32(3),)


@program("a")
def sort_several_with_keys(jax):
    return (
        lambda x, y, z: jax.lax.sort((x, y, z), dimension=0, num_keys=2),
        (f32(3), i32(3), f32(3)),
    )


@program("a")
def sort_unstable(jax):
    return lambda x: jax.lax.sort(x, dimension=0, is_stable=False), (f32(3, 2),)


@program("a")
def sort_key_val_pair(jax):
    return jax.lax.sort_key_val, (f32(3), i32(3))


@program("a")
def top_two(jax):
    return lambda x: jax.lax.top_k(x, 2), (f32(2, 5),)


@program("a")
def after_copy(jax):
    return lambda x: jax.numpy.copy(x), (f32(3),)
