"""Writing equations by hand, and walking over what they contain.

In JAX: `jax/_src/core.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.language import (
    AbstractValue,
    Atom,
    Jaxpr,
    JaxprEqn,
    Primitive,
    Var,
    jaxprs_in_params,
)
from minijax.support import user_source

Effects = frozenset

# What is an array without being minijax's own.
array_types: set[type] = {np.ndarray} | {
    np.dtype(name).type
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
        *("uint64", "float16", "float32", "float64", "complex64", "complex128"),
    )
}


def gensym() -> Callable[[AbstractValue], Var]:
    """A function that makes a new variable of a given type; the printer names it."""
    return Var


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: frozenset | set,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation `outvars = primitive[params] invars`.

    Args:
      invars, outvars: variables (or literals) read, variables bound.
      primitive: the operation.
      params: its parameters.
      effects: what it does beside computing; `no_effects` for nothing.
      source_info: the line it stands for; without it, none.
      ctx: accepted as in JAX; minijax keeps no context in equations.
    """
    source = _unknown_source() if source_info is None else source_info
    return JaxprEqn(
        list(invars), list(outvars), primitive, params, frozenset(effects), source
    )


def _unknown_source() -> Any:
    return user_source.new_source_info()


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that the equations of a program carry, one level down."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype; float0 where there is none."""
    if dtypes.is_extended(primal_dtype):
        return primal_dtype.tangent_dtype
    return primal_dtype if dtypes.has_tangents(primal_dtype) else dtypes.float0


def safe_zip(*sequences: Any) -> list[tuple]:
    """`zip` as a list; ValueError unless all have one length."""
    return list(zip(*map(list, sequences), strict=True))


def safe_map(function: Callable, *sequences: Any) -> list[Any]:
    """`map` as a list; ValueError unless all sequences have one length.

    In JAX: `jax/_src/util.py`, which the lesson on interpreters imports it from.
    """
    return [function(*items) for items in safe_zip(*sequences)]
