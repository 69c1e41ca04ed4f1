"""Reductions, cumulative and windowed ones."""

import numpy as np

from tests.golden.programs.registry import boolean, f32, family, i32, program, u32


@family("a", "sum prod max min")
def reduce_float(jax, name):
    return lambda x: getattr(jax.lax, f"reduce_{name}")(x, (0,)), (f32(2, 3),)


@family("a", "and or")
def reduce_bool(jax, name):
    return lambda x: getattr(jax.lax, f"reduce_{name}")(x, (0, 1)), (boolean(2, 3),)


@program("a")
def reduce_xor_bits(jax):
    return lambda x: jax.lax.reduce_xor(x, (1,)), (u32(2, 3),)


@program("a")
def reduce_over_no_axis(jax):
    return lambda x: jax.lax.reduce_sum(x, ()), (f32(2, 3),)


@program("a")
def reduce_becomes_sum(jax):
    return lambda x: jax.lax.reduce(x, 0.0, jax.lax.add, (0,)), (f32(2, 3),)


@program("a")
def reduce_becomes_max(jax):
    return lambda x: jax.lax.reduce(x, -np.inf, jax.lax.max, (1,)), (f32(2, 3),)


@program("a")
def reduce_with_a_function(jax):
    def combine(x, y):
        return x + y * 2.0

    return lambda x: jax.lax.reduce(x, 1.0, combine, (0,)), (f32(2, 3),)


@program("a")
def reduce_two_operands(jax):
    def combine(x, y):
        return (jax.lax.max(x[0], y[0]), jax.lax.add(x[1], y[1]))

    return (
        lambda x, y: jax.lax.reduce((x, y), (0.0, np.int32(0)), combine, (0,)),
        (f32(2, 3), i32(2, 3)),
    )


@family("a", "argmax argmin")
def arg_reduction(jax, name):
    return lambda x: getattr(jax.lax, name)(x, 1, np.int32), (f32(2, 3),)


@family("a", "cumsum cumprod cummax cummin cumlogsumexp")
def cumulative(jax, name):
    return lambda x: getattr(jax.lax, name)(x, axis=1), (f32(2, 3),)


@program("a")
def cumulative_reversed(jax):
    return lambda x: jax.lax.cumsum(x, axis=0, reverse=True), (f32(3),)


@program("a")
def window_sum(jax):
    return (
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2,), (1,), "VALID"),
        (f32(5),),
    )


@program("a")
def window_max(jax):
    return (
        lambda x: jax.lax.reduce_window(
            x, -np.inf, jax.lax.max, (2, 2), (2, 2), "SAME"
        ),
        (f32(5, 5),),
    )


@program("a")
def window_min_dilated(jax):
    return (
        lambda x: jax.lax.reduce_window(
            x,
            np.inf,
            jax.lax.min,
            (2,),
            (1,),
            ((1, 1),),
            base_dilation=(2,),
            window_dilation=(2,),
        ),
        (f32(5),),
    )


@program("a")
def window_with_a_function(jax):
    return (
        lambda x: jax.lax.reduce_window(x, 1.0, jax.lax.mul, (2,), (1,), "VALID"),
        (f32(5),),
    )


@program("a")
def gradient_of_window_max(jax):
    def pool(x):
        y = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (2,), (2,), "VALID")
        return y.sum()

    return jax.grad(pool), (f32(6),)


@program("a")
def gradient_of_window_sum(jax):
    def pool(x):
        y = jax.lax.reduce_window(x, 0.0, jax.lax.add, (2,), (1,), "SAME")
        return (y * y).sum()

    return jax.grad(pool), (f32(6),)


@program("a")
def tangent_of_window_max(jax):
    def pool(x):
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (2,), (2,), "VALID")

    return lambda x, t: jax.jvp(pool, (x,), (t,)), (f32(6), f32(6))


@program("a")
def select_and_scatter(jax):
    def scatter(operand, source, start):
        programs = {"select": jax.lax.ge, "scatter": jax.lax.mul}
        params = {f"{name}_consts": () for name in programs}
        for name, function in programs.items():
            params[f"{name}_jaxpr"] = jax.make_jaxpr(function)(start, start).jaxpr
        sizes = {"window_dimensions": (2,), "window_strides": (2,)}
        return jax.lax.select_and_scatter_p.bind(
            operand, source, start, **params, **sizes, padding=((1, 1),)
        )

    return scatter, (f32(6), f32(4), f32())


@program("a")
def batched_window_max(jax):
    def pool(x):
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (2,), (2,), "VALID")

    return jax.vmap(pool, in_axes=1), (f32(6, 3),)


@family("a", "reduce_max reduce_min reduce_prod reduce_sum")
def gradient_of(jax, name):
    return jax.grad(lambda x: getattr(jax.lax, name)(x, (0,))), (f32(3),)


@family("a", "cumsum cumprod cummax cumlogsumexp")
def gradient_of_cumulative(jax, name):
    return jax.grad(lambda x: getattr(jax.lax, name)(x, axis=0).sum()), (f32(3),)


@family("a", "argmax argmin")
def batched(jax, name):
    fun = getattr(jax.lax, name)
    return jax.vmap(lambda x: fun(x, 0, np.int32), in_axes=1), (f32(3, 2),)
