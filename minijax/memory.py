"""The memories an array can lie in: `device_put(x, memory.Space.Host)`.

In JAX: `jax/memory.py`.
"""

from minijax.support.memory_spaces import MemorySpace as Space

__all__ = ["Space"]
