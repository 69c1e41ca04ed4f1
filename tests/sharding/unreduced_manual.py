"""Programs of values that are unreduced or reduced over mesh axes inside `shard_map`.

Each case is a function of a `Bench`, as in `unreduced.py`, with a mesh of 4x2 Explicit
devices in use. `_mapped` cases are bodies of a `shard_map`: they tell the type inside,
the type and the values outside, the printed program and the gradient.
"""

from __future__ import annotations

import functools
import types as types_

from tests.golden.normalise import plain_numpy_scalars
from tests.sharding.unreduced import Bench

CASES = {}


def _run(function, lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    with lib.mj.set_mesh(mesh), plain_numpy_scalars():
        return function(Bench(lib))


def _several(**functions):
    for name, function in functions.items():
        CASES[name] = functools.partial(_run, function)


def _of(t, spec):
    """An array that lies as a spec says, and the spec."""
    return t.put(t.m, spec)


def _told(t, body, ins, out, **options):
    """What a `shard_map` gives for matrices that lie as `ins` say."""
    inside = []

    def noted(*parts):
        result = body(*parts)
        inside.append(str(t.mj.typeof(result)))
        inside.append(str(t.mj.typeof(result).mat))
        return result

    args = [_of(t, spec) for spec in ins]
    mapped = t.mj.shard_map(noted, in_specs=tuple(ins), out_specs=out, **options)
    result = t.mj.jit(mapped)(*args)
    return [*inside[:2], str(t.mj.typeof(result)), t.whole(result)]


def _printed(t, body, ins, out, **options):
    args = [_of(t, spec) for spec in ins]
    mapped = t.mj.shard_map(body, in_specs=tuple(ins), out_specs=out, **options)
    return str(t.mj.make_jaxpr(mapped)(*args))


def _gradient(t, body, ins, out, **options):
    args = [_of(t, spec) for spec in ins]
    mapped = t.mj.shard_map(body, in_specs=tuple(ins), out_specs=out, **options)

    def loss(*args):
        return (t.whole(mapped(*args)) ** 2).sum()

    found = t.mj.jit(t.mj.grad(loss, tuple(range(len(ins)))))(*args)
    return [*(str(t.mj.typeof(one)) for one in found), *map(t.whole, found)]


def _linear_printed(t, body, ins, out, **options):
    args = [_of(t, spec) for spec in ins]
    mapped = t.mj.shard_map(body, in_specs=tuple(ins), out_specs=out, **options)
    out_type = t.mj.typeof(mapped(*args)).sharding.spec
    shape = t.mj.typeof(mapped(*args)).shape
    ct = t.P(
        *out_type.partitions, unreduced=out_type.reduced, reduced=out_type.unreduced
    )
    ct = t.put(t.jnp.ones(shape), ct)

    def back(ct, *args):
        return t.mj.vjp(mapped, *args)[1](ct)

    return str(t.mj.make_jaxpr(back)(ct, *args))


def _mapped(**programs):
    """Four cases of each: (body, specs of arguments, spec of the result)."""
    for name, program in programs.items():
        for kind, run in (
            ("told", _told),
            ("printed", _printed),
            ("gradient", _gradient),
            ("backwards", _linear_printed),
        ):
            CASES[f"{name}_{kind}"] = functools.partial(
                _run, lambda t, p=program, r=run: r(t, *p(t))
            )


U, R = {"unreduced": {"x"}}, {"reduced": {"x"}}

_mapped(
    unreduced_in=lambda t: (lambda u: u, [t.P(**U)], t.P(**U)),
    reduced_in=lambda t: (lambda r: r, [t.P(**R)], t.P(**R)),
    psum_of_unreduced=lambda t: (lambda u: t.lax.psum(u, "x"), [t.P(**U)], t.P()),
    psum_of_one=lambda t: (
        lambda u: t.lax.psum(u, "x"),
        [t.P(unreduced={"x", "y"})],
        t.P(unreduced={"y"}),
    ),
    psum_of_both=lambda t: (
        lambda u: t.lax.psum(u, ("x", "y")),
        [t.P(unreduced={"x", "y"})],
        t.P(),
    ),
    psum_scatter=lambda t: (
        lambda u: t.lax.psum_scatter(u, "x", tiled=True),
        [t.P(**U)],
        t.P("x"),
    ),
    psum_scatter_untiled=lambda t: (
        lambda u: t.lax.psum_scatter(u[:4], "x"),
        [t.P(**U)],
        t.P("x"),
    ),
    psum_scatter_second=lambda t: (
        lambda u: t.lax.psum_scatter(u, "x", scatter_dimension=1, tiled=True),
        [t.P("y", **U)],
        t.P("y", "x"),
    ),
    cast_to_unreduced=lambda t: (
        lambda a: t.lax.pcast(a, "x", to="unreduced"),
        [t.P("x")],
        t.P(**U),
    ),
    unreduced_by_out_specs=lambda t: (lambda a: a, [t.P("x")], t.P(**U)),
    invarying_to_unreduced=lambda t: (lambda a: a, [t.P()], t.P(**U)),
    cast_to_reduced=lambda t: (
        lambda m: t.lax.pcast(m, "x", to="reduced"),
        [t.P()],
        t.P(**R),
    ),
    cast_reduced_to_varying=lambda t: (
        lambda r: t.lax.pcast(r, "x", to="varying"),
        [t.P(**R)],
        t.P("x"),
    ),
    cast_two=lambda t: (
        lambda m: t.lax.pcast(m, ("y", "x"), to="reduced"),
        [t.P()],
        t.P(reduced={"x", "y"}),
    ),
    gather_reduced=lambda t: (
        lambda a: t.lax.all_gather(a, "x", tiled=True, to="reduced"),
        [t.P("x")],
        t.P(**R),
    ),
    gather_reduced_second=lambda t: (
        lambda a: t.lax.all_gather(a, "x", axis=1, tiled=True, to="reduced"),
        [t.P("y", "x")],
        t.P("y", **R),
    ),
    gather_reduced_and_used=lambda t: (
        lambda a, b: t.lax.psum_scatter(
            t.lax.pcast(
                b @ t.lax.all_gather(a, "x", tiled=True, to="reduced")[:2],
                "x",
                to="unreduced",
            ),
            "x",
            tiled=True,
        ),
        [t.P("x"), t.P(None, "x")],
        t.P("x"),
    ),
    mul_of_reduced_and_varying=lambda t: (
        lambda r, a: r[:2] * a,
        [t.P(**R), t.P("x")],
        t.P("x"),
    ),
    dot_of_reduced_and_varying=lambda t: (
        lambda a, r: t.jnp.sin(a @ r),
        [t.P("x"), t.P(**R)],
        t.P("x"),
    ),
    add_unreduced=lambda t: (lambda u: u + u, [t.P(**U)], t.P(**U)),
    mul_unreduced_reduced=lambda t: (
        lambda u, r: u * r,
        [t.P(**U), t.P(**R)],
        t.P(**U),
    ),
    transposed=lambda t: (lambda u: u.T, [t.P(**U)], t.P(**U)),
    sine_of_reduced=lambda t: (lambda r: t.jnp.sin(r), [t.P(**R)], t.P(**R)),
    sum_of_reduced=lambda t: (lambda r: r.sum(0), [t.P(**R)], t.P(**R)),
    number_times_reduced=lambda t: (lambda r: r * 2.0, [t.P(**R)], t.P(**R)),
    reduced_plus_number=lambda t: (lambda r: r + 1.0, [t.P(**R)], t.P(**R)),
    number_times_unreduced=lambda t: (lambda u: u * 2.0, [t.P(**U)], t.P(**U)),
    broadcast_reduced=lambda t: (
        lambda r: t.jnp.broadcast_to(r, (2, 8, 8)).sum(0),
        [t.P(**R)],
        t.P(**R),
    ),
    convert=lambda t: (
        lambda u: u.astype("bfloat16").astype("float32"),
        [t.P(**U)],
        t.P(**U),
    ),
    concatenated=lambda t: (
        lambda u: t.jnp.concatenate([u, u])[:8],
        [t.P(**U)],
        t.P(**U),
    ),
    scanned=lambda t: (
        lambda u: t.lax.scan(lambda c, _: (c + c, None), u, None, length=2)[0],
        [t.P(**U)],
        t.P(**U),
    ),
    scanned_reduced=lambda t: (
        lambda a, r: t.lax.scan(
            lambda c, _: (t.jnp.sin(c @ r), None), a, None, length=2
        )[0],
        [t.P("x"), t.P(**R)],
        t.P("x"),
    ),
    conditional=lambda t: (
        lambda r: t.lax.cond(True, lambda r: r + r, lambda r: r, r),
        [t.P(**R)],
        t.P(**R),
    ),
    jitted=lambda t: (
        lambda a, r: t.mj.jit(lambda a, r: t.jnp.sin(a @ r))(a, r),
        [t.P("x"), t.P(**R)],
        t.P("x"),
    ),
    checkpointed=lambda t: (
        lambda a, r: t.mj.checkpoint(lambda a, r: t.jnp.sin(a @ r))(a, r),
        [t.P("x"), t.P(**R)],
        t.P("x"),
    ),
    cut_and_unreduced=lambda t: (
        lambda u: t.lax.psum(u, "x"),
        [t.P("y", **U)],
        t.P("y"),
    ),
    two_words=lambda t: (
        lambda w: t.lax.psum(w, "x"),
        [t.P(unreduced={"x"}, reduced={"y"})],
        t.P(reduced={"y"}),
    ),
)


def _refused(body, ins, out, **options):
    return lambda t: _told(t, body(t), ins(t.P), out(t.P), **options)


_several(
    mismatch_of_in_specs_refused=lambda t: t.mj.shard_map(
        lambda m: m, in_specs=t.P(), out_specs=t.P()
    )(t.r),
    word_without_type_refused=lambda t: t.mj.shard_map(
        lambda m: m, in_specs=t.P(**R), out_specs=t.P(**R)
    )(t.m),
    word_lost_in_out_specs_refused=_refused(
        lambda t: lambda u: u, lambda P: [P(**U)], lambda P: P()
    ),
    reduced_out_of_nothing_refused=_refused(
        lambda t: lambda m: m, lambda P: [P()], lambda P: P(**R)
    ),
    inferred=lambda t: str(
        t.mj.typeof(t.mj.shard_map(lambda u: u, out_specs=t.P(**U))(t.u))
    ),
    inferred_and_summed=lambda t: t.whole(
        t.mj.shard_map(lambda u: t.lax.psum(u, "x"), out_specs=t.P())(t.u)
    ),
    partly_manual_refused=_refused(
        lambda t: lambda u: u,
        lambda P: [P(**U)],
        lambda P: P(**U),
        axis_names={"x"},
    ),
    pmax_of_unreduced_refused=_refused(
        lambda t: lambda u: t.lax.pmax(u, "x"), lambda P: [P(**U)], lambda P: P()
    ),
    psum_of_reduced_refused=_refused(
        lambda t: lambda r: t.lax.psum(r, "x"), lambda P: [P(**R)], lambda P: P()
    ),
    psum_of_mixture_refused=_refused(
        lambda t: lambda r: t.lax.psum(r, ("x", "y")),
        lambda P: [P("y", **U)],
        lambda P: P(),
    ),
    psum_with_groups_refused=_refused(
        lambda t: lambda u: t.lax.psum(u, "x", axis_index_groups=[[0, 1], [2, 3]]),
        lambda P: [P(**U)],
        lambda P: P(),
    ),
    all_gather_of_reduced_refused=_refused(
        lambda t: lambda r: t.lax.all_gather(r, "x"),
        lambda P: [P(**R)],
        lambda P: P("x"),
    ),
    all_gather_of_unreduced_refused=_refused(
        lambda t: lambda r: t.lax.all_gather(r, "x"),
        lambda P: [P(**U)],
        lambda P: P("x"),
    ),
    ppermute_of_unreduced_refused=_refused(
        lambda t: lambda u: t.lax.ppermute(u, "x", [(0, 1)]),
        lambda P: [P(**U)],
        lambda P: P(**U),
    ),
    all_to_all_of_reduced_refused=_refused(
        lambda t: lambda u: t.lax.all_to_all(u, "x", 0, 0, tiled=True),
        lambda P: [P(**R)],
        lambda P: P(**R),
    ),
    gather_reduced_of_invarying_refused=_refused(
        lambda t: lambda m: t.lax.all_gather(m, "x", to="reduced"),
        lambda P: [P()],
        lambda P: P(**R),
    ),
    gather_reduced_groups_refused=_refused(
        lambda t: (
            lambda m: t.lax.all_gather(
                m, "x", to="reduced", axis_index_groups=[[0, 1], [2, 3]]
            )
        ),
        lambda P: [P("x")],
        lambda P: P(**R),
    ),
    sine_of_unreduced_refused=_refused(
        lambda t: t.jnp.sin, lambda P: [P(**U)], lambda P: P(**U)
    ),
    sub_of_unreduced_refused=_refused(
        lambda t: lambda u: u - u, lambda P: [P(**U)], lambda P: P(**U)
    ),
    dot_of_unreduced_refused=_refused(
        lambda t: lambda u, m: u @ m, lambda P: [P(**U), P()], lambda P: P(**U)
    ),
    add_of_unreduced_and_varying_refused=_refused(
        lambda t: lambda u, a: u[:2] + a, lambda P: [P(**U), P("x")], lambda P: P(**U)
    ),
    add_of_reduced_and_invarying_refused=_refused(
        lambda t: lambda r, m: r + m, lambda P: [P(**R), P()], lambda P: P(**R)
    ),
    where_of_mixture_only_refused_here=_refused(
        lambda t: lambda r, m: t.jnp.where(m > 0, r, m),
        lambda P: [P(**R), P()],
        lambda P: P(**R),
    ),
    **{
        f"cast_{name}_refused": _refused(
            lambda t, to=to: lambda a: t.lax.pcast(a, "x", to=to),
            lambda P, words=words: [P(*words[0], **words[1])],
            lambda P: P(),
        )
        for name, to, words in (
            ("varying_to_varying", "varying", (("x",), {})),
            ("varying_to_reduced", "reduced", (("x",), {})),
            ("varying_to_invarying", "invarying", (("x",), {})),
            ("reduced_to_reduced", "reduced", ((), R)),
            ("reduced_to_unreduced", "unreduced", ((), R)),
            ("unreduced_to_varying", "varying", ((), U)),
            ("unreduced_to_reduced", "reduced", ((), U)),
            ("invarying_to_unreduced", "unreduced", ((), {})),
            ("to_nothing", "nothing", ((), {})),
        )
    },
    shard_map_with_other_specs_refused=lambda t: t.mj.shard_map(
        lambda u: u, out_specs=t.P("x", None)
    )(t.u),
    vmapped_only_here=lambda t: t.whole(
        t.mj.shard_map(
            t.mj.vmap(lambda u: t.lax.psum(u, "x")), in_specs=t.P(**U), out_specs=t.P()
        )(t.u)
    ),
    unchecked_cast=_refused(
        lambda t: lambda m: t.lax.pcast(m, "x", to="reduced"),
        lambda P: [P()],
        lambda P: P(),
        check_vma=False,
    ),
    unchecked_cast_refused=_refused(
        lambda t: lambda m: t.lax.pcast(m, "x", to="unreduced"),
        lambda P: [P("x")],
        lambda P: P("x"),
        check_vma=False,
    ),
    unchecked_psum=_refused(
        lambda t: lambda u: t.lax.psum(u, "x"),
        lambda P: [P(**U)],
        lambda P: P(),
        check_vma=False,
    ),
    unchecked_gradient=lambda t: _gradient(
        t, lambda u: t.lax.psum(u, "x"), [t.P(**U)], t.P(), check_vma=False
    ),
    unchecked_identity=lambda t: _gradient(
        t, lambda u: t.jnp.sin(u), [t.P("x")], t.P(**U), check_vma=False
    ),
)


# Bodies over axis x of a mesh; the compiler has the other one, or types say how it
# cuts. (body, spec of the argument, spec of the result)
PARTLY = {
    "psum": (lambda t, a: t.lax.psum(t.addends(a), "x"), ("x",), ()),
    "scatter": (
        lambda t, a: t.lax.psum_scatter(
            t.addends(a), "x", scatter_dimension=1, tiled=True
        ),
        ("x",),
        (None, "x"),
    ),
    "reduced": (lambda t, a: t.lax.psum(t.vary(t.reduce(a)), "x"), (), ()),
    "product": (lambda t, a: t.lax.psum(t.reduce(a) * t.vary(a), "x"), (), ()),
    "dot": (lambda t, a: t.lax.psum(t.vary(a) @ t.reduce(a), "x"), (), ()),
    "gathered": (
        lambda t, a: t.lax.psum(
            t.vary(t.lax.all_gather(a, "x", tiled=True, **t.to_reduced)), "x"
        ),
        ("x",),
        (),
    ),
    "left": (lambda t, a: t.addends(a), ("x",), ()),
    "left_reduced": (lambda t, a: t.reduce(a), (), ()),
    "resharded": (
        lambda t, a: t.lax.psum(
            t.seen(t.lib.sharding.reshard(t.addends(a), t.P())), "x"
        ),
        ("x",),
        (),
    ),
    "sum": (lambda t, a: t.lax.psum(t.addends(a) + t.addends(a), "x"), ("x",), ()),
    "transposed": (lambda t, a: t.lax.psum(t.addends(a).T, "x").T, ("x",), ()),
    "scanned": (
        lambda t, a: t.lax.psum(
            t.lax.scan(lambda c, _: (c + c, None), t.addends(a), None, length=2)[0],
            "x",
        ),
        ("x",),
        (),
    ),
    "inside": (
        lambda t, a: t.lax.psum(
            t.mj.shard_map(
                lambda u: u + u,
                in_specs=t.P("y"),
                out_specs=t.P("y"),
                axis_names={"y"},
            )(t.addends(a)),
            "x",
        ),
        ("x",),
        (),
    ),
}


def _partly(lib, kinds, name, differentiated, plain=False):
    """What one of `PARTLY` gives; if `plain`, without its casts to addends."""
    kind = {"a": lib.auto, "e": lib.explicit}
    mesh = lib.mj.make_mesh(
        (4, 2), ("x", "y"), axis_types=tuple(kind[one] for one in kinds)
    )
    with lib.mj.set_mesh(mesh):
        t, types = types_.SimpleNamespace(lib=lib, lax=lib.lax, mj=lib.mj, P=lib.P), []

        t.to_reduced = {} if plain else {"to": "reduced"}

        def noted(to):
            def cast(a):
                if not plain:
                    a = t.lax.pcast(a, "x", to=to)
                return t.seen(a)

            return cast

        def seen(a):
            types.append(str(t.mj.typeof(a)))
            types.append(str(t.mj.typeof(a).mat))
            return a

        t.seen = seen

        t.addends, t.reduce, t.vary = map(noted, ("unreduced", "reduced", "varying"))
        body, ins, outs = PARTLY[name]
        mapped = t.mj.shard_map(
            lambda a: body(t, a),
            in_specs=t.P(*ins),
            out_specs=t.P(*outs),
            axis_names={"x"},
        )
        x = lib.put(lib.numbers(8, 8), *ins, mesh=mesh)
        if differentiated:
            return t.mj.jit(t.mj.grad(lambda x: (mapped(x) ** 2).sum()))(x)
        return [t.mj.jit(mapped)(x), *types]


for _name in PARTLY:
    for _end in ("", "_gradient"):
        _case = functools.partial(_partly, name=_name, differentiated=bool(_end))
        CASES[f"plain_{_name}{_end}"] = functools.partial(_case, kinds="aa", plain=True)
        for _kinds in ("ee", "ea", "ae"):
            CASES[f"partly_{_kinds}_{_name}{_end}"] = functools.partial(
                _case, kinds=_kinds
            )

# Of these JAX prints something else, for reasons that do not lie in the words:
# a constant that became a residual; `ctx_mesh` of a nested `jit`, and residuals that it
# returns twice; and an `out_sharding` from which JAX drops the word.
PRINTED_OTHERWISE = {"conditional_backwards", "jitted_printed", "jitted_backwards"}
PRINTED_OTHERWISE |= {"broadcast_reduced_backwards"}
# JAX fails: the cotangent of a scan's constant is unreduced, and its check forgets it.
ONLY_HERE = {"scanned_reduced_gradient", "scanned_reduced_backwards"}
ONLY_HERE |= {"vmapped_only_here"}
# In a `shard_map` over some axes JAX has casts and sums of addends only: an assertion
# fails, or types forget the word, and a scan and gradients fail later. The values are
# those of a program without addends.
VALUES_OF = {
    f"partly_{kinds}_{name}": f"plain_{name}"
    for kinds, names in {
        "ee ae": "scatter scatter_gradient gathered_gradient sum transposed scanned",
        "ee ae ea": "sum_gradient transposed_gradient scanned_gradient inside_gradient",
        "ea": "scanned",
    }.items()
    for kinds in kinds.split()
    for name in names.split()
}
