"""map and zip that check lengths, as JAX's tutorials use them. In JAX: `jax.util`."""

from minijax.support.lists import safe_map as safe_map
from minijax.support.lists import safe_zip as safe_zip
