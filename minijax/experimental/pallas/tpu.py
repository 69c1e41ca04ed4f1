"""Names for kernels on a TPU. In JAX: `jax.experimental.pallas.tpu`."""

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
from minijax.programs.pallas.specs import (
    PrefetchScalarGridSpec as PrefetchScalarGridSpec,
)
from minijax.programs.pallas.tpu_params import CompilerParams as CompilerParams
from minijax.programs.pallas.tpu_params import (
    GridDimensionSemantics as GridDimensionSemantics,
)
from minijax.programs.pallas.tpu_params import SideEffectType as SideEffectType

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
