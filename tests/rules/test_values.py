"""Each case gives JAX's values, dtypes and weak types, eagerly and under jit."""

import jax
import pytest

from tests.oracle.oracle import assert_same
from tests.rules.cases import CASES

minijax = pytest.importorskip("minijax")


@pytest.mark.parametrize("how", ["eager", "jit"])
@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.name)
def test_values(entry, how):
    def program(library):
        with library.enable_x64(True):
            args = [library.numpy.asarray(arg) for arg in entry.args]
            function = entry.build(library)
            return (library.jit(function) if how == "jit" else function)(*args)

    assert_same(program, minijax, jax)
