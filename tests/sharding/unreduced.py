"""Programs of values that are unreduced or reduced over Explicit mesh axes.

Each case is a function of a `Bench`, run with a mesh of 4x2 devices in use. It returns
arrays, types or specs as texts, or raises.
"""

from __future__ import annotations

import functools

import numpy as np

CASES = {}


class Bench:
    """A library, a matrix and its product that is not added up yet."""

    def __init__(self, lib):
        self.lib, self.P = lib, lib.P
        self.jnp, self.lax, self.mj = lib.jnp, lib.lax, lib.mj
        self.put = lib.sharding.reshard
        self.m = self.put(lib.jnp.asarray(lib.numbers(8, 8)), lib.P(None, None))
        self.a = self.put(self.m, lib.P(None, "x"))
        self.b = self.put(self.m, lib.P("x", None))

    @property
    def u(self):
        """A matrix that is unreduced over x."""
        return self.dot(self.a, self.b)

    @property
    def r(self):
        """The matrix, reduced over x."""
        return self.put(self.m, self.P(reduced={"x"}))

    def dot(self, a, b, **words):
        spec = self.P(None, None, **(words or {"unreduced": {"x"}}))
        return self.jnp.dot(a, b, out_sharding=spec)

    def whole(self, x):
        """The array that every device has."""
        return self.put(x, self.P(*[None] * x.ndim))

    def told(self, x):
        """Its type, that of the spec, and its values, here and in a jitted function."""
        type_ = self.mj.typeof(x)
        return [str(type_), str(type_.sharding.spec), self.whole(x)]


def _run(function, lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    with lib.mj.set_mesh(mesh):
        return function(Bench(lib))


def _several(**functions):
    for name, function in functions.items():
        CASES[name] = functools.partial(_run, function)


def _own_rule(t, x, cotangent):
    """The gradient of a sum whose own rule gives this cotangent."""
    total = t.mj.custom_vjp(lambda x: x.sum())
    total.defvjp(lambda x: (x.sum(), None), lambda _, ct: (cotangent((8, 8)),))
    return t.mj.grad(total)(x)


def _added_to_whole(t):
    """A cotangent that is unreduced, and one of NumPy, of the same argument."""
    twice = t.mj.custom_vjp(lambda x: x * 2)
    twice.defvjp(lambda x: (x * 2, None), lambda _, ct: (np.ones((8, 8), "float32"),))
    return t.mj.grad(lambda x: (t.whole(twice(x)) + t.whole(x)).sum())(t.r)


def _typed(**functions):
    """Cases of arrays, of which types, specs and values are told; also jitted."""

    def plain(function, bench):
        return bench.told(function(bench))

    def jitted(function, bench):
        def run(a, b):
            bench.a, bench.b = a, b
            return function(bench)

        return bench.told(bench.mj.jit(run)(bench.a, bench.b))

    for name, function in functions.items():
        CASES[name] = functools.partial(_run, functools.partial(plain, function))
        CASES[f"{name}_jitted"] = functools.partial(
            _run, functools.partial(jitted, function)
        )


_typed(
    reduced=lambda t: t.r,
    unreduced=lambda t: t.put(t.m, t.P(unreduced={"x"})),
    unreduced_constant=lambda t: t.put(t.jnp.ones((8, 8)), t.P(unreduced={"x"})),
    unreduced_both=lambda t: t.put(t.m, t.P(unreduced={"y", "x"})),
    both_words=lambda t: t.put(t.m, t.P(unreduced={"y"}, reduced={"x"})),
    cut_and_unreduced=lambda t: t.put(t.m, t.P("x", unreduced={"y"})),
    dot=lambda t: t.u,
    dot_reduced_is_dropped=lambda t: t.dot(t.a, t.b, reduced={"x"}),
    dot_of_reduced=lambda t: t.r @ t.b,
    matmul=lambda t: t.jnp.matmul(
        t.a, t.b, out_sharding=t.P(None, None, unreduced={"x"})
    ),
    einsum=lambda t: t.jnp.einsum(
        "ij,jk->ik", t.a, t.b, out_sharding=t.P(None, None, unreduced={"x"})
    ),
    reduce_sum=lambda t: t.lax.reduce_sum(
        t.a, (1,), out_sharding=t.P(None, unreduced={"x"})
    ),
    add=lambda t: t.u + t.u,
    add_reduced=lambda t: t.r + t.r,
    gradient_at_reduced=lambda t: t.mj.grad(lambda r: (r * r).sum())(t.r),
    gradient_of_sum_at_reduced=lambda t: t.mj.grad(lambda r: r.sum())(t.r),
    gradient_through_reduced=lambda t: t.mj.grad(
        lambda m: t.put(m, t.P(reduced={"x"})).sum()
    )(t.m),
    mul_by_reduced=lambda t: t.u * t.r,
    reduced_mul=lambda t: t.r * t.u,
    mul_scalar_reduced=lambda t: t.r * 2.0,
    sine_reduced=lambda t: t.jnp.sin(t.r),
    sub_reduced=lambda t: t.r - t.r,
    compare_reduced=lambda t: (t.r >= t.r).astype(int),
    transpose=lambda t: t.u.T,
    concatenate=lambda t: t.jnp.concatenate([t.u, t.u]),
    stack=lambda t: t.jnp.stack([t.u, t.u]),
    where=lambda t: t.jnp.where(t.jnp.ones((8, 8), bool), t.u, t.u),
    convert=lambda t: t.u.astype("bfloat16"),
    broadcast=lambda t: t.jnp.broadcast_to(t.u, (2, 8, 8)),
    sum_of_unreduced=lambda t: t.u.sum(0),
    sum_of_reduced=lambda t: t.r.sum(0),
    squeeze=lambda t: t.jnp.squeeze(t.u[None]),
    pad=lambda t: t.lax.pad(t.u, 0.0, ((0, 0, 0), (1, 1, 0))),
    split=lambda t: t.jnp.split(t.u, 2)[0],
    scan=lambda t: t.lax.scan(lambda c, _: (c + c, None), t.u, None, length=2)[0],
    cond=lambda t: t.lax.cond(True, lambda u: u + u, lambda u: u, t.u),
    scattered=lambda t: t.put(t.u, t.P("x", None)),
)

# ----------------------------------------------------------------------------------
# What is refused
# ----------------------------------------------------------------------------------

_several(
    sub_refused=lambda t: t.u - t.u,
    neg_refused=lambda t: -t.u,
    sine_refused=lambda t: t.jnp.sin(t.u),
    division_refused=lambda t: t.u / 2.0,
    comparison_refused=lambda t: t.u >= t.u,
    mul_by_row_refused=lambda t: t.u * t.m[:1],
    # JAX has no rule for these: its transpose of a product with a number has marked the
    # number before, and its reshape fails while it reads the spec.
    mul_by_number_only_here=lambda t: t.told(t.u * 2.0),
    reshape_only_here=lambda t: t.told(t.jnp.reshape(t.u, (64,))),
    argument_from_host_only_here=lambda t: t.mj.jit(
        lambda x: t.put(t.put(x, t.P(unreduced={"x"})), t.P("x"))
    )(t.lib.numbers(8)),
    printed_array=lambda t: repr(t.u),
    mul_of_two_refused=lambda t: t.u * t.u,
    whole_cotangent_refused=lambda t: t.mj.vjp(lambda r: r.sum(), t.r)[1](
        t.jnp.ones(())
    ),
    own_rule_with_whole_cotangent_refused=lambda t: _own_rule(t, t.r, t.jnp.ones),
    own_rule_with_numpy_cotangent=lambda t: t.whole(_own_rule(t, t.r, np.ones)),
    own_rule_with_numpy_cotangent_of_cut=lambda t: t.whole(_own_rule(t, t.a, np.ones)),
    own_rule_with_other_cut_refused=lambda t: _own_rule(
        t, t.a, lambda shape: t.put(t.jnp.ones(shape), t.P("y", None))
    ),
    cotangents_of_two_kinds_refused=_added_to_whole,
    add_of_one_refused=lambda t: t.u + t.m,
    add_of_cut_refused=lambda t: t.r + t.a,
    dot_of_unreduced_refused=lambda t: t.jnp.dot(t.u, t.m),
    dot_of_other_axis_refused=lambda t: t.dot(t.a, t.b, unreduced={"y"}),
    dot_of_one_cut_refused=lambda t: t.dot(t.m, t.b),
    sum_of_other_axis_refused=lambda t: t.lax.reduce_sum(
        t.a, (0,), out_sharding=t.P(None, unreduced={"x"})
    ),
    concatenate_of_one_refused=lambda t: t.jnp.concatenate([t.u, t.m]),
    dynamic_slice_refused=lambda t: t.lax.dynamic_slice(t.u, (0, 0), (4, 8)),
    clamp_of_reduced_refused=lambda t: t.lax.clamp(0.0, t.r, 1.0),
    reverse_refused=lambda t: t.jnp.flip(t.u),
    reading_refused=lambda t: __import__("numpy").asarray(t.u),
    device_put_from_host_refused=lambda t: t.mj.device_put(
        t.lib.numbers(8), t.P(unreduced={"x"})
    ),
    unknown_axis_refused=lambda t: t.put(t.m, t.P(unreduced={"q"})),
    overlap_refused=lambda t: t.put(t.m, t.P("x", unreduced={"x"})),
    device_put_reduced=lambda t: str(
        t.mj.typeof(t.mj.device_put(t.lib.numbers(8), t.P(reduced={"x"})))
    ),
)

# ----------------------------------------------------------------------------------
# Gradients, and programs as they are printed
# ----------------------------------------------------------------------------------


def _loss_of_unreduced(t):
    return lambda a, b: (t.put(t.dot(a, b), t.P(None, None)) ** 2).sum()


def _loss_of_reduced(t):
    def loss(w, x):
        return t.jnp.sin(x @ t.put(w, t.P(reduced={"x"}))).sum()

    return loss


def _cotangents(t, function, *args):
    out, back = t.mj.vjp(function, *args)
    types = [str(t.mj.typeof(out))]
    shardings = t.mj.typeof(out).sharding.spec
    ct = t.put(
        t.m,
        t.P(None, None, unreduced=shardings.reduced, reduced=shardings.unreduced),
    )
    found = back(ct)
    return [*types, *(str(t.mj.typeof(one)) for one in found), *map(t.whole, found)]


_several(
    grad_of_unreduced=lambda t: t.mj.grad(_loss_of_unreduced(t), (0, 1))(t.a, t.b),
    grad_of_unreduced_jitted=lambda t: t.mj.jit(
        t.mj.grad(_loss_of_unreduced(t), (0, 1))
    )(t.a, t.b),
    grad_of_reduced=lambda t: t.mj.grad(_loss_of_reduced(t))(t.m, t.put(t.m, t.P("x"))),
    grad_of_reduced_argument=lambda t: [
        str(t.mj.typeof(t.mj.grad(lambda w, x: (x @ w).sum())(t.r, t.b)))
    ],
    vjp_of_sum=lambda t: _cotangents(t, lambda u: u + u, t.u),
    vjp_of_product=lambda t: _cotangents(t, lambda u, r: u * r, t.u, t.r),
    vjp_of_product_with_a_number=lambda t: _cotangents(t, lambda r: r * 3.0, t.r),
    vjp_of_dot=lambda t: _cotangents(t, t.dot, t.a, t.b),
    vjp_of_transpose=lambda t: _cotangents(t, lambda u: u.T, t.u),
    jvp=lambda t: [
        str(t.mj.typeof(one)) for one in t.mj.jvp(t.dot, (t.a, t.b), (t.a, t.b))
    ],
    printed=lambda t: str(
        t.mj.make_jaxpr(lambda a, b: t.whole(t.dot(a, b) + t.dot(a, b)))(t.a, t.b)
    ),
    printed_elementwise=lambda t: str(
        t.mj.make_jaxpr(lambda u, r: (u * r, r.T, u.astype("int32")))(t.u, t.r)
    ),
)


def _type_of(program):
    return lambda t: str(t.mj.typeof(program(t)))


_U, _R = {"unreduced": {"x"}}, {"reduced": {"x"}}


def _shardings(t, name, spec, value):
    named = t.lib.Named(t.u.sharding.mesh, spec)
    out = t.mj.jit(lambda x: x, **{name: named})(value)
    return [str(t.mj.typeof(out)), t.whole(out)]


_several(
    in_shardings_unreduced=lambda t: _shardings(t, "in_shardings", t.P(**_U), t.u),
    in_shardings_reduced=lambda t: _shardings(t, "in_shardings", t.P(**_R), t.r),
    in_shardings_lost_refused=lambda t: _shardings(t, "in_shardings", t.P(), t.u),
    in_shardings_lost_reduced=lambda t: _shardings(t, "in_shardings", t.P(), t.r),
    in_shardings_added_refused=lambda t: _shardings(t, "in_shardings", t.P(**_U), t.m),
    in_shardings_added_reduced=lambda t: _shardings(t, "in_shardings", t.P(**_R), t.m),
    in_shardings_host_refused=lambda t: _shardings(
        t, "in_shardings", t.P(**_U), t.lib.numbers(8, 8)
    ),
    out_shardings_unreduced=lambda t: _shardings(t, "out_shardings", t.P(**_U), t.u),
    out_shardings_reduced=lambda t: _shardings(t, "out_shardings", t.P(**_R), t.r),
    out_shardings_lost=lambda t: _shardings(t, "out_shardings", t.P(), t.u),
    out_shardings_lost_reduced=lambda t: _shardings(t, "out_shardings", t.P(), t.r),
    out_shardings_added=lambda t: _shardings(t, "out_shardings", t.P(**_U), t.m),
    out_shardings_added_reduced=lambda t: _shardings(
        t, "out_shardings", t.P(**_R), t.m
    ),
    shards_of_reduced=lambda t: [
        str(len(t.r.addressable_shards)),
        str(t.r.addressable_shards[0].index),
        t.r.addressable_shards[0].data,
    ],
    shards_of_unreduced=lambda t: [
        str(len(t.u.addressable_shards)),
        t.u.addressable_shards[0].data,
        t.u.addressable_shards[3].data,
    ],
    data_of_unreduced=lambda t: t.u.addressable_data(3),
    printed_reduced=lambda t: [repr(t.r), str(t.r)],
    printed_unreduced=lambda t: [str(t.u)],
    copied=lambda t: t.told(t.u.copy()),
    put_back_refused=lambda t: t.whole(t.mj.device_put(t.u, t.P(None, None))),
    put_reduced=lambda t: str(t.mj.typeof(t.mj.device_put(t.m, t.P(**_R)))),
    put_unreduced=lambda t: str(t.mj.typeof(t.mj.device_put(t.m, t.P(**_U)))),
)


def _updated(update, jit=False):
    """A ref of addends, changed by a function of `(t, ref, addends)`."""

    def run(t):
        def changed(u):
            ref = t.mj.new_ref(u)
            update(t, ref, u)
            return ref[...]

        return t.told((t.mj.jit(changed) if jit else changed)(t.u))

    return run


def _add_thrice(t, ref, u):
    def step(i, total):
        ref[...] = ref[...] + u
        return total + i

    t.lax.fori_loop(0, 3, step, 0)


def _set(t, ref, u):
    ref[...] = u + u


def _set_to_a_sum_refused(t, ref, u):
    ref[...] = t.sharding.reshard(u, t.P(None, None))


_several(
    ref_read=lambda t: t.told(t.mj.freeze(t.mj.new_ref(t.u))),
    ref_set=_updated(_set),
    ref_set_in_jit=_updated(_set, jit=True),
    ref_added_in_a_loop=_updated(_add_thrice, jit=True),
    ref_set_to_a_sum_refused=_updated(_set_to_a_sum_refused),
    ref_of_sines_refused=_updated(lambda t, ref, u: t.jnp.sin(ref[...])),
)

# What minijax does not do with the words, and must not forget either. `pure_callback`
# is refused as well, but ends the process in JAX.
NOT_HERE = {
    "constraint": lambda t: t.mj.jit(
        lambda u: t.lax.with_sharding_constraint(u, t.P(None, None))
    )(t.u),
}
_several(**{f"{name}_not_here": _type_of(NOT_HERE[name]) for name in NOT_HERE})
