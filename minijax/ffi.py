"""Calling native functions from compiled programs. In JAX: `jax.ffi`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.backend import foreign_targets as _targets
from minijax.backend.foreign_targets import (
    include_dir, pycapsule, register_ffi_target, register_ffi_type,
    register_ffi_type_id,
)
from minijax.programs.callbacks.foreign_calls import (
    build_ffi_lowering_function, ffi_call, ffi_lowering,
)

register_ffi_target_as_batch_partitionable = (
    _targets.register_ffi_target_as_batch_partitionable
)
