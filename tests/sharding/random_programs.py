"""Random programs on random meshes, with random specs: the cases.

    MINIJAX_RANDOM_SHARDED=1000 makes so many of them

Each is made from its number alone: a mesh, arrays cut in random ways, and a few
operations, compiled in both libraries; every fourth is differentiated, and every fifth
runs by `shard_map` with a collective. Those of `TYPED` tell the types of all values on
meshes of Explicit axes, or of both kinds; the `mixed` ones are `shard_map`s in each
other.
"""

from __future__ import annotations

import functools
import os

import numpy as np

_USUAL = "1000" if os.environ.get("MINIJAX_TEST_ALL") else "40"
COUNT = int(os.environ.get("MINIJAX_RANDOM_SHARDED", _USUAL))
MESHES = [
    ((4, 2), "xy"),
    ((2, 4), "xy"),
    ((8,), "x"),
    ((2, 2, 2), "xyz"),
    ((2, 3), "xy"),
    ((1, 4), "xy"),
    ((4, 1, 2), "xyz"),
]


def _spec(rng, names, rank):
    """Random parts for `rank` dimensions; each mesh axis is used at most once."""
    parts = [[] for _ in range(rank)]
    for name in rng.permutation(list(names)):
        at = rng.integers(0, rank + 1)
        if at < rank:
            parts[at].append(str(name))
    return [tuple(part) or None for part in parts]


def _plan(rng):
    """Operations by name, with what they need; each keeps the array 24 x 24."""
    names = [
        *(
            "sin",
            "scale",
            "add",
            "multiply",
            "matmul",
            "transpose",
            "centre",
            "softmax",
        ),
        *("constrain", "rows", "where", "cumsum", "flip", "reshape", "concatenate"),
        *("outer", "scan", "largest"),
    ]
    return [str(rng.choice(names)) for _ in range(rng.integers(2, 6))]


def _apply(lib, name, x, w, place):
    jnp, lax = lib.jnp, lib.lax
    if name == "sin":
        return jnp.sin(x)
    if name == "scale":
        return x * 0.5 + 1.0
    if name == "add":
        return x + w
    if name == "multiply":
        return x * jnp.tanh(w)
    if name == "matmul":
        return x @ w / 24.0
    if name == "transpose":
        return x.T
    if name == "centre":
        return x - x.mean(0)
    if name == "softmax":
        return lib.mj.nn.softmax(x, axis=1)
    if name == "constrain":
        return lax.with_sharding_constraint(x, place)
    if name == "rows":
        return jnp.concatenate([x[12:], x[:12]], 0)
    if name == "where":
        return jnp.where(x > 0, x, 0.1 * w)
    if name == "cumsum":
        return jnp.cumsum(x, 1) / 24.0
    if name == "flip":
        return x[::-1]
    if name == "reshape":
        return x.reshape(6, 4, 24).sum(1).repeat(4, 0)
    if name == "concatenate":
        return jnp.concatenate([x[:, :8], w[:, 8:]], 1)
    if name == "outer":
        return x.sum(0)[:, None] * w.sum(1)[None, :] / 24.0
    if name == "scan":
        return lax.scan(lambda c, row: (c + row, c), w[0], x)[1]
    return x + x.max(0, keepdims=True)


def _automatic(lib, seed):
    rng = np.random.default_rng(seed)
    sizes, names = MESHES[rng.integers(len(MESHES))]
    mesh = _mesh(lib, sizes, names)
    plan = _plan(rng)
    x = lib.put(lib.numbers(24, 24), *_spec(rng, names, 2), mesh=mesh)
    w = lib.put(lib.numbers(24, 24)[::-1].copy(), *_spec(rng, names, 2), mesh=mesh)
    place = lib.on(*_spec(rng, names, 2), mesh=mesh)

    def program(x, w):
        for name in plan:
            x = _apply(lib, name, x, w, place)
        return x

    function = program
    if seed % 4 == 0:
        function = lib.mj.grad(lambda x, w: (program(x, w) ** 2).mean(), (0, 1))
    return lib.mj.jit(function)(x, w)


def _typed(lib, seed):
    """The same on a mesh in use whose axes are Explicit, or some of them."""
    rng = np.random.default_rng(seed)
    sizes, names = MESHES[rng.integers(len(MESHES))]
    kinds = [lib.explicit if rng.random() < 0.7 else lib.auto for _ in names]
    mesh = _mesh(lib, sizes, names, tuple(kinds))
    plan = [name for name in _plan(rng) if name != "constrain"]
    x = lib.put(lib.numbers(24, 24), *_spec(rng, names, 2), mesh=mesh)
    w = lib.put(lib.numbers(24, 24)[::-1].copy(), *_spec(rng, names, 2), mesh=mesh)
    types = []

    def program(x, w):
        for name in plan:
            x = _apply(lib, name, x, w, None)
            types.append(str(lib.mj.typeof(x)))
        return x

    function = program
    if seed % 4 == 0:
        function = lib.mj.grad(lambda x, w: (program(x, w) ** 2).mean(), (0, 1))
    with lib.mj.set_mesh(mesh):
        found = lib.mj.jit(function)(x, w)
        leaves = lib.mj.tree_util.tree_leaves(found)
        return [found, *types, *(str(lib.mj.typeof(leaf)) for leaf in leaves)]


def _mesh(lib, sizes, names, kinds=None):
    count = int(np.prod(sizes))
    devices = np.array(lib.mj.devices()[:count]).reshape(sizes)
    return lib.sharding.Mesh(devices, tuple(names), axis_types=kinds)


def _manual(lib, seed):
    rng = np.random.default_rng(seed)
    sizes, names = MESHES[rng.integers(len(MESHES))]
    mesh = _mesh(lib, sizes, names)
    axis = str(rng.choice(list(names)))
    size = dict(zip(names, sizes))[axis]
    which = rng.integers(0, 6)
    shift = int(rng.integers(1, size)) if size > 1 else 0
    lax, jnp = lib.lax, lib.jnp

    def body(part):
        part = jnp.sin(part)
        if which == 0:
            return part * lax.psum(part, axis)
        if which == 1:
            return part - lax.pmax(part, axis)
        if which == 2:
            pairs = [(i, (i + shift) % size) for i in range(size)]
            return lax.ppermute(part, axis, pairs) + part
        if which == 3:
            return lax.all_gather(part, axis).sum(0) * part
        if which == 4:
            return lax.psum_scatter(jnp.concatenate([part] * size, 0), axis, tiled=True)
        return part * (lax.axis_index(axis) + 1).astype(part.dtype)

    # pmax has no derivative in jax.
    spec = lib.P(tuple(names))
    function = lib.mj.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)
    if seed % 2 and which != 1:
        inner = function
        function = lib.mj.grad(lambda x: (inner(x) ** 2).sum())
    return lib.mj.jit(function)(lib.numbers(24, 4))


def _mixed(lib, seed):
    """`shard_map`s in each other, over axes of a mesh of Auto and Explicit ones."""
    rng = np.random.default_rng(seed)
    lax, jnp, P = lib.lax, lib.jnp, lib.P
    kinds = tuple(lib.explicit if rng.random() < 0.5 else lib.auto for _ in "xyz")
    mesh = _mesh(lib, (2, 2, 2), "xyz", kinds)
    types = []

    def mapped(free, depth):
        axes = [name for name in sorted(free) if rng.random() < 0.6]
        axes = axes or [str(rng.choice(sorted(free)))]
        ins, which = _spec(rng, axes, 2), rng.integers(0, 5)
        named = [name for part in ins for name in part or ()]
        summed = [n for n in named if rng.random() < 0.4] if which == 0 else []
        outs = [tuple(n for n in part or () if n not in summed) or None for part in ins]
        rest = free - {*axes}
        inner = mapped(rest, depth - 1) if rest and depth else None

        def body(part):
            if which == 0 and summed:
                part = lax.psum(part, tuple(summed))
            elif which == 1:
                part = jnp.sin(part)
            elif which == 2:
                part = part * (part.sum(0) + 1.0)
            elif which == 3:
                part = jnp.flip(part, 1) + 1.0
            if inner is not None:
                part = inner(part)
            types.append(str(lib.mj.typeof(part)))
            return jnp.cos(part)

        return lib.mj.shard_map(
            body, in_specs=P(*ins), out_specs=P(*outs), axis_names={*axes}
        )

    spec, function = _spec(rng, "xyz", 2), mapped({*"xyz"}, 2)
    x = lib.put(lib.numbers(16, 16), *spec, mesh=mesh)
    with lib.mj.set_mesh(mesh):
        found = lib.mj.jit(function)(x)
        return [found, *types, str(lib.mj.typeof(found))]


TYPED = {
    f"typed {seed}": functools.partial(_typed, seed=seed)
    for seed in (*range(min(COUNT // 2, 120)), 5339)  # whose type decides, of Auto axes
}
TYPED |= {
    f"mixed {seed}": functools.partial(_mixed, seed=seed)
    for seed in range(min(COUNT // 2, 300))
}
CASES = TYPED | {
    f"program {seed}": functools.partial(
        _manual if seed % 5 == 0 else _automatic, seed=seed
    )
    for seed in range(COUNT)
}
