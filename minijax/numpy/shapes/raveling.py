"""Trees of arrays as one vector. In JAX: `jax.flatten_util`.

For optimizers and solvers that know vectors only:

    vector, unravel = ravel_pytree(params)
    params_again = unravel(vector)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import language, shaping, trees
from minijax.support import element_types


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A tree of arrays as a vector, and the way back.

    Args:
      pytree: arrays and numbers of any shapes and dtypes.

    Returns:
      `(vector, unravel)`: the leaves one after another, of the dtype they promote to
      (float32 if there are none), and a function from such a vector to a tree of the
      structure, shapes and dtypes of `pytree`. If all leaves have one dtype, `unravel`
      takes a vector of any dtype and keeps it.

    `unravel` raises TypeError for a vector of another dtype when leaves differ in
    theirs.
    """
    leaves, tree = trees.tree_flatten(pytree)
    if not leaves:
        empty = lax.full([0], 0, np.dtype(np.float32))
        return empty, _Unravel(tree, (), (), None)
    avals = [language.get_aval(leaf) for leaf in leaves]
    kinds = tuple(np.dtype(aval.dtype) for aval in avals)
    dtype = element_types.result_type(*kinds)
    shapes = tuple(aval.shape for aval in avals)
    if all(kind == dtype for kind in kinds):
        flat = [lax.reshape(leaf, (aval.size,)) for leaf, aval in zip(leaves, avals)]
        return lax.concatenate(flat, 0), _Unravel(tree, shapes, kinds, None)
    flat = [lax.convert_element_type(leaf, dtype).ravel() for leaf in leaves]
    return lax.concatenate(flat, 0), _Unravel(tree, shapes, kinds, dtype)


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """From a vector to a tree; two of the same tree and types are equal.

    So a jitted function that gets one as a static argument is compiled once.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[np.dtype, ...]
    dtype: Any

    def __call__(self, flat: Any) -> Any:
        if not self.shapes:
            return trees.tree_unflatten(self.tree, [])
        if self.dtype is not None and language.get_aval(flat).dtype != self.dtype:
            raise TypeError(
                "unravel function given array of dtype "
                f"{language.get_aval(flat).dtype}, but "
                f"expected dtype {self.dtype}: the leaves of the tree differ in dtype, "
                "so the vector has the one they promote to. Convert it with `.astype`."
            )
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        leaves = []
        for chunk, shape, kind in zip(lax.split(flat, sizes), self.shapes, self.kinds):
            leaf = lax.reshape(chunk, shape)
            if self.dtype is not None:
                leaf = shaping.convert_element_type_to(
                    leaf, kind, warn_on_complex_to_real_cast=False
                )
            leaves.append(leaf)
        return trees.tree_unflatten(self.tree, leaves)
