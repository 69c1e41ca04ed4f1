"""The registration helpers for whole families of rules, each on a primitive."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import core, lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval

results = {}


def attempt(name, function, *args):
    try:
        results[name] = function(*args)
    except Exception as error:
        results[name] = type(error).__name__


def like_first(x, *_, **__):
    return core.ShapedArray(x.shape, x.dtype)


def make(name, function, types=like_first, multiple_results=False):
    """A primitive that computes `function`, compiled or not."""
    primitive = Primitive(name)
    primitive.multiple_results = multiple_results
    primitive.def_impl(function)
    primitive.def_abstract_eval(types)
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results))
    return primitive


x = jnp.float32([0.5, -1.0, 2.0])
y = jnp.float32([3.0, 1.0, -2.0])

# One term for each argument, and batching where the axis stays.
cube_p = make("cube", lambda x: x * x * x)
ad.defjvp(cube_p, lambda t, x: 3.0 * t * x * x)
batching.defvectorized(cube_p)
attempt("cube", cube_p.bind, x)
attempt("cube compiled", jax.jit(cube_p.bind), x)
attempt("cube grad", jax.vmap(jax.grad(cube_p.bind)), x)
attempt("cube program", lambda: str(jax.make_jaxpr(jax.vmap(jax.grad(cube_p.bind)))(x)))

# The result at hand.
grow_p = make("grow", lambda x, *, rate: lax.exp(rate * x))
ad.defjvp2(grow_p, lambda t, out, x, *, rate: rate * t * out)
batching.defvectorized(grow_p)
attempt("grow grad", jax.grad(lambda x: jnp.sum(grow_p.bind(x, rate=2.0))), x)
attempt(
    "grow program",
    lambda: str(jax.make_jaxpr(jax.grad(lambda x: grow_p.bind(x, rate=2.0)))(1.0)),
)

# Linear ones.
triple_p = make("triple", lambda x: 3.0 * x)
ad.deflinear(triple_p, lambda ct: [triple_p.bind(ct)])
batching.defvectorized(triple_p)
attempt("triple grad", jax.grad(lambda x: jnp.sum(triple_p.bind(x) * x)), x)
attempt("triple transposed", jax.linear_transpose(triple_p.bind, x), y)
turn_p = make("turn", lambda x, *, by: jnp.roll(x, by))
ad.deflinear2(turn_p, lambda ct, _, *, by: [turn_p.bind(ct, by=-by)])
attempt("turn grad", jax.grad(lambda x: jnp.vdot(turn_p.bind(x, by=1), y)), x)

# Bilinear, and broadcasting over a batch.
product_p = make(
    "product",
    lambda x, y: x * y,
    lambda x, y: core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype),
)
ad.defbilinear(
    product_p,
    lambda ct, x, y: product_p.bind(ct, y),
    lambda ct, x, y: product_p.bind(x, ct),
)
batching.defbroadcasting(product_p)
attempt(
    "product grad", jax.grad(lambda a, b: jnp.sum(product_p.bind(a, b)), (0, 1)), x, y
)
attempt(
    "product hessian",
    jax.hessian(lambda a, b: jnp.sum(product_p.bind(a, b)), (0, 1)),
    x,
    y,
)
attempt("product vmap", jax.vmap(product_p.bind, (0, None)), x, y)
attempt("product columns", jax.vmap(product_p.bind, (1, 0)), jnp.ones((3, 2)), x[:2])
attempt(
    "product program",
    lambda: str(jax.make_jaxpr(jax.vmap(product_p.bind, (0, None)))(x, y)),
)

# A reduction.
total_p = make(
    "total",
    lambda x, *, axes: jnp.sum(x, axes),
    lambda x, *, axes: core.ShapedArray(
        tuple(s for i, s in enumerate(x.shape) if i not in axes), x.dtype
    ),
)
batching.defreducer(total_p)
table = jnp.arange(24.0).reshape(2, 3, 4)
attempt("total vmap", jax.vmap(lambda a: total_p.bind(a, axes=(1,))), table)
attempt("total vmap 2", jax.vmap(lambda a: total_p.bind(a, axes=(0,)), 1), table)

# Several results, all rules by table.
both_p = make(
    "both",
    lambda x: [lax.sin(x), lax.cos(x)],
    lambda x: [like_first(x), like_first(x)],
    multiple_results=True,
)


def both_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    s, c = both_p.bind(x)
    if type(t) is ad.Zero:
        return [s, c], [ad.Zero(jax.typeof(s)), ad.Zero(jax.typeof(c))]
    return [s, c], [c * t, -s * t]


ad.primitive_jvps[both_p] = both_jvp
batching.primitive_batchers[both_p] = lambda args, dims: (both_p.bind(*args), dims * 2)
attempt("both", both_p.bind, x)
attempt("both jit", jax.jit(both_p.bind), x)
attempt("both jvp", jax.jvp, both_p.bind, (x,), (y,))
attempt("both grad", jax.grad(lambda x: jnp.sum(both_p.bind(x)[0] * x)), x)
attempt("both vmap", jax.vmap(both_p.bind, 1, 1), table[0])
attempt("both program", lambda: str(jax.make_jaxpr(jax.vmap(both_p.bind))(x)))

# The size of the axis, for a rule that needs it.
ramp_p = make("ramp", lambda x: x + jnp.arange(x.shape[0], dtype=x.dtype))
sizes = []


def ramp_batch(axis_data, args, dims):
    sizes.append(axis_data.size)
    (x,), (dim,) = args, dims
    x = batching.bdim_at_front(x, dim, axis_data.size)
    return x + jnp.arange(x.shape[1], dtype=x.dtype), 0


batching.fancy_primitive_batchers[ramp_p] = ramp_batch
attempt("ramp vmap", jax.vmap(ramp_p.bind, 1), table[0])
results["sizes"] = sizes

# Looking up the rules that are there.
attempt("sin's jvp", ad.primitive_jvps[lax.sin_p], (x,), (y,))
attempt(
    "mul's jvp",
    lambda: ad.primitive_jvps[lax.mul_p]((x, y), (y, ad.Zero(jax.typeof(y)))),
)
attempt(
    "neg's transpose",
    lambda: ad.primitive_transposes[lax.neg_p](y, ad.UndefinedPrimal(jax.typeof(x)))[0],
)
results["in"] = (lax.sin_p in ad.primitive_jvps, cube_p in ad.primitive_jvps)
attempt("absent", lambda: ad.primitive_transposes[cube_p])
attempt("absent too", lambda: ad.get_primitive_transpose(cube_p))

# Replacing a rule, and putting it back.
kept = ad.primitive_jvps[lax.tan_p]
ad.primitive_jvps[lax.tan_p] = lambda primals, tangents, **params: (
    lax.tan_p.bind(*primals, **params),
    tangents[0],
)
attempt("straight through", jax.grad(lambda x: lax.tan(x)), 1.0)
ad.primitive_jvps[lax.tan_p] = kept
attempt("tan again", jax.grad(lambda x: lax.tan(x)), 1.0)


# A rule for dead code: half of the results, half of the work.
def half(used, eqn):
    if not any(used):
        return [False] * len(eqn.invars), None
    return [True], eqn


partial_eval.dce_rules[both_p] = half
closed = jax.make_jaxpr(lambda x: (both_p.bind(x)[0], both_p.bind(x * 2.0)))(x)
smaller, used = partial_eval.dce_jaxpr(closed.jaxpr, [True, False, False])
results["smaller"] = (str(smaller), used)
