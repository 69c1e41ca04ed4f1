"""What types tell of a mesh, `typeof(x).sharding` and `.manual_axis_type`: cases."""

from __future__ import annotations

import contextlib
import copy
import pickle

import numpy as np

CASES = {}


def case(function):
    """Adds a case under its name."""
    CASES[function.__name__] = function
    return function


def told(lib, *values):
    """The shardings of the types of values, and over which axes they vary."""
    types = [lib.mj.typeof(value) for value in values]
    return [f"{one.sharding} {one.manual_axis_type}" for one in types]


def inside(lib, transform, *args):
    """What types tell in a function that `transform` runs."""
    found = []

    def function(x):
        found.extend(told(lib, x, x + 1, x.sum(), lib.jnp.ones((3, 2))))
        return x.sum()

    transform(function)(*args)
    return found


@case
def no_mesh(lib):
    jnp = lib.jnp
    values = [jnp.ones((2, 3)), jnp.float32(1), 1.0, True, np.ones(3), np.float32(2)]
    return told(lib, *values, lib.mj.random.key(0), lib.mj.new_ref(1.0))


@case
def no_mesh_traced(lib):
    found = inside(lib, lib.mj.jit, lib.jnp.ones((3, 2)))
    found += inside(lib, lib.mj.grad, lib.jnp.ones((3, 2)))
    return found + inside(lib, lib.mj.vmap, lib.jnp.ones((3, 2)))


@case
def no_mesh_in_programs(lib):
    jaxpr = lib.mj.make_jaxpr(lambda x: x[:2] + 1)(lib.jnp.ones((4, 4)))
    own = lib.mj.core.ShapedArray((2, 3), np.dtype("float32"))
    return [str(aval.sharding) for aval in (*jaxpr.in_avals, *jaxpr.out_avals, own)]


@case
def structs(lib):
    shown = lib.mj.eval_shape(lambda x: x + 1, lib.jnp.ones(3))
    return [str(lib.mj.ShapeDtypeStruct((2,), "f4").sharding), str(shown.sharding)]


@case
def tracers_have_none(lib):
    return lib.mj.jit(lambda x: x.sharding)(1.0)


@case
def other_names(lib):
    return lib.mj.typeof(1.0).shardings


@case
def auto_mesh(lib):
    with lib.mj.set_mesh(lib.mesh):
        found = inside(lib, lib.mj.jit, lib.put(lib.numbers(8, 2), "x"))
        return found + inside(lib, lib.mj.vmap, lib.put(lib.numbers(8, 2), "x"))


@case
def explicit_mesh(lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    cut = lib.put(lib.numbers(8, 2), "x", mesh=mesh)
    found = told(lib, cut, cut + 1, cut.T)
    with lib.mj.set_mesh(mesh):
        whole = lib.put(lib.numbers(8, 2), mesh=mesh)
        for x in (cut, whole, lib.jnp.ones((8, 2))):
            found += told(lib, x, x.T, x.sum(), x + 1)
            for transform in (lib.mj.jit, lib.mj.grad, lib.mj.vmap):
                found += inside(lib, transform, x)
    return found


@case
def mixed_mesh(lib):
    kinds = (lib.explicit, lib.AxisType.Auto)
    mesh = lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
    x = lib.put(lib.numbers(8, 2), "x", "y", mesh=mesh)
    with lib.mj.set_mesh(mesh):
        return told(lib, x, x + 1, x.sum()) + inside(lib, lib.mj.jit, x)


def _manual(lib, mesh, **options):
    found = []
    x = lib.put(lib.numbers(8, 2), "x", mesh=mesh)

    def body(x):
        found.extend(told(lib, x, x.sum(), lib.jnp.ones(3), lib.lax.psum(x, "x")))
        return x

    mapped = lib.mj.shard_map(
        body, in_specs=lib.P("x"), out_specs=lib.P("x"), **options
    )
    mapped(x)
    lib.mj.jit(mapped)(x)
    return found


@case
def in_shard_map(lib):
    found = []
    for kind in (lib.AxisType.Auto, lib.explicit):
        mesh = lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
        found += _manual(lib, mesh, mesh=mesh)
        with lib.mj.set_mesh(mesh):
            found += _manual(lib, mesh) + _manual(lib, mesh, axis_names={"x"})
    return found


@case
def manual_axis_types(lib):
    kind = lib.sharding.ManualAxisType
    x, y = frozenset("x"), frozenset("y")
    one = kind(varying=x, unreduced=y)
    return [
        *(str(kind()), str(one), str(kind(reduced=y))),
        str(one is kind(unreduced=y, varying=x)),
        str(kind() is kind(varying=frozenset())),
        str(pickle.loads(pickle.dumps(one)) is one),
        str(copy.deepcopy(one) is one),
        str(one == kind(varying=x)),
        str(lib.mj.typeof(1.0).manual_axis_type is kind()),
    ]


def _structs(lib, kind):
    """What structs tell and take, inside of a `shard_map`, as texts."""
    found = []
    lax, mj, struct = lib.lax, lib.mj, lib.mj.ShapeDtypeStruct
    mesh = lib.make_mesh((4, 2), "xy", kind)

    def same(x):
        return x

    def body(part):
        addends = lax.pcast(part, "x", to="unreduced")
        for value in (part, addends, lax.psum(part, "x"), lib.jnp.ones(3)):
            one = struct.like(value)
            found.extend([one, one.manual_axis_type, one.update(dtype="int32")])
            found.extend([one == struct(one.shape, one.dtype), one == one.update()])
            found.append(mj.eval_shape(same, value))
            found.append(mj.eval_shape(same, one))
            found.append(mj.jit(same).eval_shape(value))
            found.append(mj.make_jaxpr(same)(one))
        varying = struct.like(part)
        found.append(mj.eval_shape(lambda q: (q, lax.psum(q, "x")), varying))
        found.append(mj.make_jaxpr(lambda q: q + part)(varying))
        found.append(mj.typeof(lib.jnp.ones_like(varying)))
        return part

    with lib.mj.set_mesh(mesh):
        mapped = lib.mj.shard_map(body, in_specs=lib.P("x"), out_specs=lib.P("x"))
        lib.mj.jit(mapped)(lib.put(lib.numbers(8, 2), "x", mesh=mesh))
    return list(map(str, found))


@case
def structs_in_shard_map(lib):
    return _structs(lib, lib.auto) + _structs(lib, lib.explicit)


@case
def structs_of_varying_values(lib):
    kind = lib.sharding.ManualAxisType
    one = lib.mj.ShapeDtypeStruct(
        (2,), "float32", manual_axis_type=kind(varying=frozenset("x"))
    )
    other = one.update(manual_axis_type=kind())
    found = [one, other, one.update(shape=(3,)), one.update(manual_axis_type=None)]
    found += [one == other, hash(one) == hash(other), one == one.update()]
    return list(map(str, found))


@case
def structs_of_no_manual_type(lib):
    return lib.mj.ShapeDtypeStruct((2,), "float32", manual_axis_type=frozenset("x"))


@case
def manual_axis_twice(lib):
    return lib.sharding.ManualAxisType(varying=frozenset("x"), reduced=frozenset("x"))


@case
def manual_axes_are_fixed(lib):
    try:
        lib.sharding.ManualAxisType().varying = frozenset("x")
    except AttributeError as error:
        return [str(error)]


# ----------------------------------------------------------------------------------
# with_sharding_constraint, by the mesh in use, that of the sharding, and the spec
# ----------------------------------------------------------------------------------


def _constrained(lib, used, named, spec, traced):
    auto = lib.AxisType.Auto
    kinds = {"auto": (auto, auto), "mixed": (lib.explicit, auto)}
    kinds["explicit"] = (lib.explicit, lib.explicit)
    meshes = {
        name: lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=types)
        for name, types in kinds.items()
    }
    place = lib.on(*spec, mesh=meshes[named])

    def function(x):
        return lib.lax.with_sharding_constraint(x, place)

    none = contextlib.nullcontext()
    with none if used == "none" else lib.mj.set_mesh(meshes[used]):
        x = lib.jnp.asarray(lib.numbers(8, 2))
        result = (lib.mj.jit(function) if traced else function)(x)
        # Where nothing is cut, who has the copies is left open (see the test file).
        return result if any(spec) else [str(lib.mj.typeof(result)), np.asarray(result)]


for _used in ("none", "auto", "explicit", "mixed"):
    for _named in ("auto", "explicit", "mixed"):
        for _spec in ((), ("x",), (None, "y")):
            for _traced in (False, True):
                _key = "_".join([_used, _named, *map(str, _spec), str(_traced)])
                CASES[f"constraint_{_key}"] = (
                    lambda lib, given=(_used, _named, _spec, _traced): _constrained(
                        lib, *given
                    )
                )
