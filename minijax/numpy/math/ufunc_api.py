"""Universal functions: elementwise functions of two arguments that can also reduce.

`jnp.add` is not a plain function but a `ufunc`: `add.reduce`, `add.accumulate`,
`add.at` and `add.outer` apply it along an axis, at indices, and to all pairs.

In JAX: `numpy/math/ufunc_api.py`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import eval_shape, jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, check_rank, index_of
from minijax.numpy.promotion import as_array, check_arraylike
from minijax.numpy.shapes.broadcasting import _where, broadcast_to
from minijax.transforms.vectorization import vmap
from minijax.values.ref_avals import ShapeDtypeStruct


class ufunc:
    """An elementwise function with NumPy's ways of applying it along an axis.

    `nin` and `nout` count arguments and results, `identity` is the neutral element
    (None if there is none). `reduce`, `accumulate` and `at` name the ways in which
    that is done at once; otherwise it is done in turn, which takes equations for each
    element, unless the function is `associative`. NumPy's arguments `out` and `where`
    are not supported, since arrays do not change.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        associative: bool = True,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Array] | None = None,
        accumulate: Callable[..., Array] | None = None,
        at: Callable[..., Array] | None = None,
    ) -> None:
        self.__doc__ = func.__doc__
        self.__name__ = name or func.__name__
        self._func = func
        self._call = call or func
        self._reduce = reduce
        self._accumulate = accumulate
        self._at = at
        self._nin = index_of(nin, "nin")
        self._nout = index_of(nout, "nout")
        self._nargs = self._nin if nargs is None else index_of(nargs, "nargs")
        self._identity = identity
        self._associative = associative

    nin = property(lambda self: self._nin)
    nout = property(lambda self: self._nout)
    nargs = property(lambda self: self._nargs)
    identity = property(lambda self: self._identity)

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        if out is not None:
            raise NotImplementedError(
                f"The 'out' argument of {self} is not supported: arrays are "
                "immutable. Use the array that the call returns."
            )
        if where is not None:
            raise NotImplementedError(
                f"The 'where' argument of {self} is not supported. Write "
                "jnp.where(mask, result, other) around the call."
            )
        check_arraylike(self.__name__, *args)
        return self._call(*args)

    def _refuse_out(self, method: str, out: Any) -> None:
        if out is not None:
            raise NotImplementedError(
                f"{self.__name__}.{method}() takes no 'out': use the array it returns."
            )

    def _require_binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(
                f"{method} only supported for functions returning a single value"
            )

    def reduce(
        self,
        a: Any,
        axis: int | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Combine all elements along `axis` (None: all axes) into one."""
        self._refuse_out("reduce", out)
        return reduce(self, a, axis, dtype, keepdims, initial, where)

    def accumulate(
        self, a: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Like `reduce`, keeping every intermediate result along `axis`."""
        self._refuse_out("accumulate", out)
        return accumulate(self, a, axis=axis, dtype=dtype)

    def at(
        self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True
    ) -> Array:
        """Apply the function to `a[indices]` and `b`, repeated indices in turn.

        Returns a new array; `inplace=False` is required, since NumPy's version
        changes `a` itself.
        """
        if inplace:
            raise NotImplementedError(
                f"jnp.{self.__name__}.at cannot change its argument, because arrays "
                "are immutable. Pass inplace=False and use the result: "
                f"a = jnp.{self.__name__}.at(a, indices, b, inplace=False)."
            )
        return at(self, a, indices) if b is None else at(self, a, indices, b)

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Reduce the stretches of `axis` between one index and the next, to the end.

        Where an index is not below the next one, the stretch is that element alone.
        """
        self._refuse_out("reduceat", out)
        return reduceat(self, a, indices, axis=axis, dtype=dtype)

    def outer(self, A: Any, B: Any, /) -> Array:
        """The function of every pair; the shape is `A.shape + B.shape`."""
        return outer(self, A, B)


@jit(static_argnames=("self", "axis", "dtype", "keepdims"))
def reduce(
    self: ufunc, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    name = f"{self.__name__}.reduce"
    check_arraylike(name, a)
    self._require_binary("reduce")
    if initial is not None:
        check_arraylike(name, initial)
    if where is not None:
        check_arraylike(name, where)
        if self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, "
                "so to use a where mask one has to specify 'initial'."
            )
        if dtypes.dtype(where) != np.bool_:
            raise ValueError(
                f"where argument must have dtype=bool; got dtype={dtypes.dtype(where)}"
            )
    function = self._reduce
    if function is None:
        return _reduce_in_turn(self, a, axis, dtype, keepdims, initial, where)
    return function(
        a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
    )


def _reduce_in_turn(
    self: ufunc, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    """A reduction from left to right: one equation for each element along the axis."""
    a = as_array(a)
    if isinstance(axis, tuple):
        raise NotImplementedError(
            f"{self.__name__}.reduce takes one axis, got {axis}: reshape them into one."
        )
    dtype = _result_dtype(self, a) if dtype is None else dtype
    initial = self.identity if initial is None else initial
    mask = None if where is None else broadcast_to(where, a.shape)
    kept = (1,) * a.ndim
    if axis is None:
        a = a.ravel()
        mask = None if mask is None else mask.ravel()
    else:
        axis = canonicalize_axis(axis, a.ndim)
        kept = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        a = _axis_to_front(a, axis)
        mask = None if mask is None else _axis_to_front(mask, axis)
    length = a.shape[0]
    if length == 0 and initial is None:
        raise ValueError(
            f"zero-size array to reduction operation {self.__name__} which has no "
            "identity"
        )
    first = 1 if initial is None else 0
    value = a[0] if initial is None else initial
    value = broadcast_to(as_array(value).astype(dtype), a.shape[1:])
    for i in range(first, length):
        combined = self(value, a[i].astype(dtype))
        value = combined if mask is None else _where(mask[i], combined, value)
    return value.reshape(kept) if keepdims else value


@jit(static_argnames=("self", "axis", "dtype"))
def accumulate(self: ufunc, a: Any, axis: int = 0, dtype: Any = None) -> Array:
    self._require_binary("accumulate")
    check_arraylike(f"{self.__name__}.accumulate", a)
    if self._accumulate is not None:
        return self._accumulate(a, axis=axis, dtype=dtype)
    if axis is None or isinstance(axis, tuple):
        raise ValueError("accumulate does not allow multiple axes")
    a = as_array(a)
    dtype = _result_dtype(self, a) if dtype is None else dtype
    axis = canonicalize_axis(axis, a.ndim)
    if a.size == 0:
        return lax.full(a.shape, 0, dtype)
    a = a.astype(dtype)
    if self._associative:
        return lax.associative_scan(self, a, axis=axis)
    a = _axis_to_front(a, axis)
    values = [a[0]]
    for i in range(1, a.shape[0]):
        values.append(self(values[-1], a[i]).astype(dtype))
    result = lax.concatenate([lax.expand_dims(value, (0,)) for value in values], 0)
    return _axis_from_front(result, axis)


@jit(static_argnums=(0,))
def at(self: ufunc, a: Any, indices: Any, b: Any = None) -> Array:
    if self._at is not None:
        return self._at(a, indices) if b is None else self._at(a, indices, b)
    operands = () if b is None else (b,)
    check_arraylike(f"{self.__name__}.at", a, *operands)
    dtype = _result_dtype(self, as_array(a), *map(as_array, operands))
    a = as_array(a).astype(dtype)
    operands = tuple(as_array(operand).astype(dtype) for operand in operands)
    indices = indices if isinstance(indices, tuple) else (indices,)
    arrays = [np.shape(index) for index in indices if not isinstance(index, slice)]
    shape = lax.broadcast_shapes(*arrays) if arrays else ()
    if not shape:
        return a.at[indices].set(self(a.at[indices].get(), *operands))
    columns = [
        index if isinstance(index, slice) else broadcast_to(index, shape).ravel()
        for index in indices
    ]
    if operands:
        value = operands[0]
        value = broadcast_to(value, (*shape, *value.shape[len(shape) :]))
        operands = (value.reshape(math.prod(shape), *value.shape[len(shape) :]),)

    for i in range(math.prod(shape)):
        index = tuple(
            column if isinstance(column, slice) else column[i] for column in columns
        )
        values = [operand[i] for operand in operands]
        a = a.at[index].set(self(a.at[index].get(), *values))
    return a


@jit(static_argnames=("self", "axis", "dtype"))
def reduceat(
    self: ufunc, a: Any, indices: Any, axis: int = 0, dtype: Any = None
) -> Array:
    self._require_binary("reduceat")
    check_arraylike(f"{self.__name__}.reduceat", a, indices)
    a, indices = as_array(a), as_array(indices)
    check_rank("reduceat", 1, np.inf, a=a)
    check_rank("reduceat", 1, 1, indices=indices)
    if axis is None or isinstance(axis, (tuple, list)):
        raise ValueError("reduceat requires a single integer axis.")
    axis = canonicalize_axis(axis, a.ndim)
    if dtype is not None:
        a = a.astype(dtype)
    a = _axis_to_front(a, axis)
    size = a.shape[0]
    rest = (1,) * (a.ndim - 1)
    start = lax.reshape(indices, (indices.size, *rest))
    last = lax.full((1,), size, indices.dtype)
    end = lax.concatenate([indices[1:], last], 0)
    end = lax.reshape(end, (indices.size, *rest))
    result = a[indices]
    for i in range(size):
        inside = (start < i) & (i < end)
        result = _where(inside, self(result, a[i : i + 1]), result)
    return _axis_from_front(result, axis)


@jit(static_argnums=(0,))
def outer(self: ufunc, A: Any, B: Any) -> Array:
    self._require_binary("outer")
    check_arraylike(f"{self.__name__}.outer", A, B)
    left = lax.reshape(A, (np.size(A),))
    right = lax.reshape(B, (np.size(B),))
    pairs = vmap(vmap(self, (None, 0)), (0, None))(left, right)
    return pairs.reshape(*np.shape(A), *np.shape(B))


def _result_dtype(self: ufunc, *args: Array) -> Any:
    operands = (*args, *args)[: self.nin]
    scalars = [ShapeDtypeStruct((), operand.dtype) for operand in operands]
    return eval_shape(self._func, *scalars).dtype


def _axis_to_front(a: Array, axis: int) -> Array:
    if axis == 0:
        return a
    return lax.transpose(a, [axis, *(i for i in range(a.ndim) if i != axis)])


def _axis_from_front(a: Array, axis: int) -> Array:
    return lax.transpose(a, [*range(1, axis + 1), 0, *range(axis + 1, a.ndim)])
