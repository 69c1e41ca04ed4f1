"""What lowering rules are given.

In JAX: `jax.extend.lowering`.
"""

from minijax.core.lowering import LoweringRuleContext as LoweringRuleContext
