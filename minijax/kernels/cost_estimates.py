"""How much a function costs, counted from its jaxpr: for `pallas_call`'s cost_estimate.

A product of two numbers and its sum are two operations. What has no rule (arranging
elements, reductions, comparisons) is free, as in JAX.

In JAX: `pallas/cost_estimate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, ShapedArray
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.kernels.specs import CostEstimate

_FLOPS = frozenset(
    "add mul sub div min max or and xor neg floor ceil round not".split()
)
_TRANSCENDENTALS = frozenset(
    "cos sin tan sinh cosh tanh acos asin atan exp log logistic sqrt".split()
)


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """The cost of a call: operations, transcendental functions, bytes in and out.

    Args:
      fun: a function of arrays.
      *args: arrays, or `ShapeDtypeStruct`, or trees of them.
      **kwargs: passed on as they are.
    """
    leaves, tree = tree_flatten(args)
    avals = [ShapedArray(x.shape, x.dtype) for x in leaves]

    def flat(*values: Any) -> list[Any]:
        return tree_leaves(fun(*tree_unflatten(tree, values), **kwargs))

    jaxpr, _ = trace_to_jaxpr(flat, avals)
    flops, transcendentals = _count(jaxpr)
    results: list[Any] = [v.aval for v in jaxpr.outvars]
    moved = sum(math.prod(a.shape) * a.dtype.itemsize for a in [*avals, *results])
    return CostEstimate(flops, transcendentals, moved)


def _count(jaxpr: Jaxpr) -> tuple[int, int]:
    """(operations, transcendental functions) of a program."""
    pairs = [_count_eqn(eqn) for eqn in jaxpr.eqns]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _count_eqn(eqn: JaxprEqn) -> tuple[int, int]:
    name = eqn.primitive.name
    if name in ("jit", "custom_vjp_call"):
        closed = eqn.params["jaxpr" if name == "jit" else "call_jaxpr"]
        return _count(closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed)
    if name == "dot_general":
        return _products(eqn), 0
    aval: Any = eqn.outvars[0].aval if eqn.outvars else None
    if name == "integer_pow":
        return math.prod(aval.shape) * _multiplications(eqn.params["y"]), 0
    if name in _FLOPS:
        return math.prod(aval.shape), 0
    return 0, math.prod(aval.shape) if name in _TRANSCENDENTALS else 0


def _multiplications(power: int) -> int:
    """How many products repeated squaring takes."""
    power = abs(power)
    return power.bit_length() - 1 + power.bit_count() if power > 1 else 0


def _products(eqn: JaxprEqn) -> int:
    """Two for each product of numbers: all axes of the left, the right's own ones."""
    (_, y_contracting), (_, y_batch) = eqn.params["dimension_numbers"]
    x, y = (v.aval.shape for v in eqn.invars)  # type: ignore[attr-defined]
    own = [n for axis, n in enumerate(y) if axis not in (*y_contracting, *y_batch)]
    return 2 * math.prod(x) * math.prod(own)
