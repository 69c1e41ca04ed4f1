"""Registering batch rules as in JAX: `batching.primitive_batchers[p] = rule`, ...

`interpreters/batching.py` hands these names on. What a table is, `rule_tables.py` says.

In JAX: `interpreters/batching.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core import rules
from minijax.core.language import Primitive, get_aval
from minijax.interpreters.rule_tables import RuleTable, attribute_table

__all__ = [
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "primitive_batchers",
]


def _write_plain_batcher(primitive: Primitive, rule: Callable | None) -> None:
    """`(args, dims, **params)`: the rule is called when an argument is mapped."""
    if rule is None:
        primitive.batch = None
        return

    def batch(axis_data, args, dims, **params) -> tuple:
        if all(dim is rules.not_mapped for dim in dims):
            out = primitive.bind(*args, **params)
            return out, [None] * len(out) if primitive.multiple_results else None
        return rule(args, dims, **params)

    primitive.batch = batch


def _read_plain_batcher(primitive: Primitive) -> Callable | None:
    rule = primitive.batch
    if rule is None:
        return None

    def batch(args, dims, **params) -> tuple:
        sizes = {
            get_aval(arg).shape[dim]
            for arg, dim in zip(args, dims)
            if dim is not rules.not_mapped
        }
        (size,) = sizes
        return rule(rules.AxisData(rules.no_axis_name, size), args, dims, **params)

    return batch


def _write_axis_batcher(primitive: Primitive, rule: Callable | None) -> None:
    """`(axis_size, axis_name, trace type, args, dims, **params)`."""
    if rule is None:
        primitive.batch = None
        return

    def batch(axis_data, args, dims, **params) -> tuple:
        return rule(axis_data.size, axis_data.name, None, args, dims, **params)

    primitive.batch = batch


fancy_primitive_batchers = attribute_table("fancy_primitive_batchers", "batch")
primitive_batchers = RuleTable(
    "primitive_batchers", _read_plain_batcher, _write_plain_batcher
)
axis_primitive_batchers = RuleTable(
    "axis_primitive_batchers", lambda primitive: primitive.batch, _write_axis_batcher
)


def defvectorized(prim: Primitive) -> None:
    """The primitive works element by element on arguments with their axis in one place.

    ValueError, when batched, if two arguments have it in different places.
    """

    def batch(axis_data, args, dims, **params) -> tuple:
        if any(dim != dims[0] for dim in dims):
            raise ValueError(
                f"the batch rule of {prim}, made by defvectorized, takes "
                f"arguments with their axis in one place, but it is at {list(dims)}; "
                "for a primitive that broadcasts use defbroadcasting."
            )
        return prim.bind(*args, **params), dims[0]

    prim.batch = batch


def defbroadcasting(prim: Primitive) -> None:
    """The primitive works element by element and repeats dimensions of size 1."""
    prim.batch = rules.broadcasting_batch(prim)


def defreducer(prim: Primitive) -> None:
    """The primitive reduces its one argument over the axes in its parameter `axes`."""
    prim.batch = rules.reduction_batch(prim)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated `sz` times along a new axis at position `axis`."""
    return rules.broadcast_axis(x, rules.AxisData(rules.no_axis_name, sz), axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its batch axis first; one without a batch axis is repeated."""
    return rules.batch_at_front(x, bdim, rules.AxisData(rules.no_axis_name, size))
