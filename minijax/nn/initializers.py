"""First values for the weights of a layer.

An initializer is a function `init(key, shape, dtype, out_sharding) -> Array`. `zeros`
and `ones` are initializers; the others take their settings first and return one:

    init = he_normal()
    weights = init(random.key(0), (784, 128))

The scaled ones keep the size of activations (or of gradients) the same from layer to
layer, by drawing numbers whose variance is `scale / fan`, where a fan is the number of
inputs or outputs that one unit has.

In JAX: `nn/initializers.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from minijax import numpy as jnp
from minijax import random
from minijax.core import dtypes, language
from minijax.core.array import Array
from minijax.numpy.boundaries import introduce
from minijax.primitives.shape.slicing import checked_size
from minijax.support import element_types
from minijax.typing import ArrayLike, DTypeLike

Axes = int | Sequence[int]
Mode = Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"]
Distribution = Literal["truncated_normal", "normal", "uniform"]

# Cutting a normal at two standard deviations narrows it to these, so that dividing by
# them restores the variance that was asked for: real, and complex cut at modulus 2.
TRUNCATED_STDDEV = 0.87962566103423978
COMPLEX_TRUNCATED_STDDEV = 0.95311164380491208


@runtime_checkable
class Initializer(Protocol):
    """What every initializer can be called with, and gives back."""

    def __call__(
        self,
        key: Array,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: Any = None,
    ) -> Array:
        """Returns an array of `shape` and `dtype`, drawn with `key`."""


def _initializer(draw: Callable[..., Array], default: DTypeLike | None) -> Initializer:
    """An initializer that gives `draw(key, shape, dtype, out_sharding)`; its dtype is
    `default` if none is given."""

    def init(
        key: Array,
        shape: Sequence[int],
        dtype: DTypeLike | None = default,
        out_sharding: Any = None,
    ) -> Array:
        dtype = dtypes.default_float_dtype() if dtype is None else dtype
        return draw(key, shape, dtype, out_sharding)

    return init


def _without_settings(draw: Callable[..., Array]) -> Callable[..., Array]:
    return introduce(_initializer(draw, None), draw)


@_without_settings
def zeros(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
    """An initializer that gives zeros (for biases, say); `key` is ignored."""
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


@_without_settings
def ones(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
    """An initializer that gives ones (for scales, say); `key` is ignored."""
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def _scaled(
    sampler: Callable[..., Array], scale: ArrayLike, default: DTypeLike | None
) -> Initializer:
    """An initializer that gives what a sampler draws, times `scale`."""

    def draw(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
        samples = sampler(key, shape, dtype, out_sharding=out_sharding)
        return samples * jnp.array(scale, dtype)

    return _initializer(draw, default)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Returns an initializer that gives `value` everywhere.

    Args:
        value: a number, or an array that broadcasts to the shape asked for.
        dtype: of the result, if the initializer is not told one; the default float.
    """

    def draw(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
        return jnp.full(shape, value, dtype=dtype, out_sharding=out_sharding)

    return _initializer(draw, dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Returns an initializer that draws uniformly from [0, `scale`)."""

    return _scaled(random.uniform, scale, dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Returns an initializer that draws normals of mean 0 and deviation `stddev`."""

    return _scaled(random.normal, stddev, dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Returns an initializer that draws from a normal cut at `lower` and `upper`.

    Args:
        stddev: the deviation of the normal before it is cut.
        dtype: of the result, if the initializer is not told one; the default float.
        lower: the lower end, in units of `stddev`.
        upper: the upper end, in units of `stddev`.
    """

    def cut(key: Array, shape: Sequence[int], dtype: Any, **where: Any) -> Array:
        return random.truncated_normal(key, lower, upper, shape, dtype, **where)

    return _scaled(cut, stddev, dtype)


def _size(shape: Sequence[int], axes: Axes) -> int:
    return math.prod([checked_size(axis, shape) for axis in np.atleast_1d(axes)])


def _compute_fans(
    shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """Returns how many inputs and how many outputs one unit of the weights has.

    Axes that are neither input, output nor batch are the window of a convolution, and
    count for both.
    """
    if len(shape) <= 1 and isinstance(in_axis, int) and in_axis == -2:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional "
            "weights tensor with default in_axis. Give weights of at least two axes, "
            "or specify in_axis explicitly."
        )
    inputs = _size(shape, in_axis)
    outputs = _size(shape, out_axis)
    window = math.prod(shape) / inputs / outputs / _size(shape, batch_axis)
    return inputs * window, outputs * window


def _complex_uniform(key: Array, shape: Sequence[int], dtype: Any) -> Array:
    """Draws uniformly from the disk whose variance is 1."""
    key_r, key_theta = random.split(key)
    real = np.array(0, dtype).real.dtype
    dtype = element_types.to_complex_dtype(real)
    r = jnp.sqrt(2 * random.uniform(key_r, shape, real)).astype(dtype)
    theta = 2 * np.pi * random.uniform(key_theta, shape, real).astype(dtype)
    return r * jnp.exp(1j * theta)


def _complex_truncated_normal(
    key: Array, upper: float, shape: Sequence[int], dtype: Any
) -> Array:
    """Draws from the complex normal of variance 1, cut at modulus `upper`."""
    key_r, key_theta = random.split(key)
    real = np.array(0, dtype).real.dtype
    dtype = element_types.to_complex_dtype(real)
    mass = 1 - jnp.exp(jnp.array(-(upper**2), dtype))
    t = mass * random.uniform(key_r, shape, real).astype(dtype)
    r = jnp.sqrt(-jnp.log(1 - t))
    theta = 2 * np.pi * random.uniform(key_theta, shape, real).astype(dtype)
    return r * jnp.exp(1j * theta)


def _denominator(mode: str, fan_in: float, fan_out: float) -> float:
    match mode:
        case "fan_in":
            return fan_in
        case "fan_out":
            return fan_out
        case "fan_avg":
            return (fan_in + fan_out) / 2
        case "fan_geo_avg":
            return (fan_in * fan_out) ** 0.5
    raise ValueError(
        f"invalid mode for variance scaling initializer: {mode}; write one of "
        "'fan_in', 'fan_out', 'fan_avg', 'fan_geo_avg'."
    )


def variance_scaling(
    scale: float,
    mode: Mode,
    distribution: Distribution,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Returns an initializer whose variance is `scale` divided by a fan.

    All the named schemes below are this one with other settings.

    Args:
        scale: a positive number; 1 for linear layers, 2 before a `relu`.
        mode: the fan to divide by: the number of inputs, of outputs, or their
            arithmetic or geometric mean.
        distribution: `"truncated_normal"` (cut at two deviations), `"normal"` or
            `"uniform"` (around 0).
        in_axis: the axis, or axes, of the weights along the inputs.
        out_axis: the axis, or axes, along the outputs.
        batch_axis: axes that count for neither.
        dtype: of the result, if the initializer is not told one; the default float.

    Raises:
        ValueError: (by the initializer) an unknown `mode` or `distribution`, or weights
            of fewer than two axes with the default `in_axis`.
    """

    def draw(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
        shape = language.canonicalize_shape(shape)
        real = dtypes.issubdtype(dtype, np.floating)
        fan_in, fan_out = _compute_fans(shape, in_axis, out_axis, batch_axis)
        denominator = _denominator(mode, fan_in, fan_out)
        variance = jnp.array(scale / denominator, dtype=dtype)
        if distribution == "truncated_normal" and real:
            stddev = jnp.sqrt(variance) / jnp.array(TRUNCATED_STDDEV, dtype)
            samples = random.truncated_normal(
                key, -2, 2, shape, dtype, out_sharding=out_sharding
            )
            return samples * stddev
        if distribution == "truncated_normal":
            stddev = jnp.sqrt(variance) / jnp.array(COMPLEX_TRUNCATED_STDDEV, dtype)
            return _complex_truncated_normal(key, 2, shape, dtype) * stddev
        if distribution == "normal":
            samples = random.normal(key, shape, dtype, out_sharding=out_sharding)
            return samples * jnp.sqrt(variance)
        if distribution == "uniform" and real:
            samples = random.uniform(key, shape, dtype, -1, out_sharding=out_sharding)
            return samples * jnp.sqrt(3 * variance)
        if distribution == "uniform":
            return _complex_uniform(key, shape, dtype) * jnp.sqrt(variance)
        raise ValueError(
            f"invalid distribution for variance scaling initializer: {distribution}; "
            "write one of 'truncated_normal', 'normal', 'uniform'."
        )

    return _initializer(draw, dtype)


def _scheme(
    settings: Callable[[], tuple[float, Mode, Distribution]],
) -> Callable[..., Initializer]:
    """A function of axes and dtype: `variance_scaling` with what `settings` returns."""

    def scheme(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(*settings(), in_axis, out_axis, batch_axis, dtype)

    return introduce(scheme, settings)


@_scheme
def glorot_uniform() -> tuple[float, Mode, Distribution]:
    """Uniform, variance 2 / (inputs + outputs), after Glorot and Bengio (2010).

    Also known as Xavier; a compromise that suits activations and gradients alike.
    """
    return 1.0, "fan_avg", "uniform"


xavier_uniform = glorot_uniform


@_scheme
def glorot_normal() -> tuple[float, Mode, Distribution]:
    """Truncated normal, variance 2 / (inputs + outputs), Glorot and Bengio (2010)."""
    return 1.0, "fan_avg", "truncated_normal"


xavier_normal = glorot_normal


@_scheme
def lecun_uniform() -> tuple[float, Mode, Distribution]:
    """Uniform, variance 1 / inputs, after "Efficient BackProp" (LeCun et al., 1998)."""
    return 1.0, "fan_in", "uniform"


@_scheme
def lecun_normal() -> tuple[float, Mode, Distribution]:
    """Truncated normal, variance 1 / inputs, after LeCun et al. (1998)."""
    return 1.0, "fan_in", "truncated_normal"


@_scheme
def he_uniform() -> tuple[float, Mode, Distribution]:
    """Uniform, variance 2 / inputs, after He et al. (2015), also known as Kaiming.

    The 2 makes up for the half of its inputs that a `relu` throws away.
    """
    return 2.0, "fan_in", "uniform"


kaiming_uniform = he_uniform


@_scheme
def he_normal() -> tuple[float, Mode, Distribution]:
    """Truncated normal, variance 2 / inputs, after He et al. (2015)."""
    return 2.0, "fan_in", "truncated_normal"


kaiming_normal = he_normal


_NO_SHARDING = "{} takes no `out_sharding`: place the result by `device_put`."


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Returns an initializer that gives `scale` times orthonormal rows or columns.

    Saxe et al. (2014). The weights are a matrix whose columns are `column_axis` and
    whose rows are all other axes; the smaller of both is orthonormal.

    The initializer raises ValueError for a shape of fewer than two axes.
    """

    def draw(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
        if out_sharding is not None:
            raise NotImplementedError(_NO_SHARDING.format("orthogonal"))
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, dtype=dtype)
        columns = checked_size(column_axis, shape)
        rows = math.prod(shape) // columns
        q = random.orthogonal(key, rows, (), dtype, columns)
        q = jnp.reshape(q, (*np.delete(shape, column_axis), columns))
        return jnp.array(scale, dtype) * jnp.moveaxis(q, -1, column_axis)

    return _initializer(draw, dtype)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Returns an initializer of kernels [*space, in, out], zero but in their middle.

    There stands an orthogonal matrix, so that a convolution keeps norms: Xiao et al.
    (2018). The initializer raises ValueError unless space has one to three axes and
    in <= out.
    """
    inner = orthogonal(scale, column_axis, dtype)

    def draw(key: Array, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Array:
        if out_sharding is not None:
            raise NotImplementedError(_NO_SHARDING.format("delta_orthogonal"))
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                "Delta orthogonal initializer requires a 3D, 4D or 5D shape."
            )
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`.")
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        matrix = inner(key, shape[-2:], dtype)
        return jnp.zeros(shape, dtype=dtype).at[middle].set(matrix)

    return _initializer(draw, dtype)
