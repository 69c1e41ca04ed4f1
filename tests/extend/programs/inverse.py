"""An interpreter that runs programs backwards: the inverse of a function."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

results = {}


def chain(x):
    return jnp.exp(jnp.tanh(x))


def examine(closed):
    jaxpr = closed.jaxpr
    return (
        [v.aval.str_short() for v in jaxpr.invars],
        [v.aval.str_short() for v in jaxpr.outvars],
        [v.aval.str_short() for v in jaxpr.constvars],
        [
            (str(eqn.primitive), len(eqn.invars), sorted(eqn.params))
            for eqn in jaxpr.eqns
        ],
        str(jaxpr),
    )


results["examined"] = examine(jax.make_jaxpr(lambda x: x + 1)(5))
results["examined too"] = examine(
    jax.make_jaxpr(lambda w, b, x: (jnp.dot(w, x) + b + jnp.ones(5), x))(
        jnp.ones((5, 10)), jnp.ones(5), jnp.ones(10)
    )
)


def evaluate(jaxpr, consts, *args):
    """The plain interpreter."""
    env = {}

    def read(atom):
        return atom.val if type(atom) is core.Literal else env[atom]

    env.update(zip(jaxpr.invars, args))
    env.update(zip(jaxpr.constvars, consts))
    for eqn in jaxpr.eqns:
        outputs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        if not eqn.primitive.multiple_results:
            outputs = [outputs]
        env.update(zip(eqn.outvars, outputs))
    return [read(atom) for atom in jaxpr.outvars]


closed = jax.make_jaxpr(chain)(jnp.ones(5))
results["evaluated"] = evaluate(closed.jaxpr, closed.literals, jnp.arange(5.0))
captured = jnp.arange(3.0)
with_constant = jax.make_jaxpr(lambda x: jnp.sin(x) * captured + 2.0)(1.0)
results["with a constant"] = evaluate(
    with_constant.jaxpr, with_constant.literals, jnp.float32(2.0)
)

inverses = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh, lax.neg_p: lax.neg}


def inverse(fun):
    @functools.wraps(fun)
    def wrapped(y):
        closed = jax.make_jaxpr(fun)(y)
        return backwards(closed.jaxpr, closed.literals, y)[0]

    return wrapped


def backwards(jaxpr, consts, *values):
    env = dict(zip(jaxpr.outvars, values))
    env.update(zip(jaxpr.constvars, consts))
    for eqn in jaxpr.eqns[::-1]:
        if eqn.primitive not in inverses:
            raise NotImplementedError(f"{eqn.primitive} has no inverse")
        (known,) = [env[v] for v in eqn.outvars]
        (unknown,) = eqn.invars
        env[unknown] = inverses[eqn.primitive](known)
    return [env[v] for v in jaxpr.invars]


results["there and back"] = inverse(chain)(chain(1.0))
results["its program"] = str(jax.make_jaxpr(inverse(chain))(chain(1.0)))
points = (jnp.arange(5) + 1.0) / 5.0
results["all together"] = jax.jit(jax.vmap(jax.grad(inverse(chain))))(points)
results["its program too"] = str(
    jax.make_jaxpr(jax.vmap(jax.grad(inverse(lambda x: -jnp.exp(x)))))(-points)
)
try:
    inverse(jnp.sin)(0.5)
except NotImplementedError as error:
    results["sin"] = str(error)
results["twice"] = np.asarray(inverse(inverse(lambda x: -x))(2.0))
