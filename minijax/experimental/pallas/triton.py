"""Names for kernels on a GPU. In JAX: `jax.experimental.pallas.triton`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.kernels.gpu_operations import dot, max_contiguous
from minijax.kernels.masked_access import (
    atomic_add, atomic_and, atomic_max, atomic_min, atomic_or, atomic_xchg, atomic_xor,
    load, store,
)
from minijax.kernels.triton_params import CompilerParams
