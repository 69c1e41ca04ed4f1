"""Networks as pairs of functions, `init_fun` and `apply_fun`.

`init_fun(key, input_shape)` returns the shape of the output and the parameters;
`apply_fun(params, inputs, **kwargs)` returns the output. A size of -1 in an input's
shape stands for a batch of any size. Keyword `rng` is a key, for `Dropout`.

In JAX: `example_libraries/stax.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax import lax, nn, random
from minijax import numpy as jnp
from minijax.compile.jit_api import eval_shape
from minijax.nn.initializers import glorot_normal, normal, ones, zeros
from minijax.values.ref_avals import ShapeDtypeStruct

glorot = glorot_normal
randn = normal
elu, gelu, leaky_relu, relu, selu = nn.elu, nn.gelu, nn.leaky_relu, nn.relu, nn.selu
log_softmax, sigmoid, softmax = nn.log_softmax, nn.sigmoid, nn.softmax
softplus, standardize = nn.softplus, nn.standardize
logsoftmax = log_softmax
Layer = tuple[Callable[..., Any], Callable[..., Any]]


def _output_shape(
    function: Callable[..., Any], shape: Sequence[int], place: int, out_place: int
) -> tuple[int, ...]:
    """The shape of function(zeros(shape)), where a batch, at `place`, may be -1."""
    batch = shape[place]
    known = tuple(abs(s) if i == place else s for i, s in enumerate(shape))
    out = list(eval_shape(function, ShapeDtypeStruct(known, "float32")).shape)
    out[out_place] = batch
    return tuple(out)


def Dense(
    out_dim: int, W_init: Callable = glorot_normal(), b_init: Callable = normal()
) -> Layer:
    """`inputs @ W + b`, with `out_dim` outputs."""

    def init_fun(rng: Any, input_shape: tuple) -> tuple:
        k1, k2 = random.split(rng)
        weights = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), weights

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolving(name: str, product: Callable[..., Any]) -> Callable[..., Layer]:
    def GeneralLayer(
        dimension_numbers: tuple[str, str, str],
        out_chan: int,
        filter_shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        padding: Any = "VALID",
        W_init: Callable | None = None,
        b_init: Callable = normal(1e-6),
    ) -> Layer:
        """A convolution; letters name the axes of input, filter and output."""
        inputs_are, filter_is, out_is = dimension_numbers
        W_init = W_init or glorot_normal(filter_is.index("I"), filter_is.index("O"))
        steps = strides or (1,) * len(filter_shape)

        def convolve(x: Any, W: Any) -> Any:
            return product(x, W, steps, padding, dimension_numbers=dimension_numbers)

        def init_fun(rng: Any, input_shape: tuple) -> tuple:
            sizes = iter(filter_shape)
            known = {"O": out_chan, "I": input_shape[inputs_are.index("C")]}
            kernel = [known[c] if c in known else next(sizes) for c in filter_is]
            bias = [out_chan if c == "C" else 1 for c in out_is]
            k1, k2 = random.split(rng)
            W, b = W_init(k1, kernel), b_init(k2, bias)
            places = inputs_are.index("N"), out_is.index("N")
            return _output_shape(lambda x: convolve(x, W), input_shape, *places), (W, b)

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            W, b = params
            return convolve(inputs, W) + b

        return init_fun, apply_fun

    GeneralLayer.__name__ = GeneralLayer.__qualname__ = name
    return GeneralLayer


GeneralConv = _convolving("GeneralConv", lax.conv_general_dilated)
# It enlarges: the transpose of a convolution with strides.
GeneralConvTranspose = _convolving("GeneralConvTranspose", lax.conv_transpose)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | tuple[int, ...] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable = zeros,
    gamma_init: Callable = ones,
) -> Layer:
    """Mean 0 and variance 1 over `axis` of each batch; then `gamma * x + beta`."""
    axes = (axis,) if isinstance(axis, int) else axis

    def init_fun(rng: Any, input_shape: tuple) -> tuple:
        shape = tuple(d for i, d in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        return input_shape, (beta, gamma_init(k2, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        z = nn.standardize(x, axes, epsilon=epsilon)
        z = gamma[spread] * z if scale else z
        return z + beta[spread] if center else z

    return init_fun, apply_fun


def _unchanged(rng: Any, input_shape: Any) -> tuple:
    return input_shape, ()


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A function of each element, without parameters."""
    return _unchanged, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Exp, Tanh, Softplus, Sigmoid = map(elementwise, (jnp.exp, jnp.tanh, softplus, sigmoid))
Relu, Elu, LeakyRelu = map(elementwise, (relu, elu, leaky_relu))
Selu, Gelu = map(elementwise, (selu, gelu))
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)


def _pooling(reducer: Any, start: float, mean: bool = False) -> Callable[..., Layer]:
    def PoolingLayer(
        window_shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """Windows over all axes but batch and channel, which `spec` names N and C."""
        rank = len(window_shape) + 2
        others = (spec.index("N"), spec.index("C")) if spec else (0, rank - 1)
        windows, steps = list(window_shape), list(strides or [1] * len(window_shape))
        for i in sorted(others):
            windows.insert(i, 1)
            steps.insert(i, 1)

        def pool(x: Any) -> Any:
            return lax.reduce_window(x, start, reducer, windows, steps, padding)

        def init_fun(rng: Any, input_shape: tuple) -> tuple:
            return _output_shape(pool, input_shape, others[0], others[0]), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            if not mean:
                return pool(inputs)
            shape = [1 if i in others else d for i, d in enumerate(inputs.shape)]
            return pool(inputs) / pool(jnp.ones(shape, inputs.dtype))

        return init_fun, apply_fun

    return PoolingLayer


MaxPool = _pooling(lax.max, -math.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, mean=True)

Flatten = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
Identity = elementwise(lambda x: x)


def FanOut(num: int) -> Layer:
    """The input as a list, `num` times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs of a list, one behind the other along `axis`."""

    def init_fun(rng: Any, input_shape: list) -> tuple:
        out = list(input_shape[0])
        out[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(out), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each element with probability `rate`; all of them in another mode.

    `apply_fun` needs the keyword `rng`, else ValueError.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout draws numbers: call apply_fun(params, inputs, rng=key), with "
                "a key such as `jax.random.key(0)`."
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _unchanged, apply_fun


def _keys(kwargs: dict[str, Any], count: int) -> Any:
    rng = kwargs.pop("rng", None)
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """One layer after the other."""

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        params = []
        for init, _ in layers:
            rng, own = random.split(rng)
            input_shape, param = init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(layers))
        for (_, apply), param, rng in zip(layers, params, keys, strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Each layer of its own input, of a list (`FanOut`), to a list (`FanInSum`)."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        made = zip(layers, keys, input_shape, strict=True)
        return zip(*(init(key, shape) for (init, _), key, shape in made), strict=True)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> list:
        keys = _keys(kwargs, len(layers))
        given = zip(layers, params, inputs, keys, strict=True)
        return [apply(p, x, rng=key, **kwargs) for (_, apply), p, x, key in given]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer that `make_layer` makes of the input's shape."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](
            params, inputs, **kwargs
        ),
    )
