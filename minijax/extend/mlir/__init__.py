"""MLIR as jaxlib has it: the dialects in which lowering rules write.

    from minijax.extend.mlir.dialects import stablehlo
    from minijax.extend.mlir import ir

In JAX: `jax.extend.mlir`.
"""
