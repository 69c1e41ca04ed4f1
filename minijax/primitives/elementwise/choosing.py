"""select_n with integers that number its cases, and of typed random keys.

The block of `select_n_p` in `arithmetic.py` has its rules for booleans. This file
extends two of them: which case an integer means is found by comparing.

In JAX: `lax/lax.py`, `_select_hlo_lowering` and `_select_transpose_rule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import hlo
from minijax.core.arithmetic import (
    eq,
    select,
    select_lowering,
    select_n_p,
    select_transpose,
)
from minijax.core.language import get_aval, physical_aval
from minijax.core.rules import is_linear, scalar_like
from minijax.core.shaping import compare, filled_like


@select_n_p.def_transpose
def _select_transpose(ct, which, *cases) -> list:
    aval = get_aval(which)
    if aval.dtype == np.bool_:
        return select_transpose(ct, which, *cases)
    zeros = filled_like(ct, 0)
    chosen = [
        select(eq(which, scalar_like(aval, i)), ct, zeros) if is_linear(case) else None
        for i, case in enumerate(cases)
    ]
    return [None, *chosen]


@select_n_p.def_lowering
def _select_lowering(ctx, which, *cases) -> Any:
    which_aval = ctx.avals_in[0]
    physical = physical_aval(ctx.avals_out[0])
    if len(cases) == 1:
        return cases[0]
    if physical.ndim != ctx.avals_out[0].ndim:  # typed keys: bits behind each entry
        shape = physical.shape
        dims = range(which_aval.ndim)
        which = ctx.broadcast_in_dim(which, which_aval, shape, dims)
        which_aval = which_aval.update(shape=shape)
    if which_aval.dtype == np.bool_:
        return select_lowering(ctx, which, *cases)

    def choose(offset: int, some: Sequence[Any]) -> Any:
        """Halve the cases: a tree of comparisons."""
        if len(some) == 1:
            return some[0]
        middle = len(some) // 2
        bound = ctx.full_like(offset + middle, which_aval)
        below = compare(which, bound, "LT", which_aval.dtype)
        lower = choose(offset, some[:middle])
        upper = choose(offset + middle, some[middle:])
        return hlo.stablehlo.select(below, lower, upper)

    return choose(0, cases)
