"""What the rules of a user's primitive are given."""

import jax
import numpy as np
from jax.extend import core as jax_core
from jax.interpreters import ad as jax_ad
from jax.interpreters import batching as jax_batching

import minijax
from minijax.extend import core
from minijax.interpreters import ad, batching


def test_rules_are_given_tuples():
    """As in JAX: a user's rule may add a tuple to what it gets."""

    def run(lib, core, ad, batching):
        seen = []
        triple_p = core.Primitive("triple")
        triple_p.def_impl(lambda x: 3 * x)
        triple_p.def_abstract_eval(lambda x: x)

        def jvp(primals, tangents):
            seen.append((type(primals), type(tangents)))
            return triple_p.bind(*primals), triple_p.bind(*tangents)

        def batch(args, dims):
            seen.append((type(args), type(dims)))
            return triple_p.bind(*args), dims[0]

        ad.primitive_jvps[triple_p] = jvp
        batching.primitive_batchers[triple_p] = batch
        lib.jvp(triple_p.bind, (1.0,), (1.0,))
        lib.vmap(triple_p.bind)(np.ones(2))
        return seen

    ours = run(minijax, core, ad, batching)
    theirs = run(jax, jax_core, jax_ad, jax_batching)
    assert ours == theirs == [(tuple, tuple)] * 2
