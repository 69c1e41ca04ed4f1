"""Hamiltonian Monte Carlo for a logistic regression, several chains at once."""

import jax
import jax.numpy as jnp
from jax import lax, random

CHAINS, WARMUP, DRAWS, LEAPS = 4, 100, 200, 8


def make_data(key):
    k1, k2 = random.split(key)
    x = random.normal(k1, (150, 3))
    truth = jnp.array([1.5, -1.0, 0.5])
    return x, random.bernoulli(k2, jax.nn.sigmoid(x @ truth)), truth


x, y, truth = make_data(random.key(0))


def log_density(w):
    logits = x @ w
    likelihood = jnp.sum(jnp.where(y, logits, 0.0) - jnp.logaddexp(0.0, logits))
    return likelihood - 0.5 * jnp.sum(w**2) / 4


def leapfrog(w, momentum, size):
    slope = jax.grad(log_density)

    def step(state, _):
        w, momentum = state
        momentum = momentum + 0.5 * size * slope(w)
        w = w + size * momentum
        return (w, momentum + 0.5 * size * slope(w)), None

    return lax.scan(step, (w, momentum), None, length=LEAPS)[0]


def transition(w, key, size):
    k1, k2 = random.split(key)
    momentum = random.normal(k1, w.shape)
    energy = lambda w, p: log_density(w) - 0.5 * p @ p
    new, after = leapfrog(w, momentum, size)
    chance = jnp.minimum(1.0, jnp.exp(energy(new, after) - energy(w, momentum)))
    return jnp.where(random.uniform(k2) < chance, new, w), chance


def chain(key):
    k1, k2, k3 = random.split(key, 3)

    def adapt(state, key):
        w, log_size = state
        w, chance = transition(w, key, jnp.exp(log_size))
        return (w, log_size + 0.05 * (chance - 0.8)), None

    def draw(w, key):
        w, chance = transition(w, key, size)
        return w, (w, chance)

    start = (random.normal(k1, (3,)), jnp.log(0.1))
    (w, log_size), _ = lax.scan(adapt, start, random.split(k2, WARMUP))
    size = jnp.exp(log_size)
    _, (draws, chances) = lax.scan(draw, w, random.split(k3, DRAWS))
    return draws, chances.mean(), size


draws, chances, sizes = jax.jit(jax.vmap(chain))(random.split(random.key(1), CHAINS))
print("accepted", *(f"{c:.3f}" for c in chances))
print("step sizes", *(f"{s:.3f}" for s in sizes))
means = draws.mean((0, 1))
for i in range(3):
    print(f"w{i} mean {means[i]:.2f} deviation {draws[..., i].std():.2f}")
within = draws.var(1, ddof=1).mean(0)
between = draws.mean(1).var(0, ddof=1)
rhat = jnp.sqrt(((DRAWS - 1) / DRAWS * within + between) / within)
print("r-hat", *(f"{r:.2f}" for r in rhat))
