"""A primitive made from outside, one rule after the other: a + b * c."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import core, lax
from jax.extend import core as extend_core
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir

results = {}
calls = []
plus_times_p = extend_core.Primitive("plus_times")


def plus_times(a, b, c):
    return plus_times_p.bind(a, b, c)


def polynomial(x, y):
    return plus_times(y, x, plus_times(y, x, x))


def attempt(name, function, *args):
    """What comes out, or the class of what is raised."""
    try:
        results[name] = function(*args)
    except Exception as error:
        results[name] = type(error).__name__


attempt("no evaluation", polynomial, 2.0, 3.0)


@plus_times_p.def_impl
def evaluate(a, b, c):
    calls.append("evaluate")
    return np.add(a, np.multiply(b, c))


attempt("evaluated", polynomial, 2.0, 3.0)
attempt("no types", jax.jit(polynomial), 2.0, 3.0)


@plus_times_p.def_abstract_eval
def types(a, b, c):
    assert isinstance(a, core.ShapedArray)
    if not a.shape == b.shape == c.shape:
        raise ValueError("three shapes")
    return core.ShapedArray(a.shape, a.dtype)


attempt("program", lambda: str(jax.make_jaxpr(polynomial)(2.0, 3.0)))
attempt("bad shapes", jax.make_jaxpr(polynomial), np.ones(2), np.ones(3))
attempt("no lowering", jax.jit(polynomial), 2.0, 3.0)


def lower(ctx, a, b, c):
    assert ctx.avals_out[0].shape == ctx.avals_in[0].shape
    return [stablehlo.AddOp(a, stablehlo.MulOp(b, c)).result]


attempt("no such platform", mlir.register_lowering, plus_times_p, lower, "abacus")
mlir.register_lowering(plus_times_p, lower, platform="cpu")
attempt("compiled", jax.jit(polynomial), 2.0, 3.0)
attempt("static", jax.jit(polynomial, static_argnums=1), 2.0, 3.0)
attempt(
    "lowered", lambda: "stablehlo.add" in jax.jit(polynomial).lower(2.0, 3.0).as_text()
)
attempt("no jvp", jax.jvp, polynomial, (2.0, 3.0), (1.0, 1.0))


def jvp(primals, tangents):
    a, b, c = primals
    a_dot, b_dot, c_dot = (
        lax.full_like(x, 0) if type(t) is ad.Zero else t
        for x, t in zip(primals, tangents)
    )
    out = plus_times(a, b, c)
    return out, plus_times(plus_times(a_dot, b, c_dot), b_dot, c)


ad.primitive_jvps[plus_times_p] = jvp
attempt("jvp", jax.jvp, polynomial, (2.0, 3.0), (1.0, 1.0))
attempt(
    "compiled jvp",
    jax.jit(lambda x, t: jax.jvp(polynomial, x, t)),
    (2.0, 3.0),
    (1.0, 1.0),
)
attempt(
    "program of jvp",
    lambda: str(
        jax.make_jaxpr(lambda x, t: jax.jvp(polynomial, x, t))((2.0, 3.0), (1.0, 1.0))
    ),
)
attempt("no transpose", jax.grad(polynomial), 2.0, 3.0)


def transpose(ct, a, b, c):
    linear_b, linear_c = ad.is_undefined_primal(b), ad.is_undefined_primal(c)
    assert not (linear_b and linear_c)
    ct_a = ct if ad.is_undefined_primal(a) else None
    if type(ct) is ad.Zero:
        return ct_a, ad.Zero(b.aval), ad.Zero(c.aval)
    zero = lax.full_like(ct, 0)
    ct_b = plus_times(zero, ct, c) if linear_b else None
    ct_c = plus_times(zero, b, ct) if linear_c else None
    return ct_a, ct_b, ct_c


ad.primitive_transposes[plus_times_p] = transpose
attempt("grad", jax.grad(polynomial, (0, 1)), 2.0, 3.0)
attempt("compiled grad", jax.jit(jax.grad(polynomial)), 2.0, 3.0)
attempt("second", jax.grad(jax.grad(polynomial)), 2.0, 3.0)
attempt("forward over reverse", jax.hessian(polynomial, (0, 1)), 2.0, 3.0)
attempt("program of grad", lambda: str(jax.make_jaxpr(jax.grad(polynomial))(2.0, 3.0)))
xs, ys = np.float32([2.0, 3.0]), np.float32([10.0, 20.0])
attempt("no batching", jax.vmap(polynomial), xs, ys)


def batch(args, dims):
    assert dims[0] == dims[1] == dims[2]
    return plus_times(*args), dims[0]


batching.primitive_batchers[plus_times_p] = batch
attempt("vmap", jax.vmap(polynomial), xs, ys)
attempt("compiled vmap", jax.jit(jax.vmap(polynomial)), xs, ys)
attempt("vmap of grad", jax.vmap(jax.grad(polynomial)), xs, ys)
attempt("columns", jax.vmap(polynomial, 1, 1), np.ones((2, 3)), np.ones((2, 3)))
attempt("grad of sum", jax.grad(lambda x: jnp.sum(polynomial(x, x))), jnp.ones(3))
results["evaluate was called"] = bool(calls)
