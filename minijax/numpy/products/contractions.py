"""Products of arrays: all of them one `dot_general`, with axes chosen for it.

Printed programs are exactly JAX's. The dtype of a product is the promoted dtype of its
operands, or `preferred_element_type`. In JAX: `numpy/tensor_contractions.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes, language, shaping
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis
from minijax.numpy.arraylike import check_arraylike, ensure_arraylike
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.math import elementary_functions, ufuncs
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.reduce import reducing, reductions
from minijax.numpy.shapes import creation, diagonals, vectorizing
from minijax.numpy.shapes.broadcasting import _where as where
from minijax.numpy.shapes.shaping import expand_dims, moveaxis, ravel, reshape
from minijax.primitives.shape.slicing import checked_size
from minijax.support import element_types

# The options of a product that are a part of the cache key.
PRODUCT_OPTIONS = ("precision", "preferred_element_type", "out_sharding")


def product_dtype(
    name: str, preferred_element_type: Any, *operands: Any
) -> tuple[Any, bool]:
    """The dtype of a product and whether it is weak: promoted, unless one is given."""
    if preferred_element_type is None:
        return element_types.result_type(*operands, return_weak_type_flag=True)
    checked = element_types.check_and_canonicalize_user_dtype(
        preferred_element_type, name
    )
    return checked, False


@inline_jit(static_argnames=PRODUCT_OPTIONS)
def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding=None,
) -> Array:
    """Sum over the last axis of `a` and the last but one (or the only one) of `b`.

    The result has the other axes of `a`, then those of `b`; with a scalar it is the
    product. Raises TypeError when the summed lengths differ.
    """
    a, b = ensure_arraylike("dot", a, b)
    dtype, weak_type = product_dtype("dot", preferred_element_type, a, b)
    if a.ndim == 0 or b.ndim == 0:
        contracted: tuple = ((), ())
    else:
        contracted = ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    numbers = (contracted, ((), ()))
    result = lax.dot_general(a, b, numbers, precision, dtype, out_sharding=out_sharding)
    return shaping.convert_element_type_to(result, dtype, weak_type)


@inline_jit(static_argnames=PRODUCT_OPTIONS)
def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding=None,
) -> Array:
    """Matrix product over the last two axes, the axes before them broadcast together.

    A vector on the left is a row, on the right a column; its axis is dropped from the
    result. Raises ValueError for scalars and for axes that do not broadcast, TypeError
    when the summed lengths differ.
    """
    a, b = ensure_arraylike("matmul", a, b)
    for position, operand in enumerate((a, b)):
        if operand.ndim < 1:
            raise ValueError(
                f"matmul input operand {position} must have ndim at least 1, but it "
                "has ndim 0. Use * to multiply by a scalar."
            )
    dtype, weak_type = product_dtype("matmul", preferred_element_type, a, b)
    plan = _plan_matmul(language.typeof(a), language.typeof(b))
    a = lax.squeeze(a, plan.a_squeezed)
    b_is_matrix = b.ndim > 1
    b = lax.squeeze(b, plan.b_squeezed)
    contracted = ((a.ndim - 1,), (b.ndim - 1 - b_is_matrix,))
    numbers = (contracted, (plan.a_batch, plan.b_batch))
    result = lax.dot_general(a, b, numbers, precision, dtype, out_sharding=out_sharding)
    result = lax.transpose(result, plan.order)
    if plan.both_squeezed:
        result = lax.expand_dims(result, tuple(plan.both_squeezed))
    return shaping.convert_element_type_to(result, dtype, weak_type)


class _MatmulPlan:
    """Where each leading axis of a matmul goes.

    An axis that both operands have becomes a batch axis of `dot_general`; one of length
    one is squeezed out, so that nothing is broadcast, and put back at the end.
    """

    def __init__(self) -> None:
        self.a_squeezed: list[int] = []
        self.b_squeezed: list[int] = []
        self.both_squeezed: list[int] = []
        self.a_batch: list[int] = []
        self.b_batch: list[int] = []
        self.order: Sequence[int] = ()


@functools.lru_cache(maxsize=256)
def _plan_matmul(a: language.ShapedArray, b: language.ShapedArray) -> _MatmulPlan:
    plan = _MatmulPlan()
    a_shape = a.shape[:-2]
    b_shape = b.shape[:-2]
    rank = max(len(a_shape), len(b_shape))
    a_lengths = (None,) * (rank - len(a_shape)) + a_shape
    b_lengths = (None,) * (rank - len(b_shape)) + b_shape
    # The axes of dot_general's result: shared ones, then those of `a`, then of `b`.
    shared: list[int] = []
    a_only: list[int] = []
    b_only: list[int] = []

    def squeeze_a() -> None:
        place = len(shared) + len(a_only) + len(plan.a_squeezed)
        plan.a_squeezed.append(place)

    def squeeze_b() -> None:
        place = len(shared) + len(b_only) + len(plan.b_squeezed)
        plan.b_squeezed.append(place)

    for axis, (a_length, b_length) in enumerate(zip(a_lengths, b_lengths)):
        if a_length is None:
            b_only.append(axis)
        elif b_length is None:
            a_only.append(axis)
        elif a_length == 1 and b_length == 1:
            squeeze_a()
            squeeze_b()
            plan.both_squeezed.append(axis)
        elif a_length == 1:
            squeeze_a()
            b_only.append(axis)
        elif b_length == 1:
            squeeze_b()
            a_only.append(axis)
        elif a_length == b_length:
            plan.a_batch.append(len(shared) + len(a_only))
            plan.b_batch.append(len(shared) + len(b_only))
            shared.append(axis)
        else:
            raise ValueError(
                f"Incompatible shapes for matmul arguments: {a} and {b}: "
                f"their axes before the last two do not broadcast."
            )
    a_is_matrix = a.ndim > 1
    if a_is_matrix:
        a_only.append(rank)
    if b.ndim > 1:
        b_only.append(rank + a_is_matrix)
    plan.order = np.argsort([*shared, *a_only, *b_only]).tolist()
    return plan


@jit
def matvec(x1: Any, x2: Any, /) -> Array:
    """Matrices times vectors, with leading axes broadcast."""
    x1, x2 = ensure_arraylike("matvec", x1, x2)
    return vectorizing.vectorize(matmul, signature="(n,m),(m)->(n)")(x1, x2)


@jit
def vecmat(x1: Any, x2: Any, /) -> Array:
    """Conjugated vectors times matrices, with leading axes broadcast."""
    x1, x2 = ensure_arraylike("vecmat", x1, x2)
    return vectorizing.vectorize(matmul, signature="(n),(n,m)->(m)")(
        elementary_functions.conj(x1), x2
    )


@inline_jit(static_argnames=("precision", "preferred_element_type"))
def vdot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The inner product of two arrays taken as flat vectors, the first conjugated."""
    a, b = ensure_arraylike("vdot", a, b)
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        a = elementary_functions.conj(a)
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    return dot(ravel(a), ravel(b), **types)


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Inner products of vectors along `axis`, the first conjugated, others broadcast.

    Raises ValueError when the lengths along `axis` differ.
    """
    x1, x2 = ensure_arraylike("jnp.vecdot", x1, x2)
    if checked_size(axis, x1.shape) != checked_size(axis, x2.shape):
        raise ValueError(
            f"axes must match; got shapes {x1.shape} and {x2.shape} with axis={axis}"
        )
    x1, x2 = (moveaxis(x, axis, -1) for x in (x1, x2))
    inner_product = functools.partial(
        vdot, precision=precision, preferred_element_type=preferred_element_type
    )
    return vectorizing.vectorize(inner_product, signature="(n),(n)->()")(x1, x2)


def _tensordot_axes(axes: Any, a: Array, b: Array) -> tuple[Any, Any]:
    """The summed axes of both operands, from any of the forms that NumPy takes."""
    if type(axes) is int:
        if axes > min(a.ndim, b.ndim):
            raise TypeError(
                f"Number of tensordot axes (axes {axes}) exceeds input ranks "
                f"({a.shape} and {b.shape})"
            )
        return tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise TypeError(
            "tensordot axes argument must be an int, a pair of ints, or a pair of "
            "lists/tuples of ints."
        )
    a_axes, b_axes = axes
    if isinstance(a_axes, int) and isinstance(b_axes, int):
        a_axes, b_axes = (a_axes,), (b_axes,)
    if not all(isinstance(part, (tuple, list)) for part in (a_axes, b_axes)):
        raise TypeError(
            "tensordot requires both axes lists to be either ints, tuples or lists, "
            f"got {a_axes} and {b_axes}"
        )
    if len(a_axes) != len(b_axes):
        raise TypeError(
            "tensordot requires axes lists to have equal length, got "
            f"{a_axes} and {b_axes}."
        )
    return (
        tuple(canonicalize_axis(axis, a.ndim) for axis in a_axes),
        tuple(canonicalize_axis(axis, b.ndim) for axis in b_axes),
    )


def tensordot(
    a: Any,
    b: Any,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding=None,
) -> Array:
    """Sum over pairs of axes of `a` and `b`; the others follow in order.

    `axes` is the number of last axes of `a` to pair with the first of `b`, or a pair of
    lists. Raises TypeError for axes of another form and for lengths that differ.
    """
    a, b = ensure_arraylike("tensordot", a, b)
    dtype, weak_type = product_dtype("tensordot", preferred_element_type, a, b)
    numbers = (_tensordot_axes(axes, a, b), ((), ()))
    result = lax.dot_general(a, b, numbers, precision, dtype, out_sharding=out_sharding)
    return shaping.convert_element_type_to(result, dtype, weak_type)


@inline_jit(static_argnames=("precision", "preferred_element_type"))
def inner(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sum over the last axes of both operands; with a scalar, the product."""
    a, b = ensure_arraylike("inner", a, b)
    if a.ndim == 0 or b.ndim == 0:
        if preferred_element_type is not None:
            a = lax.convert_element_type(a, preferred_element_type)
            b = lax.convert_element_type(b, preferred_element_type)
        return ufuncs.multiply(a, b)
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    return tensordot(a, b, (-1, -1), **types)


@inline_jit
def outer(a: Any, b: Any, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`, both flattened: a matrix."""
    reducing.refuse_out("outer", out)
    a, b = ensure_arraylike("outer", a, b)
    a, b = promote_dtypes(a, b)
    return ufuncs.multiply(ravel(a)[:, None], ravel(b)[None, :])


@jit
def kron(a: Any, b: Any) -> Array:
    """The Kronecker product: every element of `a` times the whole of `b`, as blocks."""
    check_arraylike("kron", a, b)
    a, b = promote_dtypes(a, b)
    a_rank, b_rank = np.ndim(a), np.ndim(b)
    if a_rank < b_rank:
        a = expand_dims(a, range(b_rank - a_rank))
    elif b_rank < a_rank:
        b = expand_dims(b, range(a_rank - b_rank))
    a, b = ensure_arraylike("kron", a, b)
    rank = a.ndim
    shape = tuple(int(m) * int(n) for m, n in zip(a.shape, b.shape, strict=True))
    a = expand_dims(a, range(1, 2 * rank, 2))
    b = expand_dims(b, range(0, 2 * rank, 2))
    return reshape(lax.mul(a, b), shape)


@jit(static_argnames=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: Any,
    b: Any,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Vector products of vectors of length two or three.

    The vectors lie along `axisa` and `axisb`, their products along `axisc`, unless
    `axis` gives one for all three; two plane vectors give a scalar. Raises ValueError
    for other lengths.
    """
    check_arraylike("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a = moveaxis(a, axisa, -1)
    b = moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a0, a1 = a[..., 0], a[..., 1]
    a2 = a[..., 2] if a.shape[-1] == 3 else creation.zeros_like(a0)
    b0, b1 = b[..., 0], b[..., 1]
    b2 = b[..., 2] if b.shape[-1] == 3 else creation.zeros_like(b0)
    products = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return moveaxis(creation.array(products), 0, axisc)


@jit(static_argnames=("axis1", "axis2", "dtype"))
def trace(
    a: Any,
    offset: int | Any = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal of the matrices in axes `axis1` and `axis2`.

    Raises ValueError when both axes are the same.
    """
    array = ensure_arraylike("trace", a)
    reducing.refuse_out("trace", out)
    if canonicalize_axis(axis1, array.ndim) == canonicalize_axis(axis2, array.ndim):
        raise ValueError(
            f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}"
        )
    if dtype is not None:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, "trace")
    rows, columns = array.shape[axis1], array.shape[axis2]
    array = moveaxis(array, (axis1, axis2), (-2, -1))
    on_diagonal = diagonals.eye(rows, columns, k=offset, dtype=bool)
    array = where(on_diagonal, array, creation.zeros_like(array))
    return reductions.sum(array, axis=(-2, -1), dtype=dtype)
