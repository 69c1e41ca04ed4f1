"""Checks added to each first-order primitive: NaN, division, index bounds.

The operation itself is bound first, or beside the check; its result is not changed.

In JAX: `jax/_src/checkify.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.core import dtypes, source_info, trees
from minijax.core.language import Primitive, all_primitives
from minijax.experimental.checkify.checking import check_p
from minijax.experimental.checkify.checking_interpreter import (
    Checked,
    Enabled,
    rule_for,
)
from minijax.experimental.checkify.error_values import (
    DivisionByZeroError,
    Error,
    NaNError,
    OOBError,
    assert_func,
    update_error,
)
from minijax.support import element_types


def _here() -> Any:
    """The traceback of the operation that is being checked."""
    return source_info.current().traceback


# ----------------------------------------------------------------------------------
# NaN and division by zero
# ----------------------------------------------------------------------------------

# Primitives that may give a NaN without being given one, as JAX lists them.
_MAY_GIVE_NAN = """
    acos acosh add asin asinh atan2 atan atanh bessel_i0e bessel_i1e cbrt
    conv_general_dilated cos cosh cumlogsumexp cummax cummin cumprod cumsum
    custom_linear_solve digamma dot_general erf_inv erf erfc exp expm1
    igamma_grad_a igamma igammac integer_pow lgamma log1p log logistic mul pad pow
    psum reduce reduce_prod reduce_sum reduce_window reduce_window_sum
    regularized_incomplete_beta rem rng_uniform rsqrt sin sinh sqrt sub tan tanh
""".split()


def check_nans(primitive: Primitive, error: Error, enabled: Enabled, out: Any) -> Error:
    """`error`, with the error that a result of the primitive is NaN."""
    if NaNError not in enabled:
        return error
    if primitive.multiple_results:
        any_nan = jnp.any(jnp.array([_has_nan(x) for x in out]))
    else:
        any_nan = _has_nan(out)
    return assert_func(error, any_nan, NaNError(_here(), primitive.name))


def _has_nan(x: Any) -> Any:
    if dtypes.issubdtype(x.dtype, element_types.prng_key):
        return False
    return jnp.any(jnp.isnan(x))


@rule_for(*(all_primitives[name] for name in _MAY_GIVE_NAN))
def _nan_rule(primitive, error, enabled, *args, **params) -> Checked:
    out = primitive.rebind(args, params)
    return check_nans(primitive, error, enabled, out), out


@rule_for(lax.div_p)
def _div_rule(primitive, error, enabled, x, y) -> Checked:
    if DivisionByZeroError in enabled:
        any_zero = jnp.any(jnp.equal(y, 0))
        error = assert_func(error, any_zero, DivisionByZeroError(_here()))
    out = primitive.bind(x, y)
    return check_nans(primitive, error, enabled, out), out


# ----------------------------------------------------------------------------------
# Indices out of bounds
# ----------------------------------------------------------------------------------


def _out_of_bounds(
    primitive: Primitive, error: Error, mask: Any, indices: Any, axes: Any, shape: Any
) -> Error:
    """`error`, with the error that an index is out of bounds, where `mask` says so.

    The last dimension of `indices` runs over the axes of the operand that they index.
    """
    # The first bad index, and the axis it is for, so that the message can show them.
    first = jnp.argmin(jnp.logical_not(mask))
    place = jnp.unravel_index(first, indices.shape)
    axis = jnp.array(axes)[place[-1]]
    size = jnp.array(shape)[axis]
    index = jnp.ravel(indices)[first]
    payload = jnp.array([index, axis, size], dtype=np.int32)
    exception = OOBError(_here(), primitive.name.replace("-", "_"), shape, payload)
    return assert_func(error, jnp.any(mask), exception)


@rule_for(lax.dynamic_slice_p, lax.dynamic_update_slice_p)
def _dynamic_slice_rule(primitive, error, enabled, *args, **params) -> Checked:
    out = primitive.bind(*args, **params)
    operand, *starts = args
    if primitive is lax.dynamic_update_slice_p:
        update, *starts = starts
        sizes = update.shape
    else:
        sizes = params["slice_sizes"]
    if OOBError not in enabled or not starts:
        return error, out
    indices = jnp.array(starts)
    dims = np.array(operand.shape, indices.dtype)
    sizes = np.array(sizes, indices.dtype)
    mask = (indices < 0) | (indices + sizes > dims)
    axes = range(operand.ndim)
    return _out_of_bounds(primitive, error, mask, indices, axes, operand.shape), out


@rule_for(lax.gather_p)
def _gather_rule(primitive, error, enabled, *args, **params) -> Checked:
    operand, indices = args
    out = primitive.bind(operand, indices, **params)
    axes = np.array(params["dimension_numbers"].start_index_map)
    if OOBError not in enabled or not axes.size:
        return error, out
    room = np.array(operand.shape)[axes] - np.array(params["slice_sizes"])[axes]
    bound = jnp.expand_dims(room, axis=tuple(range(indices.ndim - 1)))
    mask = (indices < 0) | (indices > bound.astype(indices.dtype))
    axes = params["dimension_numbers"].start_index_map
    return _out_of_bounds(primitive, error, mask, indices, axes, operand.shape), out


@rule_for(lax.scatter_p, lax.scatter_add_p, lax.scatter_mul_p)
@rule_for(lax.scatter_min_p, lax.scatter_max_p)
def _scatter_rule(primitive, error, enabled, *args, **params) -> Checked:
    operand, indices, updates = args
    out = primitive.bind(operand, indices, updates, **params)
    numbers = params["dimension_numbers"]
    axes = numbers.scatter_dims_to_operand_dims
    if OOBError not in enabled or not axes:
        return error, out
    window = iter(updates.shape[axis] for axis in numbers.update_window_dims)
    single = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    sizes = [1 if axis in single else next(window) for axis in range(operand.ndim)]
    room = [operand.shape[axis] - sizes[axis] for axis in axes]
    largest = np.iinfo(indices.dtype).max
    bound = np.minimum(np.array(room, np.int64), largest).astype(indices.dtype)
    bound = lax.broadcast_in_dim(bound, indices.shape, (indices.ndim - 1,))
    mask = jnp.logical_or(jnp.less(indices, 0), jnp.greater(indices, bound))
    error = _out_of_bounds(primitive, error, mask, indices, axes, operand.shape)
    return check_nans(primitive, error, enabled, out), out


# ----------------------------------------------------------------------------------
# The user's checks
# ----------------------------------------------------------------------------------


@rule_for(check_p)
def _check_rule(primitive, error, enabled, *args, **params) -> Checked:
    """The error of the check, of the enabled kinds, becomes a part of the value.

    As in JAX, one that is not enabled is dropped.
    """
    raised = trees.tree_unflatten(params["err_tree"], args)
    for kind, pred in raised._pred.items():
        if kind.error_type in enabled:
            code, payload = raised._code[kind], raised._payload[kind]
            error = update_error(error, pred, code, {}, payload, kind)
    return error.with_metadata({**raised._metadata, **error._metadata}), []
