"""Libraries for JAX run unmodified on minijax, and print what they print on jax.

einops, which the environment of the tests has, is in `make test`; the wheels of the
others are installed by `make test-all` into a folder of the test's.
"""

import os

import pytest

from tests.as_jax import wheels

pytest.importorskip("jax")

# What does not run, and why. One that runs is compared all the same.
_LINEAR_ALGEBRA = "asks for linear algebra that minijax does not have yet"
NOT_YET = {
    **dict.fromkeys(["flax_linen", "flax_nnx", "haiku"], _LINEAR_ALGEBRA),
    **dict.fromkeys(["lineax", "optimistix", "diffrax", "tinygp"], _LINEAR_ALGEBRA),
    **dict.fromkeys(["blackjax", "numpyro"], _LINEAR_ALGEBRA),
    "distrax": "TensorFlow Probability 0.25 asks for jax.interpreters.xla names that "
    "jax 0.10.2 does not have either",
    "dynamax": "TensorFlow Probability, as distrax",
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    given = os.environ.get("MINIJAX_TEST_WHEELS")
    if given:
        return wheels.Path(given)
    return tmp_path_factory.getbasetemp().parent / "wheels"


@pytest.mark.parametrize("name", wheels.NEEDS)
def test_prints_the_same(name, folder):
    if name != "einops" and not os.environ.get("MINIJAX_TEST_ALL"):
        pytest.skip("make test-all installs the wheels of libraries")
    folder.mkdir(parents=True, exist_ok=True)
    complaint = wheels.install(wheels.NEEDS[name], folder)
    if complaint:
        pytest.skip(f"the wheels of {name} cannot be installed: {complaint}")
    ours = wheels.run(name, folder, minijax=True)
    if name in NOT_YET and ours.returncode:
        pytest.skip(NOT_YET[name])
    theirs = wheels.run(name, folder, minijax=False)
    assert theirs.returncode == 0, theirs.stderr[-2000:]
    assert ours.returncode == 0, ours.stderr[-2000:]
    assert theirs.stdout.strip() and ours.stdout == theirs.stdout
