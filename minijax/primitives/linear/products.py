"""Matrix products as users write them: dot_general, dot, batch_matmul.

Each binds `dot_general`, whose block is in `dot.py`.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import dot as products
from minijax.core.language import get_aval
from minijax.primitives.linear.matmul_precision import canonicalize_precision
from minijax.support import element_types


def checked_numbers(
    name: str, numbers: Any, read: Callable[[Any], Sequence[int]] = products.as_axes
) -> products.DotDimensionNumbers:
    """`numbers`, if they are two pairs of axes, each of which `read` reads."""
    try:
        (left, right), (lhs_batch, rhs_batch) = numbers
        return (read(left), read(right)), (read(lhs_batch), read(rhs_batch))
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name}: dimension_numbers must be ((lhs contracted axes, rhs contracted "
            "axes), (lhs batch axes, rhs batch axes)), each a tuple of ints, as "
            f"(((1,), (0,)), ((), ())) of a matrix product. Got {numbers}."
        ) from None


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: products.DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Sums of products of two arrays over chosen axes.

    `dimension_numbers` is ((lhs contract, rhs contract), (lhs batch, rhs batch)), each
    a sequence of axes. The result has the batch axes first, then what is left of `lhs`,
    then those left of `rhs`; None stands for `dot`. It has the more precise dtype, or
    `preferred_element_type`, in which products are then added. `precision` is what
    `matmul_precision.canonicalize_precision` accepts.

    Raises TypeError when axes are out of range, repeated, or do not match in size, and
    when the preferred dtype is too narrow; ValueError for an unknown precision.
    """
    if dimension_numbers is None:
        lhs_shape, rhs_shape = get_aval(lhs).shape, get_aval(rhs).shape
        simple = 1 <= len(lhs_shape) <= 2 and 1 <= len(rhs_shape) <= 2
        if not simple or lhs_shape[-1] != rhs_shape[0]:
            raise ValueError(
                "lax.dot multiplies vectors and matrices whose inner sizes agree, got "
                f"shapes {lhs_shape} and {rhs_shape}. Give dimension_numbers for other "
                "products, or use minijax.numpy.matmul."
            )
        dimension_numbers = (((len(lhs_shape) - 1,), (0,)), ((), ()))
    if preferred_element_type is not None:
        preferred_element_type = element_types.check_and_canonicalize_user_dtype(
            preferred_element_type, "dot"
        )
    return products.dot_general(
        lhs,
        rhs,
        checked_numbers("dot_general", dimension_numbers),
        canonicalize_precision(precision),
        preferred_element_type,
        out_sharding=out_sharding,
    )


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Product of vectors and matrices, or `dot_general` with `dimension_numbers`.

    Without `dimension_numbers` the operands have one or two axes, and the last of `lhs`
    is summed with the first of `rhs`; ValueError when they are of another rank or do
    not match.
    """
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Products of stacks of matrices: [..., n, k] and [..., k, m] give [..., n, m].

    Both operands have the same rank, at least 2, and equal leading sizes; ValueError
    otherwise for the ranks, TypeError for the sizes.
    """
    lhs_rank, rhs_rank = get_aval(lhs).ndim, get_aval(rhs).ndim
    if min(lhs_rank, rhs_rank) < 2:
        raise ValueError(
            f"Arguments to batch_matmul must be at least 2D, got {lhs_rank}, {rhs_rank}"
        )
    if lhs_rank != rhs_rank:
        raise ValueError(
            f"Arguments to batch_matmul must have same ndim, got {lhs_rank}, {rhs_rank}"
        )
    batch = tuple(range(lhs_rank - 2))
    numbers = (((lhs_rank - 1,), (lhs_rank - 2,)), (batch, batch))
    return dot_general(lhs, rhs, numbers, precision=precision)
