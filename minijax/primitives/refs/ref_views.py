"""Views of refs: `ref.at[index]` is a part of a ref that is read and written later.

    part = ref.at[2:6]
    part[0] = x            # writes ref[2]

A view holds the ref and one indexer after another; equations on it carry them all.

In JAX: `state/types.py`, `TransformedRef` and `RefIndexer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.language import get_aval
from minijax.primitives.index.indexers import NDIndexer
from minijax.support import tree_util


@tree_util.register_pytree_node_class
class RefView:
    """A part of a ref. It is indexed as a ref is; `references.py` sets how."""

    __slots__ = ("ref", "indexers")
    __getitem__: Callable[..., Any]
    __setitem__: Callable[..., None]

    def __init__(self, ref: Any, indexers: tuple[NDIndexer, ...]):
        self.ref = ref
        self.indexers = indexers

    shape = property(lambda self: self.indexers[-1].result_shape())
    dtype = property(lambda self: self.ref.dtype)
    ndim = property(lambda self: len(self.shape))
    at = property(lambda self: RefIndexer(self))

    def tree_flatten(self) -> tuple[tuple, None]:
        return (self.ref, self.indexers), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> RefView:
        return cls(*children)

    def __repr__(self) -> str:
        aval = get_aval(self.ref)
        return f"RefView({aval}, shape={self.shape})"


class RefIndexer:
    """The value of `ref.at`, to be indexed."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref

    def __getitem__(self, index: Any) -> RefView:
        if not isinstance(index, tuple):
            index = (index,)
        ref, earlier = base_and_indexers(self.ref)
        indexer = NDIndexer.from_indices_shape(index, self.ref.shape)
        return RefView(ref, (*earlier, indexer))


def base_and_indexers(ref: Any) -> tuple[Any, tuple[NDIndexer, ...]]:
    """(the ref itself, the indexers of a view)."""
    return (ref.ref, ref.indexers) if isinstance(ref, RefView) else (ref, ())
