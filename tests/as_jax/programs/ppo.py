"""Proximal policy optimisation in one file: balance a pole on a cart."""

import jax
import jax.numpy as jnp
from jax import lax, random

ENVIRONMENTS, STEPS, GAMMA, LAMBDA, CLIP = 16, 32, 0.98, 0.95, 0.2


def physics(state, action):
    """One step of Euler's method, with the constants of Barto and others (1983)."""
    x, v, angle, spin = state
    force = jnp.where(action == 1, 10.0, -10.0)
    push = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
    down = 9.8 * jnp.sin(angle) - jnp.cos(angle) * push
    turn = down / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
    speed = push - 0.05 * turn * jnp.cos(angle) / 1.1
    change = jnp.array([v, speed, spin, turn])
    state = state + 0.02 * change
    return state, (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > 0.2)


def network(key, outputs):
    k1, k2 = random.split(key)
    hidden = random.normal(k1, (4, 32)) / 2
    return {"in": hidden, "out": 0.1 * random.normal(k2, (32, outputs))}


def apply(net, x):
    return jnp.tanh(x @ net["in"]) @ net["out"]


def collect(params, states, key):
    def step(states, key):
        k1, k2 = random.split(key)
        logits = apply(params["policy"], states)
        actions = random.categorical(k1, logits)
        following, done = jax.vmap(physics)(states, actions)
        fresh = random.uniform(k2, states.shape, minval=-0.05, maxval=0.05)
        seen = (states, actions, jax.nn.log_softmax(logits), done)
        return jnp.where(done[:, None], fresh, following), seen

    return lax.scan(step, states, random.split(key, STEPS))


def advantages(params, seen, last):
    states, _, _, done = seen
    values = apply(params["value"], states)[..., 0]
    following = jnp.append(values[1:], apply(params["value"], last).T, axis=0)
    alive = 1.0 - done
    errors = 1.0 + GAMMA * following * alive - values

    def back(total, step):
        error, alive = step
        total = error + GAMMA * LAMBDA * alive * total
        return total, total

    _, out = lax.scan(back, jnp.zeros(ENVIRONMENTS), (errors, alive), reverse=True)
    return out, out + values


def loss(params, seen, gain, returns):
    states, actions, old, _ = seen
    logs = jax.nn.log_softmax(apply(params["policy"], states))
    pick = lambda x: jnp.take_along_axis(x, actions[..., None], -1)[..., 0]
    ratio = jnp.exp(pick(logs) - pick(old))
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP)
    policy = -jnp.minimum(ratio * gain, clipped * gain).mean()
    value = ((apply(params["value"], states)[..., 0] - returns) ** 2).mean()
    entropy = -(jnp.exp(logs) * logs).sum(-1).mean()
    return policy + 0.001 * value - 0.01 * entropy


@jax.jit
def iteration(params, states, key):
    states, seen = collect(params, states, key)
    gain, returns = advantages(params, seen, states)

    def descend(params, _):
        grads = jax.grad(loss)(params, seen, gain, returns)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), None

    params, _ = lax.scan(descend, params, None, length=4)
    return params, states, seen[3].mean()


k1, k2 = random.split(random.key(0))
params = {"policy": network(k1, 2), "value": network(k2, 1)}
states = jnp.zeros((ENVIRONMENTS, 4))
for i in range(12):
    params, states, falls = iteration(params, states, random.key(i + 1))
    if i % 4 == 3:
        print(f"iteration {i + 1} falls {falls:.4f}")
print(f"weights {sum(jnp.abs(p).sum() for p in jax.tree.leaves(params)):.3f}")
