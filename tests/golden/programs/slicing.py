"""Slices, dynamic slices, gathers and scatters of `lax`."""

import numpy as np

from tests.golden.programs.registry import f32, family, i32, program


@program("a")
def slice_plain(jax):
    return lambda x: jax.lax.slice(x, (1, 0), (3, 2)), (f32(4, 3),)


@program("a")
def slice_strided(jax):
    return lambda x: jax.lax.slice(x, (0,), (6,), (2,)), (f32(6),)


@program("a")
def slice_in_dim_negative(jax):
    return lambda x: jax.lax.slice_in_dim(x, -2, None, axis=1), (f32(2, 5),)


@program("a")
def index_in_dim_dropped(jax):
    return lambda x: jax.lax.index_in_dim(x, 1, axis=0, keepdims=False), (f32(3, 2),)


@program("a")
def dynamic_slice_traced(jax):
    return lambda x, i: jax.lax.dynamic_slice(x, (i, 0), (2, 3)), (f32(4, 3), 1)


@program("a")
def dynamic_slice_unsigned_start(jax):
    return (
        lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)),
        (f32(4), np.uint8(1)),
    )


@program("a")
def dynamic_slice_in_dim(jax):
    return lambda x, i: jax.lax.dynamic_slice_in_dim(x, i, 2, axis=1), (f32(2, 5), 1)


@program("a")
def dynamic_index_in_dim(jax):
    return (
        lambda x, i: jax.lax.dynamic_index_in_dim(x, i, axis=0, keepdims=False),
        (f32(4, 3), np.int32(1)),
    )


@program("a")
def dynamic_update_slice_traced(jax):
    return (
        lambda x, u, i: jax.lax.dynamic_update_slice(x, u, (i, 0)),
        (f32(4, 3), f32(2, 3), np.int32(1)),
    )


@program("a")
def dynamic_update_index_in_dim(jax):
    return (
        lambda x, u, i: jax.lax.dynamic_update_index_in_dim(x, u, i, 0),
        (f32(4, 3), f32(3), np.int32(1)),
    )


@program("a")
def gradient_of_dynamic_slice(jax):
    def loss(x, i):
        return jax.lax.dynamic_slice(x, (i,), (2,)).sum()

    return jax.grad(loss), (f32(5), np.int32(1))


@program("a")
def gradient_of_dynamic_update_slice(jax):
    def loss(x, u, i):
        return (jax.lax.dynamic_update_slice(x, u, (i,)) ** 2).sum()

    return jax.grad(loss, argnums=(0, 1)), (f32(5), f32(2), np.int32(1))


@program("a")
def vmap_of_dynamic_slice(jax):
    return (
        jax.vmap(lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,))),
        (f32(3, 5), i32(3)),
    )


@program("a")
def vmap_of_dynamic_slice_same_start(jax):
    return (
        jax.vmap(lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)), (0, None)),
        (f32(3, 5), np.int32(1)),
    )


@program("a")
def vmap_of_dynamic_update_slice(jax):
    return (
        jax.vmap(lambda x, u, i: jax.lax.dynamic_update_slice(x, u, (i,))),
        (f32(3, 5), f32(3, 2), i32(3)),
    )


@family("a", "clip fill promise_in_bounds")
def gather_rows(jax, name):
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return (
        lambda x, i: jax.lax.gather(x, i, numbers, slice_sizes=(1, 3), mode=name),
        (f32(4, 3), i32(2, 1)),
    )


@program("a")
def gather_sorted_unique(jax):
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return (
        lambda x, i: jax.lax.gather(
            x,
            i,
            numbers,
            slice_sizes=(1,),
            unique_indices=True,
            indices_are_sorted=True,
        ),
        (f32(4), i32(2, 1)),
    )


@program("a")
def gather_with_batching_dims(jax):
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    return (
        lambda x, i: jax.lax.gather(x, i, numbers, slice_sizes=(1, 1)),
        (f32(2, 4), i32(2, 1)),
    )


def _row_scatter(jax):
    return jax.lax.ScatterDimensionNumbers(
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
    )


@family("a", "scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max")
def scatter_kind(jax, name):
    numbers = _row_scatter(jax)
    return (
        lambda x, i, u: getattr(jax.lax, name)(x, i, u, numbers),
        (f32(4, 3), i32(2, 1), f32(2, 3)),
    )


@program("a")
def scatter_apply_sine(jax):
    numbers = _row_scatter(jax)
    return (
        lambda x, i: jax.lax.scatter_apply(
            x, i, jax.lax.sin, numbers, update_shape=(2, 3)
        ),
        (f32(4, 3), i32(2, 1)),
    )


@family("a", "scatter scatter_add scatter_mul scatter_max")
def gradient_of_scatter(jax, name):
    numbers = _row_scatter(jax)

    def loss(x, i, u):
        y = getattr(jax.lax, name)(x, i, u, numbers, unique_indices=True)
        return (y * y).sum()

    return jax.grad(loss, argnums=(0, 2)), (f32(4, 3), i32(2, 1), f32(2, 3))


@program("a")
def gradient_of_gather(jax):
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )

    def loss(x, i):
        return jax.lax.gather(x, i, numbers, slice_sizes=(1, 3)).sum()

    return jax.grad(loss), (f32(4, 3), i32(2, 1))


@program("a")
def vmap_of_gather(jax):
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return (
        jax.vmap(lambda x, i: jax.lax.gather(x, i, numbers, slice_sizes=(1, 3))),
        (f32(5, 4, 3), i32(5, 2, 1)),
    )


@program("a")
def vmap_of_scatter_add(jax):
    numbers = _row_scatter(jax)
    return (
        jax.vmap(lambda x, i, u: jax.lax.scatter_add(x, i, u, numbers)),
        (f32(5, 4, 3), i32(5, 2, 1), f32(5, 2, 3)),
    )


@program("a")
def index_take_two(jax):
    return (
        lambda x, i, j: jax.lax.index_take(x, (i, j), axes=(0, 1)),
        (f32(4, 3), np.array([0, 1], np.int32), np.array([0, 2], np.int32)),
    )


@program("a")
def gradient_of_sort(jax):
    return jax.grad(lambda x: jax.lax.sort(x)[0]), (f32(3),)


@program("a")
def tangent_of_top_k(jax):
    return (
        lambda x, t: jax.jvp(lambda x: jax.lax.top_k(x, 2)[0], (x,), (t,)),
        (f32(5), f32(5)),
    )


@program("a")
def vmap_of_sort_two_operands(jax):
    return (
        jax.vmap(lambda x, y: jax.lax.sort((x, y), num_keys=1), in_axes=(0, None)),
        (f32(2, 3), i32(3)),
    )
