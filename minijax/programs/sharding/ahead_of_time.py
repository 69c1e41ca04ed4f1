"""`jit(f).lower(...)` over several devices.

In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.backend.build_settings import BuildSettings
from minijax.compile import cross_compiling, stages
from minijax.compile.placing import choose_device
from minijax.core import dispatch, hlo, lowering
from minijax.core.array import Array
from minijax.core.jit import UNSPECIFIED, settings_of
from minijax.programs.sharding.partitioned import (
    annotate,
    in_shardings_of,
    out_shardings_of,
    placed,
)
from minijax.programs.sharding.placement import (
    Placement,
    flat_mesh,
    is_spread,
    mesh_of,
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
        held = leaf._placed if type(leaf) is Array else getattr(leaf, "sharding", None)
        held = held if is_spread(held) else None
        ins.append(held if wanted is UNSPECIFIED else wanted)
    spread = next(filter(is_spread, ins), None)
    place = choose_device(leaves) if spread is None else (None, True)
    if spread is not None:
        devices = spread._internal_device_list
        mesh = mesh_of(*ins) or flat_mesh(devices)
        place = placement_of(devices, tuple(ins), mesh), True
    request = dispatch.CompileRequest(*place, *settings_of(params))
    request = placed(traced.jaxpr, request)
    return request.place, request.committed


@stages.mark_shardings.attach
def mark_shardings(lowered: lowering.Lowered, place: Any) -> BuildSettings:
    """Write the shardings into the lowered program; how it is compiled."""
    if type(place) is not Placement:
        return cross_compiling.ONE_DEVICE
    with lowered.context, hlo.ir.Location.unknown():
        ins = in_shardings_of(lowered, place)
        return annotate(lowered, place, ins, out_shardings_of(lowered, place))
