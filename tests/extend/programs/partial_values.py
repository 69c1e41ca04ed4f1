"""Programs that know some of their arguments, as Flax's lazy_init does."""

import jax
import jax.numpy as jnp
from jax.extend import linear_util as lu
from jax.interpreters import partial_eval as pe

unknown = pe.PartialVal.unknown(jax.core.ShapedArray((3,), jnp.float32))
known = pe.PartialVal.known(jnp.arange(3.0))


def fun(x, t):
    return jnp.sin(x), jnp.sin(x) * t, x + 1


def traced(instantiate):
    info = jax.api_util.debug_info("test", fun, (1, 2), {})
    wrapped = lu.wrap_init(lambda *args: list(fun(*args)), debug_info=info)
    return pe.trace_to_jaxpr_nounits(wrapped, [known, unknown], instantiate)


jaxpr, outs, consts = traced(False)
more, all_outs, _ = traced(True)
_, some_outs, _ = traced([True, False, False])
results = {
    "known": [out.is_known() for out in outs],
    "values": [out.get_known() for out in outs if out.is_known()],
    "type": str(outs[1].get_aval()),
    "type of a known one": str(known.get_aval()),
    "inputs": len(jaxpr.invars),
    "outputs": len(jaxpr.outvars),
    "the rest": jax.core.eval_jaxpr(jaxpr, consts, jnp.ones(3)),
    "all unknown": [out.is_known() for out in all_outs],
    "all outputs": len(more.outvars),
    "some unknown": [out.is_known() for out in some_outs],
}
