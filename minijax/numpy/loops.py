"""The loops and branches that functions of this room are written with.

`lax.scan` and `lax.switch` carry a program and stand on floor 5b. Where that room has
them they are used, and print as JAX prints them; where it does not, the steps of a loop
are written out one after the other, and all branches are computed and one is selected,
which is what `switch` becomes under `vmap` anyway. Values are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import lax
from minijax.array import Array


def fold(
    step: Callable[[Any, Any], Any],
    carry: Any,
    rows: Array | None,
    length: int,
    unroll: int,
) -> Any:
    """`carry` after `step(carry, row)` for each of `length` rows (None: no rows)."""
    if not hasattr(lax, "scan"):
        for i in range(length):
            carry = step(carry, None if rows is None else rows[i])
        return carry

    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        return step(carry, row), () if rows is None else None

    inputs = () if rows is None else rows
    result, _ = lax.scan(body, carry, inputs, length=length, unroll=unroll)
    return result


def switch(index: Any, branches: Sequence[Callable[[Any], Array]], operand: Any) -> Any:
    """`branches[index](operand)`, the index being clamped to those there are."""
    if hasattr(lax, "switch"):
        return lax.switch(index, branches, operand)
    index = lax.clamp(0, index, len(branches) - 1)
    return lax.select_n(index, *(branch(operand) for branch in branches))
