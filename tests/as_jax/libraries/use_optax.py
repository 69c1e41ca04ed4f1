"""Optax: a regression, a step of each of eight optimizers, schedules and losses."""

import jax
import jax.numpy as jnp
import optax

x = jax.random.normal(jax.random.key(0), (64, 5))
y = x @ jnp.arange(5.0) + 1
OPTIMIZERS = {
    "sgd": optax.sgd(0.1, momentum=0.9),
    "adam": optax.adam(0.1),
    "adamw": optax.adamw(optax.cosine_decay_schedule(0.1, 20)),
    "lion": optax.lion(0.01),
    "rmsprop": optax.rmsprop(0.05),
    "adagrad": optax.adagrad(0.3),
    "lamb": optax.lamb(0.1),
    "clipped": optax.chain(optax.clip_by_global_norm(1.0), optax.adabelief(0.1)),
}


def loss(params):
    return jnp.mean(optax.huber_loss(x @ params["w"] + params["b"], y))


for name, optimizer in OPTIMIZERS.items():

    @jax.jit
    def step(params, state, optimizer=optimizer):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    params = {"w": jnp.zeros(5), "b": jnp.zeros(())}
    state = optimizer.init(params)
    for _ in range(10):
        params, state, value = step(params, state)
    print(name, value, params["w"], params["b"])
logits = jax.random.normal(jax.random.key(1), (4, 3))
print(optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([0, 1, 2, 1])))
print(
    optax.ctc_loss(
        logits[None], jnp.zeros((1, 4)), jnp.array([[1, 2]]), jnp.zeros((1, 2))
    )
)
print(optax.sigmoid_binary_cross_entropy(logits, 1.0), optax.global_norm(logits))
# Places its numbers as `jax.typeof(leaf).sharding` says, which is over no mesh here.
print(optax.tree_utils.tree_random_like(jax.random.key(2), {"w": logits}))
