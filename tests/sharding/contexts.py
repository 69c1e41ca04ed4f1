"""What a `PartitionSpec` alone means: `with mesh:`, `set_mesh`, `pjit`: the cases."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import re
import threading
import warnings

import numpy as np

warnings.filterwarnings("ignore", category=DeprecationWarning)

CASES = {}


def case(function):
    """Adds a case under its name."""
    CASES[function.__name__] = function
    return function


def _other(lib):
    return lib.make_mesh((2, 4), "xy")


def _pair(lib):
    return lib.make_mesh((2, 2), "ab")


def _constrained(lib, *spec):
    return lib.lax.with_sharding_constraint(lib.numbers(8, 4), lib.P(*spec))


def _pjit(lib, function, *shardings, **options):
    module = importlib.import_module(f"{lib.name}.experimental.pjit")
    return module.pjit(function, *shardings, **options)


def _doubled(lib, jit, ins=("x",), outs=(None, "y")):
    return jit(lambda x: x * 2, in_shardings=lib.P(*ins), out_shardings=lib.P(*outs))


@case
def enters_itself(lib):
    with lib.mesh as mesh:
        return mesh is lib.mesh


@case
def constraint(lib):
    with lib.mesh:
        return _constrained(lib, "x", "y")


@case
def constraint_in_jit(lib):
    with lib.mesh:
        return lib.mj.jit(lambda: _constrained(lib, "x", "y"))()


@case
def constraint_printed(lib):
    with lib.mesh:
        return str(
            lib.mj.make_jaxpr(
                lambda x: lib.lax.with_sharding_constraint(x * 2, lib.P("x"))
            )(lib.numbers(8, 4))
        )


@case
def constraint_under_grad_and_vmap(lib):
    def f(x):
        return (lib.lax.with_sharding_constraint(x, lib.P("x")) ** 2).sum()

    with lib.mesh:
        x = lib.numbers(8, 4)
        return lib.mj.jit(lib.mj.grad(f))(x), lib.mj.jit(lib.mj.vmap(f))(x)


@case
def constraint_without_a_mesh(lib):
    return _constrained(lib, "x")


@case
def constraint_after_the_block(lib):
    with lib.mesh:
        pass
    return _constrained(lib, "x")


@case
def constraint_after_an_error(lib):
    try:
        with lib.mesh:
            raise ArithmeticError
    except ArithmeticError:
        pass
    return _constrained(lib, "x")


@case
def constraint_with_an_unknown_axis(lib):
    with lib.mesh:
        return _constrained(lib, "z")


@case
def nested_blocks(lib):
    with lib.mesh:
        with _pair(lib):
            inner = _constrained(lib, "a")
        return inner, _constrained(lib, "x")


@case
def outer_axis_in_a_nested_block(lib):
    with lib.mesh, _pair(lib):
        return _constrained(lib, "x")


@case
def the_same_block_twice(lib):
    with lib.mesh, lib.mesh:
        pass
    return _constrained(lib, "x")


@case
def block_inside_jit(lib):
    @lib.mj.jit
    def f(x):
        with lib.mesh:
            return lib.lax.with_sharding_constraint(x, lib.P("x"))

    return f(lib.numbers(8, 4))


@case
def decorator(lib):
    @lib.mesh
    def f(x):
        return lib.lax.with_sharding_constraint(x, lib.P("x"))

    return f(lib.numbers(8, 4))


@case
def set_mesh_wins_over_a_block(lib):
    with lib.mesh, lib.mj.set_mesh(_pair(lib)):
        return lib.mj.jit(lambda: _constrained(lib, "a"))()


@case
def a_block_does_not_win_over_set_mesh(lib):
    with lib.mj.set_mesh(_pair(lib)), lib.mesh:
        return lib.mj.jit(lambda: _constrained(lib, "x"))()


@case
def blocks_are_of_one_thread(lib):
    found = []

    def look():
        try:
            _constrained(lib, "x")
        except RuntimeError as error:
            found.append(type(error).__name__)

    with lib.mesh:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    return found


@case
def blocks_belong_to_the_key_of_jit(lib):
    traces = []

    @lib.mj.jit
    def f(x):
        traces.append(x)
        return lib.lax.with_sharding_constraint(x, lib.P("x"))

    x = lib.numbers(8)
    results = []
    for mesh in (lib.mesh, _other(lib), lib.mesh):
        with mesh:
            results.append(f(x))
    with lib.mesh, lib.mesh:
        results.append(f(x))
    return len(traces), results


@case
def set_meshes_do_not_see_a_block(lib):
    with lib.mesh:
        return repr(lib.sharding.get_mesh()), repr(lib.sharding.get_abstract_mesh())


@case
def a_block_places_nothing(lib):
    with lib.mesh:
        x = lib.jnp.ones(8)
        return x, lib.mj.jit(lambda x: x + 1)(x)


@case
def a_block_binds_no_axis(lib):
    with lib.mesh:
        return lib.lax.axis_index("x")


@case
def a_block_binds_no_axis_in_jit(lib):
    with lib.mesh:
        return lib.mj.jit(lambda x: lib.lax.psum(x, "x"))(lib.numbers(8))


@case
def vmap_s_axis_of_the_same_name(lib):
    with lib.mesh:
        return lib.mj.vmap(lambda x: lib.lax.psum(x, "x"), axis_name="x")(
            lib.numbers(8)
        )


@case
def device_put_in_a_block(lib):
    with lib.mesh:
        return lib.mj.device_put(lib.numbers(8), lib.P("x"))


@case
def shard_map_in_a_block(lib):
    with lib.mesh:
        return lib.mj.shard_map(lambda x: x, in_specs=lib.P("x"), out_specs=lib.P("x"))(
            lib.numbers(8)
        )


@case
def jit_in_a_block(lib):
    with lib.mesh:
        return _doubled(lib, lib.mj.jit)(lib.numbers(8, 4))


@case
def jit_made_before_set_mesh(lib):
    f = _doubled(lib, lib.mj.jit)
    with lib.mj.set_mesh(lib.mesh):
        return f(lib.numbers(8, 4))


@case
def jit_called_after_set_mesh(lib):
    with lib.mj.set_mesh(lib.mesh):
        f = _doubled(lib, lib.mj.jit)
    return f(lib.numbers(8, 4))


@case
def jit_under_two_meshes(lib):
    f = _doubled(lib, lib.mj.jit, outs=("x",))
    found = []
    for mesh in (lib.mesh, _other(lib), lib.mesh):
        with lib.mj.set_mesh(mesh):
            found.append(f(lib.numbers(8, 4)))
    return found


@case
def jit_s_results_under_two_meshes(lib):
    f = lib.mj.jit(lambda x: x * 2, out_shardings=lib.P("x"))
    found = []
    for mesh in (lib.mesh, _other(lib)):
        with lib.mj.set_mesh(mesh):
            found.append(f(lib.numbers(8, 4)))
    return found


@case
def jit_under_set_mesh_and_grad(lib):
    f = lib.mj.jit(lambda x: x * 2, in_shardings=lib.P("x"))
    with lib.mj.set_mesh(lib.mesh):
        return lib.mj.grad(lambda x: f(x).sum())(lib.numbers(8, 4))


@case
def pjit_in_a_block(lib):
    f = _doubled(lib, lambda f, **options: _pjit(lib, f, **options))
    with lib.mesh:
        return f(lib.numbers(8, 4))


@case
def pjit_by_position(lib):
    f = _pjit(lib, lambda x, y: (x, y), lib.P("x"), (lib.P("y"), None))
    with lib.mesh:
        return f(lib.numbers(8, 4), lib.numbers(8))


@case
def pjit_in_two_blocks(lib):
    f = _pjit(lib, lambda x: x * 2, in_shardings=lib.P("x"), out_shardings=lib.P("x"))
    found = []
    for mesh in (lib.mesh, _other(lib), lib.mesh):
        with mesh:
            found.append(f(lib.numbers(8, 4)))
    return found


@case
def pjit_without_a_mesh(lib):
    return _pjit(lib, lambda x: x * 2, in_shardings=lib.P("x"))(lib.numbers(8))


@case
def pjit_lowered(lib):
    f = _pjit(lib, lambda x: x * 2, in_shardings=lib.P("x"), out_shardings=lib.P("x"))
    with lib.mesh:
        lowered = f.lower(lib.numbers(8, 4))
    return lowered.compile()(lib.put(lib.numbers(8, 4), "x"))


@case
def pjit_under_grad(lib):
    f = _pjit(lib, lambda x: x * 2, in_shardings=lib.P("x"), out_shardings=lib.P("x"))
    with lib.mesh:
        return lib.mj.grad(lambda x: f(x).sum())(lib.numbers(8, 4))


@case
def pjit_with_shardings_and_without_a_mesh(lib):
    f = _pjit(lib, lambda x: x * 2, in_shardings=lib.on("x"))
    return f(lib.numbers(8, 4))


@case
def pjit_of_a_method(lib):
    class Model:
        scale = 3.0

        @functools.partial(_pjit, lib)
        def apply(self, x):
            return x * self.scale

    # The object is an argument like others, so that it must be an array.
    return Model().apply(lib.numbers(8))


@case
def block_forbidden_by_the_flag(lib):
    lib.mj.config.update("jax_disallow_mesh_context_manager", True)
    try:
        with lib.mesh:
            pass
    finally:
        lib.mj.config.update("jax_disallow_mesh_context_manager", False)


@case
def block_of_an_abstract_mesh(lib):
    with lib.mesh.abstract_mesh:
        pass


# ----------------------------------------------------------------------------------
# Meshes without devices, one device, layouts
# ----------------------------------------------------------------------------------


def _abstract(lib, *spec, sizes=(16, 4), kind=None):
    """A sharding over more devices than there are."""
    kinds = (kind or lib.auto,) * len(sizes)
    mesh = lib.sharding.AbstractMesh(sizes, tuple("xy"), axis_types=kinds)
    return lib.Named(mesh, lib.P(*spec))


def _marked_lines(text):
    """The lines of StableHLO that say how values are cut, without their results."""
    lines = [line.strip() for line in text.splitlines() if "sdy." in line]
    return [re.sub(r"^%\w+ = |%\w+", "", line) for line in lines]


def _lowered(lib, sharding, *platforms, **options):
    struct = lib.mj.ShapeDtypeStruct((64, 64), "float32", sharding=sharding)
    traced = lib.mj.jit(lambda x: x @ x.T, **options).trace(struct)
    return traced.lower(lowering_platforms=platforms or None)


@case
def lowered_for_an_abstract_mesh(lib):
    return _marked_lines(_lowered(lib, _abstract(lib, "x", "y"), "tpu").as_text())


@case
def lowered_for_shardings_of_an_abstract_mesh(lib):
    cut, other = _abstract(lib, "x", "y"), _abstract(lib, "y")
    lowered = _lowered(lib, None, "tpu", in_shardings=cut, out_shardings=other)
    return _marked_lines(lowered.as_text())


@case
def lowered_for_no_platform(lib):
    return _lowered(lib, _abstract(lib, "x"))


@case
def compiled_for_no_devices(lib):
    return _lowered(lib, _abstract(lib, "x", sizes=(4, 2)), "cpu").compile()


@case
def compiled_for_devices_that_are_named(lib):
    lowered = _lowered(lib, _abstract(lib, "x", sizes=(4, 2)), "cpu")
    compiled = lowered.compile(device_assignment=tuple(lib.mj.devices()))
    return compiled(lib.put(lib.numbers(64, 64), "x"))


@case
def abstract_shardings_of_results(lib):
    place = lib.Named(lib.mesh.abstract_mesh, lib.P(None, "y"))
    jitted = lib.mj.jit(lambda x: x * 2, out_shardings=place)
    with lib.mj.set_mesh(lib.mesh):
        inside = jitted(lib.numbers(8, 8))
    return inside, jitted(lib.put(lib.numbers(8, 8), "x"))


@case
def abstract_shardings_and_no_devices(lib):
    return lib.mj.jit(lambda x: x, out_shardings=_abstract(lib, "x"))(lib.numbers(64))


def _on_the_third(lib, x, **options):
    return lib.mj.jit(lambda x, *, y=1: x * 2 + y, **options)(x, y=3)


@case
def jit_on_a_device(lib):
    third = lib.mj.devices()[3]
    first = lib.mj.device_put(lib.numbers(8), lib.mj.devices()[1])
    given = [lib.numbers(8), first, lib.put(lib.numbers(8), "x")]
    return [_on_the_third(lib, x, device=third) for x in given]


@case
def jit_on_a_backend(lib):
    return _on_the_third(lib, lib.numbers(8), backend="cpu")


@case
def jit_on_a_device_and_in_shardings(lib):
    device = lib.mj.devices()[3]
    return lib.mj.jit(lambda x: x, device=device, in_shardings=lib.on("x"))


@case
def formats(lib):
    found = [lib.put(lib.numbers(8, 4), "x"), lib.jnp.ones(3), lib.jnp.float32(1)]
    return [str(x.format.layout) for x in found]


@case
def results_that_are_compiled(lib):
    jitted = lib.mj.jit(lambda x: (x * 2, x.sum()))
    compiled = jitted.lower(lib.put(lib.numbers(8, 8), "x")).compile()
    return [f"{one.shape} {one.dtype} {one.format}" for one in compiled.out_info]


@case
def lowered_on_a_device(lib):
    third = lib.mj.devices()[3]
    first = lib.mj.device_put(lib.numbers(8), lib.mj.devices()[1])
    compiled = lib.mj.jit(lambda x: x * 2, device=third).lower(first).compile()
    return [compiled(x) for x in (first, lib.numbers(8), lib.put(lib.numbers(8), "x"))]


@case
def lowered_for_shardings_on_one_device(lib):
    third = lib.mj.sharding.SingleDeviceSharding(lib.mj.devices()[3])
    there = lib.mj.device_put(lib.numbers(8), third)
    one = lib.mj.jit(lambda x: x * 2, in_shardings=third)
    two = lib.mj.jit(lambda x, y: x * y, in_shardings=(None, third))
    described = lib.mj.ShapeDtypeStruct((8,), "float32")
    asked = [(one, x) for x in (lib.numbers(8), there, described)]
    made = [jitted.lower(x).compile()(lib.numbers(8)) for jitted, x in asked]
    return [*made, two.lower(lib.numbers(8), there).compile()(lib.numbers(8), there)]


@case
def lowered_for_arguments_that_lie_elsewhere(lib):
    jitted = lib.mj.jit(lambda x: x * 2, in_shardings=lib.on(None, "y"))
    return jitted.lower(lib.put(lib.numbers(8, 8), "x")).as_text()


@case
def pjit_has_the_methods_of_jit(lib):
    traced = []

    def double(x):
        traced.append(1)
        return x * 2

    jitted = _pjit(lib, double)

    def calls():
        for mesh in (contextlib.nullcontext(), lib.mesh):
            with warnings.catch_warnings(), mesh:
                warnings.simplefilter("ignore")
                jitted(1.0)
        return len(traced)

    counts = calls(), calls()
    jitted.clear_cache()
    program = str(jitted.trace(1.0).jaxpr), jitted.eval_shape(1.0).dtype.name
    return counts, calls() > counts[1] + 1, program, jitted.lower(1.0).compile()(1.0)


@case
def an_exported_pjit(lib):
    export = importlib.import_module(f"{lib.name}.export").export
    return float(export(_pjit(lib, lambda x: x * 2))(1.0).call(3.0))


def _exported(lib):
    export = importlib.import_module(f"{lib.name}.export").export
    return export(lib.mj.jit(lambda x: x * 2))(lib.put(lib.numbers(8, 8), "x")).call


@case
def exported_for_eight_devices(lib):
    return _exported(lib)(lib.put(lib.numbers(8, 8), "x"))


@case
def exported_for_eight_devices_called_on_one(lib):
    return _exported(lib)(lib.numbers(8, 8))


def _exported_with_cuts(lib, ins=(), outs=(), wrap=None, put=("y",)):
    """By `jit`'s options, or as the argument lies; then called with another."""
    export = importlib.import_module(f"{lib.name}.export").export
    options = {"in_shardings": lib.on(*ins)} if ins else {}
    options |= {"out_shardings": lib.on(*outs)} if outs else {}
    jitted = lib.mj.jit(lambda x: lib.jnp.sin(x) * 2.0, **options)
    like = lib.mj.ShapeDtypeStruct((8, 8), "float32")
    made = export(jitted)(like if ins else lib.put(lib.numbers(8, 8), "x"))
    return (wrap or (lambda call: call))(made.call)(lib.put(lib.numbers(8, 8), *put))


for _name, _options in {
    "results": {"outs": (None, "x")},
    "results_whole": {"outs": (None,)},
    "both": {"ins": ("x", "y"), "outs": ("y", "x")},
    "arguments": {},
    "arguments_by_option": {"ins": (None, ("x", "y"))},
}.items():
    CASES[f"exported_cuts_{_name}"] = functools.partial(_exported_with_cuts, **_options)


@case
def exported_cuts_in_a_jitted_function(lib):
    return _exported_with_cuts(lib, outs=(("x", "y"),), wrap=lib.mj.jit)


def _gradient_of_exported(lib, wrap):
    """Of a program on an Explicit mesh, whose types have cuts."""
    export = importlib.import_module(f"{lib.name}.export").export
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    x = lib.put(lib.numbers(8, 8), "x", mesh=mesh)
    with lib.mj.set_mesh(mesh):
        call = export(lib.mj.jit(lambda x: lib.jnp.sin(x).sum(0)))(x).call
        found = wrap(lib.mj.grad(lambda x: call(x).sum()))(x)
        return str(lib.mj.typeof(found)), found


@case
def gradient_of_exported_on_an_explicit_mesh(lib):
    return _gradient_of_exported(lib, lambda gradient: gradient)


@case
def gradient_of_exported_on_an_explicit_mesh_jitted(lib):
    return _gradient_of_exported(lib, lib.mj.jit)


@case
def exported_for_eight_devices_called_on_two(lib):
    two = lib.sharding.Mesh(lib.mj.devices()[:2], ("x",))
    return _exported(lib)(lib.put(lib.numbers(8, 8), "x", mesh=two))


@case
def exported_for_eight_devices_called_in_a_jitted_function(lib):
    return lib.mj.jit(_exported(lib))(lib.numbers(8, 8))


@case
def exported_for_one_device_called_on_eight(lib):
    export = importlib.import_module(f"{lib.name}.export").export
    call = export(lib.mj.jit(lambda x: x * 2))(lib.numbers(8, 8)).call
    return call(lib.put(lib.numbers(8, 8), "x"))


def _scaled(lib, *specs):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    shapes = (8, 64), (64, 16), (8, 2), (2, 16)
    x, y, scale_x, scale_y = (
        lib.put(lib.numbers(*shape).astype(lib.jnp.bfloat16), *spec, mesh=mesh)
        for shape, spec in itertools.zip_longest(shapes, specs, fillvalue=())
    )
    found = lib.lax.scaled_dot(x, y, lhs_scale=abs(scale_x), rhs_scale=abs(scale_y))
    return found.astype("float32")


@case
def scaled_product_of_cut_rows(lib):
    return _scaled(lib, ("x",), (None, "y"))


@case
def scaled_product_of_a_cut_contraction(lib):
    return _scaled(lib, (None, "y"), ())


@case
def scaled_product_of_two_cut_contractions(lib):
    return _scaled(lib, (None, "y"), ("y",))


@case
def scaled_product_of_scales_cut_as_their_arrays(lib):
    return _scaled(lib, ("x",), (None, "y"), ("x",), (None, "y"))


@case
def scaled_product_of_scales_cut_otherwise(lib):
    return _scaled(lib, ("x",), (), ("y",))


@case
def devices_of_an_exported_program(lib):
    export = importlib.import_module(f"{lib.name}.export").export
    jitted = lib.mj.jit(lambda x: x * 2)
    cut = export(jitted)(lib.put(lib.numbers(8, 8), "x"))
    with lib.mj.set_mesh(lib.mesh):
        used = export(jitted)(lib.numbers(8, 8))
    made = cut, cut.vjp(), used, export(jitted)(1.0)
    return [each.nr_devices for each in made]


@case
def an_exported_program_exported_again(lib):
    export = importlib.import_module(f"{lib.name}.export").export
    x = lib.put(lib.numbers(8, 8), "x")
    once = export(lib.mj.jit(lambda x: x * 2))(x)
    again = export(lib.mj.jit(once.call))(x)
    return [again.nr_devices, lib.mj.jit(again.call)(x) + 0]


# Arguments that are committed to other devices than those of the mesh in use.


def _row(lib, ids, name="x"):
    devices = np.array([lib.mj.devices()[at] for at in ids])
    return lib.sharding.Mesh(devices, (name,), axis_types=(lib.auto,))


_PLACES = dict(
    the_same=lambda lib: lib.on("x"),
    a_line=lambda lib: lib.on("i", mesh=lib.line),
    another_order=lambda lib: lib.on("x", mesh=_row(lib, range(7, -1, -1))),
    the_first_half=lambda lib: lib.on("x", mesh=_row(lib, range(4))),
    the_second_half=lambda lib: lib.on(mesh=_row(lib, range(4, 8))),
    one_device=lambda lib: lib.mj.devices()[3],
)
_USES = dict(
    jit=lambda lib, x: np.asarray(lib.mj.jit(lambda x: x * 2)(x)),
    unused=lambda lib, x: lib.mj.jit(lambda x: lib.jnp.ones(8))(x),
    unused_and_kept=lambda lib, x: np.asarray(
        lib.mj.jit(lambda x: lib.jnp.ones(8), keep_unused=True)(x)
    ),
    ahead=lambda lib, x: np.asarray(lib.mj.jit(lambda x: x * 2).lower(x).compile()(x)),
    eager=lambda lib, x: np.asarray(lib.jnp.sin(x)),
    product=lambda lib, x: np.asarray(x @ x),
    first_row=lambda lib, x: np.asarray(x[0]),
    derivative=lambda lib, x: np.asarray(lib.mj.grad(lambda x: (x * x).sum())(x)),
    constraint=lambda lib, x: lib.lax.with_sharding_constraint(x, lib.P("x")),
    moved=lambda lib, x: lib.mj.device_put(x, lib.P("y")),
    read=lambda lib, x: np.asarray(x),
    exported=lambda lib, x: np.asarray(
        importlib.import_module(f"{lib.name}.export")
        .export(lib.mj.jit(lambda x: x * 2))(lib.numbers(8, 8))
        .call(x)
    ),
)


def _used_there(place, use, types, lib):
    mesh = lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=types(lib))
    x = lib.mj.device_put(lib.numbers(8, 8), _PLACES[place](lib))
    with lib.mj.set_mesh(mesh):
        return _USES[use](lib, x)


for _place, _use in itertools.product(_PLACES, _USES):
    _case = functools.partial(
        _used_there, _place, _use, lambda lib: (lib.auto, lib.auto)
    )
    CASES[f"{_use} of an array on {_place}"] = _case
for _place in ("the_first_half", "another_order"):
    _case = functools.partial(
        _used_there, _place, "jit", lambda lib: (lib.explicit, lib.auto)
    )
    CASES[f"jit of an array on {_place}, mixed mesh"] = _case
