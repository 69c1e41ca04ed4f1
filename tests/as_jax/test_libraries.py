"""Libraries for JAX run unmodified on minijax, and print what they print on jax.

`make test-all` installs their wheels into a folder of the test's.
"""

import os

import pytest

from tests.as_jax import wheels

pytest.importorskip("jax")


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
    theirs = wheels.run(program, False, folder)
    assert theirs.returncode == 0, theirs.stderr[-2000:]
    assert ours.returncode == 0, ours.stderr[-2000:]
    assert theirs.stdout.strip() and ours.stdout == theirs.stdout
