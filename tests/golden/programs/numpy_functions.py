"""Functions of `jax.numpy` that learners print."""

import numpy as np

from tests.golden.programs.registry import boolean, f32, family, i32, program

UNARY = """
    abs arccos arctan ceil cos cosh deg2rad exp exp2 expm1 floor isfinite isnan log
    log10 log1p log2 negative reciprocal rint sign signbit sin sinc sinh sqrt square
    tan tanh nan_to_num
"""
BINARY = """
    add arctan2 divide equal float_power floor_divide fmax fmin greater heaviside hypot
    isclose less_equal logaddexp maximum minimum mod multiply power remainder subtract
"""
REDUCTIONS = """
    all any argmax argmin average count_nonzero cumprod cumsum max mean median min
    nanmax nanmean nansum prod ptp std sum var
"""


@family("b", UNARY)
def unary(jax, name):
    return getattr(jax.numpy, name), (f32(3),)


@family("b", BINARY)
def binary(jax, name):
    return getattr(jax.numpy, name), (f32(3), f32(3))


@family("b", "bitwise_and bitwise_or floor_divide left_shift mod power true_divide")
def binary_integer(jax, name):
    return getattr(jax.numpy, name), (i32(3), i32(3))


@family("b", "logical_and logical_or logical_xor")
def logical(jax, name):
    return getattr(jax.numpy, name), (boolean(3), f32(3))


@family("b", REDUCTIONS)
def reduction(jax, name):
    return getattr(jax.numpy, name), (f32(2, 3),)


@family("b", "argmax max mean std sum var")
def reduction_over_axis(jax, name):
    return (
        lambda x: getattr(jax.numpy, name)(x, axis=1, keepdims=True),
        (f32(2, 3),),
    )


@family("b", "max mean sum")
def reduction_where(jax, name):
    extra = {"initial": 0.0} if name == "max" else {}
    return (
        lambda x, m: getattr(jax.numpy, name)(x, where=m, **extra),
        (f32(2, 3), boolean(2, 3)),
    )


@family("b", "sum mean cumsum")
def reduction_of_integers(jax, name):
    return getattr(jax.numpy, name), (i32(2, 3),)


CREATED = """
    arange_stop arange_float arange_step eye identity linspace ones tri zeros
"""


@family("b", CREATED)
def creation(jax, name):
    jnp = jax.numpy
    made = {
        "arange_stop": lambda: jnp.arange(5),
        "arange_float": lambda: jnp.arange(3.0),
        "arange_step": lambda: jnp.arange(1, 10, 3),
        "eye": lambda: jnp.eye(3),
        "identity": lambda: jnp.identity(2),
        "linspace": lambda: jnp.linspace(0.0, 1.0, 5),
        "ones": lambda: jnp.ones((2, 3)),
        "tri": lambda: jnp.tri(3),
        "zeros": lambda: jnp.zeros(3, int),
    }
    return made[name], ()


@family("b", "full_like ones_like trace tril triu zeros_like")
def from_a_matrix(jax, name):
    jnp = jax.numpy
    if name == "full_like":
        return lambda x: jnp.full_like(x, 2), (f32(3, 3),)
    return getattr(jnp, name), (f32(3, 3),)


@program("b")
def linspace_of_tracers(jax):
    return lambda x, y: jax.numpy.linspace(x, y, 4), (0.0, 1.0)


@program("b")
def array_of_tracers(jax):
    return lambda x, y: jax.numpy.array([x, y, 1.0]), (1.0, 2.0)


@program("b")
def asarray_of_a_list(jax):
    return lambda x: jax.numpy.asarray([[1, 2], [3, 4]]) * x, (f32(2),)


@program("b")
def where_three_arguments(jax):
    return lambda x: jax.numpy.where(x > 0.5, x, 0.0), (f32(3),)


@program("b")
def where_broadcasts(jax):
    return jax.numpy.where, (boolean(3), f32(2, 3), np.float32(1))


@program("b")
def clip_both(jax):
    return lambda x: jax.numpy.clip(x, 0.2, 0.8), (f32(3),)


@program("b")
def clip_one_side(jax):
    return lambda x: jax.numpy.clip(x, min=0), (f32(3),)


@program("b")
def clip_integers(jax):
    return lambda x: jax.numpy.clip(x, 0, 2), (i32(3),)


@family("b", "matmul dot inner outer vdot")
def product_of_vectors(jax, name):
    return getattr(jax.numpy, name), (f32(3), f32(3))


@family("b", "matmul dot tensordot kron")
def product_of_matrices(jax, name):
    if name == "tensordot":
        return lambda x, y: jax.numpy.tensordot(x, y, 1), (f32(2, 3), f32(3, 4))
    return getattr(jax.numpy, name), (f32(2, 3), f32(3, 4))


@program("b")
def matmul_batched(jax):
    return jax.numpy.matmul, (f32(5, 2, 3), f32(3, 4))


@program("b")
def dot_of_mixed_types(jax):
    return jax.numpy.dot, (f32(2, 3), i32(3))


@program("b")
def tensordot_two_axes(jax):
    return (
        lambda x, y: jax.numpy.tensordot(x, y, axes=([0, 1], [1, 0])),
        (f32(2, 3), f32(3, 2)),
    )


@family("b", "ij,jk->ik bij,bjk->bik ij->ji ii->i i,i-> ij,j i,j->ij ij,jk,kl->il")
def einsum(jax, name):
    extents = dict(zip("bijkl", (5, 2, 3, 4, 2), strict=True))
    if name == "ii->i":
        extents["i"] = 3
    operands = [
        f32(*(extents[letter] for letter in term))
        for term in name.partition("->")[0].split(",")
    ]
    return lambda *xs: jax.numpy.einsum(name, *xs), tuple(operands)


@family("b", "ravel transpose flip fliplr atleast_2d squeeze swapaxes moveaxis")
def shape_of_a_matrix(jax, name):
    jnp = jax.numpy
    if name in ("swapaxes", "moveaxis"):
        return lambda x: getattr(jnp, name)(x, 0, 1), (f32(2, 3),)
    return getattr(jnp, name), (f32(2, 3),)


@program("b")
def reshape_with_unknown(jax):
    return lambda x: jax.numpy.reshape(x, (3, -1)), (f32(2, 3),)


@program("b")
def expand_dims_and_broadcast_to(jax):
    jnp = jax.numpy
    return lambda x: jnp.broadcast_to(jnp.expand_dims(x, 1), (3, 2)), (f32(3),)


@family("b", "concatenate stack vstack hstack column_stack dstack append")
def join(jax, name):
    jnp = jax.numpy
    if name == "append":
        return jnp.append, (f32(3), f32(3))
    return lambda x, y: getattr(jnp, name)([x, y]), (f32(3), f32(3))


@program("b")
def concatenate_mixed_types(jax):
    return lambda x, y: jax.numpy.concatenate([x, y]), (f32(3), i32(3))


@program("b")
def split_in_three(jax):
    return lambda x: jax.numpy.split(x, 3), (f32(6),)


@family("b", "constant edge reflect wrap symmetric")
def pad(jax, name):
    return lambda x: jax.numpy.pad(x, 1, mode=name), (f32(3),)


@program("b")
def roll_by_one(jax):
    return lambda x: jax.numpy.roll(x, 1), (f32(5),)


@program("b")
def roll_along_axis(jax):
    return lambda x: jax.numpy.roll(x, -1, axis=1), (f32(2, 3),)


@program("b")
def repeat_and_tile(jax):
    jnp = jax.numpy
    return lambda x: (jnp.repeat(x, 2), jnp.tile(x, (2, 1))), (f32(3),)


@program("b")
def sort_and_argsort(jax):
    return lambda x: (jax.numpy.sort(x), jax.numpy.argsort(x)), (f32(2, 3),)


@program("b")
def argsort_descending(jax):
    return lambda x: jax.numpy.argsort(x, descending=True), (f32(3),)


@program("b")
def take_rows(jax):
    return lambda x, i: jax.numpy.take(x, i, axis=0), (f32(4, 3), i32(2))


@program("b")
def take_along_columns(jax):
    return (
        lambda x, i: jax.numpy.take_along_axis(x, i, axis=1),
        (f32(2, 3), i32(2, 1)),
    )


@program("b")
def diff_and_cumulative(jax):
    return lambda x: (jax.numpy.diff(x), jax.numpy.cumsum(x)), (f32(5),)


@program("b")
def meshgrid_of_two(jax):
    return jax.numpy.meshgrid, (f32(2), f32(3))


@program("b")
def norm_of_a_vector(jax):
    return jax.numpy.linalg.norm, (f32(3),)


@program("b")
def nonzero_with_size(jax):
    return lambda x: jax.numpy.nonzero(x, size=2)[0], (i32(3),)


@family("b", "mean var std max prod where clip matmul einsum sort logaddexp")
def gradient_of(jax, name):
    jnp = jax.numpy
    losses = {
        "where": lambda x: jnp.where(x > 0.5, x, 0.0).sum(),
        "clip": lambda x: jnp.clip(x, 0.2, 0.8).sum(),
        "matmul": lambda x: (x @ x.T).sum(),
        "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x).sum(),
        "sort": lambda x: (jnp.sort(x) ** 2).sum(),
        "logaddexp": lambda x: jnp.logaddexp(x, 1.0).sum(),
    }
    return jax.grad(losses.get(name, getattr(jnp, name))), (f32(2, 3),)


@family("b", "mean argmax sort dot where")
def vmap_of(jax, name):
    jnp = jax.numpy
    if name == "where":
        return jax.vmap(lambda x: jnp.where(x > 0.5, x, 0.0)), (f32(2, 3),)
    if name == "dot":
        return jax.vmap(jnp.dot), (f32(2, 3), f32(2, 3))
    return jax.vmap(getattr(jnp, name)), (f32(2, 3),)
