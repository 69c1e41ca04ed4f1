"""A variational autoencoder of small images of a bar that turns."""

import jax
import jax.numpy as jnp
from jax import lax, random

SIZE, HIDDEN, LATENT = 10, 64, 2


def bars(key, count):
    angle = random.uniform(key, (count, 1, 1), maxval=jnp.pi)
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, SIZE), jnp.linspace(-1, 1, SIZE))
    distance = x * jnp.sin(angle) - y * jnp.cos(angle)
    return jnp.exp(-((distance / 0.25) ** 2)).reshape(count, -1)


def dense(key, m, n):
    return {"w": jax.nn.initializers.glorot_normal()(key, (m, n)), "b": jnp.zeros(n)}


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def init(key):
    keys = random.split(key, 5)
    return {
        "in": dense(keys[0], SIZE**2, HIDDEN),
        "mean": dense(keys[1], HIDDEN, LATENT),
        "log": dense(keys[2], HIDDEN, LATENT),
        "back": dense(keys[3], LATENT, HIDDEN),
        "out": dense(keys[4], HIDDEN, SIZE**2),
    }


def encode(params, image):
    hidden = jnp.tanh(apply(params["in"], image))
    return apply(params["mean"], hidden), apply(params["log"], hidden)


def decode(params, z):
    return apply(params["out"], jnp.tanh(apply(params["back"], z)))


def bound(params, image, key):
    """The evidence lower bound of one image, by one sample."""
    mean, log = encode(params, image)
    z = mean + jnp.exp(0.5 * log) * random.normal(key, mean.shape)
    logits = decode(params, z)
    likelihood = -jnp.sum(jnp.logaddexp(0.0, logits) - image * logits)
    divergence = 0.5 * jnp.sum(jnp.exp(log) + mean**2 - 1 - log)
    return likelihood - divergence


def loss(params, images, key):
    keys = random.split(key, len(images))
    return -jnp.mean(jax.vmap(bound, (None, 0, 0))(params, images, keys))


@jax.jit
def epoch(params, key):
    def step(state, key):
        params, squares = state
        k1, k2 = random.split(key)
        value, grads = jax.value_and_grad(loss)(params, bars(k1, 64), k2)
        squares = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g**2, squares, grads)

        def move(p, g, s):
            return p - 0.003 * g / (jnp.sqrt(s) + 1e-6)

        return (jax.tree.map(move, params, grads, squares), squares), value

    squares = jax.tree.map(jnp.ones_like, params)
    (params, _), values = lax.scan(step, (params, squares), random.split(key, 40))
    return params, values.mean()


params = init(random.key(0))
for i in range(4):
    params, value = epoch(params, random.key(i + 1))
    print(f"epoch {i + 1} loss {value:.4f}")
images = bars(random.key(9), 50)
again = jax.nn.sigmoid(decode(params, encode(params, images)[0]))
print(f"error {jnp.mean((again - images) ** 2):.4f}")
