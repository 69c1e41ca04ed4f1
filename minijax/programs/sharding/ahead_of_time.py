"""`jit(f).lower(...)` over several devices.

In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.backend.build_settings import BuildSettings
from minijax.compile import cross_compiling, stages
from minijax.compile.placing import choose_device
from minijax.core import hlo, lowering
from minijax.core.array import Array
from minijax.core.jit import UNSPECIFIED
from minijax.programs.sharding.partitioned import (
    annotate,
    in_shardings_of,
    meshes_in,
    out_shardings_of,
)
from minijax.programs.sharding.placement import (
    Placement,
    agreed,
    context_mesh,
    is_spread,
    placement_of,
)


@stages.place_of.attach
def place_of(traced: stages.Traced) -> tuple[Any, bool]:
    """The devices that the arguments, `jit`'s options or the program name."""
    params = traced._traced.params
    leaves = traced._bound.leaves
    given = params["in_shardings"][len(traced._traced.outer) :]
    ins = []
    for leaf, wanted in zip(leaves, given, strict=True):
        if wanted is not UNSPECIFIED:
            ins.append(wanted)
            continue
        held = leaf._placed if type(leaf) is Array else getattr(leaf, "sharding", None)
        ins.append(held if is_spread(held) else None)
    outs = tuple(None if s is UNSPECIFIED else s for s in params["out_shardings"])
    if any(map(is_spread, [*ins, *outs])):
        avals = [*traced.jaxpr.in_avals, *traced.jaxpr.out_avals]
        devices, mesh = agreed([*ins, *outs], avals)
    else:
        meshes = meshes_in(traced.jaxpr) or [context_mesh()]
        if meshes[0] is None:
            return choose_device(leaves)
        devices, mesh = meshes[0]._internal_device_list, meshes[0]
    outs = tuple(s if is_spread(s) else None for s in outs)
    place = placement_of(devices, tuple(ins), mesh, outs if any(outs) else None)
    return place, True


@stages.mark_shardings.attach
def mark_shardings(lowered: lowering.Lowered, place: Any) -> BuildSettings:
    """Write the shardings into the lowered program; how it is compiled."""
    if type(place) is not Placement:
        return cross_compiling.ONE_DEVICE
    with lowered.context, hlo.ir.Location.unknown():
        ins = in_shardings_of(lowered, place)
        return annotate(lowered, place, ins, out_shardings_of(lowered, place))
