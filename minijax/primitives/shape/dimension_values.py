"""The value of a symbolic size, as an array: `x.sum() / x.shape[0]`.

In JAX: `jax/_src/export/shape_poly.py`, `dim_as_value_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import dynamic_shapes
from minijax.core.events import add_methods
from minijax.core.language import Primitive, ShapedArray, register
from minijax.core.state import state
from minijax.primitives import families
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.joining import concatenate
from minijax.values.symbolic_sizes import SymbolicSize

dim_as_value_p = register(Primitive("dim_as_value"))
families.without_operands(dim_as_value_p)


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


def shape_as_value(shape: Sequence[Any]) -> Any:
    """The sizes of a shape as a vector of integers; symbolic sizes have values, too."""
    symbolic = any(isinstance(size, SymbolicSize) for size in shape)
    wide = state.enable_x64 if symbolic else max(shape, default=0) >= 2**31
    dtype = np.dtype(np.int64 if wide else np.int32)
    if not symbolic:
        return np.asarray(shape, dtype) if shape else broadcasting.full((0,), 0, dtype)
    sizes = [dim_as_value(n) if isinstance(n, SymbolicSize) else n for n in shape]
    return concatenate([broadcasting.full((1,), n, dtype) for n in sizes], 0)


add_methods(SymbolicSize, {"__jax_array__": dim_as_value})
