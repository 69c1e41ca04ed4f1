"""Programs in which `shard_map`, `vmap`, `smap`, `pmap` and refs stand in each other.

Each case is a function of a `Library`. It returns arrays, types or printed programs, or
raises. The meshes have 2x2x2 and 4x2 devices, with axes of one type or of two.
"""

from __future__ import annotations

import functools

from tests.golden.normalise import plain_numpy_scalars

CASES = {}


class Nest:
    """A library with meshes of a kind, in use."""

    def __init__(self, lib, kinds):
        self.lib, self.P, self.mj = lib, lib.P, lib.mj
        self.jnp, self.lax = lib.jnp, lib.lax
        table = {"a": lib.auto, "e": lib.explicit}
        self.mesh = lib.mj.make_mesh(
            (2, 2, 2), tuple("xyz"), axis_types=tuple(table[k] for k in kinds)
        )
        self.m = lib.numbers(8, 8)
        self.map = lib.mj.shard_map

    def put(self, *spec):
        return self.mj.device_put(self.m, self.lib.Named(self.mesh, self.P(*spec)))


def _bodies(t):
    """Programs that map in each other: (name, function of one array, its spec)."""
    P, lax, jnp, shard = t.P, t.lax, t.jnp, t.map

    def inner(f, spec, axes, out=None):
        return shard(
            f, in_specs=spec, out_specs=spec if out is None else out, axis_names=axes
        )

    def nested(x):
        def outer(p):
            total = lax.psum(p, "x")
            return inner(lambda q: q * lax.axis_size("y"), P("y"), {"y"})(total)

        return inner(outer, P("x"), {"x"}, P())(x)

    def nested_sum(x):
        def outer(p):
            return inner(lambda q: lax.psum(q, "y"), P("y"), {"y"}, P())(p)

        return inner(outer, P("x"), {"x"})(x)

    def three(x):
        def third(q):
            return q + lax.axis_index("z")

        def second(p):
            return inner(third, P(None, "z"), {"z"})(jnp.sin(p))

        def first(p):
            return inner(second, P(None, "y"), {"y"})(p)

        return inner(first, P("x"), {"x"})(x)

    def partly(x):
        return inner(lambda p: lax.psum(p @ p.T, "x"), P("x"), {"x"}, P())(x)

    def partly_both(x):
        return inner(
            lambda p: lax.psum(jnp.sin(p), "x"), P("x", "y"), {"x", "y"}, P(None, "y")
        )(x)

    def scanned(x):
        def body(p):
            return lax.scan(lambda c, _: (jnp.sin(c), c.sum()), p, None, length=3)[0]

        return inner(body, P("x"), {"x"})(x)

    def conditional(x):
        def body(p):
            return lax.cond(p.sum() > 0, lambda q: q * 2, lambda q: q - 1, p)

        return inner(body, P("x"), {"x"})(x)

    def rematerialized(x):
        def body(p):
            return t.mj.checkpoint(lambda q: jnp.sin(jnp.sin(q)))(p)

        return inner(body, P("x"), {"x"})(x)

    def gathered(x):
        body = functools.partial(lax.all_gather, axis_name="x", tiled=True)
        return inner(body, P("x"), {"x"})(x)

    def scattered(x):
        body = functools.partial(lax.psum_scatter, axis_name="x", tiled=True)
        return inner(body, P(), {"x"}, P("x"))(x)

    def jitted(x):
        return inner(t.mj.jit(lambda p: jnp.cos(p) * 2), P("x"), {"x"})(x)

    def everything(x):
        return shard(
            lambda p: lax.psum(p, ("y", "z")),
            in_specs=P("x", ("y", "z")),
            out_specs=P("x"),
        )(x)

    def vmapped_inside(x):
        return inner(t.mj.vmap(lambda r: lax.psum(r, "x")), P("x"), {"x"}, P())(x)

    def vmapped(x):
        one = inner(lambda p: lax.psum(jnp.sin(p), "x"), P("x"), {"x"}, P())
        return t.mj.vmap(one)(x)

    def vmapped_along(x):
        one = inner(lambda p: lax.psum(jnp.sin(p), "x"), P("x"), {"x"}, P())
        return t.mj.vmap(one, spmd_axis_name="y")(x)

    def smapped(x):
        return t.mj.smap(
            lambda r: r * 2 + lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x"
        )(x)

    def smapped_twice(x):
        one = t.mj.smap(lambda r: jnp.sin(r), in_axes=1, out_axes=1, axis_name="y")
        return t.mj.smap(one, in_axes=0, out_axes=0, axis_name="x")(x)

    def filled(x):
        def body(p):
            begin = jnp.zeros_like(p), jnp.full_like(p, 2, shape=(2,))
            return lax.scan(
                lambda c, _: ((c[0] + p, c[1] * p[0, 0]), ()), begin, length=3
            )[0]

        return inner(body, P("x"), {"x"})(x)[0]

    def refs(x):
        def body(p):
            ref = t.mj.new_ref(jnp.zeros_like(p))

            def add(i, _):
                ref[...] += jnp.sin(p) * i

            lax.fori_loop(1, 3, add, None)
            ref[0] *= 2
            return t.mj.freeze(ref)

        return inner(body, P("x"), {"x"})(x)

    plain = P("x")
    return {
        "filled": (filled, plain),
        "refs": (refs, plain),
        "nested": (nested, plain),
        "nested_sum": (nested_sum, plain),
        "three": (three, plain),
        "partly": (partly, plain),
        "partly_both": (partly_both, P("x", "y")),
        "scanned": (scanned, plain),
        "conditional": (conditional, plain),
        "rematerialized": (rematerialized, plain),
        "gathered": (gathered, plain),
        "scattered": (scattered, P()),
        "jitted": (jitted, plain),
        "everything": (everything, P("x", ("y", "z"))),
        "vmapped_inside": (vmapped_inside, plain),
        "vmapped": (vmapped, P(None, "x")),
        "vmapped_along": (vmapped_along, P("y", "x")),
        "smapped": (smapped, plain),
        "smapped_twice": (smapped_twice, P("x", "y")),
    }


NAMES = tuple(
    "nested nested_sum three partly partly_both scanned conditional rematerialized "
    "gathered scattered jitted everything vmapped_inside vmapped vmapped_along smapped "
    "smapped_twice filled refs".split()
)


def _value(t, f, x):
    out = t.mj.jit(f)(x)
    return [str(t.mj.typeof(out)), out]


def _printed(t, f, x):
    return str(t.mj.make_jaxpr(f)(x))


def _gradient(t, f, x):
    out = t.mj.jit(t.mj.grad(lambda y: (f(y) ** 2).sum()))(x)
    return [str(t.mj.typeof(out)), out]


def _case(lib, kinds, name, run):
    t = Nest(lib, kinds)
    with lib.mj.set_mesh(t.mesh), plain_numpy_scalars():
        function, spec = _bodies(t)[name]
        return run(t, function, t.put(*spec.partitions))


for _kinds in ("aaa", "eee", "eaa"):
    for _name in NAMES:
        for _run in (_value, _printed, _gradient):
            CASES[f"{_kinds}_{_name}{_run.__name__}"] = functools.partial(
                _case, kinds=_kinds, name=_name, run=_run
            )
# Where a result lies says also what `shard_map` does to Explicit axes that it leaves.
for _kinds in ("aea", "aae", "aee", "eea", "eae"):
    for _name in NAMES:
        CASES[f"{_kinds}_{_name}_value"] = functools.partial(
            _case, kinds=_kinds, name=_name, run=_value
        )


def _asked(lib, kinds):
    """What asks for a place, where `shard_map` maps over one axis: types, or refusals.

    A spec means the mesh as it is there, of which one axis is Manual; the mesh outside
    is another one.
    """
    t, found = Nest(lib, kinds), {}
    P, jnp = t.P, t.jnp
    places = {
        **{str(axes): lambda axes=axes: P(*axes) for axes in ((), ("y",), ("x",))},
        "inside": lambda: lib.Named(lib.sharding.get_abstract_mesh(), P("y")),
        "whole": lambda: lib.Named(t.mesh, P("y")),
        "of types": lambda: lib.Named(t.mesh.abstract_mesh, P()),
    }
    operations = {
        "dot": lambda p, s: lib.lax.dot(p, p.T, out_sharding=s),
        "reshape": lambda p, s: jnp.reshape(p, (8, 4), out_sharding=s),
        "iota": lambda p, s: lib.lax.broadcasted_iota(int, (8, 8), 0, out_sharding=s),
        "zeros": lambda p, s: jnp.zeros((8, 8), out_sharding=s),
        "repeat": lambda p, s: jnp.repeat(p, 2, axis=0, out_sharding=s),
        "normal": lambda p, s: lib.random.normal(
            lib.random.key(0), (8, 8), out_sharding=s
        ),
        "reshard": lib.sharding.reshard,
    }
    for operation, function in operations.items():
        for place, made in places.items():

            def body(p, function=function, made=made):
                types.append(str(t.mj.typeof(function(p, made()))))
                return p

            types = []
            mapped = t.map(body, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
            try:
                with lib.mj.set_mesh(t.mesh):
                    t.mj.eval_shape(mapped, t.put("x"))
            except ValueError as error:
                types.append(type(error).__name__)
            found[f"{operation} at {place}"] = types[-1]
    return [f"{name}: {kind}" for name, kind in found.items()]


for _kinds in ("eee", "aee"):
    CASES[f"{_kinds}_asked"] = functools.partial(_asked, kinds=_kinds)


def _of_ref(lib, kinds):
    """A ref that is an argument: what is written into the parts, and its tangent."""
    t = Nest(lib, kinds)

    def write(ref, p):
        ref[...] = ref[...] * 2 + lib.jnp.sin(p)
        return lib.lax.psum(p, "x")

    def f(x):
        ref = t.mj.new_ref(x)
        specs = t.P("x"), t.P()
        mapped = t.map(write, mesh=t.mesh, in_specs=(specs[0],) * 2, out_specs=specs[1])
        return mapped(ref, x), ref[...]

    x = t.put("x")
    return t.mj.jit(lambda x: t.mj.jvp(f, (x,), (x,)))(x), t.mj.jit(f)(x)


CASES["aaa_of_ref"] = functools.partial(_of_ref, kinds="aaa")
CASES["eee_of_ref"] = functools.partial(_of_ref, kinds="eee")

# JAX fails: it writes a module that does not parse, or a cotangent has another type.
ONLY_HERE = {
    **{f"{kinds}_three_gradient": "three" for kinds in ("aaa", "eee", "eaa")},
    **{f"{kinds}_smapped_twice_gradient": "sines" for kinds in ("aaa", "eee", "eaa")},
    "eee_nested_gradient": "aaa_nested_gradient",
    "eee_nested_sum_gradient": "aaa_nested_sum_gradient",
}
# JAX prints the mesh in use as a parameter of `jit` inside.
PRINTED_OTHERWISE = {f"{kinds}_jitted_printed" for kinds in ("aaa", "eee", "eaa")}
