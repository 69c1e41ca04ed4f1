"""Names for annotations: what may stand where an array or a dtype is wanted.

Annotate results with `minijax.Array` and arguments with `ArrayLike`: functions give
arrays back, but take NumPy arrays and Python numbers as well. Lists and tuples are not
array-like on purpose: each of their elements would become an argument of its own.

In JAX: `jax/typing.py`.
"""

from typing import Any, TypeAlias

import numpy as np

from minijax.array import Array

ArrayLike: TypeAlias = (
    Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
)

# A dtype, the name of one, a NumPy or minijax scalar type, or anything with `.dtype`.
DTypeLike: TypeAlias = str | type[Any] | np.dtype | Any
