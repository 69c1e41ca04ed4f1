"""Names for kernels on a TPU. In JAX: `jax.experimental.pallas.tpu`."""

from minijax.kernels.copies import SemaphoreType as SemaphoreType
from minijax.kernels.copies import async_copy as async_copy
from minijax.kernels.copies import make_async_copy as make_async_copy
from minijax.kernels.copies import sync_copy as sync_copy
from minijax.kernels.core_kernels import (
    create_tensorcore_mesh as create_tensorcore_mesh,
)
from minijax.kernels.interpret_params import InterpretParams as InterpretParams
from minijax.kernels.interpret_params import (
    force_tpu_interpret_mode as force_tpu_interpret_mode,
)
from minijax.kernels.interpret_params import (
    set_tpu_interpret_mode as set_tpu_interpret_mode,
)
from minijax.kernels.interpreter import findings as findings
from minijax.kernels.interpreter import (
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
)
from minijax.kernels.memory_spaces import TpuMemorySpace as MemorySpace
from minijax.kernels.pipelines import emit_pipeline as emit_pipeline
from minijax.kernels.specs import PrefetchScalarGridSpec as PrefetchScalarGridSpec
from minijax.kernels.tpu_params import CompilerParams as CompilerParams
from minijax.kernels.tpu_params import GridDimensionSemantics as GridDimensionSemantics
from minijax.kernels.tpu_params import SideEffectType as SideEffectType
from minijax.kernels.vector_moves import bitcast as bitcast
from minijax.kernels.vector_moves import load as load
from minijax.kernels.vector_moves import roll as roll
from minijax.kernels.vector_moves import store as store

PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY

CMEM = MemorySpace.CMEM
SMEM = MemorySpace.SMEM
VMEM = MemorySpace.VMEM
VMEM_SHARED = MemorySpace.VMEM_SHARED
HBM = MemorySpace.HBM
SEMAPHORE = MemorySpace.SEMAPHORE
