"""How many operations one program of a kernel does, at most, from its equations."""

from __future__ import annotations

import math
from typing import Any

from minijax.core.language import Jaxpr, JaxprEqn, jaxprs_in_params

# They move values and compute none.
MOVES = {
    "broadcast_in_dim",
    "concatenate",
    "convert_element_type",
    "copy",
    "dma_start",
    "dma_wait",
    "get",
    "iota",
    "masked_load",
    "masked_swap",
    "num_programs",
    "pad",
    "program_id",
    "reshape",
    "select_n",
    "slice",
    "squeeze",
    "swap",
    "transpose",
}


def operations_of(jaxpr: Jaxpr) -> int:
    """Operations on numbers: a multiplication and an addition in `dot_general` are two.

    Of branches the longest counts, of a loop with a known length each turn, of another
    loop one.
    """
    return sum(map(operations_of_equation, jaxpr.eqns))


def operations_of_equation(eqn: JaxprEqn) -> int:
    """The operations of one equation."""
    name = eqn.primitive.name
    inner = [operations_of(jaxpr) for jaxpr in jaxprs_in_params(eqn.params)]
    if name == "cond":
        return max(inner, default=0)
    if inner:
        return sum(inner) * (eqn.params["length"] if name == "scan" else 1)
    if name in MOVES:
        return 0
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        left: Any = eqn.invars[0].aval
        depth = math.prod(left.shape[axis] for axis in contracted)
        return 2 * depth * elements(eqn.outvars[0])
    if name.startswith(("reduce", "arg", "cum")):
        return elements(eqn.invars[0])
    return sum(map(elements, eqn.outvars))


def elements(atom: Any) -> int:
    """How many elements a value has; 1 if it is not an array."""
    return math.prod(getattr(atom.aval, "shape", ()))
