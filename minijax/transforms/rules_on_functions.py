"""Gives the rules of primitives the interpreters that they need.

See `primitives/functions_in_rules.py` for who calls them.
"""

from __future__ import annotations

from minijax.core import autodiff, partial_eval
from minijax.primitives import functions_in_rules

functions_in_rules.trace_function.attach(partial_eval.trace_to_jaxpr)
functions_in_rules.forward_mode.attach(autodiff.jvp)
