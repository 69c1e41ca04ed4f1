"""The iterative linear quadratic regulator: swing a pendulum up and hold it."""

import jax
import jax.numpy as jnp
from jax import lax

STEPS, H = 60, 0.05
GOAL = jnp.array([jnp.pi, 0.0])


def dynamics(x, u):
    angle, speed = x
    turn = -9.8 * jnp.sin(angle) - 0.1 * speed + u[0]
    return jnp.array([angle + H * speed, speed + H * turn])


def cost(x, u):
    return 0.05 * jnp.sum((x - GOAL) ** 2) + 0.005 * jnp.sum(u**2)


def final_cost(x):
    return 50.0 * jnp.sum((x - GOAL) ** 2)


def roll(x, controls):
    _, states = lax.scan(lambda x, u: (dynamics(x, u), x), x, controls)
    return states, dynamics(states[-1], controls[-1])


def total(x, controls):
    states, last = roll(x, controls)
    return jax.vmap(cost)(states, controls).sum() + final_cost(last)


def backward(states, last, controls):
    """Riccati's recursion along a path: for each step a feedback and an offset."""

    def step(value, at):
        gradient, hessian = value
        x, u = at
        A, B = jax.jacobian(dynamics, (0, 1))(x, u)
        qx, qu = jax.grad(cost, (0, 1))(x, u)
        (qxx, _), (qux, quu) = jax.hessian(cost, (0, 1))(x, u)
        qx, qu = qx + A.T @ gradient, qu + B.T @ gradient
        qxx, qux = qxx + A.T @ hessian @ A, qux + B.T @ hessian @ A
        quu = quu + B.T @ hessian @ B + 1e-4 * jnp.eye(1)
        gain = -jnp.linalg.solve(quu, qux)
        offset = -jnp.linalg.solve(quu, qu)
        return (qx + qux.T @ offset, qxx + qux.T @ gain), (gain, offset)

    end = (jax.grad(final_cost)(last), jax.hessian(final_cost)(last))
    return lax.scan(step, end, (states, controls), reverse=True)[1]


def forward(x, states, controls, gains, offsets, size):
    def step(x, given):
        old, u, gain, offset = given
        u = u + size * offset + gain @ (x - old)
        return dynamics(x, u), u

    return lax.scan(step, x, (states, controls, gains, offsets))[1]


@jax.jit
def iteration(x, controls):
    states, last = roll(x, controls)
    gains, offsets = backward(states, last, controls)
    sizes = 0.5 ** jnp.arange(8.0)
    tried = jax.vmap(lambda size: forward(x, states, controls, gains, offsets, size))(
        sizes
    )
    costs = jax.vmap(lambda u: total(x, u))(tried)
    best = costs.argmin()
    better = costs[best] < total(x, controls)
    return jnp.where(better, tried[best], controls)


start = jnp.zeros(2)
controls = 0.1 * jnp.ones((STEPS, 1))
for i in range(13):
    if i % 4 == 0:
        print(f"iteration {i} cost {total(start, controls):.3f}")
    controls = iteration(start, controls)
_, last = roll(start, controls)
print(f"at the end angle {last[0]:.2f} speed {last[1]:.2f}")
