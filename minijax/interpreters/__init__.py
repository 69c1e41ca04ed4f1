"""JAX's interpreters under the names that outside authors know: `jax.interpreters`.

Each module re-exports a room's module and adds JAX's registration tables to it. The
interpreters themselves stand in `transforms/` and `compile/` and know none of this.
"""

from minijax.support.late_names import late_names as _late_names

# Imported on first use, as attributes too: few programs need them.
__getattr__, __dir__, __all__ = _late_names(
    globals(), "ad batching mlir partial_eval", {}
)
