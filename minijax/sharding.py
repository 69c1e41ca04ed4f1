"""Meshes of devices, and how arrays are cut over them. In JAX: `jax.sharding`."""

from minijax.programs.sharding.contexts import get_abstract_mesh as get_abstract_mesh
from minijax.programs.sharding.contexts import get_mesh as get_mesh
from minijax.programs.sharding.contexts import set_mesh as set_mesh
from minijax.programs.sharding.contexts import use_abstract_mesh as use_abstract_mesh
from minijax.programs.sharding.contexts import use_mesh as use_mesh
from minijax.programs.sharding.reshard import auto_axes as auto_axes
from minijax.programs.sharding.reshard import explicit_axes as explicit_axes
from minijax.programs.sharding.reshard import reshard as reshard
from minijax.programs.sharding.types_on_meshes import ManualAxisType as ManualAxisType
from minijax.support.devices.shardings import AbstractDevice as AbstractDevice
from minijax.support.devices.shardings import AbstractMesh as AbstractMesh
from minijax.support.devices.shardings import AxisType as AxisType
from minijax.support.devices.shardings import Mesh as Mesh
from minijax.support.devices.shardings import NamedSharding as NamedSharding
from minijax.support.devices.shardings import P as P
from minijax.support.devices.shardings import PartitionSpec as PartitionSpec
from minijax.support.devices.shardings import Sharding as Sharding
from minijax.support.devices.shardings import (
    SingleDeviceSharding as SingleDeviceSharding,
)
