"""Chapter 16: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import device_put
from minijax.sharding import PartitionSpec as P

SHAPES = {
    "embed": (32, 32),
    **dict.fromkeys(("query", "key", "value"), (32, 8, 4)),
    "join": (8, 4, 32),
    "up": (32, 64),
    "down": (64, 32),
    "read": (32, 32),
}


def rows_and_columns():
    """Device d stands at x = d // 2 and y = d % 2; y cuts the rows, x the columns."""
    found = []
    for device in range(8):
        x, y = divmod(device, 2)
        found.append(((4 * y, 4 * y + 4), (x, x + 1)))
    return found


def velocities(w):
    """Each array of zeros is put where its weight is."""
    return {name: jnp.zeros_like(p, device=p.sharding) for name, p in w.items()}


def velocities_on_one_device(w):
    """Wrong: nobody says where."""
    return {name: jnp.zeros(p.shape) for name, p in w.items()}


def velocities_as_the_first(w):
    """Wrong: all as one of them, whose cut does not fit the others."""
    place = w["embed"].sharding
    return {name: device_put(jnp.zeros(p.shape), place) for name, p in w.items()}


EVERYWHERE = P(("x", "y"))
FULLY = (EVERYWHERE, dict.fromkeys(SHAPES, EVERYWHERE))

# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "16.1": (
        "the first entry of the spec cuts the rows: which mesh axis is it?",
        "device 0 is at x=0, y=0; device 1 at x=0, y=1; device 2 at x=1, y=0.",
        "the rule above `slices`, or let your own `slices` print them.",
    ),
    "16.2": (
        "which object knows how a weight lies?",
        "`weight.sharding` is one, and functions that make arrays take `device=`.",
        "`jnp.zeros_like`: what its argument `device` may be.",
    ),
    "16.3": (
        "every weight has a dimension that eight divides.",
        "one dimension can be cut along two mesh axes.",
        'P(("x", "y")) cuts the first dimension in eight; look at `SHAPES`.',
    ),
    "16.4": (
        "a device can compute a block of the result if it has some rows of a and some "
        "columns of b.",
        "with 4 x 2 devices: how many blocks of rows, and how many of columns?",
        "cut the rows of a along one mesh axis, the columns of b along the other.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "16.1": lambda: (rows_and_columns(),),
    "16.2": lambda: (velocities,),
    "16.3": lambda: (FULLY,),
    "16.4": lambda: ((P("x"), P(None, "y")),),
}
WRONG = {
    "16.1": [lambda: ([((0, 4), (0, 1))] * 8,), lambda: ([],)],
    "16.2": [lambda: (velocities_on_one_device,), lambda: (velocities_as_the_first,)],
    "16.3": [
        lambda: ((P(), FULLY[1]),),
        lambda: ((EVERYWHERE, {**FULLY[1], "up": P("x")}),),
    ],
    "16.4": [lambda: ((EVERYWHERE, P()),), lambda: ((P(None, "y"), P("y")),)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "16.1": ["Device 1 does not have", "list of eight pairs"],
    "16.2": ["embed is cut by", "query is cut by"],
    "16.3": ["the batch: a device has", "up: a device has"],
    "16.4": ["a device holds 288 KiB", "Each device sends 262,144 B"],
}
