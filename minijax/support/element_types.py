"""More about element types: users' queries, keys' dtypes, conversions between kinds.

The types there are, and how they promote, is in `dtypes`, which the core uses.

In JAX: `jax/_src/dtypes.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from minijax.core import dtypes
from minijax.core.dtypes import (
    DType,
    DTypeLike,
    bool_dtype,
    canonical_explicit,
    canonical_of,
    cut_to_32_bits,
    default_float_dtype,
    dtype,
    extended,
    finfo,
    float0,
    iinfo,
    is_weak_node,
    issubdtype,
    lattice_result_type,
    lattices,
    least_upper_bound,
    never_promoting,
    no_promotion,
    parents,
    python_types,
    scalar_defaults,
)
from minijax.core.events import enter
from minijax.core.state import state
from minijax.support.user_source import user_stacklevel

can_cast = np.can_cast

bool_ = np.bool_
int_ = np.int64
uint = np.uint64
float_ = np.float64
complex_ = np.complex128

python_scalar_types = frozenset((bool, int, float, complex))

# ---- the small types ----------------------------------------------------------------

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


def default_int_dtype() -> np.dtype:
    """int32, or int64 in 64-bit mode."""
    return scalar_defaults[int][state.enable_x64]


def _add(family: str, *scalars: Any) -> None:
    """Let arrays have these types of ml_dtypes, which never promote implicitly."""
    for scalar in filter(None, scalars):
        dtype = np.dtype(scalar)
        is_integer = "int" in dtype.name
        above: tuple[type, ...] = (np.floating, np.inexact)
        if is_integer:
            unsigned = dtype.name.startswith("uint")
            above = (np.unsignedinteger if unsigned else np.signedinteger, np.integer)
        enter(canonical_of, dtype, dtype)
        enter(parents, scalar, (scalar, *above, np.number, np.generic))
        enter(python_types, dtype, int if is_integer else float)
        enter(never_promoting, dtype, family)


_add(
    "8-bit floats",
    *(float8_e3m4, float8_e4m3, float8_e8m0fnu, float8_e4m3b11fnuz),
    *(float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz),
)
_add("6-bit floats", float6_e2m3fn, float6_e3m2fn)
_add("4-bit floats", float4_e2m1fn)
_add("1-, 2- and 4-bit integers", int1, int2, int4, uint1, uint2, uint4)

# Floating point dtypes whose largest value is a number.
_without_infinity = frozenset(
    map(np.dtype, (float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2fnuz))
)
promotable_dtypes = tuple(dtype for dtype in canonical_of if dtype != float0)


def _of_kind(*kinds: Any) -> frozenset[np.dtype]:
    return frozenset(
        dtype
        for dtype in promotable_dtypes
        if any(issubdtype(dtype, kind) for kind in kinds)
    )


# ---- extended dtypes, and those of random keys ---------------------------------------


class ExtendedDType:
    """An element type that NumPy does not know, made of elements that it knows.

    A value of shape `s` is stored as an array of shape `s + physical_shape` and of
    dtype `physical_dtype`; `name` is how the dtype is printed, as in `key<fry>[3]`.
    Subclasses define these three, and how values are compared:
    `compare(ctx, x, y, direction)` is a part of the lowering rules of `eq` and `ne`.
    """

    type: Any = extended
    name: Any
    physical_shape: Any
    physical_dtype: Any
    compare: Callable
    # float0 says that there is nothing to differentiate.
    tangent_dtype: DType = float0

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(np.prod(self.physical_shape)) * self.physical_dtype.itemsize

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class prng_key(extended):
    """Abstract scalar type of the dtypes of random keys; no instances."""


class PRNGKeyDType(ExtendedDType):
    """The dtype of random keys of one generator.

    `impl` is the generator: it has a `tag` (such as "fry") and the `key_shape` of its
    uint32 words. The room of random numbers brings `compare` and `full(shape, value)`.
    In JAX: `prng.py`, `KeyTy`.
    """

    type = prng_key
    full: Callable

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


# ---- questions about one type -------------------------------------------------------

element_kinds: dict[str, frozenset[np.dtype]] = {
    "bool": _of_kind(np.bool_),
    "signed integer": _of_kind(np.signedinteger),
    "unsigned integer": _of_kind(np.unsignedinteger),
    "integral": _of_kind(np.integer),
    "real floating": _of_kind(np.floating),
    "complex floating": _of_kind(np.complexfloating),
    "numeric": _of_kind(np.number),
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
    return np.dtype(dtype) not in _without_infinity and issubdtype(dtype, np.inexact)


def is_weakly_typed(x: Any) -> bool:
    """Whether x bends to the type of what it is combined with. A bool is not weak."""
    kind = type(x)
    if is_weak_node(kind):
        return True
    return bool(getattr(getattr(x, "aval", None), "weak_type", False))


def itemsize_bits(dtype: DTypeLike) -> int:
    """The bits of one element; a bool takes 8, an int4 takes 4.

    Raises ValueError for None and for types that are not numbers.
    """
    if dtype is None:
        raise ValueError("itemsize_bits: dtype must be given, got None.")
    if dtype == bool_dtype:
        return 8
    for kind, limits in ((np.integer, iinfo), (np.floating, finfo)):
        if issubdtype(dtype, kind):
            return limits(dtype).bits
    if issubdtype(dtype, np.complexfloating):
        return 8 * np.dtype(dtype).itemsize
    raise ValueError(f"itemsize_bits: {dtype} is not the dtype of numbers.")


# ---- defaults and promotion ---------------------------------------------------------


def default_uint_dtype() -> np.dtype:
    """uint32, or uint64 in 64-bit mode."""
    return np.dtype(np.uint64) if state.enable_x64 else np.dtype(np.uint32)


def default_complex_dtype() -> np.dtype:
    """complex64, or complex128 in 64-bit mode."""
    return scalar_defaults[complex][state.enable_x64]


_default_of_kind = {
    "b": lambda: bool_dtype,
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


def scalar_type_to_dtype(scalar_type: type, value: Any = None) -> np.dtype:
    """The default dtype of a Python scalar type.

    Raises OverflowError when `value` is an int that it cannot hold.
    """
    found = scalar_defaults[scalar_type][state.enable_x64]
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
    if not is_weak_node(a):
        a = np.dtype(a)
    if not is_weak_node(b):
        b = np.dtype(b)
    return np.dtype(least_upper_bound(promotion, enable_x64, a, b))


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
        kind = found.kind
        if found.type.__module__ != "numpy":
            # ml_dtypes' types say "V" of themselves.
            kind = "f" if issubdtype(found, np.floating) else found.name[0]
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
_to_inexact: dict[np.dtype, np.dtype] = {
    np.dtype(scalar): _float32
    for scalar in (bool, int4, uint4, "i1", "u1", "i2", "u2", "i4", "u4")
} | {np.dtype(np.int64): _float64, np.dtype(np.uint64): _float64}


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
    return np.dtype(np.complex128 if to_inexact_dtype(dtype) in wide else np.complex64)


# ---- 64-bit types and promotion, as the flags say ------------------------------------


def _warn_and_cut(dtype: np.dtype, fun_name: str) -> np.dtype:
    narrow = canonical_of[dtype]
    where = f" in {fun_name}" if fun_name else ""
    warnings.warn(
        f"Explicitly requested dtype {dtype}{where} is not available and will be "
        f"truncated to dtype {narrow.name}. Write "
        "`config.update('jax_enable_x64', True)` at the start of the program, or set "
        "the environment variable JAX_ENABLE_X64, to keep 64 bits.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )
    return narrow


def _refuse_to_cut(dtype: np.dtype, fun_name: str) -> np.dtype:
    where = f" in {fun_name}" if fun_name else ""
    raise ValueError(
        f"Explicitly requested dtype {dtype}{where} is not available, since "
        "64-bit types are off. Set the flag jax_enable_x64, or "
        "jax_explicit_x64_dtypes to 'allow'."
    )


enter(cut_to_32_bits, "warn", _warn_and_cut)
enter(cut_to_32_bits, "error", _refuse_to_cut)
enter(cut_to_32_bits, "allow", lambda dtype, fun_name: dtype)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType:
    """The dtype that values get: 64-bit types become 32-bit ones outside x64 mode.

    Raises TypeError if it is not a dtype, ValueError for an extended dtype unless it
    is allowed.
    """
    if issubdtype(dtype, extended) and not allow_extended_dtype:
        raise ValueError(
            f"canonicalize_dtype: {dtype} is an extended dtype; pass "
            "allow_extended_dtype=True to let it through."
        )
    return dtypes.canonicalize_dtype(dtype)


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> DType:
    """The dtype for a `dtype=` argument of the function named `fun_name`.

    A 64-bit type outside x64 mode warns and is cut to 32 bits; the Python types int,
    float and complex mean the defaults. Raises ValueError for None or an array,
    TypeError for a dtype that arrays cannot have.
    """
    if isinstance(dtype, type) and dtype in scalar_defaults:
        return scalar_defaults[dtype][state.enable_x64]
    if isinstance(dtype, np.dtype) and dtype in canonical_of:
        return canonical_explicit(dtype, fun_name or "")
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
    if plain not in canonical_of:
        where = f" in {fun_name}" if fun_name else ""
        raise TypeError(f"Arrays hold numbers and booleans, got dtype {dtype}{where}.")
    return canonical_explicit(plain, fun_name or "")


def _strict_lattice(enable_x64: bool) -> dict[Any, tuple]:
    """The types right above each type where only Python scalars promote."""
    above: dict[Any, tuple] = {dtype: () for dtype in canonical_of if dtype != float0}
    ints, floats, complexes = (
        tuple(dtype for dtype in above if issubdtype(dtype, kind))
        for kind in (np.integer, np.floating, np.complexfloating)
    )
    above[int] = (float, *ints)
    above[float] = (complex, *floats)
    above[complex] = complexes
    return above


def _cast_to_the_same(nodes: tuple) -> str:
    return (
        " while jax_numpy_dtype_promotion is 'strict'. Cast one operand, for example "
        "with x.astype('float32'), or use `with numpy_dtype_promotion('standard'):`."
    )


def _cast_one(nodes: tuple) -> str:
    for small, family in never_promoting.items():
        if any(node == small for node in nodes if isinstance(node, np.dtype)):
            example = "int32" if issubdtype(small, np.integer) else "float32"
            return (
                f", because {family} never promote implicitly. Cast one "
                f"operand, for example with x.astype('{example}')."
            )
    return ". Cast one operand to the dtype that you want."


enter(lattices, "strict", _strict_lattice)
enter(no_promotion, "strict", _cast_to_the_same)
enter(no_promotion, "standard", _cast_one)
