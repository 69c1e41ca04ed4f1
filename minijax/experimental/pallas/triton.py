"""Names for kernels on a GPU. In JAX: `jax.experimental.pallas.triton`."""

from minijax.programs.pallas.triton_params import CompilerParams as CompilerParams
