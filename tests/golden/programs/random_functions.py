"""Functions of `jax.random` on typed and on raw keys."""

import numpy as np

from tests.golden.programs.registry import f32, family, program

SAMPLERS = """
    bernoulli bits cauchy exponential gumbel laplace logistic maxwell normal
    rademacher uniform lognormal
"""


@family("b", SAMPLERS)
def sample(jax, name):
    def sample(key):
        return getattr(jax.random, name)(key, shape=(3,))

    return sample, (jax.random.key(0),)


@family("b", "normal uniform bits")
def sample_scalar(jax, name):
    return getattr(jax.random, name), (jax.random.key(0),)


@family("b", "normal uniform split fold_in")
def raw_key(jax, name):
    key = jax.random.PRNGKey(0)
    if name == "fold_in":
        return lambda k: jax.random.fold_in(k, 7), (key,)
    return getattr(jax.random, name), (key,)


@program("b")
def key_from_a_seed(jax):
    return jax.random.key, (0,)


@program("b")
def raw_key_from_a_seed(jax):
    return jax.random.PRNGKey, (0,)


@program("b")
def key_from_a_constant_seed(jax):
    return lambda: jax.random.key(42), ()


@program("b")
def split_in_two(jax):
    def split_in_two(key):
        key, subkey = jax.random.split(key)
        return key, subkey

    return split_in_two, (jax.random.key(0),)


@program("b")
def split_in_a_matrix(jax):
    return lambda key: jax.random.split(key, (2, 3)), (jax.random.key(0),)


@program("b")
def fold_in_traced(jax):
    return jax.random.fold_in, (jax.random.key(0), 7)


@program("b")
def wrap_and_unwrap(jax):
    def wrap_and_unwrap(data):
        return jax.random.key_data(jax.random.wrap_key_data(data))

    return wrap_and_unwrap, (np.array([1, 2], np.uint32),)


@program("b")
def uniform_between(jax):
    return (
        lambda key: jax.random.uniform(key, (3,), minval=-1.0, maxval=2.0),
        (jax.random.key(0),),
    )


@program("b")
def normal_half_precision(jax):
    return (
        lambda key: jax.random.normal(key, (3,), dtype=jax.numpy.bfloat16),
        (jax.random.key(0),),
    )


@program("b")
def normal_complex(jax):
    return (
        lambda key: jax.random.normal(key, (3,), dtype=np.complex64),
        (jax.random.key(0),),
    )


@program("b")
def truncated_normal(jax):
    return (
        lambda key: jax.random.truncated_normal(key, -2.0, 2.0, (3,)),
        (jax.random.key(0),),
    )


@program("b")
def randint_range(jax):
    return lambda key: jax.random.randint(key, (3,), 0, 10), (jax.random.key(0),)


@program("b")
def bernoulli_probability(jax):
    return lambda key, p: jax.random.bernoulli(key, p), (jax.random.key(0), f32(3))


@program("b")
def categorical_logits(jax):
    return jax.random.categorical, (jax.random.key(0), f32(2, 3))


@program("b")
def categorical_shape(jax):
    return (
        lambda key, logits: jax.random.categorical(key, logits, shape=(4, 2)),
        (jax.random.key(0), f32(2, 3)),
    )


@program("b")
def permutation_of_a_range(jax):
    return lambda key: jax.random.permutation(key, 5), (jax.random.key(0),)


@program("b")
def permutation_of_rows(jax):
    return jax.random.permutation, (jax.random.key(0), f32(4, 3))


@program("b")
def choice_with_replacement(jax):
    return lambda key, x: jax.random.choice(key, x, (2,)), (jax.random.key(0), f32(4))


@program("b")
def choice_without_replacement(jax):
    return (
        lambda key: jax.random.choice(key, 5, (3,), replace=False),
        (jax.random.key(0),),
    )


@program("b")
def keys_in_numpy_functions(jax):
    jnp = jax.numpy

    def keys_in_numpy_functions(key):
        keys = jax.random.split(key, 4)
        return keys[0], keys[1:3], keys.reshape(2, 2), jnp.stack([key, key])

    return keys_in_numpy_functions, (jax.random.key(0),)


@program("b")
def vmap_over_keys(jax):
    def vmap_over_keys(key):
        keys = jax.random.split(key, 4)
        return jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys)

    return vmap_over_keys, (jax.random.key(0),)


@program("b")
def vmap_over_fold_in(jax):
    return (
        jax.vmap(jax.random.fold_in, in_axes=(None, 0)),
        (jax.random.key(0), np.arange(3, dtype=np.uint32)),
    )


@program("b")
def gradient_of_a_sampled_loss(jax):
    def loss(mean, key):
        return (mean + jax.random.normal(key, (3,))).sum() ** 2

    return jax.grad(loss), (1.0, jax.random.key(0))


@program("b")
def dropout(jax):
    def dropout(key, x):
        keep = jax.random.bernoulli(key, 0.8, x.shape)
        return jax.numpy.where(keep, x / 0.8, 0.0)

    return jax.jit(dropout), (jax.random.key(0), f32(2, 3))
