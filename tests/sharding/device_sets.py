"""Programs that name a device twice, or devices of more than one mesh.

Most are refused. Some of them once ended the process, or gave wrong values.
"""

from __future__ import annotations

import re

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def row(lib, ids, name="x"):
    """A mesh of one axis over the devices with these ids."""
    devices = np.array([lib.mj.devices()[at] for at in ids])
    return lib.sharding.Mesh(devices, (name,), axis_types=(lib.auto,))


def first(lib):
    return lib.Named(row(lib, [0, 1, 2, 3]), lib.P("x"))


def second(lib):
    return lib.Named(row(lib, [4, 5, 6, 7]), lib.P("x"))


def same_twice(lib):
    return lib.Named(row(lib, [0, 0]), lib.P("x"))


def parts(lib, mesh, function=lambda x: x + 1, **options):
    """`function` on the parts of an array, cut along the axis x."""
    return lib.mj.shard_map(
        function, mesh=mesh, in_specs=lib.P("x"), out_specs=lib.P("x"), **options
    )


# One device twice.


@case
def twice_is_a_mesh(lib):
    return same_twice(lib).shard_shape((8, 2))[0]


@case
def twice_device_put(lib):
    return lib.mj.device_put(lib.numbers(8), same_twice(lib))


@case
def twice_in_jit(lib):
    return lib.mj.jit(lambda x: x * 2, in_shardings=same_twice(lib))(lib.numbers(8))


@case
def twice_out_of_jit(lib):
    return lib.mj.jit(lambda x: x * 2, out_shardings=same_twice(lib))(lib.numbers(8))


@case
def twice_constraint(lib):
    constrain = lib.lax.with_sharding_constraint
    return lib.mj.jit(lambda x: constrain(x * 2, same_twice(lib)))(lib.numbers(8))


@case
def twice_shard_map(lib):
    def total(x):
        return lib.lax.psum(x, "x")

    mesh = row(lib, [0, 0])
    return lib.mj.shard_map(total, mesh=mesh, in_specs=lib.P("x"), out_specs=lib.P())(
        lib.numbers(8)
    )


@case
def twice_shard_map_in_jit(lib):
    return lib.mj.jit(parts(lib, row(lib, [0, 1, 0, 1])))(lib.numbers(8))


@case
def twice_pmap(lib):
    device = lib.mj.devices()[0]
    total = lib.mj.pmap(lambda x: lib.lax.psum(x, "i"), "i", devices=[device, device])
    return total(lib.numbers(2))


@case
def twice_pmap_among_others(lib):
    one, other = lib.mj.devices()[:2]
    return lib.mj.pmap(lambda x: x + 1, devices=[one, other, one])(lib.numbers(3))


@case
def twice_make_mesh(lib):
    devices = lib.mj.devices()[:1] * 2
    mesh = lib.mj.make_mesh((2,), ("x",), devices=devices, axis_types=(lib.auto,))
    return lib.mj.device_put(lib.numbers(8), lib.Named(mesh, lib.P("x")))


@case
def twice_from_parts(lib):
    part = lib.mj.device_put(lib.numbers(4), lib.mj.devices()[0])
    make = lib.mj.make_array_from_single_device_arrays
    return make((8,), same_twice(lib), [part, part])


@case
def twice_from_local_data(lib):
    make = lib.mj.make_array_from_process_local_data
    return make(same_twice(lib), lib.numbers(8))


def _moved(axes, *cut):
    """A pmap of an array that lies on other devices, in the parts that it takes."""

    def moved(lib):
        devices, found = np.array(lib.mj.devices()), []
        for own in (devices[3::-1], devices[4:]):
            sharding = lib.Named(lib.sharding.Mesh(own, "i"), lib.P(*cut))
            x = lib.mj.device_put(lib.numbers(4), sharding)
            add = lib.mj.pmap(lambda x, y: x + y, in_axes=(axes, 0))
            found.append(add(x, lib.numbers(4)))
        return found

    return moved


CASES["pmap of what lies elsewhere"] = _moved(0, "i")
CASES["pmap of copies elsewhere"] = _moved(None)
CASES["pmap of what one device has"] = lambda lib: lib.mj.pmap(
    lambda x, y: x + y, in_axes=(None, 0)
)(lib.mj.device_put(lib.numbers(4), lib.mj.devices()[0]), lib.numbers(4))


# A pmap or shard_map inside of another.


def nested_pmap(wrap, shape=(2, 2)):
    def program(lib):
        inner = lib.mj.pmap(lambda x: x + 1)
        return lib.mj.pmap(wrap(lib, inner))(lib.numbers(*shape))

    return program


CASES["pmap of pmap"] = nested_pmap(lambda lib, inner: inner)
CASES["pmap of pmap of one"] = nested_pmap(lambda lib, inner: inner, (1, 1))
CASES["pmap of jit of pmap"] = nested_pmap(lambda lib, inner: lib.mj.jit(inner))
CASES["pmap of vmap of pmap"] = nested_pmap(
    lambda lib, inner: lib.mj.vmap(inner), (2, 3, 2)
)
CASES["pmap of a gradient of pmap"] = nested_pmap(
    lambda lib, inner: lib.mj.grad(lambda x: (inner(x) * x).sum())
)
CASES["pmap of a loop of pmap"] = nested_pmap(
    lambda lib, inner: (
        lambda x: lib.lax.scan(lambda c, _: (inner(c), None), x, None, length=2)[0]
    )
)
CASES["vmap of pmap"] = lambda lib: lib.mj.vmap(lib.mj.pmap(lambda x: x + 1))(
    lib.numbers(3, 2)
)
CASES["pmap in a loop"] = lambda lib: lib.lax.scan(
    lambda c, _: (lib.mj.pmap(lambda x: x + 1)(c), None), lib.numbers(2), None, length=2
)[0]


@case
def pmap_of_shard_map(lib):
    return lib.mj.pmap(parts(lib, row(lib, [4, 5, 6, 7])))(lib.numbers(2, 8))


@case
def pmap_of_shard_map_on_the_same(lib):
    return lib.mj.pmap(parts(lib, row(lib, [0, 1])))(lib.numbers(2, 8))


@case
def shard_map_of_pmap(lib):
    mesh = row(lib, [0, 1, 2, 3])
    return lib.mj.jit(parts(lib, mesh, lib.mj.pmap(lambda x: x + 1)))(lib.numbers(8))


@case
def shard_map_of_pmap_eager(lib):
    mesh = row(lib, [0, 1, 2, 3])
    return parts(lib, mesh, lib.mj.pmap(lambda x: x + 1))(lib.numbers(8))


def nested_shard_map(inner_mesh, axes="b"):
    def program(lib):
        def inner(part):
            mesh = inner_mesh and inner_mesh(lib)
            return lib.mj.shard_map(
                lambda y: y + lib.lax.axis_index(axes),
                mesh=mesh,
                in_specs=lib.P(axes),
                out_specs=lib.P(axes),
                axis_names={axes},
            )(part)

        outer = lib.mj.shard_map(
            inner,
            mesh=lib.make_mesh((2, 2), "ab"),
            in_specs=lib.P("a"),
            out_specs=lib.P("a"),
            axis_names={"a"},
        )
        return np.asarray(lib.mj.jit(outer)(lib.numbers(4, 4)))

    return program


CASES["shard_map within, of the mesh around"] = nested_shard_map(None)
CASES["shard_map within, over the same axis"] = nested_shard_map(None, "a")
CASES["shard_map within, of a smaller mesh"] = nested_shard_map(
    lambda lib: row(lib, [0, 1], "b")
)
CASES["shard_map within, of a larger mesh"] = nested_shard_map(
    lambda lib: lib.make_mesh((2, 4), "ab")
)
CASES["shard_map within, of other devices"] = nested_shard_map(
    lambda lib: lib.sharding.Mesh(
        np.array(lib.mj.devices()[4:]).reshape(2, 2),
        ("a", "b"),
        axis_types=(lib.auto,) * 2,
    )
)


@case
def shard_map_under_another_set_mesh(lib):
    with lib.mj.set_mesh(lib.make_mesh((2, 2), "ab")):
        return parts(lib, row(lib, [0, 1]))(lib.numbers(4))


@case
def pmap_under_set_mesh(lib):
    with lib.mj.set_mesh(lib.make_mesh((2, 2), "ab")):
        return lib.mj.pmap(lambda x: x + 1)(lib.numbers(2))


@case
def constraint_on_a_part(lib):
    def body(x):
        return lib.lax.with_sharding_constraint(x, first(lib))

    return lib.mj.jit(parts(lib, row(lib, [0, 1, 2, 3]), body))(lib.numbers(16))


# Two sets of devices in one program.


def from_first_to_second(lib):
    return lib.mj.jit(
        lambda x: x * 2, in_shardings=first(lib), out_shardings=second(lib)
    )


@case
def arguments_and_results_apart(lib):
    return from_first_to_second(lib)(lib.numbers(8))


@case
def arguments_and_results_apart_within(lib):
    inner = from_first_to_second(lib)
    return lib.mj.jit(lambda x: inner(x) + 1)(lib.numbers(8))


@case
def arguments_and_results_apart_under_vmap(lib):
    return lib.mj.vmap(from_first_to_second(lib))(lib.numbers(2, 8))


@case
def arguments_and_results_apart_under_grad(lib):
    function = from_first_to_second(lib)
    return lib.mj.grad(lambda x: function(x).sum())(lib.numbers(8))


@case
def arguments_and_results_apart_ahead_of_time(lib):
    numbers = lib.numbers(8)
    return from_first_to_second(lib).lower(numbers).compile()(numbers)


@case
def two_arguments_apart(lib):
    add = lib.mj.jit(lambda x, y: x + y, in_shardings=(first(lib), second(lib)))
    return add(lib.numbers(8), lib.numbers(8))


@case
def two_results_apart(lib):
    both = (first(lib), second(lib))
    return lib.mj.jit(lambda x: (x * 2, x * 3), out_shardings=both)(lib.numbers(8))


@case
def a_committed_argument_and_a_result_apart(lib):
    x = lib.mj.device_put(lib.numbers(8), first(lib))
    return lib.mj.jit(lambda x: x * 2, out_shardings=second(lib))(x)


@case
def two_constraints_apart(lib):
    constrain = lib.lax.with_sharding_constraint
    return lib.mj.jit(lambda x: constrain(constrain(x, first(lib)) * 2, second(lib)))(
        lib.numbers(8)
    )


@case
def two_shard_maps_apart(lib):
    one = parts(lib, row(lib, [0, 1, 2, 3]))
    other = parts(lib, row(lib, [4, 5, 6, 7]))
    return lib.mj.jit(lambda x: other(one(x)))(lib.numbers(8))


@case
def a_compiled_program_and_an_argument_apart(lib):
    numbers = lib.numbers(8)
    compiled = lib.mj.jit(lambda x: x * 2).lower(numbers).compile()
    return compiled(lib.mj.device_put(numbers, lib.mj.devices()[3]))


def alone(lib):
    return lib.sharding.SingleDeviceSharding(lib.mj.devices()[3])


@case
def a_result_on_one_device(lib):
    return lib.mj.jit(lambda x: x * 2, out_shardings=alone(lib))(lib.numbers(8))


@case
def a_constraint_on_one_device(lib):
    constrain = lib.lax.with_sharding_constraint
    return lib.mj.jit(lambda x: constrain(x * 2, alone(lib)))(lib.numbers(8))


@case
def a_result_on_one_device_of_a_committed_argument(lib):
    x = lib.mj.device_put(lib.numbers(8), lib.mj.devices()[2])
    return lib.mj.jit(lambda x: x * 2, out_shardings=alone(lib))(x)


# Refs, and callbacks outside of programs.


def _with_ref(make, **options):
    """A program that reads and writes a ref, with shardings of other devices."""

    def program(lib):
        third = lib.sharding.SingleDeviceSharding(lib.mj.devices()[3])
        given = {name: third for name in options if options[name]}
        ref = make(lib)

        def add(ref, x):
            ref[...] += x
            return ref[...] * 2

        found = lib.mj.jit(add, **given)(ref, lib.jnp.ones(4))
        again = lib.mj.jit(lambda x: ref[...] + x, **given)(lib.jnp.ones(4))
        return [np.asarray(found), np.asarray(again), np.asarray(ref[...])]

    return program


def _ref_anywhere(lib):
    return lib.mj.new_ref(lib.jnp.arange(4.0))


def _ref_on(number):
    return lambda lib: lib.mj.new_ref(
        lib.mj.device_put(lib.jnp.arange(4.0), lib.mj.devices()[number])
    )


for _name, _make in (
    ("anywhere", _ref_anywhere),
    ("there", _ref_on(3)),
    ("elsewhere", _ref_on(1)),
):
    CASES[f"ref {_name}, in"] = _with_ref(_make, in_shardings=True)
    CASES[f"ref {_name}, out"] = _with_ref(_make, out_shardings=True)
    CASES[f"ref {_name}, both"] = _with_ref(_make, in_shardings=True, out_shardings=1)

# JAX refuses the write, though it runs a read: here the ref moves, as an array does.
del CASES["ref anywhere, out"]


def _called(ordered):
    def program(lib):
        from importlib import import_module

        call = import_module(f"{lib.name}.experimental").io_callback
        shape = lib.mj.ShapeDtypeStruct((8,), np.float32)
        cut = lib.put(lib.numbers(8), "x")
        return np.asarray(
            call(lambda v: np.asarray(v) * 2, shape, cut, ordered=ordered)
        )

    return program


CASES["callback of parts"] = _called(False)
CASES["ordered callback of parts"] = _called(True)


# What messages say: which arguments meet, their shapes and where they lie.


def message(name):
    """Adds a case that tells the first sentences of an error as jax has them."""

    def enter(function):
        def program(lib):
            alone = [lib.mj.device_put(lib.numbers(8), d) for d in lib.mj.devices()]
            cut = [lib.mj.device_put(lib.numbers(8), f(lib)) for f in (first, second)]
            try:
                function(lib, alone, cut)
            except ValueError as error:
                # JAX names functions by their qualified names, minijax by their names.
                text = str(error).replace("message.<locals>.enter.<locals>.", "")
                text = text.split(". Use the same")[0].split("\nMove it")[0]
                text = re.sub(
                    r"(. Here are the 1 mismatches:\n|: )[aA]rg", " Arg", text
                )
                return text.replace(" of add with", " with")
            return "no error"

        CASES[f"message, {name}"] = program
        return function

    return enter


def add(x, y):
    return x + y


def twice(x):
    return x * 2


@message("two devices")
def _(lib, alone, cut):
    lib.mj.jit(add)(alone[2], alone[1])


@message("tree")
def _(lib, alone, cut):
    def of_tree(d, e):
        return d["p"][0] * 2 + e

    of_tree.__qualname__ = "of_tree"
    lib.mj.jit(of_tree)({"p": [alone[0]]}, cut[1])


@message("two meshes")
def _(lib, alone, cut):
    lib.mj.jit(add)(cut[0], cut[1])


@message("lower")
def _(lib, alone, cut):
    lib.mj.jit(add).lower(alone[0], alone[1])


@message("results elsewhere")
def _(lib, alone, cut):
    lib.mj.jit(twice, out_shardings=second(lib))(cut[0])


@message("compiled, one device")
def _(lib, alone, cut):
    lib.mj.jit(add).lower(alone[1], alone[1]).compile()(alone[1], alone[3])


@message("compiled, several")
def _(lib, alone, cut):
    lib.mj.jit(add).lower(cut[0], cut[0]).compile()(cut[0], cut[1])


@case
def unused_elsewhere(lib):
    x, y = (lib.mj.device_put(lib.numbers(8), d) for d in lib.mj.devices()[:2])
    f = lib.mj.jit(lambda x, y: x * 2)
    return f(x, y), f.lower(x, y).compile().input_shardings[0][1] is None


@case
def lowered_with_some_out_shardings(lib):
    f = lib.mj.jit(lambda x: (x * 2, x.sum()), out_shardings=(lib.on("x"), None))
    x = lib.put(lib.numbers(8, 8), "y")
    return f.lower(x).compile()(x)
