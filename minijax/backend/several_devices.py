"""How a program for several devices is compiled.

In JAX: `jax/_src/compiler.py`, `get_compile_options`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from minijax.backend.compiler import CompileSettings
from minijax.backend.door import xc


@dataclasses.dataclass(frozen=True)
class PartitionedSettings(CompileSettings):
    """How a program is compiled for several devices.

    Attributes:
      num_partitions: how many devices share the program's arrays.
      num_replicas: how many copies of that run side by side (pmap; otherwise 1).
      device_ids: the ids of the devices, `num_replicas * num_partitions` of them, in
        the order in which the program numbers them; None takes the device list's.
      propagate_to_outputs: for each output, whether the compiler chooses its sharding.
      propagate_to_parameters: for each argument, whether the compiler chooses its
        sharding.
    """

    num_partitions: int = 1
    num_replicas: int = 1
    device_ids: tuple[int, ...] | None = None
    propagate_to_outputs: tuple[bool, ...] | None = None
    propagate_to_parameters: tuple[bool, ...] | None = None

    num_devices = property(lambda self: self.num_replicas * self.num_partitions)

    def make_options(self, devices: Any) -> tuple[Any, dict[str, Any]]:
        """jaxlib's options for these settings, and apart from them the XLA flags."""
        options, flags = super().make_options(devices)
        options.num_replicas = self.num_replicas
        options.num_partitions = self.num_partitions
        ids = self.device_ids
        if ids is None:
            ids = tuple(device.id for device in devices)
        assignment = np.asarray(ids, dtype=np.int64).reshape(
            self.num_replicas, self.num_partitions
        )
        options.device_assignment = xc.DeviceAssignment.create(assignment)
        build = options.executable_build_options
        if self.propagate_to_outputs is not None:
            build.allow_spmd_sharding_propagation_to_output = [
                *self.propagate_to_outputs
            ]
        if self.propagate_to_parameters is not None:
            build.allow_spmd_sharding_propagation_to_parameters = [
                *self.propagate_to_parameters
            ]
        return options, flags
