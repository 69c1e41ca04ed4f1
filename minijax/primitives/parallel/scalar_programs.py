"""Programs on scalars, which XLA puts into an operation: of a reduction, of a scatter.

XLA compiles them into the loop of that operation, in any order and number of calls. So
they can do nothing but compute: what calls Python would end the process when compiled.

In JAX: the checks of effects in the lowering rules of `reduce` and `scatter`.
"""

from __future__ import annotations

from typing import Any

from minijax.core.language import ClosedJaxpr, Jaxpr, jaxprs_in_params
from minijax.core.source_info import NameStack, SourceInfo


def lower_scalars(ctx: Any, closed: ClosedJaxpr, *scalars: Any) -> list[Any]:
    """Lower a program on scalars into the region of an operation.

    NotImplementedError when it has a side effect or calls Python.
    """
    _check_pure(closed.jaxpr, ctx.primitive)
    # Programs that several lines share have no line of their own.
    here = SourceInfo(ctx.module_context.source.traceback, NameStack())
    eqns = [
        eqn if eqn.source_info.traceback else eqn.replace(source_info=here)
        for eqn in closed.jaxpr.eqns
    ]
    closed = closed.replace(jaxpr=closed.jaxpr.replace(eqns=eqns))
    return ctx.lower_jaxpr(closed, *scalars)


def _check_pure(jaxpr: Jaxpr, primitive: Any) -> None:
    for eqn in jaxpr.eqns:
        if eqn.effects or eqn.primitive.name == "pure_callback":
            raise NotImplementedError(
                f"Cannot lower effectful `{primitive}`: its function calls "
                f"`{eqn.primitive}`. Call that on whole arrays, before or after it."
            )
        for inner in jaxprs_in_params(eqn.params):
            _check_pure(inner, primitive)
