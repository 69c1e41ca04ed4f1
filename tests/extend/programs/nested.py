"""An interpreter that goes into programs inside of programs, under transformations."""

import collections

import jax
import jax.numpy as jnp
from jax import core, lax
from jax.extend.core import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    jaxpr_as_fun,
    jaxprs_in_params,
    new_jaxpr_eqn,
    no_effects,
    subjaxprs,
)
from jax.extend.core.primitives import (
    custom_jvp_call_p,
    custom_vjp_call_p,
    jit_p,
    mul_p,
)

results = {}


@jax.custom_jvp
def bump(x):
    return jnp.sin(x)


bump.defjvp(lambda primals, tangents: (bump(primals[0]), 10.0 * tangents[0]))


@jax.custom_vjp
def clip_gradient(x):
    return x * 1.0


clip_gradient.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (jnp.clip(ct, -1, 1),))


@jax.jit
def layer(w, x):
    return jnp.tanh(w * x) + bump(x)


def model(w, x):
    return layer(w, layer(w, clip_gradient(x))) * 3.0


def walk(jaxpr, counts):
    for eqn in jaxpr.eqns:
        counts[str(eqn.primitive)] += 1
        for inner in jaxprs_in_params(eqn.params):
            walk(inner, counts)
    return counts


closed = jax.make_jaxpr(model)(2.0, 3.0)
results["counts"] = dict(walk(closed.jaxpr, collections.Counter()))
results["programs inside"] = len(list(subjaxprs(closed.jaxpr)))


def double_products(fun):
    """`fun` with every product doubled, also inside of jit."""

    def wrapped(*args):
        closed = jax.make_jaxpr(fun)(*args)
        return run(closed.jaxpr, closed.consts, *args)[0]

    return wrapped


def run(jaxpr, consts, *args):
    env = dict(zip(jaxpr.invars, args)) | dict(zip(jaxpr.constvars, consts))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        inputs = [read(v) for v in eqn.invars]
        if eqn.primitive is mul_p:
            outputs = [2.0 * mul_p.bind(*inputs, **eqn.params)]
        elif eqn.primitive is jit_p:
            inner = eqn.params["jaxpr"]
            outputs = jax.jit(
                lambda *xs, inner=inner: run(inner.jaxpr, inner.consts, *xs)
            )(*inputs)
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            outputs = eqn.primitive.bind(*inputs, **params)
            if not eqn.primitive.multiple_results:
                outputs = [outputs]
        env.update(zip(eqn.outvars, outputs))
    return [read(v) for v in jaxpr.outvars]


changed = double_products(model)
xs = jnp.linspace(-1.0, 2.0, 4)
results["value"] = changed(2.0, 3.0)
results["grad"] = jax.grad(changed, (0, 1))(0.3, 0.2)
results["jit grad"] = jax.jit(jax.grad(changed))(0.3, 0.2)
results["vmap grad"] = jax.vmap(jax.grad(changed), (None, 0))(0.3, xs)
results["jvp"] = jax.jvp(double_products(layer), (0.3, 0.2), (1.0, 2.0))
results["twice"] = double_products(changed)(0.3, 0.2)

# The interpreter that is there, and its inverse.
results["eval_jaxpr"] = core.eval_jaxpr(closed.jaxpr, closed.consts, 0.3, 0.2)
results["as function"] = jaxpr_as_fun(closed)(0.3, 0.2)
results["grad of program"] = jax.grad(lambda x: jaxpr_as_fun(closed)(0.3, x)[0])(0.2)
results["vmap of program"] = jax.vmap(lambda x: jaxpr_as_fun(closed)(0.3, x)[0])(xs)

# A program changed by hand.
plain = jax.make_jaxpr(lambda x: lax.sin(x) * 2.0)(1.0)
eqns = [
    eqn.replace(primitive=lax.cos_p) if eqn.primitive is lax.sin_p else eqn
    for eqn in plain.jaxpr.eqns
]
by_hand = ClosedJaxpr(plain.jaxpr.replace(eqns=eqns), plain.consts)
results["changed"] = str(by_hand)
results["changed value"] = jaxpr_as_fun(by_hand)(0.5)
(first, *_), (last,) = by_hand.jaxpr.eqns, by_hand.jaxpr.outvars
more = new_jaxpr_eqn([last], [type(last)(last.aval)], lax.neg_p, {}, no_effects)
longer = by_hand.jaxpr.replace(eqns=[*by_hand.jaxpr.eqns, more], outvars=more.outvars)
assert isinstance(longer, Jaxpr)
results["longer"] = str(longer)
results["longer value"] = core.eval_jaxpr(longer, [], 0.5)
custom = jax.make_jaxpr(lambda x: (bump(x), clip_gradient(x)))(1.0)
results["custom"] = [
    eqn.primitive is p
    for eqn, p in zip(custom.jaxpr.eqns, (custom_jvp_call_p, custom_vjp_call_p))
]
