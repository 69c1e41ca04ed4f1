"""vmap as users call it: axes of trees, sizes that must agree, messages.

In JAX: `jax/_src/api.py`, `vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.compile import api_util
from minijax.compile.api_util import CallSignature, NoOptions, check_callable
from minijax.language.core import get_aval
from minijax.language.rules import AxisData, match_axis, no_axis_name
from minijax.primitives.reduce import sums
from minijax.support import errors
from minijax.support.errors import api_boundary
from minijax.support.tree_prefix import prefix_errors
from minijax.support.trees import (
    broadcast_prefix_to_treedef,
    tree_flatten,
    tree_leaves,
    tree_unflatten,
)
from minijax.transforms import batching


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable:
    """`fun` for one example becomes a function for a batch of them.

    Args:
      fun: the function of one example.
      in_axes: for each positional argument (or for all) the axis over which it is
        batched, None where it is shared; may be a tree prefix of the argument. Negative
        axes count from the end.
      out_axes: where the batch axis of the results goes; a tree prefix of the result.
      axis_name: a name for the axis, for collectives such as `lax.psum` inside `fun`.
      axis_size: the size of the batch, needed when nothing is batched.
      spmd_axis_name: the mesh axis over which the batch lies; what has no sharding does
        not ask for it.
      sum_match: add the examples up where `out_axes` is None and they differ.

    Keyword arguments are batched over their first axis.

    Raises:
      ValueError: sizes that disagree (naming the arguments), axes out of range, trees
        that do not fit.
      TypeError: `in_axes` or `out_axes` that are no axes.
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
        for leaf in tree_leaves(axes):
            if not _is_axis(leaf):
                raise errors.type_error(
                    f"vmap {name} must be an int, None, or (nested) container with "
                    f"those types as leaves, but got {axes}."
                )

    @api_boundary
    @functools.wraps(fun)
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise errors.value_error(
                "vmap in_axes must be an int, None, or a tuple of entries "
                "corresponding to the positional arguments passed to the function, but "
                f"got len(in_axes)={len(in_axes)}, len(args)={len(args)}"
            )
        leaves, in_tree = tree_flatten((args, kwargs))
        for leaf in leaves:
            api_util.check_arg(leaf, "vmap")
        dims = _flat_axes("vmap in_axes", in_tree, in_axes, args, kwargs)
        dims = _normalized(leaves, dims)
        size = _batch_size(fun, args, kwargs, leaves, dims, axis_size)
        axis_data = AxisData(no_axis_name if axis_name is None else axis_name, size)
        out_tree: Any = None

        def flat(*flat_args: Any) -> list[Any]:
            nonlocal out_tree
            inner_args, inner_kwargs = tree_unflatten(in_tree, flat_args)
            answer = fun(*inner_args, **inner_kwargs)
            outputs, out_tree = tree_flatten(answer)
            api_util.check_outputs(outputs, out_tree, api_util.fun_name(fun), "vmap")
            return outputs

        outputs, out_dims = batching.batch(flat, axis_data, leaves, dims)
        wanted = _flat_out_axes(out_tree, out_axes)
        moved = [
            _move_output(size, output, dim, target, sum_match)
            for output, dim, target in zip(outputs, out_dims, wanted)
        ]
        return tree_unflatten(out_tree, moved)

    return vmap_f


def _is_axis(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _flat_axes(name: str, tree: Any, in_axes: Any, args: tuple, kwargs: dict) -> list:
    try:
        return broadcast_prefix_to_treedef((in_axes, 0), tree)
    except ValueError:
        pass
    for error in prefix_errors(in_axes, args):
        raise error(name) from None
    raise errors.value_error(
        f"{name} specification must be a tree prefix of the corresponding value, got "
        f"{in_axes} for {tree}"
    )


def _flat_out_axes(out_tree: Any, out_axes: Any) -> list:
    try:
        return broadcast_prefix_to_treedef(out_axes, out_tree)
    except ValueError:
        pass
    placeholder = tree_unflatten(out_tree, [object()] * out_tree.num_leaves)
    for error in prefix_errors(out_axes, placeholder):
        raise error("vmap out_axes") from None
    raise errors.value_error(
        "vmap out_axes specification must be a tree prefix of the corresponding value, "
        f"got {out_axes} for {out_tree}"
    )


def _normalized(leaves: Sequence[Any], dims: Sequence[Any]) -> list[int | None]:
    """Axes counted from the front; ValueError for one that the leaf does not have."""
    answer: list[int | None] = []
    for leaf, dim in zip(leaves, dims):
        if dim is None:
            answer.append(None)
            continue
        aval = get_aval(leaf)
        if not -aval.ndim <= dim < aval.ndim:
            needed = dim + 1 if dim >= 0 else -dim
            raise errors.value_error(
                f"vmap was requested to map its argument along axis {dim}, which "
                f"implies that its rank should be at least {needed}, but is only "
                f"{aval.ndim} (its shape is {aval.shape})"
            )
        answer.append(int(dim) % aval.ndim)
    return answer


def _batch_size(
    fun: Callable,
    args: tuple,
    kwargs: dict,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    axis_size: int | None,
) -> int:
    """The size of the batch; ValueError, naming the arguments, when sizes differ."""
    sizes = [
        get_aval(leaf).shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None
    ]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise errors.value_error(
            "vmap must have at least one non-None value in in_axes or axis_size must "
            "be specified"
        )
    if all(size == sizes[0] for size in sizes):
        return int(sizes[0])
    signature = CallSignature(fun, NoOptions)
    names = signature.leaf_names(signature.bind(args, kwargs))
    lines = []
    if axis_size is not None:
        lines.append(f"  * the `axis_size` argument was {axis_size};")
    groups: dict[int, list[str]] = {}
    for name, leaf, dim in zip(names, leaves, dims):
        if dim is not None:
            aval = get_aval(leaf)
            text = f"axis {dim} of argument {name} of type {aval.str_short()}"
            groups.setdefault(aval.shape[dim], []).append(text)
    for size, texts in sorted(groups.items(), key=lambda item: -len(item[1])):
        if len(texts) == 1:
            lines.append(f"  * one axis had size {size}: {texts[0]};")
        else:
            lines.append(
                f"  * {len(texts)} axes had size {size}, e.g. {texts[0]} and "
                f"{texts[1]};"
            )
    raise errors.value_error(
        "vmap got inconsistent sizes for array axes to be mapped:\n"
        + "\n".join(lines)[:-1]
        + ".\nBatched axes must have one size; share an argument with None in in_axes.",
        rule="batched axes have one size",
    )


def _move_output(
    size: int, output: Any, dim: int | None, target: Any, sum_match: bool
) -> Any:
    if target is None:
        if dim is not None and sum_match:
            return sums.reduce_sum(output, (dim,))
        if dim is not None:
            raise errors.value_error(
                f"at vmap out_axes, got axis spec None but output was batched on axis "
                f"{dim}. The results differ from example to example: give them an axis."
            )
        return output
    rank = get_aval(output).ndim + (dim is None)
    if not -rank <= target < rank:
        raise errors.value_error(
            f"vmap out_axes asks for axis {target}, but the batched output has only "
            f"{rank} dimensions"
        )
    return match_axis(size, output, dim, int(target) % rank)
