"""All primitives, `sin_p` and the others, each under JAX's name for it.

In JAX: `jax.extend.core.primitives`.
"""

from __future__ import annotations

from minijax.core.language import Primitive, all_primitives

# `minijax` loads these on first use; here their primitives are among all.
from minijax.exporting import exported  # noqa: F401
from minijax.programs import checkpointing  # noqa: F401
from minijax.programs.callbacks import debug_callbacks, foreign_calls  # noqa: F401
from minijax.programs.custom import custom_vmap_rule  # noqa: F401
from minijax.programs.rare import composites, scaled_products  # noqa: F401
from minijax.programs.shard_map import mapping  # noqa: F401
from minijax.random import gamma_sampling  # noqa: F401

# Those whose name in Python is not the name in a program with `_p` behind it.
add_jaxvals_p = all_primitives["add_any"]
linear_solve_p = all_primitives["custom_linear_solve"]
remat_p = all_primitives["remat2"]


def __getattr__(name: str) -> Primitive:
    """Any primitive of minijax by its name in programs."""
    text = name.removesuffix("_p")
    primitive = all_primitives.get(text) or all_primitives.get(text.replace("_", "-"))
    if primitive is None or not name.endswith("_p"):
        raise AttributeError(f"module {__name__!r} has no primitive {name!r}")
    return primitive


def __dir__() -> list[str]:
    return sorted({*globals(), *(f"{name}_p" for name in all_primitives)})
