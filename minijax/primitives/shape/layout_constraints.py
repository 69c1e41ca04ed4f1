"""A value in a given layout within a program: `with_layout_constraint`.

XLA keeps the value in this order of dimensions in memory. The result of a whole program
is in row-major order all the same.

In JAX: `jax/_src/pjit.py`, `layout_constraint_p`.
"""

from __future__ import annotations

from typing import Any

from minijax.backend import hlo_parts
from minijax.core import errors
from minijax.core.language import Primitive, get_aval, register
from minijax.core.rules import def_linear, not_mapped
from minijax.support import tree_util
from minijax.support.devices.layouts import Layout

layout_constraint_p = register(Primitive("layout_constraint"))
layout_constraint_p.meaning = lambda x, *, layout: x
layout_constraint_p.def_abstract_eval(lambda x, *, layout: x)
def_linear(
    layout_constraint_p,
    lambda ct, x, *, layout: [layout_constraint_p.bind(ct, layout=layout)],
)


@layout_constraint_p.def_batch
def _batch(axis_data: Any, args: Any, dims: Any, *, layout: Layout) -> Any:
    (x,), (dim,) = args, dims
    if dim is not_mapped:
        return layout_constraint_p.bind(x, layout=layout), dim
    # The batch is the slowest axis.
    order = [axis + (axis >= dim) for axis in layout.major_to_minor]
    batched = Layout((dim, *order), layout.tiling)
    return layout_constraint_p.bind(x, layout=batched), dim


def in_layout(x: Any, layout: Layout) -> Any:
    """A value of StableHLO, which XLA shall keep in a layout."""
    fastest_first = layout.major_to_minor[::-1]
    return hlo_parts.custom_call(
        "LayoutConstraint",
        [x.type],
        [x],
        None,
        api_version=1,
        operand_layouts=[fastest_first],
        result_layouts=[fastest_first],
    )


layout_constraint_p.def_lowering(lambda ctx, x, *, layout: in_layout(x, layout))


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x`, which XLA shall keep in a layout in memory within the program.

    A result of the program lies in row-major order all the same, unlike in JAX. Give
    `jit` a `Format` as its `out_shardings`, or use `device_put(x, format)`.

    Args:
      x: a tree of arrays.
      layouts: a `Layout`, or a tree of them that is a prefix of `x`.

    Raises ValueError for anything but layouts, for a layout of another rank, and for
    one with tiles, which XLA chooses itself.
    """
    flat = tree_util.tree_leaves(layouts)
    if not flat or not all(isinstance(layout, Layout) for layout in flat):
        raise errors.value_error(
            "layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
            f"{[type(layout) for layout in flat]}. Write `Layout((1, 0))` for "
            "column-major order."
        )
    leaves, tree = tree_util.tree_flatten(x)
    each = tree_util.tree_leaves(tree_util.tree_broadcast(layouts, x))
    for leaf, layout in zip(leaves, each):
        layout.check(get_aval(leaf).shape, "an argument of with_layout_constraint")
    pairs = zip(leaves, each)
    return tree.unflatten([layout_constraint_p.bind(x, layout=lay) for x, lay in pairs])
