"""minijax: JAX, small enough to read and built to be watched.

    import minijax
    import minijax.numpy as jnp

    print(minijax.make_jaxpr(minijax.grad(lambda x: jnp.sin(x) * x))(2.0))

The names are JAX's. The reading order of the core stands at the top of
`minijax/core/language.py`.
"""

# isort: skip_file
# ruff: noqa: E402
# fmt: off
import gc as _gc
import typing as _typing

# Importing makes much and no garbage: the collector waits until all is there.
_collects = _gc.isenabled()
_gc.disable()
try:
    # First: what the environment says of the flags holds while the rest is imported.
    from minijax.support.config import (
        allow_f16_reductions, auto_pcast, check_tracer_leaks, checking_leaks, config,
        debug_infs, debug_key_reuse, debug_nans, default_device,
        default_matmul_precision, default_prng_impl, disable_jit, enable_checks,
        enable_custom_prng, enable_x64, legacy_prng_key, no_execution, no_tracing,
        numpy_dtype_promotion, numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type, softmax_custom_jvp, threefry_partitionable,
    )
    from minijax import assembly as _assembly
    from minijax import core, numpy
finally:
    if _collects and not _gc.get_freeze_count():
        # All of it stays: to the oldest generation, without a search for garbage.
        _gc.freeze()
        _gc.unfreeze()
    if _collects:
        _gc.enable()
if _typing.TYPE_CHECKING:
    from minijax import (
        ad, ad_checkpoint, api_util, custom_batching, custom_derivatives, debug,
        distributed, dlpack, dtypes, errors, experimental, export, ffi, flatten_util,
        image, interpreters, lax, memory, monitoring, nn, ops, profiler, random, ref,
        scipy, sharding, stages, tree, tree_util, typing, util,
    )
from minijax.programs.sharding.reshard import reshard
from minijax.programs.sharding.contexts import set_mesh
from minijax.support.devices.mesh import make_mesh
from minijax.support.devices.partition_spec import P
from minijax.support.devices.shardings import NamedSharding
from minijax.compile.jit_api import (
    clear_caches, eval_shape, fwd_and_bwd, jit, make_jaxpr, named_call,
)
from minijax.core.array import Array
from minijax.values.array_places import Shard
from minijax.compile.transfer_guards import (
    transfer_guard, transfer_guard_device_to_device, transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from minijax.compile.array_transfers import (
    block_until_ready, copy_to_host_async, device_get, device_put,
)
from minijax.core.api import grad, value_and_grad
from minijax.transforms.differentiation import jvp, linear_transpose, linearize, vjp
from minijax.transforms.vectorization import vmap
from minijax.core.runtime import xc as _xc
from minijax.core.runtime import devices
from minijax.backend.processes import (
    default_backend, device_count, local_device_count, local_devices, process_count,
    process_index, process_indices,
)
from minijax.core.language import ensure_compile_time_eval, typeof
from minijax.values.ref_avals import ShapeDtypeStruct
from minijax.programs.custom.custom_backward import custom_vjp
from minijax.programs.custom.custom_forward import custom_jvp
from minijax.core.dtypes import float0
from minijax.programs.debugging.environment import live_arrays, print_environment_info
from minijax.compile.tokens import effects_barrier
from minijax.primitives.refs.mutable_arrays import (
    Ref, empty_ref, free_ref, freeze, new_ref,
)
from minijax.transforms.replacement import replace
from minijax.programs.debugging.reports import explain_cache_misses, log_compiles
from minijax.support.late_names import late_names as _late_names
from minijax.support.user_source import named_scope
from minijax.support.version import __version__, __version_info__
from minijax.jax_names.aliases import as_jax
# fmt: on

Device = _xc.Device

# Imported on first use: few programs need all of them. First modules, then functions.
__getattr__, __dir__, __all__ = _late_names(
    globals(),
    "ad ad_checkpoint api_util custom_batching custom_derivatives debug distributed"
    " dlpack dtypes errors experimental export ffi flatten_util image interpreters lax"
    " memory monitoring nn ops profiler random ref scipy sharding stages tree tree_util"
    " typing util",
    {
        ".primitives.index.indexers": "ds",
        ".programs.callbacks.callback": "pure_callback",
        ".programs.checkpointing": "checkpoint checkpoint_policies remat",
        ".programs.custom.custom_gradients": "closure_convert custom_gradient",
        ".programs.shard_map.mapping": "shard_map smap",
        ".programs.shard_map.parallel_map": "pmap",
        ".programs.sharding.making": (
            "make_array_from_callback make_array_from_process_local_data "
            "make_array_from_single_device_arrays"
        ),
        ".transforms.jacobians": "hessian jacfwd jacobian jacrev",
    },
)
