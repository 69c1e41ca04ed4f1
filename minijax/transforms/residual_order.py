"""The order in which a split program takes its residuals: JAX's.

JAX finds the residuals of the unknown program by walking back from its inputs and
outputs, along the arguments of each equation, and lists what it reaches in topological
order. Each use of a value is a node of its own there, and a residual stands where its
first one comes. What is computed does not depend on it; the printed programs do.

In JAX: `interpreters/partial_eval.py`, `tracers_to_jaxpr`.
"""

from __future__ import annotations

from collections.abc import Sequence

from minijax.core import runtime
from minijax.core.effects import partial_eval_kept_effects
from minijax.core.language import Jaxpr, Literal, Var


class _Node:
    """A value in the program: what it is computed from, and the residual it is."""

    __slots__ = ("parents", "residual")

    def __init__(self, parents: Sequence[_Node] = (), residual: int | None = None):
        self.parents = parents
        self.residual = residual


def residual_order(jaxpr: Jaxpr) -> list[int]:
    """The positions of the constvars of a program, in the order of JAX."""
    constants = {var: index for index, var in enumerate(jaxpr.constvars)}
    nodes: dict[Var, _Node] = {var: _Node() for var in jaxpr.invars}

    def use(atom: Var | Literal) -> _Node:
        if type(atom) is Literal:
            return _Node()
        if atom in constants:  # type: ignore[comparison-overlap]
            return _Node(residual=constants[atom])  # type: ignore[index]
        return nodes[atom]  # type: ignore[index]

    effects = []
    for eqn in jaxpr.eqns:
        parents = [use(atom) for atom in eqn.invars]
        nodes.update((var, _Node(parents)) for var in eqn.outvars)
        if eqn.effects and partial_eval_kept_effects.filter_in(eqn.effects):
            effects.append(_Node(parents))
    ends = [*(nodes[v] for v in jaxpr.invars), *map(use, jaxpr.outvars), *effects]
    found = [node.residual for node in runtime.topological_sort("parents", ends)]
    first = dict.fromkeys(index for index in found if index is not None)
    return [*first, *(i for i in range(len(constants)) if i not in first)]
