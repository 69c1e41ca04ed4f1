"""Functions whose derivative is given by the user.

`custom_forward.py` has `custom_jvp`: the forward rule; the backward one follows by
transposing it. `custom_backward.py` has `custom_vjp`: the two halves of the backward
rule. `custom_gradients.py` has what is built from them.

In JAX: `jax.custom_derivatives`.
"""

from minijax.programs.custom.custom_backward import CustomVJPPrimal as CustomVJPPrimal
from minijax.programs.custom.custom_backward import custom_vjp as custom_vjp
from minijax.programs.custom.custom_backward import (
    custom_vjp_call_p as custom_vjp_call_p,
)
from minijax.programs.custom.custom_forward import custom_jvp as custom_jvp
from minijax.programs.custom.custom_forward import (
    custom_jvp_call_p as custom_jvp_call_p,
)
from minijax.programs.custom.custom_gradients import closure_convert as closure_convert
from minijax.programs.custom.custom_gradients import custom_gradient as custom_gradient
from minijax.programs.custom.custom_gradients import linear_call as linear_call
from minijax.programs.custom.custom_gradients import (
    zero_from_primal as zero_from_primal,
)
from minijax.values.symbolic_zeros import SymbolicZero as SymbolicZero
