"""The value of a symbolic size, as an array: `x.sum() / x.shape[0]`.

In JAX: `jax/_src/export/shape_poly.py`, `dim_as_value_p`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import dynamic_shapes
from minijax.core.events import add_methods
from minijax.core.language import Primitive, ShapedArray, register
from minijax.core.state import state
from minijax.values.symbolic_sizes import SymbolicSize

dim_as_value_p = register(Primitive("dim_as_value"))
for _rule in ("jvp", "transpose", "batch"):
    dim_as_value_p.without(_rule, "it has no operands")


@dim_as_value_p.def_abstract_eval
def _dim_as_value_type(*, dim: SymbolicSize) -> ShapedArray:
    dtype = np.dtype(np.int64 if state.enable_x64 else np.int32)
    return ShapedArray((), dtype, weak_type=True)


@dim_as_value_p.def_impl
def _dim_as_value_now(*, dim: SymbolicSize) -> Any:
    raise NotImplementedError(
        f"Evaluation rule for 'dim_as_value' is not implemented: the symbolic size "
        f"'{dim}' has no value here. Use it in a function that is traced for symbolic "
        "shapes, by `export` or `make_jaxpr`."
    )


@dim_as_value_p.def_lowering
def _dim_as_value_lowering(ctx: Any, *, dim: SymbolicSize) -> Any:
    return dynamic_shapes.scalar(dim, ctx.result_type())


def dim_as_value(dim: Any) -> Any:
    """A size as an integer scalar."""
    return dim_as_value_p.bind(dim=dim)


add_methods(SymbolicSize, {"__jax_array__": dim_as_value})
