"""Array: an immutable array on a device.

A thin shell around jaxlib's array: the buffer on the device, its type (`aval`), and
where it insists to be. Operators and NumPy's methods come from
`numpy/array_methods.py`, which installs them on `Array` and `Tracer` alike.

In JAX: `jax/_src/array.py`, `ArrayImpl`, and `jax/_src/basearray.py`, `Array`.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from minijax.backend import platforms
from minijax.language.core import ShapedArray, Tracer, aval_of_class, physical_aval
from minijax.support import dtypes, errors
from minijax.support.thread_state import state


class _ArrayMeta(type):
    """`isinstance(x, Array)` holds for tracers too: they stand for arrays."""

    def __instancecheck__(cls, instance: Any) -> bool:
        kind = type(instance)
        if kind is cls:
            return True
        if issubclass(kind, Tracer):
            return isinstance(instance.aval, ShapedArray)
        return type.__instancecheck__(cls, instance)


class Array(metaclass=_ArrayMeta):
    """An immutable n-dimensional array on a device.

    Made by `minijax.numpy` functions and by every compiled program, not by calling the
    class. Computation runs in the background: an Array may exist before its values do,
    and reading them waits (`block_until_ready`).

    In JAX: `jax.Array`.
    """

    __slots__ = ("aval", "_buffer", "_placed", "_host", "__weakref__")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    aval: Any
    _buffer: Any
    _placed: Any
    _host: Any

    if TYPE_CHECKING:
        # For type checkers: what `numpy/array_methods.py` installs.
        def __getattr__(self, name: str) -> Any: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = cast(Any, None)
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = cast(Any, None)
        __mod__ = __pow__ = __matmul__ = __divmod__ = cast(Any, None)
        __rmod__ = __rpow__ = __rmatmul__ = __rdivmod__ = cast(Any, None)
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = cast(Any, None)
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = cast(Any, None)
        __neg__ = __pos__ = __abs__ = __invert__ = cast(Any, None)
        __lt__ = __le__ = __gt__ = __ge__ = cast(Any, None)
        __getitem__ = __iter__ = __reversed__ = cast(Any, None)

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError(
            "Array cannot be made by calling the class. Write "
            "`minijax.numpy.array(...)`."
        )

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    vma = property(lambda self: self.aval.vma)
    itemsize = property(lambda self: self.aval.dtype.itemsize)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)

    # Where it is.

    @property
    def sharding(self) -> Any:
        """How the array is laid out over devices."""
        return self._buffer._sharding

    @property
    def device(self) -> Any:
        """The device, or the sharding when there are several."""
        devices = self._buffer._sharding.device_set
        return next(iter(devices)) if len(devices) == 1 else self._buffer._sharding

    def devices(self) -> set:
        """The devices that hold a part of the array."""
        return set(self._buffer._sharding.device_set)

    @property
    def committed(self) -> bool:
        """Whether computations with this array must run where it is."""
        # `_placed` is a sharding then; else None, or the device it happens to be on.
        return self._placed is not None and not hasattr(self._placed, "platform")

    @property
    def is_fully_addressable(self) -> bool:
        return self._buffer._sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self._buffer._sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array on this process's devices."""
        sharding = self._buffer._sharding
        indices = sharding.devices_indices_map(self.shape)
        return [
            Shard(device, indices[device], wrap(part))
            for device, part in platforms.shards(self._buffer)
        ]

    def block_until_ready(self) -> Array:
        """Wait until the values are there; returns the array itself."""
        self._check_alive()
        try:
            self._buffer.block_until_ready()
        except errors.JaxRuntimeError as error:
            errors.add_callback_cause(error)
            raise
        return self

    def copy_to_host_async(self) -> None:
        """Begin copying the values to the host, so that reading them waits less."""
        self._check_alive()
        platforms.copy_to_host_async(self._buffer)

    def is_ready(self) -> bool:
        """Whether the values are there already."""
        return self._buffer.is_ready()

    def is_deleted(self) -> bool:
        """Whether the memory was freed, by `delete` or by donating the array."""
        return self._buffer.is_deleted()

    def delete(self) -> None:
        """Free the memory now; the array cannot be used any more."""
        self._host = None
        self._buffer.delete()

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array's memory on its device."""
        self._check_alive()
        return platforms.unsafe_buffer_pointer(self._buffer)

    def on_device_size_in_bytes(self) -> int:
        """Bytes the array takes on its device."""
        return self._buffer.on_device_size_in_bytes()

    def _check_alive(self) -> None:
        if self._buffer.is_deleted():
            raise deleted_error(self)

    # Its values.

    @property
    def _value(self) -> np.ndarray:
        """The values as a read-only NumPy array; waits for them."""
        if self._host is not None:
            return self._host
        self._check_alive()
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. "
                "Use minijax.random.key_data(arr) if you wish to extract the "
                "underlying integer array."
            )
        try:
            host = platforms.to_numpy(self._buffer)
        except errors.JaxRuntimeError as error:
            errors.add_callback_cause(error)
            raise
        if dtypes.is_float0(self.aval.dtype):  # on devices its places are bools
            host = np.zeros(self.aval.shape, dtypes.float0)
        # A view of the buffer is not kept: while there is one, XLA does not reuse the
        # memory of an argument that is given away.
        if host.flags.owndata or self._buffer.platform() != "cpu":
            self._host = host
        return host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is None:
            return np.asarray(self._value, dtype=dtype)
        if copy:
            return np.array(self._value, dtype=dtype, copy=True)
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(
                f"Unable to avoid copy while creating an array of dtype {dtype} from "
                f"one of dtype {self.dtype}. Leave out copy=False."
            )
        return self._value

    def item(self, *args: Any) -> bool | int | float | complex:
        """One element as a Python scalar; the only one if no index is given."""
        return self._value.item(*args)

    def tolist(self) -> Any:
        """The values as nested Python lists."""
        return self._value.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The values as bytes, in row-major order by default."""
        return self._value.tobytes(order)  # type: ignore[arg-type]

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

    def __complex__(self) -> complex:
        return self._scalar().astype(complex).item()

    def __index__(self) -> int:
        if self.ndim or not dtypes.issubdtype(self.dtype, np.integer):
            raise TypeError(
                "Only integer scalar arrays can be converted to a scalar index."
            )
        return operator.index(self._value[()])

    def __hex__(self) -> str:
        return hex(self.__index__())

    def __oct__(self) -> str:
        return oct(self.__index__())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __format__(self, spec: str) -> str:
        if isinstance(self.dtype, dtypes.ExtendedDType):
            return format(repr(self), spec)
        return format(self._value[()] if self.ndim == 0 else self._value, spec)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, deleted)"
        if isinstance(self.dtype, dtypes.ExtendedDType):
            bits = platforms.to_numpy(self._buffer)
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
            threshold=_threshold(),
        )
        last = text[text.rfind("\n") + 1 :]
        line = np.get_printoptions()["linewidth"]
        start = len(prefix) if "\n" not in text else 0
        gap = " " if start + len(last) + len(ending) + 2 <= line else "\n" + " " * 6
        return f"{prefix}{text},{gap}{ending}"

    def __str__(self) -> str:
        if isinstance(self.dtype, dtypes.ExtendedDType):
            return repr(self)
        return str(self._value)

    # Interchange.

    def __reduce__(self) -> tuple:
        if isinstance(self.dtype, dtypes.ExtendedDType):
            bits = platforms.to_numpy(self._buffer)
            return (_restore, (bits, self.dtype, self.weak_type))
        return (_restore, (np.asarray(self._value), None, self.weak_type))

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: dict) -> Array:
        restore, arguments = self.__reduce__()
        return restore(*arguments)

    def __dlpack__(self, **options: Any) -> Any:
        """The array for another library, without copying where both can read it."""
        self._check_alive()
        return np.asarray(self._value).__dlpack__(**_host_dlpack_options(options))

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        if device.platform == "cpu":
            return (1, 0)
        return (2, device.local_hardware_id or 0)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise item_assignment_error()


def item_assignment_error() -> TypeError:
    """The error for `x[i] = y`, with the line to write."""
    return errors.type_error(
        "JAX arrays are immutable and do not support in-place item assignment. "
        "Instead of `x[idx] = y`, write `x = x.at[idx].set(y)`, which gives a new "
        "array; inside jit no copy is made. There are also .at[idx].add, .multiply, "
        ".min and .max.",
        rule="arrays never change",
        instead="x = x.at[idx].set(y)",
    )


def _threshold() -> int:
    return np.get_printoptions()["threshold"]


def _host_dlpack_options(options: dict) -> dict:
    """The options of `__dlpack__` that NumPy understands."""
    known = {"max_version", "copy", "dl_device"}
    return {name: value for name, value in options.items() if name in known and value}


class Shard:
    """One part of an array: its device, which slice of the whole it is, its data."""

    __slots__ = ("device", "index", "data")

    def __init__(self, device: Any, index: tuple, data: Array):
        self.device = device
        self.index = index
        self.data = data

    @property
    def replica_id(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, data={self.data})"


def deleted_error(array: Array) -> RuntimeError:
    """The error for using an array whose memory is gone."""
    type_text = array.aval.str_short()
    return errors.with_facts(
        RuntimeError(
            f"Array has been deleted with shape={type_text}. It was donated to a "
            "jitted function (donate_argnums, donate_argnames), which reused its "
            "memory, or `.delete()` was called. Use the function's result instead, or "
            "do not donate the argument."
        ),
        rule="a donated array is gone after the call",
        instead="x = f(x)",
    )


# ----------------------------------------------------------------------------------
# Making arrays
# ----------------------------------------------------------------------------------

_new = object.__new__


def wrap_as(buffer: Any, aval: Any, placed: Any = None) -> Array:
    """An Array around a jaxlib array. `placed` is None for the usual, uncommitted one.

    `placed` is the sharding on which a committed array insists, or a device other than
    the default one on which an uncommitted array happens to be.
    """
    array = _new(Array)
    array.aval = aval
    array._buffer = buffer
    array._placed = placed
    array._host = None
    return array


def wrap(buffer: Any) -> Array:
    """An Array around a jaxlib array of unknown origin, its type read off."""
    kind = buffer.aval
    aval = ShapedArray(kind.shape, kind.dtype, bool(kind.weak_type))
    return wrap_as(buffer, aval, placement_of(buffer))


def placement_of(buffer: Any) -> Any:
    """The `_placed` that belongs to a buffer."""
    if buffer._committed:
        return buffer._sharding
    device = next(iter(buffer._sharding.device_set))
    return None if device == first_device() else device


@functools.cache
def first_device() -> Any:
    """The device on which everything runs unless something else was asked for."""
    return platforms.local_devices()[0]


def default_device() -> Any:
    """The device on which uncommitted computations run."""
    chosen = state.default_device
    if chosen is None:
        return first_device()
    if isinstance(chosen, str):
        return platforms.local_devices(backend=chosen)[0]
    return chosen


def from_numpy(
    value: np.ndarray, weak_type: bool = False, device: Any = None, dtype: Any = None
) -> Array:
    """A NumPy array copied to a device (the default one, uncommitted, unless given).

    The dtype is canonicalized: 64-bit types become 32-bit ones outside x64 mode.
    """
    dtype = dtypes.canonicalize_dtype(value.dtype if dtype is None else dtype)
    value = np.asarray(value, dtype)
    aval = ShapedArray(value.shape, dtype, weak_type)
    return put(value, aval, device)


def put(value: np.ndarray, aval: Any, device: Any = None) -> Array:
    """A NumPy array of an Array's physical type, copied to a device."""
    physical = physical_aval(aval)
    if device is not None:
        buffer = platforms.put(value, physical, device, True)
        return wrap_as(buffer, aval, buffer._sharding)
    target = default_device()
    buffer = platforms.put(value, physical, target, False)
    usual = target == first_device()
    return wrap_as(buffer, aval, None if usual else target)


def _restore(bits: np.ndarray, key_dtype: Any, weak_type: bool) -> Array:
    if key_dtype is not None:
        shape = bits.shape[: bits.ndim - len(key_dtype.physical_shape)]
        return put(bits, ShapedArray(shape, key_dtype))
    return from_numpy(bits, weak_type)


aval_of_class[Array] = operator.attrgetter("aval")


def as_numpy(value: Any) -> np.ndarray:
    """The values of an Array, NumPy array or scalar, in its canonical dtype."""
    if type(value) is Array:
        return value._value
    return np.asarray(value)
