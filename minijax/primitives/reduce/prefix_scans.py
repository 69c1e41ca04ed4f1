"""Scans of an associative operation, as a tree: `associative_scan`.

In JAX: `lax/control_flow/loops.py`, `associative_scan`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core.language import get_aval
from minijax.core.rules import scalar_like
from minijax.core.signatures import check_functions
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.elementwise import comparing
from minijax.primitives.shape import joining, padding, rearranging, slicing
from minijax.primitives.shape.squeezing import canonicalize_axis


def associative_scan(
    fn: Callable, elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes of a sequence, combined with an associative `fn`, in log2(n) steps.

    `elems` is a tree of arrays of equal size n along `axis`; entry k of the result is
    `fn(...fn(fn(e0, e1), e2)..., ek)`. `fn(a, b)` gets trees of stacked entries and
    combines them entry by entry. With `reverse` the sequence is taken from its end.

    The entries at odd positions are the scan of the pairs (e0 e1), (e2 e3), ...; each
    one at an even position is its odd predecessor combined with one more element
    (Blelloch, "Prefix sums and their applications", 1990).

    Raises:
      TypeError: when `fn` is not callable.
      ValueError: when the sizes along `axis` differ, or there is no such axis.
    """
    check_functions("lax.associative_scan", fn=fn)
    leaves, tree = tree_flatten(elems)
    if not leaves:
        raise ValueError(f"lax.associative_scan: elems has no arrays, got {elems!r}.")
    if reverse:
        leaves = [rearranging.rev(leaf, [axis]) for leaf in leaves]
    axis = canonicalize_axis(axis, get_aval(leaves[0]).ndim)
    if len({get_aval(leaf).shape[axis] for leaf in leaves}) > 1:
        shapes = [get_aval(leaf).shape for leaf in leaves]
        raise ValueError(
            "Array inputs to associative_scan must have the same size along the axis "
            f"that is scanned, {axis}; got shapes {shapes}."
        )

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        out = fn(tree_unflatten(tree, left), tree_unflatten(tree, right))
        return tree_flatten(out)[0]

    scanned = _scan(combine, leaves, axis)
    if reverse:
        scanned = [rearranging.rev(leaf, [axis]) for leaf in scanned]
    return tree_unflatten(tree, scanned)


def _scan(combine: Callable, leaves: list[Any], axis: int) -> list[Any]:
    count = get_aval(leaves[0]).shape[axis]
    if count < 2:
        return leaves

    def part(arrays: list[Any], start: int, stop: int | None, stride: int) -> list[Any]:
        return [slicing.slice_in_dim(x, start, stop, stride, axis) for x in arrays]

    odd = _scan(
        combine, combine(part(leaves, 0, -1, 2), part(leaves, 1, None, 2)), axis
    )
    before = part(odd, 0, -1, 1) if count % 2 == 0 else odd
    even = combine(before, part(leaves, 2, None, 2))
    even = [
        joining.concatenate([slicing.slice_in_dim(leaf, 0, 1, axis=axis), rest], axis)
        for leaf, rest in zip(leaves, even)
    ]
    return [_interleave(a, b, axis) for a, b in zip(even, odd)]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Arrays of which one has the entries at even positions, the other at odd."""
    aval = get_aval(even)
    equal = aval.shape[axis] == get_aval(odd).shape[axis]
    even_edges = [(0, 0, 0)] * aval.ndim
    odd_edges = [(0, 0, 0)] * aval.ndim
    even_edges[axis] = (0, int(equal), 1)
    odd_edges[axis] = (1, int(not equal), 1)
    nothing = scalar_like(aval.strip_weak_type(), 0)
    both = comparing.bitwise_or if aval.dtype == np.bool_ else elementwise.add
    return both(
        padding.pad(even, nothing, even_edges), padding.pad(odd, nothing, odd_edges)
    )
