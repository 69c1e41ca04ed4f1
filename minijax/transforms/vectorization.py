"""vmap with all its options, and messages about axes that do not fit the arguments.

In JAX: `jax/_src/api.py`, `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from minijax.core import api, errors, sums, trees
from minijax.core.signatures import check_callable, wraps
from minijax.support.tree_prefix import prefix_errors


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable:
    """A function that applies `fun` to each example of a batch.

    Args:
      fun: a function of one example.
      in_axes: for each positional argument (or for all) the axis over which it is
        batched, or None if all examples share it; a tree prefix of the argument.
        Negative axes count from the end.
      out_axes: where the batch axis of the results goes; a tree prefix of the result.
      axis_name: a name for the axis, for collectives such as `lax.psum` inside `fun`.
      axis_size: the size of the batch; required if no argument is batched.
      spmd_axis_name: the mesh axis, or a tuple of them, over which sharding constraints
        inside `fun` cut the batch.
      sum_match: sum over the examples where `out_axes` is None and they differ.

    Keyword arguments are batched over their first axis.

    Raises:
      ValueError: batched axes differ in size (the message names the arguments), an axis
        is out of range, or a tree is not a prefix.
      TypeError: an entry of `in_axes` or `out_axes` is not an axis.
    """
    check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or _is_axis(in_axes) or isinstance(in_axes, tuple)):
        raise errors.type_error(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to "
            f"the positional arguments passed to the function, but got {in_axes}."
        )
    for axes, name in ((in_axes, "in_axes"), (out_axes, "out_axes")):
        for leaf in trees.tree_leaves(axes):
            if not _is_axis(leaf):
                raise errors.type_error(
                    f"vmap {name} must be an int, None, or (nested) container with "
                    f"those types as leaves, but got {axes}."
                )

    try:
        hash(spmd_axis_name)
    except TypeError as error:
        raise errors.type_error(
            f"vmap got spmd_axis_name={spmd_axis_name!r}; it is the name of a mesh "
            f"axis, or a tuple of names: {error}."
        ) from None

    move = _add_up if sum_match else api.move_output

    @errors.api_boundary
    @wraps(fun)
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = trees.tree_flatten((args, kwargs))
        axes = _flat_axes("vmap in_axes", (in_axes, 0), in_tree)
        batch, outputs, dims, out_tree = api.batched(
            fun, leaves, in_tree, axes, axis_name, axis_size, spmd_axis_name
        )
        wanted = _flat_axes("vmap out_axes", out_axes, out_tree)
        moved = map(move, repeat(batch), outputs, dims, wanted)
        return trees.tree_unflatten(out_tree, moved)

    return vmap_f


def _is_axis(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _flat_axes(name: str, axes: Any, tree: Any) -> list:
    """The axis, or None, of each leaf of a tree; `axes` is a prefix of the tree.

    ValueError, saying where, if it is not.
    """
    try:
        return trees.broadcast_prefix_to_treedef(axes, tree)
    except ValueError:
        pass
    value = trees.tree_unflatten(tree, [object()] * tree.num_leaves)
    if name == "vmap in_axes":  # those of keyword arguments are no user's
        axes, value = axes[0], value[0]
        if isinstance(axes, tuple) and len(axes) != len(value):
            raise errors.value_error(
                "vmap in_axes must be an int, None, or a tuple of entries "
                "corresponding to the positional arguments passed to the function, but "
                f"got len(in_axes)={len(axes)}, len(args)={len(value)}"
            )
    for error in prefix_errors(axes, value):
        raise error(name)
    raise errors.value_error(
        f"{name} specification must be a tree prefix of the corresponding value, got "
        f"{axes} for {tree}"
    )


def _add_up(batch: Any, output: Any, dim: int | None, target: int | None) -> Any:
    """The sum over the batch where `out_axes` is None and the examples differ."""
    if target is None and dim is not None:
        return sums.reduce_sum(output, (dim,))
    return api.move_output(batch, output, dim, target)
