"""How arrays lie in memory. In JAX: `jax.experimental.layout`."""

from minijax.primitives.shape import layout_constraints as _layout_constraints
from minijax.support.devices.layouts import Format as Format
from minijax.support.devices.layouts import Layout as Layout

with_layout_constraint = _layout_constraints.with_layout_constraint

__all__ = [
    "Format",
    "Layout",
    "with_layout_constraint",
]
