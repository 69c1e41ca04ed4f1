

def test_rules_are_given_tuples():
    """As in JAX: a user's rule may add a tuple to what it gets."""

    def run(lib):
        seen = []
        triple_p = lib.extend.core.Primitive("triple")
        triple_p.def_impl(lambda x: 3 * x)
        triple_p.def_abstract_eval(lambda x: x)

        def jvp(primals, tangents):
            seen.append((type(primals), type(tangents)))
            return triple_p.bind(*primals), triple_p.bind(*tangents)

        def batch(args, dims):
            seen.append((type(args), type(dims)))
            return triple_p.bind(*args), dims[0]

        lib.interpreters.ad.primitive_jvps[triple_p] = jvp
        lib.interpreters.batching.primitive_batchers[triple_p] = batch
        lib.jvp(triple_p.bind, (1.0,), (1.0,))
        lib.vmap(triple_p.bind)(np.ones(2))
        return seen

    assert run(minijax) == run(jax) == [(tuple, tuple)] * 2
