"""What lowering rules are given.

In JAX: `jax.extend.lowering`.
"""

from minijax.compile.mlir import LoweringRuleContext as LoweringRuleContext
