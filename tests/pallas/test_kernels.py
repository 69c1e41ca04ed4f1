"""Kernels of the table: values against NumPy and jax's interpreter, and their text."""

import jax
import numpy as np
import pytest

import minijax
from tests.checked import check_closed_jaxpr
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.pallas.kernels import TABLE, Library

OURS = Library("minijax", interpret=False)
OURS_INTERPRETED = Library("minijax", interpret=True)
JAX = Library("jax", interpret=True)

entries = pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)


def flat(library, tree):
    return [np.asarray(leaf) for leaf in library.lib.tree_util.tree_leaves(tree)]


@entries
def test_values(entry):
    got = flat(OURS, entry.build(OURS)(*entry.args))
    expected = flat(OURS, entry.expected(*entry.args))
    theirs = expected
    if entry.in_jax:
        theirs = flat(JAX, jax.jit(entry.build(JAX))(*entry.args))
    for ours, by_numpy, by_jax in zip(got, expected, theirs, strict=True):
        assert ours.dtype == by_jax.dtype
        np.testing.assert_allclose(ours, by_jax, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(ours, by_numpy, rtol=1e-4, atol=1e-4)


@entries
def test_text(entry):
    with plain_numpy_scalars():
        closed = minijax.make_jaxpr(entry.build(OURS_INTERPRETED))(*entry.args)
        check_closed_jaxpr(closed)
        theirs = jax.make_jaxpr(entry.build(JAX))(*entry.args)
        assert normalise(str(closed)) == normalise(str(theirs))


def test_older_order_of_arguments():
    older = minijax.experimental.pallas.BlockSpec(lambda i: (i,), (4,))
    assert older.block_shape == (4,)
    assert older.index_map(3) == (3,)


def test_methods_of_refs():
    def build(library):
        def kernel(x_ref, o_ref):
            o_ref.set(x_ref.get())
            first = o_ref.at[1:3].swap(x_ref[:2])
            o_ref.at[4:].set(first, slice(0, 2))
            o_ref.addupdate(x_ref.at[5:].get(0), 0)

        return library.call(kernel, (8,))

    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(build(OURS)(x), build(JAX)(x))
    with pytest.raises(AttributeError, match="it is not a ref"):
        minijax.jit(lambda x: x.swap(1))(x)
