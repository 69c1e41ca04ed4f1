"""A Kalman filter and smoother, and its noises by gradients of the likelihood."""

import jax
import jax.numpy as jnp
from jax import lax, random

STEP = 0.1
MOVE = jnp.array([[1.0, STEP], [0.0, 1.0]])
SEE = jnp.array([[1.0, 0.0]])


def covariances(logs):
    """Of the acceleration between two steps, and of the measurement."""
    push = jnp.array([[0.5 * STEP**2], [STEP]])
    return jnp.exp(logs[0]) * push @ push.T + 1e-6 * jnp.eye(2), jnp.exp(logs[1])


def simulate(key, logs, count):
    own, seen = covariances(logs)
    root = jnp.linalg.cholesky(own)

    def step(x, key):
        k1, k2 = random.split(key)
        x = MOVE @ x + root @ random.normal(k1, (2,))
        return x, (x, SEE @ x + jnp.sqrt(seen) * random.normal(k2, (1,)))

    return lax.scan(step, jnp.array([0.0, 1.0]), random.split(key, count))[1]


def kalman(logs, measured):
    own, seen = covariances(logs)

    def step(state, y):
        mean, cov = MOVE @ state[0], MOVE @ state[1] @ MOVE.T + own
        residual = y - SEE @ mean
        spread = SEE @ cov @ SEE.T + seen
        gain = jnp.linalg.solve(spread, SEE @ cov).T
        likelihood = jax.scipy.stats.norm.logpdf(residual[0], 0, jnp.sqrt(spread[0, 0]))
        new = (mean + gain @ residual, cov - gain @ spread @ gain.T)
        return new, (new, (mean, cov), likelihood)

    start = (jnp.zeros(2), jnp.eye(2))
    _, (after, before, likelihoods) = lax.scan(step, start, measured)
    return after, before, likelihoods.sum()


def smooth(after, before):
    """Rauch, Tung and Striebel: backwards, with what came later."""

    def step(later, given):
        (mean, cov), (ahead, spread) = given
        gain = jnp.linalg.solve(spread, MOVE @ cov).T
        mean = mean + gain @ (later[0] - ahead)
        cov = cov + gain @ (later[1] - spread) @ gain.T
        return (mean, cov), mean

    last = jax.tree.map(lambda x: x[-1], after)
    known = jax.tree.map(lambda x: x[:-1], after)
    coming = jax.tree.map(lambda x: x[1:], before)
    return lax.scan(step, last, (known, coming), reverse=True)[1]


truth, measured = simulate(random.key(0), jnp.array([0.5, -1.0]), 80)
objective = lambda logs: -kalman(logs, measured)[2] / 80
descend = jax.jit(lambda logs: logs - 0.3 * jax.grad(objective)(logs))
logs = jnp.zeros(2)
for i in range(60):
    if i % 20 == 0:
        print(f"step {i} objective {objective(logs):.4f}")
    logs = descend(logs)
print("logarithms of the noises", *(f"{x:.3f}" for x in logs))
after, before, _ = kalman(logs, measured)
error = lambda x: jnp.sqrt(jnp.mean((x[:, 0] - truth[: len(x), 0]) ** 2))
print(f"measured {error(measured):.4f} filtered {error(after[0]):.4f}")
print(f"smoothed {error(smooth(after, before)):.4f}")
