"""Samplers that decompose matrices: correlated normals, orthogonal matrices.

In JAX: `random/core.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import static_index
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.random.arguments import (
    Shape,
    StaticShape,
    canonical_shape,
    check_shape,
    sampler_dtype,
)
from minijax.random.frames import laid_out
from minijax.random.keys import check_key
from minijax.random.samplers import normal
from minijax.typing import ArrayLike, DTypeLike


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws of normals with covariances: [*shape, n].

    Args:
        key: one key.
        mean: [..., n].
        cov: [..., n, n], symmetric and positive (semi-)definite.
        shape: of the batch; by default what those of `mean` and `cov` broadcast to.
        dtype: a float dtype; that of `mean` and `cov`.
        method: how the root of `cov` is found: "cholesky", "eigh" or "svd".
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: for another method, a dtype that is not a float, or shapes that do
            not fit.
    """
    key, _ = check_key("multivariate_normal", key)
    mean, cov = promote_dtypes_inexact(mean, cov)
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    dtype = mean.dtype if dtype is None else sampler_dtype(float, dtype)
    if not dtypes.issubdtype(dtype, np.floating):
        raise ValueError(
            "dtype argument to `multivariate_normal` must be a float dtype, got "
            f"{dtype}"
        )
    shape = None if shape is None else canonical_shape(shape)
    sizes = (shape, dtype, method)
    return laid_out(_multivariate_normal, out_sharding, key, mean, cov, *sizes)


@partial(jit, static_argnums=(3, 4, 5))
def _multivariate_normal(
    key: Array, mean: Any, cov: Any, shape: StaticShape | None, dtype: Any, method: str
) -> Array:
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != 2 * mean.shape[-1:]:
        raise ValueError(
            "multivariate_normal takes a mean [..., n] and a covariance [..., n, n], "
            f"got shapes {mean.shape} and {cov.shape}."
        )
    batches = mean.shape[:-1], cov.shape[:-2]
    if shape is None:
        shape = jnp.broadcast_shapes(*batches)
    else:
        check_shape("normal", shape, *batches)
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    samples = normal(key, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", factor, samples)


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws uniformly of matrices with orthonormal rows or columns: [*shape, n, m].

    Args:
        key: one key.
        n: how many rows.
        shape: of the batch.
        dtype: a float or complex dtype; the default float.
        m: how many columns; n.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        TypeError: if a size is not an integer known while tracing.
    """
    key, _ = check_key("orthogonal", key)
    shape = canonical_shape(shape)
    dtype = sampler_dtype(float, dtype)
    sizes = [
        static_index(size, "The sizes of random.orthogonal().")
        for size in (n, n if m is None else m)
    ]
    return laid_out(_orthogonal, out_sharding, key, *sizes, shape, dtype)


@partial(jit, static_argnums=(1, 2, 3, 4))
def _orthogonal(key: Array, n: int, m: int, shape: StaticShape, dtype: Any) -> Array:
    z = normal(key, (*shape, max(n, m), min(n, m)), dtype)
    q, r = jnp.linalg.qr(z)
    # With these signs, every orthogonal matrix is equally likely.
    signs = jnp.sign(jnp.linalg.diagonal(r))
    x = q * jnp.expand_dims(signs, -2)
    return x.mT if n < m else x
