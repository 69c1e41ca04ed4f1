"""The words in which rules of decompositions are written: of stacks of matrices.

Everything is about the last two axes; axes before them are a batch.

In JAX: the end of `lax/linalg.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, shaping
from minijax.core.language import get_aval
from minijax.primitives.elementwise import complex_numbers
from minijax.primitives.linear import products
from minijax.primitives.linear.matmul_precision import Precision
from minijax.primitives.shape import broadcasting


def pair(told: str, given: Any) -> Any:
    """The two parts of a pair; for anything else JAX's exceptions."""
    try:
        first, second = given
    except (TypeError, ValueError) as error:
        raise type(error)(f"{told}, got {given!r}.") from None
    return first, second


def is_complex(x: Any) -> bool:
    """Whether an array, or its type, is complex."""
    return dtypes.issubdtype(x.dtype, np.complexfloating)


def real_dtype(dtype: Any) -> np.dtype:
    """The dtype of the parts of complex numbers; a real dtype is its own."""
    return np.empty(0, dtype).real.dtype


def complex_dtype(dtype: Any) -> np.dtype:
    """The complex dtype whose parts have `dtype`; a complex dtype is its own."""
    return np.result_type(dtype, np.complex64)


def transposed(x: Any) -> Any:
    """Each matrix with rows as columns."""
    rank = get_aval(x).ndim
    return shaping.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; a real array itself."""
    return complex_numbers.conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """Each matrix transposed and conjugated."""
    return conjugate(transposed(x))


def symmetrized(x: Any) -> Any:
    """Half the sum of each matrix and its adjoint; TypeError if it is not square."""
    if len(shape := get_aval(x).shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(f"Matrices must be square, [..., n, n], got shape {shape}.")
    return (x + adjoint(x)) / 2


def matmul(x: Any, y: Any) -> Any:
    """The product of matrices, exact on machines that would round."""
    multiply = products.dot if x.ndim == 2 else products.batch_matmul
    return multiply(x, y, precision=Precision.HIGHEST)


def _places(rows: int, columns: int, offset: int) -> tuple[Any, Any]:
    """(row + offset, column) of each entry of a matrix."""
    shape = (rows, columns)
    row = broadcasting.broadcasted_iota(np.int32, shape, 0)
    row = elementwise.add(row, np.int32(offset))
    return row, broadcasting.broadcasted_iota(np.int32, shape, 1)


def eye(
    dtype: Any, rows: int, columns: int | None = None, batch: Sequence[int] = ()
) -> Any:
    """Matrices [*batch, rows, columns] with ones on their diagonals."""
    columns = rows if columns is None else columns
    same = elementwise.eq(*_places(rows, columns, 0))
    return broadcasting.broadcast(shaping.convert_element_type(same, dtype), batch)


def _triangle(x: Any, offset: int, keep_lower: bool) -> Any:
    *batch, rows, columns = x.shape
    below = elementwise.ge(*_places(rows, columns, offset))
    if batch:
        below = broadcasting.broadcast(below, batch)
    zeros = broadcasting.full_like(x, 0)
    return elementwise.select(below, *((x, zeros) if keep_lower else (zeros, x)))


def tril(x: Any, offset: int = 0) -> Any:
    """What is on and below a diagonal; zeros above."""
    return _triangle(x, offset, True)


def triu(x: Any, offset: int = 0) -> Any:
    """What is on and above a diagonal; zeros below."""
    return _triangle(x, offset - 1, False)


def diagonal(x: Any) -> Any:
    """The diagonal of each matrix, as a vector."""
    places = broadcasting.iota(np.int32, min(x.shape[-2:]))
    return x[..., places, places]


def diagonal_matrix(x: Any) -> Any:
    """Each vector as the diagonal of a square matrix."""
    size = x.shape[-1]
    places = broadcasting.iota(np.int32, size)
    zeros = broadcasting.full((*x.shape, size), 0, x.dtype)
    return zeros.at[..., places, places].set(x)
