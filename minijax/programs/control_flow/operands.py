"""Groups of operands with names, and the flags that transformations put on them.

The body of a loop takes constants, a carry and one row of each array that it goes over;
the equation takes the same three groups, with whole arrays for the rows. `Operands`
names the groups, whatever it holds of them: values, types, or flags that say which are
nonzero, unknown, batched or needed.

A rule of a loop or a branch has two parts. First it finds the flags of the outputs:

- `settle` for a loop. An entry of the carry that one step makes nonzero (unknown,
  batched) stays so in all later steps, so the flags grow until a step changes none.
- `agree` for branches. An output is nonzero (unknown, batched) if any branch makes it
  so, and then it must be in all branches.

Both take a transformation of one program as `step(..., wanted) -> (flags, answer)`,
where `wanted` flags outputs that are to be nonzero (unknown, batched) in any case. Then
the rule binds the programs it got, with the operands in their groups.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.core import autodiff
from minijax.transforms.rematerialize import where, where_not

# ----------------------------------------------------------------------------------
# Lists
# ----------------------------------------------------------------------------------


def split_list(items: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Consecutive parts of a list, of the given sizes, and the rest."""
    parts, start = [], 0
    for size in sizes:
        parts.append(list(items[start : start + size]))
        start += size
    return [*parts, list(items[start:])]


def partition(flags: Sequence[bool], items: Sequence[Any]) -> tuple[list, list]:
    """(the items whose flag is not set, those whose flag is)."""
    return where_not(flags, items), where(flags, items)


def merge(flags: Sequence[bool], unset: Iterable[Any], given: Iterable[Any]) -> list:
    """The inverse of `partition`."""
    first, second = iter(unset), iter(given)
    return [next(second) if flag else next(first) for flag in flags]


def either(first: Sequence[bool], second: Sequence[bool]) -> list[bool]:
    """Which flags are set in one of two lists."""
    return [a or b for a, b in zip(first, second, strict=True)]


# ----------------------------------------------------------------------------------
# Groups
# ----------------------------------------------------------------------------------


class Groups:
    """The methods of named tuples of groups: of `Operands`, and of a while loop's."""

    @property
    def flat(self: Any) -> list[Any]:
        """All operands in their order."""
        return [x for group in self for x in group]

    def map(self: Any, function: Callable) -> Any:
        """The groups with a function of each operand; tuples, so that they hash."""
        return type(self)(*(tuple(map(function, group)) for group in self))

    def where(self: Any, flags: Any) -> Any:
        """The operands whose flag is set."""
        return type(self)(*map(where, flags, self))

    def where_not(self: Any, flags: Any) -> Any:
        """The operands whose flag is not set."""
        return type(self)(*map(where_not, flags, self))


class Operands(namedtuple("Operands", "consts carry rows", defaults=[()]), Groups):
    """What the body of a loop takes, or something about each: a value, a type, a flag.

    A `while` loop has no rows.
    """

    def beside(self, others: Operands) -> Operands:
        """Each group followed by the same group of other operands."""
        return Operands(*([*own, *other] for own, other in zip(self, others)))


def order_beside_tangents(nonzeros: Iterable[Sequence[bool]]) -> list[int]:
    """The order that puts the tangents of each group right after the group.

    Before, all values come first and then all tangents, as in `ad.jvp_jaxpr`; only
    flagged values have a tangent.
    """
    groups = list(nonzeros)
    value, tangent = 0, sum(map(len, groups))
    order: list[int] = []
    for flags in groups:
        order += range(value, value + len(flags))
        order += range(tangent, tangent + sum(flags))
        value += len(flags)
        tangent += sum(flags)
    return order


def split_groups_of_tangents(
    outputs: Sequence[Any], *nonzeros: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """`split_tangents` for groups, each of which is followed by its tangents."""
    flat = [None] * len(outputs)
    for place, output in zip(order_beside_tangents(nonzeros), outputs, strict=True):
        flat[place] = output
    return autodiff.split_tangents(flat, [flag for group in nonzeros for flag in group])


# ----------------------------------------------------------------------------------
# Flags of loops and of branches
# ----------------------------------------------------------------------------------


def fixpoint(flags: Sequence[bool], step: Callable) -> tuple[list[bool], Any]:
    """The least set of flags of a loop's carry that a step through its body keeps.

    `step(flags) -> (flags of the carry after the body, answer)`; the last answer is
    returned. Each turn sets at least one flag more, so it ends.
    """
    flags = list(flags)
    while True:
        after, answer = step(flags)
        joined = either(flags, after)
        if joined == flags:
            return flags, answer
        flags = joined


def settle(flags: Operands, num_ys: int, step: Callable) -> tuple[Operands, Any]:
    """The flags of a loop's operands, those of its carry at their fixpoint.

    `step(flags of the body's inputs, wanted) -> (flags of its outputs, answer)`, where
    the outputs are the carry and `num_ys` others. Returns the flags and the last
    answer.
    """

    def turn(carry: list[bool]) -> tuple[Sequence[bool], Any]:
        inputs = (*flags.consts, *carry, *flags.rows)
        after, answer = step(inputs, (*carry, *[False] * num_ys))
        return after[: len(carry)], answer

    carry, answer = fixpoint(flags.carry, turn)
    return flags._replace(carry=carry), answer


def any_of(flags_of_branches: Iterable[Sequence[bool]]) -> tuple[bool, ...]:
    """Which flags are set in any branch."""
    return tuple(any(flags) for flags in zip(*flags_of_branches))


def agree(
    branches: Sequence[Any], step: Callable
) -> tuple[tuple[bool, ...], tuple[Any, ...]]:
    """The flags that any branch sets, and the results of all branches for these.

    `step(branch, wanted) -> (flags, answer)`; nothing is wanted at first.
    """
    flags = any_of(step(branch, ())[0] for branch in branches)
    return flags, tuple(step(branch, flags)[1] for branch in branches)
