"""The effects of callbacks, ordered or not.

In JAX: `jax/_src/callback.py`, `IOEffect` and `OrderedIOEffect`.
"""

from __future__ import annotations

from minijax.core import effects


class IOEffect(effects.Effect):
    """A callback runs, once for each time the program reaches it."""


class OrderedIOEffect(effects.Effect):
    """As `IOEffect`, and callbacks run in the order of the program."""


io_effect = IOEffect()
ordered_io_effect = OrderedIOEffect()

effects.lowerable_effects.add_type(IOEffect, OrderedIOEffect)
effects.control_flow_allowed_effects.add_type(IOEffect, OrderedIOEffect)
effects.ordered_effects.add_type(OrderedIOEffect)
# Ordered effects that a program on several devices may have, too.
shardable_ordered_effects = effects.EffectTypeSet()
shardable_ordered_effects.add_type(OrderedIOEffect)
