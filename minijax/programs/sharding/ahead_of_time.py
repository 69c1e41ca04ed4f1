"""`jit(f).lower(...)` over several devices.

In JAX: `jax/_src/stages.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend.build_settings import BuildSettings
from minijax.compile import cross_compiling, stages
from minijax.compile.placing import choose_device
from minijax.core import dispatch, hlo, lowering
from minijax.core.array import Array
from minijax.core.jit import UNSPECIFIED, settings_of
from minijax.core.state import state
from minijax.programs.sharding.jit_shardings import check_layout, check_place
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
    lie_on_several,
    mesh_of,
    placement_of,
)
from minijax.support.devices.layouts import unusual, with_layout
from minijax.support.devices.shardings import Mesh


@stages.place_of.attach
def place_of(traced: stages.Traced) -> tuple[Any, bool]:
    """The devices that the arguments, `jit`'s options or the program name."""
    params = traced._traced.params
    leaves = traced._bound.leaves
    given = params["in_shardings"][len(traced._traced.outer) :]
    ins = []
    apart = lie_on_several(leaves)
    moving = getattr(traced._options, "device", None) is not None
    layouts = params["in_layouts"][len(traced._traced.outer) :]
    for leaf, wanted, asked in zip(leaves, given, layouts, strict=True):
        held = getattr(leaf, "sharding", None)
        here = apart and type(leaf) is Array and leaf.committed
        lies = unusual(check_layout(leaf, asked))
        apart = apart or lies is not None
        held = held if here or is_spread(held) or lies else None
        if wanted is not UNSPECIFIED and not moving:
            check_place(leaf, wanted)
        held = held if wanted is UNSPECIFIED else wanted
        ins.append(with_layout(held, lies) if lies else held)
    settings = settings_of(params)
    outs = settings[-2]
    spread = list(filter(None if apart else is_spread, ins))
    spread += filter(is_spread, outs or ())
    own = [one for one in spread if one._internal_device_list is not None]
    if spread and not own and state.mesh is None:
        given = outs and tuple(one if is_spread(one) else None for one in outs)
        return placement_of(None, tuple(ins), spread[0].mesh, given), True
    if apart or any(map(is_spread, ins)) and own:
        devices = own[0]._internal_device_list
        mesh = mesh_of(*ins) or flat_mesh(devices)
        place = placement_of(devices, tuple(ins), mesh), True
    else:
        free = [leaf for leaf, one in zip(leaves, given) if one is UNSPECIFIED]
        named = [] if moving else [one for one in given if one is not UNSPECIFIED]
        place = (*named[0].device_set, True) if named else choose_device(free)
    request = dispatch.CompileRequest(*place, *settings)
    request = placed(traced.jaxpr, request)
    return request.place, request.committed


@stages.place_on.attach
def place_on(place: Any, devices: Any) -> Any:
    """The place of a program that is compiled for `devices`; None: for its own.

    Raises ValueError for another number of devices than the program was lowered for,
    and RuntimeError for None if it names an abstract mesh only.
    """
    several = type(place) is Placement
    count = place.mesh.size if several else 1
    if devices is None and not (several and place.devices is None):
        return place
    if not isinstance(devices, (tuple, list)) or len(devices) != count:
        kind = RuntimeError if devices is None else ValueError
        raise kind(
            f"device_assignment is a tuple of the devices to compile for, {count} of "
            f"them, got {devices!r}. Take them from minijax.devices()."
        )
    if not several:
        return devices[0]
    old = place.mesh
    grid = np.array(devices, dtype=object).reshape(old.axis_sizes)
    mesh = Mesh(grid, old.axis_names, old.axis_types)
    given = (place.in_shardings, place.out_shardings or ())
    ins, outs = [tuple(one and one.update(mesh=mesh) for one in each) for each in given]
    return placement_of(mesh._internal_device_list, ins, mesh, outs or None)


@stages.mark_shardings.attach
def mark_shardings(lowered: lowering.Lowered, place: Any) -> BuildSettings:
    """Write the shardings into the lowered program; how it is compiled."""
    if type(place) is not Placement:
        return cross_compiling.ONE_DEVICE
    with lowered.context, hlo.ir.Location.unknown():
        ins = in_shardings_of(lowered, place)
        return annotate(lowered, place, ins, out_shardings_of(lowered, place))
