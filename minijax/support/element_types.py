"""The element types of arrays, and what can be asked about one of them.

NumPy's numbers, the small floats and integers of ml_dtypes, and extended dtypes such
as that of random keys. How types combine, and what 64-bit mode does, is in `dtypes`,
which also offers all names of this file.

In JAX: the first half of `jax/_src/dtypes.py`.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

DType = Any
DTypeLike = Any

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo
can_cast = np.can_cast

# ---- extended dtypes ----------------------------------------------------------------


class extended(np.generic):
    """Abstract scalar type of all extended dtypes, for `issubdtype`; no instances."""


class prng_key(extended):
    """Abstract scalar type of the dtypes of random keys; no instances."""


class ExtendedDType:
    """An element type that NumPy does not know, made of elements that it knows.

    A value of shape `s` is stored as an array of shape `s + physical_shape` and of
    dtype `physical_dtype`; `name` is how the dtype is printed, as in `key<fry>[3]`.
    Subclasses define these three.
    """

    type: Any = extended
    name: Any
    physical_shape: Any
    physical_dtype: Any

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(np.prod(self.physical_shape)) * self.physical_dtype.itemsize

    @property
    def tangent_dtype(self) -> DType:
        """The dtype of tangents; float0 says that there is nothing to differentiate."""
        return float0

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class PRNGKeyDType(ExtendedDType):
    """The dtype of random keys of one generator.

    `impl` is the generator: it has a `tag` (such as "fry") and the `key_shape` of its
    uint32 words. In JAX: `prng.py`, `KeyTy`.
    """

    type = prng_key

    def __init__(self, impl: Any) -> None:
        self.impl = impl
        self._hash = hash((PRNGKeyDType, impl))

    @property
    def name(self) -> str:
        return f"key<{self.impl.tag}>"

    @property
    def physical_shape(self) -> tuple[int, ...]:
        return tuple(self.impl.key_shape)

    @property
    def physical_dtype(self) -> np.dtype:
        return np.dtype(np.uint32)

    def __eq__(self, other: object) -> bool:
        return type(other) is PRNGKeyDType and self.impl == other.impl

    def __hash__(self) -> int:
        return self._hash


def is_extended(dtype: Any) -> bool:
    """Whether a dtype object is an extended one."""
    return isinstance(dtype, ExtendedDType)


# ---- the types there are ------------------------------------------------------------

bool_ = np.bool_
int_ = np.int64
uint = np.uint64
float_ = np.float64
complex_ = np.complex128

bfloat16 = ml_dtypes.bfloat16
float8_e3m4 = ml_dtypes.float8_e3m4
float8_e4m3 = ml_dtypes.float8_e4m3
float8_e8m0fnu = ml_dtypes.float8_e8m0fnu
float8_e4m3b11fnuz = ml_dtypes.float8_e4m3b11fnuz
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e4m3fnuz = ml_dtypes.float8_e4m3fnuz
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e5m2fnuz = ml_dtypes.float8_e5m2fnuz
float6_e2m3fn = ml_dtypes.float6_e2m3fn
float6_e3m2fn = ml_dtypes.float6_e3m2fn
float4_e2m1fn = ml_dtypes.float4_e2m1fn
int2 = ml_dtypes.int2
uint2 = ml_dtypes.uint2
int4 = ml_dtypes.int4
uint4 = ml_dtypes.uint4
# Newer versions of ml_dtypes only.
int1 = getattr(ml_dtypes, "int1", None)
uint1 = getattr(ml_dtypes, "uint1", None)

# The type of tangents of integers and booleans, which have no derivative: no bytes.
float0: np.dtype = np.dtype([("float0", np.void, 0)])


def dtypes_of(*types: Any) -> tuple[np.dtype, ...]:
    return tuple(np.dtype(scalar) for scalar in types if scalar is not None)


bool_dtype = np.dtype(bool)
float4_dtypes = dtypes_of(float4_e2m1fn)
float6_dtypes = dtypes_of(float6_e2m3fn, float6_e3m2fn)
float8_dtypes = dtypes_of(
    float8_e3m4,
    float8_e4m3,
    float8_e8m0fnu,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
)
small_floats = (*float4_dtypes, *float6_dtypes, *float8_dtypes)
custom_floats = (*small_floats, np.dtype(bfloat16))
float_dtypes = (*custom_floats, *dtypes_of(np.float16, np.float32, np.float64))
small_signed_ints = dtypes_of(int1, int2, int4)
small_unsigned_ints = dtypes_of(uint1, uint2, uint4)
small_ints = (*small_signed_ints, *small_unsigned_ints)
signed_ints = (*small_signed_ints, *dtypes_of(np.int8, np.int16, np.int32, np.int64))
unsigned_ints = (
    *small_unsigned_ints,
    *dtypes_of(np.uint8, np.uint16, np.uint32, np.uint64),
)
complex_dtypes = dtypes_of(np.complex64, np.complex128)
integral_dtypes = (*unsigned_ints, *signed_ints)
promotable_dtypes = (bool_dtype, *integral_dtypes, *float_dtypes, *complex_dtypes)
valid_dtypes = frozenset((*promotable_dtypes, float0))

_custom_float_types = frozenset(dtype.type for dtype in custom_floats)
_small_signed_types = frozenset(dtype.type for dtype in small_signed_ints)
_small_unsigned_types = frozenset(dtype.type for dtype in small_unsigned_ints)

# ---- questions about one type -------------------------------------------------------


def _is_subclass(value: Any, parent: type) -> bool:
    return isinstance(value, type) and issubclass(value, parent)


def issubdtype(a: Any, b: Any) -> bool:
    """Whether the type `a` lies below `b`, as `np.issubdtype`, for all types here.

    bfloat16 and the small floats count as `np.floating`, small integers as
    `np.integer`, and the dtypes of random keys lie below `prng_key` and `extended`.
    """
    try:
        return _issubdtype(a, b)
    except TypeError:
        # Not hashable, such as an object that merely has a dtype.
        known = (type, np.dtype, ExtendedDType)
        return _issubdtype(
            a if isinstance(a, known) else np.dtype(a),
            b if isinstance(b, known) else np.dtype(b),
        )


@functools.lru_cache(maxsize=4096)
def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(b, ExtendedDType):
        return isinstance(a, ExtendedDType) and a == b
    if isinstance(a, ExtendedDType):
        a = a.type
    below = a if _is_subclass(a, np.generic) else np.dtype(a).type
    if _is_subclass(b, extended):
        return issubclass(below, b)
    above = b if _is_subclass(b, np.generic) else np.dtype(b).type
    # The scalar types of ml_dtypes stand outside of NumPy's tree: hang them in.
    if below in _custom_float_types:
        return above in (below, np.floating, np.inexact, np.number, np.generic)
    if below in _small_signed_types:
        return above in (below, np.signedinteger, np.integer, np.number, np.generic)
    if below in _small_unsigned_types:
        return above in (below, np.unsignedinteger, np.integer, np.number, np.generic)
    return bool(np.issubdtype(below, above))


element_kinds: dict[str, frozenset[np.dtype]] = {
    "bool": frozenset((bool_dtype,)),
    "signed integer": frozenset(signed_ints),
    "unsigned integer": frozenset(unsigned_ints),
    "integral": frozenset(integral_dtypes),
    "real floating": frozenset(float_dtypes),
    "complex floating": frozenset(complex_dtypes),
    "numeric": frozenset((*integral_dtypes, *float_dtypes, *complex_dtypes)),
}


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, as in the array API standard.

    `kind` is a dtype, one of "bool", "signed integer", "unsigned integer",
    "integral", "real floating", "complex floating", "numeric", or a tuple of those.
    Raises ValueError for an unknown string, TypeError for anything else.
    """
    asked = np.dtype(dtype)
    for entry in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(entry, str) and entry in element_kinds:
            if asked in element_kinds[entry]:
                return True
            continue
        try:
            wanted = np.dtype(entry)
        except TypeError as error:
            if isinstance(entry, str):
                raise ValueError(
                    f"isdtype: the kind {entry!r} is neither a dtype nor one of "
                    f"{', '.join(map(repr, element_kinds))}."
                ) from error
            raise TypeError(
                "isdtype: kind must be a dtype, a string or a tuple of those; got "
                f"{entry!r}."
            ) from error
        if asked == wanted:
            return True
    return False


def supports_inf(dtype: DTypeLike) -> bool:
    """Whether the type has an infinity."""
    lacking = (float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2fnuz)
    return np.dtype(dtype).type not in lacking and issubdtype(dtype, np.inexact)


def itemsize_bits(dtype: DTypeLike) -> int:
    """The bits of one element; a bool takes 8, an int4 takes 4.

    Raises ValueError for None and for types that are not numbers.
    """
    if dtype is None:
        raise ValueError("itemsize_bits: dtype must be given, got None.")
    if dtype == bool_dtype:
        return 8
    if issubdtype(dtype, np.integer):
        return iinfo(dtype).bits
    if issubdtype(dtype, np.floating):
        return finfo(dtype).bits
    if issubdtype(dtype, np.complexfloating):
        return 2 * finfo(dtype).bits
    raise ValueError(f"itemsize_bits: {dtype} is not the dtype of numbers.")


@functools.cache
def short_dtype_name(dtype: Any) -> str:
    """The name in printed jaxprs: f32, i32, u8, bool, bf16, c64, key<fry>."""
    if isinstance(dtype, ExtendedDType):
        return dtype.name
    if dtype == float0:
        return "float0"
    name = dtype.name
    for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(long, short)
    return name
