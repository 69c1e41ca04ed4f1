"""Layouts of arguments and results, on one device and on a mesh: cases.

Each case is run on one device and on the mesh of 4x2, and gives values and the orders
in which the dimensions lie in memory.
"""

from __future__ import annotations

import functools
import importlib

import numpy as np

CASES = {}


class Kit:
    """What the cases use of a library, on one device or on a mesh."""

    def __init__(self, lib, where):
        room = importlib.import_module(f"{lib.name}.experimental.layout")
        self.lib, self.mj, self.jnp = lib, lib.mj, lib.jnp
        self.Format, self.Layout = room.Format, room.Layout
        self.keep = room.with_layout_constraint
        first = lib.sharding.SingleDeviceSharding(lib.mj.devices()[0])
        self.here = {"one": first, "mesh": lib.on("x")}[where]
        self.where = where
        self.columns, self.rows = self.format(1, 0), self.format(0, 1)
        self.auto = self.Format(self.Layout.AUTO)
        self.host = lib.numbers(8, 4)
        self.struct = lib.mj.ShapeDtypeStruct((8, 4), np.float32)

    def format(self, *order):
        return self.Format(self.Layout(order), self.here)

    @property
    def x(self):
        """An array in row-major order that is committed to its place."""
        return self.mj.device_put(self.host, self.here)

    @property
    def y(self):
        """The same in column-major order."""
        return self.mj.device_put(self.host, self.columns)

    def told(self, tree):
        """The arrays of a tree, and how each lies."""
        leaves = self.mj.tree_util.tree_leaves(tree)
        return [(leaf, order(leaf.format)) for leaf in leaves]

    def jit(self, function, *args, **options):
        return self.told(self.mj.jit(function, **options)(*args))

    def compiled(self, function, *args, **options):
        return self.mj.jit(function, **options).lower(*args).compile()

    def formats(self, function, *args, **options):
        """How arguments and results of a compiled program lie."""
        compiled = self.compiled(function, *args, **options)
        both = compiled.input_formats, compiled.output_formats
        leaves = self.mj.tree_util.tree_leaves(
            both, is_leaf=lambda leaf: isinstance(leaf, self.Format)
        )
        return [order(leaf) for leaf in leaves]


def order(place):
    return str(getattr(place.layout, "major_to_minor", place.layout))


def plus(x):
    return x + 1


def turned(x):
    return x.T * 2


def _run(program, where, lib):
    return program(Kit(lib, where))


def _cases(**programs):
    for name, program in programs.items():
        for where in ("one", "mesh"):
            CASES[f"{name}_{where}"] = functools.partial(_run, program, where)


def _donated(kit, x):
    options = {"in_shardings": kit.columns, "out_shardings": kit.columns}
    if kit.where == "mesh":
        options = {}
    return kit.jit(plus, x, donate_argnums=0, **options), x.is_deleted()


def _serialized(kit):
    path = f"{kit.lib.name}.experimental.serialize_executable"
    room = importlib.import_module(path)
    options = {"in_shardings": kit.columns, "out_shardings": kit.columns}
    compiled = kit.compiled(turned, kit.struct, **options)
    if kit.where == "mesh":
        options["out_shardings"] = kit.Format(kit.columns.layout, kit.lib.on(None, "x"))
        compiled = kit.compiled(turned, kit.struct, **options)
    where = sorted(kit.here.device_set, key=lambda device: device.id)
    kept = room.serialize(compiled)
    again = room.deserialize_and_load(*kept, execution_devices=where)
    return kit.told([again(kit.y), again(kit.host)])


def _exported(kit):
    options = {"in_shardings": kit.columns, "out_shardings": kit.columns}
    room = importlib.import_module(f"{kit.lib.name}.export")
    exported = room.export(kit.mj.jit(plus, **options))(kit.struct)
    return kit.told([exported.call(kit.x), exported.call(kit.y)])


def _ref(kit):
    ref = kit.mj.new_ref(kit.y)
    ref[1] = 2.0
    return kit.told([ref[...], kit.mj.jit(lambda r: r[...] * 2)(ref)])


def _constant(kit):
    y = kit.y
    return kit.told(
        [kit.mj.jit(lambda x: x + y)(kit.host), kit.mj.jit(lambda: y @ y.T)()]
    )


def _mapped(kit):
    spec, mesh = kit.lib.P("x"), kit.lib.mesh
    options = {"mesh": mesh, "in_specs": spec, "out_specs": spec}
    cut = kit.Format(kit.columns.layout, kit.lib.on("x"))
    return kit.told(
        kit.mj.shard_map(turned, **options)(kit.mj.device_put(kit.host, cut))
    )


def _keys(kit):
    bits = np.arange(16, dtype=np.uint32).reshape(8, 2)
    key = kit.lib.random.wrap_key_data(kit.mj.device_put(bits, kit.columns))
    return kit.lib.random.key_data(key), kit.mj.vmap(kit.lib.random.bits)(key)


def _of_parts(kit):
    parts = [shard.data for shard in kit.y.addressable_shards]
    make = kit.mj.make_array_from_single_device_arrays
    return kit.told([*parts[:1], make((8, 4), kit.here, parts) + 0])


def _chain(kit, length=3):
    """A result in an order of its own is the next call's argument."""
    options = {"out_shardings": kit.columns}
    x = kit.x
    for _ in range(length):
        x = kit.mj.jit(plus, **options)(x)
    return kit.told(x)


_cases(
    put=lambda k: k.told(k.y),
    put_back=lambda k: k.told([k.mj.device_put(k.y, k.rows), k.mj.device_put(k.y)]),
    put_where_it_is=lambda k: k.told(k.mj.device_put(k.y, k.here)),
    put_without_layout=lambda k: k.told(k.mj.device_put(k.y, k.Format(None, k.here))),
    put_tree=lambda k: k.told(k.mj.device_put([k.host, k.x], [k.columns, k.here])),
    put_auto=lambda k: k.mj.device_put(k.host, k.auto),
    put_layout_alone=lambda k: k.mj.device_put(k.host, k.Layout((1, 0))),
    put_rank=lambda k: k.mj.device_put(k.host, k.format(0)),
    put_integers=lambda k: k.told(k.mj.device_put(np.ones((8, 3), np.int8), k.columns)),
    orders=lambda k: k.told(
        [
            k.mj.device_put(k.lib.numbers(8, 2, 3), k.format(*order))
            for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        ]
    ),
    read=lambda k: [np.asarray(k.y), k.y.tolist()[3], repr(k.y), float(k.y[1, 2])],
    eager=lambda k: k.told(
        [k.y + 1, k.y.T, k.y @ k.x.T, k.y[2], k.y.sum(0), k.y + k.x]
    ),
    eager_numpy=lambda k: k.told(
        [
            k.jnp.sort(k.y, 0),
            k.jnp.concatenate([k.y, k.x]),
            k.jnp.where(k.y > 0, k.y, 0),
        ]
    ),
    eager_more=lambda k: k.told([k.y.at[1].set(0), k.y.reshape(-1), k.jnp.cumsum(k.y)]),
    loop=lambda k: k.told(k.lib.lax.scan(lambda c, row: (c + row, c), k.y[0], k.y)),
    jit=lambda k: k.jit(turned, k.y),
    jit_itself=lambda k: k.jit(lambda x: x, k.y),
    jit_two=lambda k: k.jit(lambda x, y: (x @ y.T, y), k.y, k.x),
    jit_unused=lambda k: k.jit(lambda x, y: y + 1, k.y, k.x),
    jit_in=lambda k: k.jit(turned, k.host, in_shardings=k.columns),
    jit_in_put=lambda k: k.jit(turned, k.y, in_shardings=k.columns),
    jit_in_unlike=lambda k: k.jit(turned, k.x, in_shardings=k.columns),
    jit_in_rows_unlike=lambda k: k.jit(turned, k.y, in_shardings=k.rows),
    jit_in_auto=lambda k: k.jit(turned, k.host, in_shardings=k.auto),
    jit_in_auto_put=lambda k: k.jit(turned, k.y, in_shardings=k.auto),
    jit_out=lambda k: k.jit(plus, k.x, out_shardings=k.columns),
    jit_out_rows=lambda k: k.jit(plus, k.y, out_shardings=k.rows),
    jit_out_auto=lambda k: k.jit(plus, k.x, out_shardings=k.auto),
    jit_tree=lambda k: k.jit(
        lambda d, z: {"a": d["b"] + z, "c": z * 2},
        {"b": k.host},
        k.host,
        in_shardings=({"b": k.columns}, None),
        out_shardings={"a": k.columns, "c": k.rows},
    ),
    jit_rank=lambda k: k.jit(plus, k.x, out_shardings=k.format(0, 1, 2)),
    jit_in_rank=lambda k: k.jit(plus, k.host, in_shardings=k.format(0)),
    jit_layout_alone=lambda k: k.mj.jit(plus, in_shardings=k.Layout((1, 0))),
    jit_auto_alone=lambda k: k.mj.jit(plus, out_shardings=k.Layout.AUTO),
    jaxpr=lambda k: str(
        k.mj.make_jaxpr(k.mj.jit(plus, in_shardings=k.auto, out_shardings=k.auto))(k.x)
    ),
    formats=lambda k: [
        k.formats(plus, k.struct, in_shardings=ins, out_shardings=outs)
        for ins in (k.columns, k.auto, k.rows, k.here, None)
        for outs in (k.columns, k.auto, k.rows, None)
    ],
    formats_of_arguments=lambda k: [
        k.formats(plus, k.y),
        k.formats(plus, k.y, in_shardings=k.here),
        k.formats(plus, k.mj.ShapeDtypeStruct((8, 4), "float32", sharding=k.columns)),
    ],
    formats_of_unlike=lambda k: k.formats(plus, k.y, in_shardings=k.rows),
    formats_of_auto=lambda k: k.formats(plus, k.y, in_shardings=k.auto),
    formats_of_struct_unlike=lambda k: k.formats(
        plus,
        k.mj.ShapeDtypeStruct((8, 4), "float32", sharding=k.columns),
        in_shardings=k.rows,
    ),
    struct_auto=lambda k: k.mj.ShapeDtypeStruct((8, 4), "float32", sharding=k.auto),
    compiled=lambda k: k.told(k.compiled(plus, k.struct, in_shardings=k.columns)(k.y)),
    compiled_free=lambda k: k.told(
        k.compiled(plus, k.struct, in_shardings=k.columns)(k.host)
    ),
    compiled_unlike=lambda k: k.compiled(plus, k.struct, in_shardings=k.columns)(k.x),
    compiled_rows_unlike=lambda k: k.compiled(plus, k.x)(k.y),
    donated=lambda k: _donated(k, k.y),
    gradient=lambda k: k.told(
        [k.mj.grad(lambda x: (x**3).sum())(k.y), k.mj.jvp(turned, (k.y,), (k.x,))]
    ),
    batch=lambda k: k.told(k.mj.vmap(lambda row: row * row.sum())(k.y)),
    batch_of_jit=lambda k: k.mj.vmap(k.mj.jit(plus, out_shardings=k.columns))(
        k.host[None]
    ),
    batch_of_nested_jit=lambda k: k.mj.vmap(
        k.mj.jit(lambda x: k.mj.jit(plus, in_shardings=k.columns)(x))
    )(k.host[None]),
    batch_of_auto=lambda k: k.mj.vmap(k.mj.jit(plus, out_shardings=k.auto))(
        k.host[None]
    ),
    put_elsewhere=lambda k: k.told(k.mj.device_put(k.y, k.mj.devices()[1])),
    nested=lambda k: k.jit(
        lambda x: k.mj.jit(turned, in_shardings=k.columns)(x) + 1, k.x
    ),
    serialized=_serialized,
    exported=_exported,
    ref=_ref,
    constant=_constant,
    mapped=_mapped,
    keys=_keys,
    chain=_chain,
    of_parts=_of_parts,
    bad_layout=lambda k: k.Format(3, k.here),
    bad_sharding=lambda k: k.Format(k.Layout((1, 0)), 3),
    no_sharding=lambda k: k.Format(k.Layout((1, 0))),
    printed=lambda k: [
        str(k.Layout([1, 0])),
        repr(k.auto),
        str(k.Format(k.Layout((0,), ((8,),)))) if k.where == "x" else str(k.Format()),
        k.Layout((1, 0)) == k.Layout((1, 0), None)
        and hash(k.columns) == hash(k.format(1, 0)),
        k.Layout((1, 0)).update(major_to_minor=(0, 1)) == k.Layout((0, 1)),
    ],
)
