"""Kernels: functions over refs that run for every program of a grid.

    from minijax.experimental import pallas as pl

In JAX: `jax.experimental.pallas`.
"""

# isort: skip_file
# fmt: off
from minijax.kernels.arithmetic import reciprocal
from minijax.kernels.core_kernels import kernel
from minijax.kernels.cost_estimates import estimate_cost
from minijax.kernels.grid_context import num_programs, program_id
from minijax.kernels.in_kernels import (
    align_to, cdiv, debug_print, empty_like, empty_ref_like, loop, multiple_of,
    next_power_of_2, strides_from_shape, when,
)
from minijax.kernels.memory_spaces import MemoryRef, MemorySpace
from minijax.kernels.pallas_call import pallas_call, pallas_call_p
from minijax.kernels.scoped_memory import run_scoped, with_scoped
from minijax.kernels.specs import (
    BlockDim, Blocked, BlockSpec, BoundedSlice, Buffered, CostEstimate, Element,
    GridSpec, Indirect, RevisitMode, Squeezed, no_block_spec, squeezed,
)
from minijax.primitives.index.indexers import Slice, broadcast_to, ds, dslice
from minijax.primitives.shape.broadcasting import empty
from minijax.programs.control_flow.run_state import run_state

ANY = MemorySpace.ANY
HOST = MemorySpace.HOST
