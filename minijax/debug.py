"""Looking on while a program runs: print, callback, log, breakpoint.

The primitives and their rules, and how a program calls Python, are told in
`programs/callbacks/debug_callbacks.py` and `programs/callbacks/callback.py`.

In JAX: `jax/debug.py`.
"""

from minijax.programs.callbacks.debug_callbacks import DebugEffect as DebugEffect
from minijax.programs.callbacks.debug_callbacks import (
    OrderedDebugEffect as OrderedDebugEffect,
)
from minijax.programs.callbacks.debug_callbacks import debug_callback as callback
from minijax.programs.callbacks.debug_callbacks import debug_log as log
from minijax.programs.callbacks.debug_callbacks import debug_print as print
from minijax.programs.debugging.drawn_shardings import (
    inspect_array_sharding as inspect_array_sharding,
)
from minijax.programs.debugging.drawn_shardings import (
    visualize_array_sharding as visualize_array_sharding,
)
from minijax.programs.debugging.drawn_shardings import (
    visualize_sharding as visualize_sharding,
)
from minijax.programs.rare.breakpoints import breakpoint as breakpoint

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
