"""Operations whose operands are on different meshes are refused.

A type says how a value is cut, and not on which mesh one is that nothing cuts. So the
meshes of arguments and constants are followed here through the equations of a program.

In JAX: `core.py`, `check_avals_context_mesh`; `lax/utils.py`,
`_get_abstract_mesh_from_avals`; the sharding rules of `select_n` and `concatenate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.compile import jit_api
from minijax.core import errors, source_info
from minijax.core.jit import Traced
from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from minijax.core.state import state
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.programs.sharding.cuts import CARRYING, cut_of, fail, told
from minijax.support.devices.shardings import NamedSharding

# Their results are on a mesh that the parameters name.
_PLACING = {"device_put", "reshard", "shard_map", "sharding_constraint"}
# What they put together must be cut alike.
_ALIKE = {"select_n", "concatenate", "stack"}


def check_meshes(closed: ClosedJaxpr, shardings: Sequence[Any]) -> Sequence[Any]:
    """The meshes of a program's results, None for any, given how its arguments lie.

    Where no axis is Explicit all of them are None.

    Raises:
      ValueError: for arguments that meet on two meshes, or on one that is not in use.
      ShardingTypeError: for `select_n`, `concatenate` and `stack` of operands of one
        mesh that are not cut alike.
    """
    consts = [getattr(const, "_placed", None) for const in closed.consts]
    meshes = list(map(_mesh_of, [*consts, *shardings]))
    several = {*meshes, get_abstract_mesh()} - {None}
    explicit = any(mesh._any_axis_explicit for mesh in several)
    if explicit and state.abstract_mesh is None:  # `auto_axes` moves its arguments
        return _results(closed.jaxpr, meshes)
    return [None] * len(closed.jaxpr.outvars)


@jit_api.meshes_of_results.attach
def meshes_of_results(traced: Traced, leaves: Sequence[Any]) -> Sequence[Any]:
    """The same for a function that is only traced, and the arguments it was given."""
    places = [getattr(leaf, "sharding", None) for leaf in leaves]
    return check_meshes(traced.closed, [None] * len(traced.outer) + places)


def _mesh_of(sharding: Any) -> Any:
    return sharding.mesh.abstract_mesh if isinstance(sharding, NamedSharding) else None


def _results(jaxpr: Jaxpr, meshes: Sequence[Any]) -> list[Any]:
    """The meshes of a program's results, None for any, given those of its inputs."""
    known: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], meshes))
    for eqn in jaxpr.eqns:
        if eqn.primitive.name not in _PLACING:
            ins = list(map(known.get, eqn.invars))
            if any(ins):
                known.update(zip(eqn.outvars, _through(eqn, ins)))
    return list(map(known.get, jaxpr.outvars))


def _through(eqn: JaxprEqn, ins: list[Any]) -> Sequence[Any]:
    name, params = eqn.primitive.name, eqn.params
    if name == "while":
        first, others = params["cond_nconsts"], params["body_nconsts"]
        _results(params["cond_jaxpr"].jaxpr, ins[:first] + ins[first + others :])
        return _results(params["body_jaxpr"].jaxpr, ins[first:])
    if name == "broadcast_in_dim" and eqn.invars[0].aval.size == 1:
        return [None]  # may meet values on any mesh
    outs = None
    for jaxpr in jaxprs_in_params(params) if name in CARRYING else ():
        # The first operand may be an index.
        inner = jaxpr.constvars + jaxpr.invars
        outs = _results(jaxpr, ([None] * len(inner) + ins)[-len(inner) :])
    if outs is not None:
        return outs
    mesh = _one(eqn, ins)
    if name in _ALIKE:
        _check_alike(eqn, ins)
    return [mesh] * len(eqn.outvars)


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


def _check_alike(eqn: JaxprEqn, ins: Sequence[Any]) -> None:
    pairs = [(atom.aval, mesh) for atom, mesh in zip(eqn.invars, ins)]
    placed = [aval for aval, mesh in pairs if aval.ndim and (mesh or aval.cut)]
    if len({cut_of(aval) for aval in placed}) > 1:
        with source_info.user_context(eqn.source_info):
            fail(
                f"{eqn.primitive} operands must have the same shardings, got "
                f"{told(placed)}. Reshard them: `minijax.sharding.reshard(x, spec)`."
            )
