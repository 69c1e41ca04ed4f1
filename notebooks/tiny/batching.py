"""tiny, a toy over NumPy. This piece: vmap, one axis more for each value."""

from functools import partial
from typing import NamedTuple

from tiny.operations import broadcast, reshape, transpose, without
from tiny.trace import MEANING, Type, bind, evaluate, trace, type_of
from tiny.tree import flatten, unflatten

BATCHING = {}


class Batched(NamedTuple):
    """A value, and which of its axes goes over the examples; None if it has none."""

    value: object
    axis: int | None = None


def rank(x):
    return len(type_of(x).shape)


def move(x, source, target):
    """The array with one axis in another place."""
    order = list(without(range(rank(x)), [source]))
    order.insert(target % rank(x), source)
    return transpose(x, order)


def to_front(x, size=None):
    """The value with its examples along axis 0; repeated, if a size is asked for."""
    if x.axis is not None:
        return move(x.value, x.axis, 0)
    shape = type_of(x.value).shape
    if size is None:
        return x.value
    return broadcast(x.value, (size, *shape), tuple(range(1, len(shape) + 1)))


def size_of(*operands):
    """How many examples there are: the same number in all operands that have any."""
    sizes = {type_of(x.value).shape[x.axis] for x in operands if x.axis is not None}
    if len(sizes) != 1:
        raise ValueError(f"vmap needs one number of examples, and got {sorted(sizes)}")
    return sizes.pop()


def entries_of_many(primitive, *operands, **params):
    """Entry by entry: the axis may stay where it is, if it is the same for all."""
    batched = {(type_of(x.value).shape, x.axis) for x in operands if rank(x.value)}
    if len(batched) == 1:
        ((_, axis),) = batched
        return Batched(bind(primitive, *(x.value for x in operands), **params), axis)
    most = max(rank(x.value) - (x.axis is not None) for x in operands)
    fitted = []
    for x in operands:
        value = to_front(x)
        shape = type_of(value).shape
        missing = most + 1 - len(shape)
        if x.axis is not None and missing:
            value = reshape(value, shape[0], *[1] * missing, *shape[1:])
        fitted.append(value)
    return Batched(bind(primitive, *fitted, **params), 0)


def rule(primitive):
    """For rules of one operand: `rule(x, axis, **params)`, told where the axis is."""

    def keep(function):
        BATCHING[primitive] = lambda x, **params: function(x.value, x.axis, **params)

    return keep


def past(axis, axes):
    """Axes of one example as axes of many: those from `axis` on come one later."""
    return tuple(int(i + (i >= axis)) for i in axes)


def reduced(primitive):
    def of_many(x, axis, axes):
        over = past(axis, axes)
        return Batched(
            bind(primitive, x, axes=over), axis - sum(i < axis for i in over)
        )

    rule(primitive)(of_many)


reduced("reduce_sum")
reduced("reduce_max")


@rule("broadcast_in_dim")
def broadcast_many(x, axis, shape, broadcast_dimensions):
    x = move(x, axis, 0)
    kept = (0, *(i + 1 for i in broadcast_dimensions))
    return Batched(broadcast(x, (type_of(x).shape[0], *shape), kept), 0)


@rule("transpose")
def transpose_many(x, axis, permutation):
    return Batched(transpose(x, (axis, *past(axis, permutation))), 0)


@rule("reshape")
def reshape_many(x, axis, shape):
    x = move(x, axis, 0)
    return Batched(reshape(x, type_of(x).shape[0], *shape), 0)


def inside(index):
    return slice(None), *(index if isinstance(index, tuple) else (index,))


@rule("take")
def take_many(x, axis, index):
    return Batched(bind("take", move(x, axis, 0), index=inside(index)), 0)


@rule("put")
def put_many(x, axis, index, shape):
    x = move(x, axis, 0)
    shape = (type_of(x).shape[0], *shape)
    return Batched(bind("put", x, index=inside(index), shape=shape), 0)


def dot_of_many(x, y, dimension_numbers):
    """The product for many examples, in which x, y or both are batched."""
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    if x.axis is not None:
        over_x, batch_x = past(x.axis, over_x), past(x.axis, batch_x)
    if y.axis is not None:
        over_y, batch_y = past(y.axis, over_y), past(y.axis, batch_y)
    if x.axis is not None and y.axis is not None:
        axis, batch_x, batch_y = 0, (x.axis, *batch_x), (y.axis, *batch_y)
    elif x.axis is not None:
        kept = without(range(rank(x.value)), {*over_x, *batch_x})
        axis = len(batch_x) + kept.index(x.axis)
    else:
        kept = without(range(rank(y.value)), {*over_y, *batch_y})
        axis = rank(x.value) - len(over_x) + kept.index(y.axis)
    numbers = ((list(over_x), list(over_y)), (list(batch_x), list(batch_y)))
    return Batched(
        bind("dot_general", x.value, y.value, dimension_numbers=numbers), axis
    )


@rule("random_uniform")
def uniform_of_many(keys, axis, shape):
    return Batched(bind("random_uniform", move(keys, axis, 0), shape=shape), 0)


BATCHING["dot_general"] = dot_of_many
for name in MEANING:
    BATCHING.setdefault(name, partial(entries_of_many, name))


class Many(dict):
    """The table of vmap: BATCHING, where an operand is batched; else as before."""

    def __missing__(self, primitive):
        def of_many(*operands, **params):
            if any(x.axis is not None for x in operands):
                return BATCHING[primitive](*operands, **params)
            found = bind(primitive, *(x.value for x in operands), **params)
            several = isinstance(found, list)
            return [*map(Batched, found)] if several else Batched(found)

        return of_many


def place(x, axis):
    """The axis, counted from the front."""
    return None if axis is None else axis % rank(x)


def example(x, axis):
    """The type of one example."""
    shape, dtype = type_of(x)
    return Type(shape if axis is None else without(shape, [place(x, axis)]), dtype)


def vmap(function, in_axes=0, out_axes=0):
    """The function for many examples; `in_axes`: an axis or None for each argument."""

    def of_many(*args):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        operands, one = [], []
        for arg, axis in zip(args, axes, strict=True):
            leaves, structure = flatten(arg)
            operands += [Batched(leaf, place(leaf, axis)) for leaf in leaves]
            one.append(unflatten(structure, [example(leaf, axis) for leaf in leaves]))
        size = size_of(*operands)
        program = trace(function, *one)
        results = evaluate(program, Many(), operands, outside=Batched)
        outs = [move(to_front(x, size), 0, out_axes) for x in results]
        return unflatten(program.tree, outs)

    return of_many
