"""Element types: which exist, how they promote, and what 64-bit mode does.

Promotion follows JAX's lattice, not NumPy's table. Python scalars are weakly typed:
together with an array they take its dtype if that dtype can hold them. In the lattice
they are three nodes, `int*`, `float*` and `complex*`:

    bool -> int* -> {u1 u2 u4 u8 -> u16 -> u32 -> u64, i1 i2 i4 i8 -> ... -> i64}
         -> float* -> {8-, 6- and 4-bit floats, bf16 and f16 -> f32 -> f64}
         -> complex* -> c64 -> c128

Two types promote to their least upper bound there. All functions return `np.dtype`
objects or extended dtypes, such as that of random keys. `element_types` has the
functions that only users or a few rooms call.

In JAX: `jax/_src/dtypes.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .state import state

DType = Any
DTypeLike = Any

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


# ---- the types there are ------------------------------------------------------------

# The type of tangents of integers and booleans, which have no derivative: no bytes.
float0: np.dtype = np.dtype([("float0", np.void, 0)])
bool_dtype = np.dtype(bool)
bfloat16 = ml_dtypes.bfloat16

_wide_to_narrow: dict[np.dtype, np.dtype] = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
# The dtypes that arrays can have, and what each becomes outside of 64-bit mode.
canonical_of: dict[np.dtype, np.dtype] = {
    dtype: _wide_to_narrow.get(dtype, dtype)
    for dtype in map(np.dtype, "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
}
canonical_of[float0] = float0
# The supertypes of scalar types that are not in NumPy's tree.
parents: dict[type, tuple[type, ...]] = {}
# For their dtypes: the Python type as which a weakly typed value promotes.
python_types: dict[np.dtype, type] = {}
# The dtypes that never promote implicitly, with the name of their family in messages.
never_promoting: dict[np.dtype, str] = {}


# The core has bfloat16; `element_types` adds the dtypes of fewer bits.
canonical_of[np.dtype(bfloat16)] = np.dtype(bfloat16)
parents[bfloat16] = (bfloat16, np.floating, np.inexact, np.number, np.generic)
python_types[np.dtype(bfloat16)] = float


class extended(np.generic):
    """Abstract scalar type of all extended dtypes, for `issubdtype`; no instances."""


def is_extended(dtype: Any) -> bool:
    """Whether a dtype is an extended one, such as that of random keys.

    An element of it is stored as several elements of one of NumPy's dtypes.
    `element_types` has the class of such dtypes.
    """
    return hasattr(dtype, "physical_dtype")


# ---- questions about one type -------------------------------------------------------


def _is_subclass(value: Any, parent: type) -> bool:
    return isinstance(value, type) and issubclass(value, parent)


def issubdtype(a: Any, b: Any) -> bool:
    """Whether the type `a` is `b` or a subtype of it; `np.issubdtype` for all dtypes.

    bfloat16 and the small floats count as `np.floating`, small integers as
    `np.integer`, and the dtypes of random keys lie below `prng_key` and `extended`.
    """
    try:
        return _issubdtype(a, b)
    except TypeError:
        # Not hashable, such as an object that merely has a dtype.
        a = a if isinstance(a, type) else np.dtype(a)
        b = b if isinstance(b, type) else np.dtype(b)
        return _issubdtype(a, b)


@functools.lru_cache(maxsize=4096)
def _issubdtype(a: Any, b: Any) -> bool:
    if is_extended(b):
        return is_extended(a) and a == b
    if is_extended(a):
        a = a.type
    below = a if _is_subclass(a, np.generic) else np.dtype(a).type
    if _is_subclass(b, extended):
        return issubclass(below, b)
    above = b if _is_subclass(b, np.generic) else np.dtype(b).type
    if below in parents:
        return above in parents[below]
    return bool(np.issubdtype(below, above))


@functools.cache
def short_dtype_name(dtype: Any) -> str:
    """The name in printed jaxprs: f32, i32, u8, bool, bf16, c64, key<fry>."""
    if is_extended(dtype):
        return dtype.name
    if dtype == float0:
        return "float0"
    name = dtype.name
    for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(long, short)
    return name


def is_float0(dtype: Any) -> bool:
    """Whether a dtype is float0, that of tangents of integers and booleans."""
    return dtype is float0 or (isinstance(dtype, np.dtype) and dtype == float0)


def has_tangents(dtype: Any) -> bool:
    """Whether values of a dtype can be differentiated: floats and complex numbers."""
    if is_extended(dtype):
        return not is_float0(dtype.tangent_dtype)
    return issubdtype(dtype, np.inexact)


# ---- defaults of Python scalars -----------------------------------------------------

python_scalar_dtypes: dict[type, np.dtype] = {
    bool: bool_dtype,
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
# Indexed by enable_x64: the dtype that stands for a Python scalar type.
scalar_defaults: dict[type, tuple[np.dtype, np.dtype]] = {
    scalar: (canonical_of[wide], wide) for scalar, wide in python_scalar_dtypes.items()
}


def default_float_dtype() -> np.dtype:
    """float32, or float64 in 64-bit mode."""
    return scalar_defaults[float][state.enable_x64]


def scalar_type_of(x: Any) -> type:
    """The Python type of a value's elements: bool, int, float or complex."""
    found = dtype(x)
    kinds = (np.bool_, np.integer, np.floating, np.complexfloating)
    for scalar, parent in zip((bool, int, float, complex), kinds):
        if issubdtype(found, parent):
            return scalar
    raise TypeError(f"The dtype {found} of {x!r} has no Python scalar type.")


# ---- 64-bit mode --------------------------------------------------------------------


@functools.cache
def _canonical(enable_x64: bool, dtype: Any) -> DType:
    if issubdtype(dtype, extended):
        return dtype
    try:
        plain = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype {dtype!r} is not understood.") from error
    if not plain.isnative:
        raise TypeError(f"{plain} is in foreign byte order: use `newbyteorder('=')`.")
    return plain if enable_x64 else canonical_of.get(plain, plain)


def canonicalize_dtype(dtype: Any) -> DType:
    """The dtype that values get: 64-bit dtypes become 32-bit ones outside x64 mode.

    Extended dtypes stay. Raises TypeError if `dtype` is not a dtype.
    """
    return _canonical(state.enable_x64, dtype)


# What to do with a 64-bit dtype that the user wrote outside of 64-bit mode, by the
# value of `explicit_x64_dtypes`. `element_types` adds the functions, which warn or
# raise.
cut_to_32_bits: dict[str, Callable[[np.dtype, str], np.dtype]] = {}


def canonical_explicit(dtype: np.dtype, fun_name: str) -> np.dtype:
    """The dtype for one that the user passed to the function named `fun_name`."""
    if state.enable_x64 or canonical_of.get(dtype, dtype) == dtype:
        return dtype
    cut = cut_to_32_bits.get(state.explicit_x64_dtypes)
    return canonical_of[dtype] if cut is None else cut(dtype, fun_name)


# ---- the type of a value ------------------------------------------------------------


def dtype(x: Any) -> DType:
    """The dtype of a value, or of the values of a type.

    Python scalars and NumPy arrays are cut to 32 bits outside x64 mode; arrays of this
    package keep their dtype. Raises ValueError for None, and TypeError for values and
    types that arrays cannot hold.
    """
    defaults = scalar_defaults.get(type(x))
    if defaults is not None:
        return defaults[state.enable_x64]
    if isinstance(x, (np.dtype, str)):
        plain = np.dtype(x)
        narrow = canonical_of.get(plain)
        if narrow is plain:
            return plain
        if narrow is None:
            raise TypeError(f"Arrays hold numbers and booleans, got {x!r}.")
        return canonical_explicit(plain, "dtype")
    if isinstance(x, type):
        defaults = scalar_defaults.get(x)
        if defaults is not None:
            return defaults[state.enable_x64]
        if issubclass(x, np.generic) and not issubclass(x, extended):
            return canonical_explicit(np.dtype(x), "dtype")
    elif hasattr(x, "aval"):
        return x.dtype
    elif is_extended(x):
        return x
    elif x is None:
        raise ValueError("dtype: a value or a type must be given, got None.")
    return _dtype_of_foreign(x)


def _dtype_of_foreign(x: Any) -> DType:
    """The dtype of a NumPy array or scalar, or anything with a `dtype` attribute."""
    found = getattr(x, "dtype", None)
    if is_extended(found):
        return found
    if not isinstance(found, np.dtype):
        try:
            found = np.result_type(x)
        except TypeError as error:
            raise TypeError(f"The dtype of {x!r} cannot be determined.") from error
    if found not in canonical_of:
        raise TypeError(
            f"Arrays hold numbers and booleans, but the value {x!r} has dtype {found}."
        )
    return found if state.enable_x64 else canonical_of[found]


# ---- promotion ----------------------------------------------------------------------


class TypePromotionError(ValueError):
    """The dtypes have no common dtype, or strict promotion does not allow it."""


def _lattice(enable_x64: bool) -> dict[Any, tuple]:
    """For each type the types directly above it, as drawn at the top of this file."""
    numbers = [dtype for dtype in canonical_of if dtype not in (float0, bool_dtype)]
    ints, floats, complexes = (
        tuple(dtype for dtype in numbers if issubdtype(dtype, kind))
        for kind in (np.integer, np.floating, np.complexfloating)
    )
    above: dict[Any, tuple] = {node: () for node in (bool_dtype, *numbers)}
    u8, u16, u32, u64 = map(np.dtype, ("u1", "u2", "u4", "u8"))
    i8, i16, i32, i64 = map(np.dtype, ("i1", "i2", "i4", "i8"))
    bf16, f16, f32, f64 = map(np.dtype, (bfloat16, "f2", "f4", "f8"))
    c64, c128 = complexes
    above[bool_dtype] = (int,)
    above[int] = (u8, i8, *(d for d in ints if d in never_promoting))
    above |= {u8: (i16, u16), u16: (i32, u32), u64: (float,)}
    # Outside 64-bit mode no type of 32 bits promotes to one of 64 bits.
    above[u32] = (i64, u64) if enable_x64 else (i32, u64)
    above |= {i8: (i16,), i16: (i32,), i32: (i64,), i64: (float,)}
    above[float] = (*(d for d in floats if d in never_promoting), bf16, f16, complex)
    above |= {bf16: (f32,), f16: (f32,), f32: (f64, c64), f64: (c128,)}
    above |= {complex: (c64,), c64: (c128,)}
    return above


# By the value of `numpy_dtype_promotion`: the types directly above each type, given
# `enable_x64`; and the advice in the error for types without a common type.
lattices: dict[str, Callable[[bool], dict[Any, tuple]]] = {"standard": _lattice}
no_promotion: dict[str, Callable[[tuple], str]] = {}


@functools.cache
def _upper_bounds(promotion: str, enable_x64: bool) -> dict[Any, frozenset]:
    """Every type that is at or above a type, for each type."""
    above = lattices[promotion](enable_x64)
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
def least_upper_bound(promotion: str, enable_x64: bool, *nodes: Any) -> Any:
    """The lowest type at or above all nodes; TypePromotionError if there is none."""
    bounds = _upper_bounds(promotion, enable_x64)
    for node in nodes:
        if node not in bounds:
            raise ValueError(f"The dtype {node} takes no part in type promotion.")
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    lowest = [node for node in common if common <= bounds[node]]
    if len(lowest) == 1:
        return lowest[0]
    shown = ", ".join(sorted(np.dtype(node).name for node in nodes))
    how = no_promotion.get(promotion, lambda nodes: ". Cast one operand.")(nodes)
    raise TypePromotionError(
        f"The dtypes {shown} have no implicit promotion to a common dtype{how}"
    )


def is_weak_node(x: Any) -> bool:
    # By identity: to NumPy, np.dtype("int64") == int.
    return x is int or x is float or x is complex


def _node(dtype: DType, weak_type: bool) -> Any:
    """The lattice's node of a dtype; that of a weak type is a Python type."""
    if not weak_type or dtype == bool_dtype:
        return dtype
    return python_types.get(dtype) or type(dtype.type(0).item())


@functools.lru_cache(maxsize=8192)
def _combined(
    promotion: str, enable_x64: bool, operands: tuple[tuple[DType, bool], ...]
) -> tuple[Any, bool, bool]:
    """(node, weak type, unchanged) of promoted operands, each (dtype, weak type).

    `unchanged` says that the operands have one dtype, which is the node.
    """
    found = {dtype for dtype, _ in operands}
    if len(operands) == 1:
        return *operands[0], True
    if len(found) == 1 and not all(weak for _, weak in operands):
        # Equal dtypes need no lattice, in which extended dtypes do not occur.
        return operands[0][0], False, True
    if all(weak for _, weak in operands) and promotion != "strict":
        # Promoted as if they were strong: a weak int16 must not become an int32.
        node = least_upper_bound(promotion, enable_x64, *found)
        weak_type = True
    else:
        nodes = {_node(dtype, weak) for dtype, weak in operands}
        node = least_upper_bound(promotion, enable_x64, *nodes)
        weak_type = is_weak_node(node)
    return node, weak_type, False


def _operand(x: Any) -> tuple[DType, bool]:
    kind = type(x)
    defaults = scalar_defaults.get(kind)
    if defaults is not None:
        return defaults[state.enable_x64], kind is not bool
    aval = getattr(x, "aval", None)
    if aval is not None and not isinstance(x, type):
        return x.dtype, getattr(aval, "weak_type", False)
    return dtype(x), is_weak_node(x)


def lattice_result_type(*args: Any) -> tuple[DType, bool]:
    """The promoted (dtype, weak type) of values and types, weak types kept apart."""
    operands = tuple([_operand(x) for x in args])
    node, weak_type, unchanged = _combined(
        state.numpy_dtype_promotion, state.enable_x64, operands
    )
    found = node if unchanged else dtype(node)
    return found, weak_type and found != bool_dtype
