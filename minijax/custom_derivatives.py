"""Functions whose derivative is given by the user.

`custom_forward.py` has `custom_jvp`: the forward rule; the backward one follows by
transposing it. `custom_backward.py` has `custom_vjp`: the two halves of the backward
rule. `custom_gradients.py` has what is built from them.

In JAX: `jax.custom_derivatives`.
"""

from minijax.language.symbolic_zeros import SymbolicZero
from minijax.programs.custom.custom_backward import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_call_p,
)
from minijax.programs.custom.custom_forward import custom_jvp, custom_jvp_call_p
from minijax.programs.custom.custom_gradients import (
    closure_convert,
    custom_gradient,
    linear_call,
    zero_from_primal,
)

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "linear_call",
    "zero_from_primal",
]
