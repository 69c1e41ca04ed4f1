"""`dot_general` and convolutions, with their derivatives and batches."""

import numpy as np

from tests.golden.programs.registry import f32, i32, program

CONTRACT_LAST_FIRST = (((1,), (0,)), ((), ()))
BATCHED = (((2,), (1,)), ((0,), (0,)))


@program("a")
def dot_matrix_matrix(jax):
    return jax.lax.dot, (f32(2, 3), f32(3, 4))


@program("a")
def dot_vector_vector(jax):
    return jax.lax.dot, (f32(3), f32(3))


@program("a")
def dot_matrix_vector(jax):
    return jax.lax.dot, (f32(2, 3), f32(3))


@program("a")
def dot_general_batched(jax):
    return (
        lambda x, y: jax.lax.dot_general(x, y, BATCHED),
        (f32(5, 2, 3), f32(5, 3, 4)),
    )


@program("a")
def dot_general_outer(jax):
    return (
        lambda x, y: jax.lax.dot_general(x, y, (((), ()), ((), ()))),
        (f32(2), f32(3)),
    )


@program("a")
def dot_general_two_contractions(jax):
    numbers = (((0, 1), (1, 0)), ((), ()))
    return (
        lambda x, y: jax.lax.dot_general(x, y, numbers),
        (f32(2, 3), f32(3, 2)),
    )


@program("a")
def dot_with_precision(jax):
    return (
        lambda x, y: jax.lax.dot(x, y, precision=jax.lax.Precision.HIGHEST),
        (f32(2, 3), f32(3, 4)),
    )


@program("a")
def dot_with_two_precisions(jax):
    return (
        lambda x, y: jax.lax.dot(x, y, precision=("default", "highest")),
        (f32(2, 3), f32(3, 4)),
    )


@program("a")
def dot_with_preferred_type(jax):
    return (
        lambda x, y: jax.lax.dot(x, y, preferred_element_type=np.float32),
        (f32(2, 3).astype(np.float16), f32(3, 4).astype(np.float16)),
    )


@program("a")
def dot_of_integers(jax):
    return jax.lax.dot, (i32(2, 3), i32(3, 4))


@program("a")
def batch_matmul(jax):
    return jax.lax.batch_matmul, (f32(5, 2, 3), f32(5, 3, 4))


@program("a")
def gradient_of_dot(jax):
    return (
        jax.grad(lambda x, y: jax.lax.dot(x, y).sum(), argnums=(0, 1)),
        (f32(2, 3), f32(3, 4)),
    )


@program("a")
def gradient_of_batched_dot(jax):
    return (
        jax.grad(lambda x, y: jax.lax.dot_general(x, y, BATCHED).sum(), (0, 1)),
        (f32(5, 2, 3), f32(5, 3, 4)),
    )


@program("a")
def tangent_of_dot(jax):
    return (
        lambda x, y, t: jax.jvp(jax.lax.dot, (x, y), (t, y)),
        (f32(2, 3), f32(3, 4), f32(2, 3)),
    )


@program("a")
def vmap_of_dot_left(jax):
    return jax.vmap(jax.lax.dot, in_axes=(0, None)), (f32(5, 2, 3), f32(3, 4))


@program("a")
def vmap_of_dot_right(jax):
    return jax.vmap(jax.lax.dot, in_axes=(None, 1)), (f32(2, 3), f32(3, 5, 4))


@program("a")
def vmap_of_dot_both(jax):
    return jax.vmap(jax.lax.dot), (f32(5, 2, 3), f32(5, 3, 4))


@program("a")
def vmap_of_vmap_of_dot(jax):
    inner = jax.vmap(jax.lax.dot, in_axes=(0, None))
    return jax.vmap(inner, in_axes=(None, 1)), (f32(2, 3), f32(3, 4))


@program("a")
def conv_plain(jax):
    return (
        lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"),
        (f32(1, 2, 5, 5), f32(3, 2, 3, 3)),
    )


@program("a")
def conv_channels_last(jax):
    return (
        lambda x, k: jax.lax.conv_general_dilated(
            x,
            k,
            window_strides=(2, 1),
            padding="VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        (f32(1, 5, 5, 2), f32(3, 3, 2, 4)),
    )


@program("a")
def conv_dilated_and_grouped(jax):
    return (
        lambda x, k: jax.lax.conv_general_dilated(
            x,
            k,
            window_strides=(1,),
            padding=[(1, 2)],
            lhs_dilation=(2,),
            rhs_dilation=(2,),
            feature_group_count=2,
        ),
        (f32(1, 4, 5), f32(2, 2, 3)),
    )


@program("a")
def conv_transposed(jax):
    return (
        lambda x, k: jax.lax.conv_transpose(x, k, (2,), "SAME"),
        (f32(1, 5, 2), f32(3, 2, 4)),
    )


@program("a")
def gradient_of_conv(jax):
    def loss(x, k):
        return jax.lax.conv(x, k, (1, 1), "VALID").sum()

    return jax.grad(loss, argnums=(0, 1)), (f32(1, 2, 5, 5), f32(3, 2, 3, 3))


@program("a")
def vmap_of_conv(jax):
    def convolve(x, k):
        return jax.lax.conv(x, k, (1,), "VALID")

    return jax.vmap(convolve, in_axes=(0, None)), (f32(3, 1, 2, 5), f32(4, 2, 3))


@program("a")
def vmap_of_conv_both(jax):
    def convolve(x, k):
        return jax.lax.conv(x, k, (1,), "VALID")

    return jax.vmap(convolve), (f32(3, 1, 2, 5), f32(3, 4, 2, 3))
