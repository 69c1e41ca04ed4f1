"""Names for kernels on a GPU. In JAX: `jax.experimental.pallas.triton`."""

from minijax.programs.pallas.gpu_operations import dot as dot
from minijax.programs.pallas.gpu_operations import max_contiguous as max_contiguous
from minijax.programs.pallas.masked_access import atomic_add as atomic_add
from minijax.programs.pallas.masked_access import atomic_and as atomic_and
from minijax.programs.pallas.masked_access import atomic_max as atomic_max
from minijax.programs.pallas.masked_access import atomic_min as atomic_min
from minijax.programs.pallas.masked_access import atomic_or as atomic_or
from minijax.programs.pallas.masked_access import atomic_xchg as atomic_xchg
from minijax.programs.pallas.masked_access import atomic_xor as atomic_xor
from minijax.programs.pallas.masked_access import load as load
from minijax.programs.pallas.masked_access import store as store
from minijax.programs.pallas.triton_params import CompilerParams as CompilerParams
