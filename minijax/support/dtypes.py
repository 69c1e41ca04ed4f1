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

import numpy as np

from minijax.support.element_types import *  # noqa: F403 (all names of that file)
from minijax.support.element_types import (
    DType,
    DTypeLike,
    ExtendedDType,
    bfloat16,
    bool_dtype,
    complex_dtypes,
    custom_floats,
    dtypes_of,
    extended,
    float0,
    float4_dtypes,
    float6_dtypes,
    float8_dtypes,
    float_dtypes,
    int4,
    issubdtype,
    promotable_dtypes,
    signed_ints,
    small_floats,
    small_ints,
    small_signed_ints,
    small_unsigned_ints,
    uint4,
    unsigned_ints,
    valid_dtypes,
)
from minijax.support.source_info import user_stacklevel
from minijax.support.thread_state import state

_weak_types = (int, float, complex)

python_scalar_types = frozenset((bool, int, float, complex))
python_scalar_dtypes: dict[type, np.dtype] = {
    bool: bool_dtype,
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
_canonical_of_valid = {dtype: _narrow.get(dtype, dtype) for dtype in valid_dtypes}
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
    "b": lambda: bool_dtype,
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


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
    if isinstance(dtype, np.dtype) and dtype in valid_dtypes:
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
    if plain not in valid_dtypes:
        where = f" in {fun_name}" if fun_name else ""
        raise TypeError(f"Arrays hold numbers and booleans, got dtype {dtype}{where}.")
    return _canonical_explicit(plain, fun_name or "")


check_user_dtype_supported = check_and_canonicalize_user_dtype


# ---- the type of a value ------------------------------------------------------------


def is_weakly_typed(x: Any) -> bool:
    """Whether x bends to the type of what it is combined with. A bool is not weak."""
    kind = type(x)
    if kind in _weak_types:
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
    if found not in valid_dtypes:
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
    above: dict[Any, tuple] = {node: () for node in (*promotable_dtypes, *_weak_types)}
    if strict:
        above[int] = (float, *unsigned_ints, *signed_ints)
        above[float] = (complex, *float_dtypes)
        above[complex] = complex_dtypes
        return above
    u8, u16, u32, u64 = dtypes_of("u1", "u2", "u4", "u8")
    i8, i16, i32, i64 = dtypes_of("i1", "i2", "i4", "i8")
    bf16, f16, f32, f64 = dtypes_of(bfloat16, "f2", "f4", "f8")
    c64, c128 = complex_dtypes
    above[bool_dtype] = (int,)
    above[int] = (u8, i8, *small_ints)
    above |= {u8: (i16, u16), u16: (i32, u32), u64: (float,)}
    # Outside 64-bit mode nothing may become 64 bits wide that was not so before.
    above[u32] = (i64, u64) if enable_x64 else (i32, u64)
    above |= {i8: (i16,), i16: (i32,), i32: (i64,), i64: (float,)}
    above[float] = (*small_floats, bf16, f16, complex)
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
        (float8_dtypes, "8-bit floats"),
        (float6_dtypes, "6-bit floats"),
        (float4_dtypes, "4-bit floats"),
        (small_ints, "1-, 2- and 4-bit integers"),
    ):
        if any(node in group for node in nodes if isinstance(node, np.dtype)):
            example = "int32" if group is small_ints else "float32"
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
    if not weak_type or dtype == bool_dtype:
        return dtype
    if dtype in custom_floats:
        return float
    if dtype in small_ints:
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
    kind = type(x)
    defaults = _scalar_defaults.get(kind)
    if defaults is not None:
        return defaults[state.enable_x64], kind is not bool
    aval = getattr(x, "aval", None)
    if aval is not None and not isinstance(x, type):
        return x.dtype, getattr(aval, "weak_type", False)
    return dtype(x), _is_weak_node(x)


def lattice_result_type(*args: Any) -> tuple[DType, bool]:
    """The promoted (dtype, weak type) of values and types, weak types kept apart."""
    operands = tuple([_operand(x) for x in args])
    node, weak_type, unchanged = _combined(
        state.numpy_dtype_promotion, state.enable_x64, operands
    )
    found = node if unchanged else dtype(node)
    return found, weak_type and found != bool_dtype


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that an operation on the arguments (values or dtypes) computes in.

    None stands for the default float. With `return_weak_type_flag` the result is the
    pair (dtype, weak type). Raises ValueError without arguments, TypePromotionError
    when there is no common type.
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype.")
    args = tuple([default_float_dtype() if arg is None else arg for arg in args])
    found, weak_type = lattice_result_type(*args)
    if weak_type:
        kind = "f" if found in custom_floats else found.kind
        kind = {True: "i"}.get(found in small_signed_ints, kind)
        kind = {True: "u"}.get(found in small_unsigned_ints, kind)
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
    dtypes_of("?", int4, uint4, "i1", "u1", "i2", "u2", "i4", "u4"), _float32
) | dict.fromkeys(dtypes_of("i8", "u8"), _float64)


def to_numeric_dtype(dtype: DTypeLike) -> np.dtype:
    """int32 for a bool, else the dtype itself."""
    plain = np.dtype(dtype)
    return np.dtype(np.int32) if plain == bool_dtype else plain


def to_inexact_dtype(dtype: DTypeLike) -> np.dtype:
    """The float type for an integer or a bool, else the dtype itself."""
    plain = np.dtype(dtype)
    return _to_inexact.get(plain, plain)


def to_complex_dtype(dtype: DTypeLike) -> np.dtype:
    """complex128 for 64-bit numbers, else complex64."""
    wide = (_float64, np.dtype(np.complex128))
    return complex_dtypes[to_inexact_dtype(dtype) in wide]


# ---- what the core asks -------------------------------------------------------------


def is_float0(dtype: Any) -> bool:
    """Whether a dtype is float0, that of tangents of integers and booleans."""
    return dtype is float0 or (isinstance(dtype, np.dtype) and dtype == float0)


def has_tangents(dtype: Any) -> bool:
    """Whether values of a dtype can be differentiated: floats and complex numbers."""
    if isinstance(dtype, ExtendedDType):
        return not is_float0(dtype.tangent_dtype)
    return issubdtype(dtype, np.inexact)


def dtype_name(dtype: Any) -> str:
    """The full name of a dtype, for messages: float32, key<fry>."""
    return dtype.name
