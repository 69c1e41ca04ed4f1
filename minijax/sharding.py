"""Meshes of devices, and how arrays are cut over them. In JAX: `jax.sharding`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.programs.sharding.contexts import (
    get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh,
)
from minijax.programs.sharding.reshard import auto_axes, explicit_axes, reshard
from minijax.support.devices.mesh import ManualAxisType
from minijax.support.devices.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
from minijax.support.devices.partition_spec import P, PartitionSpec
from minijax.support.devices.shardings import (
    NamedSharding, Sharding, SingleDeviceSharding, make_single_device_sharding,
)
