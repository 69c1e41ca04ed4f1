"""What lowering rules are given.

In JAX: `jax.extend.lowering`.
"""

from minijax.interpreters.mlir import LoweringRuleContext as LoweringRuleContext
