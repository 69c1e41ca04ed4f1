"""Each case gives JAX's values, dtypes and weak types, eagerly and under jit."""

import os

import jax
import pytest

from tests.oracle.oracle import difference, run
from tests.rules.cases import CASES

minijax = pytest.importorskip("minijax")


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.name)
def test_values(entry):
    def program(library, how="eager"):
        with library.enable_x64(True):
            args = [library.numpy.asarray(arg) for arg in entry.args]
            function = entry.build(library)
            return (library.jit(function) if how == "jit" else function)(*args)

    theirs = run(program, jax)
    for how in ("eager", "jit"):
        ours = run(lambda library, how=how: program(library, how), minijax)
        assert difference(ours, theirs) is None, how
    if os.environ.get("MINIJAX_TEST_ALL"):
        compiled = run(lambda library: program(library, "jit"), jax)
        assert difference(ours, compiled) is None
