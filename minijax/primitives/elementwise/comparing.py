"""Operations on bits, and comparisons in total order: nothing here has a derivative.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.arithmetic import comparison
from minijax.core.rules import (
    anything,
    bool_or_int,
    def_zero_jvp,
    ints,
    nary,
    ordered,
    unary,
)

# ----------------------------------------------------------------------------------
# Comparison of floats in total order
# ----------------------------------------------------------------------------------


def _total_order_key(x: Any) -> Any:
    """Integers in the floats' total order: -NaN < -inf < -0 < 0 < inf < NaN."""
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).max ^ bits, bits)


def _in_total_order(compare: Any) -> Any:
    def meaning(x, y) -> Any:
        if x.dtype.kind == "f":
            x, y = _total_order_key(x), _total_order_key(y)
        return compare(x, y)

    return meaning


eq_to_p = comparison("eq_to", anything, _in_total_order(np.equal), "EQ", "TOTALORDER")
le_to_p = comparison(
    "le_to", ordered, _in_total_order(np.less_equal), "LE", "TOTALORDER"
)
lt_to_p = comparison("lt_to", ordered, _in_total_order(np.less), "LT", "TOTALORDER")


# ----------------------------------------------------------------------------------
# Bits
# ----------------------------------------------------------------------------------

not_p = unary("not", bool_or_int, np.invert, "not_")
and_p = nary("and", [bool_or_int] * 2, np.bitwise_and, "and_")
or_p = nary("or", [bool_or_int] * 2, np.bitwise_or, "or_")
xor_p = nary("xor", [bool_or_int] * 2, np.bitwise_xor, "xor")


def _shift_meaning(shift, unsigned: bool, overflow) -> Any:
    """Shifts by the width or more are defined in XLA; NumPy leaves them undefined."""

    def meaning(x, y) -> Any:
        bits = 8 * x.dtype.itemsize
        words = x.view(f"u{x.dtype.itemsize}") if unsigned else x
        amounts = y.astype(f"u{y.dtype.itemsize}")
        small = np.where(amounts < bits, amounts, 0).astype(words.dtype)
        out = np.where(amounts < bits, shift(words, small), overflow(words))
        return out.astype(words.dtype).view(x.dtype)

    return meaning


shift_left_p = nary(
    "shift_left",
    [ints, ints],
    _shift_meaning(np.left_shift, True, np.zeros_like),
    "shift_left",
)
shift_right_arithmetic_p = nary(
    "shift_right_arithmetic",
    [ints, ints],
    _shift_meaning(np.right_shift, False, lambda x: np.where(x < 0, -1, 0)),
    "shift_right_arithmetic",
)
shift_right_logical_p = nary(
    "shift_right_logical",
    [ints, ints],
    _shift_meaning(np.right_shift, True, np.zeros_like),
    "shift_right_logical",
)
population_count_p = unary(
    "population_count",
    ints,
    lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")),
    "popcnt",
)
clz_p = unary("clz", ints, lambda x: _leading_zeros(x), "count_leading_zeros")


def _leading_zeros(x: Any) -> Any:
    bits = 8 * x.dtype.itemsize
    words = x.view(f"u{x.dtype.itemsize}")
    lengths = np.array([int(word).bit_length() for word in words.ravel()], int)
    return (bits - lengths).reshape(x.shape).astype(x.dtype)


mulhi_p = nary("mulhi", [ints, ints], lambda x, y: _high_words(x, y), "chlo.mulhi")


def _high_words(x: Any, y: Any) -> Any:
    product = x.astype(object) * y.astype(object)
    return np.array(product >> (8 * x.dtype.itemsize)).astype(x.dtype)


_shifts = (shift_left_p, shift_right_arithmetic_p, shift_right_logical_p)
_counts = (population_count_p, clz_p, mulhi_p)
for _primitive in (not_p, and_p, or_p, xor_p, *_shifts, *_counts):
    def_zero_jvp(_primitive)


def bitwise_not(x: Any) -> Any:
    """Elementwise complement of the bits; logical `not` for booleans."""
    return not_p.bind(x)


def bitwise_and(x: Any, y: Any) -> Any:
    """Elementwise `and` of the bits, or of booleans."""
    return and_p.bind(x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """Elementwise `or` of the bits, or of booleans."""
    return or_p.bind(x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """Elementwise exclusive `or` of the bits, or of booleans."""
    return xor_p.bind(x, y)


def shift_left(x: Any, y: Any) -> Any:
    """The bits of x moved y places up; 0 once y reaches the width."""
    return shift_left_p.bind(x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """The bits of x moved y places down, copies of the sign bit coming in."""
    return shift_right_arithmetic_p.bind(x, y)


def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of x moved y places down, zeros coming in."""
    return shift_right_logical_p.bind(x, y)


def population_count(x: Any) -> Any:
    """How many bits of each integer are 1."""
    return population_count_p.bind(x)


def clz(x: Any) -> Any:
    """How many leading bits of each integer are 0."""
    return clz_p.bind(x)


def mulhi(x: Any, y: Any, /) -> Any:
    """The upper half of the double-width product of integers."""
    return mulhi_p.bind(x, y)
