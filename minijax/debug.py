"""Looking on while a program runs: print, callback, log, breakpoint.

The primitives and their rules, and how a program calls Python, are told in
`minijax/debug_callbacks.py` and `minijax/callback.py`.

In JAX: `jax/debug.py`.
"""

from minijax.breakpoints import breakpoint as breakpoint
from minijax.debug_callbacks import DebugEffect as DebugEffect
from minijax.debug_callbacks import OrderedDebugEffect as OrderedDebugEffect
from minijax.debug_callbacks import debug_callback as callback
from minijax.debug_callbacks import debug_log as log
from minijax.debug_callbacks import debug_print as print

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "log",
    "print",
]
