"""Operations that a kernel's compiler may do faster: reciprocal, approximate tanh.

In JAX: `pallas/primitives.py`, `reciprocal`; `pallas/triton/primitives.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, shaping
from minijax.core.language import get_aval
from minijax.core.rules import elementwise_batch, standard_primitive

reciprocal_p = standard_primitive(
    "reciprocal",
    lambda x, **_: x.shape,
    lambda x, **_: x.dtype,
    meaning=lambda x, approx, full_range: np.reciprocal(x),
)
reciprocal_p.batch = elementwise_batch(reciprocal_p)
reciprocal_p.without("jvp", "JAX has none: write 1 / x where a derivative is needed")
reciprocal_p.without("transpose", "1 / x is not linear in x")


@reciprocal_p.def_lowering
def _reciprocal_lowering(ctx, x, *, approx, full_range) -> Any:
    return ctx.lower_fun(_reciprocal, x, approx=approx)


def _reciprocal(x: Any, *, approx: bool) -> Any:
    """1 / x; `approx` with the precision of bfloat16, as a TPU has it."""
    if not approx:
        return elementwise.div(shaping.filled_like(x, 1), x)
    rounded = shaping.convert_element_type(x, dtypes.bfloat16)
    result = elementwise.div(shaping.filled_like(rounded, 1), rounded)
    return shaping.convert_element_type(result, x.dtype)


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """1 / x.

    Args:
      x: an array of floats.
      approx: a rough answer will do; on a CPU it is that of bfloat16.
      full_range: whether very small and very large numbers must be right.
    """
    dtype = get_aval(x).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"pl.reciprocal takes floats, got {dtype}. Convert first: "
            "`x.astype(jnp.float32)`."
        )
    return reciprocal_p.bind(x, approx=approx, full_range=full_range)
