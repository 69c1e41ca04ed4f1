"""Constructors of primitives that the closed core does without.

`core/rules.py` has those for the common families.

In JAX: `lax/lax.py`, and `interpreters/batching.py`, `expand_dims_batcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import errors
from minijax.core.language import Primitive, register
from minijax.core.rules import batch_at_front, moveaxis


def several_results(
    name: str, type_rule: Callable, meaning: Callable | None = None
) -> Primitive:
    """A primitive with a list of results; `type_rule` gives a list of types."""
    primitive = register(Primitive(name, multiple_results=True))
    primitive.meaning = meaning
    primitive.def_abstract_eval(type_rule)
    return primitive


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """A function of minijax operations as a lowering rule.

    `fun(*arrays, **params)` returns a list of arrays, or one array if
    `multiple_results` is False.
    """

    def rule(ctx: Any, *operands: Any, **params: Any) -> list[Any]:
        return ctx.lower_fun(fun, *operands, **params)

    return rule


def refusal(message: str) -> Callable:
    """A rule that raises ValueError; "{name}" in `message` is that parameter."""

    def rule(*_: Any, **params: Any) -> Any:
        raise errors.value_error(message.format(**params))

    return rule


def without_operands(primitive: Primitive) -> None:
    """Declare that a primitive has no operands: no tangent or batch axis reaches it."""
    primitive.without("jvp transpose batch", "it has no operands")


def all_at_front(axis_data: Any, args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The operands with their batch axes first; those without one are repeated."""
    return [batch_at_front(x, dim, axis_data) for x, dim in zip(args, dims)]


def mapped_at_front(args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The operands with their batch axes first; those without one as they are."""
    return [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]


def front_batch(primitive: Primitive) -> Callable:
    """Batch rule that puts every operand's axis first, repeating unmapped operands.

    In JAX: `batching.py`, `expand_dims_batcher`.
    """

    def batch(axis_data, args, dims, **params) -> Any:
        out = primitive.bind(*all_at_front(axis_data, args, dims), **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    return batch
