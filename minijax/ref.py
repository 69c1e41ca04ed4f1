"""`minijax.ref`: arrays that change in place. In JAX: `jax.ref`.

See `primitives/mutable_arrays.py` for what a ref is, `primitives/references.py` for
reads and writes.
"""

from minijax.primitives.refs.mutable_arrays import Ref as Ref
from minijax.primitives.refs.mutable_arrays import empty_ref as empty_ref
from minijax.primitives.refs.mutable_arrays import free_ref as free_ref
from minijax.primitives.refs.mutable_arrays import freeze as freeze
from minijax.primitives.refs.mutable_arrays import new_ref as new_ref
from minijax.primitives.refs.references import ref_addupdate as addupdate
from minijax.primitives.refs.references import ref_get as get
from minijax.primitives.refs.references import ref_set as set
from minijax.primitives.refs.references import ref_swap as swap
from minijax.values.ref_avals import AbstractRef as AbstractRef

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
