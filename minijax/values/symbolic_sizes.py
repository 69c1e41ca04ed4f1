"""Symbolic sizes: integer expressions such as `b`, `4*n` or `b - 1`.

    b, n = symbolic_shape("b, n")
    ShapeDtypeStruct((b, 4 * n), "float32")     # f32[b,4*n]

A `SymbolicSize` is a sum of monomials with integer coefficients. The factors of a
monomial are variables, which stand for whole numbers of at least 1, and operations that
have no simpler form: `floordiv(b, 2)`, `mod(b, 2)`, `max(b, n)`, `min(b, n)`. Sizes can
be added, multiplied, divided with a remainder, and compared. An expression that is
constant is an int: `b - b` is 0.

Two sizes are equal if their difference is 0; a comparison that depends on the values of
the variables raises InconclusiveDimensionOperation.

In JAX: `jax/_src/export/shape_poly.py`, `_DimExpr`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minijax.core.dtypes import scalar_defaults
from minijax.core.state import state
from minijax.support.special_errors import InconclusiveDimensionOperation

if TYPE_CHECKING:
    from minijax.values.symbolic_scopes import SymbolicScope

# A variable's name, or an operation and its operands, which are sizes.
Factor = str | tuple
# Factors with their exponents, in order. The empty one is the monomial 1.
Monomial = tuple[tuple[Factor, int], ...]
Size = Any  # int or SymbolicSize


class SymbolicSize:
    """A size that is an expression in variables.

    In JAX: `shape_poly.py`, `_DimExpr`.
    """

    __slots__ = ("scope", "terms", "_hash")

    # The size as an array; `dimension_values.py` defines it.
    __jax_array__: Callable[[], Any]

    # NumPy's arrays leave operators to the methods here.
    __array_priority__ = 1000

    made = False  # whether there is one at all: usually not

    def __init__(self, terms: Mapping[Monomial, int], scope: SymbolicScope):
        self.terms = dict(sorted(terms.items(), key=_order_of_term, reverse=True))
        self.scope = scope
        SymbolicSize.made = True
        self._hash = hash((tuple(self.terms.items()), id(scope)))

    # ---- arithmetic ------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self._with(other, "__add__", lambda terms: _sum(self.terms, terms, 1))

    def __radd__(self, other: Any) -> Any:
        return self._with(other, "__radd__", lambda terms: _sum(terms, self.terms, 1))

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "__sub__", lambda terms: _sum(self.terms, terms, -1))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, "__rsub__", lambda terms: _sum(terms, self.terms, -1))

    def __mul__(self, other: Any) -> Any:
        return self._with(other, "__mul__", lambda terms: _product(self.terms, terms))

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, "__rmul__", lambda terms: _product(terms, self.terms))

    def __neg__(self) -> Any:
        return -1 * self

    def __pos__(self) -> SymbolicSize:
        return self

    def __pow__(self, power: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            raise NotImplementedError(
                f"pow({self}, {power}, {modulo}): a size has no third argument of pow. "
                "Write `size ** power % modulo`."
            )
        if not isinstance(power, int):
            return self.__jax_array__() ** power
        if power < 0:
            raise ValueError(
                "Symbolic dimension cannot be raised to negative powers: "
                f"'{self}' ** '{power}'"
            )
        return math.prod([self] * power)

    def __rpow__(self, base: Any) -> Any:
        return base ** self.__jax_array__()

    def __truediv__(self, other: Any) -> Any:
        return self.__jax_array__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__jax_array__()

    def __floordiv__(self, other: Any) -> Any:
        return self._or_array(other, "__floordiv__", lambda: divide(self, other)[0])

    def __rfloordiv__(self, other: Any) -> Any:
        return self._or_array(other, "__rfloordiv__", lambda: divide(other, self)[0])

    def __mod__(self, other: Any) -> Any:
        return self._or_array(other, "__mod__", lambda: divide(self, other)[1])

    def __rmod__(self, other: Any) -> Any:
        return self._or_array(other, "__rmod__", lambda: divide(other, self)[1])

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def _with(self, other: Any, name: str, combine: Callable) -> Any:
        """The sum or product with another size; with an array, computed as arrays."""

        def of_sizes() -> Any:
            check_scopes(self, other)
            return make_size(combine(terms_of(other)), self.scope)

        return self._or_array(other, name, of_sizes)

    def _or_array(self, other: Any, name: str, of_sizes: Callable[[], Any]) -> Any:
        """`of_sizes()` if `other` is a size; with an array, computed as arrays."""
        if is_size(other):
            return of_sizes()
        return getattr(self.__jax_array__(), name)(other)

    # ---- comparisons -----------------------------------------------------------------

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, SymbolicSize):
            return False  # an expression that is constant would be an int
        return self.scope is other.scope and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> bool:
        return at_least(self, other, ">=")

    def __le__(self, other: Any) -> bool:
        return at_least(other, self, "<=", swapped=True)

    def __gt__(self, other: Any) -> bool:
        return not at_least(other, self, ">", swapped=True)

    def __lt__(self, other: Any) -> bool:
        return not at_least(self, other, "<")

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        raise inconclusive(
            f"Symbolic dimension '{self}' used in a context that requires a constant",
            self.scope,
        )

    def __index__(self) -> int:
        raise TypeError(
            f"Symbolic dimension '{self}' is not a whole number while the function is "
            "exported, so it cannot count a Python loop or fill a list. Compute with "
            "array operations, or give this size as a number."
        )

    # ---- text and values -------------------------------------------------------------

    def __repr__(self) -> str:
        return text_of(self)

    def __deepcopy__(self, memo: Any) -> SymbolicSize:
        return self

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The size for given values of its variables.

        The values may be ints, or anything with the same operators.
        """
        return sum(
            (count * _evaluate(monomial, values))
            for monomial, count in self.terms.items()
        )

    @property
    def dtype(self) -> Any:
        """The dtype of the size as an array."""
        return scalar_defaults[int][state.enable_x64]

    def variables(self) -> set[str]:
        """The names of the variables in the expression."""
        return {name for monomial in self.terms for name in _variables(monomial)}


def is_symbolic(size: Any) -> bool:
    """Whether a size is an expression with variables."""
    return isinstance(size, SymbolicSize)


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is an expression with variables. In JAX: `jax.export`."""
    return isinstance(p, SymbolicSize)


def is_size(value: Any) -> bool:
    """Whether a value is a size: a whole number or an expression."""
    if isinstance(value, (int, SymbolicSize)):
        return True
    try:
        operator.index(value)
    except TypeError:  # a tracer's too: its value is not known
        return False
    return True


def terms_of(size: Size) -> dict[Monomial, int]:
    """The monomials of a size, with their coefficients."""
    if isinstance(size, SymbolicSize):
        return size.terms
    return {(): int(size)} if size else {}


def make_size(terms: Mapping[Monomial, int], scope: SymbolicScope) -> Size:
    """The size of a sum of monomials; an int if it is constant.

    The equalities among the scope's constraints are put in.
    """
    kept: Mapping[Monomial, int] = {m: count for m, count in terms.items() if count}
    for monomial, replacement in scope.equalities.items():
        for found in list(kept):
            rest = _quotient(found, monomial)
            if rest is not None:
                count = kept[found]
                others = {m: c for m, c in kept.items() if m != found}
                product = _product({rest: count}, terms_of(replacement))
                return make_size(_sum(others, product, 1), scope)
    if not kept:
        return 0
    return kept[()] if len(kept) == 1 and () in kept else SymbolicSize(kept, scope)


def variable(name: str, scope: SymbolicScope) -> Size:
    """The size that is a variable."""
    return make_size({((name, 1),): 1}, scope)


def operation(name: str, first: Size, second: Size) -> Size:
    """`floordiv`, `mod`, `max` or `min` of two sizes, as simple as it gets."""
    check_scopes(first, second)
    if not is_symbolic(first) and not is_symbolic(second):
        return _operations[name](first, second)
    if name in ("floordiv", "mod"):
        return divide(first, second)[name == "mod"]
    low, high = bounds(first - second)
    if low >= 0 or high <= 0:
        return first if (low >= 0) == (name == "max") else second
    return _irreducible(name, first, second)


def _irreducible(name: str, first: Size, second: Size) -> Size:
    factor = (name, first, second)
    return make_size({((factor, 1),): 1}, scope_of(first, second))


def scope_of(*sizes: Size) -> SymbolicScope:
    """The scope of the first size that has variables."""
    return next(size.scope for size in sizes if is_symbolic(size))


def check_scopes(first: Size, second: Size) -> None:
    """ValueError for sizes of two scopes: their variables are not the same."""
    if is_symbolic(first) and is_symbolic(second) and first.scope is not second.scope:
        raise ValueError(
            f"Invalid mixing of symbolic scopes: '{first}' belongs to {first.scope}, "
            f"'{second}' to {second.scope}. Make both with one scope: "
            "`symbolic_shape(text, scope=scope)`, or `symbolic_args_specs` for all "
            "arguments."
        )


def divide(first: Size, second: Size) -> tuple[Size, Size]:
    """Quotient, rounded down, and remainder."""
    check_scopes(first, second)
    if not is_symbolic(first) and not is_symbolic(second):
        return divmod(int(first), int(second))
    if not is_symbolic(second) and int(second) == 0:
        raise ZeroDivisionError(f"division of the size {first} by zero")
    quotient = _exact_quotient(first, second)
    if quotient is not None:
        rest = first - quotient * second
        return quotient + rest // int(second) if rest else quotient, (
            rest % int(second) if rest else 0
        )
    return _irreducible("floordiv", first, second), _irreducible("mod", first, second)


def _exact_quotient(first: Size, second: Size) -> Size | None:
    """The sum of the quotients of `first`'s terms by `second`; None if there is none.

    If `second` is a number, a constant may remain.
    """
    scope = scope_of(first, second)
    leading, count = next(iter(terms_of(second).items()))
    quotient: Size = 0
    rest = first
    while is_symbolic(rest):
        for monomial, times in rest.terms.items():
            part = _quotient(monomial, leading)
            if part is not None and times % count == 0:
                break
        else:
            return None
        step = make_size({part: times // count}, scope)
        if not is_symbolic(step) and step == 0:
            return None
        quotient = quotient + step
        after = rest - step * second
        if is_symbolic(after) and len(after.terms) > len(rest.terms):
            return None
        rest = after
    return None if rest and is_symbolic(second) else quotient


# ----------------------------------------------------------------------------------
# Monomials
# ----------------------------------------------------------------------------------


def _sum(first: Mapping, second: Mapping, sign: int) -> dict[Monomial, int]:
    terms = dict(first)
    for monomial, count in second.items():
        terms[monomial] = terms.get(monomial, 0) + sign * count
    return terms


def _product(first: Mapping, second: Mapping) -> dict[Monomial, int]:
    terms: dict[Monomial, int] = {}
    for one, count in first.items():
        for other, times in second.items():
            powers = dict(one)
            for factor, power in other:
                powers[factor] = powers.get(factor, 0) + power
            monomial = tuple(sorted(powers.items(), key=_order_of_power))
            terms[monomial] = terms.get(monomial, 0) + count * times
    return terms


def _quotient(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The monomial without the factors of another one; None if it lacks one."""
    powers = dict(monomial)
    for factor, power in divisor:
        left = powers.get(factor, 0) - power
        if left < 0:
            return None
        powers[factor] = left
    return tuple((factor, power) for factor, power in powers.items() if power)


def _order_of_factor(factor: Factor) -> tuple:
    if isinstance(factor, str):
        return (0, factor)
    name, *operands = factor
    return (1, name, *map(text_of, operands))


def _order_of_power(entry: tuple[Factor, int]) -> tuple:
    return (_order_of_factor(entry[0]), entry[1])


def _degree(factor: Factor) -> int:
    if isinstance(factor, str):
        return 1
    powers = [m for operand in factor[1:] for m in terms_of(operand)]
    return max((sum(_degree(f) * n for f, n in m) for m in powers), default=0)


def _order_of_term(term: tuple[Monomial, int]) -> tuple:
    monomial, _ = term
    degree = sum(_degree(factor) * power for factor, power in monomial)
    return (degree, len(monomial), tuple(map(_order_of_power, monomial)))


def _variables(monomial: Monomial) -> Iterator[str]:
    for factor, _ in monomial:
        if isinstance(factor, str):
            yield factor
        else:
            for operand in factor[1:]:
                if is_symbolic(operand):
                    yield from operand.variables()


_operations: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": lambda x, y: _extreme("maximum", max, x, y),
    "min": lambda x, y: _extreme("minimum", min, x, y),
}


def _extreme(name: str, of_numbers: Callable, x: Any, y: Any) -> Any:
    if hasattr(y, name):
        x, y = y, x
    return getattr(x, name)(y) if hasattr(x, name) else of_numbers(x, y)


def _evaluate(monomial: Monomial, values: Mapping[str, Any]) -> Any:
    result: Any = 1
    for factor, power in monomial:
        if isinstance(factor, str):
            value = values[factor]
        else:
            name, *operands = factor
            value = _operations[name](*(evaluate(each, values) for each in operands))
        for _ in range(power):
            result = result * value
    return result


def evaluate(size: Size, values: Mapping[str, Any]) -> Any:
    """A size for given values of its variables."""
    return size.evaluate(values) if is_symbolic(size) else size


# ----------------------------------------------------------------------------------
# Text
# ----------------------------------------------------------------------------------


def text_of(size: Size) -> str:
    """The text of a size, as `symbolic_shape` reads it: `2*b + n^2 - 1`."""
    if not is_symbolic(size):
        return f"- {-size}" if size < 0 else str(size)
    parts: list[str] = []
    for monomial, count in size.terms.items():
        if count < 0:
            parts.append("-")
        elif parts:
            parts.append("+")
        factors = [] if abs(count) == 1 and monomial else [str(abs(count))]
        parts.append("*".join([*factors, *map(_power_text, monomial)]))
    return " ".join(parts)


def _power_text(entry: tuple[Factor, int]) -> str:
    factor, power = entry
    if not isinstance(factor, str):
        name, *operands = factor
        factor = f"{name}({', '.join(map(text_of, operands))})"
    return factor if power == 1 else f"{factor}^{power}"


# ----------------------------------------------------------------------------------
# Comparing: the smallest and the largest value of an expression
# ----------------------------------------------------------------------------------

_DEPTH = 3  # how many constraints are combined


def at_least(first: Size, second: Size, sign: str, swapped: bool = False) -> bool:
    """Whether `first >= second`, for all values of the variables or for none.

    InconclusiveDimensionOperation if it depends on the values.
    """
    check_scopes(first, second)
    difference = first - second
    low, high = bounds(difference)
    if low >= 0:
        return True
    if high < 0:
        return False
    left, right = (second, first) if swapped else (first, second)
    raise inconclusive(
        f"Symbolic dimension comparison '{left}' {sign} '{right}' is inconclusive",
        scope_of(first, second),
    )


def bounds(size: Size) -> tuple[float, float]:
    """The smallest and the largest value that a size may have, as far as it is known.

    All values lie between them; the two themselves may be impossible.
    """
    if not is_symbolic(size):
        return size, size
    return _lower(size, _DEPTH), -_lower(-size, _DEPTH)


def _lower(size: Size, depth: int) -> float:
    """A lower bound: from the bounds of the terms, or with a constraint taken off."""
    if not is_symbolic(size):
        return size
    best = 0.0
    for monomial, count in size.terms.items():
        low, high = _bounds_of_monomial(monomial, size.scope, depth)
        best += count * (low if count > 0 else high)
    if depth == 0 or best >= 0:
        return best
    for constraint in _constraints_on(size):
        for monomial, count in constraint.terms.items():
            times = size.terms.get(monomial, 0)
            if monomial and times * count > 0 and times % count == 0:
                rest = size - (times // count) * constraint
                best = max(best, _lower(rest, depth - 1))
    return best


def _constraints_on(size: SymbolicSize) -> Iterator[SymbolicSize]:
    """Expressions of at least 0: the user's, and those of operations in the size."""
    yield from size.scope.nonnegative
    for monomial in size.terms:
        for factor, _ in monomial:
            if isinstance(factor, str):
                continue
            name, first, second = factor
            own = make_size({((factor, 1),): 1}, size.scope)
            found: list[Size] = []
            if name == "floordiv" and not is_symbolic(second) and second > 0:
                found = [first - second * own, second * own - first + second - 1]
            elif name == "max":
                found = [own - first, own - second]
            elif name == "min":
                found = [first - own, second - own]
            yield from filter(is_symbolic, found)


def _bounds_of_monomial(
    monomial: Monomial, scope: SymbolicScope, depth: int
) -> tuple[float, float]:
    low, high = 1.0, 1.0
    for factor, power in monomial:
        for _ in range(power):
            ends = _bounds_of_factor(factor, scope, depth)
            found = [_times(x, y) for x in (low, high) for y in ends]
            low, high = min(found), max(found)
    return low, high


def _times(first: float, second: float) -> float:
    return 0.0 if first == 0 or second == 0 else first * second


def _bounds_of_factor(
    factor: Factor, scope: SymbolicScope, depth: int
) -> tuple[float, float]:
    if isinstance(factor, str):
        return scope.ranges.get(factor, (1, math.inf))
    name, first, second = factor
    lows, highs = zip(
        *((_lower(x, depth), -_lower(-x, depth)) for x in (first, second))
    )
    if name == "max":
        return max(lows), max(highs)
    if name == "min":
        return min(lows), min(highs)
    if lows[1] <= 0:
        return -math.inf, math.inf
    if name == "mod":
        return 0, min(highs[1] - 1, highs[0] if lows[0] >= 0 else math.inf)
    ends = [_floor(x, y) for x in (lows[0], highs[0]) for y in (lows[1], highs[1])]
    return min(ends), max(ends)


def _floor(first: float, second: float) -> float:
    if math.isinf(first):
        return first if not math.isinf(second) else math.copysign(0, first)
    if math.isinf(second):
        return 0 if first >= 0 else -1
    return first // second


def inconclusive(message: str, scope: Any) -> Exception:
    """The error for what depends on the values of variables."""
    known = f" The scope is {scope}." if scope.texts else ""
    return InconclusiveDimensionOperation(
        f"{message}: it depends on the values of the variables.{known} Say more about "
        "them, as in `symbolic_shape(text, constraints=['b >= 2'])`, or write the "
        "program so that it does not ask."
    )


def larger(first: Size, second: Size) -> Size:
    """The larger of two sizes. In JAX: `core.max_dim`."""
    return operation("max", first, second)


def smaller(first: Size, second: Size) -> Size:
    """The smaller of two sizes. In JAX: `core.min_dim`."""
    return operation("min", first, second)


def count_steps(start: Size, stop: Size, step: Size) -> Size:
    """The length of `range(start, stop, step)` with a step that is known."""
    span, step = (stop - start, step) if step > 0 else (start - stop, -step)
    return larger((span + step - 1) // step, 0)


def slice_indices(index: slice, size: Size) -> tuple[Size, Size, Size, Size]:
    """Start, stop, step and length of a slice of an axis: as `slice.indices`.

    InconclusiveDimensionOperation if a start or stop may be negative or not.
    """
    if isinstance(size, int) and not any(
        map(is_symbolic, (index.start, index.stop, index.step))
    ):
        bounds = index.indices(size)
        return *bounds, len(range(*bounds))
    step = 1 if index.step is None else index.step
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clipped(bound: Size) -> Size:
        return larger(bound + size, low) if bound < 0 else smaller(high, bound)

    first, last = (low, high) if step > 0 else (high, low)
    start = first if index.start is None else clipped(index.start)
    stop = last if index.stop is None else clipped(index.stop)
    return start, stop, step, count_steps(start, stop, step)


def size_or_array(size: Size) -> Any:
    """A size as an operand of a primitive: an expression as the array of its value."""
    return size.__jax_array__() if is_symbolic(size) else size


def shape_variables(shapes: Sequence[Sequence[Size]]) -> list[str]:
    """The names of all variables in shapes, sorted."""
    names: set[str] = set()
    for shape in shapes:
        for size in shape:
            if is_symbolic(size):
                names |= size.variables()
    return sorted(names)
