"""Flax linen: a training step of dense, convolution, norm, dropout, attention, RNN."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Dense(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(2)(nn.relu(nn.Dense(8)(x.reshape(x.shape[0], -1))))


class Convolution(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.max_pool(nn.relu(nn.Conv(4, (3,))(x)), (2,), (2,))
        return nn.Dense(2)(x.reshape(x.shape[0], -1))


class Norm(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(4)(x))
        return nn.LayerNorm()(x)


class Drop(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(2)(nn.Dropout(0.5, deterministic=not train)(x))


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=4)(x, x)


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.RNN(nn.LSTMCell(4))(x)


x = jax.random.normal(jax.random.key(0), (4, 6, 3))
for module in (Dense(), Convolution(), Norm(), Drop(), Attention(), Recurrent()):
    variables = module.init(
        {"params": jax.random.key(1), "dropout": jax.random.key(2)}, x, True
    )
    params, state = (
        variables["params"],
        {k: v for k, v in variables.items() if k != "params"},
    )
    optimizer = optax.adam(0.01)
    moments = optimizer.init(params)

    @jax.jit
    def step(params, state, moments, key):
        def loss(params):
            out, new = module.apply(
                {"params": params, **state},
                x,
                True,
                mutable=list(state),
                rngs={"dropout": key},
            )
            return jnp.mean((out - 1) ** 2), new

        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, moments = optimizer.update(grads, moments)
        return optax.apply_updates(params, updates), state, moments, value

    for n in range(3):
        params, state, moments, value = step(params, state, moments, jax.random.key(n))
    print(
        type(module).__name__,
        value,
        jax.tree.map(jnp.sum, params),
        jax.tree.map(jnp.sum, state),
    )
