"""The primitive that draws from gamma distributions, one draw for each parameter.

Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): for
a >= 1 and d = a - 1/3, c = 1 / sqrt(9 d), take a normal x and v = (1 + c x)^3; d v is
the draw if v > 0 and a uniform u passes a test. It is a loop of unknown length, so each
draw has a key of its own. For a < 1 a draw for a + 1 is multiplied by U^(1/a), which
may be too small for a float; hence the draw's logarithm can be asked for.

The derivative with respect to `a` moves a draw so that its place in the distribution
stays: `lax.random_gamma_grad`.

In JAX: `random/core.py`, `random_gamma_p`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.backend.processes import default_backend
from minijax.core import dtypes, rules
from minijax.core.array import Array
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.primitives.families import front_batch, lower_fun
from minijax.primitives.random.random_bits import threefry_prng_impl
from minijax.random.arguments import scalar_like
from minijax.random.distributions import exponential
from minijax.random.keys import split_typed
from minijax.random.samplers import normal, uniform
from minijax.transforms.vectorization import vmap


def _draw_one(key: Array, alpha: Array, *, log_space: bool) -> Array:
    """One draw for the scalar `alpha`, or its logarithm."""
    dtype = get_aval(alpha).dtype
    zero, one, two = (scalar_like(alpha, value) for value in (0, 1, 2))
    third, half = scalar_like(alpha, 1.0 / 3.0), scalar_like(alpha, 0.5)
    large = lax.ge(alpha, one)
    shape = lax.select(large, alpha, lax.add(alpha, one))
    d = lax.sub(shape, third)
    c = lax.div(third, lax.sqrt(d))

    def rejected(carry: Any) -> Any:
        """Neither the quick test nor the exact one lets the draw pass."""
        _, x_squared, v, u = carry
        bound = lax.mul(scalar_like(alpha, 0.0331), lax.mul(x_squared, x_squared))
        quick = lax.ge(u, lax.sub(one, bound))
        density = lax.mul(d, lax.add(lax.sub(one, v), lax.log(v)))
        exact = lax.ge(lax.log(u), lax.add(lax.mul(x_squared, half), density))
        return lax.bitwise_and(quick, exact)

    def next_normal(carry: Any) -> Any:
        key, subkey = split_typed(carry[0])
        x = normal(subkey, (), dtype=dtype)
        return key, x, lax.add(one, lax.mul(x, c))

    def next_draw(carry: Any) -> Any:
        key, normal_key, uniform_key = split_typed(carry[0], 3)
        start = normal_key, zero, scalar_like(alpha, -1)
        _, x, v = lax.while_loop(lambda kxv: lax.le(kxv[2], zero), next_normal, start)
        cube = lax.mul(lax.mul(v, v), v)
        return key, lax.mul(x, x), cube, uniform(uniform_key, (), dtype=dtype)

    key, boost_key = split_typed(key)
    _, _, v, _ = lax.while_loop(rejected, next_draw, (key, zero, one, two))
    if log_space:
        logs = lax.neg(exponential(boost_key, (), dtype=dtype))
        scaled = lax.mul(logs, lax.div(one, alpha))
        boost = lax.select(large | (logs == 0), zero, scaled)
        return lax.add(lax.add(lax.log(d), lax.log(v)), boost)
    samples = 1 - uniform(boost_key, (), dtype=dtype)
    boost = lax.select(large, one, lax.pow(samples, lax.div(one, alpha)))
    return lax.mul(lax.mul(d, v), boost)


def _draw_all(key: Array, alphas: Array, *, log_space: bool) -> Array:
    """A draw for each parameter: side by side if threefry makes the bits, else a loop.

    `key` may be an array of keys, whose axes are the first ones of `alphas`.
    """
    shape = np.shape(alphas)
    count = math.prod(shape[key.ndim :])
    keys = vmap(split_typed, in_axes=(0, None))(key.flatten(), count).flatten()
    draw = partial(_draw_one, log_space=log_space)
    key_type: Any = key.dtype
    if key_type.impl is threefry_prng_impl:
        samples = vmap(draw)(keys, alphas.flatten())
    else:
        samples = lax.map(lambda pair: draw(*pair), (keys, alphas.flatten()))
    return jnp.reshape(samples, shape)


def _slope(tangent: Any, sample: Any, key: Any, a: Any, *, log_space: bool) -> Any:
    """How a draw moves with its parameter."""
    samples, alphas = jnp.reshape(sample, -1), jnp.reshape(a, -1)
    if log_space:
        # The draw may be too small for a float; then the smallest one stands for it.
        samples = lax.exp(samples)
        tiny = lax.full_like(samples, dtypes.finfo(samples.dtype).tiny)
        samples = lax.select(lax.eq(samples, scalar_like(sample, 0)), tiny, samples)

    def slope(alpha: Any, draw: Any) -> Any:
        moved = lax.random_gamma_grad(alpha, draw)
        return moved / draw if log_space else moved

    if default_backend() == "cpu":
        slopes = lax.map(lambda pair: slope(*pair), (alphas, samples))
    else:
        slopes = vmap(slope)(alphas, samples)
    return tangent * slopes.reshape(np.shape(a))


random_gamma_p = register(Primitive("random_gamma"))


@random_gamma_p.def_abstract_eval
def _type(key: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
    return a


rules.def_jvp_with_output(random_gamma_p, None, _slope)
random_gamma_p.without("transpose", "its derivative is a multiple of the tangent")
random_gamma_p.batch = front_batch(random_gamma_p)


random_gamma_p.def_lowering(lower_fun(_draw_all))
