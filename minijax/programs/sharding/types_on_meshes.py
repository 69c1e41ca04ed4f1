"""The sharding in the type of an array on the mesh in use: `typeof(x).sharding`.

The core's types say how a mesh cuts an array that is on one (`ShapedArray.cut`). The
mesh of other values is read here, from the place in the program that asks.

In JAX: `jax/_src/core.py`, `ShapedArray.sharding` and `ManualAxisType`.
"""

from __future__ import annotations

from minijax.core.avals import ShapedArray
from minijax.core.language import eval_trace
from minijax.core.state import state
from minijax.primitives.parallel.variation import words_in
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.support.devices.mesh import AxisType, ManualAxisType, empty_abstract_mesh
from minijax.support.devices.shardings import (
    ManualSharding,
    NamedSharding,
    PartitionSpec,
)


def sharding_of(aval: ShapedArray) -> NamedSharding:
    """How a value of a type is cut, with an entry for each dimension.

    A value on no mesh counts as one on the mesh in use: while a function is traced that
    of `set_mesh`, inside `shard_map` its mesh; outside of them one with Explicit axes.
    Without such a mesh it is an empty one.
    """
    if aval.cut is not None:
        mesh, spec = aval.cut.mesh, aval.cut.spec
    else:
        mesh, spec = get_abstract_mesh(), PartitionSpec()
        if state.trace is eval_trace and mesh.are_all_axes_auto:
            mesh = empty_abstract_mesh
    if state.manual_mesh is not None:
        mesh, manual = state.manual_mesh
        kinds = dict.fromkeys(manual, AxisType.Manual)
        mesh = mesh.abstract_mesh.update_axis_types(kinds)
        # `manual_axis_type_of` has the unreduced and reduced axes.
        spec = PartitionSpec(*([] if mesh.are_all_axes_manual else spec.partitions))
    parts = (*spec.partitions, *(None,) * (aval.ndim - len(spec)))
    return NamedSharding(mesh, spec.update(partitions=parts))


def manual_axis_type_of(aval: ShapedArray) -> ManualAxisType:
    """The mesh axes over which values of a type vary, are unreduced, or reduced."""
    inside = aval.cut if isinstance(aval.cut, ManualSharding) else None
    unreduced, reduced = words_in(inside)
    return ManualAxisType(varying=aval.vma, unreduced=unreduced, reduced=reduced)
