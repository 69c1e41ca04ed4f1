"""What memory holds that no program has written.

In JAX: `pallas/primitives.py`, `uninitialized_value`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes


def uninitialized(dtype: Any) -> Any:
    """NaN, the smallest integer, or False."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.asarray(np.nan, dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return np.asarray(dtypes.iinfo(dtype).min, dtype)
    return np.asarray(False, dtype)
