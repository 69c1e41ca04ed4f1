"""What the flags jax_debug_nans and jax_debug_infs ask for: errors instead of NaNs.

In JAX: `jax/_src/dispatch.py`, `check_special`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minijax import dtypes
from minijax.array import Array
from minijax.config import state


def check_finite(name: str, arrays: Sequence[Array]) -> None:
    """FloatingPointError when a result has a NaN (or inf) and the flags forbid it."""
    for array in arrays:
        if not dtypes.issubdtype(array.dtype, np.inexact):
            continue
        values = array._value
        if values.dtype.kind not in "fc":
            values = values.astype(np.float32)
        if state.debug_nans and np.isnan(values).any():
            raise FloatingPointError(
                f"invalid value (nan) encountered in {name}. The flag jax_debug_nans "
                "asked for this error."
            )
        if state.debug_infs and np.isinf(values).any():
            raise FloatingPointError(
                f"invalid value (inf) encountered in {name}. The flag jax_debug_infs "
                "asked for this error."
            )
