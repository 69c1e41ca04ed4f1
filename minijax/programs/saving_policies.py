"""Policies of checkpoint: which values of the forward pass may be saved.

A policy is called for every equation, `policy(primitive, *avals, **params)`. It returns
True (its results may be saved) or False (they are computed again). `checkpoint_name`
gives a value a name, as an equation of its own, so that policies can choose by name.

In JAX: `jax/_src/ad_checkpoint.py`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.core import dot, errors
from minijax.core.language import Primitive, register
from minijax.primitives.linear import convolution
from minijax.support.tree_util import tree_map
from minijax.transforms.rematerialize import Offloadable, Recompute, Saveable

# ----------------------------------------------------------------------------------
# Names
# ----------------------------------------------------------------------------------

name_p = register(Primitive("name"))
name_p.meaning = lambda x, name: x
name_p.def_impl(lambda x, *, name: x)
name_p.def_abstract_eval(lambda x, *, name: x)
name_p.def_batch(
    lambda axis_data, args, dims, *, name: (name_p.bind(args[0], name=name), dims[0])
)
name_p.def_lowering(lambda ctx, x, *, name: x)
name_p.without("transpose", "a tangent has no name, so no linear program contains it")


@name_p.def_jvp_rule
def _name_jvp(primals, tangents, *, name: str) -> tuple:
    return name_p.bind(primals[0], name=name), tangents[0]


def checkpoint_name(x: Any, name: str) -> Any:
    """The values of a tree, with a name for policies such as `save_only_these_names`.

    Returns the tree unchanged. In JAX: `jax.ad_checkpoint.checkpoint_name`.
    """
    return tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


# ----------------------------------------------------------------------------------
# Policies
# ----------------------------------------------------------------------------------


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save all values that are needed, as without checkpoint."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Recompute everything, as checkpoint does without a policy."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Save products of matrices (and convolutions), which are expensive to compute."""

    only_if_no_batch_dims: bool

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> bool:
        if not self.only_if_no_batch_dims:
            return prim in (dot.dot_general_p, convolution.conv_general_dilated_p)
        if prim is not dot.dot_general_p:
            return False
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not lhs_batch and not rhs_batch


dots_saveable = DotsSaveable(False)
dots_with_no_batch_dims_saveable = DotsSaveable(True)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable:
    """Move products without batch axes to another memory; compute the rest again."""

    def policy(prim: Primitive, *_: Any, **params: Any) -> Any:
        if dots_with_no_batch_dims_saveable(prim, **params):
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Save the values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Save the values that `checkpoint_name` gave a name other than these."""

    names: frozenset[str]

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] not in self.names


def save_anything_except_these_names(*names_not_to_save: str) -> Callable:
    """Save everything: in JAX, too, the names change nothing, since what is named is
    the result of another equation, which may be saved."""
    return lambda *_, **__: True


def save_any_names_but_these(*names_not_to_save: str) -> SaveAnyNamesButThese:
    """Save named values only, but not those with the names given."""
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def save_only_these_names(*names_which_can_be_saved: str) -> SaveOnlyTheseNames:
    """Save named values only, and only those with the names given."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Callable:
    """Save values of some names, move those of others to another memory.

    Raises ValueError for a name in both lists.
    """
    saved, moved = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if saved & moved:
        raise errors.value_error(
            "The names should be exclusive and should not intersect in "
            "`names_which_can_be_saved` and `names_which_can_be_offloaded`. Got "
            f"names_which_can_be_saved={saved}, names_which_can_be_offloaded={moved} "
            f"and the intersection={saved & moved}"
        )

    def policy(prim: Primitive, *_: Any, **params: Any) -> Any:
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in moved:
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


def save_from_both_policies(policy_1: Callable, policy_2: Callable) -> Callable:
    """Save what either policy saves.

    The policy raises ValueError when one of the two answers no bool.
    """

    def policy(prim: Primitive, *args: Any, **params: Any) -> bool:
        answers = [p(prim, *args, **params) for p in (policy_1, policy_2)]
        if not all(isinstance(answer, bool) for answer in answers):
            raise errors.value_error(
                "The return value of the policies should be a boolean. Got: "
                f"{answers[0]} and {answers[1]}. Please write a custom policy function "
                "directly, rather than using this helper function."
            )
        return any(answers)

    return policy


checkpoint_policies = types.SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
