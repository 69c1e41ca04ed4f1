"""Names for annotations: what may stand where an array or a dtype is wanted.

Annotate results with `minijax.Array` and arguments with `ArrayLike`: functions give
arrays back, but take NumPy arrays and Python numbers as well. Lists and tuples are not
array-like on purpose: each of their elements would become an argument of its own.

In JAX: `jax/typing.py`.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from minijax.core.array import Array

if TYPE_CHECKING:
    # Functions turn their arguments into arrays under the same name; a type checker
    # would ask at each later use whether the argument is still a Python number.
    ArrayLike: TypeAlias = Any
    DTypeLike: TypeAlias = Any
else:
    ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
    # A dtype, the name of one, a scalar type, or anything with `.dtype`.
    DTypeLike = str | type[Any] | np.dtype | Any
