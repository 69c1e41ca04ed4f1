"""Runs a program equation by equation, each by a rule of a transformation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core import source_info
from minijax.core.language import Jaxpr, JaxprEqn, Literal, Var


def run_equations(
    jaxpr: Jaxpr, env: dict[Var, Any], step: Callable[[JaxprEqn, list[Any]], Any]
) -> list[Any]:
    """Runs a program by `step(equation, operands)`; returns the program's results.

    `env` has the values of constants and inputs, and gets those of all variables. A
    step returns what its primitive does: a list if it has multiple results.
    """
    outer = source_info.current_name_stack()
    for eqn in jaxpr.eqns:
        inputs = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        with source_info.user_context(eqn.source_info, outer=outer):
            outputs = step(eqn, inputs)
        if not eqn.primitive.multiple_results:
            outputs = [outputs]
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]
