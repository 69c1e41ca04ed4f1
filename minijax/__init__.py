"""minijax: JAX, small enough to read and built to be watched.

    import minijax
    import minijax.numpy as jnp

    print(minijax.make_jaxpr(minijax.grad(lambda x: jnp.sin(x) * x))(2.0))

The names are JAX's. The core's reading order stands at the top of `minijax/core.py`.
"""

from minijax import ad as ad
from minijax import ad_checkpoint as ad_checkpoint
from minijax import custom_batching as custom_batching
from minijax import custom_derivatives as custom_derivatives
from minijax import debug as debug
from minijax import errors as errors
from minijax import experimental as experimental
from minijax import flatten_util as flatten_util
from minijax import lax as lax
from minijax import nn as nn
from minijax import numpy as numpy
from minijax import random as random
from minijax import ref as ref
from minijax import sharding as sharding
from minijax import tree as tree
from minijax import tree_util as tree_util
from minijax import typing as typing
from minijax.ad_checkpoint import checkpoint as checkpoint
from minijax.ad_checkpoint import checkpoint_policies as checkpoint_policies
from minijax.ad_checkpoint import remat as remat
from minijax.api import block_until_ready as block_until_ready
from minijax.api import clear_caches as clear_caches
from minijax.api import copy_to_host_async as copy_to_host_async
from minijax.api import device_get as device_get
from minijax.api import device_put as device_put
from minijax.api import eval_shape as eval_shape
from minijax.api import fwd_and_bwd as fwd_and_bwd
from minijax.api import grad as grad
from minijax.api import hessian as hessian
from minijax.api import jacfwd as jacfwd
from minijax.api import jacobian as jacobian
from minijax.api import jacrev as jacrev
from minijax.api import jit as jit
from minijax.api import jvp as jvp
from minijax.api import linear_transpose as linear_transpose
from minijax.api import linearize as linearize
from minijax.api import make_jaxpr as make_jaxpr
from minijax.api import named_call as named_call
from minijax.api import value_and_grad as value_and_grad
from minijax.api import vjp as vjp
from minijax.api import vmap as vmap
from minijax.array import Array as Array
from minijax.array import Shard as Shard
from minijax.backend.door import xc as _xc
from minijax.backend.platforms import default_backend as default_backend
from minijax.backend.platforms import device_count as device_count
from minijax.backend.platforms import devices as devices
from minijax.backend.platforms import local_device_count as local_device_count
from minijax.backend.platforms import local_devices as local_devices
from minijax.backend.platforms import process_count as process_count
from minijax.backend.platforms import process_index as process_index
from minijax.backend.platforms import process_indices as process_indices
from minijax.callback import pure_callback as pure_callback
from minijax.config import check_tracer_leaks as check_tracer_leaks
from minijax.config import checking_leaks as checking_leaks
from minijax.config import config as config
from minijax.config import debug_infs as debug_infs
from minijax.config import debug_key_reuse as debug_key_reuse
from minijax.config import debug_nans as debug_nans
from minijax.config import default_device as default_device
from minijax.config import default_matmul_precision as default_matmul_precision
from minijax.config import default_prng_impl as default_prng_impl
from minijax.config import disable_jit as disable_jit
from minijax.config import enable_checks as enable_checks
from minijax.config import enable_x64 as enable_x64
from minijax.config import no_execution as no_execution
from minijax.config import no_tracing as no_tracing
from minijax.config import numpy_dtype_promotion as numpy_dtype_promotion
from minijax.config import numpy_rank_promotion as numpy_rank_promotion
from minijax.config import threefry_partitionable as threefry_partitionable
from minijax.core import ShapeDtypeStruct as ShapeDtypeStruct
from minijax.core import ensure_compile_time_eval as ensure_compile_time_eval
from minijax.core import typeof as typeof
from minijax.custom_backward import custom_vjp as custom_vjp
from minijax.custom_forward import custom_jvp as custom_jvp
from minijax.custom_gradients import closure_convert as closure_convert
from minijax.custom_gradients import custom_gradient as custom_gradient
from minijax.dtypes import float0 as float0
from minijax.environment import live_arrays as live_arrays
from minijax.environment import print_environment_info as print_environment_info
from minijax.interpreters.tokens import effects_barrier as effects_barrier
from minijax.primitives.mutable_arrays import Ref as Ref
from minijax.primitives.mutable_arrays import empty_ref as empty_ref
from minijax.primitives.mutable_arrays import free_ref as free_ref
from minijax.primitives.mutable_arrays import freeze as freeze
from minijax.primitives.mutable_arrays import new_ref as new_ref
from minijax.replacement import replace as replace
from minijax.reports import explain_cache_misses as explain_cache_misses
from minijax.reports import log_compiles as log_compiles
from minijax.source_info import named_scope as named_scope

Device = _xc.Device
__version__ = "0.1.0"
