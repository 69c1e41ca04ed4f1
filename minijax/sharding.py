"""Meshes of devices, and how arrays are cut over them. In JAX: `jax.sharding`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.programs.sharding.contexts import (
    get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh,
)
from minijax.programs.sharding.reshard import auto_axes, explicit_axes, reshard
from minijax.programs.sharding.types_on_meshes import ManualAxisType
from minijax.support.devices.shardings import (
    AbstractDevice, AbstractMesh, AxisType, Mesh, NamedSharding, P, PartitionSpec,
    Sharding, SingleDeviceSharding, make_single_device_sharding,
)
