"""How arrays lie in memory. In JAX: `jax.experimental.layout`."""

from minijax.support.devices.layouts import Format as Format
from minijax.support.devices.layouts import Layout as Layout

__all__ = [
    "Format",
    "Layout",
]
