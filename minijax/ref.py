"""`minijax.ref`: arrays that change in place. In JAX: `jax.ref`.

See `primitives/mutable_arrays.py` for what a ref is, `primitives/references.py` for
reads and writes.
"""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.primitives.refs.mutable_arrays import (
    Ref, empty_ref, free_ref, freeze, new_ref,
)
from minijax.primitives.refs.references import ref_addupdate as addupdate
from minijax.primitives.refs.references import ref_get as get
from minijax.primitives.refs.references import ref_set as set
from minijax.primitives.refs.references import ref_swap as swap
from minijax.values.ref_avals import AbstractRef

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
