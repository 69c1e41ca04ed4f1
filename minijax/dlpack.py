"""Arrays of other libraries, shared without a copy where that can be.

In JAX: `jax.dlpack`.
"""

import ml_dtypes
import numpy as np

from minijax.numpy import from_dlpack as from_dlpack
from minijax.typing import DTypeLike

_SUPPORTED = frozenset(
    np.dtype(kind)
    for kind in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64),
        *(np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
        *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    )
)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be shared by DLPack."""
    return np.dtype(dtype) in _SUPPORTED
