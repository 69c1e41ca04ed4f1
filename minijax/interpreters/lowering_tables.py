"""Registering lowering rules as in JAX: `mlir.register_lowering`, and what they use.

`interpreters/mlir.py` hands these names on. Nothing of MLIR is loaded before a rule
runs.

In JAX: `interpreters/mlir.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import clients, hlo_parts
from minijax.core import hlo, language
from minijax.core.language import Primitive, get_aval
from minijax.primitives.families import lower_fun

__all__ = [
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "i32_attr",
    "i64_attr",
    "ir",
    "ir_constant",
    "ir_constants",
    "lower_fun",
    "make_ir_context",
    "module_to_bytecode",
    "module_to_string",
    "register_lowering",
]


_PLATFORMS = {"cpu": ["cpu"], "cuda": ["cuda"], "rocm": ["rocm"], "tpu": ["tpu"]}
_PLATFORMS["gpu"] = ["cuda", "rocm"]


def register_lowering(
    prim: Primitive,
    rule: Callable,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Register the lowering of a primitive to StableHLO.

    Args:
      prim: the primitive.
      rule: `(ctx, *operands, **params) -> results`, as values of MLIR; `ctx.avals_in`
        and `ctx.avals_out` are the types.
      platform: "cpu", "cuda", "rocm", "gpu" (both), "tpu"; None for all that have no
        rule of their own.
      inline, cacheable: accepted as in JAX. A rule is always written where it is used;
        no result of a rule is kept.

    Raises:
      NotImplementedError: for a platform that is not known.
    """
    if platform is None:
        prim.lowerings[None] = rule
        return
    if platform not in _PLATFORMS and platform not in clients.factories:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown "
            f"platform {platform}. Known platforms are: {', '.join(_PLATFORMS)}."
        )
    for name in _PLATFORMS.get(platform, [platform]):
        prim.lowerings[name] = rule


class _Mlir:
    """The module `jaxlib.mlir.ir`, loaded when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(hlo.ir, name)

    def __repr__(self) -> str:
        return "<the module of MLIR's types, attributes and operations>"


ir = _Mlir()


def aval_to_ir_type(ctx: Any, aval: language.AbstractValue) -> Any:
    """The MLIR type of values of a type. `ctx`, a ModuleContext, may be None."""
    physical: Any = language.physical_aval(aval)
    return hlo.tensor_type(physical.shape, physical.dtype)


def aval_to_ir_types(ctx: Any, aval: language.AbstractValue) -> tuple:
    """`aval_to_ir_type` in a tuple."""
    return (aval_to_ir_type(ctx, aval),)


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of one element; TypeError for a dtype that MLIR does not know."""
    return hlo.element_type(np.dtype(dtype))


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant of the program; Python numbers get their canonical dtype."""
    dtype = get_aval(val).dtype if aval is None else aval.dtype
    return hlo.constant(np.asarray(val, dtype))


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> tuple:
    """`ir_constant` in a tuple."""
    return (ir_constant(val, aval=aval),)


def dense_int_elements(xs: Any) -> Any:
    """Whole numbers as an attribute `dense<...> : tensor<...xi64>`."""
    return hlo.ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(xs: Sequence[int]) -> Any:
    """Whole numbers as an attribute `array<i64: ...>`."""
    return hlo.int_array(xs)


def i32_attr(i: int) -> Any:
    """A whole number as an attribute of 32 bits."""
    return hlo_parts.int_attribute(i, 32)


def i64_attr(i: int) -> Any:
    """A whole number as an attribute of 64 bits."""
    return hlo_parts.int_attribute(i, 64)


def make_ir_context() -> Any:
    """A fresh context of MLIR with the dialects of StableHLO."""
    return hlo.make_context()


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return hlo.module_to_text(module, locations=bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """The bytes of a module."""
    return hlo.module_to_bytes(module)
