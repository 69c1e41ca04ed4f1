"""Convolutions: one primitive with strides, padding, dilations and groups.

`conv_general_dilated` slides a kernel over an image of any number of dimensions. It is
linear in both operands, and the transpose in either is another convolution: of the
cotangent with the reversed kernel, or of the image with the cotangent.

In JAX: `lax/convolution.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules, shaping
from minijax.core.dot import precision_attribute
from minijax.core.language import ShapedArray, get_aval
from minijax.primitives.elementwise import complex_numbers
from minijax.primitives.linear import products
from minijax.primitives.linear.convolution_shapes import (
    ConvDimensionNumbers,
    Pads,
    conv_dimension_numbers,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    dilated_shape,
    padtype_to_pads,
    windows_of,
)
from minijax.primitives.linear.matmul_precision import canonicalize_precision
from minijax.primitives.shape import broadcasting, rearranging
from minijax.primitives.shape.rearranging import split_axis
from minijax.primitives.shape.squeezing import indices_of


def _conv_shape(lhs: ShapedArray, rhs: ShapedArray, **params) -> rules.Shape:
    name = "conv_general_dilated"
    window_strides, padding = params["window_strides"], params["padding"]
    feature_group_count = params["feature_group_count"]
    batch_group_count = params["batch_group_count"]
    if lhs.ndim != rhs.ndim:
        raise ValueError(
            f"{name} lhs and rhs must have the same number of dimensions, but got "
            f"{lhs.shape} and {rhs.shape}."
        )
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    for what, count in (
        ("feature_group_count", feature_group_count),
        ("batch_group_count", batch_group_count),
    ):
        if not count > 0:
            raise ValueError(f"{name} {what} must be a positive integer, got {count}.")
        if rhs.shape[rhs_spec[0]] % count:
            raise ValueError(
                f"{name} rhs output feature dimension size must be a multiple of "
                f"{what}, but {rhs.shape[rhs_spec[0]]} is not a multiple of {count}."
            )
    features = lhs.shape[lhs_spec[1]]
    if features % feature_group_count:
        raise ValueError(
            f"{name} feature_group_count must divide lhs feature dimension size, but "
            f"{feature_group_count} does not divide {features}."
        )
    if features // feature_group_count != rhs.shape[rhs_spec[1]]:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must "
            "equal the rhs input feature dimension size, but "
            f"{features} // {feature_group_count} != {rhs.shape[rhs_spec[1]]}."
        )
    if lhs.shape[lhs_spec[0]] % batch_group_count:
        raise ValueError(
            f"{name} batch_group_count must divide lhs batch dimension size, but "
            f"{batch_group_count} does not divide {lhs.shape[lhs_spec[0]]}."
        )
    if batch_group_count > 1 and feature_group_count > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batch_group_count} and "
            f"feature_group_count={feature_group_count}"
        )
    if len(window_strides) != lhs.ndim - 2 or min(window_strides, default=1) <= 0:
        raise ValueError(
            f"{name} window_strides must have a positive number for each of the "
            f"window's {lhs.ndim - 2} dimensions, but got {window_strides}"
        )
    lhs_shape = [lhs.shape[d] for d in lhs_spec]
    rhs_shape = [rhs.shape[d] for d in rhs_spec]
    image = [*lhs_shape[:2], *dilated_shape(lhs_shape[2:], params["lhs_dilation"])]
    kernel = [*rhs_shape[:2], *dilated_shape(rhs_shape[2:], params["rhs_dilation"])]
    shape = conv_shape_tuple(image, kernel, window_strides, padding, batch_group_count)
    return tuple(shape[list(out_spec).index(d)] for d in range(lhs.ndim))


def _conv_dtype(lhs: ShapedArray, rhs: ShapedArray, *, preferred_element_type, **_):
    if lhs.dtype != rhs.dtype and preferred_element_type is None:
        raise TypeError(
            "lax.conv_general_dilated requires arguments to have the same dtypes, got "
            f"{lhs.dtype}, {rhs.dtype}. Convert one of them with "
            "`lax.convert_element_type`."
        )
    if preferred_element_type is None:
        return lhs.dtype
    return np.dtype(preferred_element_type)


# ----------------------------------------------------------------------------------
# The block
# ----------------------------------------------------------------------------------


def _conv_meaning(lhs, rhs, *, preferred_element_type, **params) -> np.ndarray:
    """Every window of the image with the kernel, group by group."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    batch_group_count = params["batch_group_count"]
    image, kernel = np.transpose(lhs, lhs_spec), np.transpose(rhs, rhs_spec)
    windows = windows_of(
        image.astype(np.result_type(image.dtype, kernel.dtype)),
        0,
        window_dimensions=(1, 1, *kernel.shape[2:]),
        window_strides=(1, 1, *params["window_strides"]),
        padding=((0, 0), (0, 0), *params["padding"]),
        base_dilation=(1, 1, *params["lhs_dilation"]),
        window_dilation=(1, 1, *params["rhs_dilation"]),
    )
    weights = kernel.reshape(*kernel.shape[:2], math.prod(kernel.shape[2:]))
    groups = params["feature_group_count"] * batch_group_count
    parts = []
    for part, share in zip(
        np.split(windows, groups, axis=0 if batch_group_count > 1 else 1),
        np.split(weights, groups),
    ):
        # (batch, inputs, *space, entries) and (outputs, inputs, entries)
        product = np.tensordot(part, share, ((1, part.ndim - 1), (1, 2)))
        parts.append(np.moveaxis(product, -1, 1))
    out = np.concatenate(parts, axis=1)
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return np.transpose(out, np.argsort(out_spec)).astype(dtype)


conv_general_dilated_p = rules.standard_primitive(
    "conv_general_dilated", _conv_shape, _conv_dtype, meaning=_conv_meaning
)


def _swapped(spec: Sequence[int]) -> tuple[int, ...]:
    """A spec with its first two entries (batch and feature, say) exchanged."""
    return (spec[1], spec[0], *spec[2:])


def _axis_into(source: int, target: int, x: Any) -> Any:
    """Multiply axis `source` into axis `target`, counted without the source."""
    shape = get_aval(x).shape
    order = [d for d in range(len(shape)) if d != source]
    new_shape = [shape[d] for d in order]
    new_shape[target] *= shape[source]
    order.insert(target, source)
    return shaping.reshape(x, tuple(new_shape), tuple(order))


def _axis_behind_groups(source: int, target: int, groups: int, x: Any) -> Any:
    """`_axis_into`, where `target` is in groups: these stay outermost."""
    x = split_axis(x, target + (source <= target), groups)
    x = _axis_into(source + (target < source), target + 1, x)
    return _axis_into(target, target, x)


def transposed_pads(sizes: Sequence[Sequence[int]], padding: Pads) -> Pads:
    """The padding with which a cotangent gives back windows' inputs.

    `sizes` are those of input, window and result, with dilations (of the result: the
    strides).
    """
    pads = []
    for size, width, length, (low, _) in zip(*sizes, padding):
        before = width - low - 1
        pads.append((before, size + width - 1 - length - before))
    return tuple(pads)


def _kernel_pads(sizes: Sequence[Sequence[int]], padding: Pads) -> Pads:
    """The padding with which image and cotangent give the kernel's cotangent."""
    return tuple(
        (low, length - size + width - low - 1)
        for size, width, length, (low, _) in zip(*sizes, padding)
    )


def _as_dtype(x, dtype) -> Any:
    return x if get_aval(x).dtype == dtype else shaping.convert_element_type(x, dtype)


def _sizes(x: Any, spec: Sequence[int]) -> list[int]:
    shape = x.shape if hasattr(x, "shape") else get_aval(x).shape
    return [shape[d] for d in spec[2:]]


def _spread_sizes(ct: Any, lhs: Any, rhs: Any, params: dict[str, Any]) -> list[Any]:
    """The sizes in space of image, kernel and result, with their dilations."""
    factors = (params["lhs_dilation"], params["rhs_dilation"], params["window_strides"])
    return [
        dilated_shape(_sizes(x, spec), factor)
        for x, spec, factor in zip((lhs, rhs, ct), params["dimension_numbers"], factors)
    ]


def _transpose_image(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    batches = params["batch_group_count"]
    groups = max(params["feature_group_count"], batches)
    changed = {
        "window_strides": params["lhs_dilation"],
        "padding": transposed_pads(
            _spread_sizes(ct, lhs, rhs, params), params["padding"]
        ),
        "lhs_dilation": params["window_strides"],
        "dimension_numbers": ConvDimensionNumbers(
            out_spec, _swapped(rhs_spec), lhs_spec
        ),
        "feature_group_count": groups,
        "batch_group_count": 1,
        "out_sharding": None,
    }
    if groups > 1:
        # The groups move from the kernel's output features to its input features.
        rhs = _axis_into(rhs_spec[0], rhs_spec[1], split_axis(rhs, rhs_spec[0], groups))
    reversed_kernel = rearranging.rev(rhs, tuple(rhs_spec[2:]))
    kernel = _as_dtype(reversed_kernel, get_aval(ct).dtype)
    out = conv_general_dilated(ct, kernel, **(params | changed))
    out = _as_dtype(out, lhs.aval.dtype)
    if batches > 1:
        out = split_axis(out, lhs_spec[1], batches)
        out = _axis_into(lhs_spec[1], lhs_spec[0], out)
    return out


def _transpose_kernel(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    if get_aval(ct).size == 0:
        return None
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    cut = rhs.aval.cut  # what cuts the batch is summed over
    changed = {
        "window_strides": params["rhs_dilation"],
        "padding": _kernel_pads(_spread_sizes(ct, lhs, rhs, params), params["padding"]),
        "rhs_dilation": params["window_strides"],
        "dimension_numbers": ConvDimensionNumbers(
            _swapped(lhs_spec), _swapped(out_spec), _swapped(rhs_spec)
        ),
        # Groups of features become groups of the batch, and the other way round.
        "feature_group_count": params["batch_group_count"],
        "batch_group_count": params["feature_group_count"],
        "out_sharding": cut if cut and cut.mesh._any_axis_explicit else None,
    }
    image = _as_dtype(lhs, get_aval(ct).dtype)
    out = conv_general_dilated(image, ct, **(params | changed))
    return _as_dtype(out, rhs.aval.dtype)


rules.def_bilinear(conv_general_dilated_p, _transpose_image, _transpose_kernel)


@conv_general_dilated_p.def_batch
def _conv_batch(axis_data, args, dims, **params) -> tuple:
    """The batch axis joins an axis that the operation treats alike.

    An image's joins its batch; a kernel's the output features; both together become
    groups. Existing groups must stay outermost.
    """
    (lhs, rhs), (lhs_dim, rhs_dim) = args, dims
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    size = axis_data.size
    if size == 0:
        return _empty_batch(lhs, rhs, lhs_dim, rhs_dim, params), 0
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if rhs_dim is rules.not_mapped:
        if batches == 1:
            lhs = _axis_into(lhs_dim, lhs_spec[0], lhs)
        else:
            lhs = _axis_behind_groups(lhs_dim, lhs_spec[0], batches, lhs)
        out = conv_general_dilated(lhs, rhs, **params)
        return split_axis(out, out_spec[0], size), out_spec[0]
    if lhs_dim is rules.not_mapped:
        groups = max(features, batches)
        if groups == 1:
            rhs = _axis_into(rhs_dim, rhs_spec[0], rhs)
            out = conv_general_dilated(lhs, rhs, **params)
            return split_axis(out, out_spec[1], size), out_spec[1]
        rhs = _axis_behind_groups(rhs_dim, rhs_spec[0], groups, rhs)
        out = conv_general_dilated(lhs, rhs, **params)
        out = split_axis(out, out_spec[1], groups)
        out = split_axis(out, out_spec[1] + 1, size)
        return _axis_into(out_spec[1], out_spec[1] + 1, out), out_spec[1]
    if batches > 1:
        lhs = _axis_into(lhs_dim, lhs_spec[0], lhs)
        params["batch_group_count"] *= size
    else:
        lhs = _axis_into(lhs_dim, lhs_spec[1], lhs)
        params["feature_group_count"] *= size
    rhs = _axis_into(rhs_dim, rhs_spec[0], rhs)
    out = conv_general_dilated(lhs, rhs, **params)
    return split_axis(out, out_spec[1], size), out_spec[1]


def _empty_batch(lhs, rhs, lhs_dim, rhs_dim, params) -> Any:
    """No examples: no convolution either, only the shape."""
    avals: list[Any] = [
        aval if dim is rules.not_mapped else aval.mapped(0, dim)
        for aval, dim in ((get_aval(lhs), lhs_dim), (get_aval(rhs), rhs_dim))
    ]
    shape = (0, *_conv_shape(*avals, **params))
    return broadcasting.full(shape, 0, _conv_dtype(*avals, **params))


@conv_general_dilated_p.def_lowering
def _conv_lowering(ctx, lhs, rhs, **params) -> Any:
    dtype = ctx.avals_in[0].dtype
    if dtypes.issubdtype(dtype, np.complexfloating) and ctx.platform in ("cpu", "cuda"):
        # XLA has slow loops for complex convolutions there, or none at all.
        return ctx.lower_fun(_complex_conv, lhs, rhs, **params)
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    numbers = hlo.stablehlo.ConvDimensionNumbers.get(
        input_batch_dimension=lhs_spec[0],
        input_feature_dimension=lhs_spec[1],
        input_spatial_dimensions=list(lhs_spec[2:]),
        kernel_output_feature_dimension=rhs_spec[0],
        kernel_input_feature_dimension=rhs_spec[1],
        kernel_spatial_dimensions=list(rhs_spec[2:]),
        output_batch_dimension=out_spec[0],
        output_feature_dimension=out_spec[1],
        output_spatial_dimensions=list(out_spec[2:]),
    )
    padding = np.array(params["padding"], np.int64).reshape(-1, 2)
    return hlo.stablehlo.convolution(
        ctx.result_type(),
        lhs,
        rhs,
        dimension_numbers=numbers,
        feature_group_count=hlo_parts.int_attribute(params["feature_group_count"]),
        batch_group_count=hlo_parts.int_attribute(params["batch_group_count"]),
        window_strides=hlo.int_array(params["window_strides"]),
        padding=hlo_parts.int_matrix(padding),
        lhs_dilation=hlo.int_array(params["lhs_dilation"]),
        rhs_dilation=hlo.int_array(params["rhs_dilation"]),
        window_reversal=hlo_parts.bool_array([False] * len(padding)),
        precision_config=precision_attribute(params["precision"]),
    )


def _complex_conv(lhs: Any, rhs: Any, **params: Any) -> Any:
    """Three real convolutions (Gauss's product of complex numbers)."""
    preferred = params["preferred_element_type"]
    if preferred is not None:
        params["preferred_element_type"] = np.empty(0, preferred).real.dtype

    def conv(x: Any, y: Any) -> Any:
        return conv_general_dilated(x, y, **params)

    a, b = complex_numbers.real(lhs), complex_numbers.imag(lhs)
    c, d = complex_numbers.real(rhs), complex_numbers.imag(rhs)
    first = conv(elementwise.add(a, b), c)
    second = conv(a, elementwise.sub(d, c))
    third = conv(b, elementwise.add(c, d))
    return complex_numbers.complex(
        elementwise.sub(first, third), elementwise.add(first, second)
    )


# ----------------------------------------------------------------------------------
# Functions
# ----------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The convolution of an image `lhs` with a kernel `rhs`, of n spatial dimensions.

    Args:
      lhs, rhs: arrays of rank n + 2; where their dimensions are, `dimension_numbers`
        says (by default batch, feature, space and output, input, space).
      window_strides: n steps of the window.
      padding: "SAME", "SAME_LOWER", "VALID", or n pairs (low, high).
      lhs_dilation, rhs_dilation: n factors by which image or kernel is spread.
      dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC").
      feature_group_count, batch_group_count: groups that are convolved apart.
      precision, preferred_element_type: as in `dot_general`.

    Raises ValueError for shapes and groups that do not fit, TypeError for dtypes or
    dimension numbers that do not.
    """
    shape = get_aval(lhs).shape
    numbers = conv_dimension_numbers(shape, get_aval(rhs).shape, dimension_numbers)
    space = len(shape) - 2
    window_strides = indices_of(window_strides, "window_strides")
    given = {"lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    lhs_dilation, rhs_dilation = (
        (1,) * space if factors is None else indices_of(factors, name)
        for name, factors in given.items()
    )
    if isinstance(padding, str):
        sizes = _sizes(get_aval(lhs), numbers.lhs_spec)
        window = dilated_shape(_sizes(get_aval(rhs), numbers.rhs_spec), rhs_dilation)
        if any(factor != 1 for factor in lhs_dilation):
            raise ValueError(
                "String padding is not implemented for transposed convolution using "
                "this op. Please either exactly specify the required padding or use "
                "conv_transpose."
            )
        padding = padtype_to_pads(sizes, window, window_strides, padding)
    elif np.iterable(padding) and len(padding) != space:
        raise TypeError(
            f"padding must have one pair for each of {space} spatial dimensions, got "
            f"{padding}"
        )
    elif not np.iterable(padding) or any(np.shape(pair) != (2,) for pair in padding):
        raise ValueError(f"padding must have pairs (low, high), got {padding}")
    if preferred_element_type is not None:
        preferred_element_type = np.dtype(preferred_element_type)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=window_strides,
        padding=tuple((int(low), int(high)) for low, high in padding),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_element_type,
        out_sharding=rules.final_sharding(out_sharding, "conv_general_dilated"),
    )


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """`conv_general_dilated` with a named padding and nothing dilated."""
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    return conv_general_dilated(lhs, rhs, window_strides, padding, **types)


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """`conv_general_dilated` with dimensions in the default order."""
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    settings = (window_strides, padding, lhs_dilation, rhs_dilation)
    return conv_general_dilated(lhs, rhs, *settings, **types)


def _transpose_padding(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of a dilated image that undoes a named padding of the forward one."""
    if padding == "SAME":
        length = kernel + stride - 2
        low = kernel - 1 if stride > kernel - 1 else -(-length // 2)
    elif padding == "VALID":
        length = kernel + stride - 2 + max(kernel - stride, 0)
        low = kernel - 1
    else:
        raise ValueError("Padding mode must be `SAME` or `VALID`.")
    return low, length - low


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Pads,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """The transposed convolution: `strides` enlarge the image.

    With `transpose_kernel` it is the gradient of the convolution with the same kernel:
    its space is reversed and its features are exchanged.
    """
    rank = get_aval(lhs).ndim
    if rank <= 2:
        raise ValueError(f"lhs and rhs must have rank > 2, got {rank}")
    if dimension_numbers is None:
        letters = {3: "H", 4: "HW", 5: "HWD"}.get(rank)
        if letters is None:
            raise ValueError("No default dimension numbers for ranks above 5.")
        order = f"N{letters}C"
        dimension_numbers = (order, f"{letters}IO", order)
    numbers = conv_dimension_numbers(
        get_aval(lhs).shape, get_aval(rhs).shape, dimension_numbers
    )
    window = _sizes(get_aval(rhs), numbers.rhs_spec)
    rhs_dilation = (1,) * (rank - 2) if rhs_dilation is None else rhs_dilation
    effective = dilated_shape(window, rhs_dilation)
    if isinstance(padding, str):
        padding = [
            _transpose_padding(k, s, padding) for k, s in zip(effective, strides)
        ]
    elif use_consistent_padding:
        padding = [
            (k - 1 - low, k - 1 - high) for k, (low, high) in zip(effective, padding)
        ]
    if transpose_kernel:
        rhs = rearranging.rev(rhs, tuple(numbers.rhs_spec[2:]))
        axes = list(range(rank))
        first, second = numbers.rhs_spec[:2]
        axes[first], axes[second] = axes[second], axes[first]
        rhs = shaping.transpose(rhs, tuple(axes))
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    settings = ((1,) * (rank - 2), padding, strides, rhs_dilation, numbers)
    return conv_general_dilated(lhs, rhs, *settings, **types)


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The windows of an image, laid out along the feature dimension of the result.

    Channels come first there: channel c, position p is at `c * prod(filter_shape) + p`.
    """
    shape = tuple(filter_shape)
    aval = get_aval(lhs)
    if isinstance(dimension_numbers, (tuple, list)) and all(
        isinstance(spec, str) for spec in dimension_numbers
    ):
        positions = conv_general_permutations(dimension_numbers)
    else:
        positions = conv_dimension_numbers(
            aval.shape, (1, 1, *shape), dimension_numbers
        )
    lhs_spec, rhs_spec, out_spec = (tuple(spec) for spec in positions)
    channels, count = aval.shape[lhs_spec[1]], int(np.prod(shape))
    # One filter of a single 1 for each place in the window, for every channel.
    dtype = aval.dtype if preferred_element_type is None else preferred_element_type
    filters = np.eye(count, dtype=np.dtype(dtype)).reshape((count, 1, *shape))
    filters = np.tile(filters, (channels, 1) + (1,) * len(shape))
    filters = np.transpose(filters, np.argsort(rhs_spec))
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    numbers = ConvDimensionNumbers(lhs_spec, rhs_spec, out_spec)
    settings = (window_strides, padding, lhs_dilation, rhs_dilation, numbers, channels)
    return conv_general_dilated(lhs, filters, *settings, **types)


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Any:
    """A convolution with another kernel at each place of the result.

    `rhs` has the sizes of the result as its spatial ones, and channels times places in
    the window, channels first, as its input features; else it is as for
    `conv_general_dilated`.
    """
    pair = canonicalize_precision(precision)
    settings = (filter_shape, window_strides, padding, lhs_dilation, rhs_dilation)
    patches = conv_general_dilated_patches(
        lhs, *settings, dimension_numbers, pair and pair[0]
    )
    _, kernel, out = conv_dimension_numbers(
        get_aval(lhs).shape, (1, 1, *filter_shape), dimension_numbers
    )
    batch = tuple(zip(*sorted(zip(out[2:], kernel[2:]))))
    numbers: Any = (((out[1],), (kernel[1],)), batch)
    result = products.dot_general(patches, rhs, numbers, precision=precision)
    axes = list(range(len(out) - 2))
    for place, axis in sorted(zip(out, (len(out) - 2, len(out) - 1))):
        axes.insert(place, axis)
    return shaping.transpose(result, tuple(axes))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of `conv_transpose`, for dimension numbers as strings."""
    lhs, rhs, _ = conv_general_permutations(dimension_numbers)
    if isinstance(padding, str):
        pairs = zip((rhs_shape[d] for d in rhs[2:]), window_strides)
        padding = [_transpose_padding(k, s, padding) for k, s in pairs]
    dilated = list(lhs_shape)
    for d, stride in zip(lhs[2:], window_strides):
        dilated[d] = (dilated[d] - 1) * stride + 1
    ones = [1] * len(padding)
    return conv_general_shape_tuple(
        dilated, rhs_shape, ones, padding, dimension_numbers
    )
