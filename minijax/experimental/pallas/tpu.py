"""Names for kernels on a TPU. In JAX: `jax.experimental.pallas.tpu`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.kernels.copies import SemaphoreType, async_copy, make_async_copy, sync_copy
from minijax.kernels.core_kernels import create_tensorcore_mesh
from minijax.kernels.interpret_params import (
    InterpretParams, force_tpu_interpret_mode, set_tpu_interpret_mode,
)
from minijax.kernels.interpreter import findings, reset_tpu_interpret_mode_state
from minijax.kernels.memory_spaces import TpuMemorySpace as MemorySpace
from minijax.kernels.pipelines import emit_pipeline
from minijax.kernels.specs import PrefetchScalarGridSpec
from minijax.kernels.tpu_params import (
    CompilerParams, GridDimensionSemantics, SideEffectType,
)
from minijax.kernels.vector_moves import bitcast, load, roll, store

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
