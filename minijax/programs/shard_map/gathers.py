"""`all_gather(x, "i", to="invarying")`: gathered, and known to be equal everywhere.

After `all_gather` each device has the same array, but its type still varies over the
axis. With `to="invarying"` it does not, so `out_specs` may promise copies. The
transpose is then no exchange: each device takes its own part of the cotangent.

In JAX: `lax/parallel.py`, `all_gather_invariant_p`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import arithmetic
from minijax.core.language import get_aval
from minijax.core.rules import def_linear
from minijax.primitives.index.dynamic_slicing import dynamic_slice_in_dim
from minijax.primitives.parallel import collectives, manual_lowering
from minijax.primitives.shape.squeezing import canonicalize_axis, squeeze
from minijax.support.tree_util import tree_map

all_gather_invariant_p = collectives.exchange(
    "all_gather_invariant",
    collectives.all_gather_type,
    collectives.all_gather_batch,
    manual_lowering.all_gather,
    adds_axes=1,
)


def _transpose(
    ct: Any,
    x: Any,
    *,
    all_gather_dimension: int,
    axis_name: tuple,
    axis_size: int,
    tiled: bool,
) -> list:
    """A device's own part of the cotangent."""
    size = get_aval(ct).shape[all_gather_dimension] // axis_size
    start = arithmetic.mul(collectives.axis_index(axis_name), np.int32(size))
    part = dynamic_slice_in_dim(ct, start, size, all_gather_dimension)
    return [part if tiled else squeeze(part, (all_gather_dimension,))]


def_linear(all_gather_invariant_p, _transpose)


def _gather_invariant(
    x: Any, axis_name: tuple, axis_index_groups: Any, axis: int, tiled: bool
) -> Any:
    _no_groups(axis_index_groups, "invarying")
    size = collectives.axis_size(axis_name)

    def leaf(value: Any) -> Any:
        rank = get_aval(value).ndim + (not tiled)
        return all_gather_invariant_p.bind(
            value,
            all_gather_dimension=canonicalize_axis(axis, rank),
            axis_name=axis_name,
            axis_size=size,
            tiled=tiled,
        )

    return tree_map(leaf, x)


def _gather_reduced(
    x: Any, axis_name: tuple, axis_index_groups: Any, axis: int, tiled: bool
) -> Any:
    raise NotImplementedError(
        'all_gather got to="reduced": types that are reduced over a mesh axis are not '
        'supported. Write to="invarying" for an array that is equal on all devices, '
        'or to="varying", the default.'
    )


def _no_groups(axis_index_groups: Any, to: str) -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(
            f"all_gather got to={to!r} and axis_index_groups: the result differs "
            "between the groups, so it varies over the axis. Leave `to` out."
        )


# How `all_gather` gathers for its argument `to`; `assembly.py` enters them.
GATHERS_TO = {"invarying": _gather_invariant, "reduced": _gather_reduced}
