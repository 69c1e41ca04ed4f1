"""Why the batch axis is where it is: sentences derived from a primitive and its axes.

A sentence holds for every equation that it is said of: it is made of the family of the
batching rule that ran and of the axes before and after, never of the example at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minijax_lab.explain.source import short_path
from minijax_lab.explain.words import meaning

# Primitives that run a program of their own, which is batched in its turn.
CALLS = {"jit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat2"}
# Which operand is the first index, and what takes the place of the primitive.
STARTS = {
    "dynamic_slice": (1, "gather", "takes all the slices"),
    "dynamic_update_slice": (2, "scatter", "writes all the slices"),
}
NO_RESULT = "it has no result: what it does is done for all examples"
SAME = "the same for all examples: computed once"


def rule_of(primitive: Any) -> tuple[str, str, int]:
    """The batching rule of a primitive: (name, file, first line)."""
    rule: Any = getattr(primitive, "batch", None)
    if rule is None:
        rule = getattr(type(primitive), "batch_call", None)
    while hasattr(rule, "func"):
        rule = rule.func  # a partial
    code = getattr(rule, "__code__", None)
    if rule is None or code is None:
        return "", "", 0
    # A rule that a family makes is named after the family: `broadcasting_batch`.
    name = rule.__qualname__.partition(".<locals>")[0]
    return name, short_path(Path(code.co_filename)), code.co_firstlineno


def place(axis: int, rank: int | None = None) -> str:
    """An axis in words: "first", "last" or "at axis 2"."""
    if axis == 0:
        return "first"
    return "last" if rank is not None and axis == rank - 1 else f"at axis {axis}"


def carried(
    primitive: str,
    family: str,
    dims: Sequence[int | None],
    out_dims: Sequence[int | None],
    inserted: bool,
    replaced: bool,
) -> str:
    """Why the results of an equation have the axis where they have it.

    `dims` and `out_dims` are the axes of the operands and the results, None for those
    that are the same for all. `inserted` says whether the rule moved or added axes
    before, `replaced` whether other equations stand in place of this one.
    """
    mapped = [dim for dim in dims if dim is not None]
    out = [dim for dim in out_dims if dim is not None]
    special = special_reason(primitive, dims, out, replaced)
    if special:
        return special
    if not mapped and not out:
        return SAME
    if not out_dims:
        return NO_RESULT
    if not out:
        return "what comes out is the same for all examples"
    if not mapped:
        return f"every example gets its own result: the axis is {places(out)}"
    if family in ("elementwise_batch", "broadcasting_batch") and not replaced:
        if inserted:
            return f"entry by entry, now that the operands agree: {axes(out)}"
        return f"entry by entry: the axis stays where it is, {axes(out)}"
    if family == "reduction_batch" and not replaced:
        before, after = mapped[0], out[0]
        if before == after:
            return f"other axes are reduced: the axis stays, {axes(out)}"
        return (
            f"other axes are reduced, some of them before it: axis {before} is now "
            f"axis {after}"
        )
    name = f"in place of {primitive}, its rule wrote these" if replaced else ""
    if len({*mapped}) == 1 and {*mapped} == {*out}:
        return name or f"the rule of {primitive} leaves the axis where it is, " + axes(
            out
        )
    if name:
        return f"{name}: {axes(out)}"
    return f"the rule of {primitive} brings the axis from {axes(mapped)} to {axes(out)}"


def special_reason(
    primitive: str, dims: Sequence[int | None], out: Sequence[int], replaced: bool
) -> str:
    """The reason where a primitive treats the axis in a way of its own; else ""."""
    mapped = [dim for dim in dims if dim is not None]
    if primitive == "dot_general" and len(dims) == 2 and out and not replaced:
        if len(mapped) == 2:
            return "both operands have the axis: dot_general puts shared axes first"
        where = f"axis {out[0]}"
        if dims[0] is None:
            return f"dot_general puts the free axes of its second operand last: {where}"
        return (
            "dot_general puts the free axes of its first operand before those of its "
            f"second: {where}"
        )
    if primitive in CALLS and mapped:
        return "it calls a program, and that program is batched"
    if primitive == "scan" and mapped:
        return (
            "one loop for all examples: the axis is first in the carry, and second in "
            "what goes in or comes out row by row"
        )
    if primitive == "cond" and mapped:
        if dims[0] is None:
            return (
                "the predicate is the same for all examples: one branch runs, on the "
                "whole batch"
            )
        return (
            "each example has its own predicate: all branches run on the whole batch, "
            "and select_n takes for each example the one that it wants"
        )
    if primitive in ("psum", "pmax", "pmin") and mapped and not out:
        return f"the axis of {primitive} is the batch axis itself: it is reduced here"
    if primitive == "axis_index" and replaced:
        return "each example gets its own number: 0, 1, 2, ... along the batch axis"
    if primitive in STARTS and replaced:
        first, wrote, several = STARTS[primitive]
        if any(dim is not None for dim in dims[first:]):
            return f"each example starts at a place of its own: one {wrote} {several}"
        return f"all examples start at one place: its rule writes a {wrote} here, too"
    return ""


def merged(primitive: str) -> str:
    """What an equation does whose operands have the examples in another axis."""
    return (
        f"{primitive} works on the examples merged with another axis; a reshape takes "
        "them apart again"
    )


def while_reason(of_predicate: bool, mapped: bool) -> str:
    """What is done about examples that need different numbers of turns."""
    if not mapped:
        return SAME
    if of_predicate:
        return (
            "each example has its own predicate: all run until the last one is "
            "finished, and those that are finished keep their values"
        )
    return "the predicate is the same for all examples: all make the same turns"


def axes(found: Sequence[int]) -> str:
    """Returns for example "axis 0", or "axes 0 and 1" where they differ."""
    different = sorted({*found})
    if len(different) == 1:
        return f"axis {different[0]}"
    return "axes " + " and ".join(map(str, different))


def places(found: Sequence[int]) -> str:
    """Returns for example "first", or "at axes 0 and 1" where they differ."""
    return place(found[0]) if len({*found}) == 1 else f"at {axes(found)}"


def moved(wants: str, family: str, before: int, after: int, rank: int) -> str:
    """Why the batch axis is moved for `wants` (a primitive, or "out_axes")."""
    where = place(after, rank)
    if family == "broadcasting_batch":
        return f"inserted: {wants} wants the axis of all its operands {where}"
    return f"inserted: {wants} wants the axis {where}, it was {place(before, rank)}"


def broadcast(
    wants: str, operand: str, batched: bool, shape: Sequence[int], new: list[int]
) -> str:
    """Why a value got new axes (`new`, of the result's `shape`) before `wants`."""
    sizes = {shape[axis] for axis in new}
    if batched:
        return f"inserted: sides of 1, so that the operands of {wants} have one rank"
    if sizes <= {1}:
        return (
            f"inserted: {operand} is the same for all: a side of 1, repeated by "
            f"{wants}, never copied"
        )
    count = " x ".join(str(shape[axis]) for axis in new)
    return (
        f"inserted: {operand} is the same for all, and {wants} wants it {count} times"
    )


def other(wants: str, primitive: str, params: dict[str, Any]) -> str:
    """Why some other equation was inserted before `wants`."""
    said = meaning(primitive, params) or primitive
    return f"inserted by the rule of {wants}: {said}"
