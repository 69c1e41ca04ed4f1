"""Kernels: functions over refs that run for every program of a grid.

    from minijax.experimental import pallas as pl

In JAX: `jax.experimental.pallas`.
"""

from minijax.kernels.arithmetic import reciprocal as reciprocal
from minijax.kernels.core_kernels import kernel as kernel
from minijax.kernels.cost_estimates import estimate_cost as estimate_cost
from minijax.kernels.grid_context import num_programs as num_programs
from minijax.kernels.grid_context import program_id as program_id
from minijax.kernels.in_kernels import align_to as align_to
from minijax.kernels.in_kernels import cdiv as cdiv
from minijax.kernels.in_kernels import debug_print as debug_print
from minijax.kernels.in_kernels import empty_like as empty_like
from minijax.kernels.in_kernels import empty_ref_like as empty_ref_like
from minijax.kernels.in_kernels import loop as loop
from minijax.kernels.in_kernels import multiple_of as multiple_of
from minijax.kernels.in_kernels import next_power_of_2 as next_power_of_2
from minijax.kernels.in_kernels import strides_from_shape as strides_from_shape
from minijax.kernels.in_kernels import when as when
from minijax.kernels.memory_spaces import MemoryRef as MemoryRef
from minijax.kernels.memory_spaces import MemorySpace as MemorySpace
from minijax.kernels.pallas_call import pallas_call as pallas_call
from minijax.kernels.pallas_call import pallas_call_p as pallas_call_p
from minijax.kernels.scoped_memory import run_scoped as run_scoped
from minijax.kernels.scoped_memory import with_scoped as with_scoped
from minijax.kernels.specs import BlockDim as BlockDim
from minijax.kernels.specs import Blocked as Blocked
from minijax.kernels.specs import BlockSpec as BlockSpec
from minijax.kernels.specs import BoundedSlice as BoundedSlice
from minijax.kernels.specs import Buffered as Buffered
from minijax.kernels.specs import CostEstimate as CostEstimate
from minijax.kernels.specs import Element as Element
from minijax.kernels.specs import GridSpec as GridSpec
from minijax.kernels.specs import Indirect as Indirect
from minijax.kernels.specs import RevisitMode as RevisitMode
from minijax.kernels.specs import Squeezed as Squeezed
from minijax.kernels.specs import no_block_spec as no_block_spec
from minijax.kernels.specs import squeezed as squeezed
from minijax.primitives.index.indexers import Slice as Slice
from minijax.primitives.index.indexers import broadcast_to as broadcast_to
from minijax.primitives.index.indexers import ds as ds
from minijax.primitives.index.indexers import dslice as dslice
from minijax.primitives.shape.broadcasting import empty as empty
from minijax.programs.control_flow.run_state import run_state as run_state

ANY = MemorySpace.ANY
HOST = MemorySpace.HOST
