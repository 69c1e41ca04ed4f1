"""Dot-product attention: every query gathers the values whose keys it matches.

In JAX: `nn/functions.py`, `dot_product_attention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.nn.functions import softmax
from minijax.scipy.special import logsumexp
from minijax.typing import ArrayLike

# Masked scores are this share of the largest float32, and not minus infinity: a row
# that is masked as a whole then becomes uniform, where infinities would make NaN.
MASKED_SHARE = -0.7


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """`softmax(query @ key.T * scale + bias) @ value`, for several heads at once.

    Letters: B batch, T queries, S keys, N query heads, K key heads (N is a multiple of
    K; each key head serves N/K query heads), H the size of a head. Scores and softmax
    are computed in float32 at least. From "Attention Is All You Need" (Vaswani et al.,
    2017); shared key heads from "GQA" (Ainslie et al., 2023).

    Args:
        query: shape (B, T, N, H); without B, or with fewer axes, sizes of 1 are added.
        key: shape (B, S, K, H).
        value: shape (B, S, K, H), of the dtype of `key`.
        bias: added to the scores; broadcasts to (B, N, T, S).
        mask: booleans, True where a query may look; broadcasts to (B, N, T, S).
        scale: what scores are multiplied by; `1 / sqrt(H)` by default.
        is_causal: query t looks at keys up to t only.
        query_seq_lengths: int32 of shape (B,); later queries give zeros.
        key_value_seq_lengths: int32 of shape (B,); later keys are not looked at.
        local_window_size: how far a query looks to the left and to the right.
        implementation: None or `"xla"`; `"cudnn"` is not available.
        return_residual: also return the logarithm of the softmax's denominator.

    Returns:
        An array of the shape of `query`; with `return_residual` a pair, whose second
        array has shape (B, T, N).

    Raises:
        ValueError: shapes, dtypes or the implementation do not fit.
        RuntimeError: the implementation is `"cudnn"`.
    """
    out_shape = np.shape(query)
    query, key, value = (_with_four_axes(x) for x in (query, key, value))
    bias = None if bias is None else _with_four_axes(bias)
    mask = None if mask is None else _with_four_axes(mask)
    lengths = [
        None if x is None else jnp.asarray(x)
        for x in (query_seq_lengths, key_value_seq_lengths)
    ]
    _check_arguments(query, key, value, bias, mask, lengths, implementation)
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)
    batch, queries, heads, size = query.shape
    keys, key_heads = key.shape[1:3]
    groups = heads // key_heads
    scale = 1.0 / np.sqrt(size) if scale is None else scale

    grouped = query.reshape(batch, queries, key_heads, groups, size)
    scores = jnp.einsum(
        "btkgh,bskh->bkgts",
        grouped,
        key,
        preferred_element_type=jnp.promote_types(query.dtype, np.float32),
    )
    scores *= jnp.array(scale, dtype=scores.dtype)
    if bias is not None:
        bias = _by_group(bias, key_heads, groups)
        scores = (scores + bias).astype(scores.dtype)
    masks = _masks(queries, keys, is_causal, lengths, local_window_size)
    if mask is not None:
        masks.append(_by_group(mask, key_heads, groups))
    for allowed in masks:
        scores = jnp.where(allowed, scores, _masked_score(scores.dtype))
    scores = scores.astype(np.float32)
    weights = softmax(scores, axis=-1).astype(key.dtype)
    gathered = jnp.einsum("bkgts,bskh->btkgh", weights, value)
    if lengths[0] is not None:
        present = jnp.arange(queries)[None, :] < lengths[0][:, None]
        gathered *= present[:, :, None, None, None].astype(gathered.dtype)
    out = gathered.reshape(out_shape)
    if not return_residual:
        return out
    residual = logsumexp(scores, axis=-1).astype(key.dtype)
    residual = jnp.moveaxis(residual, -1, 1).reshape(out_shape[:-1])
    return out, lax.stop_gradient(residual)


def _with_four_axes(x: ArrayLike) -> Array:
    x = jnp.asarray(x)
    return jnp.expand_dims(x, tuple(range(4 - x.ndim))) if x.ndim < 4 else x


def _by_group(x: Array, key_heads: int, groups: int) -> Array:
    """Splits the axis of query heads into key heads and the queries that share one."""
    batch, heads, queries, keys = x.shape
    if heads == 1:
        return x.reshape(batch, 1, 1, queries, keys)
    return x.reshape(batch, key_heads, groups, queries, keys)


def _masked_score(dtype: Any) -> Array:
    largest = min(float(dtypes.finfo(dtype).max), float(dtypes.finfo(np.float32).max))
    return jnp.asarray(MASKED_SHARE * largest, dtype=dtype)


def _masks(
    queries: int,
    keys: int,
    is_causal: bool,
    lengths: Sequence[Array | None],
    window: tuple[int, int] | None,
) -> list[Array]:
    """The masks that follow from positions, each broadcasting to (B, K, G, T, S)."""
    at = jnp.arange(queries)[:, None]
    of = jnp.arange(keys)[None, :]
    masks = []
    if is_causal:
        masks.append(at >= of)
    if window is not None:
        left, right = window
        masks.append((at <= of + left) & (at >= of - right))
    for length, position in zip(lengths, (at, of)):
        if length is not None:
            masks.append(position < length[:, None, None, None, None])
    return masks


def _check(name: str, x: Array | None, shape: Sequence[int], dtype: Any) -> None:
    if x is None:
        return
    if x.ndim != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {x.ndim}")
    if dtype is not None and x.dtype != dtype:
        raise ValueError(f"{name} dtype should be {dtype}, but got {x.dtype}")
    if any(want not in (-1, size) for want, size in zip(shape, x.shape)):
        raise ValueError(f"{name} shape should be {shape}: but got {x.shape}")


def _check_arguments(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None,
    mask: Array | None,
    lengths: Sequence[Array | None],
    implementation: str | None,
) -> None:
    if implementation == "cudnn":
        raise RuntimeError(
            "dot_product_attention was asked for implementation='cudnn', but cuDNN is "
            "not detected. Leave the argument out, and XLA computes it."
        )
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    _check("key", key, [-1] * 4, None)
    batch, keys, heads, size = key.shape
    _check("value", value, [batch, keys, heads, size], key.dtype)
    _check("query", query, [batch, -1, -1, size], key.dtype)
    _check("mask", mask, [-1] * 4, np.dtype(bool))
    _check("bias", bias, [-1] * 4, None)
    names = ("query_seq_lengths", "key_value_seq_lengths")
    for name, length in zip(names, lengths):
        _check(name, length, [batch], np.dtype(np.int32))
    if query.shape[2] % heads:
        raise ValueError(
            "The number of query heads must be a multiple of key/value heads, but got "
            f"{query.shape[2]} vs {heads}"
        )
