"""Programs on several devices that XLA partitions by itself: the cases."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import re
import warnings

import numpy as np

CASES = {}


def case(function):
    """Adds a case under its name."""
    CASES[function.__name__] = function
    return function


def _binary(name, one, two):
    def run(lib):
        x, y = lib.put(lib.numbers(8, 8), *one), lib.put(lib.numbers(8, 8), *two)
        return getattr(lib.jnp, name)(x, y)

    CASES[f"{name} of {one} and {two}"] = run


for _one, _two in [
    (("x",), ("x",)),
    (("x",), (None, "x")),
    (("x", "y"), ("y", "x")),
    ((("x", "y"),), ()),
    ((), (None, ("x", "y"))),
]:
    _binary("add", _one, _two)
    _binary("matmul", _one, _two)


def _unary(name, *spec, **options):
    def run(lib):
        return getattr(lib.jnp, name)(lib.put(lib.numbers(8, 4), *spec), **options)

    CASES[f"{name} of {spec} {options or ''}"] = run


for _name, _spec, _options in [
    ("sin", ("x",), {}),
    ("sum", ("x", "y"), {}),
    ("sum", ("x", "y"), {"axis": 0}),
    ("sum", ("x", "y"), {"axis": 1}),
    ("max", ("y",), {"axis": 0}),
    ("mean", (None, "y"), {"axis": 1}),
    ("transpose", ("x", "y"), {}),
    ("ravel", ("x",), {}),
    ("cumsum", ("x",), {"axis": 1}),
    ("sort", ("x",), {"axis": 1}),
    ("argmax", ("x", "y"), {"axis": 1}),
    ("flip", ("x",), {"axis": 1}),
    ("roll", ("x",), {"shift": 1, "axis": 1}),
    ("expand_dims", ("x", "y"), {"axis": 1}),
    ("squeeze", ("x", "y"), {}),
    ("exp2", (("x", "y"),), {}),
    ("isnan", ("x",), {}),
]:
    _unary(_name, *_spec, **_options)


@case
def put_replicated(lib):
    return lib.put(lib.numbers(8, 4))


@case
def put_scalar(lib):
    return lib.put(1.5)


@case
def put_tree(lib):
    tree = {"a": lib.numbers(8), "b": [lib.numbers(4, 2), 3]}
    places = {"a": lib.on("x"), "b": [lib.on("x", "y"), None]}
    return lib.mj.device_put(tree, places)


@case
def put_again(lib):
    return lib.mj.device_put(lib.put(lib.numbers(8, 4), "x"), lib.on(None, "y"))


@case
def put_back_on_one(lib):
    return lib.mj.device_put(lib.put(lib.numbers(8, 4), "x"), lib.mj.devices()[2])


@case
def shards(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    return [
        f"{s.device.id} {s.index} {s.replica_id} {np.asarray(s.data).tolist()}"
        for s in x.addressable_shards
    ]


@case
def global_shards(lib):
    x = lib.put(lib.numbers(8, 4), None, "y")
    return [f"{s.device.id} {s.index} {s.replica_id}" for s in x.global_shards]


@case
def text_of_array(lib):
    return [repr(lib.put(lib.numbers(4, 2), "x")), str(lib.put(lib.numbers(4), "x"))]


@case
def with_uncommitted(lib):
    x = lib.put(lib.numbers(8, 4), "x", "y")
    return x + lib.jnp.ones((8, 4)), x * 2, 1 - x, x + np.ones(4, np.float32)


@case
def jit_follows(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    w = lib.put(lib.numbers(4, 8), None, "y")
    return lib.mj.jit(lambda x, w: lib.jnp.tanh(x @ w))(x, w)


@case
def jit_of_uncommitted_too(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    f = lib.mj.jit(lambda x, y, z: (x + y, y * z))
    return f(x, lib.numbers(8, 4), lib.jnp.float32(2.0))


@case
def jit_in_shardings(lib):
    f = lib.mj.jit(lambda x: x * 2, in_shardings=lib.on("x"))
    return f(lib.numbers(8, 4)), f(lib.put(lib.numbers(8, 4), "x"))


@case
def jit_in_shardings_of_tree(lib):
    places = ({"w": lib.on("x"), "b": None}, lib.on("y"))
    f = lib.mj.jit(lambda p, x: p["w"] + p["b"] + x, in_shardings=places)
    return f({"w": lib.numbers(8, 4), "b": 1.0}, lib.numbers(8, 4))


@case
def jit_out_shardings(lib):
    f = lib.mj.jit(lambda x: (x * 2, x + 1), out_shardings=(lib.on("y"), None))
    return f(lib.put(lib.numbers(8, 4), "x"))


@case
def jit_out_shardings_of_uncommitted(lib):
    f = lib.mj.jit(lambda x: x * 2, out_shardings=lib.on("x", "y"))
    return f(lib.numbers(8, 4))


@case
def jit_both(lib):
    f = lib.mj.jit(
        lambda x, y: x @ y,
        in_shardings=(lib.on("x"), lib.on(None, "y")),
        out_shardings=lib.on("x", "y"),
    )
    return f(lib.numbers(8, 4), lib.numbers(4, 8))


@case
def jit_makes(lib):
    return lib.mj.jit(lambda: lib.jnp.zeros((8, 4)), out_shardings=lib.on("x"))()


@case
def constraint(lib):
    f = lib.mj.jit(lambda x: lib.lax.with_sharding_constraint(x * 2, lib.on("x")))
    return f(lib.numbers(8, 4)), f(lib.put(lib.numbers(8, 4), None, "y"))


@case
def constraint_outside_jit(lib):
    return lib.lax.with_sharding_constraint(lib.numbers(8, 4), lib.on("x", "y"))


@case
def constraint_of_spec(lib):
    with lib.mj.set_mesh(lib.mesh):
        f = lib.mj.jit(lambda x: lib.lax.with_sharding_constraint(x * 2, lib.P("x")))
        return f(lib.numbers(8, 4))


@case
def constraint_of_tree(lib):
    def f(tree):
        return lib.lax.with_sharding_constraint(tree, {"a": lib.on("x"), "b": lib.on()})

    return lib.mj.jit(f)({"a": lib.numbers(8), "b": lib.numbers(4)})


@case
def constraint_under_grad(lib):
    def f(x):
        y = lib.lax.with_sharding_constraint(x * x, lib.on("x"))
        return (y * y).sum()

    return lib.mj.jit(lib.mj.grad(f))(lib.numbers(8, 4))


@case
def constraint_under_vmap(lib):
    def f(x):
        return lib.lax.with_sharding_constraint(x * 2, lib.on("x"))

    return [
        str(lib.mj.make_jaxpr(lib.mj.vmap(f))(lib.numbers(3, 8, 4))),
        str(
            lib.mj.make_jaxpr(lib.mj.vmap(f, spmd_axis_name="y"))(lib.numbers(4, 8, 4))
        ),
        lib.mj.jit(lib.mj.vmap(f, spmd_axis_name="y"))(lib.numbers(4, 8, 4)),
    ]


@case
def constraint_in_scan(lib):
    def step(carry, x):
        carry = lib.lax.with_sharding_constraint(carry + x, lib.on("x"))
        return carry, carry.sum()

    return lib.mj.jit(lambda xs: lib.lax.scan(step, xs[0], xs))(lib.numbers(5, 8))


@case
def constraint_printed(lib):
    def f(x):
        return lib.lax.with_sharding_constraint(x, lib.on("x", lib.P.UNCONSTRAINED))

    return str(lib.mj.make_jaxpr(f)(lib.numbers(8, 4)))


@case
def jit_printed(lib):
    f = lib.mj.jit(
        lambda x, y: x + y, in_shardings=(lib.on("x"), None), out_shardings=lib.on("y")
    )
    return str(lib.mj.make_jaxpr(lambda x: f(x, 1.0))(lib.numbers(8, 4)))


def _sharded_jit(lib):
    places = {"in_shardings": lib.on("x"), "out_shardings": lib.on(None, "y")}
    return lib.mj.jit(lambda x: lib.jnp.sin(x) * x, **places)


@case
def grad_of_sharded_jit(lib):
    f = _sharded_jit(lib)
    x = lib.numbers(8, 4)
    value, gradient = lib.mj.value_and_grad(lambda x: (f(x) ** 2).sum())(x)
    return [np.asarray(value), np.asarray(gradient)]


@case
def vmap_of_sharded_jit(lib):
    return np.asarray(lib.mj.vmap(_sharded_jit(lib))(lib.numbers(3, 8, 4)))


@case
def jvp_of_sharded_jit(lib):
    x = lib.numbers(8, 4)
    return [np.asarray(one) for one in lib.mj.jvp(_sharded_jit(lib), (x,), (x,))]


@case
def nested_sharded_jit(lib):
    f = _sharded_jit(lib)
    return lib.mj.jit(lambda x, y: (f(x + 1), y))(lib.numbers(8, 4), 2.0)


@case
def checkpoint_of_sharded_jit(lib):
    f = lib.mj.checkpoint(_sharded_jit(lib))
    return np.asarray(lib.mj.grad(lambda x: f(x).sum())(lib.numbers(8, 4)))


@case
def grad_follows(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    w = lib.put(lib.numbers(4, 6), None, "y")

    def loss(w, x):
        return (lib.jnp.sin(x @ w) ** 2).mean()

    return lib.mj.grad(loss)(w, x), lib.mj.jit(lib.mj.value_and_grad(loss))(w, x)


@case
def scan_follows(lib):
    x = lib.put(lib.numbers(6, 8), None, "x")
    return lib.lax.scan(lambda c, a: (c + a, c * a), lib.jnp.zeros(8), x)


@case
def while_follows(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    return lib.mj.jit(
        lambda x: lib.lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x)
        )
    )(x)


@case
def cond_follows(lib):
    x = lib.put(lib.numbers(8, 4), "x", "y")
    f = lib.mj.jit(lambda p, x: lib.lax.cond(p, lambda x: x + 1, lambda x: x * 2, x))
    return f(True, x), f(False, x)


@case
def random_is_the_same(lib):
    key = lib.random.key(3)
    f = lib.mj.jit(
        lambda k: lib.random.normal(k, (8, 4)), out_shardings=lib.on("x", "y")
    )
    return f(key)


@case
def keys_spread(lib):
    keys = lib.mj.device_put(lib.random.split(lib.random.key(0), 8), lib.on("x"))
    draws = lib.mj.vmap(lambda k: lib.random.uniform(k, (2,)))(keys)
    return [draws, str(keys.sharding.spec), str(keys.dtype)]


@case
def indexing(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    return x[0], x[2:4], x[:, 1], x[np.array([1, 5])], x.at[0].set(1.0)


@case
def reshape_and_join(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    return x.reshape(4, 8), lib.jnp.concatenate([x, x]), lib.jnp.stack([x, x])


@case
def softmax_follows(lib):
    return lib.mj.nn.softmax(lib.put(lib.numbers(8, 8), "x", "y"), axis=-1)


@case
def donated(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    y = lib.mj.jit(lambda x: x + 1, donate_argnums=0)(x)
    return [y, x.is_deleted()]


@case
def made_from_callback(lib):
    whole = lib.numbers(8, 4)
    return lib.mj.make_array_from_callback(
        (8, 4), lib.on("x", "y"), lambda index: whole[index]
    )


@case
def made_from_parts(lib):
    sharding = lib.on("i", mesh=lib.line)
    parts = [
        lib.mj.device_put(lib.numbers(1, 4) + i, device)
        for i, device in enumerate(lib.line.devices)
    ]
    return lib.mj.make_array_from_single_device_arrays((8, 4), sharding, parts)


@case
def made_from_local_data(lib):
    return lib.mj.make_array_from_process_local_data(lib.on("x"), lib.numbers(8, 4))


@case
def under_set_mesh(lib):
    with lib.mj.set_mesh(lib.mesh):
        x = lib.jnp.ones((8, 4))
        return x, x + 1, lib.mj.jit(lib.jnp.sin)(x), lib.mj.device_put(x, lib.P("y"))


@case
def stages_of_spread(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    compiled = lib.mj.jit(lambda x, y: x + y).lower(x, lib.numbers(8, 4)).compile()
    found = [*compiled.input_shardings[0], compiled.output_shardings]
    return [str(s.spec) for s in found], compiled(x, x)


@case
def stages_with_shardings(lib):
    f = lib.mj.jit(lambda x: x * 2, in_shardings=lib.on("x"), out_shardings=lib.on())
    compiled = f.lower(lib.numbers(8, 4)).compile()
    return [
        str(compiled.input_shardings[0][0].spec),
        str(compiled.output_shardings.spec),
        compiled(lib.put(lib.numbers(8, 4), "x")),
    ]


def _collectives(name, f, *specs):
    def run(lib):
        args = [lib.put(lib.numbers(8, 8), *spec) for spec in specs]
        return str(lib.collectives(lambda *a: f(lib, *a), *args))

    CASES[f"collectives of {name} {specs}"] = run


_collectives("sum", lambda lib, x: x.sum(), ("x",))
_collectives("sum of both", lambda lib, x: x.sum(0), ("x", "y"))
_collectives("matmul", lambda lib, x, y: x @ y, ("x",), (None, "y"))
_collectives("matmul inside", lambda lib, x, y: x @ y, (None, "x"), ("x",))
_collectives("transpose", lambda lib, x: x.T + x, ("x",))
_collectives("softmax", lambda lib, x: lib.mj.nn.softmax(x, axis=0), ("x",))
_collectives("roll", lambda lib, x: lib.jnp.roll(x, 1, 0), ("x",))
_collectives("sort", lambda lib, x: lib.jnp.sort(x, 0), ("x",))


def _decomposition(name, function):
    """Each matrix of a batch is decomposed where it is: nothing is gathered."""

    def run(lib):
        matrices = 6 * np.eye(4) + lib.numbers(8, 4, 4) / 8
        x = lib.put(((matrices + matrices.mT) / 2).astype(np.float32), "x")
        counts = lib.collectives(lambda x: function(lib, x), x)
        assert lib.name == "minijax" or not counts["all-gather"]
        return str(counts), lib.mj.jit(lambda x: function(lib, x))(x)

    CASES[f"{name} of a batch that is cut"] = run


_decomposition("cholesky", lambda lib, x: lib.jnp.linalg.cholesky(x))
_decomposition("eigh", lambda lib, x: tuple(lib.jnp.linalg.eigh(x)))
_decomposition("svd", lambda lib, x: tuple(lib.jnp.linalg.svd(x)))
_decomposition("qr", lambda lib, x: tuple(lib.jnp.linalg.qr(x)))
_decomposition("lu", lambda lib, x: lib.lax.linalg.lu(x))
_decomposition(
    "triangular_solve",
    lambda lib, x: lib.lax.linalg.triangular_solve(x, x, left_side=True, lower=True),
)


# Wrong programs.


@case
def wrong_indivisible(lib):
    return lib.put(lib.numbers(7, 4), "x")


@case
def wrong_axis_twice(lib):
    return lib.on("x", "x")


@case
def wrong_axis_unknown(lib):
    return lib.on("z")


@case
def wrong_spec_too_long(lib):
    return lib.put(lib.numbers(8), "x", "y")


@case
def wrong_mixed_devices(lib):
    return lib.put(lib.numbers(8), "x") + lib.mj.device_put(1.0, lib.mj.devices()[1])


@case
def wrong_mixed_meshes(lib):
    half = lib.make_mesh((4,), "i")
    return lib.put(lib.numbers(8), "x") + lib.put(lib.numbers(8), "i", mesh=half)


@case
def wrong_committed_argument(lib):
    f = lib.mj.jit(lambda x: x * 2, in_shardings=lib.on("x"))
    return f(lib.put(lib.numbers(8, 4), "y"))


@case
def wrong_spec_without_mesh(lib):
    return lib.lax.with_sharding_constraint(lib.numbers(8), lib.P("x"))


@case
def wrong_jit_spec_without_mesh(lib):
    return lib.mj.jit(lambda x: x, in_shardings=lib.P("x"))(lib.numbers(8))


@case
def wrong_constraint_rank(lib):
    f = lib.mj.jit(lambda x: lib.lax.with_sharding_constraint(x, lib.on("x", "y")))
    return f(lib.numbers(8))


@case
def wrong_constraint_tree(lib):
    places = {"a": lib.on("x")}
    return lib.mj.jit(lambda t: lib.lax.with_sharding_constraint(t, places))(
        {"b": lib.numbers(8)}
    )


@case
def wrong_in_shardings_count(lib):
    f = lib.mj.jit(lambda x, y: x + y, in_shardings=(lib.on("x"),))
    return f(lib.numbers(8), lib.numbers(8))


@case
def wrong_out_shardings_tree(lib):
    f = lib.mj.jit(lambda x: (x, x), out_shardings=(lib.on("x"),) * 3)
    return f(lib.numbers(8))


@case
def wrong_out_indivisible(lib):
    return lib.mj.jit(lambda x: x, out_shardings=lib.on("x"))(lib.numbers(6))


@case
def wrong_in_indivisible(lib):
    return lib.mj.jit(lambda x: x, in_shardings=lib.on("x"))(lib.numbers(6))


@case
def wrong_kind_of_sharding(lib):
    return lib.mj.jit(lambda x: x, in_shardings="x")(lib.numbers(8))


@case
def wrong_keyword_argument(lib):
    return lib.mj.jit(lambda x: x, in_shardings=lib.on("x"))(x=lib.numbers(8))


@case
def wrong_mesh_too_large(lib):
    return lib.make_mesh((16,), "i")


@case
def wrong_mesh_names(lib):
    return lib.sharding.Mesh(np.array(lib.mj.devices()).reshape(4, 2), ("x",))


@case
def wrong_mesh_name_twice(lib):
    return lib.sharding.Mesh(np.array(lib.mj.devices()).reshape(4, 2), ("x", "x"))


@case
def wrong_set_mesh(lib):
    return lib.mj.set_mesh(3)


@case
def wrong_set_mesh_inside(lib):
    return lib.mj.jit(lambda x: lib.mj.set_mesh(lib.mesh) and x)(1.0)


@case
def wrong_parts_count(lib):
    return lib.mj.make_array_from_single_device_arrays(
        (8, 4), lib.on("x"), [lib.jnp.ones((2, 4))]
    )


@case
def wrong_parts_shape(lib):
    parts = [lib.mj.device_put(lib.numbers(3), d) for d in lib.line.devices]
    return lib.mj.make_array_from_single_device_arrays(
        (8,), lib.on("i", mesh=lib.line), parts
    )


@case
def wrong_callback_shape(lib):
    return lib.mj.make_array_from_callback(
        (8, 4), lib.on("x"), lambda index: lib.numbers(3, 3)
    )


@case
def wrong_shards_changed(lib):
    x = lib.put(lib.numbers(8), "x")
    x.sharding.spec = lib.P()
    return x


@case
def wrong_used_after_donation(lib):
    x = lib.put(lib.numbers(8, 4), "x")
    lib.mj.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x + 1


@case
def zeros_like_a_cut_array(lib):
    x = lib.put(lib.numbers(8, 4), "x", "y")
    return lib.jnp.zeros_like(x), lib.jnp.full_like(x, 3), lib.jnp.ones_like(x) + x


@case
def zeros_given_a_sharding(lib):
    place = lib.on("x")
    return (
        lib.jnp.zeros((8, 2), device=place),
        lib.jnp.full((8,), 7, device=place),
        lib.jnp.zeros_like(lib.numbers(8, 8), device=lib.on(None, "y")),
    )


@case
def debug_callback(lib):
    x = lib.put(lib.numbers(8, 4), "x", "y")
    seen = []

    def total(x):
        lib.debug.callback(lambda value: seen.append(float(value)), x[0].max())
        lib.debug.callback(lambda value: seen.append(value.shape), x)
        return x.sum()

    result = lib.mj.jit(total)(x)
    lib.mj.effects_barrier()
    return [result, str(sorted(map(str, seen)))]


@case
def io_callback(lib):
    x = lib.put(lib.numbers(8, 4), "x", "y")
    kind = lib.mj.ShapeDtypeStruct((8, 4), np.float32)
    room = importlib.import_module(f"{lib.name}.experimental")
    double = lambda value: np.asarray(value) * 2
    return lib.mj.jit(lambda x: room.io_callback(double, kind, x).sum())(x) + 0.0


@case
def wrong_ordered_callback(lib):
    x = lib.put(lib.numbers(8), "x")

    def total(x):
        lib.debug.print("{}", x.sum(), ordered=True)
        return x.sum()

    return lib.mj.jit(total)(x)


def _drawn(lib, shape, *spec):
    """The devices in a drawn table, piece by piece: the widths are each library's."""
    shown = io.StringIO()
    keywords = {"use_color": False}
    with contextlib.redirect_stdout(shown):
        lib.debug.visualize_array_sharding(
            lib.put(lib.numbers(*shape), *spec), **keywords
        )
    return re.findall(r"[A-Z]+ [\d,]+|[├┤┬┴]", shown.getvalue().replace("─", ""))


for _shape, _spec in (((8,), ("x",)), ((8, 4), ("x",)), ((8, 8), ("x", "y"))):
    CASES[f"drawn {_shape} by {_spec}"] = functools.partial(
        lambda lib, shape, spec: [
            one for one in _drawn(lib, shape, *spec) if one[0].isalpha()
        ],
        shape=_shape,
        spec=_spec,
    )


@case
def drawn_with_three_dimensions(lib):
    return lib.debug.visualize_array_sharding(
        lib.put(lib.numbers(2, 2, 2)), use_color=False
    )


@case
def inspected(lib):
    found = []
    lib.debug.inspect_array_sharding(
        lib.put(lib.numbers(8, 4), "x"), callback=found.append
    )
    return str(found[0].spec)


def _inspected(lib, function, mesh=None, at=None):
    """What a program `function(inspect)` tells while it is compiled."""
    found = []

    def tell(sharding):
        many = sharding.num_devices > 1
        found.append(sharding.shard_shape((8, 8)) if many else "one device")

    def inspect(x):
        lib.debug.inspect_array_sharding(x, callback=tell)
        return x

    x = lib.put(lib.numbers(8, 8), "x", mesh=mesh) if at is None else at
    return lib.mj.jit(function(lib, inspect))(x), str(sorted(map(str, found)))


_INSPECTING = {
    "transposed": lambda lib, inspect: lambda x: inspect(x.T),
    "product": lambda lib, inspect: lambda x: inspect(x @ x.T),
    "gradient": lambda lib, inspect: lib.mj.grad(lambda x: (inspect(x) ** 2).sum()),
    "batch": lambda lib, inspect: lib.mj.vmap(inspect),
    "loop": lambda lib, inspect: (
        lambda x: lib.lax.fori_loop(0, 2, lambda i, x: inspect(x) * 2, x)
    ),
    "branch": lambda lib, inspect: (
        lambda x: lib.lax.cond(
            x.sum() > 0, lambda x: inspect(x) * 1, lambda x: x * 2, x
        )
    ),
    "remat": lambda lib, inspect: lib.mj.grad(
        lib.mj.checkpoint(lambda x: lib.jnp.sin(inspect(x)).sum())
    ),
}
for _name, _function in _INSPECTING.items():
    CASES[f"inspected_{_name}"] = functools.partial(_inspected, function=_function)


@case
def inspected_on_an_explicit_mesh(lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    with lib.mj.set_mesh(mesh):
        return _inspected(lib, lambda lib, inspect: lambda x: inspect(x.T), mesh)


@case
def inspected_inside_shard_map(lib):
    def mapped(lib, inspect):
        spec = lib.P("x")
        return lib.mj.shard_map(inspect, mesh=lib.mesh, in_specs=spec, out_specs=spec)

    return _inspected(lib, mapped)


@case
def inspected_on_one_device(lib):
    return _inspected(lib, lambda lib, inspect: inspect, at=lib.numbers(8, 8))


@case
def drawn_inside_jit(lib):
    def draw(x):
        lib.debug.visualize_array_sharding(x * 2, use_color=False)
        return x

    with contextlib.redirect_stdout(io.StringIO()) as text:
        lib.mj.jit(draw)(lib.put(lib.numbers(8, 8), "x"))
    return str(re.findall(r"CPU [\d,]+", text.getvalue()))


@case
def from_the_host_s_memory_and_back(lib):
    on_host = lib.Named(lib.mesh, lib.P("x"), memory_kind="pinned_host")
    x = lib.mj.device_put(lib.numbers(8, 4), on_host)
    y = lib.mj.device_put(x, on_host.with_memory_kind("device"))
    doubled = lib.mj.jit(lambda v: v * 2)(y)
    back = lib.mj.device_put(doubled, on_host)
    kinds = [one.sharding.memory_kind for one in (x, y, doubled, back)]
    return str(kinds), np.asarray(x), np.asarray(back), doubled


@case
def results_in_the_host_s_memory(lib):
    on_host = lib.Named(lib.mesh, lib.P("x"), memory_kind="pinned_host")
    x = lib.put(lib.numbers(8, 4), "x")
    y = lib.mj.jit(lambda v: v * 2, out_shardings=on_host)(x)
    return y.sharding.memory_kind, np.asarray(y)


@case
def wrong_memory_kind(lib):
    return lib.Named(lib.mesh, lib.P("x"), memory_kind="attic")


@case
def a_committed_argument_elsewhere_and_out_shardings(lib):
    x = lib.mj.device_put(lib.numbers(8), lib.mj.devices()[3])
    return lib.mj.jit(lambda x: x * 2, out_shardings=lib.on("x"))(x)


@case
def an_inlined_function_with_out_shardings(lib):
    inner = lib.mj.jit(lambda x: x * 2, out_shardings=lib.on("x"), inline=True)
    return lib.mj.jit(lambda x: inner(x) + 1)(lib.numbers(8))


@case
def ahead_of_time_on_a_given_device(lib):
    first, last = lib.mj.devices()[1], lib.mj.devices()[3]
    x = lib.mj.device_put(lib.numbers(8), first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        doubled = lib.mj.jit(lambda x: x * 2, device=last)
    return doubled.lower(x).compile()(lib.numbers(8))


@case
def ahead_of_time_on_the_device_of_the_argument(lib):
    x = lib.mj.device_put(lib.numbers(8), lib.mj.devices()[3])
    return lib.mj.jit(lambda x: x * 2).lower(x).compile()(x)
