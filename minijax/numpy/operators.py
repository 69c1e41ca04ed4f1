"""Operators of `Array` and `Tracer`: `x + y`, `x[i]`, `x == y` and the others.

An operator means the function of the same meaning in `ufuncs.py`. But most operators
in real programs join two arrays of the very same type, or an array and a Python
number, and need no promotion at all. Those reach the primitive at once; everything
else goes the long way through the function.

`array_methods.py` installs this table. In JAX: `numpy/array_methods.py`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import lax
from minijax.language.array import Array, from_numpy
from minijax.language.array_interchange import item_assignment_error
from minijax.language.core import Tracer
from minijax.language.more_avals import AbstractRef
from minijax.numpy import contractions, indexing, reductions, ufuncs, ufuncs_floats
from minijax.numpy.promotion import (
    FLOAT_TYPES,
    INEXACT_TYPES,
    INTEGER_TYPES,
    ensure_arraylike,
    number_beside,
)
from minijax.primitives.refs import references
from minijax.support import dtypes
from minijax.support.errors import boundaries, filter_traceback

# The dtypes for which the short way is open.
_number_types = INEXACT_TYPES | INTEGER_TYPES


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
    bind: Any = None,
    kinds: Any = (),
    refused: tuple[type, ...] = (),
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator and its reflection.

    `bind` applies the primitive to two operands of one type with a dtype in `kinds`;
    operands of the types in `refused` are not asked for their own opinion.
    """
    kinds = frozenset(kinds)

    def forward(self: Any, other: Any) -> Any:
        aval = self.aval
        if aval.dtype in kinds:
            if getattr(other, "aval", None) is aval:
                return bind(self, other)
            if type(other) is float or type(other) is int:
                number = number_beside(aval, other)
                if number is not None:
                    return bind(self, number)
        operand = _as_operand(other)
        if operand is NotImplemented:
            if type(other) in refused:
                raise _unsupported(symbol, self, other)
            return NotImplemented
        try:
            return function(self, operand)
        except Exception as error:
            filter_traceback.run(error)
            raise

    def reflected(self: Any, other: Any) -> Any:
        aval = self.aval
        if aval.dtype in kinds and (type(other) is float or type(other) is int):
            number = number_beside(aval, other)
            if number is not None:
                return bind(number, self)
        operand = _as_operand(other)
        if operand is NotImplemented:
            if type(other) in refused:
                raise _unsupported(symbol, other, self)
            return NotImplemented
        try:
            return function(operand, self)
        except Exception as error:
            filter_traceback.run(error)
            raise

    boundaries.update((forward.__code__, reflected.__code__))
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
        return references.ref_get(self, index)
    return indexing.getitem(self, index)


def _tracer_setitem(self: Any, index: Any, value: Any) -> None:
    aval = self.aval
    if type(aval) is AbstractRef:
        references.ref_set(self, index, value)
        return
    raise item_assignment_error()


def _tracer_addupdate(self: Any) -> Callable[..., None]:
    if type(self.aval) is not AbstractRef:
        raise AttributeError(
            f"{type(self).__name__} has no attribute addupdate: it is no ref. To add "
            "to a part of an array, write `x.at[idx].add(y)`."
        )

    def addupdate(x: Any, idx: Any = ()) -> None:
        references.ref_addupdate(self, idx, x)

    return addupdate


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

_bind_mul = functools.partial(lax.mul_p.bind, out_dtype=None)

_add, _radd = _binary("+", ufuncs.add, lax.add_p.bind, _number_types, _sequence_types)
_sub, _rsub = _binary("-", ufuncs.subtract, lax.sub_p.bind, _number_types)
_mul, _rmul = _binary("*", ufuncs.multiply, _bind_mul, _number_types, _sequence_types)
_div, _rdiv = _binary("/", ufuncs.true_divide, lax.div_p.bind, INEXACT_TYPES)
_floordiv, _rfloordiv = _binary("//", ufuncs.floor_divide)
_mod, _rmod = _binary("%", ufuncs.mod)
_divmod, _rdivmod = _binary("divmod()", ufuncs.divmod)
_matmul, _rmatmul = _binary("@", contractions.matmul)
_and, _rand = _binary("&", ufuncs.bitwise_and, lax.and_p.bind, INTEGER_TYPES)
_or, _ror = _binary("|", ufuncs.bitwise_or, lax.or_p.bind, INTEGER_TYPES)
_xor, _rxor = _binary("^", ufuncs.bitwise_xor, lax.xor_p.bind, INTEGER_TYPES)
_lshift, _rlshift = _binary("<<", ufuncs.left_shift)
_rshift, _rrshift = _binary(">>", ufuncs.right_shift)
_comparable = (*FLOAT_TYPES, *INTEGER_TYPES)
_refused = (dict, list, set, tuple)
_eq, _ = _binary("==", ufuncs.equal, lax.eq_p.bind, _number_types, _refused)
_ne, _ = _binary("!=", ufuncs.not_equal, lax.ne_p.bind, _number_types, _refused)
_lt, _ = _binary("<", ufuncs.less, lax.lt_p.bind, _comparable)
_le, _ = _binary("<=", ufuncs.less_equal, lax.le_p.bind, _comparable)
_gt, _ = _binary(">", ufuncs.greater, lax.gt_p.bind, _comparable)
_ge, _ = _binary(">=", ufuncs.greater_equal, lax.ge_p.bind, _comparable)

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

TRACER_OPERATORS: dict[str, Any] = {
    "__getitem__": _tracer_getitem,
    "__setitem__": _tracer_setitem,
    "addupdate": property(_tracer_addupdate),
    "__iter__": _tracer_iter,
    "__len__": _tracer_len,
}
