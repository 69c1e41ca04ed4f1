"""`softmax`, which stands here because `random` draws with it and `nn` exports it.

In JAX: `jax/_src/nn/functions.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.core.array import Array
from minijax.core.state import state
from minijax.custom_derivatives import custom_jvp
from minijax.typing import ArrayLike

Axis = int | tuple[int, ...] | None


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """`exp(x) / sum(exp(x))` along `axis`: positive numbers that add up to 1.

    The maximum is subtracted first, so that the exponential cannot overflow. With the
    flag `jax_softmax_custom_jvp` the derivative is `y * (dx - sum(y * dx))`, which
    needs the result and nothing else; without it, that of the formula.

    Args:
        x: real numbers of any shape.
        axis: one axis or several over which the result adds up to 1; None for all.
        where: a mask that broadcasts against `x`; what it leaves out counts as minus
            infinity, and is 0 in the result.

    Returns:
        An array of the shape of `x`.
    """
    if state.softmax_custom_jvp:
        return _softmax(x, axis, where)
    return _softmax_formula(x, axis, where, -np.inf, lax.stop_gradient)


def _softmax_formula(
    x: ArrayLike, axis: Axis, where: ArrayLike | None, initial: ArrayLike, hold: Any
) -> Array:
    peak = jnp.max(x, axis, where=where, initial=initial, keepdims=True)
    kept = x if where is None else jnp.where(where, x, initial)
    weights = jnp.exp(kept - hold(peak))
    total = jnp.sum(weights, axis, where=where, keepdims=True)
    result = weights / total
    if where is not None:
        result = jnp.where(where, result, 0)
    return result


# Printed jaxprs show the name of this function: `custom_jvp_call[name=_softmax ...]`.
@partial(custom_jvp, nondiff_argnums=(1,))
def _softmax(
    x: ArrayLike,
    axis: Axis = -1,
    where: ArrayLike | None = None,
    initial: ArrayLike = -np.inf,
) -> Array:
    return _softmax_formula(x, axis, where, initial, lambda peak: peak)


@_softmax.defjvp
def _softmax_jvp(
    axis: Axis, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Array, Array]:
    x, where, initial = primals
    x_dot = tangents[0]
    y = _softmax(x, axis, where, initial)
    mean = (y * x_dot).sum(axis, where=where, keepdims=True)
    return y, y * (x_dot - mean)
