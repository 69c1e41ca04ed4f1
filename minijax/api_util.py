"""Flattening of calls, for writers of transformations. In JAX: `jax.api_util`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.core.language import shaped_abstractify
from minijax.support.lists import safe_map
from minijax.transforms.call_flattening import (
    argnums_partial, debug_info, donation_vector, flatten_axes, flatten_fun,
    flatten_fun_nokwargs, rebase_donate_argnums,
)
