"""Bits are compared, so both libraries compile with all optimisations here.

Fused multiply-add rounds once where two operations round twice, and whether it is used
is up to the optimiser. What other tests have compiled more cheaply is thrown away.
"""

import os

import jax
import pytest

import minijax

FAST_COMPILE = "MINIJAX_TEST_FAST_COMPILE"


@pytest.fixture(scope="package", autouse=True)
def _forget_cheaply_compiled_programs():
    minijax.clear_caches()
    jax.clear_caches()
    yield
    minijax.clear_caches()
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _full_optimisation(monkeypatch, _forget_cheaply_compiled_programs):
    monkeypatch.delenv(FAST_COMPILE, raising=False)
    assert FAST_COMPILE not in os.environ
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
