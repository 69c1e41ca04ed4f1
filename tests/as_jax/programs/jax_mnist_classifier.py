"""After JAX's `mnist_classifier.py`: a network of stax, trained by momentum."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jax.example_libraries import optimizers, stax


def images_of(seed, count):
    """Ten patterns of 14 by 14 pixels under noise, in the place of the digits."""
    patterns = np.random.RandomState(0).rand(10, 196) > 0.6
    draw = np.random.RandomState(seed)
    labels = draw.randint(10, size=count)
    images = patterns[labels] + 0.8 * draw.randn(count, 196)
    return images.astype(np.float32), np.eye(10, dtype=np.float32)[labels]


init_random_params, predict = stax.serial(
    stax.Dense(64), stax.Relu, stax.Dense(64), stax.Relu, stax.Dense(10),
    stax.LogSoftmax,
)  # fmt: skip


def loss(params, batch):
    inputs, targets = batch
    return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))


def accuracy(params, batch):
    inputs, targets = batch
    predicted = jnp.argmax(predict(params, inputs), axis=1)
    return jnp.mean(predicted == jnp.argmax(targets, axis=1))


train, test = images_of(1, 1000), images_of(2, 300)


def data_stream(size=100):
    draw = np.random.RandomState(0)
    while True:
        order = draw.permutation(len(train[0]))
        for i in range(0, len(order), size):
            chosen = order[i : i + size]
            yield train[0][chosen], train[1][chosen]


opt_init, opt_update, get_params = optimizers.momentum(0.02, mass=0.9)


@jax.jit
def update(i, opt_state, batch):
    params = get_params(opt_state)
    return opt_update(i, jax.grad(loss)(params, batch), opt_state)


_, init_params = init_random_params(random.key(0), (-1, 196))
opt_state = opt_init(init_params)
batches, count = data_stream(), itertools.count()
for epoch in range(4):
    for _ in range(10):
        opt_state = update(next(count), opt_state, next(batches))
    params = get_params(opt_state)
    print(f"epoch {epoch} loss {loss(params, train):.4f}")
    print(f"train {accuracy(params, train):.3f} test {accuracy(params, test):.3f}")
total = sum(jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(params))
print(f"sum of the weights {total:.2f}")
