"""Types: what a program knows about a value before the value is computed.

`ShapedArray` is the type of arrays. Besides shape and dtype it says whether the dtype
is weak (the value came from a Python number, so that `x + 1.0` keeps the dtype of `x`),
and three facts that matter only if a program uses several devices or memories: how the
array is split over a mesh of devices (`cut`), over which axes of that mesh its values
differ (`vma`, varying mesh axes), and in which memory it is stored (`memory_space`). In
a program for one device they are None, empty and None; skip them at a first reading.

Types are interned, so comparing two of them is comparing addresses. `get_aval` returns
the type of any value that may be an argument of a primitive.

In JAX: `core.py`, `AbstractValue` and `ShapedArray`.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes, errors
from .state import state


class AbstractValue:
    """The type of a value: what a tracer knows about the value it represents.

    In JAX: `core.py`, `AbstractValue`.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # For type checkers: most types have `shape`, `dtype` and similar attributes.
        def __getattr__(self, name: str) -> Any: ...

    def str_short(self, short_dtypes: bool = False) -> str:
        return repr(self)

    def to_tangent_aval(self) -> AbstractValue:
        """The type of a tangent of a value of this type."""
        raise TypeError(f"values of type {self} have no tangents")

    def to_ct_aval(self) -> AbstractValue:
        """The type of a cotangent of a value of this type."""
        return self.to_tangent_aval()


class Typed:
    """A value that has a type, `aval`, with the fields of the type as properties."""

    __slots__ = ()

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    vma = property(lambda self: self.aval.vma)


def canonicalize_dim(size: Any) -> int:
    """One dimension's size as a Python int; TypeError unless it is a whole number."""
    if hasattr(size, "evaluate"):  # an expression in variables (`SymbolicSize`)
        return size
    try:
        return operator.index(size)
    except TypeError:
        pass
    if hasattr(size, "_error_repr"):  # a tracer (`core.Tracer`)
        raise errors.type_error(
            "Shapes must be 1D sequences of concrete values of integer type, got a "
            f"dimension that is a {size._error_repr()}.{size.birth()}\n"
            "A shape must be known while the function is traced. If it is an "
            "argument of a jitted function, mark it with `static_argnums`; or take "
            "it from another array's shape.",
            rule="shapes are known while tracing",
        )
    raise TypeError(
        f"Shapes must be 1D sequences of integer scalars, got a dimension {size!r} of "
        f"type {type(size).__name__}. Write a whole number, such as `x.shape[0]`."
    )


def canonicalize_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python ints.

    Raises TypeError unless `shape` is a sequence of whole numbers. A tracer is refused,
    because shapes must be known while tracing.
    """
    if type(shape) is tuple and all(type(size) is int for size in shape):
        return shape
    try:
        return tuple(canonicalize_dim(size) for size in shape)
    except TypeError:
        if not isinstance(shape, (tuple, list)) and np.ndim(shape) == 0:
            raise TypeError(
                f"Shapes must be 1D sequences of integer scalars, got {shape!r} of "
                f"type {type(shape).__name__}. Write `({shape!r},)` for a vector."
            ) from None
        raise


# The arguments of `ShapedArray`, and its slots: the slot of `sharding` is `cut`.
FIELDS = ("shape", "dtype", "weak_type", "sharding", "vma", "memory_space")
_SLOTS = (*FIELDS[:3], "cut", *FIELDS[4:])
_fields_of = operator.attrgetter(*_SLOTS)

_interned: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
intern_lock = threading.Lock()


class ShapedArray(AbstractValue):
    """The type of an array: its shape, its dtype and four fields that most leave unset.

    Equal types are one object (they are interned), so `is` compares them and the hash
    is the address. `weak_type` marks values that came from Python scalars; when dtypes
    are promoted, they take the dtype of the other operand. `cut`, the argument
    `sharding`, is None for an array that is on no mesh; `vma` is the set of mesh
    axes over which it may vary inside `shard_map`; `memory_space` is None for the
    memory that a device computes in.

    In JAX: `core.py`, `ShapedArray`.
    """

    __slots__ = (*_SLOTS, "ndim", "size", "_tangent", "__weakref__")

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    cut: Any
    vma: frozenset
    memory_space: Any
    ndim: int
    size: int
    _tangent: Any  # None: not computed yet; False: the type itself

    def __new__(
        cls,
        shape: Sequence[int],
        dtype: Any,
        weak_type: bool = False,
        sharding: Any = None,
        vma: frozenset = frozenset(),
        memory_space: Any = None,
    ) -> ShapedArray:
        key = (shape, dtype, weak_type, sharding, vma, memory_space)
        try:
            if (known := _interned.get(key)) is not None:
                return known
        except TypeError:  # not hashable, such as a shape that is a list
            pass
        shape = canonicalize_shape(shape)
        if any(type(size) is int and size < 0 for size in shape):
            raise ValueError(f"a shape cannot have negative sizes, got {shape}")
        if not dtypes.is_extended(dtype):
            dtype = np.dtype(dtype)
        key = (shape, dtype, bool(weak_type), sharding, vma, memory_space)
        with intern_lock:
            aval = _interned.get(key)
            if aval is None:
                aval = object.__new__(cls)
                aval.shape, aval.dtype, aval.weak_type = key[:3]
                aval.cut, aval.vma, aval.memory_space = key[3:]
                aval.ndim = len(shape)
                aval.size = math.prod(shape)
                aval._tangent = None
                _interned[key] = aval
        return aval

    def __reduce__(self):
        return (ShapedArray, _fields_of(self))

    def update(self, **changes: Any) -> ShapedArray:
        """The same type with some fields changed: `aval.update(shape=(2, 3))`."""
        fields: dict[str, Any] = dict(zip(FIELDS, _fields_of(self)))
        if "shape" in changes and len(changes["shape"]) != self.ndim:
            fields["sharding"] = None
        fields.update(changes)
        return ShapedArray(**fields)

    def mapped(self, size: int, axis: int) -> ShapedArray:
        """The type of one slice along `axis`, which must have `size` entries."""
        return _without_axis(self, size, axis)

    def unmapped(self, size: int, axis: int, along: Any = None) -> ShapedArray:
        """The type of `size` such arrays stacked along a new axis `axis`.

        `along` says how a mesh cuts that axis; None if it does not.
        """
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        if along:
            return self.update(shape=shape, sharding=along.inserted_in(self, axis))
        return self.update(shape=shape, sharding=self.cut and self.cut.inserted(axis))

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type itself; with dtype float0 for integers and booleans."""
        if self._tangent is None:
            if dtypes.is_float0(self.dtype) or not dtypes.has_tangents(self.dtype):
                tangent = self.update(dtype=dtypes.float0, weak_type=False)
            else:
                tangent = self
            # A type that is its own tangent type is not stored: that would be a cycle.
            self._tangent = False if tangent is self else tangent
        return self._tangent or self

    def to_ct_aval(self) -> ShapedArray:
        """The type of tangents; in `cut`, reduced and unreduced axes are swapped."""
        kind = self.to_tangent_aval()
        return kind if kind.cut is None else kind.update(sharding=kind.cut.dual())

    def str_short(self, short_dtypes: bool = False) -> str:
        short = short_dtypes or dtypes.is_float0(self.dtype)
        name = dtypes.short_dtype_name(self.dtype) if short else self.dtype.name
        if self.memory_space is not None:
            name += f"<{self.memory_space.name.lower()}>"
        sizes = [str(size) for size in self.shape]
        words = []
        if axes := ",".join(map(str, sorted(self.vma))):
            words.append(f"V:({axes})" if len(self.vma) > 1 else f"V:{axes}")
        if self.cut is not None:
            sizes = self.cut.texts_of_sizes(sizes)
            words += self.cut.words()
        text = f"{name}[{','.join(sizes)}]"
        return f"{text}{{{', '.join(words)}}}" if words else text

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short()


# How to find the type of a value, for each class whose values primitives take.
# `language.py` adds tracers, `array.py` adds Array.
aval_of_class: dict[type, Callable[[Any], AbstractValue]] = {}

_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def _python_scalar_aval(value: Any) -> ShapedArray:
    kind = type(value)
    aval = _scalar_avals.get((kind, state.enable_x64))
    if aval is None:
        # An IntEnum has the type of an int.
        base = next(k for k in kind.__mro__ if k in dtypes.python_scalar_dtypes)
        dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[base])
        aval = ShapedArray((), dtype, weak_type=base is not bool)
        _scalar_avals[kind, state.enable_x64] = aval
    if isinstance(value, int) and kind is not bool:
        _check_int_fits(value, aval.dtype)
    return aval


def _check_int_fits(value: int, dtype: np.dtype) -> None:
    if not -(1 << (8 * dtype.itemsize - 1)) <= value < 1 << (8 * dtype.itemsize - 1):
        raise OverflowError(
            f"Python int {value} is too large to convert to {dtype.name}. Write it as "
            "a float, or as an unsigned or 64-bit NumPy scalar (with "
            '`config.update("jax_enable_x64", True)`).'
        )


def _numpy_aval(value: np.ndarray | np.generic) -> ShapedArray:
    dtype = value.dtype
    if dtype != dtypes.float0:
        if dtype.char in "OSUMmgG" or dtype.type is np.void:
            raise TypeError(
                f"Value {value!r} with dtype {dtype} is not a valid JAX array type. "
                "Only numbers are supported; of a longdouble take `x.astype(float)`."
            )
        dtype = dtypes.canonicalize_dtype(dtype)
    return ShapedArray(value.shape, dtype)


for _kind in (bool, int, float, complex):
    aval_of_class[_kind] = _python_scalar_aval
aval_of_class |= dict.fromkeys((np.ndarray, np.longdouble, np.clongdouble), _numpy_aval)


def _always(aval: ShapedArray) -> Callable[[Any], ShapedArray]:
    """The rule of a class whose values all have one type."""
    return lambda value: aval


# NumPy's scalars of at most 32 bits have the same type under all flags.
for _scalar in (np.bool_, np.int32, np.uint32, np.float32, np.complex64):
    aval_of_class[_scalar] = _always(ShapedArray((), _scalar))

# Scalars that keep 64 bits outside of 64-bit mode. Arrays made in that mode may be used
# after it, and rules need constants of their dtype.
_wide_scalars: dict[tuple[np.dtype, bool], type] = {}
for _dtype in map(np.dtype, ("i8", "u8", "f8", "c16")):
    for _weak in (False, True):
        _aval = ShapedArray((), _dtype, _weak)
        _wide = type(f"wide_{_dtype.name}", (_dtype.type,), {"aval": _aval})
        aval_of_class[_wide] = operator.attrgetter("aval")
        _wide_scalars[_dtype, _weak] = _wide


def numpy_scalar(value: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """`value` as a scalar of exactly this dtype, also outside 64-bit mode.

    `weak_type` has an effect on 64-bit scalars outside of that mode only.
    """
    scalar = np.asarray(value, dtype)[()]
    if dtypes.canonical_of.get(dtype, dtype) == dtype or state.enable_x64:
        return scalar
    return _wide_scalars[dtype, weak_type](scalar)


def get_aval(x: Any) -> AbstractValue:
    """The type of a value that may be an argument of a primitive.

    Raises TypeError, naming the value's class, when no primitive can take it.

    In JAX: `core.py`, `get_aval` (public as `jax.typeof`).
    """
    kind = type(x)
    rule = aval_of_class.get(kind)
    if rule is not None:
        return rule(x)
    if isinstance(x, (np.generic, np.ndarray)):
        if isinstance(x, np.ma.MaskedArray):
            raise ValueError(
                "NumPy masked arrays are not supported, since the mask would be lost. "
                "Write `x.filled(value)` to put `value` at the masked places."
            )
        return _numpy_aval(x)
    if hasattr(x, "__jax_array__"):
        return get_aval(x.__jax_array__())
    for base in kind.__mro__:
        if base in aval_of_class:
            return aval_of_class[base](x)
    raise TypeError(
        f"Argument '{x}' of type '{kind.__module__}.{kind.__qualname__}' is not a "
        "valid JAX type. Arguments are arrays, NumPy arrays and scalars, Python "
        "numbers, or containers of these registered as pytrees."
    )


typeof = get_aval

# Objects that describe an array without being one, such as `ShapeDtypeStruct`. No
# primitive takes them; functions that need types only, such as `make_jaxpr`, do.
aval_of_description: dict[type, Callable[[Any], AbstractValue]] = {}


def shaped_abstractify(value: Any) -> AbstractValue:
    """The type of a value or of a description of one; a type is returned as it is."""
    if isinstance(value, AbstractValue):
        return value
    rule = aval_of_description.get(type(value), get_aval)
    return rule(value)


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` may be an argument of a primitive."""
    try:
        get_aval(x)
    except (TypeError, OverflowError):
        return False
    return True


@functools.lru_cache(maxsize=4096)  # called for each value under `vmap`
def _without_axis(aval: ShapedArray, size: int, axis: int) -> ShapedArray:
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval.str_short()} is not of size {size}")
    shape = aval.shape[:axis] + aval.shape[axis + 1 :]
    return aval.update(shape=shape, sharding=aval.cut and aval.cut.without(axis))


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """The type of one slice along `axis`, which must have `size` entries."""
    return aval if axis is None else aval.mapped(size, axis)


def unmapped_aval(size: int, axis: int | None, aval: Any, *along: Any) -> AbstractValue:
    """The type of `size` slices stacked along a new axis at position `axis`."""
    return aval if axis is None else aval.unmapped(size, axis, *along)


def physical_aval(aval: AbstractValue) -> AbstractValue:
    """The type of the buffer that stores an array.

    It is `u32[3,2]`, that of the bits, for random keys `key<fry>[3]`; `bool[3]` for
    `float0[3]`, which has no bits; for other types it is the type itself.
    """
    if not isinstance(aval, ShapedArray):
        return aval
    if dtypes.is_extended(aval.dtype):
        shape = (*aval.shape, *aval.dtype.physical_shape)
        return ShapedArray(shape, aval.dtype.physical_dtype)
    if dtypes.is_float0(aval.dtype):
        return ShapedArray(aval.shape, np.dtype(bool))
    return aval


def typecompat(expected: AbstractValue, actual: AbstractValue) -> bool:
    """Whether two types are the same, up to weak types.

    A type on no mesh matches a type on any mesh. Types on meshes of Auto axes match.
    """
    if isinstance(expected, ShapedArray) and isinstance(actual, ShapedArray):
        one, other = expected.cut, actual.cut
        if one is not other and not (one or other).separates(one, other):
            expected, actual = (a.update(sharding=None) for a in (expected, actual))
        return expected.strip_weak_type() is actual.strip_weak_type()
    return expected is actual
