"""Indexing with brackets, and `.at[...]` with its methods and modes."""

import numpy as np

from tests.golden.programs.registry import f32, family, i32, program

MATRIX = (4, 3)


@program("a")
def integer(jax):
    return lambda x: x[1], (f32(*MATRIX),)


@program("a")
def integer_negative(jax):
    return lambda x: x[-1], (f32(*MATRIX),)


@program("a")
def integer_pair(jax):
    return lambda x: x[0, -1], (f32(*MATRIX),)


@program("a")
def slice_plain(jax):
    return lambda x: x[1:3], (f32(*MATRIX),)


@program("a")
def slice_column(jax):
    return lambda x: x[:, 1], (f32(*MATRIX),)


@program("a")
def slice_stepped(jax):
    return lambda x: x[::2], (f32(*MATRIX),)


@program("a")
def slice_reversed(jax):
    return lambda x: x[::-1], (f32(*MATRIX),)


@program("a")
def slice_reversed_by_two(jax):
    return lambda x: x[::-2, 1:], (f32(*MATRIX),)


@program("a")
def slice_negative_bounds(jax):
    return lambda x: x[-3:-1, :-1], (f32(*MATRIX),)


@program("a")
def slice_empty(jax):
    return lambda x: x[2:2], (f32(*MATRIX),)


@program("a")
def slice_everything(jax):
    return lambda x: (x[:], x[...], x[()]), (f32(*MATRIX),)


@program("a")
def newaxis(jax):
    return lambda x: (x[None], x[:, None], x[..., None]), (f32(*MATRIX),)


@program("a")
def ellipsis_and_integer(jax):
    return lambda x: x[..., 1], (f32(2, 4, 3),)


@program("a")
def mixed_static(jax):
    return lambda x: x[1, None, ::2, ..., -1], (f32(2, 4, 3),)


@program("a")
def numpy_integer(jax):
    return lambda x: x[np.int64(2)], (f32(*MATRIX),)


@program("a")
def traced_integer(jax):
    return lambda x, i: x[i], (f32(*MATRIX), 1)


@program("a")
def traced_integer_strong(jax):
    return lambda x, i: x[i], (f32(*MATRIX), np.int32(1))


@program("a")
def traced_unsigned(jax):
    return lambda x, i: x[i], (f32(*MATRIX), np.uint8(1))


@program("a")
def traced_pair(jax):
    return lambda x, i, j: x[i, j], (f32(*MATRIX), np.int32(1), np.int32(0))


@program("a")
def traced_and_static(jax):
    return lambda x, i: x[i, 1:], (f32(*MATRIX), np.int32(1))


@program("a")
def traced_column(jax):
    return lambda x, i: x[:, i], (f32(*MATRIX), np.int32(1))


@program("a")
def integer_array(jax):
    return lambda x, i: x[i], (f32(*MATRIX), i32(2))


@program("a")
def integer_array_static(jax):
    return lambda x: x[np.array([2, 0])], (f32(*MATRIX),)


@program("a")
def integer_array_pair(jax):
    return lambda x, i, j: x[i, j], (f32(*MATRIX), i32(2), np.array([0, 2], np.int32))


@program("a")
def integer_array_broadcast(jax):
    return (
        lambda x, i, j: x[i[:, None], j],
        (f32(*MATRIX), i32(2), np.array([0, 2], np.int32)),
    )


@program("a")
def integer_array_column(jax):
    return lambda x, i: x[:, i], (f32(*MATRIX), np.array([0, 2], np.int32))


@program("a")
def integer_arrays_apart(jax):
    return (
        lambda x, i: x[i, :, i],
        (f32(2, 4, 3), np.array([0, 1], np.int32)),
    )


@program("a")
def integer_array_and_slice(jax):
    return lambda x, i: x[i, 1:], (f32(*MATRIX), i32(2))


@program("a")
def integer_array_and_scalar(jax):
    return lambda x, i: x[i, 0], (f32(*MATRIX), i32(2))


@program("a")
def boolean_mask(jax):
    mask = np.array([True, False, True, True])
    return lambda x: x[mask], (f32(*MATRIX),)


@program("a")
def boolean_mask_of_all_axes(jax):
    mask = np.arange(12).reshape(MATRIX) % 2 == 0
    return lambda x: x[mask], (f32(*MATRIX),)


@program("a")
def boolean_scalar(jax):
    return lambda x: x[True], (f32(3),)


@program("a")
def rows_of_an_array_of_arrays(jax):
    return lambda x: x[1][2], (f32(*MATRIX),)


@program("a")
def constant_table_lookup(jax):
    table = jax.numpy.arange(5.0)
    return lambda i: table[i], (i32(3),)


@family("a", "set add multiply divide power min max subtract")
def at_integer(jax, name):
    return lambda x, v: getattr(x.at[1], name)(v), (f32(*MATRIX), 2.0)


@family("a", "set add mul min max")
def at_integer_array(jax, name):
    return (
        lambda x, i, v: getattr(x.at[i], name)(v),
        (f32(*MATRIX), i32(2), f32(3)),
    )


@program("a")
def at_slice_set(jax):
    return lambda x: x.at[1:3, 0].set(7.0), (f32(*MATRIX),)


@program("a")
def at_slice_add_array(jax):
    return lambda x, v: x.at[:, ::2].add(v), (f32(*MATRIX), f32(4, 2))


@program("a")
def at_mask_set(jax):
    mask = np.array([True, False, True, True])
    return lambda x: x.at[mask].set(0.0), (f32(*MATRIX),)


@program("a")
def at_traced_mask_set(jax):
    return lambda x: jax.numpy.where(x > 0.5, 0.0, x), (f32(*MATRIX),)


@program("a")
def at_apply(jax):
    return lambda x: x.at[1].apply(jax.numpy.sin), (f32(*MATRIX),)


@program("a")
def at_get(jax):
    return lambda x, i: x.at[i].get(), (f32(*MATRIX), i32(2))


@family("a", "fill clip drop promise_in_bounds")
def at_get_mode(jax, name):
    return lambda x, i: x.at[i].get(mode=name), (f32(*MATRIX), i32(2))


@family("a", "clip drop promise_in_bounds")
def at_set_mode(jax, name):
    return lambda x, i: x.at[i].set(0.0, mode=name), (f32(*MATRIX), i32(2))


@program("a")
def at_get_fill_value(jax):
    return lambda x, i: x.at[i].get(mode="fill", fill_value=-1), (f32(*MATRIX), i32(2))


@program("a")
def at_set_unique_sorted(jax):
    return (
        lambda x, i: x.at[i].add(1.0, unique_indices=True, indices_are_sorted=True),
        (f32(*MATRIX), i32(2)),
    )


@program("a")
def at_set_integer_array_with_float(jax):
    return lambda x, v: x.at[0].set(v), (i32(3), 2)


@program("a")
def at_two_in_a_row(jax):
    return lambda x: x.at[0].set(1.0).at[1].add(2.0), (f32(3),)


@family("a", "integer slice array")
def gradient_of_indexing(jax, name):
    index = {"integer": 1, "slice": slice(0, 2), "array": np.array([0, 0, 2])}[name]
    return jax.grad(lambda x: (x[index] ** 2).sum()), (f32(*MATRIX),)


@program("a")
def gradient_of_at_set(jax):
    def loss(x, v):
        return (x.at[1].set(v) ** 2).sum()

    return jax.grad(loss, argnums=(0, 1)), (f32(3), 2.0)


@program("a")
def gradient_of_at_add_repeated(jax):
    index = np.array([0, 0, 2])

    def loss(x, v):
        return (x.at[index].add(v) ** 2).sum()

    return jax.grad(loss, argnums=(0, 1)), (f32(3), f32(3))


@program("a")
def vmap_of_traced_indexing(jax):
    return jax.vmap(lambda x, i: x[i], in_axes=(None, 0)), (f32(*MATRIX), i32(2))


@program("a")
def vmap_of_paired_indexing(jax):
    return jax.vmap(lambda x, i: x[i]), (f32(*MATRIX), i32(4))


@program("a")
def vmap_of_at_set(jax):
    return jax.vmap(lambda x, i: x.at[i].set(0.0)), (f32(*MATRIX), i32(4))
