"""`jax.tree`: the functions of `tree_util` under short names."""

import dataclasses
from typing import Any

from minijax.core.trees import tree_flatten as flatten
from minijax.core.trees import tree_leaves as leaves
from minijax.core.trees import tree_structure as structure
from minijax.core.trees import tree_unflatten as unflatten
from minijax.support.tree_util import tree_all as all
from minijax.support.tree_util import tree_broadcast as broadcast
from minijax.support.tree_util import tree_flatten_with_path as flatten_with_path
from minijax.support.tree_util import tree_leaves_with_path as leaves_with_path
from minijax.support.tree_util import tree_map as map
from minijax.support.tree_util import tree_map_with_path as map_with_path
from minijax.support.tree_util import tree_reduce as reduce
from minijax.support.tree_util import tree_reduce_associative as reduce_associative
from minijax.support.tree_util import tree_transpose as transpose

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]


def static(**kwargs: Any) -> Any:
    """`dataclasses.field` for a field of `register_dataclass` that is metadata.

    Takes the arguments of `dataclasses.field`; all by keyword.
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)
