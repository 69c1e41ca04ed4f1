"""How programs are compiled where bits are compared.

Fused multiply-add rounds once where two operations round twice, and whether it is used
is up to the optimiser. So both libraries must compile alike: in `make test` both do it
cheaply, but for the tests marked `full_optimisation`; in `make test-all` all tests
compile as users do. What was compiled the other way is thrown away before and after.
"""

import os

import jax
import pytest

import minijax

FAST_COMPILE = "MINIJAX_TEST_FAST_COMPILE"


def _forget_programs() -> None:
    minijax.clear_caches()
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _full_optimisation(request, monkeypatch):
    marked = request.node.get_closest_marker("full_optimisation")
    if not marked and not os.environ.get("MINIJAX_TEST_ALL"):
        yield
        return
    _forget_programs()
    monkeypatch.delenv(FAST_COMPILE, raising=False)
    assert FAST_COMPILE not in os.environ
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    _forget_programs()
