"""Moving arrays to devices and to the host, and waiting for them.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import guards
from minijax.compile import placing
from minijax.core import dtypes, trees
from minijax.core.array import Array
from minijax.core.language import eval_trace, get_aval
from minijax.core.state import state
from minijax.primitives.parallel.device_moves import ArrayCopySemantics, put_arrays
from minijax.support.tree_util import tree_map


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """The arrays of a tree, on a device: the default one, uncommitted, if none is
    given.

    Args:
      x: a tree of arrays, NumPy arrays and numbers.
      device: a `Device`, a sharding or a `Format`, to which the arrays are then
        committed; or a `memory.Space` of the device they are on; or a tree of these
        that is a prefix of `x`.
      src: where the arrays come from, for the way back of their gradients.
      donate: whether the arrays may be given away.
      may_alias: False if the result must not share memory with `x`.

    Raises ValueError for another `device`, or for `donate` with `may_alias`, and
    TypeError for leaves that are no arrays.
    """
    if donate and may_alias:
        raise ValueError("device_put takes donate=True or may_alias=True, not both.")
    leaves, tree = trees.tree_flatten(x)
    for leaf in leaves:
        get_aval(leaf)  # TypeError if it is not an array
    devices = trees.broadcast_prefix_to_treedef(device, tree)
    if state.trace is eval_trace:
        with guards.explicit("device_put"):
            placed = [placing.device_put(*pair) for pair in zip(leaves, devices)]
        return trees.tree_unflatten(tree, placed)
    for each in devices:
        placing.check_place(each)
    semantics = ArrayCopySemantics.REUSE_INPUT
    if donate:
        semantics = ArrayCopySemantics.DONATE_INPUT
    elif may_alias is False:
        semantics = ArrayCopySemantics.ALWAYS_COPY
    srcs = trees.broadcast_prefix_to_treedef(src, tree)
    return trees.tree_unflatten(tree, put_arrays(leaves, devices, srcs, semantics))


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays on the host; keys stay keys."""

    def on_host(leaf: Any) -> Any:
        if not isinstance(leaf, Array):
            return leaf
        if dtypes.is_extended(leaf.dtype):
            return leaf.block_until_ready()
        return np.asarray(leaf)

    with guards.explicit("device_get"):
        return tree_map(on_host, x)


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a tree have their values; returns the tree.

    Any leaf with a method `block_until_ready` is waited for.
    """
    return _each_calls("block_until_ready", x)


def copy_to_host_async(x: Any) -> Any:
    """Begin copying all arrays of a tree to the host; returns the tree."""
    return _each_calls("copy_to_host_async", x)


def _each_calls(name: str, x: Any) -> Any:
    """The tree, after a call of the method of each leaf that has it."""
    for leaf in trees.tree_leaves(x):
        method = getattr(leaf, name, None)
        if method is not None:
            method()
    return x
