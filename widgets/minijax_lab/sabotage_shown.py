"""For each fault of the sabotage lab a small function on which it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
from minijax import checkpoint, grad, jit, lax, random, vmap
from minijax import numpy as jnp

Shown = tuple[Callable[..., Any], tuple[Any, ...]]


def _ten_times_too_steep() -> Callable[..., Any]:
    """A sine with a rule of its own, which says something else."""

    @minijax.custom_jvp
    def steep(x: Any) -> Any:
        return jnp.sin(x)

    steep.defjvp(lambda xs, ts: (steep(*xs), 10.0 * ts[0]))
    return steep


def _recurrent(w: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        return w * carry + x, None

    return lax.scan(step, 0.0, np.arange(1.0, 4.0, dtype=np.float32))[0]


def _weighted_turn(x: Any) -> Any:
    return jnp.sum(jnp.transpose(x, (1, 2, 0)) * np.arange(8.0).reshape(2, 2, 2))


def shown(number: int) -> Shown:
    """Returns a function and arguments; with the fault it gives something else.

    Either its jaxpr differs, or, where the compiler's part is wrong, what it computes.
    """
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    ones = np.ones(3, np.float32)
    cases: dict[int, Callable[[], Shown]] = {
        1: lambda: (grad(lambda x: jnp.sin(x) * x), (2.0,)),
        2: lambda: (grad(lambda y: (3.0 - y) ** 2), (1.0,)),
        3: lambda: (grad(_weighted_turn), (np.ones((2, 2, 2), np.float32),)),
        4: lambda: (grad(jnp.sin), (0.0,)),
        5: lambda: (grad(jnp.tanh), (0.5,)),
        6: lambda: (grad(lambda x: jnp.maximum(x, 0.0)), (0.0,)),
        7: lambda: (grad(lambda b: jnp.sum((square + b) ** 2)), (ones,)),
        8: lambda: (grad(lambda x: jnp.sum(jnp.cumsum(x) * square[0])), (ones,)),
        9: lambda: (grad(lambda x: jnp.where(x > 0, x, 2 * x)), (1.0,)),
        10: lambda: (grad(lambda x: x**3), (2.0,)),
        11: lambda: (vmap(lambda x: jnp.sum(x)), (square,)),
        12: lambda: (vmap(lambda x: square @ x), (square + 1,)),
        13: lambda: (
            vmap(lambda key: random.uniform(key, (2,))),
            (random.split(random.key(0), 3),),
        ),
        14: lambda: (
            vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)),
            (np.array([1.0, -1.0], np.float32),),
        ),
        15: lambda: (grad(_recurrent), (0.5,)),
        16: lambda: (grad(_ten_times_too_steep()), (1.0,)),
        17: lambda: (grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)))), (1.0,)),
        18: lambda: (jit(jnp.log1p), (np.float32(1e-10),)),
        19: lambda: (lambda x, y: jit(lambda x: x * 2)(x) * y, (1.0, jnp.bfloat16(1))),
        20: lambda: (jit(jnp.max), (-ones,)),
    }
    return cases[number]()
