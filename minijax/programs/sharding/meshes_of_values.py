"""Operations whose operands are on different meshes are refused.

A type says how a value is cut, and not on which mesh one is that nothing cuts. So the
meshes of arguments and constants are followed here through the equations of a program.

In JAX: `core.py`, `check_avals_context_mesh`; `lax/utils.py`,
`_get_abstract_mesh_from_avals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.compile import jit_api
from minijax.core import errors
from minijax.core.jit import Traced
from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from minijax.core.state import state
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.support.devices.shardings import NamedSharding

# Their results are on a mesh that the parameters name.
_PLACING = {"device_put", "reshard", "shard_map", "sharding_constraint"}


def check_meshes(closed: ClosedJaxpr, shardings: Sequence[Any]) -> None:
    """ValueError if arguments that lie so meet on two meshes, or on one not in use.

    Meshes whose axes are all Auto go together.
    """
    if state.abstract_mesh is not None:  # of `auto_axes`, which moves its arguments
        return
    consts = [getattr(const, "_placed", None) for const in closed.consts]
    meshes = list(map(_mesh_of, [*consts, *shardings]))
    several = {*meshes, get_abstract_mesh()} - {None}
    if len(several) > 1 and not all(mesh.are_all_axes_auto for mesh in several):
        _results(closed.jaxpr, meshes)


@jit_api.check_arguments.attach
def check_traced(traced: Traced, leaves: Sequence[Any]) -> None:
    """The same for a function that is only traced, and the arguments it was given."""
    places = [getattr(leaf, "sharding", None) for leaf in leaves]
    check_meshes(traced.closed, [None] * len(traced.outer) + places)


def _mesh_of(sharding: Any) -> Any:
    return sharding.mesh.abstract_mesh if isinstance(sharding, NamedSharding) else None


def _results(jaxpr: Jaxpr, meshes: Sequence[Any]) -> list[Any]:
    """The meshes of a program's results, None for any, given those of its inputs."""
    known: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], meshes))
    for eqn in jaxpr.eqns:
        ins = list(map(known.get, eqn.invars))
        if eqn.primitive.name not in _PLACING and any(ins):
            known.update(zip(eqn.outvars, _through(eqn, ins)))
    return list(map(known.get, jaxpr.outvars))


def _through(eqn: JaxprEqn, ins: list[Any]) -> Sequence[Any]:
    outs = None
    for jaxpr in jaxprs_in_params(eqn.params):
        # The first operands may be an index, or constants of another program.
        inner = jaxpr.constvars + jaxpr.invars
        outs = _results(jaxpr, ([None] * len(inner) + ins)[-len(inner) :])
    return [_one(eqn, ins)] * len(eqn.outvars) if outs is None else outs


def _one(eqn: JaxprEqn, ins: Sequence[Any]) -> Any:
    """The one mesh of all operands, which is the one in use if there is one."""
    used = get_abstract_mesh()
    found = None if used.empty else used
    for mesh, atom in zip(ins, eqn.invars):
        several = {mesh, found} - {None}
        if len(several) > 1 and not all(one.are_all_axes_auto for one in several):
            raise errors.value_error(
                f"Mesh for all inputs should be equal, and the context mesh. "
                f"{eqn.primitive} got one mesh: {found} and another mesh: {mesh} for "
                f"shape {atom.aval.str_short()}. Move the array: "
                "`minijax.device_put(x, NamedSharding(mesh, spec))`."
            )
        found = found or mesh
    return found
