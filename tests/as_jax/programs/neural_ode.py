"""A neural ordinary differential equation that learns a damped swing."""

import jax
import jax.numpy as jnp
from jax import lax, random

TIMES = jnp.linspace(0.0, 4.0, 33)


def runge_kutta(field, y, times):
    """The classical method of order 4, one step between two times."""

    def step(y, span):
        t, h = span
        k1 = field(y, t)
        k2 = field(y + 0.5 * h * k1, t + 0.5 * h)
        k3 = field(y + 0.5 * h * k2, t + 0.5 * h)
        k4 = field(y + h * k3, t + h)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    spans = (times[:-1], jnp.diff(times))
    return jnp.concatenate([y[None], lax.scan(step, y, spans)[1]])


def swing(y, t):
    return jnp.array([y[1], -2.0 * jnp.sin(y[0]) - 0.3 * y[1]])


def init(key):
    k1, k2 = random.split(key)
    return {
        "in": random.normal(k1, (2, 32)) / jnp.sqrt(2),
        "bias": jnp.zeros(32),
        "out": 0.1 * random.normal(k2, (32, 2)),
    }


def learned(params, y, t):
    return jnp.tanh(y @ params["in"] + params["bias"]) @ params["out"]


def solve(params, start):
    field = jax.checkpoint(lambda y, t: learned(params, y, t))
    return runge_kutta(field, start, TIMES)


def loss(params, starts, paths):
    return jnp.mean((jax.vmap(solve, (None, 0))(params, starts) - paths) ** 2)


@jax.jit
def step(state, starts, paths):
    params, m, v, i = state
    value, grads = jax.value_and_grad(loss)(params, starts, paths)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, grads)

    def move(p, m, v):
        return p - 0.02 * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.99**i)) + 1e-8)

    return (jax.tree.map(move, params, m, v), m, v, i + 1), value


starts = random.uniform(random.key(0), (16, 2), minval=-1.5, maxval=1.5)
paths = jax.vmap(lambda y: runge_kutta(swing, y, TIMES))(starts)
params = init(random.key(1))
zeros = jax.tree.map(jnp.zeros_like, params)
state = (params, zeros, zeros, 1.0)
for i in range(81):
    state, value = step(state, starts, paths)
    if i % 20 == 0:
        print(f"step {i} loss {value:.4f}")
test = jnp.array([1.0, 0.0])
error = jnp.abs(solve(state[0], test) - runge_kutta(swing, test, TIMES)).mean()
print(f"error from another start {error:.3f}")
