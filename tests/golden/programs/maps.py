"""`vmap`: axes in and out, nesting, collectives over a named axis."""

import functools

import numpy as np

from tests.golden.programs.registry import f32, family, i32, program


@family("a", "sin neg cumsum sort reduce_max exp2 log1p")
def vmap_of(jax, name):
    fun = getattr(jax.lax, name)
    if name == "reduce_max":
        return jax.vmap(lambda x: fun(x, (0,))), (f32(2, 3),)
    return jax.vmap(fun), (f32(2, 3),)


@program("a")
def both_mapped(jax):
    return jax.vmap(lambda x, y: x * y), (f32(2, 3), f32(2, 3))


@program("a")
def one_mapped(jax):
    return jax.vmap(lambda x, y: x * y, in_axes=(0, None)), (f32(2, 3), f32(3))


@program("a")
def different_axes(jax):
    return jax.vmap(lambda x, y: x - y, in_axes=(0, 1)), (f32(2, 3), f32(3, 2))


@program("a")
def negative_in_axis(jax):
    return jax.vmap(lambda x: jax.lax.sin(x).sum(), in_axes=-1), (f32(2, 3),)


@program("a")
def out_axis_one(jax):
    return jax.vmap(lambda x: x * 2.0, out_axes=1), (f32(2, 3),)


@program("a")
def out_axis_none(jax):
    return (
        jax.vmap(lambda x, y: (x * y, y), in_axes=(0, None), out_axes=(0, None)),
        (f32(2, 3), f32(3)),
    )


@program("a")
def out_axis_negative(jax):
    return jax.vmap(lambda x: jax.lax.sin(x), in_axes=1, out_axes=-1), (f32(2, 3),)


@program("a")
def unmapped_result_is_broadcast(jax):
    return jax.vmap(lambda x, y: y, in_axes=(0, None)), (f32(2, 3), f32(3))


@program("a")
def literal_result_is_broadcast(jax):
    return jax.vmap(lambda x: 1.0), (f32(2, 3),)


@program("a")
def axis_size_alone(jax):
    return (
        lambda: jax.vmap(lambda: jax.lax.axis_index("i"), axis_name="i", axis_size=4)(),
        (),
    )


@program("a")
def scalar_against_row(jax):
    return jax.vmap(lambda s, x: s * x), (f32(2), f32(2, 3))


@program("a")
def scalar_against_closed_over(jax):
    return lambda x, y: jax.vmap(lambda s: s * y)(x), (f32(2), f32(3))


@program("a")
def nested(jax):
    return jax.vmap(jax.vmap(lambda x, y: x + y)), (f32(2, 3), f32(2, 3))


@program("a")
def nested_outer_product(jax):
    row = jax.vmap(lambda x, y: x * y, in_axes=(None, 0))
    return jax.vmap(row, in_axes=(0, None)), (f32(2), f32(3))


@program("a")
def tree_prefix_axes(jax):
    def apply(params, x):
        return params["w"] * x + params["b"]

    return (
        jax.vmap(apply, in_axes=({"w": 0, "b": None}, 0)),
        ({"w": f32(2, 3), "b": f32(3)}, f32(2, 3)),
    )


@program("a")
def keyword_arguments_are_mapped(jax):
    mapped = jax.vmap(lambda x, *, y: x + y)
    return lambda x, y: mapped(x, y=y), (f32(2, 3), f32(2, 3))


@program("a")
def shapes_move(jax):
    def shapes_move(x):
        y = jax.lax.reshape(x, (6,))
        z = jax.lax.transpose(x, (1, 0))
        return y, z, jax.lax.concatenate([x, x], 0), jax.lax.rev(x, (1,))

    return jax.vmap(shapes_move, in_axes=1), (f32(2, 4, 3),)


@program("a")
def slicing_moves(jax):
    return jax.vmap(lambda x: (x[1], x[:, 0], x[::2]), in_axes=1), (f32(4, 2, 3),)


@program("a")
def reductions_move(jax):
    def reductions_move(x):
        return x.sum(), x.max(0), jax.lax.argmax(x, 0, np.int32), x.mean()

    return jax.vmap(reductions_move), (f32(5, 2, 3),)


@program("a")
def select_with_scalar_predicate(jax):
    return (
        jax.vmap(lambda p, x, y: jax.lax.select(p, x, y)),
        (np.array([True, False]), f32(2, 3), f32(2, 3)),
    )


@program("a")
def select_with_shared_predicate(jax):
    return (
        jax.vmap(lambda p, x, y: jax.lax.select(p, x, y), in_axes=(None, 0, 0)),
        (np.bool_(True), f32(2, 3), f32(2, 3)),
    )


@program("a")
def clamp_with_mapped_bound(jax):
    return jax.vmap(jax.lax.clamp, in_axes=(0, 0, None)), (f32(2), f32(2, 3), 1.0)


@program("a")
def pad_with_mapped_value(jax):
    return (
        jax.vmap(lambda x, v: jax.lax.pad(x, v, [(1, 0, 0)])),
        (f32(2, 3), f32(2)),
    )


@program("a")
def of_jit(jax):
    @jax.jit
    def inner(x, y):
        return jax.lax.sin(x) * y

    return jax.vmap(inner, in_axes=(0, None)), (f32(2, 3), f32(3))


@program("a")
def of_jit_called_twice(jax):
    @jax.jit
    def inner(x):
        return jax.lax.sin(x)

    return jax.vmap(lambda x: inner(inner(x))), (f32(2, 3),)


@program("a")
def of_jit_out_axes(jax):
    @jax.jit
    def inner(x):
        return x, x.sum()

    return jax.vmap(inner, in_axes=1, out_axes=(1, 0)), (f32(2, 3),)


@program("a")
def jit_of_vmap(jax):
    return jax.jit(jax.vmap(lambda x: x * 2.0)), (f32(2, 3),)


@program("a")
def of_grad(jax):
    return jax.vmap(jax.grad(lambda x: (x * x).sum())), (f32(2, 3),)


@program("a")
def grad_of_vmap(jax):
    return jax.grad(lambda x: jax.vmap(jax.lax.sin)(x).sum()), (f32(2, 3),)


@program("a")
def of_grad_of_jit(jax):
    inner = jax.jit(lambda x: jax.lax.sin(x) * x)
    return jax.vmap(jax.grad(inner)), (f32(3),)


@program("a")
def jvp_of_vmap(jax):
    mapped = jax.vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))
    return (
        lambda x, y, t: jax.jvp(lambda x: mapped(x, y), (x,), (t,)),
        (f32(2, 3), f32(3), f32(2, 3)),
    )


@program("a")
def per_example_gradients(jax):
    def loss(w, x, y):
        return (x @ w - y) ** 2

    return (
        jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)),
        (f32(3), f32(5, 3), f32(5)),
    )


@family("a", "psum pmean pmax pmin")
def collective(jax, name):
    fun = getattr(jax.lax, name)
    return jax.vmap(lambda x: x - fun(x, "i"), axis_name="i"), (f32(2, 3),)


@family("a", "psum pmean pmax pmin")
def collective_out_none(jax, name):
    fun = getattr(jax.lax, name)
    return (
        jax.vmap(lambda x: fun(x, "i"), axis_name="i", out_axes=None),
        (f32(2, 3),),
    )


@program("a")
def psum_of_a_constant(jax):
    return jax.vmap(lambda x: x * jax.lax.psum(1, "i"), axis_name="i"), (f32(2, 3),)


@program("a")
def psum_of_unmapped(jax):
    return (
        jax.vmap(
            lambda x, y: jax.lax.psum(y, "i") * x, in_axes=(0, None), axis_name="i"
        ),
        (f32(2, 3), f32(3)),
    )


@program("a")
def psum_over_two_axes(jax):
    inner = jax.vmap(lambda x: jax.lax.psum(x, ("i", "j")), axis_name="j")
    return jax.vmap(inner, axis_name="i"), (f32(2, 3),)


@program("a")
def psum_over_the_outer_axis(jax):
    inner = jax.vmap(lambda x: jax.lax.psum(x, "i"), axis_name="j")
    return jax.vmap(inner, axis_name="i"), (f32(2, 3),)


@program("a")
def axis_index_alone(jax):
    return jax.vmap(lambda x: x + jax.lax.axis_index("i"), axis_name="i"), (f32(3),)


@program("a")
def axis_size_of_a_name(jax):
    return jax.vmap(lambda x: x * jax.lax.axis_size("i"), axis_name="i"), (f32(3),)


@program("a")
def all_gather_stacked(jax):
    return jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i"), (f32(2, 3),)


@program("a")
def all_gather_tiled(jax):
    gather = functools.partial(jax.lax.all_gather, axis_name="i", tiled=True)
    return jax.vmap(gather, axis_name="i"), (f32(2, 3),)


@program("a")
def ppermute_ring(jax):
    ring = [(0, 1), (1, 2), (2, 0)]
    return (
        jax.vmap(lambda x: jax.lax.ppermute(x, "i", ring), axis_name="i"),
        (f32(3, 2),),
    )


@program("a")
def all_to_all_square(jax):
    return (
        jax.vmap(lambda x: jax.lax.all_to_all(x, "i", 0, 0), axis_name="i"),
        (f32(3, 3),),
    )


@program("a")
def psum_scatter_rows(jax):
    return (
        jax.vmap(lambda x: jax.lax.psum_scatter(x, "i"), axis_name="i"),
        (f32(3, 3),),
    )


@program("a")
def grad_through_psum(jax):
    def loss(x):
        return jax.vmap(lambda r: r * jax.lax.psum(r, "i"), axis_name="i")(x).sum()

    return jax.grad(loss), (f32(3),)


@program("a")
def collective_in_a_jit(jax):
    @jax.jit
    def centre(x):
        return x - jax.lax.pmean(x, "i")

    return jax.vmap(centre, axis_name="i"), (f32(2, 3),)


@program("a")
def integer_batch_of_gathers(jax):
    return (
        jax.vmap(lambda row, i: row[i], in_axes=(1, 0)),
        (f32(4, 3), i32(3)),
    )
