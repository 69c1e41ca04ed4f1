"""Element types: which there are, how they promote, and what 64-bit mode does.

Promotion follows JAX's lattice, not NumPy's table. Python scalars are weakly typed:
they bend to the type of the array beside them. In the lattice they are three nodes of
their own, `int*`, `float*` and `complex*`:

    bool -> int* -> {u1 u2 u4 u8 -> u16 -> u32 -> u64, i1 i2 i4 i8 -> ... -> i64}
         -> float* -> {8-, 6- and 4-bit floats, bf16 and f16 -> f32 -> f64}
         -> complex* -> c64 -> c128

Two types promote to their least upper bound there. All functions return `np.dtype`
objects or extended dtypes, such as that of random keys.

In JAX: `jax/_src/dtypes.py`.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from minijax.config import state
from minijax.source_info import user_stacklevel

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

    type: type[extended] = extended
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


def _dtypes(*types: Any) -> tuple[np.dtype, ...]:
    return tuple(np.dtype(scalar) for scalar in types if scalar is not None)


_bool = np.dtype(bool)
_float4_dtypes = _dtypes(float4_e2m1fn)
_float6_dtypes = _dtypes(float6_e2m3fn, float6_e3m2fn)
_float8_dtypes = _dtypes(
    float8_e3m4,
    float8_e4m3,
    float8_e8m0fnu,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
)
_small_floats = (*_float4_dtypes, *_float6_dtypes, *_float8_dtypes)
_custom_floats = (*_small_floats, np.dtype(bfloat16))
_float_dtypes = (*_custom_floats, *_dtypes(np.float16, np.float32, np.float64))
_small_signed = _dtypes(int1, int2, int4)
_small_unsigned = _dtypes(uint1, uint2, uint4)
_small_ints = (*_small_signed, *_small_unsigned)
_signed = (*_small_signed, *_dtypes(np.int8, np.int16, np.int32, np.int64))
_unsigned = (*_small_unsigned, *_dtypes(np.uint8, np.uint16, np.uint32, np.uint64))
_complex_dtypes = _dtypes(np.complex64, np.complex128)
_promotable = (_bool, *_unsigned, *_signed, *_float_dtypes, *_complex_dtypes)
_valid = frozenset((*_promotable, float0))
_weak_types = (int, float, complex)

_custom_float_types = frozenset(dtype.type for dtype in _custom_floats)
_small_signed_types = frozenset(dtype.type for dtype in _small_signed)
_small_unsigned_types = frozenset(dtype.type for dtype in _small_unsigned)

python_scalar_types = frozenset((bool, int, float, complex))
python_scalar_dtypes: dict[type, np.dtype] = {
    bool: _bool,
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
_narrow: dict[np.dtype, np.dtype] = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_canonical_of_valid = {dtype: _narrow.get(dtype, dtype) for dtype in _valid}
# Indexed by enable_x64: the dtype that stands for a Python scalar type.
_scalar_defaults: dict[type, tuple[np.dtype, np.dtype]] = {
    scalar: (_narrow.get(wide, wide), wide)
    for scalar, wide in python_scalar_dtypes.items()
}


def default_int_dtype() -> np.dtype:
    """int32, or int64 in 64-bit mode."""
    return _scalar_defaults[int][state.enable_x64]


def default_uint_dtype() -> np.dtype:
    """uint32, or uint64 in 64-bit mode."""
    return np.dtype(np.uint64) if state.enable_x64 else np.dtype(np.uint32)


def default_float_dtype() -> np.dtype:
    """float32, or float64 in 64-bit mode."""
    return _scalar_defaults[float][state.enable_x64]


def default_complex_dtype() -> np.dtype:
    """complex64, or complex128 in 64-bit mode."""
    return _scalar_defaults[complex][state.enable_x64]


_default_of_kind = {
    "b": lambda: _bool,
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


# ---- questions about one type -------------------------------------------------------


def _is_subclass(value: Any, parent: type) -> bool:
    return isinstance(value, type) and issubclass(value, parent)


def issubdtype(a: Any, b: Any) -> bool:
    """Whether the type `a` lies below `b`, as `np.issubdtype`, for all types here.

    bfloat16 and the small floats count as `np.floating`, small integers as
    `np.integer`, and the dtypes of random keys lie below `prng_key` and `extended`.
    """
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


_kinds: dict[str, frozenset[np.dtype]] = {
    "bool": frozenset((_bool,)),
    "signed integer": frozenset(_signed),
    "unsigned integer": frozenset(_unsigned),
    "integral": frozenset((*_signed, *_unsigned)),
    "real floating": frozenset(_float_dtypes),
    "complex floating": frozenset(_complex_dtypes),
    "numeric": frozenset((*_signed, *_unsigned, *_float_dtypes, *_complex_dtypes)),
}


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, as in the array API standard.

    `kind` is a dtype, one of "bool", "signed integer", "unsigned integer",
    "integral", "real floating", "complex floating", "numeric", or a tuple of those.
    Raises ValueError for an unknown string, TypeError for anything else.
    """
    asked = np.dtype(dtype)
    for entry in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(entry, str) and entry in _kinds:
            if asked in _kinds[entry]:
                return True
            continue
        try:
            wanted = np.dtype(entry)
        except TypeError as error:
            if isinstance(entry, str):
                raise ValueError(
                    f"isdtype: the kind {entry!r} is neither a dtype nor one of "
                    f"{', '.join(map(repr, _kinds))}."
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
    if dtype == _bool:
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


def scalar_type_of(x: Any) -> type:
    """The Python type of a value's elements: bool, int, float or complex."""
    found = dtype(x)
    for scalar, parent in (
        (bool, np.bool_),
        (int, np.integer),
        (float, np.floating),
        (complex, np.complexfloating),
    ):
        if issubdtype(found, parent):
            return scalar
    raise TypeError(f"The dtype {found} of {x!r} has no Python scalar type.")


# ---- 64-bit mode --------------------------------------------------------------------


@functools.cache
def _canonical(enable_x64: bool, allow_extended: bool, dtype: Any) -> DType:
    if issubdtype(dtype, extended):
        if not allow_extended:
            raise ValueError(
                f"canonicalize_dtype: {dtype} is an extended dtype; pass "
                "allow_extended_dtype=True to let it through."
            )
        return dtype
    try:
        plain = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype {dtype!r} is not understood.") from error
    return plain if enable_x64 else _narrow.get(plain, plain)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType:
    """The dtype that values get: 64-bit types become 32-bit ones outside x64 mode.

    Raises TypeError for what is no dtype, ValueError for an extended dtype unless it
    is allowed.
    """
    return _canonical(state.enable_x64, allow_extended_dtype, dtype)


def _canonical_explicit(dtype: np.dtype, fun_name: str) -> np.dtype:
    """The dtype for one that the user asked for, with a warning when it is cut."""
    if state.enable_x64:
        return dtype
    narrow = _narrow.get(dtype)
    if narrow is None or state.explicit_x64_dtypes == "allow":
        return dtype
    where = f" in {fun_name}" if fun_name else ""
    if state.explicit_x64_dtypes == "error":
        raise ValueError(
            f"Explicitly requested dtype {dtype}{where} is not available, since "
            "64-bit types are off. Set the flag jax_enable_x64, or "
            "jax_explicit_x64_dtypes to 'allow'."
        )
    warnings.warn(
        f"Explicitly requested dtype {dtype}{where} is not available and will be "
        f"truncated to dtype {narrow.name}. Write "
        "`config.update('jax_enable_x64', True)` at the start of the program, or set "
        "the environment variable JAX_ENABLE_X64, to keep 64 bits.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )
    return narrow


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> DType:
    """The dtype for a `dtype=` argument of the function named `fun_name`.

    A 64-bit type outside x64 mode warns and is cut to 32 bits; the Python types int,
    float and complex mean the defaults. Raises ValueError for None or an array,
    TypeError for a dtype that arrays cannot have.
    """
    if isinstance(dtype, type) and dtype in _scalar_defaults:
        return _scalar_defaults[dtype][state.enable_x64]
    if isinstance(dtype, np.dtype) and dtype in _valid:
        return _canonical_explicit(dtype, fun_name or "")
    if dtype is None:
        raise ValueError("A dtype must be given, got None.")
    if hasattr(dtype, "aval"):
        raise ValueError(
            "An array was passed as a dtype argument; write dtype=x.dtype in place "
            "of dtype=x."
        )
    if issubdtype(dtype, extended):
        return dtype
    plain = np.dtype(dtype)
    if plain not in _valid:
        where = f" in {fun_name}" if fun_name else ""
        raise TypeError(f"Arrays hold numbers and booleans, got dtype {dtype}{where}.")
    return _canonical_explicit(plain, fun_name or "")


check_user_dtype_supported = check_and_canonicalize_user_dtype


def jax_dtype(obj: Any, *, align: bool = False, copy: bool = False) -> DType:
    """`np.dtype(obj)` with JAX's defaults for None, int, float and complex."""
    if obj is None:
        return default_float_dtype()
    if isinstance(obj, type) and obj in _scalar_defaults:
        return _scalar_defaults[obj][state.enable_x64]
    if issubdtype(obj, extended):
        return obj
    return np.dtype(obj, align=align, copy=copy)


def check_valid_dtype(dtype: Any) -> None:
    """Raise TypeError unless arrays can have this dtype."""
    if isinstance(dtype, ExtendedDType) or dtype in _valid:
        return
    raise TypeError(f"Arrays hold numbers and booleans, got dtype {dtype}.")


# ---- the type of a value ------------------------------------------------------------

# Types of scalars which, like Python's, are weakly typed.
_registered_weak_types: set[type] = set()


def register_weak_scalar_type(scalar_type: type) -> None:
    """Treat instances of a class as weakly typed, as Python scalars are."""
    _registered_weak_types.add(scalar_type)


def is_python_scalar(x: Any) -> bool:
    """Whether x is a bool, int, float or complex of Python (subclasses not)."""
    return type(x) in python_scalar_dtypes


def is_weakly_typed(x: Any) -> bool:
    """Whether x bends to the type of what it is combined with. A bool is not weak."""
    kind = type(x)
    if kind in _weak_types or kind in _registered_weak_types:
        return True
    return bool(getattr(getattr(x, "aval", None), "weak_type", False))


def is_weakly_typed_scalar(x: Any) -> bool:
    """Whether x is weakly typed and of rank 0; here a bool counts as well."""
    aval = getattr(x, "aval", None)
    if aval is None:
        return type(x) in python_scalar_types
    return bool(getattr(aval, "weak_type", False)) and np.ndim(x) == 0


def dtype(x: Any) -> DType:
    """The dtype of a value or a type, as values get it.

    Python scalars and NumPy arrays are cut to 32 bits outside x64 mode; arrays of
    this package have the dtype that they have. Raises ValueError for None and
    TypeError for what cannot be in an array.
    """
    defaults = _scalar_defaults.get(type(x))
    if defaults is not None:
        return defaults[state.enable_x64]
    if isinstance(x, (np.dtype, str)):
        plain = np.dtype(x)
        narrow = _canonical_of_valid.get(plain)
        if narrow is plain:
            return plain
        if narrow is None:
            raise TypeError(f"Arrays hold numbers and booleans, got dtype {x!r}.")
        return _canonical_explicit(plain, "dtype")
    if isinstance(x, type):
        defaults = _scalar_defaults.get(x)
        if defaults is not None:
            return defaults[state.enable_x64]
        if issubclass(x, np.generic) and not issubclass(x, extended):
            return _canonical_explicit(np.dtype(x), "dtype")
    elif hasattr(x, "aval"):
        return x.dtype
    elif isinstance(x, ExtendedDType):
        return x
    elif x is None:
        raise ValueError("dtype: a value or a type must be given, got None.")
    return _dtype_of_foreign(x)


def _dtype_of_foreign(x: Any) -> DType:
    """The dtype of a NumPy array or scalar, or anything with a `dtype` attribute."""
    found = getattr(x, "dtype", None)
    if isinstance(found, ExtendedDType):
        return found
    if not isinstance(found, np.dtype):
        try:
            found = np.result_type(x)
        except TypeError as error:
            raise TypeError(f"The dtype of {x!r} cannot be determined.") from error
    if found not in _valid:
        raise TypeError(
            f"Arrays hold numbers and booleans, but the value {x!r} has dtype {found}."
        )
    return found if state.enable_x64 else _narrow.get(found, found)


def scalar_type_to_dtype(scalar_type: type, value: Any = None) -> np.dtype:
    """The default dtype of a Python scalar type.

    Raises OverflowError when `value` is an int that it cannot hold.
    """
    found = _scalar_defaults[scalar_type][state.enable_x64]
    if scalar_type is int and value is not None:
        limits = np.iinfo(found)
        if not limits.min <= value <= limits.max:
            raise OverflowError(
                f"Python int {value} too large to convert to {found}. Enable 64-bit "
                "types, or give a dtype that holds it."
            )
    return found


def coerce_to_array(x: Any, dtype: DTypeLike = None) -> np.ndarray:
    """A NumPy array of x; Python scalars get their default dtype."""
    if dtype is None and type(x) in python_scalar_types:
        dtype = scalar_type_to_dtype(type(x), x)
    return np.asarray(x, dtype)


# ---- promotion ----------------------------------------------------------------------


class TypePromotionError(ValueError):
    """The types have no common type, or strict promotion forbids finding it."""


def _lattice(strict: bool, enable_x64: bool) -> dict[Any, tuple]:
    """The types right above each type, as drawn at the top of this file."""
    above: dict[Any, tuple] = {node: () for node in (*_promotable, *_weak_types)}
    if strict:
        above[int] = (float, *_unsigned, *_signed)
        above[float] = (complex, *_float_dtypes)
        above[complex] = _complex_dtypes
        return above
    u8, u16, u32, u64 = _dtypes("u1", "u2", "u4", "u8")
    i8, i16, i32, i64 = _dtypes("i1", "i2", "i4", "i8")
    bf16, f16, f32, f64 = _dtypes(bfloat16, "f2", "f4", "f8")
    c64, c128 = _complex_dtypes
    above[_bool] = (int,)
    above[int] = (u8, i8, *_small_ints)
    above |= {u8: (i16, u16), u16: (i32, u32), u64: (float,)}
    # Outside 64-bit mode nothing may become 64 bits wide that was not so before.
    above[u32] = (i64, u64) if enable_x64 else (i32, u64)
    above |= {i8: (i16,), i16: (i32,), i32: (i64,), i64: (float,)}
    above[float] = (*_small_floats, bf16, f16, complex)
    above |= {bf16: (f32,), f16: (f32,), f32: (f64, c64), f64: (c128,)}
    above |= {complex: (c64,), c64: (c128,)}
    return above


@functools.cache
def _upper_bounds(strict: bool, enable_x64: bool) -> dict[Any, frozenset]:
    """Every type that is at or above a type, for each type."""
    above = _lattice(strict, enable_x64)
    bounds: dict[Any, frozenset] = {}

    def closure(node: Any) -> frozenset:
        if node not in bounds:
            reached = [closure(parent) for parent in above[node]]
            bounds[node] = frozenset((node,)).union(*reached)
        return bounds[node]

    for node in above:
        closure(node)
    return bounds


@functools.lru_cache(maxsize=8192)
def _least_upper_bound(promotion: str, enable_x64: bool, *nodes: Any) -> Any:
    """The lowest type at or above all nodes; TypePromotionError if there is none."""
    strict = promotion == "strict"
    bounds = _upper_bounds(strict, strict or enable_x64)
    for node in nodes:
        if node not in bounds:
            raise ValueError(f"The dtype {node} takes no part in type promotion.")
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    lowest = [node for node in common if common <= bounds[node]]
    if len(lowest) == 1:
        return lowest[0]
    raise TypePromotionError(_no_promotion(strict, nodes))


def _no_promotion(strict: bool, nodes: tuple[Any, ...]) -> str:
    shown = ", ".join(sorted(str(np.dtype(node).name) for node in nodes))
    message = f"The dtypes {shown} have no implicit promotion to a common dtype"
    if strict:
        return (
            f"{message} while jax_numpy_dtype_promotion is 'strict'. Cast one operand, "
            "for example with x.astype('float32'), or use "
            "`with numpy_dtype_promotion('standard'):`."
        )
    for group, name in (
        (_float8_dtypes, "8-bit floats"),
        (_float6_dtypes, "6-bit floats"),
        (_float4_dtypes, "4-bit floats"),
        (_small_ints, "1-, 2- and 4-bit integers"),
    ):
        if any(node in group for node in nodes if isinstance(node, np.dtype)):
            example = "int32" if group is _small_ints else "float32"
            return (
                f"{message}, because {name} never promote implicitly. Cast one "
                f"operand, for example with x.astype('{example}')."
            )
    return f"{message}. Cast one operand to the dtype that you want."


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype that an operation on operands of types `a` and `b` computes in.

    int, float and complex stand for weakly typed operands. Raises TypePromotionError.
    """
    promotion, enable_x64 = state.numpy_dtype_promotion, state.enable_x64
    try:
        return _promote_pair(promotion, enable_x64, a, b)
    except TypeError:
        # Not hashable, such as an object that merely has a dtype.
        return _promote_pair(promotion, enable_x64, np.dtype(a), np.dtype(b))


@functools.lru_cache(maxsize=4096)
def _promote_pair(promotion: str, enable_x64: bool, a: Any, b: Any) -> np.dtype:
    if not _is_weak_node(a):
        a = np.dtype(a)
    if not _is_weak_node(b):
        b = np.dtype(b)
    return np.dtype(_least_upper_bound(promotion, enable_x64, a, b))


def _is_weak_node(x: Any) -> bool:
    # By identity: to NumPy, np.dtype("int64") == int.
    return x is int or x is float or x is complex


def _node(dtype: DType, weak_type: bool) -> Any:
    """The lattice's node of a dtype; that of a weak type is a Python type."""
    if not weak_type or dtype == _bool:
        return dtype
    if dtype in _custom_floats:
        return float
    if dtype in _small_ints:
        return int
    return type(dtype.type(0).item())


@functools.lru_cache(maxsize=8192)
def _combined(
    promotion: str, enable_x64: bool, operands: tuple[tuple[DType, bool], ...]
) -> tuple[Any, bool, bool]:
    """The node and weak type of a promotion of operands, each (dtype, weak type).

    The last result says that the node is the very dtype of the operands.
    """
    found = {dtype for dtype, _ in operands}
    if len(operands) == 1:
        return *operands[0], True
    if len(found) == 1 and not all(weak for _, weak in operands):
        # Equal types need no lattice, which lets extended dtypes through.
        return operands[0][0], False, True
    if all(weak for _, weak in operands) and promotion != "strict":
        # The bound of the types as if strong: a weak int16 must not become an int32.
        node = _least_upper_bound(promotion, enable_x64, *found)
        weak_type = True
    else:
        nodes = {_node(dtype, weak) for dtype, weak in operands}
        node = _least_upper_bound(promotion, enable_x64, *nodes)
        weak_type = _is_weak_node(node)
    return node, weak_type, False


def _operand(x: Any) -> tuple[DType, bool]:
    aval = getattr(x, "aval", None)
    if aval is not None:
        return x.dtype, getattr(aval, "weak_type", False)
    weak_type = type(x) in _weak_types or type(x) in _registered_weak_types
    if not weak_type and isinstance(x, type):
        weak_type = _is_weak_node(x)
    return dtype(x), weak_type


def lattice_result_type(*args: Any) -> tuple[DType, bool]:
    """The promoted (dtype, weak type) of values and types, weak types kept apart."""
    operands = tuple([_operand(x) for x in args])
    node, weak_type, unchanged = _combined(
        state.numpy_dtype_promotion, state.enable_x64, operands
    )
    found = node if unchanged else dtype(node)
    return found, weak_type and found != _bool


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that an operation on the arguments (values or dtypes) computes in.

    None stands for the default float. With `return_weak_type_flag` the result is the
    pair (dtype, weak type). Raises ValueError without arguments, TypePromotionError
    when there is no common type.
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype.")
    found, weak_type = lattice_result_type(
        *(default_float_dtype() if arg is None else arg for arg in args)
    )
    if weak_type:
        kind = "f" if found in _custom_floats else found.kind
        kind = {True: "i"}.get(found in _small_signed, kind)
        kind = {True: "u"}.get(found in _small_unsigned, kind)
        found = _default_of_kind[kind]()
    return (found, weak_type) if return_weak_type_flag else found


def safe_to_cast(source: Any, target: Any) -> bool:
    """Whether promotion of `source` with the type of `target` yields that type.

    Raises TypePromotionError when the two have no common type.
    """
    source_dtype = dtype(source)
    target_dtype = dtype(target)
    if source_dtype == target_dtype:
        return True
    return result_type(source, target_dtype) == target_dtype


# ---- conversions between kinds ------------------------------------------------------

_float32 = np.dtype(np.float32)
_float64 = np.dtype(np.float64)
_to_inexact: dict[np.dtype, np.dtype] = dict.fromkeys(
    _dtypes("?", int4, uint4, "i1", "u1", "i2", "u2", "i4", "u4"), _float32
) | dict.fromkeys(_dtypes("i8", "u8"), _float64)


def to_numeric_dtype(dtype: DTypeLike) -> np.dtype:
    """int32 for a bool, else the dtype itself."""
    plain = np.dtype(dtype)
    return np.dtype(np.int32) if plain == _bool else plain


def to_inexact_dtype(dtype: DTypeLike) -> np.dtype:
    """The float type for an integer or a bool, else the dtype itself."""
    plain = np.dtype(dtype)
    return _to_inexact.get(plain, plain)


def to_floating_dtype(dtype: DTypeLike) -> np.dtype:
    """The real float type of the same precision."""
    return finfo(to_inexact_dtype(dtype)).dtype


def to_complex_dtype(dtype: DTypeLike) -> np.dtype:
    """complex128 for 64-bit numbers, else complex64."""
    wide = (_float64, np.dtype(np.complex128))
    return _complex_dtypes[to_inexact_dtype(dtype) in wide]
