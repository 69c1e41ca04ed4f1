"""Arrays written as indices: `jnp.mgrid[0:3, 0:2]`, `jnp.r_[1:4, 0, 4]`.

In JAX: `numpy/index/index_tricks.py`.
"""

from typing import Any

import numpy as np

from minijax import lax
from minijax.core.array import Array
from minijax.numpy.arguments import concrete_or_error
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.shapes.creation import arange, array
from minijax.numpy.shapes.diagonals import meshgrid
from minijax.numpy.shapes.joining import concatenate, stack
from minijax.numpy.shapes.sequences import linspace
from minijax.support.config import numpy_dtype_promotion


def _numbers_of_slice(index: slice, name: str) -> Array:
    """start:stop:step counted out; an imaginary step is a number of points."""

    def known(value: Any, part: str) -> Any:
        return concrete_or_error(None, value, f"slice {part} of jnp.{name}")

    start = known(index.start, "start") or 0
    stop = known(index.stop, "stop")
    step = known(index.step, "step") or 1
    if np.iscomplex(step):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """The class of `mgrid` and `ogrid`: indexing an instance makes a grid."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name = name
        self.sparse = sparse

    def __repr__(self) -> str:
        return f"jnp.{self.name}"

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _numbers_of_slice(key, self.name)
        axes = [_numbers_of_slice(each, self.name) for each in key]
        with numpy_dtype_promotion("standard"):
            axes = promote_dtypes(*axes)
        grids = meshgrid(*axes, indexing="ij", sparse=self.sparse)
        if self.sparse:
            return grids
        return stack(grids, 0) if grids else arange(0)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Concatenation:
    """The class of `r_` and `c_`: indexing an instance concatenates.

    Slices are counted out. A string in front says "axis,ndmin,trans1d": the axis to
    concatenate along, the least rank, and where the axes of arrays of lower rank go.
    """

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self.name = name
        self.defaults = (axis, ndmin, trans1d)

    def __repr__(self) -> str:
        return f"jnp.{self.name}"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        axis, ndmin, trans1d = self.defaults
        matrix_axis = None
        if isinstance(items[0], str):
            directive, items = items[0], items[1:]
            if directive in ("r", "c"):
                matrix_axis = 0 if directive == "r" else 1
            else:
                axis, ndmin, trans1d = self._directive(directive)
        result = concatenate(
            tuple(self._part(item, ndmin, trans1d) for item in items), axis=axis
        )
        if matrix_axis is not None and result.ndim == 1:
            result = lax.expand_dims(result, (matrix_axis,))
        return result

    def _directive(self, directive: str) -> tuple[int, int, int]:
        try:
            given = [int(part) for part in directive.split(",")][:3]
        except ValueError as error:
            raise ValueError(
                f"could not understand directive {directive!r}: write 'axis', "
                "'axis,ndmin' or 'axis,ndmin,trans1d', or 'r' or 'c'."
            ) from error
        axis, ndmin, trans1d = (*given, *self.defaults[len(given) :])
        return axis, ndmin, trans1d

    def _part(self, item: Any, ndmin: int, trans1d: int) -> Array:
        if isinstance(item, str):
            raise ValueError("string directive must be placed at the beginning")
        if isinstance(item, slice):
            value, rank = _numbers_of_slice(item, self.name), 0
        else:
            value = array(item, copy=False)
            rank = value.ndim
        value = array(value, copy=False, ndmin=ndmin)
        if trans1d == -1 or ndmin <= rank:
            return value
        shift = ndmin - abs(ndmin + trans1d + 1) % ndmin
        axes = tuple(range(ndmin))
        return lax.transpose(value, axes[shift:] + axes[:shift])


r_ = _Concatenation("r_", axis=0, ndmin=1, trans1d=-1)
c_ = _Concatenation("c_", axis=-1, ndmin=2, trans1d=0)
s_ = np.s_
index_exp = np.index_exp
