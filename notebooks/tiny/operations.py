"""tiny, a toy over NumPy. This piece: what a network needs, each with its type."""

import builtins
from functools import partial

import numpy as np

from tiny.at import At
from tiny.threefry import uniform
from tiny.trace import MEANING, SHAPES, Tracer, Type, bind, type_of


def primitive(name, meaning, shape):
    MEANING[name], SHAPES[name] = meaning, shape


def without(shape, axes):
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def spread(x, shape, broadcast_dimensions):
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, np.shape(x)):
        sizes[axis] = size
    return np.broadcast_to(np.reshape(x, sizes), shape)


def numbers_from(key, shape):
    if key.ndim > 1:
        return np.stack([numbers_from(row, shape) for row in key])
    return uniform(key, int(np.prod(shape))).reshape(shape)


def dot_spelled(x, y, dimension_numbers):
    """np.einsum's axis numbers: shared ones are multiplied, batch ones come first."""
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    of_x = list(range(len(x)))
    of_y = list(range(len(x), len(x) + len(y)))
    for i, j in zip([*over_x, *batch_x], [*over_y, *batch_y]):
        of_y[j] = of_x[i]
    out = [of_x[i] for i in batch_x]
    out += [i for i in without(of_x, {*over_x, *batch_x})]
    return of_x, of_y, out + list(without(of_y, {*over_y, *batch_y}))


def dot_meaning(x, y, dimension_numbers):
    of_x, of_y, out = dot_spelled(np.shape(x), np.shape(y), dimension_numbers)
    return np.einsum(x, of_x, y, of_y, out, optimize=True)


def dot_type(x, y, dimension_numbers):
    of_x, of_y, out = dot_spelled(x.shape, y.shape, dimension_numbers)
    sizes = dict(zip(of_x + of_y, x.shape + y.shape))
    return Type(tuple(sizes[i] for i in out), x.dtype)


primitive("max", np.maximum, SHAPES["add"])
primitive("add_any", np.add, SHAPES["add"])
primitive("stop_gradient", lambda x: x, lambda x: x)
primitive("dot_general", dot_meaning, dot_type)
primitive(
    "select_n",
    lambda which, no, yes: np.where(which, yes, no),
    lambda which, no, yes: SHAPES["add"](no, yes, Type(which.shape, no.dtype)),
)
primitive(
    "reduce_sum",
    lambda x, axes: np.sum(x, axes),
    lambda x, axes: Type(without(x.shape, axes), x.dtype),
)
primitive(
    "reduce_max",
    lambda x, axes: np.max(x, axes),
    lambda x, axes: Type(without(x.shape, axes), x.dtype),
)
primitive(
    "broadcast_in_dim",
    spread,
    lambda x, shape, broadcast_dimensions: Type(shape, x.dtype),
)
primitive(
    "transpose",
    lambda x, permutation: np.transpose(x, permutation),
    lambda x, permutation: Type(tuple(x.shape[i] for i in permutation), x.dtype),
)
primitive("reshape", np.reshape, lambda x, shape: Type(shape, x.dtype))
primitive(
    "take",
    lambda x, index: np.asarray(x)[index],
    lambda x, index: Type(np.empty(x.shape)[index].shape, x.dtype),
)
primitive(
    "put",
    lambda x, index, shape: At(np.zeros(shape)).__getitem__(index).add(x),
    lambda x, index, shape: Type(shape, x.dtype),
)
primitive(
    "random_uniform",
    lambda key, shape: numbers_from(np.asarray(key), shape),
    lambda key, shape: Type((*key.shape[:-1], *shape), "f32"),
)

log, exp, sin, cos = (partial(bind, name) for name in ("log", "exp", "sin", "cos"))
tanh, sqrt, maximum = (partial(bind, name) for name in ("tanh", "sqrt", "max"))
stop_gradient = partial(bind, "stop_gradient")


def axes_of(x, axis):
    count = len(type_of(x).shape)
    axes = range(count) if axis is None else np.atleast_1d(axis)
    return tuple(int(i) % count for i in axes)


def sum(x, axis=None):
    return bind("reduce_sum", x, axes=axes_of(x, axis))


def max(x, axis=None):
    return bind("reduce_max", x, axes=axes_of(x, axis))


def where(which, yes, no):
    return bind("select_n", which, no, yes)


def broadcast(x, shape, dimensions=()):
    return bind("broadcast_in_dim", x, shape=shape, broadcast_dimensions=dimensions)


def reshape(x, *shape):
    sizes = np.empty(type_of(x).shape).reshape(shape).shape
    return bind("reshape", x, shape=sizes)


def transpose(x, permutation=None):
    backwards = range(len(type_of(x).shape))[::-1]
    order = tuple(backwards if permutation is None else permutation)
    if order == tuple(range(len(order))):
        return x
    return bind("transpose", x, permutation=order)


def dot(x, y):
    """The matrix product: the last axis of x meets the last but one of y."""
    last = len(type_of(x).shape) - 1
    other = len(type_of(y).shape) - 2
    numbers = (([last], [builtins.max(other, 0)]), ([], []))
    return bind("dot_general", x, y, dimension_numbers=numbers)


Tracer.__matmul__ = dot
Tracer.__rmatmul__ = lambda self, other: dot(other, self)
Tracer.__getitem__ = lambda self, index: bind("take", self, index=index)
Tracer.T = property(transpose)
