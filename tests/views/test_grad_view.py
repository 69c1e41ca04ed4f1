"""`see.grad`: its numbers held against jaxprs of both libraries, and its picture."""

from __future__ import annotations

import jax
import pytest

import minijax
from minijax_lab.explain.backward import record_grad
from tests.views import test_residuals as of

# `jit` alone is opened, and `checkpoint` is written twice by the engine: their
# equations are counted by a test of their own.
CALLS = (of.checkpointed, of.keeping_dots, of.keeping_everything, of.jitted)
COUNTED = [
    (make, args)
    for make, args in of.FUNCTIONS
    if make not in (*CALLS, of.own_backward, of.own_forward)
]


@pytest.mark.parametrize(
    "make, args", COUNTED, ids=lambda x: getattr(x, "__name__", "")
)
def test_equations_are_those_of_the_jaxprs(make, args):
    """What runs forward and backward is what `grad` writes, here and in JAX."""
    own = make(of.library(minijax))
    program = record_grad(own, *args).program
    assert program.forward == len(minijax.make_jaxpr(own)(*args).eqns)
    every = program.forward + program.extra + program.unused + program.backward
    assert every == len(minijax.make_jaxpr(minijax.grad(own))(*args).eqns)
    theirs = make(of.library(jax))
    assert every == len(jax.make_jaxpr(jax.grad(theirs))(*args).eqns)
