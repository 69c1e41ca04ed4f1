"""Checks of types that must agree: a loop's carry, the results of branches.

The messages show both sides of each leaf that differs.

In JAX: `lax/control_flow/common.py`, `_check_carry_type`, `_check_branch_outputs`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import errors
from minijax.core.language import AbstractValue, typecompat
from minijax.core.signatures import fun_place
from minijax.core.trees import keystr, tree_flatten_with_path, tree_unflatten
from minijax.support.tree_prefix import equality_errors, equality_errors_pytreedef


def check_carry(
    name: str,
    fun: Callable,
    in_tree: Any,
    in_avals: Sequence[AbstractValue],
    out_tree: Any,
    out_avals: Sequence[AbstractValue],
) -> None:
    """TypeError unless a loop's body returns a carry like the one it takes.

    The message shows both sides of each leaf that differs.
    """
    argument = _first_parameter(fun)

    def component(path: Any) -> str:
        at = keystr(path)
        if argument:
            return f"the input carry {'component ' if at else ''}{argument}{at}"
        return "the input carry" + (f" at path {at}" if at else "")

    if in_tree != out_tree:
        differences = [
            f"{component(path)} is a {mine} but the corresponding component of the "
            f"carry output is a {theirs}, so {why}"
            for path, mine, theirs, why in equality_errors(
                tree_unflatten(in_tree, in_avals), tree_unflatten(out_tree, out_avals)
            )
        ]
        if not differences:
            return  # only the metadata of containers differs
        raise errors.type_error(
            f"{name} function carry input and carry output must have the same pytree "
            f"structure, but they differ:\n\n{_listed(differences)}\n"
            "Revise the function so that the carry output has the same pytree "
            "structure as the carry input.",
            rule="a loop's carry keeps its tree",
        )
    unlike = _unlike(tree_unflatten(in_tree, in_avals), out_avals)
    if unlike:
        differences = [
            f"{component(path)} has type {mine.str_short()} but the corresponding "
            f"output carry component has type {theirs.str_short()}"
            f"{_how_types_differ(mine, theirs)}"
            for path, mine, theirs in unlike
        ]
        raise errors.type_error(
            f"{name} function carry input and carry output must have equal types, but "
            f"they differ:\n\n{_listed(differences)}\n"
            "Revise the function so that all output types match the corresponding "
            "input types.",
            rule="a loop's carry keeps its types",
            instead=_carry_to_write([(mine, theirs) for _, mine, theirs in unlike]),
        )


def _carry_to_write(unlike: Sequence[tuple[AbstractValue, AbstractValue]]) -> str:
    """Advice for a carry that changes its type, from the types before and after."""
    if any(before.shape != after.shape for before, after in unlike):
        return (
            "begin with an array of the shape that the step returns; to collect one "
            "row for each step, return it as the second result of scan's body"
        )
    dtype = getattr(unlike[0][1], "dtype", "float32")
    return (
        f"begin with the dtype that the step returns, as in `jnp.{dtype}(0)`, or "
        "convert what it returns with `.astype(carry.dtype)`"
    )


def of_all(*avals: AbstractValue) -> AbstractValue:
    """One type for values that agree: that of the first that lies on a mesh."""
    return next((aval for aval in avals if getattr(aval, "cut", None)), avals[0])


def _first_parameter(fun: Callable) -> str:
    try:
        return next(iter(inspect.signature(fun).parameters), "")
    except (ValueError, TypeError):
        return ""


def _listed(differences: Sequence[str]) -> str:
    if len(differences) == 1:
        text = differences[0]
        return (f"T{text[1:]}" if text.startswith("the ") else text) + ".\n"
    lines = "".join(f"  * {text};\n" for text in differences[:-1])
    return f"{lines}  * {differences[-1]}.\n"


def _unlike(mine: Any, theirs: Sequence[AbstractValue]) -> list[tuple]:
    """(path, own type, other type) of the leaves of a tree whose types differ."""
    pairs, _ = tree_flatten_with_path(mine)
    return [
        (path, own, other)
        for (path, own), other in zip(pairs, theirs, strict=True)
        if not typecompat(own, other)
    ]


def _how_types_differ(mine: Any, theirs: Any) -> str:
    """The difference between two types whose texts are hard to compare."""
    if not all(hasattr(aval, "dtype") for aval in (mine, theirs)):
        return ""
    shapes, dtypes = mine.shape != theirs.shape, mine.dtype != theirs.dtype
    if shapes and dtypes:
        return ", so both the shapes and the dtypes do not match"
    if shapes:
        return ", so the shapes do not match"
    return ", so the dtypes do not match" if dtypes else ""


def check_branches(
    name: str, names: tuple[str, str], functions: tuple[Callable, Callable], bodies: Any
) -> None:
    """TypeError unless two branches give trees and types that are equal."""
    first, second = bodies
    who = "".join(f"{n} is {fun_place(f)}\n" for n, f in zip(names, functions))
    if first.out_tree != second.out_tree:
        differences = [
            f"{names[0]} output{_at(path)} is a {mine} but {names[1]} "
            f"output{_at(path)} is a {theirs}, so {why}"
            for path, mine, theirs, why in equality_errors_pytreedef(
                first.out_tree, second.out_tree
            )
        ]
        if not differences:
            return
        raise errors.type_error(
            f"{name} branch outputs must have the same pytree structure, but they "
            f"differ:\n\n{who}\n{_listed(differences)}\nRevise {names[0]} and/or "
            f"{names[1]} so that they have the same pytree structure.",
            rule="branches return one tree",
        )
    unlike = _unlike(tree_unflatten(first.out_tree, first.out_avals), second.out_avals)
    if unlike:
        differences = [
            f"the output of {names[0]}{_at(path)} has type {mine.str_short()} but the "
            f"corresponding output of {names[1]} has type {theirs.str_short()}"
            f"{_how_types_differ(mine, theirs)}"
            for path, mine, theirs in unlike
        ]
        raise errors.type_error(
            f"{name} branches must have equal output types but they differ.\n\n{who}\n"
            f"{_listed(differences)}\nRevise {names[0]} and/or {names[1]} so that all "
            "output types match.",
            rule="branches return equal types",
        )


def _at(path: Any) -> str:
    return f" at path {keystr(path)}" if path else ""
