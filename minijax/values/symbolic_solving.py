"""The values of variables from the shapes of arguments: `f32[4*n]` of 12 gives n = 3.

In JAX: `jax/_src/export/shape_poly.py`, `solve_dim_vars` and `ShapeConstraints`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.support.special_errors import InconclusiveDimensionOperation
from minijax.values.symbolic_sizes import (
    Size,
    check_scopes,
    evaluate,
    is_symbolic,
    make_size,
    scope_of,
    shape_variables,
)

Shapes = Sequence[Sequence[Size]]
Describe = Callable[[int, int], str]  # argument and axis -> "args[0].shape[1]"


class Equation(NamedTuple):
    """`times * name + rest` is the size of an axis of an argument.

    `rest` has only variables of the equations before.
    """

    name: str
    argument: int
    axis: int
    times: int
    rest: Size


def symbolic_axes(shapes: Shapes) -> list[tuple[int, int, Size]]:
    """(argument, axis, size) of each size that is an expression."""
    return [
        (argument, axis, size)
        for argument, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
        if is_symbolic(size)
    ]


def equations(shapes: Shapes) -> list[Equation]:
    """An equation for each variable, which can be solved in this order.

    Raises ValueError if there is none for some: only sizes that are linear in one
    unknown variable tell its value.
    """
    axes = symbolic_axes(shapes)
    for _, _, size in axes:
        check_scopes(axes[0][2], size)
    missing = set(shape_variables(shapes))
    found: list[Equation] = []
    progress = True
    while missing and progress:
        progress = False
        for argument, axis, size in axes:
            unknown = [m for m in size.terms if _names(m, size.scope) & missing]
            if len(unknown) != 1:
                continue
            (monomial,) = unknown
            ((factor, power), *others) = monomial
            if others or power != 1 or not isinstance(factor, str):
                continue
            count = size.terms[monomial]
            rest = size - make_size({monomial: count}, size.scope)
            found.append(Equation(factor, argument, axis, count, rest))
            missing.discard(factor)
            progress = True
    if missing:
        raise ValueError(
            f"Cannot solve for values of dimension variables {sorted(missing)}: the "
            "value of a variable comes from a size that is linear in it, as in `b` or "
            "`4*b + 1`. Give an argument with such a size."
        )
    return found


def _names(monomial: Any, scope: Any) -> set[str]:
    size = make_size({monomial: 1}, scope)
    return size.variables() if is_symbolic(size) else set()


def solve(shapes: Shapes, actual: Shapes, describe: Describe) -> dict[str, Size]:
    """The values of the variables in `shapes` for the shapes of a call.

    Raises ValueError, naming the argument, if there are none: a size does not fit, or
    a constraint is broken. Sizes of a call may be symbolic themselves; what depends on
    their values is left to the assertions of the program.
    """
    values: dict[str, Size] = {}
    axes = symbolic_axes(shapes)

    def mismatch(what: str) -> ValueError:
        specs = ", ".join(f"{describe(i, axis)} = '{size}'" for i, axis, size in axes)
        return ValueError(
            "Input shapes do not match the polymorphic shapes specification. "
            f"{what}. The function was exported for {specs}."
        )

    for equation in equations(shapes):
        size = actual[equation.argument][equation.axis]
        where = describe(equation.argument, equation.axis)
        spec = shapes[equation.argument][equation.axis]
        value, left = divmod(size - evaluate(equation.rest, values), equation.times)
        if left != 0:
            raise mismatch(
                f"{where} is {size}, which '{spec}' does not equal for any whole "
                f"number '{equation.name}'"
            )
        if _surely(operator.lt, value, 1):
            raise mismatch(
                f"Expected value >= 1 for dimension variable '{equation.name}', and "
                f"'{spec}' for {where} = {size} gives {value}"
            )
        values[equation.name] = value
    for argument, axis, size in axes:
        expected, given = evaluate(size, values), actual[argument][axis]
        if _surely(_differ, expected, given):
            raise mismatch(
                f"{describe(argument, axis)} is {given}, and '{size}' is {expected} "
                f"for {_shown(values)}"
            )
    if axes and not any(map(is_symbolic, values.values())):
        failed = scope_of(axes[0][2]).failed_check(values)
        if failed is not None:
            raise mismatch(
                f"The constraint '{failed}' does not hold for {_shown(values)}"
            )
    return values


def _surely(test: Callable[[Size, Size], bool], first: Size, second: Size) -> bool:
    """The answer of a test; False if it depends on the values of variables."""
    try:
        return test(first, second)
    except InconclusiveDimensionOperation:
        return False


def _differ(first: Size, second: Size) -> bool:
    return first < second or first > second


def _shown(values: dict[str, Size]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
