"""After JAX's `spmd_mnist_classifier_fromscratch.py`: a batch cut over the devices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
SIZES, STEP = [196, 64, 10], 0.2


def images_of(seed, count):
    patterns = np.random.RandomState(0).rand(10, 196) > 0.6
    draw = np.random.RandomState(seed)
    labels = draw.randint(10, size=count)
    images = patterns[labels] + 0.8 * draw.randn(count, 196)
    return images.astype(np.float32), np.eye(10, dtype=np.float32)[labels]


def init_random_params(key):
    keys = random.split(key, len(SIZES) - 1)
    return [
        (0.1 * random.normal(k, (m, n)), jnp.zeros(n))
        for k, m, n in zip(keys, SIZES, SIZES[1:])
    ]


def predict(params, activations):
    for w, b in params[:-1]:
        activations = jnp.tanh(jnp.dot(activations, w) + b)
    w, b = params[-1]
    logits = jnp.dot(activations, w) + b
    return logits - jax.nn.logsumexp(logits, axis=1, keepdims=True)


def loss(params, batch):
    inputs, targets = batch
    return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))


def spmd_update(params, batch):
    """What each device does with its part; the gradients are averaged over all."""
    params = lax.pcast(params, "batch", to="varying")
    grads = lax.pmean(jax.grad(loss)(params, batch), "batch")
    params = lax.pmean(params, "batch")
    return jax.tree.map(lambda p, g: p - STEP * g, params, grads)


mesh = jax.make_mesh(
    (jax.device_count(),), ("batch",), axis_types=(jax.sharding.AxisType.Auto,)
)
update = jax.jit(
    jax.shard_map(spmd_update, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P())
)
train, test = images_of(1, 800), images_of(2, 200)
params = jax.device_put(init_random_params(random.key(0)), NamedSharding(mesh, P()))
for epoch in range(4):
    for i in range(0, 800, 80):
        batch = tuple(x[i : i + 80] for x in train)
        params = update(params, jax.device_put(batch, NamedSharding(mesh, P("batch"))))
    right = predict(params, test[0]).argmax(1) == test[1].argmax(1)
    print(f"epoch {epoch} loss {loss(params, train):.4f} test {right.mean():.3f}")
total = sum(jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(params))
print(f"sum of the weights {total:.2f}")
