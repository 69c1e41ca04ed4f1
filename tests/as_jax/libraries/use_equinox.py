"""Equinox: a training step of a perceptron, a convolution, an attention and a GRU."""

import equinox as eqx
import jax
import jax.numpy as jnp

key = jax.random.key(0)


class Recurrent(eqx.Module):
    cell: eqx.nn.GRUCell

    def __call__(self, x):
        return jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(4), x)[0]


MODELS = {
    "mlp": (eqx.nn.MLP(3, 2, 8, 2, key=key), (3,)),
    "convolution": (eqx.nn.Conv2d(1, 2, 3, key=key), (1, 6, 6)),
    "norm": (
        eqx.nn.Sequential([eqx.nn.Linear(3, 4, key=key), eqx.nn.LayerNorm(4)]),
        (3,),
    ),
    "gru": (Recurrent(eqx.nn.GRUCell(3, 4, key=key)), (5, 3)),
}


@eqx.filter_jit
def step(model, x):
    loss, grads = eqx.filter_value_and_grad(lambda m: jnp.sum(jax.vmap(m)(x) ** 2))(
        model
    )
    return loss, eqx.apply_updates(model, jax.tree.map(lambda g: -0.01 * g, grads))


for name, (model, shape) in MODELS.items():
    x = jax.random.normal(jax.random.key(1), (4, *shape))
    for _ in range(3):
        value, model = step(model, x)
        print(name, value)
attention = eqx.nn.MultiheadAttention(2, 4, key=key)
x = jax.random.normal(key, (5, 4))
print("attention", attention(x, x, x))
dropout = eqx.nn.Dropout(0.5)
print("dropout", dropout(jnp.ones(6), key=key), eqx.tree_equal(model, model))
