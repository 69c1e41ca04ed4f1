"""What the array API standard asks a namespace about itself.

In JAX: `numpy/array_api_metadata.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes, runtime
from minijax.core.state import state
from minijax.support import element_types

# The dtypes of the standard, and those of them that there are in 64-bit mode.
NARROW = "bool int8 int16 int32 uint8 uint16 uint32 float32 complex64".split()
WIDE = "int64 uint64 float64 complex128".split()


class ArrayNamespaceInfo:
    """What `__array_namespace_info__` returns. No answer depends on the `device`."""

    def default_device(self) -> None:
        """None: an array that is not committed follows those that are."""
        return None

    def devices(self) -> list[Any]:
        """None, and the devices of this process."""
        return [None, *runtime.devices()]

    def capabilities(self) -> dict[str, Any]:
        """What holds under `jit` too, and the largest number of axes."""
        flags = {"boolean indexing": False, "data-dependent shapes": False}
        return {**flags, "max dimensions": 64}

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The default dtype of each kind of numbers, and of indices."""
        integral = element_types.default_int_dtype()
        return {
            "real floating": dtypes.default_float_dtype(),
            "complex floating": element_types.default_complex_dtype(),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The standard's dtypes by name: of `kind` (as for `isdtype`), or all.

        Those of 64 bits are there in 64-bit mode. Raises ValueError for an unknown
        kind.
        """
        names = NARROW + WIDE if state.enable_x64 else NARROW
        known = {name: np.dtype(name) for name in names}
        if kind is None:
            return known
        is_kind = element_types.isdtype
        return {name: dtype for name, dtype in known.items() if is_kind(dtype, kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Devices, dtypes and capabilities of `minijax.numpy`, by the array API."""
    return ArrayNamespaceInfo()
