"""How arrays lie in memory. In JAX: `jax.experimental.layout`."""

from minijax.primitives.shape.layout_constraints import (
    with_layout_constraint as with_layout_constraint,
)
from minijax.support.devices.layouts import Format as Format
from minijax.support.devices.layouts import Layout as Layout
