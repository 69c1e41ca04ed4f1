"""Arrays from files, iterators and other libraries.

In JAX: `numpy/lax_numpy.py` and `dlpack.py`.
"""

import os
from typing import IO, Any

import numpy as np

from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.shapes.creation import asarray, put_on

# Device types of the DLPack standard whose memory NumPy can read.
_HOST = (1, 3)


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Any:
    """`numpy.load`, with the result as an array on the device where that can be.

    Archives (`.npz`) and dtypes that XLA does not have come back as NumPy has them.
    """
    result = np.load(file, *args, **kwargs)
    if not isinstance(result, np.ndarray):
        return result
    if result.dtype == "V2":  # NumPy has no name for bfloat16
        result = result.view(dtypes.bfloat16)
    try:
        return asarray(result)
    except TypeError:
        return result


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """Numbers read from text, separated by `sep`."""
    return asarray(np.fromstring(string, dtype=dtype, count=count, sep=sep))


def _impure(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"jnp.{name}() is not implemented, because it would consume its argument when "
        "a program is traced, not when it runs. Write "
        f"jnp.asarray(np.{name}(...)) outside of jit."
    )


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Raises NotImplementedError, which says what to write instead."""
    raise _impure("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Raises NotImplementedError, which says what to write instead."""
    raise _impure("fromiter")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library (`__dlpack__`), in host memory.

    Raises TypeError for objects without the protocol and for other devices' memory.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and "
            f"__dlpack_device__ methods, got {type(x)}."
        )
    if isinstance(x, Array):
        result = asarray(x, copy=copy)
    else:
        device_type = int(x.__dlpack_device__()[0])
        if device_type not in _HOST:
            raise TypeError(
                "Array passed to from_dlpack is on unsupported device type "
                f"{device_type}: copy it to the host first."
            )
        result = asarray(np.from_dlpack(x))
    return put_on(result, device)
