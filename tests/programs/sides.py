"""One program in two libraries: the same text, the same values, the same errors."""

import os

import jax
import numpy as np
import pytest

import minijax
from tests.checked import check_closed_jaxpr
from tests.golden.normalise import normalise, plain_numpy_scalars

LIBRARIES = (minijax, jax)


def same_text(make, *args):
    """`make(library)` gives a function; its jaxpr at `args` reads the same in both."""
    with plain_numpy_scalars():
        ours_closed = minijax.make_jaxpr(make(minijax))(*args)
        check_closed_jaxpr(ours_closed)
        ours = normalise(str(ours_closed))
        theirs = normalise(str(jax.make_jaxpr(make(jax))(*args)))
    assert ours == theirs


def leaves_of(library, tree):
    return [np.asarray(leaf) for leaf in library.tree_util.tree_leaves(tree)]


def same_values(make, *args, rtol=1e-5, compiled=True):
    """The function's results at `args` are equal in both libraries.

    JAX says what is right: in `make test` one program for it compiles faster than its
    operations one by one, unless the function cannot be `compiled`.
    """
    functions = [make(minijax), make(jax)]
    if compiled and not os.environ.get("MINIJAX_TEST_ALL"):
        functions[1] = jax.jit(functions[1])
    results = [leaves_of(lib, f(*args)) for lib, f in zip(LIBRARIES, functions)]
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if ours.dtype.names is None and ours.dtype != [("float0", "V")]:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-6)


def same_error(make, *args, match=None):
    """Both libraries raise exceptions of the same class."""
    kinds = []
    for library in LIBRARIES:
        with pytest.raises(Exception) as info:
            make(library)(*args)
        kinds.append(info.type.__name__)
        if library is minijax and match is not None:
            assert match in str(info.value)
    assert kinds[0] == kinds[1]
