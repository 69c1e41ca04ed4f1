"""After JAX's `advi.py`: a normal distribution is fitted to a density in the plane."""

import jax
import jax.numpy as jnp
from jax import jit, random, vmap
from jax.example_libraries import optimizers
from jax.scipy.stats import norm


def diag_gaussian_sample(rng, mean, log_std):
    return mean + jnp.exp(log_std) * random.normal(rng, mean.shape)


def diag_gaussian_logpdf(x, mean, log_std):
    return jnp.sum(vmap(norm.logpdf)(x, mean, jnp.exp(log_std)))


def elbo(logprob, rng, mean, log_std):
    """An unbiased estimate, by one sample, of the evidence lower bound."""
    sample = diag_gaussian_sample(rng, mean, log_std)
    return logprob(sample) - diag_gaussian_logpdf(sample, mean, log_std)


def batch_elbo(logprob, rng, params, num_samples):
    rngs = random.split(rng, num_samples)
    bounds = vmap(elbo, in_axes=(None, 0, None, None))(logprob, rngs, *params)
    return jnp.mean(bounds)


def funnel_log_density(params):
    return norm.logpdf(params[0], 0, jnp.exp(params[1])) + norm.logpdf(
        params[1], 0, 1.35
    )


def objective(params, t):
    return -batch_elbo(funnel_log_density, random.key(t), params, 40)


init_mean, init_std = jnp.zeros(2), jnp.zeros(2)
opt_init, opt_update, get_params = optimizers.momentum(step_size=0.01, mass=0.9)


@jit
def update(i, opt_state):
    params = get_params(opt_state)
    return opt_update(i, jax.grad(objective)(params, i), opt_state)


opt_state = opt_init((init_mean, init_std))
for t in range(150):
    opt_state = update(t, opt_state)
    if t % 50 == 49:
        bound = -objective(get_params(opt_state), 1000)
        print(f"step {t} bound {bound:.4f}")
mean, log_std = get_params(opt_state)
print("mean", *(f"{x:.3f}" for x in mean), "deviation", end=" ")
print(*(f"{x:.3f}" for x in jnp.exp(log_std)))
