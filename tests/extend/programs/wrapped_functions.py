"""Functions in layers, as older extensions write them; a generator of one's own."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core, linear_util, source_info_util
from jax.extend import random as extend_random

results = {}


@linear_util.transformation2
def scaled(f, factor, *args):
    return [factor * x for x in f(*args)]


@linear_util.transformation_with_aux2
def counted(f, store, *args):
    outputs = f(*args)
    store.store(len(outputs))
    return outputs


@linear_util.transformation
def shifted(by, *args):
    outputs = yield tuple(x + by for x in args), {}
    yield outputs


@linear_util.transformation_with_aux
def named(*args):
    outputs = yield args, {}
    yield outputs, "name"


def two(x, y, *, z=0):
    return [x + y, x * y + z]


info = jax.make_jaxpr(lambda x: x)(1.0).jaxpr.debug_info
base = linear_util.wrap_init(two, {"z": 1}, debug_info=info)
results["plain"] = base.call_wrapped(2, 3)
results["scaled"] = scaled(base, 10).call_wrapped(2, 3)
wrapped, count = counted(scaled(base, 10))
results["counted"] = (wrapped.call_wrapped(2, 3), count())
results["shifted"] = shifted(base, 1).call_wrapped(2, 3)
wrapped, name = named(shifted(base, 1))
results["named"] = (wrapped.call_wrapped(2, 3), name())
results["equal"] = (scaled(base, 2) == scaled(base, 2), scaled(base, 2) == base)
try:
    counted(base)[1]()
except linear_util.StoreException as error:
    results["empty"] = str(error)

runs = []


@linear_util.cache
def once(fun, *args):
    runs.append(args)
    return fun.call_wrapped(*args)


results["cached"] = [once(scaled(base, 2), 2, 3), once(scaled(base, 2), 2, 3), runs]
first, read_first = counted(base)
second, read_second = counted(base)
second.call_wrapped(1, 2)
results["merged"] = linear_util.merge_linear_aux(read_first, read_second)

# A generator of random bits: a hash that nobody should use.
own = extend_random.define_prng_impl(
    key_shape=(2,),
    seed=lambda seed: jnp.stack(
        [seed.astype(jnp.uint32), jnp.uint32(7) + seed.astype(jnp.uint32)]
    ),
    split=lambda key, shape: (
        jnp.arange(int(np.prod(shape)) * 2, dtype=jnp.uint32).reshape(*shape, 2)
        + key * jnp.uint32(2654435761)
    ),
    random_bits=lambda key, width, shape: (
        (jnp.arange(int(np.prod(shape)), dtype=jnp.uint32).reshape(shape) + key[0])
        * jnp.uint32(747796405)
        + key[1]
    ).astype(f"uint{width}"),
    fold_in=lambda key, data: key ^ data.astype(jnp.uint32),
    name="nobody's",
    tag="nob",
)
key = jax.random.key(42, impl=own)
results["key"] = (str(key.dtype), jax.random.key_data(key))
results["split"] = jax.random.key_data(jax.random.split(key, 3))
results["bits"] = jax.random.bits(key, (4,))
results["uniform"] = jax.random.uniform(key, (3,))
results["fold_in"] = jax.random.key_data(jax.random.fold_in(key, 5))
results["vmap"] = jax.vmap(lambda k: jax.random.uniform(k, (2,)))(
    jax.random.split(key, 3)
)
results["two axes"] = jax.random.key_data(
    jax.vmap(jax.vmap(lambda k: jax.random.fold_in(k, 1)))(
        jax.random.split(key, (2, 2))
    )
)
results["threefry"] = extend_random.threefry_2x32(
    (np.uint32(1), np.uint32(2)), jnp.arange(5, dtype=jnp.uint32)
)
results["seeded"] = jax.random.key_data(
    extend_random.random_seed(3, impl=extend_random.threefry_prng_impl)
)

with source_info_util.extend_name_stack("outer"):
    results["stack"] = str(source_info_util.current_name_stack())
results["no stack"] = str(source_info_util.new_name_stack())
results["tangent dtypes"] = [
    str(core.primal_dtype_to_tangent_dtype(np.dtype(d))) for d in ("float32", "int32")
]
results["under"] = (
    core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
    bool(
        jax.eval_shape(lambda x: [x] * core.unsafe_am_i_under_a_jit_DO_NOT_USE(), 1.0)
    ),
    core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
)
