"""Lowered programs to keep and to call without their source. In JAX: `jax.export`."""

from minijax.exporting import exported as _exported
from minijax.exporting import serialization as _serialization

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.exporting.exported import Exported, export
from minijax.exporting.serialization import deserialize
from minijax.values.symbolic_scopes import (
    SymbolicScope, symbolic_args_specs, symbolic_shape,
)
from minijax.values.symbolic_sizes import is_symbolic_dim

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
