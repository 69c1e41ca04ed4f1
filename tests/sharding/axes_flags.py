"""Programs under the two flags of types on meshes.

`jax_auto_pcast`: off, nothing marks a value as varying but the program itself.
`jax_remove_size_one_mesh_axis_from_type`: on, types do not name axes of size one.

Each case is a function of a `Library`. It returns arrays, types or printed programs, or
raises.
"""

from __future__ import annotations

import functools

from tests.golden.normalise import plain_numpy_scalars

CASES = {}


def _case(name, flag, values):
    """Enters a program under both values of a flag; `values` has the word of each."""

    def enter(function):
        for value, word in values.items():

            def run(lib, value=value):
                with getattr(lib.mj, flag)(value):
                    return function(lib)

            CASES[f"{name}, {word}"] = run
        return function

    return enter


# ----------------------------------------------------------------------------------
# auto_pcast
# ----------------------------------------------------------------------------------

MARKED = "auto_pcast", {True: "by itself", False: "by hand"}


def _bodies(lib):
    """Functions of a part of 2x8 numbers that varies over "x"."""
    lax, jnp, mj = lib.lax, lib.jnp, lib.mj
    m = lib.numbers(2, 8)

    def marked(value):
        return lax.pcast(value, "x", to="varying")

    return {
        "sine": jnp.sin,
        "with_itself": lambda p: p * p + jnp.cos(p),
        "scalar": lambda p: p * 2.0,
        "marked_scalar": lambda p: p * marked(jnp.float32(2.0)),
        "constant": lambda p: p + m,
        "marked_constant": lambda p: p + marked(m),
        "sum_of_part": lambda p: p - lax.psum(p, "x"),
        "marked_sum": lambda p: p - marked(lax.psum(p, "x")),
        "ones_like": lambda p: p + jnp.ones_like(p),
        "full_like": lambda p: p + lax.full_like(p, 3.0),
        "index": lambda p: p * lax.axis_index("x").astype("float32"),
        "marked_index": lambda p: (
            p + jnp.broadcast_to(lax.axis_index("x").astype("float32"), p.shape)
        ),
        "where": lambda p: lax.select(marked(m > 0), p, marked(m)),
        "where_unmarked": lambda p: lax.select(m > 0, p, p),
        "concatenate": lambda p: lax.concatenate([p, p], 0),
        "concatenate_unmarked": lambda p: lax.concatenate([p, m], 0),
        "product": lambda p: lax.dot(p, p.T),
        "product_unmarked": lambda p: lax.dot(p, m.T),
        "take": lambda p: lax.dynamic_slice(p, (0, 0), (1, 4)),
        "take_at": lambda p: lax.dynamic_slice(
            p, (lax.axis_index("x") % 1, lax.axis_index("x")), (1, 4)
        ),
        "indexed": lambda p: p[0:1],
        "scatter": lambda p: p.at[0].set(marked(m[0])),
        "scatter_unmarked": lambda p: p.at[0].set(m[0]),
        "psum": lambda p: lax.psum(p, "x"),
        "psum_unmarked": lambda p: lax.psum(jnp.asarray(m), "x"),
        "psum_constant": lambda p: p + marked(lax.psum(1.0, "x")),
        "pmax_unmarked": lambda p: lax.pmax(jnp.asarray(m), "x"),
        "pmax": lambda p: lax.pmax(p, "x"),
        "all_gather": lambda p: lax.all_gather(p, "x", tiled=True),
        "all_gather_unmarked": lambda p: lax.all_gather(jnp.asarray(m), "x"),
        "all_gather_invariant": lambda p: lax.all_gather(
            p, "x", tiled=True, to="invarying"
        ),
        "all_gather_invariant_unmarked": lambda p: lax.all_gather(
            jnp.asarray(m), "x", to="invarying"
        ),
        "ppermute": lambda p: lax.ppermute(p, "x", [(0, 1), (1, 0)]),
        "ppermute_unmarked": lambda p: lax.ppermute(jnp.asarray(m), "x", [(0, 1)]),
        "psum_scatter": lambda p: lax.psum_scatter(
            p, "x", scatter_dimension=1, tiled=True
        ),
        "all_to_all_unmarked": lambda p: lax.all_to_all(
            jnp.asarray(m), "x", 1, 1, tiled=True
        ),
        "unmarked_result": lambda p: jnp.asarray(m),
        "marked_result": lambda p: marked(jnp.asarray(m)),
        "scan": lambda p: lax.scan(lambda c, _: (jnp.sin(c), None), p, None, 3)[0],
        "scan_unmarked": lambda p: lax.scan(
            lambda c, _: (c + p, None), jnp.zeros_like(m), None, 3
        )[0],
        "scan_marked": lambda p: lax.scan(
            lambda c, _: (c + p, None), marked(jnp.zeros_like(m)), None, 3
        )[0],
        "cond": lambda p: lax.cond(m[0, 0] > 0, jnp.sin, jnp.cos, p),
        "cond_apart": lambda p: lax.cond(
            m[0, 0] > 0, lambda p: p, lambda p: jnp.asarray(m), p
        ),
        "while": lambda p: lax.while_loop(
            lambda c: lax.psum(c.sum(), "x") < 0, lambda c: jnp.exp(c), p
        ),
        "jit": lambda p: mj.jit(lambda a, b: a + b)(p, p),
        "jit_unmarked": lambda p: mj.jit(lambda a, b: a + b)(p, m),
        "clip": lambda p: lax.clamp(marked(m) - marked(m), p, marked(m)),
        "grad": lambda p: mj.grad(lambda a: jnp.sin(a).sum())(p),
        "grad_of_square": lambda p: mj.grad(lambda a: lax.psum((a * a).sum(), "x"))(p),
        "jvp": lambda p: mj.jvp(lambda a: jnp.sin(a) * a, (p,), (p,))[1],
        "vmap": lambda p: mj.vmap(lambda a: a * a.sum())(p),
        "vmap_rows": lambda p: mj.vmap(lambda a: jnp.sin(a))(p),
        "softmax": lambda p: mj.nn.softmax(p),
        "sort": lambda p: lax.sort(p),
        "sort_two": lambda p: lax.sort([p, marked(m)], num_keys=1)[1],
        "sort_unmarked": lambda p: lax.sort([p, jnp.asarray(m)], num_keys=1)[1],
        "random": lambda p: p + marked(lib.random.normal(lib.random.key(0), (2, 8))),
        "random_unmarked": lambda p: p + lib.random.normal(lib.random.key(0), (2, 8)),
        "ref": lambda p: mj.new_ref(p)[...],
        "cumsum": lambda p: lax.cumsum(p, 1),
        "convert": lambda p: p.astype("bfloat16").astype("float32"),
        "remat": lambda p: mj.grad(
            lambda a: mj.checkpoint(lambda b: jnp.sin(b))(a).sum()
        )(p),
        "power": lambda p: lax.integer_pow(p, 3),
        "mean": lambda p: jnp.broadcast_to(lax.pmean(p, "x"), p.shape),
        "einsum": lambda p: lib.jnp.einsum("ij,ij->i", p, p)[:, None],
        "pad": lambda p: lax.pad(p, marked(jnp.float32(0)), ((0, 0, 0), (1, 0, 0))),
        "pad_unmarked": lambda p: lax.pad(p, jnp.float32(0), ((0, 0, 0), (1, 0, 0))),
        "reduce": lambda p: lax.reduce_sum(p, [1])[:, None],
        "reduce_with": lambda p: lax.reduce(p, 1.0, lax.mul, [1])[:, None],
        "max": lambda p: p.max(1, keepdims=True),
        "argmax": lambda p: p.argmax(1)[:, None],
        "transposed": lambda p: p.T.reshape(2, 8),
        "relu": lambda p: mj.nn.relu(p),
        "custom_jvp": lambda p: mj.nn.silu(p),
        "jacobian": lambda p: mj.jacrev(lambda a: (a * a).sum(0))(p)[:2, 0],
    }


def _by_hand(lib, name, spec, transform):
    body = _bodies(lib)[name]
    x = lib.put(lib.numbers(8, 8), "x")
    mapped = lib.mj.shard_map(body, mesh=lib.mesh, in_specs=lib.P("x"), out_specs=spec)
    return transform(mapped)(x)


def _printed(lib, f):
    def text(x):
        with plain_numpy_scalars():
            return str(lib.mj.make_jaxpr(f)(x))

    return text


def _summed(lib, f):
    return lib.mj.grad(lambda x: lib.jnp.sum(f(x) ** 2))


class _Names:  # of the functions above, before there is a library
    def __getattr__(self, name):
        return _Names()

    def __call__(self, *args, **kwargs):
        return _Names()

    def __gt__(self, other):
        return _Names()

    def __getitem__(self, at):
        return _Names()


_WHOLE = ("psum", "pmax", "all_gather_invariant", "sine", "unmarked_result")
_cut = [(name, name, ("x",)) for name in _bodies(_Names())]
_whole = [(f"{name} whole", name, ()) for name in _WHOLE]
for _title, _name, _axes in _cut + _whole:
    for _what in ("value", "printed", "gradient"):

        def _run(lib, name=_name, axes=_axes, what=_what):
            how = {
                "value": lib.mj.jit,
                "printed": functools.partial(_printed, lib),
                "gradient": functools.partial(_summed, lib),
            }[what]
            return _by_hand(lib, name, lib.P(*axes), how)

        _case(f"{_title} {_what}", *MARKED)(_run)


# ----------------------------------------------------------------------------------
# remove_size_one_mesh_axis_from_type: mesh axis "x" has size one, "y" has four
# ----------------------------------------------------------------------------------

ONES = "remove_size_one_mesh_axis_from_type", {False: "shown", True: "hidden"}


def _small(lib, kind):
    kinds = {"auto": (lib.auto,) * 2, "explicit": (lib.explicit,) * 2}
    kinds["mixed"] = (lib.explicit, lib.auto)
    return lib.mj.make_mesh((1, 4), ("x", "y"), axis_types=kinds[kind])


def _types(lib, f, *args):
    """The types of values on the way, and of the results, as texts."""
    seen = []

    def told(x):
        seen.append(str(lib.mj.typeof(x)))
        return x

    out = lib.mj.jit(lambda *a: f(told, *a))(*args)
    return [*seen, *(str(lib.mj.typeof(one)) for one in lib.mj.tree.leaves(out)), out]


def _on_types(lib):
    """Functions of (tell, 8x8 numbers cut by P("x", "y"))."""
    P, jnp, lax, mj = lib.P, lib.jnp, lib.lax, lib.mj
    reshard = lib.sharding.reshard
    return {
        "argument": lambda tell, x: tell(x),
        "sine": lambda tell, x: tell(jnp.sin(x)),
        "transposed": lambda tell, x: tell(x.T),
        "sum": lambda tell, x: tell(x.sum(0)) + tell(x.sum(1)),
        "reshard": lambda tell, x: tell(reshard(x, P(("x", "y"), None))),
        "reshard_one": lambda tell, x: tell(reshard(x, P("x", None))),
        "product": lambda tell, x: tell(
            jnp.einsum("ij,kj->ik", x, x, out_sharding=P("x", "y"))
        ),
        "unreduced": lambda tell, x: tell(
            reshard(
                tell(
                    jnp.einsum(
                        "ij,kj->ik", x, x, out_sharding=P("x", None, unreduced={"y"})
                    )
                ),
                P("x", None),
            )
        ),
        "unreduced_one": lambda tell, x: tell(
            jnp.einsum("ji,jk->ik", x, x, out_sharding=P(None, None, unreduced={"x"}))
        ),
        "constraint": lambda tell, x: tell(
            lax.with_sharding_constraint(x, P("x", "y"))
        ),
        "constraint_other": lambda tell, x: tell(
            lax.with_sharding_constraint(x, P("y", "x"))
        ),
        "reshape": lambda tell, x: tell(lax.reshape(x, (64,), out_sharding=P("x"))),
        "iota": lambda tell, x: (
            x
            + tell(lax.broadcasted_iota("float32", (8, 8), 0, out_sharding=P("x", "y")))
        ),
        "both_dimensions": lambda tell, x: tell(
            jnp.einsum("ij,kj->ik", reshard(x, P("x", None)), reshard(x, P("x", None)))
        ),
        "vmap": lambda tell, x: mj.vmap(lambda r: tell(r) * 2)(x),
        "vmap_spmd": lambda tell, x: mj.vmap(lambda r: tell(r) * 2, spmd_axis_name="x")(
            x
        ),
        "vmap_spmd_tuple": lambda tell, x: mj.vmap(
            lambda r: tell(r) * 2, spmd_axis_name=("x",)
        )(x),
        "vmap_columns": lambda tell, x: mj.vmap(
            lambda r: tell(r) * 2, in_axes=1, spmd_axis_name=("x", "y")
        )(x),
        "grad": lambda tell, x: tell(mj.grad(lambda a: jnp.sin(a).sum())(x)),
        "scan": lambda tell, x: lax.scan(lambda c, r: (tell(c + r), r), x[0], x)[0],
        "eval_shape": lambda tell, x: (
            tell(x),
            x + (str(mj.eval_shape(jnp.sin, x)) == ""),
        )[1],
        "device_put": lambda tell, x: tell(
            mj.device_put(x, lib.Named(_small(lib, "explicit"), P("y", "x")))
        ),
        "shard_map": lambda tell, x: tell(
            mj.shard_map(
                lambda p: tell(p) * 2, in_specs=P("x", "y"), out_specs=P("x", "y")
            )(x)
        ),
        "shard_map_inferred": lambda tell, x: tell(
            mj.shard_map(lambda p: tell(p) * 2, out_specs=P("x", "y"))(x)
        ),
        "shard_map_other": lambda tell, x: mj.shard_map(
            lambda p: p, in_specs=P("y"), out_specs=P("y")
        )(x),
        "auto_axes": lambda tell, x: tell(
            lib.sharding.auto_axes(lambda a: a @ a.T, out_sharding=P("x", "y"))(x)
        ),
    }


for _name in _on_types(_Names()):
    for _kind in ("explicit", "mixed"):

        def _run(lib, name=_name, kind=_kind):
            mesh = _small(lib, kind)
            with lib.mj.set_mesh(mesh):
                spec = ("x", "y") if kind == "explicit" else ("x",)
                x = lib.put(lib.numbers(8, 8), *spec, mesh=mesh)
                return _types(lib, _on_types(lib)[name], x)

        _case(f"ones {_name} {_kind}", *ONES)(_run)


def _in_parts(lib):
    """Functions of (tell, a part), and the specs of results."""
    P, jnp, lax, mj = lib.P, lib.jnp, lib.lax, lib.mj
    both = P("x", "y")
    return {
        "part": (lambda tell, p: tell(p), both),
        "result_whole_x": (lambda tell, p: tell(p), P(None, "y")),
        "result_whole": (lambda tell, p: tell(p), P()),
        "index": (lambda tell, p: p + tell(lax.axis_index("x")), both),
        "index_y": (lambda tell, p: p + tell(lax.axis_index("y")), both),
        "indices": (lambda tell, p: p + tell(lax.axis_index(("x", "y"))), both),
        "psum": (lambda tell, p: tell(lax.psum(p, "x")), both),
        "psum_y": (lambda tell, p: tell(lax.psum(p, "y")), P("x")),
        "psum_both": (lambda tell, p: tell(lax.psum(p, ("x", "y"))), P()),
        "psum_constant": (lambda tell, p: p * tell(lax.psum(1, ("x", "y"))), both),
        "pmean": (lambda tell, p: tell(lax.pmean(p, ("x", "y"))), P()),
        "pmax": (lambda tell, p: tell(lax.pmax(p, "y")), P("x")),
        "pmax_x": (lambda tell, p: tell(lax.pmax(p, "x")), both),
        "pvary": (lambda tell, p: p + tell(lax.pcast(1.0, "x", to="varying")), both),
        "pvary_both": (
            lambda tell, p: p + tell(lax.pcast(1.0, ("x", "y"), to="varying")),
            both,
        ),
        "unreduced_x": (
            lambda tell, p: tell(lax.pcast(p, "x", to="unreduced")),
            P(None, "y", unreduced={"x"}),
        ),
        "unreduced_y": (
            lambda tell, p: lax.psum(tell(lax.pcast(p, "y", to="unreduced")), "y"),
            P("x"),
        ),
        "all_gather_x": (
            lambda tell, p: tell(lax.all_gather(p, "x", tiled=True)),
            both,
        ),
        "all_gather_y": (
            lambda tell, p: tell(lax.all_gather(p, "y", axis=1, tiled=True)),
            P("y"),
        ),
        "all_gather_invariant": (
            lambda tell, p: tell(
                lax.all_gather(p, "y", axis=1, tiled=True, to="invarying")
            ),
            P(),
        ),
        "psum_scatter_x": (
            lambda tell, p: tell(lax.psum_scatter(p, "x", tiled=True)),
            both,
        ),
        "psum_scatter_y": (
            lambda tell, p: tell(lax.psum_scatter(p, "y", tiled=True)),
            P("y"),
        ),
        "ppermute_x": (lambda tell, p: tell(lax.ppermute(p, "x", [(0, 0)])), both),
        "ppermute_y": (lambda tell, p: tell(lax.ppermute(p, "y", [(0, 1)])), both),
        "all_to_all_y": (
            lambda tell, p: tell(lax.all_to_all(p, "y", 0, 0, tiled=True)),
            both,
        ),
        "scan": (
            lambda tell, p: lax.scan(lambda c, _: (tell(c + p), None), 0 * p, None, 2)[
                0
            ],
            both,
        ),
        "grad": (lambda tell, p: tell(mj.grad(lambda a: (a * a).sum())(p)), both),
        "grad_psum": (
            lambda tell, p: tell(
                mj.grad(lambda a: lax.psum((a * a).sum(), ("x", "y")))(p)
            ),
            both,
        ),
        "vmap": (lambda tell, p: mj.vmap(lambda r: tell(r) * 2)(p), both),
        "ones_like": (lambda tell, p: p + tell(jnp.ones_like(p)), both),
        "cond": (
            lambda tell, p: lax.cond(lax.psum(p.sum(), "y") > 0, jnp.sin, jnp.cos, p),
            both,
        ),
        "where": (lambda tell, p: tell(jnp.where(p > 0, p, 0)), both),
    }


for _name in _in_parts(_Names()):
    for _kind in ("auto", "explicit"):
        for _what in ("types", "printed", "gradient"):

            def _run(lib, name=_name, kind=_kind, what=_what):
                mesh = _small(lib, kind)
                body, spec = _in_parts(lib)[name]
                with lib.mj.set_mesh(mesh):
                    x = lib.put(lib.numbers(8, 8), "x", "y", mesh=mesh)

                    def mapped(tell, x):
                        return lib.mj.shard_map(
                            functools.partial(body, tell),
                            in_specs=lib.P("x", "y"),
                            out_specs=spec,
                        )(x)

                    if what == "types":
                        return _types(lib, mapped, x)
                    f = functools.partial(mapped, lambda x: x)
                    return (_printed if what == "printed" else _summed)(lib, f)(x)

            _case(f"ones {_name} {_what} in {_kind}", *ONES)(_run)


# JAX leaves out marks that its own rules need, or its collectives do not know that an
# axis of size one is left out. Each is held against the same program without the flag.
_OF_SIZE_ONE = [
    f"ones {name}_x {what} in {kind}"
    for name in ("pmax", "all_gather", "ppermute")
    for what in ("types", "printed", "gradient")
    for kind in ("auto", "explicit")
    if (name, what) != ("pmax", "gradient")
]
_BY_RULES = ("scan gradient", "sort value")
_BY_RULES += ("sort_two value", "argmax value", "custom_jvp value")
ONLY_HERE = {f"{name}, hidden": f"{name}, shown" for name in _OF_SIZE_ONE}
ONLY_HERE |= {f"{name}, by hand": f"{name}, by itself" for name in _BY_RULES}

# The types of JAX's sort join no axes: its results may be of several kinds.
# JAX takes addends on a mesh that is not Explicit as a cotangent, then refuses them;
# here they are never made (`unreduced_one`), or the cotangent is (`unreduced_y`).
_APART = ("sort_unmarked printed, by hand", "argmax gradient, by hand")
_APART += ("ones unreduced_one mixed, shown", "ref gradient, by hand")
_APART += ("ref gradient, by itself", "ones unreduced_y gradient in auto, shown")
_APART += ("ones unreduced_y gradient in auto, hidden",)
APART = dict.fromkeys(_APART)

# JAX prints the mesh in use as a parameter of `jit` inside, a `reshard` of a scatter's
# updates, and the mark of the basis of a Jacobian before its first operation.
PRINTED_OTHERWISE = {
    *(
        f"ones where printed in {k}, {w}"
        for k in ("auto", "explicit")
        for w in ("shown", "hidden")
    ),
    "scatter_unmarked printed, by itself",
    "jacobian printed, by itself",
}
