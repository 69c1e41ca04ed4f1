"""A convolutional network that tells circles from crosses, with momentum."""

import jax
import jax.numpy as jnp
from jax import lax, random

SIZE, CLASSES = 12, 2
NUMBERS = ("NHWC", "HWIO", "NHWC")


def draw(key, count):
    """Images of a ring (0) or a cross (1) at a random place, under noise."""
    k1, k2, k3 = random.split(key, 3)
    labels = random.randint(k1, (count,), 0, CLASSES)
    middle = random.uniform(k2, (count, 1, 1, 2), minval=4, maxval=SIZE - 4)
    grid = jnp.stack(jnp.meshgrid(jnp.arange(SIZE), jnp.arange(SIZE)), -1)
    offset = grid - middle
    ring = jnp.exp(-((jnp.linalg.norm(offset, axis=-1) - 3) ** 2))
    near = jnp.abs(offset).max(-1) < 4
    cross = jnp.exp(-(jnp.abs(offset).min(-1) ** 2)) * near
    images = jnp.where(labels[:, None, None] == 0, ring, cross)
    images = images + 0.3 * random.normal(k3, images.shape)
    return images[..., None], labels


def init(key):
    keys = random.split(key, 3)
    initializer = jax.nn.initializers.he_normal()
    return {
        "first": initializer(keys[0], (3, 3, 1, 8)),
        "second": initializer(keys[1], (3, 3, 8, 16)),
        "head": initializer(keys[2], (3 * 3 * 16, CLASSES)),
        "bias": jnp.zeros(CLASSES),
    }


def pool(x):
    start, window = -jnp.inf, (1, 2, 2, 1)
    return lax.reduce_window(x, start, lax.max, window, window, "VALID")


def logits(params, x):
    for name in ("first", "second"):
        x = lax.conv_general_dilated(
            x, params[name], (1, 1), "SAME", dimension_numbers=NUMBERS
        )
        x = pool(jax.nn.relu(x))
    return x.reshape(x.shape[0], -1) @ params["head"] + params["bias"]


def loss(params, images, labels):
    logs = jax.nn.log_softmax(logits(params, images))
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], 1))


@jax.jit
def step(params, velocity, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - 0.02 * v, params, velocity), velocity, value


params = init(random.key(0))
velocity = jax.tree.map(jnp.zeros_like, params)
for i in range(1, 41):
    images, labels = draw(random.fold_in(random.key(1), i), 32)
    params, velocity, value = step(params, velocity, images, labels)
    if i % 10 == 0:
        print(f"step {i} loss {value:.4f}")
images, labels = draw(random.key(2), 200)
right = logits(params, images).argmax(-1) == labels
print(f"right {right.mean():.3f}")
