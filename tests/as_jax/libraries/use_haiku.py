"""Haiku: a training step of a perceptron, a convolution, norm, attention, an LSTM."""

import haiku as hk
import jax
import jax.numpy as jnp

NETWORKS = {
    "mlp": lambda x: hk.nets.MLP([8, 2])(x),
    "convolution": lambda x: hk.Conv1D(4, 3)(x),
    "norm": lambda x: hk.BatchNorm(True, True, 0.9)(hk.Linear(4)(x), True),
    "attention": lambda x: hk.MultiHeadAttention(
        2, 3, w_init=hk.initializers.Constant(0.1)
    )(x, x, x),
    "lstm": lambda x: hk.dynamic_unroll(hk.LSTM(4), x, hk.LSTM(4).initial_state(6))[0],
    "dropout": lambda x: hk.dropout(hk.next_rng_key(), 0.5, hk.Linear(2)(x)),
}
x = jax.random.normal(jax.random.key(0), (4, 6, 3))
for name, network in NETWORKS.items():
    f = hk.transform_with_state(network)
    params, state = f.init(jax.random.PRNGKey(1), x)

    @jax.jit
    def step(params, state, f=f):
        def loss(params):
            out, new = f.apply(params, state, jax.random.PRNGKey(2), x)
            return jnp.mean((out - 1) ** 2), new

        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), state, value

    for _ in range(3):
        params, state, value = step(params, state)
    print(name, value, jax.tree.map(jnp.sum, params))
