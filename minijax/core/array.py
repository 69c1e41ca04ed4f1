"""Array: an immutable array on a device.

An Array is a thin wrapper of jaxlib's array: the buffer on the device and its type
(`aval`). This file reads the values, and makes an Array from a NumPy array. Files above
add methods to the class: where the array is (`values/array_places.py`), its text and
the protocols of Python and of other libraries (`values/array_interchange.py`),
operators and NumPy's methods (`core/operators.py` and `numpy/array_methods.py`).

In JAX: `jax/_src/array.py`, `ArrayImpl`, and `jax/_src/basearray.py`, `Array`.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes, errors, runtime
from .avals import Typed
from .events import enter
from .language import ShapedArray, Tracer, aval_of_class, physical_aval
from .state import state

if TYPE_CHECKING:
    from minijax.values.operator_types import Operators
else:
    Operators = object


class _ArrayMeta(type):
    """`isinstance(x, Array)` is true for tracers of arrays too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        kind = type(instance)
        if kind is cls:
            return True
        if issubclass(kind, Tracer):
            return isinstance(instance.aval, ShapedArray)
        return type.__instancecheck__(cls, instance)


class Array(Typed, Operators, metaclass=_ArrayMeta):
    """An immutable n-dimensional array on a device.

    Made by `minijax.numpy` functions and by every compiled program, not by calling the
    class. Computation runs in the background: an Array may exist before its values do,
    and reading them waits (`block_until_ready`).

    In JAX: `jax.Array`.
    """

    __slots__ = ("aval", "_buffer", "_placed", "_host", "__weakref__")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    to_fill = {"__repr__", "_read", "block_until_ready"}  # `values/array_places.py`

    aval: Any
    _buffer: Any  # jaxlib's array
    _placed: Any  # where a committed array is, else None; see `wrap_as`
    _host: Any  # the values in NumPy, when they have been read

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError(
            "Array cannot be made by calling the class. Write "
            "`minijax.numpy.array(...)`."
        )

    def __repr__(self) -> str:
        # Laid out as NumPy does; `array_interchange.py` lays it out as JAX does.
        return f"Array({np.asarray(self)}, dtype={self.dtype})"

    # `values/array_places.py` replaces these two methods. Its errors explain that an
    # array was deleted, or that a callback failed to compute it.
    def block_until_ready(self) -> Array:
        """Wait until the values are there; returns the array itself."""
        self._buffer.block_until_ready()
        return self

    def _read(self) -> np.ndarray:
        # On a CPU the buffer protocol reads NumPy's own dtypes without a copy.
        if self.dtype.isbuiltin == 1:
            with contextlib.suppress(BufferError):
                return np.asarray(memoryview(self._buffer))
        return self._buffer._single_device_array_to_np_array_did_copy()[0]

    # Values.

    @property
    def _value(self) -> np.ndarray:
        """The values as a read-only NumPy array; waits for them."""
        if self._host is not None:
            return self._host
        if dtypes.is_extended(self.aval.dtype):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. "
                "Use minijax.random.key_data(arr) if you wish to extract the "
                "underlying integer array."
            )
        host = self._read()
        if dtypes.is_float0(self.aval.dtype):  # on devices its entries are bools
            host = np.zeros(self.aval.shape, dtypes.float0)
        # A view of the buffer is not kept: while there is one, XLA does not reuse the
        # memory of a donated argument.
        if host.flags.owndata or self._buffer.platform() != "cpu":
            self._host = host
        return host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._value, dtype=dtype, copy=copy)

    def __bool__(self) -> bool:
        errors.check_bool_conversion(self.size)
        return bool(self._value)

    def _scalar(self) -> np.ndarray:
        if self.ndim > 0:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; got "
                f"arr.ndim={self.ndim}"
            )
        return self._value

    def __float__(self) -> float:
        return self._scalar().__float__()

    def __int__(self) -> int:
        return self._scalar().__int__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


# ----------------------------------------------------------------------------------
# Making arrays
# ----------------------------------------------------------------------------------

_new = object.__new__


def wrap_as(buffer: Any, aval: Any, placed: Any = None) -> Array:
    """An Array around a jaxlib array.

    `placed` is the sharding of a committed array. For an uncommitted array it is the
    device, or None on the first device, where arrays usually are.
    """
    array = _new(Array)
    array.aval = aval
    array._buffer = buffer
    array._placed = placed
    array._host = None
    return array


@functools.cache
def first_device() -> Any:
    """The device that runs programs by default."""
    return runtime.get_backend().local_devices()[0]


def default_device() -> Any:
    """The device on which uncommitted computations run."""
    chosen = state.default_device
    if chosen is None:
        return first_device()
    if isinstance(chosen, str):
        return runtime.get_backend(chosen).local_devices()[0]
    return chosen


def put(value: np.ndarray, aval: Any, device: Any = None) -> Array:
    """Copy a NumPy array to a device: an Array of type `aval`.

    The shape and dtype of `value` are those of `physical_aval(aval)`. With a `device`
    the Array is committed to it.
    """
    physical = physical_aval(aval)
    if device is not None:
        buffer = runtime.put(value, physical, device, True)
        return wrap_as(buffer, aval, buffer._sharding)
    target = default_device()
    buffer = runtime.put(value, physical, target, False)
    usual = target == first_device()
    return wrap_as(buffer, aval, None if usual else target)


enter(aval_of_class, Array, operator.attrgetter("aval"))
