"""A neural radiance field: density and colour of a ball, learned from rays."""

import jax
import jax.numpy as jnp
from jax import random

SAMPLES, NEAR, FAR = 24, 1.0, 4.0


def encode(x):
    rates = 2.0 ** jnp.arange(4)
    angles = (x[..., None] * rates).reshape(*x.shape[:-1], -1)
    return jnp.concatenate([x, jnp.sin(angles), jnp.cos(angles)], -1)


def init(key):
    sizes = [27, 48, 48, 4]
    return [
        (jax.nn.initializers.he_normal()(k, (m, n)), jnp.zeros(n))
        for k, m, n in zip(random.split(key, 3), sizes, sizes[1:])
    ]


def learned(params, points):
    x = encode(points)
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    out = x @ w + b
    return jax.nn.softplus(out[..., 0]), jax.nn.sigmoid(out[..., 1:])


def ball(points):
    """A ball of radius 1 whose colour is the direction from its middle."""
    inside = jnp.linalg.norm(points, axis=-1) < 1
    return 8.0 * inside, 0.5 + 0.5 * jnp.clip(points, -1, 1)


def render(field, origin, direction):
    """The colour of a ray: each sample's colour by the light that comes from it."""
    depths = jnp.linspace(NEAR, FAR, SAMPLES)
    points = origin + depths[:, None] * direction
    density, colour = field(points)
    opacity = 1 - jnp.exp(-density * (FAR - NEAR) / SAMPLES)
    passed = jnp.cumprod(1 - opacity + 1e-10)
    weights = opacity * jnp.append(1.0, passed[:-1])
    return weights @ colour


def rays(key, count):
    k1, k2 = random.split(key)
    place = random.normal(k1, (count, 3))
    origin = 2.5 * place / jnp.linalg.norm(place, axis=-1, keepdims=True)
    aim = random.uniform(k2, (count, 3), minval=-0.9, maxval=0.9) - origin
    return origin, aim / jnp.linalg.norm(aim, axis=-1, keepdims=True)


def loss(params, origins, directions, colours):
    one = lambda o, d: render(lambda x: learned(params, x), o, d)
    return jnp.mean((jax.vmap(one)(origins, directions) - colours) ** 2)


@jax.jit
def step(params, velocity, key):
    origins, directions = rays(key, 64)
    colours = jax.vmap(lambda o, d: render(ball, o, d))(origins, directions)
    value, grads = jax.value_and_grad(loss)(params, origins, directions, colours)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - 0.03 * v, params, velocity), velocity, value


params = init(random.key(0))
velocity = jax.tree.map(jnp.zeros_like, params)
values = []
for i in range(80):
    params, velocity, value = step(params, velocity, random.key(i + 1))
    values.append(value)
for i in range(0, 80, 20):
    print(f"steps {i} to {i + 20}: loss {sum(values[i : i + 20]) / 20:.4f}")
middle = render(lambda x: learned(params, x), jnp.array([2.5, 0, 0]), -jnp.eye(3)[0])
print("a ray through the middle", *(f"{c:.3f}" for c in middle))
