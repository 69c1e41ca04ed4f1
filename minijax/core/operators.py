"""Operators of `Array` and `Tracer`: `x + y`, `2 * x`, `x ** 2`, `x < y`, `x @ y`.

Most operators in real programs have two arrays of the same type as operands, or an
array and a Python number, and need no promotion. These bind the primitive directly. All
others call `apply_operator`, which first gives the operands one dtype and one rank.
`numpy/math/operators.py` attaches the functions of `jax.numpy` there and adds the
operators that need more primitives, such as `x // y` and `x[i]`.

In JAX: `numpy/array_methods.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arithmetic, dtypes
from .array import Array
from .dot import dot_general
from .errors import boundaries, filter_traceback
from .events import Hook, add_methods
from .language import Tracer, get_aval
from .shaping import broadcast_in_dim, convert_element_type_to

# For each dtype, the NumPy type of its scalars.
FLOAT_TYPES = {
    np.dtype(kind): np.dtype(kind).type
    for kind in (np.float16, np.float32, np.float64, dtypes.bfloat16)
}
INEXACT_TYPES = FLOAT_TYPES | {np.dtype(c): np.dtype(c).type for c in ("c8", "c16")}
INTEGER_TYPES = {
    np.dtype(f"{kind}{size}"): np.dtype(f"{kind}{size}").type
    for kind in "iu"
    for size in (1, 2, 4, 8)
}
NUMBER_TYPES = INEXACT_TYPES | INTEGER_TYPES
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1


# ----------------------------------------------------------------------------------
# Numbers as operands, and promotion
# ----------------------------------------------------------------------------------


def number_beside(aval, value: int | float) -> Any:
    """A Python int or float as an operand beside an array of type `aval`.

    It becomes a NumPy scalar of the array's dtype, which is a literal in a jaxpr;
    beside a weakly typed array it stays weakly typed. None if promotion is needed.
    """
    if aval.vma or dtypes.canonicalize_dtype(aval.dtype) != aval.dtype:
        return None
    if type(value) is int and not _INT32_MIN <= value <= _INT32_MAX:
        return None
    dtype = aval.dtype
    scalar_type = NUMBER_TYPES[dtype]
    if dtype in INTEGER_TYPES:
        if type(value) is float:
            return None
        # For other dtypes, only numbers that all of them hold: larger ones wrap around.
        wide = dtype.itemsize >= 4 and dtype.kind == "i"
        if not wide and not 0 <= value <= 127:
            return None
    if aval.weak_type:
        scalar_type = weak_scalar_type(dtype)
        if scalar_type is None:
            return None
    return scalar_type(value)


def keeps_dtype(aval) -> bool:
    """Whether an operation on two arrays of this type computes in its dtype.

    Weakly typed arrays of 64 bits, made in 64-bit mode, become 32-bit ones outside it.
    """
    return not aval.weak_type or dtypes.canonicalize_dtype(aval.dtype) == aval.dtype


def weak_scalar_type(dtype) -> type | None:
    """The Python type whose values are weakly typed as `dtype`, if there is one."""
    for scalar in (int, float, complex):
        if dtypes.dtype(scalar(0)) == dtype:
            return scalar
    return None


def promoted(x, y, inexact: bool = False) -> list[Any]:
    """Two operands with one dtype, by the lattice, and one rank.

    With `inexact`, integers and booleans become floats. A scalar stays a scalar; an
    array of lower rank gets leading axes of size 1.
    """
    rank = max(get_aval(x).ndim, get_aval(y).ndim)
    dtype, weak_type = dtypes.lattice_result_type(x, y)
    if inexact and dtype not in INEXACT_TYPES:
        dtype = dtypes.default_float_dtype()
    operands = []
    for operand in (x, y):
        operand = convert_element_type_to(operand, dtype, weak_type)
        shape = get_aval(operand).shape
        if shape and len(shape) < rank:
            lead = rank - len(shape)
            axes = tuple(range(lead, rank))
            operand = broadcast_in_dim(operand, (1,) * lead + shape, axes)
        operands.append(operand)
    return operands


def _matmul(x, y) -> Any:
    """The product of vectors and matrices."""
    dtype, _ = dtypes.lattice_result_type(x, y)
    x_rank, y_rank = get_aval(x).ndim, get_aval(y).ndim
    if not (1 <= x_rank <= 2 and 1 <= y_rank <= 2):
        raise ValueError(
            f"`@` multiplies vectors and matrices, got ranks {x_rank} and {y_rank}. "
            "Use * to multiply by a scalar, `minijax.numpy.matmul` for stacks."
        )
    numbers = (((x_rank - 1,), (0,)), ((), ()))
    return dot_general(x, y, numbers, preferred_element_type=dtype)


@Hook
def apply_operator(name: str, *operands) -> Any:
    """Apply the operator of the function `name` of `jax.numpy` to any operands.

    By default it promotes the operands and binds the primitive of `name`.
    """
    if name == "matmul":
        return _matmul(*operands)
    if name not in _OPERATIONS:
        raise NotImplementedError(f"`{name}` is in minijax.numpy: import that.")
    if len(operands) == 2:
        operands = tuple(promoted(*operands, inexact=name == "true_divide"))
    return _OPERATIONS[name](*operands)


# ----------------------------------------------------------------------------------
# The operators
# ----------------------------------------------------------------------------------

_operand_types = (int, float, complex, np.generic, np.ndarray, Tracer, Array)


def _as_operand(other) -> Any:
    """`other` if it can take part in an operation, else NotImplemented."""
    if isinstance(other, _operand_types):
        return other
    method = getattr(other, "__jax_array__", None)
    return NotImplemented if method is None else method()


def binary_operator(
    symbol: str, name: str, bind=None, kinds=(), refused: tuple[type, ...] = ()
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator and its reflection: the function `name` of `jax.numpy`.

    `bind` applies the primitive to two operands of one type with a dtype in `kinds`.
    For an operand of a type in `refused` it raises TypeError, instead of letting Python
    try the reflected operator.
    """
    kinds = frozenset(kinds)

    def attempt(left, right) -> Any:
        """The operation on operands of any types, one of which is an array."""
        operands = [_as_operand(left), _as_operand(right)]
        if operands[0] is NotImplemented or operands[1] is NotImplemented:
            if {type(left), type(right)}.isdisjoint(refused):
                return NotImplemented
            raise TypeError(
                f"unsupported operand type(s) for {symbol}: {type(left).__name__!r} "
                f"and {type(right).__name__!r}. Write jnp.asarray(...) around the "
                "sequence."
            )
        return apply_operator.run(name, *operands)

    def forward(self, other) -> Any:
        aval = self.aval
        if aval.dtype in kinds:
            if getattr(other, "aval", None) is aval and keeps_dtype(aval):
                return bind(self, other)
            if type(other) is float or type(other) is int:
                number = number_beside(aval, other)
                if number is not None:
                    return bind(self, number)
        try:
            return attempt(self, other)
        except Exception as error:
            filter_traceback.run(error)
            raise

    def reflected(self, other) -> Any:
        aval = self.aval
        if aval.dtype in kinds and (type(other) is float or type(other) is int):
            number = number_beside(aval, other)
            if number is not None:
                return bind(number, self)
        try:
            return attempt(other, self)
        except Exception as error:
            filter_traceback.run(error)
            raise

    boundaries.update((forward.__code__, reflected.__code__))
    return forward, reflected


def _power(self, other) -> Any:
    if type(other) is int and self.aval.dtype in NUMBER_TYPES:
        return arithmetic.integer_pow(self, other)
    operand = _as_operand(other)
    if operand is NotImplemented:
        return NotImplemented
    return apply_operator.run("power", self, operand)


def _negative(self) -> Any:
    if self.aval.dtype in NUMBER_TYPES:
        return arithmetic.neg_p.bind(self)
    return apply_operator.run("negative", self)


_bind_mul = functools.partial(arithmetic.mul_p.bind, out_dtype=None)
_sequences = (tuple, list)
_collections = (dict, list, set, tuple)
_ordered = (*FLOAT_TYPES, *INTEGER_TYPES)

# (name of the methods, symbol, function of `jax.numpy`, primitive, dtypes, refused)
_TABLE: tuple[tuple, ...] = (
    ("add", "+", "add", arithmetic.add_p.bind, NUMBER_TYPES, _sequences),
    ("sub", "-", "subtract", arithmetic.sub_p.bind, NUMBER_TYPES, ()),
    ("mul", "*", "multiply", _bind_mul, NUMBER_TYPES, _sequences),
    ("truediv", "/", "true_divide", arithmetic.div_p.bind, INEXACT_TYPES, ()),
    ("matmul", "@", "matmul", None, (), ()),
    ("eq", "==", "equal", arithmetic.eq_p.bind, NUMBER_TYPES, _collections),
    ("ne", "!=", "not_equal", arithmetic.ne_p.bind, NUMBER_TYPES, _collections),
    ("lt", "<", "less", arithmetic.lt_p.bind, _ordered, ()),
    ("le", "<=", "less_equal", arithmetic.le_p.bind, _ordered, ()),
    ("gt", ">", "greater", arithmetic.gt_p.bind, _ordered, ()),
    ("ge", ">=", "greater_equal", arithmetic.ge_p.bind, _ordered, ()),
)
_OPERATIONS: dict[str, Callable] = {row[2]: row[3] for row in _TABLE}
_OPERATIONS["negative"] = arithmetic.neg


_METHODS = {"__neg__": _negative, "__pow__": _power}
_METHODS["__rpow__"] = binary_operator("**", "power")[1]
for _method, *_row in _TABLE:
    _METHODS[f"__{_method}__"], _reflected = binary_operator(*_row)
    if _method in ("add", "sub", "mul", "truediv", "matmul"):
        _METHODS[f"__r{_method}__"] = _reflected
for _class in (Array, Tracer):
    add_methods(_class, _METHODS)
