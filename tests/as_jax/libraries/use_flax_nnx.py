"""Flax nnx: training steps of dense, convolution, norm, dropout."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 4, (3,), rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.out = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x):
        return self.out(self.drop(nnx.relu(self.norm(self.conv(x)))))


model = Model(nnx.Rngs(0, dropout=1))
optimizer = nnx.Optimizer(model, optax.adam(0.01), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - 1) ** 2))(model)
    optimizer.update(model, grads)
    return loss


x = jax.random.normal(jax.random.key(0), (4, 6, 3))
for _ in range(3):
    print(step(model, optimizer, x))
print(jax.tree.map(jnp.sum, nnx.state(model, nnx.Param)))
