"""Activations, the softmax family and one-hot codes.

The functions are thin: each is one formula over `minijax.numpy`, under the same `jit`
boundary as in JAX, so that a printed jaxpr shows its name (`jit[name=silu ...]`)
instead of its pieces. Where differentiating the formula would be wrong or wasteful
(`relu` at zero, `softmax` everywhere), the function brings its own derivative.

In JAX: `nn/functions.py`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy import promotion
from minijax.numpy.index.indicators import one_hot as one_hot
from minijax.numpy.reduce.moments import count_elements
from minijax.numpy.reduce.softmax_family import Axis
from minijax.numpy.reduce.softmax_family import softmax as softmax
from minijax.primitives.shape.slicing import checked_size
from minijax.scipy.special import logsumexp
from minijax.typing import ArrayLike

# -- piecewise linear ---------------------------------------------------------------


@jit
def identity(x: ArrayLike) -> Array:
    """Returns `x` unchanged, as an array: the activation of a layer that has none."""
    return promotion.ensure_arraylike("identity", x)


@custom_jvp
@jit
def relu(x: ArrayLike) -> Array:
    """Rectified linear unit, `max(x, 0)` elementwise.

    The derivative at 0 is 0 (the formula alone would give 1/2, since `maximum` splits a
    tie evenly), as in "Numerical influence of ReLU'(0) on backpropagation" (Bertoin et
    al., 2021).

    Args:
        x: real numbers of any shape.

    Returns:
        An array of the shape and dtype of `x`.
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, y, x: lax.select(x > 0, t, lax.full_like(t, 0)))


@custom_jvp
@jit
def relu6(x: ArrayLike) -> Array:
    """Rectified linear unit cut off at 6, `min(max(x, 0), 6)` elementwise.

    The derivative is 1 strictly between 0 and 6, and 0 elsewhere, corners included.
    From "MobileNets" (Howard et al., 2017): bounded values suit fixed-point arithmetic.
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, y, x: lax.select((x > 0) & (x < 6), t, lax.full_like(t, 0)))


@jit
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """`x` where it is not negative, and `negative_slope * x` elsewhere.

    Args:
        x: real numbers of any shape.
        negative_slope: a number, or an array that broadcasts against `x`.
    """
    x = promotion.ensure_arraylike("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@jit
def hard_tanh(x: ArrayLike) -> Array:
    """`x` clipped to [-1, 1]: a tanh of three straight pieces."""
    x = promotion.ensure_arraylike("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jit
def hard_sigmoid(x: ArrayLike) -> Array:
    """`relu6(x + 3) / 6`: a sigmoid of three straight pieces."""
    return relu6(x + 3.0) / 6.0


@jit
def hard_silu(x: ArrayLike) -> Array:
    """`x * hard_sigmoid(x)`, also known as hard swish.

    From "Searching for MobileNetV3" (Howard et al., 2019).
    """
    x = promotion.ensure_arraylike("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@jit
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, 1 above 1, `(x + 1) / 2` between: the slope of `sparse_plus`."""
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


# -- smooth -------------------------------------------------------------------------


@partial(jit, inline=True)
def sigmoid(x: ArrayLike) -> Array:
    """Logistic function, `1 / (1 + exp(-x))` elementwise; safe for large |x|."""
    return lax.logistic(x)


@jit
def softplus(x: ArrayLike) -> Array:
    """`log(1 + exp(x))` elementwise, without overflow for large `x`."""
    return jnp.logaddexp(x, 0)


@jit
def log_sigmoid(x: ArrayLike) -> Array:
    """`log(sigmoid(x))`, computed as `-softplus(-x)`: never the log of 0."""
    return -softplus(-promotion.ensure_arraylike("log_sigmoid", x))


@jit
def silu(x: ArrayLike) -> Array:
    """Sigmoid-weighted linear unit, `x * sigmoid(x)`, also known as swish.

    From "Gaussian Error Linear Units" (Hendrycks and Gimpel, 2016) and "Searching for
    Activation Functions" (Ramachandran et al., 2017).
    """
    x = promotion.ensure_arraylike("silu", x)
    return x * sigmoid(x)


swish = silu


@jit
def mish(x: ArrayLike) -> Array:
    """`x * tanh(softplus(x))`, from "Mish" (Misra, 2019)."""
    x = promotion.ensure_arraylike("mish", x)
    return x * jnp.tanh(softplus(x))


@jit
def soft_sign(x: ArrayLike) -> Array:
    """`x / (|x| + 1)`: like tanh, with tails that fall off as 1/x."""
    x = promotion.ensure_arraylike("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@jit
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """`(x + sqrt(x**2 + b)) / 2`, a softplus without exponentials (Barron, 2021).

    Args:
        x: real numbers of any shape.
        b: not negative; how round the corner at 0 is. 0 gives `relu`; 4 gives the
            curvature of `softplus`.
    """
    x, b = promotion.ensure_arraylike("squareplus", x, b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@jit
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, `x` from 1 on, and the parabola `(x + 1)**2 / 4` between."""
    x = promotion.ensure_arraylike("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jit
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Exponential linear unit: `x` if positive, else `alpha * (exp(x) - 1)`.

    The exponential sees 0 in place of positive numbers: otherwise it would overflow in
    the branch that is not used, and turn the gradient into NaN.
    """
    x = promotion.ensure_arraylike("elu", x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jit
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Smooth `elu`: `max(x, 0) + alpha * expm1(min(x, 0) / alpha)`.

    From "Continuously Differentiable Exponential Linear Units" (Barron, 2017).
    """
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@jit
def selu(x: ArrayLike) -> Array:
    """`scale * elu(x, alpha)` with the two constants that keep mean 0 and variance 1.

    From "Self-Normalizing Neural Networks" (Klambauer et al., 2017).
    """
    alpha = 1.6732632423543772848170429916717
    scale = 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Gaussian error linear unit: `x` times the probability that a normal is below `x`.

    Args:
        x: real numbers of any shape; integers become floats.
        approximate: take the tanh formula of Hendrycks and Gimpel (2016) instead of the
            error function; off by less than 5e-4.
    """
    [x] = promotion.promote_args_inexact("gelu", x)
    if approximate:
        sqrt_2_over_pi = np.sqrt(2 / np.pi).astype(x.dtype)
        inner = sqrt_2_over_pi * (x + 0.044715 * (x**3))
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    sqrt_half = np.sqrt(0.5).astype(x.dtype)
    return jnp.array(0.5 * x * lax.erfc(-x * sqrt_half), dtype=x.dtype)


@partial(jit, static_argnames=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit: the first half of `axis`, times the sigmoid of the second.

    From "Language Modeling with Gated Convolutional Networks" (Dauphin et al., 2017).

    Args:
        x: an array whose `axis` has an even size.
        axis: the axis to halve.

    Raises:
        AssertionError: the size of `axis` is odd.
    """
    x = promotion.ensure_arraylike("glu", x)
    size = checked_size(axis, x.shape)
    # An AssertionError, since that is what callers of JAX catch.
    assert size % 2 == 0, (
        f"glu halves axis {axis}, so its size must be divisible by 2, but it is {size}."
    )
    value, gate = jnp.split(x, 2, axis)
    return value * sigmoid(gate)


@custom_jvp
@jit
def log1mexp(x: ArrayLike) -> Array:
    """`log(1 - exp(-x))` for positive `x`, accurate at both ends.

    Below log 2 the difference is taken by `expm1`, above it the logarithm by `log1p`
    ("Accurately computing log(1 - exp(-|a|))", Maechler, 2012).
    """
    x = promotion.ensure_arraylike("log1mexp", x)
    switch = jnp.log(2.0)
    return jnp.where(x < switch, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda t, y, x: t / jnp.expm1(x))


# -- the softmax family -------------------------------------------------------------


@partial(jit, static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, without computing `softmax`.

    Use it for cross entropy: where `softmax` rounds to 0, its logarithm would be minus
    infinity, while this stays finite.

    Args:
        x: real numbers of any shape.
        axis: one axis or several; None for all.
        where: a mask that broadcasts against `x`; what it leaves out is minus infinity
            in the result.
    """
    x = promotion.ensure_arraylike("log_softmax", x)
    peak = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    kept = x if where is None else jnp.where(where, x, -np.inf)
    shifted = kept - lax.stop_gradient(peak)
    log_total = jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    result = shifted - log_total
    if where is not None:
        return jnp.where(where, result, -np.inf)
    return result


@partial(jit, static_argnames=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike,
    axis: Axis = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """`log(mean(exp(x)))` along `axis`, without overflow.

    Args:
        x: real numbers of any shape.
        axis: one axis or several; None for all.
        where: a mask that broadcasts against `x`: the mean is over what it keeps.
        keepdims: keep the reduced axes, with size 1.
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    x = promotion.ensure_arraylike("logmeanexp", x)
    return total - jnp.log(count_elements(x, axis, keepdims, where, total.dtype))


@partial(jit, static_argnames=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """`(x - mean) / sqrt(variance + epsilon)` along `axis`.

    Args:
        x: real numbers of any shape.
        axis: the axes over which mean and variance are taken; None for all.
        mean: computed from `x` when not given.
        variance: computed from `x` when not given.
        epsilon: added to the variance, against division by 0.
        where: a mask that broadcasts against `x`, for computing mean and variance.
        algorithm: `"fast"` takes the variance as `mean(x**2) - mean(x)**2`, one pass
            over the data that may lose digits; `"stable"` takes `mean((x - mean)**2)`.

    Raises:
        ValueError: `algorithm` is neither of the two.
    """
    promotion.check_arraylike("standardize", x)
    given = [value for value in (mean, variance, where) if value is not None]
    promotion.check_arraylike("standardize", *given)
    mean = jnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    if variance is None:
        if algorithm == "stable":
            squares = jnp.square(jnp.subtract(x, mean))
            variance = jnp.mean(squares, axis, keepdims=True, where=where)
        elif algorithm == "fast":
            squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            # Rounding can take the difference below 0, whose square root is NaN.
            variance = jnp.clip(squares - jnp.square(mean), 0)
        else:
            raise ValueError(
                f"Unknown algorithm '{algorithm}': standardize knows 'fast' and "
                "'stable'."
            )
    return jnp.subtract(x, mean) * lax.rsqrt(variance + epsilon)
