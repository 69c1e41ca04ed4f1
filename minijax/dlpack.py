"""Arrays of other libraries, shared without a copy where that can be.

In JAX: `jax.dlpack`.
"""

from typing import Any

import ml_dtypes
import numpy as np

from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.rare.array_api import NARROW, WIDE
from minijax.typing import DTypeLike

_SUPPORTED = {*map(np.dtype, [*NARROW, *WIDE, np.float16, ml_dtypes.bfloat16])}


def from_dlpack(
    external_array: Any, device: Any = None, copy: bool | None = None
) -> Array:
    """An array that shares the memory of one with `__dlpack__`; as in `numpy`."""
    return jnp.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be shared by DLPack."""
    return np.dtype(dtype) in _SUPPORTED
