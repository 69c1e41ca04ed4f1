"""Values that all processes share. In JAX: `jax.experimental.multihost_utils`."""

from minijax.programs.sharding import multihost as _multihost

assert_equal = _multihost.assert_equal
broadcast_one_to_all = _multihost.broadcast_one_to_all
global_array_to_host_local_array = _multihost.global_array_to_host_local_array
host_local_array_to_global_array = _multihost.host_local_array_to_global_array
process_allgather = _multihost.process_allgather
sync_global_devices = _multihost.sync_global_devices

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]
