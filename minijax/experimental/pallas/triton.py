"""Names for kernels on a GPU. In JAX: `jax.experimental.pallas.triton`."""

from minijax.kernels.gpu_operations import dot as dot
from minijax.kernels.gpu_operations import max_contiguous as max_contiguous
from minijax.kernels.masked_access import atomic_add as atomic_add
from minijax.kernels.masked_access import atomic_and as atomic_and
from minijax.kernels.masked_access import atomic_max as atomic_max
from minijax.kernels.masked_access import atomic_min as atomic_min
from minijax.kernels.masked_access import atomic_or as atomic_or
from minijax.kernels.masked_access import atomic_xchg as atomic_xchg
from minijax.kernels.masked_access import atomic_xor as atomic_xor
from minijax.kernels.masked_access import load as load
from minijax.kernels.masked_access import store as store
from minijax.kernels.triton_params import CompilerParams as CompilerParams
