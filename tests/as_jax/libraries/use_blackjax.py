"""BlackJAX: HMC and NUTS on a normal distribution."""

import blackjax
import jax
import jax.numpy as jnp

logdensity = lambda x: -0.5 * jnp.sum((x - 1) ** 2 / jnp.array([1.0, 4.0]))
for sampler in (
    blackjax.hmc(logdensity, 0.3, jnp.ones(2), 5),
    blackjax.nuts(logdensity, 0.3, jnp.ones(2)),
):
    state = sampler.init(jnp.zeros(2))
    step = jax.jit(sampler.step)
    for key in jax.random.split(jax.random.key(0), 8):
        state, info = step(key, state)
    print(state.position, info.acceptance_rate)
