"""minijax: JAX, small enough to read and built to be watched.

    import minijax
    import minijax.numpy as jnp

    print(minijax.make_jaxpr(minijax.grad(lambda x: jnp.sin(x) * x))(2.0))

The names are JAX's. The core's reading order stands at the top of `minijax/core.py`.
"""

# isort: skip_file
# fmt: off
from minijax import (
    ad, ad_checkpoint, custom_batching, custom_derivatives, debug, errors, experimental,
    flatten_util, lax, memory, nn, numpy, random, ref, sharding, tree, tree_util,
    typing,
)
from minijax.ad_checkpoint import checkpoint, checkpoint_policies, remat
from minijax.api import (
    block_until_ready, clear_caches, copy_to_host_async, device_get, device_put,
    eval_shape, fwd_and_bwd, grad, hessian, jacfwd, jacobian, jacrev, jit, jvp,
    linear_transpose, linearize, make_jaxpr, named_call, value_and_grad, vjp, vmap,
)
from minijax.array import Array, Shard
from minijax.backend.door import xc as _xc
from minijax.backend.platforms import (
    default_backend, device_count, devices, local_device_count, local_devices,
    process_count, process_index, process_indices,
)
from minijax.callback import pure_callback
from minijax.config import (
    check_tracer_leaks, checking_leaks, config, debug_infs, debug_key_reuse, debug_nans,
    default_device, default_matmul_precision, default_prng_impl, disable_jit,
    enable_checks, enable_x64, no_execution, no_tracing, numpy_dtype_promotion,
    numpy_rank_promotion, threefry_partitionable,
)
from minijax.core import ShapeDtypeStruct, ensure_compile_time_eval, typeof
from minijax.custom_backward import custom_vjp
from minijax.custom_forward import custom_jvp
from minijax.custom_gradients import closure_convert, custom_gradient
from minijax.dtypes import float0
from minijax.environment import live_arrays, print_environment_info
from minijax.interpreters.tokens import effects_barrier
from minijax.primitives.mutable_arrays import Ref, empty_ref, free_ref, freeze, new_ref
from minijax.replacement import replace
from minijax.reports import explain_cache_misses, log_compiles
from minijax.source_info import named_scope
# fmt: on

Device = _xc.Device
__version__ = "0.1.0"
