"""Calls as flat lists, for transformations that were written for JAX.

minijax's own transformations use `core/signatures.py`; the functions here have the
names and signatures of `jax.api_util`.

In JAX: `jax/_src/api_util.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import errors, trees
from minijax.core.language import DebugInfo
from minijax.core.signatures import CallSignature, JitOptions, argnums_tuple, fun_place
from minijax.transforms.wrapped_functions import (
    Store,
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    sourceinfo: str | None = None,
) -> DebugInfo:
    """The names of `fun` and of these arguments, for messages.

    Args:
      traced_for: the transformation, such as "jit".
      fun, args, kwargs: the call; of the arguments only the trees matter.
      static_argnums, static_argnames: which of them are not traced.
      sourceinfo: "file:line" of the function; by default where it was defined.
    """
    nums = argnums_tuple(static_argnums, "static_argnums")
    signature = CallSignature(fun, JitOptions(nums, tuple(static_argnames)))
    names = signature.leaf_names(signature.bind(tuple(args), kwargs))
    place = fun_place(fun) if sourceinfo is None else sourceinfo
    return DebugInfo(traced_for, signature.name, place, names)


@transformation_with_aux2
def flatten_fun(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """A function of trees as one of flat lists; the store gets the result's tree.

    Called as `flatten_fun(wrapped, in_tree)` with the tree of `(args, kwargs)`; returns
    the flat function, and a function that gives the tree after the call.
    """
    args, kwargs = trees.tree_unflatten(in_tree, leaves)
    outputs, tree = trees.tree_flatten(f(*args, **kwargs))
    store.store(tree)
    return outputs


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable, store: Store, in_tree: Any, *leaves: Any
) -> list[Any]:
    """`flatten_fun` for positional arguments only."""
    outputs, tree = trees.tree_flatten(f(*trees.tree_unflatten(in_tree, leaves)))
    store.store(tree)
    return outputs


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple]:
    """(`f` as a function of the arguments at `dyn_argnums`, those arguments).

    ValueError for a fixed argument that cannot be hashed, unless that is allowed.
    """
    count = len(args)
    nums = argnums_tuple(dyn_argnums, "dyn_argnums")
    dynamic = tuple(sorted(num % count for num in nums))
    fixed = []
    for position, value in enumerate(args):
        if position in dynamic:
            continue
        if require_static_args_hashable:
            try:
                hash(value)
            except TypeError:
                raise errors.value_error(
                    f"Non-hashable static arguments are used: argument {position} is "
                    f"{value!r} of type {type(value).__name__}. Pass a tuple instead "
                    "of a list, or add its position to dyn_argnums.",
                    rule="static arguments are hashable",
                ) from None
        else:
            value = _Unhashed(value)
        fixed.append((position, value))
    values = tuple(args[position] for position in dynamic)
    return _with_fixed(f, dynamic, tuple(fixed)), values


class _Unhashed:
    """Any value, hashed and compared by identity."""

    def __init__(self, value: Any):
        self.value = value


@transformation2
def _with_fixed(
    f: Callable, dynamic: tuple, fixed: tuple, *values: Any, **kwargs: Any
) -> Any:
    by_position = dict(zip(dynamic, values, strict=True))
    for position, value in fixed:
        by_position[position] = value.value if type(value) is _Unhashed else value
    args = [by_position[position] for position in range(len(by_position))]
    return f(*args, **kwargs)


def donation_vector(
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str],
    in_tree: Any,
    kws: bool = True,
) -> tuple[bool, ...]:
    """For each leaf of a tree of `(args, kwargs)`, whether its argument is donated.

    Without `kws` the tree is that of the positional arguments alone.
    """
    tree = trees.tree_unflatten(in_tree, range(in_tree.num_leaves))
    args, kwargs = tree if kws else (tree, {})
    flags: list[bool] = []
    for position, arg in enumerate(args):
        flags += [position in donate_argnums] * len(trees.tree_leaves(arg))
    for name in sorted(kwargs):
        flags += [name in donate_argnames] * len(trees.tree_leaves(kwargs[name]))
    return tuple(flags)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """The positions of donated arguments among those that are not static.

    ValueError for an argument that is both.
    """
    shared = sorted({*donate_argnums} & {*static_argnums})
    if shared:
        raise errors.value_error(
            f"static_argnums={tuple(static_argnums)} and "
            f"donate_argnums={tuple(donate_argnums)} share {shared}: a static argument "
            "is not an array and cannot be donated."
        )
    return tuple(
        sorted(num - sum(s < num for s in static_argnums) for num in donate_argnums)
    )


def flatten_axes(
    name: str,
    treedef: Any,
    axis_tree: Any,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list[Any]:
    """One entry of `axis_tree`, a prefix of the tree, for each leaf of the tree.

    With `kws` the tree is one of `(args, kwargs)`, and `axis_tree` is for `args`; those
    of `kwargs` are 0. ValueError, with `name`, if it is not a prefix; `tupled_args`
    adds that axes for several arguments stand in a tuple.
    """
    try:
        return trees.broadcast_prefix_to_treedef(
            (axis_tree, 0) if kws else axis_tree, treedef
        )
    except ValueError:
        hint = " Write a tuple with one entry for each argument." if tupled_args else ""
        raise errors.value_error(
            f"{name} specification must be a tree prefix of the corresponding value, "
            f"got specification {axis_tree} for value tree {treedef}.{hint}"
        ) from None
