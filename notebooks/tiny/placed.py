"""tiny, a toy over NumPy. This piece: an array cut over a mesh of devices."""

from itertools import product
from math import prod

import numpy as np


def places(mesh):
    """Where the devices stand: an index along each axis of the mesh."""
    return [dict(zip(mesh, at)) for at in product(*map(range, mesh.values()))]


def names_of(part):
    """The mesh axes that cut one dimension: none, one, or several."""
    if part is None:
        return ()
    return part if isinstance(part, tuple) else (part,)


def slices(mesh, spec, shape):
    """For each device the slices of its piece, one for each dimension."""
    spec = [*spec, *[None] * (len(shape) - len(spec))]
    found = []
    for place in places(mesh):
        piece = []
        for size, part in zip(shape, spec):
            number, count = 0, 1
            for name in names_of(part):
                number = number * mesh[name] + place[name]
                count = count * mesh[name]
            if size % count:
                raise ValueError(f"{size} entries cannot be cut into {count} pieces")
            length = size // count
            piece.append(slice(number * length, (number + 1) * length))
        found.append(tuple(piece))
    return found


def cut(x, mesh, spec):
    """The piece of each device."""
    return [x[piece] for piece in slices(mesh, spec, x.shape)]


def put_together(pieces, mesh, spec, shape):
    """The whole array; where several devices have a copy, any of them will do."""
    whole = np.zeros(shape, pieces[0].dtype)
    for where, held in zip(slices(mesh, spec, shape), pieces):
        whole[where] = held
    return whole


def copies(mesh, spec):
    """How many devices hold each entry."""
    used = {name for part in spec for name in names_of(part)}
    return prod(size for name, size in mesh.items() if name not in used)


def added_up(pieces, mesh, axis):
    """Each device gets the sum of the pieces of all that differ from it in `axis`."""
    at = places(mesh)
    same = [[{**one, axis: 0} == {**other, axis: 0} for other in at] for one in at]
    return [sum(p for p, yes in zip(pieces, row) if yes) for row in same]


def spread(function, mesh, specs, args, summed=()):
    """The result of each device, which runs the function on its own pieces."""
    mine = zip(*(cut(x, mesh, spec) for x, spec in zip(args, specs)))
    results = [function(*pieces) for pieces in mine]
    for axis in summed:
        results = added_up(results, mesh, axis)
    return results
