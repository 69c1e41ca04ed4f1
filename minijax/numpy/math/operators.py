"""Operators of `Array` and `Tracer` beyond the core's: `x // y`, `x & y`, `x[i]`.

An operator means the function of the same meaning in `ufuncs.py`. Arithmetic and
comparison stand in `core/operators.py`, with a short way for operands that need
no promotion; for all others, the functions of this room are attached there.

`array_methods.py` installs this table. In JAX: `numpy/array_methods.py`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes, operators
from minijax.core.array import put
from minijax.core.state import state
from minijax.numpy.index import index_update, indexing
from minijax.numpy.math import float_functions, ufuncs
from minijax.numpy.products import contractions
from minijax.numpy.promotion import ensure_arraylike
from minijax.numpy.reduce import reductions
from minijax.primitives.refs import references
from minijax.primitives.refs.ref_views import RefIndexer
from minijax.values.array_interchange import item_assignment_error
from minijax.values.ref_avals import AbstractRef

# --------------------------------------------------------------------------
# The long way of the operators that core/operators.py installs

_NAMES = (
    "add subtract multiply true_divide floor_divide mod divmod power negative equal "
    "not_equal less less_equal greater greater_equal bitwise_and bitwise_or "
    "bitwise_xor left_shift right_shift"
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(ufuncs, name) for name in _NAMES.split()
}
_FUNCTIONS["matmul"] = contractions.matmul


@operators.apply_operator.attach
def _apply(name: str, *operands: Any) -> Any:
    return _FUNCTIONS[name](*operands)


def _round(self: Any, ndigits: int | None = None) -> Any:
    result = float_functions.round(self, decimals=ndigits or 0)
    return result.astype(int) if ndigits is None else result


# --------------------------------------------------------------------------
# Indexing and iteration


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


def _ref_method(name: str) -> property:
    """A method that tracers of refs have, and tracers of arrays do not."""
    method = references.REF_METHODS[name]

    def get(self: Any) -> Callable[..., Any]:
        if type(self.aval) is not AbstractRef:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name}: it is not a ref. To "
                "change a part of an array, write `x.at[idx].set(y)` or "
                "`x.at[idx].add(y)`."
            )
        return functools.partial(method, self)

    return property(get)


def _tracer_at(self: Any) -> Any:
    is_ref = type(self.aval) is AbstractRef
    return RefIndexer(self) if is_ref else index_update.IndexUpdateHelper(self)


def _check_has_axis(self: Any) -> None:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")


def _tracer_iter(self: Any) -> Iterator[Any]:
    _check_has_axis(self)
    return (lax.index_in_dim(self, i, keepdims=False) for i in range(self.shape[0]))


def _array_iter(self: Any) -> Iterator[Any]:
    _check_has_axis(self)
    in_mesh = state.mesh is not None and self.is_fully_replicated
    if in_mesh or dtypes.is_extended(self.dtype):
        entry = functools.partial(lax.dynamic_index_in_dim, self, keepdims=False)
        return map(entry, range(self.shape[0]))
    # The values are read once; slicing on the device would be a program per element.
    aval = self.aval.update(shape=self.shape[1:])
    return (put(np.asarray(value, self.dtype), aval) for value in self._value)


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

OPERATORS: dict[str, Callable[..., Any]] = {
    "__pos__": lambda self: ufuncs.positive(self),
    "__abs__": lambda self: ufuncs.abs(self),
    "__invert__": lambda self: ufuncs.invert(self),
    "__round__": _round,
    "__contains__": _contains,
}

# Name, symbol, function; the primitive of the short way, and for which dtypes.
_BINARY: tuple[tuple[Any, ...], ...] = (
    ("floordiv", "//", "floor_divide"),
    ("mod", "%", "mod"),
    ("divmod", "divmod()", "divmod"),
    ("and", "&", "bitwise_and", lax.and_p.bind, operators.INTEGER_TYPES),
    ("or", "|", "bitwise_or", lax.or_p.bind, operators.INTEGER_TYPES),
    ("xor", "^", "bitwise_xor", lax.xor_p.bind, operators.INTEGER_TYPES),
    ("lshift", "<<", "left_shift"),
    ("rshift", ">>", "right_shift"),
)
for _name, _symbol, _function, *_short_way in _BINARY:
    _both = operators.binary_operator(_symbol, _function, *_short_way)
    OPERATORS[f"__{_name}__"], OPERATORS[f"__r{_name}__"] = _both

ARRAY_OPERATORS: dict[str, Callable[..., Any]] = {
    "__getitem__": indexing.getitem,
    "__iter__": _array_iter,
}

TRACER_OPERATORS: dict[str, Any] = {
    "__getitem__": _tracer_getitem,
    "__setitem__": _tracer_setitem,
    **{name: _ref_method(name) for name in references.REF_METHODS},
    "at": property(_tracer_at),
    "__iter__": _tracer_iter,
    "__len__": _tracer_len,
}
