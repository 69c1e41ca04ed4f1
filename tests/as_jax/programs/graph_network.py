"""A graph network that learns how far each node is from a marked one."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

NODES, EDGES, WIDTH, ROUNDS = 16, 26, 32, 4


def graphs(seed, count):
    """A ring with some chords; node 0 is marked; distances by breadth first search."""
    draw = np.random.RandomState(seed)
    ends, labels = [], []
    for _ in range(count):
        ring = [(i, (i + 1) % NODES) for i in range(NODES)]
        chords = [tuple(draw.choice(NODES, 2, False)) for _ in range(EDGES - NODES)]
        pairs = np.array([*ring, *chords])
        distance = np.full(NODES, NODES)
        distance[0] = 0
        for _ in range(NODES):
            for a, b in pairs:
                distance[a] = min(distance[a], distance[b] + 1)
                distance[b] = min(distance[b], distance[a] + 1)
        ends.append(np.concatenate([pairs, pairs[:, ::-1]]))
        labels.append(distance)
    return jnp.array(np.stack(ends)), jnp.array(np.stack(labels), jnp.float32)


def mlp(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        (random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def apply(layers, x):
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


def init(key):
    keys = random.split(key, 4)
    return {
        "in": mlp(keys[0], [2, WIDTH]),
        "message": mlp(keys[1], [2 * WIDTH, WIDTH, WIDTH]),
        "update": mlp(keys[2], [2 * WIDTH, WIDTH, WIDTH]),
        "out": mlp(keys[3], [WIDTH, WIDTH, 1]),
    }


def network(params, ends):
    marked = jnp.eye(NODES)[0]
    x = apply(params["in"], jnp.stack([marked, 1 - marked], -1))
    senders, receivers = ends.T
    for _ in range(ROUNDS):
        pairs = jnp.concatenate([x[senders], x[receivers]], -1)
        messages = apply(params["message"], pairs)
        heard = jax.ops.segment_max(messages, receivers, NODES)
        x = x + 0.3 * apply(params["update"], jnp.concatenate([x, heard], -1))
    return apply(params["out"], x)[:, 0]


def loss(params, ends, labels):
    return jnp.mean((jax.vmap(network, (None, 0))(params, ends) - labels) ** 2)


@jax.jit
def step(params, velocity, ends, labels):
    value, grads = jax.value_and_grad(loss)(params, ends, labels)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g / jnp.maximum(1.0, norm), grads)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - 0.01 * v, params, velocity), velocity, value


params = init(random.key(0))
velocity = jax.tree.map(jnp.zeros_like, params)
ends, labels = graphs(0, 32)
for i in range(81):
    params, velocity, value = step(params, velocity, ends, labels)
    if i % 20 == 0:
        print(f"step {i} loss {value:.3f}")
print(f"on other graphs {loss(params, *graphs(1, 16)):.2f}")
