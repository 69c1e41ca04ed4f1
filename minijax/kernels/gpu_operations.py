"""Operations that kernels for a GPU spell in Triton's way: dot, max_contiguous.

In JAX: `pallas/primitives.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.language import get_aval
from minijax.kernels.in_kernels import positive
from minijax.primitives.linear import products
from minijax.support import element_types


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Any:
    """The product of two matrices, added up in float32 (int32, float64).

    Args:
      a, b: arrays with two axes.
      trans_a, trans_b: whether each is transposed first.
      allow_tf32: whether a GPU may round operands to TF32; instead of `precision`.
      precision: as for `lax.dot_general`.

    Raises ValueError for other ranks, and if both of the last two are given.
    """
    x, y = get_aval(a), get_aval(b)
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError(f"`a` and `b` must be 2D arrays, got {x.shape} and {y.shape}.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = "high" if allow_tf32 else "highest"
    dtype = element_types.result_type(x.dtype, y.dtype)
    sum_dtype = "float64" if dtype == np.float64 else "float32"
    if dtypes.issubdtype(dtype, np.integer):
        sum_dtype = "int32"
    axes = ((0 if trans_a else 1,), (1 if trans_b else 0,))
    return products.dot_general(
        a, b, (axes, ((), ())), precision, preferred_element_type=sum_dtype
    )


def max_contiguous(x: Any, values: Sequence[int] | int) -> Any:
    """`x`, with a hint to a GPU's compiler: runs of `values` entries are consecutive.

    Raises ValueError for numbers that are not positive.
    """
    positive("max_contiguous", values)
    return x
