"""Libraries for JAX run unmodified on minijax, and print what they print on jax.

`make test-all` installs their wheels into a folder of the test's.
"""

import os

import pytest

from tests.as_jax import wheels

pytest.importorskip("jax")

# What does not run yet, and what the last line of its error has.
NOT_YET = {
    # TensorFlow Probability takes pytype_aval_mappings of it; jax 0.10.2 has none.
    "distrax": "jax.interpreters.xla",
    # Which a wheel that it needs asks for; then it too wants TensorFlow Probability.
    "dynamax": "fasthtml",
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    given = os.environ.get("MINIJAX_TEST_WHEELS")
    if given:
        return wheels.Path(given)
    return tmp_path_factory.getbasetemp().parent / "wheels"


@pytest.mark.parametrize("name", wheels.NEEDS)
def test_prints_the_same(name, folder):
    if not os.environ.get("MINIJAX_TEST_ALL"):
        pytest.skip("make test-all installs the wheels of libraries")
    folder.mkdir(parents=True, exist_ok=True)
    complaint = wheels.install(wheels.NEEDS[name], folder)
    if complaint:
        pytest.skip(f"the wheels of {name} cannot be installed: {complaint}")
    program = wheels.PROGRAMS / f"use_{name}.py"
    ours = wheels.run(program, True, folder)
    if name in NOT_YET:
        assert ours.returncode, f"{name} runs now: take it out of NOT_YET"
        assert NOT_YET[name] in ours.stderr, ours.stderr[-2000:]
        pytest.xfail(f"{name} asks for {NOT_YET[name]}")
    theirs = wheels.run(program, False, folder)
    assert theirs.returncode == 0, theirs.stderr[-2000:]
    assert ours.returncode == 0, ours.stderr[-2000:]
    assert theirs.stdout.strip() and ours.stdout == theirs.stdout
