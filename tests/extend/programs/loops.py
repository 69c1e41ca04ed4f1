"""A plain interpreter over programs with loops, branches and checkpoints in them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core
from jax.extend.core.primitives import cond_p, scan_p, while_p
from jax.interpreters import ad, batching, mlir

results = {}


def program(x):
    total, steps = lax.scan(lambda c, a: (c * jnp.sin(a), c), x[0], x)
    low = lax.while_loop(lambda v: v > 0.1, lambda v: v / 2.0, 1.0 + x[1] ** 2)
    branch = lax.cond(x[2] > 0, jnp.cos, lambda y: y * 3.0, x)
    kept = jax.checkpoint(lambda y: jnp.sin(jnp.exp(y)))(x)
    return total + steps.sum() + low + (branch * kept).sum()


def run(jaxpr, consts, *args):
    env = dict(zip(jaxpr.invars, args)) | dict(zip(jaxpr.constvars, consts))

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else env[atom]

    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outputs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        if not eqn.primitive.multiple_results:
            outputs = [outputs]
        env.update(zip(eqn.outvars, outputs))
    return [read(v) for v in jaxpr.outvars]


x = jnp.float32([0.3, 0.7, 0.2])
closed = jax.make_jaxpr(program)(x)
found = {eqn.primitive for eqn in closed.jaxpr.eqns}
results["found"] = [p in found for p in (scan_p, while_p, cond_p)]


def again(x):
    return run(closed.jaxpr, closed.consts, x)[0]


results["values"] = (program(x), again(x), jax.jit(again)(x))
results["batch"] = jax.vmap(again)(jnp.stack([x, -x]))
results["forward"] = jax.jvp(again, (x,), (jnp.ones(3),))
results["same program"] = str(jax.make_jaxpr(again)(x)) == str(closed)
try:
    jax.grad(again)(x)
except ValueError as error:
    results["no reverse"] = type(error).__name__

# A primitive of one's own inside of loops and branches.
half_p = core.Primitive("half")
half_p.def_impl(lambda x: np.asarray(x) / 2)
half_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(
    half_p, mlir.lower_fun(lambda x: x * 0.5, multiple_results=False)
)
ad.deflinear(half_p, lambda ct: [half_p.bind(ct)])
batching.defvectorized(half_p)


def halved(x):
    out, _ = lax.scan(lambda c, a: (half_p.bind(c) + jnp.sin(a), None), x[0], x)
    return lax.cond(out > 0, half_p.bind, lambda y: y, out)


results["in loops"] = (halved(x), jax.jit(halved)(x), jax.grad(halved)(x))
results["in batched loops"] = jax.vmap(jax.grad(halved))(jnp.stack([x, -x]))
results["its program"] = str(jax.make_jaxpr(jax.grad(halved))(x))
