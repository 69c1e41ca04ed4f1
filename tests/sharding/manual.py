"""Programs with `shard_map` and `pmap`: the cases."""

from __future__ import annotations

import importlib

import numpy as np

CASES = {}


def case(function):
    """Adds a case under its name."""
    CASES[function.__name__] = function
    return function


def mapped(lib, f, ins, outs, mesh=None, **options):
    """`f` under shard_map over the 4x2 mesh."""
    return lib.mj.shard_map(
        f, mesh=mesh or lib.mesh, in_specs=ins, out_specs=outs, **options
    )


def _collective(name, f, spec, out, gradient_in_jax=True):
    """A collective: values, the jaxpr, and the gradient, with and without checks."""

    def add(check):
        def body(lib):
            ins, outs = lib.P(*spec), lib.P(*out)
            return mapped(lib, lambda a: f(lib, a), ins, outs, check_vma=check)

        def run(lib):
            x = lib.numbers(8, 4)
            g = mapped(
                lib, lambda a: f(lib, a), lib.P(*spec), lib.P(*out), check_vma=check
            )
            return [g(x), lib.mj.jit(g)(x), str(lib.mj.make_jaxpr(g)(x))]

        def gradient(lib):
            x = lib.numbers(8, 4)
            g = mapped(
                lib, lambda a: f(lib, a), lib.P(*spec), lib.P(*out), check_vma=check
            )

            def loss(x):
                y = g(x)
                return (y * lib.jnp.cos(y)).sum()

            return np.asarray(lib.mj.jit(lib.mj.grad(loss))(x))

        def both_ways(lib):
            """The gradient against differences: both libraries could be wrong."""
            x = lib.numbers(8, 4)
            g = lib.mj.jit(
                mapped(
                    lib, lambda a: f(lib, a), lib.P(*spec), lib.P(*out), check_vma=check
                )
            )
            weights = lib.numbers(*g(x).shape) + 0.5
            gradient = lib.mj.grad(lambda x: (g(x) * weights).sum())(x)
            direction = np.roll(lib.numbers(8, 4), 3)
            step = 1e-2
            up, down = g(x + step * direction), g(x - step * direction)
            slope = (np.asarray(up, np.float64) - np.asarray(down)) / (2 * step)
            found = float((np.asarray(gradient, np.float64) * direction).sum())
            expected = float((slope * weights).sum())
            return str(abs(found - expected) < 1e-2 * max(1.0, abs(expected)))

        CASES[f"{name} check={check}"] = run
        if gradient_in_jax:
            CASES[f"gradient of {name} check={check}"] = gradient
        if check:
            CASES[f"differences of {name}"] = both_ways

    for check in (True, False):
        add(check)


_collective("psum", lambda lib, a: lib.lax.psum(a, "x"), ("x",), ())
_collective(
    "psum of two axes", lambda lib, a: lib.lax.psum(a, ("x", "y")), ("x", "y"), ()
)
_collective(
    "psum of one of two", lambda lib, a: lib.lax.psum(a, "x"), ("x", "y"), (None, "y")
)
_collective("psum of unvarying", lambda lib, a: lib.lax.psum(a, "y"), ("x",), ("x",))
_collective("pmean", lambda lib, a: lib.lax.pmean(a * a, "x"), ("x",), ())
_collective(
    "all_gather tiled",
    lambda lib, a: lib.lax.all_gather(a, "x", tiled=True),
    ("x",),
    ("x",),
)
_collective(
    "all_gather along 1",
    lambda lib, a: lib.lax.all_gather(lib.jnp.sin(a), "y", axis=1),
    ("x", "y"),
    ("x", "y"),
)
_collective(
    "psum_scatter",
    lambda lib, a: lib.lax.psum_scatter(a, "x", tiled=True),
    (None, "x"),
    ("x",),
)
_collective(
    "psum_scatter untiled",
    lambda lib, a: lib.lax.psum_scatter(a[:4], "x"),
    (None, "x"),
    ("x",),
)
_collective(
    "all_to_all",
    lambda lib, a: lib.lax.all_to_all(a, "x", 1, 0, tiled=True),
    ("x",),
    (None, "x"),
)
_collective(
    "all_to_all untiled",
    lambda lib, a: lib.lax.all_to_all(a, "x", 1, 0),
    ("x",),
    (None, "x"),
    gradient_in_jax=False,
)
_collective(
    "all_to_all untiled, other way",
    lambda lib, a: lib.lax.all_to_all(a.reshape(4, 2), "x", 0, 1),
    ("x",),
    ("x",),
    gradient_in_jax=False,
)
_collective(
    "ppermute",
    lambda lib, a: lib.lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 0)]),
    ("x",),
    ("x",),
)
_collective(
    "ring",
    lambda lib, a: a + lib.lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)]),
    ("x", "y"),
    ("x", "y"),
)
_collective(
    "pshuffle", lambda lib, a: lib.lax.pshuffle(a, "x", [1, 0, 3, 2]), ("x",), ("x",)
)
_collective(
    "axis_index",
    lambda lib, a: a * lib.lax.axis_index("x") + lib.lax.axis_index("y"),
    ("x", "y"),
    ("x", "y"),
)
_collective(
    "mean and variance",
    lambda lib, a: (
        (a - lib.lax.pmean(a.mean(), "x"))
        / lib.jnp.sqrt(lib.lax.pmean((a * a).mean(), "x"))
    ),
    ("x",),
    ("x",),
)
_collective("scalar", lambda lib, a: lib.jnp.sin(a.sum())[None], ("x",), ("x",))
_collective(
    "nested jit",
    lambda lib, a: lib.mj.jit(lambda b: lib.lax.psum(b * b, "x"))(a) + 1,
    ("x",),
    (),
)
_collective(
    "softmax over parts",
    lambda lib, a: lib.jnp.exp(a) / lib.lax.psum(lib.jnp.exp(a).sum(0), "x"),
    ("x",),
    ("x",),
)


def _plain(name, f, spec, out, *shapes, **options):
    def run(lib):
        args = [lib.numbers(*shape) for shape in shapes or ((8, 4),)]
        ins = tuple(lib.P(*one) for one in spec)
        g = mapped(lib, lambda *a: f(lib, *a), ins, lib.P(*out), **options)
        return [g(*args), str(lib.mj.make_jaxpr(g)(*args))]

    CASES[name] = run


_plain("pmax", lambda lib, a: lib.lax.pmax(a, "x"), [("x",)], ())
_plain("pmin", lambda lib, a: lib.lax.pmin(a, ("x", "y")), [("x", "y")], ())
_plain("psum of a number", lambda lib, a: a * lib.lax.psum(1, "x"), [("x",)], ("x",))
_plain(
    "matmul of parts",
    lambda lib, a, b: lib.lax.psum(a @ b, "x"),
    [(None, "x"), ("x",)],
    (),
    (8, 8),
    (8, 4),
)
_plain(
    "closed over",
    lambda lib, a: a @ np.ones((4, 3), np.float32),
    [("x",)],
    ("x",),
)
_plain("axis_size", lambda lib, a: a * lib.lax.axis_size("x"), [("x",)], ("x",))
_plain("where", lambda lib, a: lib.jnp.where(a > 0, a, 0.0), [("x",)], ("x",))
_plain("indexing", lambda lib, a: a.at[0].set(1.0)[:, ::-1], [("x",)], ("x",))
_plain(
    "some axes",
    lambda lib, a: lib.lax.psum(a, "x") + lib.lax.axis_index("x"),
    [("x",)],
    ("x",),
    axis_names={"x"},
)
_plain(
    "groups",
    lambda lib, a: lib.lax.psum(a, "x", axis_index_groups=[[0, 1], [2, 3]]),
    [("x",)],
    ("x",),
    check_vma=False,
)
_plain(
    "gathered groups",
    lambda lib, a: lib.lax.all_gather(
        a, "x", axis_index_groups=[[0, 2], [1, 3]], tiled=True
    ),
    [("x",)],
    ("x",),
    check_vma=False,
)
_plain(
    "pcast",
    lambda lib, a: lib.lax.pcast(lib.jnp.ones(3), "x", to="varying"),
    [("x",)],
    ("x",),
)
_plain(
    "integers",
    lambda lib, a: lib.lax.psum(a.astype(lib.jnp.int32), "x"),
    [("x",)],
    (),
)
_plain("bools", lambda lib, a: lib.lax.psum(a > 0, "x"), [("x",)], ())


@case
def results_of_many_shapes(lib):
    def f(a):
        return {"sum": lib.lax.psum(a, "x"), "part": [a, a.sum()[None]]}

    outs = {"sum": lib.P(), "part": [lib.P("x"), lib.P("x")]}
    return mapped(lib, f, lib.P("x"), outs)(lib.numbers(8, 4))


@case
def prefix_specs(lib):
    def f(tree, b):
        return tree["a"] + tree["b"], b

    g = mapped(lib, f, (lib.P("x"), lib.P()), (lib.P("x"), lib.P()))
    return g({"a": lib.numbers(8), "b": lib.numbers(8)}, lib.numbers(3))


@case
def as_decorator(lib):
    @lib.mj.shard_map(mesh=lib.mesh, in_specs=lib.P("x"), out_specs=lib.P("x"))
    def f(a):
        return a * 2

    return f(lib.numbers(8, 4))


@case
def mesh_in_use(lib):
    with lib.mj.set_mesh(lib.mesh):
        f = lib.mj.shard_map(
            lambda a: lib.lax.psum(a, "x"), in_specs=lib.P("x"), out_specs=lib.P()
        )
        return f(lib.numbers(8, 4)), lib.mj.jit(f)(lib.numbers(8, 4))


@case
def with_scan(lib):
    def f(a):
        start = lib.lax.pcast(lib.jnp.zeros(4), "x", to="varying")
        return lib.lax.scan(lambda c, b: (c + b, c * 2), start, a)[1]

    g = mapped(lib, f, lib.P("x"), lib.P("x"))
    x, direction = lib.numbers(8, 4), np.roll(lib.numbers(8, 4), 5)
    result = g(x)
    if lib.name == "jax":  # which fails to transpose it, inside of its own checks
        return [result, "True"]
    slope = (g(x + direction) - g(x - direction)).sum() / 2
    gradient = lib.mj.grad(lambda x: g(x).sum())(x)
    return [result, str(bool(abs((gradient * direction).sum() - slope) < 1e-2))]


@case
def with_ring_loop(lib):
    def f(a):
        def body(i, state):
            block, total = state
            block = lib.lax.ppermute(block, "x", [(j, (j + 1) % 4) for j in range(4)])
            return block, total + block

        return lib.lax.fori_loop(0, 3, body, (a, a))[1]

    return mapped(lib, f, lib.P("x"), lib.P("x"))(lib.numbers(8, 4))


@case
def with_cond(lib):
    def f(a):
        return lib.lax.cond(
            lib.lax.axis_index("x") > 1, lambda a: a * 2, lambda a: a + 1, a
        )

    return mapped(lib, f, lib.P("x"), lib.P("x"))(lib.numbers(8, 4))


@case
def with_while(lib):
    def f(a):
        return lib.lax.while_loop(lambda a: a.sum() < 100, lambda a: a * a + 1, a)

    return mapped(lib, f, lib.P("x"), lib.P("x"))(lib.numbers(8, 4))


@case
def with_custom_vjp(lib):
    @lib.mj.custom_vjp
    def f(a):
        return a * 2

    f.defvjp(lambda a: (f(a), a), lambda a, ct: (ct * a,))
    g = mapped(lib, f, lib.P("x"), lib.P("x"))
    return np.asarray(lib.mj.grad(lambda x: g(x).sum())(lib.numbers(8, 4)))


@case
def with_checkpoint(lib):
    f = lib.mj.checkpoint(lambda a: lib.jnp.sin(lib.lax.psum(a, "x")))
    g = mapped(lib, f, lib.P("x"), lib.P())
    return np.asarray(lib.mj.grad(lambda x: g(x).sum())(lib.numbers(8, 4)))


@case
def checkpoint_around(lib):
    g = mapped(lib, lambda a: lib.jnp.sin(lib.jnp.sin(a)), lib.P("x"), lib.P("x"))
    f = lib.mj.checkpoint(g)
    return np.asarray(lib.mj.grad(lambda x: f(x).sum())(lib.numbers(8, 4)))


@case
def grad_inside(lib):
    def f(a):
        return lib.mj.grad(lambda b: lib.jnp.sin(b).sum())(a)

    return mapped(lib, f, lib.P("x"), lib.P("x"))(lib.numbers(8, 4))


@case
def grad_of_parameters_inside(lib):
    def f(w, a):
        return lib.mj.grad(lambda w: lib.jnp.sin(a @ w).sum())(w)

    g = mapped(lib, f, (lib.P(), lib.P("x")), lib.P())
    return g(lib.numbers(4, 3), lib.numbers(8, 4))


@case
def vmap_inside(lib):
    def f(a):
        return lib.mj.vmap(lambda row: lib.lax.psum(row, "x"))(a)

    return mapped(lib, f, lib.P("x"), lib.P())(lib.numbers(8, 4))


@case
def vmap_outside(lib):
    g = mapped(lib, lambda a: lib.lax.psum(a, "x") + a, lib.P("x"), lib.P("x"))
    return [
        lib.mj.vmap(g)(lib.numbers(3, 8, 4)),
        lib.mj.vmap(g, in_axes=1, out_axes=2)(lib.numbers(8, 3, 4)),
        str(lib.mj.make_jaxpr(lib.mj.vmap(g))(lib.numbers(3, 8, 4))),
    ]


@case
def vmap_outside_cut(lib):
    g = mapped(lib, lambda a: lib.lax.psum(a, "x") + a, lib.P("x"), lib.P("x"))
    f = lib.mj.vmap(g, spmd_axis_name="y")
    return lib.mj.jit(f)(lib.numbers(4, 8, 4))


@case
def jvp_of_it(lib):
    g = mapped(lib, lambda a: lib.lax.psum(lib.jnp.sin(a), "x"), lib.P("x"), lib.P())
    x = lib.numbers(8, 4)
    return [
        *lib.mj.jvp(g, (x,), (x,)),
        str(lib.mj.make_jaxpr(lambda v: lib.mj.jvp(g, (v,), (v,)))(x)),
    ]


@case
def second_derivative(lib):
    g = mapped(lib, lambda a: lib.lax.psum((a**3).sum(), "x"), lib.P("x"), lib.P())
    f = lib.mj.grad(lambda v: (lib.mj.grad(g)(v) ** 2).sum())
    return np.asarray(f(lib.numbers(8, 4)))


@case
def hessian_vector(lib):
    g = mapped(lib, lambda a: lib.lax.psum((a**3).sum(), "x"), lib.P("x"), lib.P())
    x = lib.numbers(8, 4)
    return np.asarray(lib.mj.jvp(lib.mj.grad(g), (x,), (x,))[1])


@case
def twice_in_one_program(lib):
    g = mapped(lib, lambda a: a * 2, lib.P("x"), lib.P("x"))
    h = mapped(lib, lambda a: lib.lax.psum(a, "y"), lib.P(None, "y"), lib.P())
    return lib.mj.jit(lambda x: h(g(x)) + 1)(lib.numbers(8, 4))


@case
def random_on_each(lib):
    def f(a):
        key = lib.random.fold_in(lib.random.key(0), lib.lax.axis_index("x"))
        return lib.random.normal(key, (2,))

    return mapped(lib, f, lib.P("x"), lib.P("x"))(lib.numbers(8, 4))


@case
def nested_manual(lib):
    def inner(b):
        return lib.lax.psum(b, "y")

    def outer(a):
        return lib.mj.shard_map(
            inner, in_specs=lib.P(None, "y"), out_specs=lib.P(), axis_names={"y"}
        )(a)

    with lib.mj.set_mesh(lib.mesh):
        g = lib.mj.shard_map(
            outer, in_specs=lib.P("x"), out_specs=lib.P("x"), axis_names={"x"}
        )
        return lib.mj.jit(g)(lib.numbers(8, 4))


@case
def older_path(lib):
    import importlib
    import warnings

    both = {"in_specs": lib.P("x"), "out_specs": lib.P("x"), "mesh": lib.mesh}
    if lib.name == "jax":
        return lib.mj.shard_map(lambda a: a * 2, **both)(lib.numbers(8, 4))
    room = importlib.import_module("minijax.experimental.shard_map")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = room.shard_map(lambda a: a * 2, lib.mesh, lib.P("x"), lib.P("x"))
    return f(lib.numbers(8, 4))


def _pmap(name, f, *shapes, **options):
    def run(lib):
        args = [lib.numbers(*shape) for shape in shapes]
        g = lib.mj.pmap(lambda *a: f(lib, *a), **options)
        return [np.asarray(one) for one in lib.mj.tree_util.tree_leaves(g(*args))]

    CASES[f"pmap {name}"] = run


_pmap("one", lambda lib, a: a * 2, (8, 3))
_pmap("psum", lambda lib, a: lib.lax.psum(a, "i"), (8, 3), axis_name="i")
_pmap("of four", lambda lib, a: a + 1, (4, 3))
_pmap("in_axes", lambda lib, a, b: a + b, (3, 8), (3,), in_axes=(1, None))
_pmap("out_axes", lambda lib, a: (a, a.sum()), (8, 3), out_axes=(1, 0))
_pmap(
    "out None",
    lambda lib, a: lib.lax.psum(a, "i"),
    (8, 3),
    axis_name="i",
    out_axes=None,
)
_pmap("index", lambda lib, a: lib.lax.axis_index("i") + a, (8,), axis_name="i")


@case
def pmap_static(lib):
    f = lib.mj.pmap(lambda a, n: a * n, static_broadcasted_argnums=1)
    return np.asarray(f(lib.numbers(8, 3), 3))


@case
def pmap_of_vmap(lib):
    f = lib.mj.pmap(lib.mj.vmap(lambda a: a.sum()))
    return np.asarray(f(lib.numbers(8, 3, 2)))


@case
def pmap_gradient(lib):
    f = lib.mj.pmap(lambda w, a: (w * a).sum(), in_axes=(None, 0))
    return np.asarray(
        lib.mj.grad(lambda w: f(w, lib.numbers(8, 3)).sum())(lib.numbers(3))
    )


@case
def pmap_printed(lib):
    f = lib.mj.pmap(lambda a: lib.lax.psum(a, "i"), axis_name="i")
    return str(lib.mj.make_jaxpr(f)(lib.numbers(8, 3)))


def _collectives(name, f, spec, out):
    def run(lib):
        g = mapped(lib, lambda a: f(lib, a), lib.P(*spec), lib.P(*out))
        return str(lib.collectives(g, lib.put(lib.numbers(8, 4), *spec)))

    CASES[f"collectives of {name}"] = run


_collectives("psum", lambda lib, a: lib.lax.psum(a, "x"), ("x",), ())
_collectives("all_gather", lambda lib, a: lib.lax.all_gather(a, "x"), ("x",), ("x",))
_collectives(
    "psum_scatter",
    lambda lib, a: lib.lax.psum_scatter(a, "x", tiled=True),
    (None, "x"),
    ("x",),
)
_collectives(
    "ppermute", lambda lib, a: lib.lax.ppermute(a, "x", [(0, 1)]), ("x",), ("x",)
)
_collectives(
    "all_to_all",
    lambda lib, a: lib.lax.all_to_all(a, "x", 1, 0, tiled=True),
    ("x",),
    (None, "x"),
)


# Wrong programs.


def _wrong(name, f, ins, outs, *shapes, **options):
    def run(lib):
        args = [lib.numbers(*shape) for shape in shapes or ((8, 4),)]
        return mapped(lib, lambda *a: f(lib, *a), ins(lib), outs(lib), **options)(*args)

    CASES[f"wrong: {name}"] = run


def _same(lib, *args):
    return args[0]


def _x(lib):
    return lib.P("x")


_wrong("indivisible", _same, _x, _x, (7, 4))
_wrong("unknown axis in", _same, lambda lib: lib.P("z"), _x)
_wrong("unknown axis out", _same, _x, lambda lib: lib.P("z"))
_wrong("in spec too long", _same, lambda lib: lib.P("x", None, "y"), _x)
_wrong("out spec too long", _same, _x, lambda lib: lib.P("x", None, None))
_wrong("out claims copies", _same, _x, lambda lib: lib.P())
_wrong("out claims copies of one axis", _same, lambda lib: lib.P("x", "y"), _x)
_wrong(
    "gathered claims copies",
    lambda lib, a: lib.lax.all_gather(a, "x"),
    _x,
    lambda lib: lib.P(),
)
_wrong("spec is a text", _same, lambda lib: "x", _x)
_wrong("out spec is a text", _same, _x, lambda lib: "x")
_wrong("too few specs", _same, lambda lib: (lib.P("x"),), _x, (8,), (8,))
_wrong("too many out specs", _same, _x, lambda lib: (lib.P("x"), lib.P("x")))
_wrong("axis not manual", _same, _x, _x, axis_names={"y"})
_wrong("axis names unknown", _same, _x, _x, axis_names={"z"})
_wrong(
    "ppermute target twice",
    lambda lib, a: lib.lax.ppermute(a, "x", [(0, 1), (2, 1)]),
    _x,
    _x,
)
_wrong(
    "ppermute out of range", lambda lib, a: lib.lax.ppermute(a, "x", [(0, 9)]), _x, _x
)
_wrong(
    "psum of some varying",
    lambda lib, a: lib.lax.psum(a, ("x", "y")),
    _x,
    lambda lib: lib.P(),
)
_wrong("pcast twice", lambda lib, a: lib.lax.pcast(a, "x", to="varying"), _x, _x)
_wrong("pcast to nonsense", lambda lib, a: lib.lax.pcast(a, "y", to="there"), _x, _x)
_wrong(
    "scatter indivisible",
    lambda lib, a: lib.lax.psum_scatter(a[:3], "x", tiled=True),
    _x,
    _x,
)
_wrong(
    "all_to_all indivisible",
    lambda lib, a: lib.lax.all_to_all(a, "x", 0, 1, tiled=True),
    _x,
    _x,
)
_wrong(
    "all_to_all untiled size", lambda lib, a: lib.lax.all_to_all(a, "x", 0, 1), _x, _x
)
_wrong(
    "carry that varies",
    lambda lib, a: lib.lax.scan(lambda c, b: (c + b, c), lib.jnp.zeros(4), a)[1],
    _x,
    _x,
)
_wrong("result no array", lambda lib, a: "text", _x, _x)
_wrong("shapes of parts", lambda lib, a: a + lib.jnp.ones((3, 3)), _x, _x)


@case
def wrong_no_mesh(lib):
    return lib.mj.shard_map(lambda a: a, in_specs=lib.P("x"), out_specs=lib.P("x"))(
        lib.numbers(8)
    )


@case
def wrong_mesh(lib):
    return lib.mj.shard_map(
        lambda a: a, mesh=3, in_specs=lib.P("x"), out_specs=lib.P("x")
    )(lib.numbers(8))


@case
def wrong_no_function(lib):
    return lib.mj.shard_map(3, mesh=lib.mesh, in_specs=lib.P(), out_specs=lib.P())(1.0)


@case
def wrong_axis_outside(lib):
    return lib.mj.jit(lambda a: lib.lax.psum(a, "x"))(lib.numbers(8))


@case
def wrong_argument(lib):
    return mapped(lib, lambda a: a, lib.P(), lib.P())("text")


@case
def wrong_pmap_sizes(lib):
    return lib.mj.pmap(lambda a, b: a)(lib.numbers(8), lib.numbers(4))


@case
def wrong_pmap_too_many(lib):
    return lib.mj.pmap(lambda a: a)(lib.numbers(9))


@case
def wrong_pmap_no_axis(lib):
    return lib.mj.pmap(lambda a: a, in_axes=None)(lib.numbers(8))


@case
def wrong_pmap_scalar(lib):
    return lib.mj.pmap(lambda a: a)(3.0)


# ----------------------------------------------------------------------------------
# Arguments that are no arrays, gathers that are equal everywhere
# ----------------------------------------------------------------------------------


@case
def gathered_and_known_to_be_equal(lib):
    def body(a):
        return lib.lax.all_gather(a, "x", tiled=True, to="invarying")

    function = mapped(lib, body, lib.P("x"), lib.P())
    x = lib.numbers(8, 4)
    return function(x), lib.mj.grad(lambda x: (function(x) ** 2).sum())(x)


@case
def gathered_along_a_new_axis(lib):
    def body(a):
        return lib.lax.all_gather(a, "y", axis=1, to="invarying")

    return mapped(lib, body, lib.P(None, "y"), lib.P())(lib.numbers(4, 4))


@case
def an_argument_without_spec(lib):
    function = mapped(
        lib, lambda a, n: a * n, (lib.P("x"), None), lib.P("x"), mesh=lib.mesh
    )
    return function(lib.numbers(8, 4), 3)


_wrong(
    "axis_names no set",
    _same,
    _x,
    _x,
    axis_names=("x",),
)
_wrong(
    "gather to what",
    lambda lib, a: lib.lax.all_gather(a, "x", to="nowhere"),
    _x,
    _x,
)


def _ordered(lib, body, spec="x", mesh=None, **options):
    """`body` with a function that notes a value, in order, on each device."""
    seen = []
    room = importlib.import_module(f"{lib.name}.experimental")

    def note(a):
        room.io_callback(lambda v: seen.append(float(v.sum())), None, a, ordered=True)

    function = mapped(
        lib,
        lambda a: body(note, a),
        lib.P(spec),
        lib.P(spec),
        mesh=mesh or lib.line,
        **options,
    )
    return lib.mj.jit(function), seen


def _run_ordered(lib, function, seen, x):
    results = [function(x), function(x)]
    lib.mj.effects_barrier()
    return [*results, str(sorted(seen)), str(len(seen))]


@case
def ordered_calls_on_each_device(lib):
    def body(note, a):
        note(a)
        note(a + 10)
        return a * 2

    function, seen = _ordered(lib, body, "i")
    return _run_ordered(lib, function, seen, lib.numbers(8))


@case
def ordered_calls_in_a_loop_and_a_branch(lib):
    def body(note, a):
        def step(carry, _):
            note(carry)
            return carry + 1, None

        def noted(a):
            note(-a)
            return a

        a = lib.lax.scan(step, a, None, length=3)[0]
        return lib.lax.cond(a[0] > 4, noted, lambda a: a, a)

    function, seen = _ordered(lib, body, "i")
    return _run_ordered(lib, function, seen, lib.numbers(8))


@case
def ordered_calls_keep_their_order(lib):
    """Before, inside and after, over several programs and numbers of devices."""
    room = importlib.import_module(f"{lib.name}.experimental")
    texts = []
    for mesh in (lib.line, lib.make_mesh((1,), "i")):
        seen = []

        def note(a, seen=seen):
            return room.io_callback(
                lambda v: seen.append(int(v)), None, a, ordered=True
            )

        def body(a, note=note):
            for i in range(4):
                note(lib.lax.axis_index("i") * 4 + i)
            return a

        alone = lib.mj.jit(note)
        for _ in range(3):
            mapped(lib, body, lib.P("i"), lib.P("i"), mesh=mesh)(lib.numbers(8))
            alone(100)
        lib.mj.effects_barrier()
        texts.append(str([at for at, n in enumerate(seen) if n == 100]))
        texts.append(str([[n for n in seen if n // 4 == d] for d in range(8)]))
    return texts


@case
def an_ordered_call_of_a_program_that_is_cut(lib):
    room = importlib.import_module(f"{lib.name}.experimental")
    seen = []

    def function(x):
        room.io_callback(lambda v: seen.append(float(v.sum())), None, x, ordered=True)
        return x + 1

    x = lib.mj.device_put(lib.numbers(8), lib.Named(lib.line, lib.P("i")))
    return [*_run_ordered(lib, lib.mj.jit(function), seen, x)]


@case
def an_ordered_call_under_pmap(lib):
    seen = []
    room = importlib.import_module(f"{lib.name}.experimental")

    def function(a):
        room.io_callback(lambda v: seen.append(float(v)), None, a, ordered=True)
        return a

    lib.mj.pmap(function)(lib.numbers(8))
    lib.mj.effects_barrier()
    return str(sorted(seen))


@case
def an_ordered_print_on_one_device(lib):
    def body(a):
        lib.debug.print("{}", a, ordered=True)
        return a

    one = lib.make_mesh((1,), "i")
    function = mapped(lib, body, lib.P("i"), lib.P("i"), mesh=one)
    return np.asarray(function(lib.numbers(8)))


@case
def wrong_ordered_print(lib):
    def body(a):
        lib.debug.print("{}", a, ordered=True)
        return a

    function = mapped(lib, body, lib.P("i"), lib.P("i"), mesh=lib.line)
    return lib.mj.jit(function)(lib.numbers(8))


@case
def wrong_ordered_print_under_pmap(lib):
    def function(a):
        lib.debug.print("{}", a, ordered=True)
        return a

    return lib.mj.pmap(function)(lib.numbers(8))


@case
def wrong_call_where_the_compiler_cuts(lib):
    function, _ = _ordered(
        lib, lambda note, a: note(a) or a, mesh=lib.mesh, axis_names={"x"}
    )
    return function(lib.numbers(8))


def _checkified(name, checks, body, cut=("x",), jitted=False, **options):
    """What `checkify` finds on each of the devices: its text, and the result."""

    def run(lib):
        checkify = importlib.import_module(f"{lib.name}.experimental.checkify")
        spec = lib.P(*cut)
        function = mapped(lib, lambda a: body(lib, checkify, a), spec, spec, **options)
        if jitted:
            function = lib.mj.jit(function)
        errors = getattr(checkify, checks)
        error, out = checkify.checkify(function, errors=errors)(lib.numbers(8))
        return [str(error.get()), np.asarray(out)]

    CASES[f"checkify {name}"] = run


def _log(lib, checkify, a):
    return lib.jnp.log(a)


def _positive(lib, checkify, a):
    checkify.check(lib.jnp.all(a > 0), "{} is not positive", a[0])
    return 2 * a


_checkified("nan", "nan_checks", _log)
_checkified("nan, both axes", "nan_checks", _log, cut=(("x", "y"),))
_checkified("nan, copies", "nan_checks", _log, cut=())
_checkified("nan in jit", "nan_checks", _log, jitted=True)
_checkified("nan, unchecked types", "nan_checks", _log, check_vma=False)
_checkified("division", "div_checks", lambda lib, _, a: 1 / (a - a[0]))
_checkified("check", "user_checks", _positive)
_checkified("nothing", "nan_checks", lambda lib, _, a: lib.jnp.sin(a))


@case
def values_on_the_way(lib):
    """Outside of programs Python may print parts, and ask for what all devices have."""
    told = []

    def f(x, key):
        told.extend([str(x), str(key)])
        total = lib.lax.psum(x.sum(), ("x", "y"))
        told.extend([str(total), int(total), str(lib.lax.axis_index("y"))])
        for _ in range(2 - int(total)):
            x = x + 1
        if total < 3:
            x = lib.mj.nn.relu(x) * lib.random.uniform(key)
        told.extend([f"{x > 2}", str(lib.lax.pmax(x.astype(int), ("x", "y")))])
        return x, total

    ins, outs = (lib.P("x", "y"), lib.P()), (lib.P("x", "y"), lib.P())
    out = mapped(lib, f, ins, outs)(lib.numbers(8, 4), lib.random.key(0))
    return [*out, *told]


def _tripled(lib, x):
    """What Python asks for decides; the squares make another value of tangents."""
    large = lib.lax.psum((x * x).sum(), ("x", "y")) > 3
    counted = int(lib.lax.psum(lib.jnp.int32(1), "y"))
    return lib.jnp.sin(x) * 3 * counted if large else x


@case
def values_within_grad(lib):
    f = mapped(lib, lambda x: _tripled(lib, x), lib.P("x", "y"), lib.P("x", "y"))
    x = lib.numbers(8, 4)
    gradient = lib.mj.grad(lambda x: (f(x) ** 2).sum())
    return [gradient(x), *lib.mj.jvp(f, (x,), (x,)), *lib.mj.vjp(f, x)[1](f(x))]


@case
def values_within_another(lib):
    def outer(x):
        inner = lib.mj.shard_map(
            lambda x: _tripled(lib, x),
            in_specs=lib.P(None, "y"),
            out_specs=lib.P(None, "y"),
            axis_names={"y"},
        )
        return inner(x) if lib.lax.psum(x.sum(), "x") < 9 else x

    spec = lib.P("x")
    return mapped(lib, outer, spec, spec, axis_names={"x"})(lib.numbers(8, 4))


@case
def floats_within_grad(lib):
    """A float that Python asks for would have no derivative."""
    f = mapped(
        lib, lambda x: x * float(lib.lax.psum(x.sum(), "x")), lib.P("x"), lib.P("x")
    )
    return lib.mj.grad(lambda x: f(x).sum())(lib.numbers(8))


def _asked(ask, **options):
    def body(lib):
        told = []

        def f(x):
            total = lib.lax.psum(x, ("x", "y"))
            told.append(ask(lib, x, total))
            return x

        g = mapped(lib, f, lib.P("x"), lib.P("x"), **options)
        return [g(lib.numbers(8)), *told]

    return body


CASES["a part differs by device"] = _asked(lambda lib, x, total: bool(x[0] > 0))
CASES["values in jit"] = _asked(
    lambda lib, x, total: lib.mj.jit(lambda x: float(lib.lax.psum(x[0], "x")))(x)
)
CASES["values without types"] = _asked(
    lambda lib, x, total: bool(total[0] > 0), check_vma=False
)
CASES["parts without types"] = _asked(
    lambda lib, x, total: str(x) + str(total), check_vma=False
)


def _shown_within_another(lib, mesh_is_set):
    """Each part, in a shard_map over the other axis."""
    told = []

    def inner(x):
        total = lib.lax.psum(x.sum(), ("x", "y"))
        told.extend([str(x), str(total)])
        return x if total > 0 else 2 * x

    def outer(x):
        spec = lib.P(None, "x")
        f = lib.mj.shard_map(inner, in_specs=spec, out_specs=spec, axis_names={"x"})
        return f(x)

    options = {"in_specs": lib.P("y"), "out_specs": lib.P("y"), "axis_names": {"y"}}
    if not mesh_is_set:
        f = lib.mj.shard_map(outer, mesh=lib.mesh, **options)
        return [f(lib.numbers(8, 4)), *told]
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    with lib.mj.set_mesh(mesh):
        f = lib.mj.shard_map(outer, **options)
        return [f(lib.put(lib.numbers(8, 4), "y", "x", mesh=mesh)), *told]


CASES["parts within another"] = lambda lib: _shown_within_another(lib, False)
CASES["parts within another, mesh in use"] = lambda lib: _shown_within_another(
    lib, True
)


def _summed_rows(name, check_vma=False):
    """A sum over a mesh axis and the axis of a vmap inside."""
    rows = lambda lib, row: getattr(lib.lax, name)(row, ("x", "i"))

    def body(lib):
        f = lambda x: lib.mj.vmap(lambda row: rows(lib, row), axis_name="i")(x)
        spec = lib.P("x")
        return mapped(lib, f, spec, spec, check_vma=check_vma)(lib.numbers(8, 4))

    return body


for _name in ("psum", "pmax"):
    CASES[f"{_name} over rows and devices"] = _summed_rows(_name)
CASES["psum over rows and devices, checked"] = _summed_rows("psum", True)
