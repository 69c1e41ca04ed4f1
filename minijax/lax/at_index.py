"""Reading and writing at a computed index: the functions of `lax` that JAX jits.

Printed programs show them as `jit[...]` equations. That needs `jit`, so it is added
here; the functions stand beside their primitives, in
`primitives/index/dynamic_slicing.py`.

In JAX: `lax/slicing.py`.
"""

from minijax.compile.jit_api import jit
from minijax.primitives.index import dynamic_slicing

dynamic_index_in_dim = jit(
    dynamic_slicing.dynamic_index_in_dim,
    static_argnames=["axis", "keepdims", "allow_negative_indices"],
)
dynamic_update_index_in_dim = jit(
    dynamic_slicing.dynamic_update_index_in_dim,
    static_argnames=["axis", "allow_negative_indices"],
)
