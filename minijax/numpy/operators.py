"""Operators of `Array` and `Tracer`: `x + y`, `x[i]`, `x == y` and the others.

An operator means the function of the same meaning in `ufuncs.py`. But most operators
in real programs join two arrays of the very same type, or an array and a Python
number, and need no promotion at all. Those reach the primitive at once; everything
else goes the long way through the function.

`array_methods.py` installs this table. In JAX: `numpy/array_methods.py`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.array import Array, from_numpy, item_assignment_error
from minijax.core import AbstractRef, Tracer
from minijax.numpy import contractions, indexing, reductions, ufuncs, ufuncs_floats
from minijax.numpy.promotion import ensure_arraylike

# --------------------------------------------------------------------------
# The short way

_float_types = {
    np.dtype(kind): np.dtype(kind).type
    for kind in (np.float16, np.float32, np.float64, dtypes.bfloat16)
}
_complex_types = {np.dtype(kind): kind for kind in (np.complex64, np.complex128)}
_integer_types = {
    np.dtype(kind): kind
    for kind in (
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
    )
}
_inexact_types = _float_types | _complex_types
_number_types = _inexact_types | _integer_types
_bits_types = _integer_types | {np.dtype(bool): np.bool_}
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1


def _number_beside(aval: Any, value: int | float) -> Any:
    """A Python int or float as an operand beside an array of type `aval`.

    It becomes a NumPy scalar of the array's dtype, so a literal where it is traced;
    beside a weakly typed array it stays weakly typed. None where promotion is needed.
    """
    if aval.vma:
        return None
    if type(value) is int and not _INT32_MIN <= value <= _INT32_MAX:
        return None
    dtype = aval.dtype
    scalar_type = _inexact_types.get(dtype)
    if scalar_type is None:
        if type(value) is float:
            return None
        scalar_type = _integer_types[dtype]
    if aval.weak_type:
        scalar_type = _weak_type_of(dtype)
        if scalar_type is None:
            return None
    return scalar_type(value)


def _weak_type_of(dtype: Any) -> type | None:
    if dtype == dtypes.default_float_dtype():
        return float
    if dtype == dtypes.default_int_dtype():
        return int
    if dtype == dtypes.default_complex_dtype():
        return complex
    return None


# --------------------------------------------------------------------------
# The long way

_operand_types = (int, float, complex, np.generic, np.ndarray, Tracer, Array)
_sequence_types = (tuple, list)


def _unsupported(symbol: str, left: Any, right: Any) -> TypeError:
    return TypeError(
        f"unsupported operand type(s) for {symbol}: {type(left).__name__!r} and "
        f"{type(right).__name__!r}. Write jnp.asarray(...) around the sequence."
    )


def _as_operand(other: Any) -> Any:
    """`other` if it can take part in an operation, else NotImplemented."""
    if isinstance(other, _operand_types):
        return other
    method = getattr(other, "__jax_array__", None)
    if method is not None:
        return method()
    return NotImplemented


def _binary(
    symbol: str,
    function: Callable[[Any, Any], Any],
    primitive: Any = None,
    kinds: Any = (),
    refused: tuple[type, ...] = (),
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator and its reflection.

    `primitive` is what it means for two operands of one type with a dtype in `kinds`;
    `refused` are types that raise at once instead of being asked themselves.
    """
    kinds = frozenset(kinds)
    bind = None if primitive is None else primitive.bind

    def forward(self: Any, other: Any) -> Any:
        aval = self.aval
        if aval.dtype in kinds:
            if getattr(other, "aval", None) is aval:
                return bind(self, other)
            if type(other) is float or type(other) is int:
                number = _number_beside(aval, other)
                if number is not None:
                    return bind(self, number)
        operand = _as_operand(other)
        if operand is NotImplemented:
            if type(other) in refused:
                raise _unsupported(symbol, self, other)
            return NotImplemented
        return function(self, operand)

    def reflected(self: Any, other: Any) -> Any:
        aval = self.aval
        if aval.dtype in kinds and (type(other) is float or type(other) is int):
            number = _number_beside(aval, other)
            if number is not None:
                return bind(number, self)
        operand = _as_operand(other)
        if operand is NotImplemented:
            if type(other) in refused:
                raise _unsupported(symbol, other, self)
            return NotImplemented
        return function(operand, self)

    return forward, reflected


def _power(self: Any, other: Any) -> Any:
    if type(other) is int and self.aval.dtype in _number_types:
        return lax.integer_pow(self, other)
    operand = _as_operand(other)
    return NotImplemented if operand is NotImplemented else ufuncs.power(self, operand)


_power_of_self = _binary("**", ufuncs.power)[1]


def _negative(self: Any) -> Any:
    if self.aval.dtype in _number_types:
        return lax.neg_p.bind(self)
    return ufuncs.negative(self)


def _round(self: Any, ndigits: int | None = None) -> Any:
    result = ufuncs_floats.round(self, decimals=ndigits or 0)
    return result.astype(int) if ndigits is None else result


# --------------------------------------------------------------------------
# Indexing and iteration


def _getitem(self: Any, index: Any) -> Any:
    return indexing.getitem(self, index)


def _tracer_getitem(self: Any, index: Any) -> Any:
    aval = self.aval
    if type(aval) is AbstractRef:
        return aval._getitem(self, index)
    return indexing.getitem(self, index)


def _tracer_setitem(self: Any, index: Any, value: Any) -> None:
    aval = self.aval
    if type(aval) is AbstractRef:
        aval._setitem(self, index, value)
        return
    raise item_assignment_error()


def _check_has_axis(self: Any) -> None:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")


def _tracer_iter(self: Any) -> Iterator[Any]:
    _check_has_axis(self)
    return (lax.index_in_dim(self, i, keepdims=False) for i in range(self.shape[0]))


def _array_iter(self: Any) -> Iterator[Any]:
    _check_has_axis(self)
    if isinstance(self.dtype, dtypes.ExtendedDType):
        return (
            lax.dynamic_index_in_dim(self, i, keepdims=False)
            for i in range(self.shape[0])
        )
    # The values are read once; slicing on the device would be a program per element.
    weak_type = self.weak_type
    return (
        from_numpy(np.asarray(value, self.dtype), weak_type) for value in self._value
    )


def _tracer_len(self: Any) -> int:
    if self.ndim == 0:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def _contains(self: Any, other: Any) -> Any:
    if other is None or isinstance(other, str):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(other)}.")
    query = ensure_arraylike("Array.__contains__", other)
    if self.ndim != 1:
        raise ValueError(
            "Array.__contains__: search array must be one-dimensional, got "
            f"arr.shape={self.shape}."
        )
    if query.ndim != 0:
        raise ValueError(
            f"Array.__contains__: query value must be a scalar, got {query.shape}"
        )
    return reductions.any(self == query)


# --------------------------------------------------------------------------
# The table

_add, _radd = _binary("+", ufuncs.add, lax.add_p, _number_types, _sequence_types)
_sub, _rsub = _binary("-", ufuncs.subtract, lax.sub_p, _number_types)
_mul, _rmul = _binary("*", ufuncs.multiply, lax.mul_p, _number_types, _sequence_types)
_div, _rdiv = _binary("/", ufuncs.true_divide, lax.div_p, _inexact_types)
_floordiv, _rfloordiv = _binary("//", ufuncs.floor_divide)
_mod, _rmod = _binary("%", ufuncs.mod)
_divmod, _rdivmod = _binary("divmod()", ufuncs.divmod)
_matmul, _rmatmul = _binary("@", contractions.matmul)
_and, _rand = _binary("&", ufuncs.bitwise_and, lax.and_p, _integer_types)
_or, _ror = _binary("|", ufuncs.bitwise_or, lax.or_p, _integer_types)
_xor, _rxor = _binary("^", ufuncs.bitwise_xor, lax.xor_p, _integer_types)
_lshift, _rlshift = _binary("<<", ufuncs.left_shift)
_rshift, _rrshift = _binary(">>", ufuncs.right_shift)
_comparable = (*_float_types, *_integer_types)
_refused = (dict, list, set, tuple)
_eq, _ = _binary("==", ufuncs.equal, lax.eq_p, _number_types, _refused)
_ne, _ = _binary("!=", ufuncs.not_equal, lax.ne_p, _number_types, _refused)
_lt, _ = _binary("<", ufuncs.less, lax.lt_p, _comparable)
_le, _ = _binary("<=", ufuncs.less_equal, lax.le_p, _comparable)
_gt, _ = _binary(">", ufuncs.greater, lax.gt_p, _comparable)
_ge, _ = _binary(">=", ufuncs.greater_equal, lax.ge_p, _comparable)

OPERATORS: dict[str, Callable[..., Any]] = {
    "__neg__": _negative,
    "__pos__": lambda self: ufuncs.positive(self),
    "__abs__": lambda self: ufuncs.abs(self),
    "__invert__": lambda self: ufuncs.invert(self),
    "__add__": _add,
    "__radd__": _radd,
    "__sub__": _sub,
    "__rsub__": _rsub,
    "__mul__": _mul,
    "__rmul__": _rmul,
    "__truediv__": _div,
    "__rtruediv__": _rdiv,
    "__floordiv__": _floordiv,
    "__rfloordiv__": _rfloordiv,
    "__mod__": _mod,
    "__rmod__": _rmod,
    "__divmod__": _divmod,
    "__rdivmod__": _rdivmod,
    "__pow__": _power,
    "__rpow__": _power_of_self,
    "__matmul__": _matmul,
    "__rmatmul__": _rmatmul,
    "__and__": _and,
    "__rand__": _rand,
    "__or__": _or,
    "__ror__": _ror,
    "__xor__": _xor,
    "__rxor__": _rxor,
    "__lshift__": _lshift,
    "__rlshift__": _rlshift,
    "__rshift__": _rshift,
    "__rrshift__": _rrshift,
    "__eq__": _eq,
    "__ne__": _ne,
    "__lt__": _lt,
    "__le__": _le,
    "__gt__": _gt,
    "__ge__": _ge,
    "__round__": _round,
    "__contains__": _contains,
}

ARRAY_OPERATORS: dict[str, Callable[..., Any]] = {
    "__getitem__": _getitem,
    "__iter__": _array_iter,
}

TRACER_OPERATORS: dict[str, Callable[..., Any]] = {
    "__getitem__": _tracer_getitem,
    "__setitem__": _tracer_setitem,
    "__iter__": _tracer_iter,
    "__len__": _tracer_len,
}
