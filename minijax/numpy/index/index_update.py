"""`x.at[index].set(y)`: the updates of arrays that do not change.

In JAX: `numpy/array_methods.py`, `_IndexUpdateHelper` and `_IndexUpdateRef`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core.array import Array
from minijax.numpy.index import indexing
from minijax.numpy.math import ufuncs
from minijax.numpy.shapes.creation import laid_out


class IndexUpdateHelper:
    """The value of `x.at`; indexing it gives an `IndexUpdateRef`."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> "IndexUpdateRef":
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """An array and an index: `x.at[index]`, with the updates as methods.

    Every method returns a new array; inside `jit` XLA updates in place where the old
    one is not used again. All take

    - `mode`: what happens out of bounds. None, "drop" (updates are left out; `get`
      fills), "clip" (the nearest element), "promise_in_bounds" (no check), "fill";
    - `indices_are_sorted`, `unique_indices`: promises that let XLA go faster, and
      that give undefined results when they are not kept;
    - `wrap_negative_indices`: whether -1 means the last element.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements themselves; `fill_value` for those out of bounds."""

        def take(array: Any, index: Any) -> Array:
            return indexing.rewriting_take(
                array,
                index,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
                mode=mode,
                fill_value=fill_value,
                normalize_indices=wrap_negative_indices,
            )

        return laid_out(take, out_sharding, self.array, self.index)

    def _update(
        self,
        scatter: Callable[..., Array],
        values: Any,
        array: Any = None,
        *,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
        **options: Any,
    ) -> Array:

        def update(array: Any, index: Any, values: Any) -> Array:
            return indexing.scatter_update(
                array,
                index,
                values,
                scatter,
                normalize_indices=wrap_negative_indices,
                **options,
            )

        array = self.array if array is None else array
        return laid_out(update, out_sharding, array, self.index, values)

    def set(self, values: Any, **options: Any) -> Array:
        """`x[index] = values`. Which value wins at repeated indices is undefined."""
        return self._update(lax.scatter, values, **options)

    def apply(self, func: Callable[[Any], Array], **options: Any) -> Array:
        """`func` of each element at the index; several times at repeated indices."""

        def scatter(x: Any, indices: Any, y: Any, numbers: Any, **keywords: Any) -> Any:
            return lax.scatter_apply(
                x, indices, func, numbers, update_shape=y.shape, **keywords
            )

        return self._update(scatter, np.zeros((), self.array.dtype), **options)

    def add(self, values: Any, **options: Any) -> Array:
        """`x[index] += values`; repeated indices add up."""
        return self._update(lax.scatter_add, values, **options)

    def subtract(self, values: Any, **options: Any) -> Array:
        """`x[index] -= values`; repeated indices add up."""
        return self._update(lax.scatter_sub, values, **options)

    def multiply(self, values: Any, **options: Any) -> Array:
        """`x[index] *= values`; repeated indices multiply."""
        return self._update(lax.scatter_mul, values, **options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Array:
        """`x[index] /= values`, for floating-point arrays."""
        return ufuncs.divide(self.array, self._product(values, options))

    def power(self, values: Any, **options: Any) -> Array:
        """`x[index] **= values`."""
        return ufuncs.power(self.array, self._product(values, options))

    def _product(self, values: Any, options: dict[str, Any]) -> Array:
        # Ones, multiplied by the values at the index: no effect anywhere else.
        ones = lax.full_like(self.array, 1)
        return self._update(lax.scatter_mul, values, ones, **options)

    def min(self, values: Any, **options: Any) -> Array:
        """`x[index] = minimum(x[index], values)`."""
        return self._update(lax.scatter_min, values, **options)

    def max(self, values: Any, **options: Any) -> Array:
        """`x[index] = maximum(x[index], values)`."""
        return self._update(lax.scatter_max, values, **options)
