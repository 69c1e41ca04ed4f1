"""Names for kernels on a TPU. In JAX: `jax.experimental.pallas.tpu`."""

from minijax.programs.pallas.copies import SemaphoreType as SemaphoreType
from minijax.programs.pallas.copies import async_copy as async_copy
from minijax.programs.pallas.copies import make_async_copy as make_async_copy
from minijax.programs.pallas.copies import sync_copy as sync_copy
from minijax.programs.pallas.core_kernels import (
    create_tensorcore_mesh as create_tensorcore_mesh,
)
from minijax.programs.pallas.interpret_params import (
    InterpretParams as InterpretParams,
)
from minijax.programs.pallas.interpret_params import (
    force_tpu_interpret_mode as force_tpu_interpret_mode,
)
from minijax.programs.pallas.interpret_params import (
    set_tpu_interpret_mode as set_tpu_interpret_mode,
)
from minijax.programs.pallas.interpreter import findings as findings
from minijax.programs.pallas.interpreter import (
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
)
from minijax.programs.pallas.memory_spaces import TpuMemorySpace as MemorySpace
from minijax.programs.pallas.pipelines import emit_pipeline as emit_pipeline
from minijax.programs.pallas.specs import (
    PrefetchScalarGridSpec as PrefetchScalarGridSpec,
)
from minijax.programs.pallas.tpu_params import CompilerParams as CompilerParams
from minijax.programs.pallas.tpu_params import (
    GridDimensionSemantics as GridDimensionSemantics,
)
from minijax.programs.pallas.tpu_params import SideEffectType as SideEffectType
from minijax.programs.pallas.vector_moves import bitcast as bitcast
from minijax.programs.pallas.vector_moves import load as load
from minijax.programs.pallas.vector_moves import roll as roll
from minijax.programs.pallas.vector_moves import store as store

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
