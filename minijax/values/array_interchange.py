"""Conversions of an array: Python scalars, lists, bytes, copies, DLPack.

These are methods of `Array`; the class itself, with the values, is in
`core/array.py`. Tracers have some of them too (`values/tracer_interchange.py`).

In JAX: `jax/_src/array.py`, `ArrayImpl`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.backend import buffer_copies
from minijax.core import dtypes, errors
from minijax.core.array import Array, put
from minijax.core.language import ShapedArray
from minijax.values.array_places import on_array, property_of_array


@property_of_array
def itemsize(self: Array) -> int:
    """Bytes of one element."""
    return self.aval.dtype.itemsize


@property_of_array
def nbytes(self: Array) -> int:
    """Bytes of all elements."""
    return self.aval.size * self.aval.dtype.itemsize


def _elsewhere(array: Array) -> bool:
    """Whether other processes hold values that this one does not, or all addends."""
    sharding = array._buffer._sharding
    if array.aval.cut is not None and array.aval.cut.spec.unreduced:
        return True
    if sharding.is_fully_addressable:
        return False
    return not (sharding.is_fully_replicated and sharding.addressable_devices)


@on_array
def __repr__(self: Array) -> str:
    if self.is_deleted():
        return f"Array(shape={self.shape}, dtype={self.dtype.name}, deleted)"
    if _elsewhere(self):
        weak = ", weak_type=True" if self.weak_type else ""
        cut = self.aval.cut
        unreduced = cut is not None and cut.spec.unreduced
        addends = f", sharding={self.sharding}" if unreduced else ""
        return f"Array(shape={self.shape}, dtype={self.dtype.name}{weak}{addends})"
    if dtypes.is_extended(self.dtype):
        bits = self._read()
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{bits}"
    extra = ", weak_type=True" if self.weak_type else ""
    ending = f"dtype={self.dtype.name}{extra})"
    if self.size == 0:
        shape = f"shape={self.shape}, " if self.shape != (0,) else ""
        return f"Array([], {shape}{ending}"
    prefix = "Array("
    text = np.array2string(
        self._value,
        prefix=prefix,
        suffix=",",
        separator=", ",
        threshold=np.get_printoptions()["threshold"],
    )
    last = text[text.rfind("\n") + 1 :]
    line = np.get_printoptions()["linewidth"]
    start = len(prefix) if "\n" not in text else 0
    gap = " " if start + len(last) + len(ending) + 2 <= line else "\n" + " " * 6
    return f"{prefix}{text},{gap}{ending}"


@on_array
def __str__(self: Array) -> str:
    if dtypes.is_extended(self.dtype) or _elsewhere(self):
        return repr(self)
    return str(self._value)


@on_array
def __complex__(self: Array) -> complex:
    return self._scalar().astype(complex).item()


@on_array
def __index__(self: Array) -> int:
    if self.ndim or not dtypes.issubdtype(self.dtype, np.integer):
        raise TypeError("Only integer scalar arrays can be converted to a scalar index")
    return operator.index(self._value[()])


@on_array
def item(self: Array, *args: Any) -> bool | int | float | complex:
    """One element as a Python scalar; the only one if no index is given."""
    return self._value.item(*args)


@on_array
def tolist(self: Array) -> Any:
    """The values as nested Python lists."""
    return self._value.tolist()


@on_array
def tobytes(self: Array, order: str = "C") -> bytes:
    """The values as bytes, in row-major order by default."""
    return self._value.tobytes(order)  # type: ignore[arg-type]


@on_array
def __hex__(self: Array) -> str:
    return hex(self.__index__())


@on_array
def __oct__(self: Array) -> str:
    return oct(self.__index__())


@on_array
def __format__(self: Array, spec: str) -> str:
    if _elsewhere(self):
        return repr(self)
    if dtypes.is_extended(self.dtype):
        return format(repr(self), spec)
    return format(self._value[()] if self.ndim == 0 else self._value, spec)


@on_array
def __reduce__(self: Array) -> tuple:
    if dtypes.is_extended(self.dtype):
        bits = self._read()
        return (_restore, (bits, self.dtype, self.weak_type))
    return (_restore, (np.asarray(self._value), None, self.weak_type))


@on_array
def __copy__(self: Array) -> Array:
    return self


@on_array
def __deepcopy__(self: Array, memo: dict) -> Array:
    restore, arguments = __reduce__(self)
    return restore(*arguments)


@on_array
def __dlpack__(
    self: Array,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The array for another library, without copying unless `copy` is True.

    The other library must not write to it. Whatever `max_version` is, the capsule is
    that of DLPack 0. `stream` is the stream of a GPU that has to wait for the values.

    Raises:
      ValueError: if several devices hold the array.
      RuntimeError: if it is on another device than `dl_device`.
    """
    self._check_alive()
    self.block_until_ready()  # raises what its program raised
    if self.sharding.num_devices != 1:
        raise ValueError(
            f"__dlpack__ takes an array of one device, got one of "
            f"{self.sharding.num_devices}. Gather it: `device_put(x, device)`."
        )
    if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
        raise RuntimeError(
            f"the array is on the DLPack device {self.__dlpack_device__()}, and "
            f"dl_device asks for {tuple(dl_device)}. Move it with `device_put` first."
        )
    source = put(np.array(self._read()), self.aval) if copy else self
    return buffer_copies.dlpack_capsule(source._buffer, stream)


@on_array
def __dlpack_device__(self: Array) -> tuple[int, int]:
    device = self.device
    return (1, 0) if device.platform == "cpu" else (2, device.local_hardware_id or 0)


@on_array
def __setitem__(self: Array, index: Any, value: Any) -> None:
    raise item_assignment_error()


def item_assignment_error() -> TypeError:
    """The error for `x[i] = y`, with the line to write."""
    return errors.type_error(
        "JAX arrays are immutable and do not support in-place item assignment. "
        "Instead of `x[idx] = y`, write `x = x.at[idx].set(y)`, which gives a new "
        "array; inside jit an intermediate can be updated in place, and an argument "
        "is copied unless it is donated (donate_argnums). There are also .at[idx].add, "
        ".multiply, .min and .max.",
        rule="arrays never change",
        instead="x = x.at[idx].set(y)",
    )


def _restore(bits: np.ndarray, key_dtype: Any, weak_type: bool) -> Array:
    if key_dtype is not None:
        shape = bits.shape[: bits.ndim - len(key_dtype.physical_shape)]
        return put(bits, ShapedArray(shape, key_dtype))
    return from_numpy(bits, weak_type)


def from_numpy(value: np.ndarray, weak_type: bool = False) -> Array:
    """A NumPy array copied to the default device, uncommitted.

    The dtype is canonicalized: 64-bit types become 32-bit ones outside x64 mode.
    """
    dtype = dtypes.canonicalize_dtype(value.dtype)
    return put(np.asarray(value, dtype), ShapedArray(value.shape, dtype, weak_type))
