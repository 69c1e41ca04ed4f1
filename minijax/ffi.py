"""Calling native functions from compiled programs. In JAX: `jax.ffi`."""

from minijax.backend import foreign_targets as _targets
from minijax.backend.foreign_targets import include_dir as include_dir
from minijax.backend.foreign_targets import pycapsule as pycapsule
from minijax.backend.foreign_targets import register_ffi_target as register_ffi_target
from minijax.backend.foreign_targets import register_ffi_type as register_ffi_type
from minijax.backend.foreign_targets import register_ffi_type_id as register_ffi_type_id
from minijax.programs.callbacks.foreign_calls import (
    build_ffi_lowering_function as build_ffi_lowering_function,
)
from minijax.programs.callbacks.foreign_calls import ffi_call as ffi_call
from minijax.programs.callbacks.foreign_calls import ffi_lowering as ffi_lowering

register_ffi_target_as_batch_partitionable = (
    _targets.register_ffi_target_as_batch_partitionable
)
