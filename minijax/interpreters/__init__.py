"""JAX's interpreters under the names that outside authors know: `jax.interpreters`.

Each module re-exports a room's module and adds JAX's registration tables to it. The
interpreters themselves stand in `transforms/` and `compile/` and know none of this.
"""
