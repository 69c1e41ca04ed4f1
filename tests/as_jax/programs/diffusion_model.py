"""A diffusion model of points on a spiral: it learns the noise, and removes it."""

import jax
import jax.numpy as jnp
from jax import lax, random

STEPS, HIDDEN = 40, 64
BETAS = jnp.linspace(1e-4, 0.15, STEPS)
ALPHAS = 1 - BETAS
KEPT = jnp.cumprod(ALPHAS)


def spiral(key, count):
    turn = 3 * jnp.pi * jnp.sqrt(random.uniform(key, (count,)))
    points = jnp.stack([turn * jnp.cos(turn), turn * jnp.sin(turn)], -1)
    return points / (3 * jnp.pi)


def init(key):
    sizes = [2 + 16, HIDDEN, HIDDEN, 2]
    keys = random.split(key, 3)
    return [
        (random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def predict(params, x, t):
    rates = 2.0 ** jnp.arange(8) / STEPS
    angles = t[..., None] * rates
    x = jnp.concatenate([x, jnp.sin(angles), jnp.cos(angles)], -1)
    *hidden, (w, b) = params
    for weights, bias in hidden:
        x = jax.nn.silu(x @ weights + bias)
    return x @ w + b


def loss(params, points, key):
    k1, k2 = random.split(key)
    t = random.randint(k1, points.shape[:1], 0, STEPS)
    noise = random.normal(k2, points.shape)
    kept = KEPT[t][:, None]
    mixed = jnp.sqrt(kept) * points + jnp.sqrt(1 - kept) * noise
    return jnp.mean((predict(params, mixed, t) - noise) ** 2)


@jax.jit
def train(params, key):
    def step(state, key):
        params, m, v, i = state
        k1, k2 = random.split(key)
        value, grads = jax.value_and_grad(loss)(params, spiral(k1, 128), k2)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, grads)

        def move(p, m, v):
            mean, square = m / (1 - 0.9**i), v / (1 - 0.99**i)
            return p - 3e-3 * mean / (jnp.sqrt(square) + 1e-8)

        return (jax.tree.map(move, params, m, v), m, v, i + 1), value

    zeros = jax.tree.map(jnp.zeros_like, params)
    keys = random.split(key, 200)
    (params, *_), values = lax.scan(step, (params, zeros, zeros, 1.0), keys)
    return params, values


@jax.jit
def sample(params, key):
    def step(x, given):
        t, key = given
        times = jnp.full(x.shape[:1], t)
        guess = BETAS[t] / jnp.sqrt(1 - KEPT[t]) * predict(params, x, times)
        x = (x - guess) / jnp.sqrt(ALPHAS[t])
        noise = jnp.sqrt(BETAS[t]) * random.normal(key, x.shape)
        return jnp.where(t > 0, x + noise, x), None

    k1, k2 = random.split(key)
    times = jnp.arange(STEPS)[::-1]
    start = random.normal(k1, (100, 2))
    return lax.scan(step, start, (times, random.split(k2, STEPS)))[0]


params, values = train(init(random.key(0)), random.key(1))
for i in (0, 50, 100, 150):
    print(f"steps {i} to {i + 50}: loss {values[i : i + 50].mean():.4f}")
points = sample(params, random.key(2))
print(f"mean {points.mean():.2f} spread {points.std():.2f}")
