"""Derivatives held against difference quotients. In JAX: `jax.test_util`."""

from minijax.programs.debugging.gradient_checks import check_grads as check_grads
from minijax.programs.debugging.gradient_checks import check_jvp as check_jvp
from minijax.programs.debugging.gradient_checks import check_vjp as check_vjp
