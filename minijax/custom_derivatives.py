"""Functions whose derivative is given by the user.

`custom_forward.py` has `custom_jvp`: the forward rule; the backward one follows by
transposing it. `custom_backward.py` has `custom_vjp`: the two halves of the backward
rule. `custom_gradients.py` has what is built from them.

In JAX: `jax.custom_derivatives`.
"""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.programs.custom.custom_backward import (
    CustomVJPPrimal, custom_vjp, custom_vjp_call_p,
)
from minijax.programs.custom.custom_forward import custom_jvp, custom_jvp_call_p
from minijax.programs.custom.custom_gradients import (
    closure_convert, custom_gradient, linear_call, zero_from_primal,
)
from minijax.values.symbolic_zeros import SymbolicZero
