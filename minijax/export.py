"""Lowered programs to keep and to call without their source. In JAX: `jax.export`."""

from minijax.exporting import exported as _exported
from minijax.exporting import serialization as _serialization
from minijax.exporting.exported import Exported as Exported
from minijax.exporting.exported import export as export
from minijax.exporting.serialization import deserialize as deserialize
from minijax.values.symbolic_scopes import SymbolicScope as SymbolicScope
from minijax.values.symbolic_scopes import symbolic_args_specs as symbolic_args_specs
from minijax.values.symbolic_scopes import symbolic_shape as symbolic_shape
from minijax.values.symbolic_sizes import is_symbolic_dim as is_symbolic_dim

DisabledSafetyCheck = _exported.DisabledSafetyCheck
default_export_platform = _exported.default_export_platform
maximum_supported_calling_convention_version = (
    _exported.maximum_supported_calling_convention_version
)
minimum_supported_calling_convention_version = (
    _exported.minimum_supported_calling_convention_version
)
register_namedtuple_serialization = _serialization.register_namedtuple_serialization
register_pytree_node_serialization = _serialization.register_pytree_node_serialization
