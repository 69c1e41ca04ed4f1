"""Flattening of calls, for writers of transformations. In JAX: `jax.api_util`."""

from minijax.core.language import shaped_abstractify as shaped_abstractify
from minijax.support.lists import safe_map as safe_map
from minijax.transforms.call_flattening import argnums_partial as argnums_partial
from minijax.transforms.call_flattening import debug_info as debug_info
from minijax.transforms.call_flattening import donation_vector as donation_vector
from minijax.transforms.call_flattening import flatten_axes as flatten_axes
from minijax.transforms.call_flattening import flatten_fun as flatten_fun
from minijax.transforms.call_flattening import (
    flatten_fun_nokwargs as flatten_fun_nokwargs,
)
from minijax.transforms.call_flattening import (
    rebase_donate_argnums as rebase_donate_argnums,
)
