"""A transformer of characters: two blocks, trained by Adam, then sampled."""

import jax
import jax.numpy as jnp
from jax import random

TEXT = "the quick brown fox jumps over the lazy dog and runs back to the den. " * 8
LETTERS = sorted(set(TEXT))
CODES = jnp.array([LETTERS.index(c) for c in TEXT])
WIDTH, HEADS, LENGTH, BLOCKS = 32, 4, 24, 2


def init(key):
    def dense(key, m, n):
        return random.normal(key, (m, n)) / jnp.sqrt(m)

    keys = iter(random.split(key, 4 * BLOCKS + 3))
    blocks = [
        {
            "qkv": dense(next(keys), WIDTH, 3 * WIDTH),
            "out": dense(next(keys), WIDTH, WIDTH),
            "up": dense(next(keys), WIDTH, 4 * WIDTH),
            "down": dense(next(keys), 4 * WIDTH, WIDTH),
        }
        for _ in range(BLOCKS)
    ]
    return {
        "letters": 0.1 * random.normal(next(keys), (len(LETTERS), WIDTH)),
        "places": 0.1 * random.normal(next(keys), (LENGTH, WIDTH)),
        "blocks": blocks,
        "head": dense(next(keys), WIDTH, len(LETTERS)),
    }


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attend(block, x):
    shape = (x.shape[0], HEADS, WIDTH // HEADS)
    q, k, v = (y.reshape(shape) for y in jnp.split(x @ block["qkv"], 3, axis=-1))
    scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(shape[-1])
    mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape) @ block["out"]


def logits(params, codes):
    x = params["letters"][codes] + params["places"][: codes.shape[0]]
    for block in params["blocks"]:
        x = x + attend(block, norm(x))
        x = x + jax.nn.gelu(norm(x) @ block["up"]) @ block["down"]
    return norm(x) @ params["head"]


def loss(params, batch):
    scores = jax.vmap(logits, (None, 0))(params, batch[:, :-1])
    right = jax.nn.one_hot(batch[:, 1:], len(LETTERS))
    return -jnp.mean(jnp.sum(right * jax.nn.log_softmax(scores), -1))


@jax.jit
def step(params, moments, batch, i):
    value, grads = jax.value_and_grad(loss)(params, batch)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], grads)

    def move(p, m, v):
        return p - 0.01 * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.99**i)) + 1e-8)

    return jax.tree.map(move, params, m, v), (m, v), value


params = init(random.key(0))
zeros = jax.tree.map(jnp.zeros_like, params)
moments = (zeros, zeros)
for i in range(1, 41):
    starts = random.randint(random.fold_in(random.key(1), i), (16,), 0, 400)
    batch = CODES[starts[:, None] + jnp.arange(LENGTH + 1)]
    params, moments, value = step(params, moments, batch, i)
    if i % 10 == 0:
        print(f"step {i} loss {value:.4f}")
codes = CODES[:8]
for _ in range(8):
    codes = jnp.append(codes, logits(params, codes)[-1].argmax())
print("".join(LETTERS[int(c)] for c in codes))
