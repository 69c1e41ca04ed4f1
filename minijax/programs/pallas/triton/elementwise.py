"""Elementwise functions of a kernel on a GPU.

exp, sin and their like are functions of NVIDIA's library libdevice, one for float32 and
one for float64. Shorter floats are computed as float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.programs.pallas.kernel_arithmetic import one_operation
from minijax.programs.pallas.kernel_rules import RuleContext, kind_of
from minijax.programs.pallas.triton.kernel_context import (
    element_type,
    rule,
    shape_of,
    tensor_type,
    value_type,
)

# The functions of libdevice; float32's end in f.
_FUNCTIONS = {
    **{name: f"__nv_{name}" for name in ("exp", "exp2", "log", "log1p", "expm1")},
    **{name: f"__nv_{name}" for name in ("sqrt", "rsqrt", "cbrt", "pow", "erf")},
    **{name: f"__nv_{name}" for name in ("erfc", "floor", "ceil", "lgamma")},
    **{name: f"__nv_{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: f"__nv_{name}" for name in ("asin", "acos", "atan", "asinh", "acosh")},
    **{name: f"__nv_{name}" for name in ("atanh", "atan2", "nextafter")},
    "erf_inv": "__nv_erfinv",
}

rule("abs")(one_operation(float="math.absf", int="math.absi"))


@rule(*_FUNCTIONS)
def _function(ctx: RuleContext, *values: Any, **params: Any) -> Any:
    """A call of libdevice's function."""
    (aval,) = ctx.avals_out
    if kind_of(aval.dtype) != "float":
        raise NotImplementedError(f"it is there for floats, not for {aval.dtype}.")
    if kind_of(ctx.avals_in[-1].dtype) != "float":
        raise NotImplementedError(
            f"a power of {ctx.avals_in[-1].dtype}; convert it with `.astype`."
        )
    name = _FUNCTIONS[ctx.eqn.primitive.name]
    values = tuple(ctx.operands(*values))
    if aval.dtype.itemsize == 8:
        return _called(name, values)
    arith = dialect("arith")
    if aval.dtype.itemsize == 4:
        return _called(f"{name}f", values)
    wide = value_type(aval.update(dtype=np.dtype(np.float32)))
    result = _called(f"{name}f", [arith.extf(wide, value) for value in values])
    return arith.truncf(value_type(aval), result)


def _called(name: str, values: Any) -> Any:
    return dialect("tt").extern_elementwise(values[0].type, values, "", "", name, True)


@rule("round")
def _round(ctx: RuleContext, x: Any, *, rounding_method: Any) -> Any:
    """To the nearest integer; halves to the even one, or away from zero."""
    even = "EVEN" in str(rounding_method.name)
    (aval,) = ctx.avals_in
    name = "__nv_rint" if even else "__nv_round"
    if aval.dtype.itemsize == 8:
        return _called(name, [x])
    if aval.dtype.itemsize == 4:
        return _called(f"{name}f", [x])
    arith = dialect("arith")
    wide = value_type(aval.update(dtype=np.dtype(np.float32)))
    return arith.truncf(value_type(aval), _called(f"{name}f", [arith.extf(wide, x)]))


@rule("multiple_of")
def _multiple_of(ctx: RuleContext, x: Any, **_: Any) -> Any:
    """What is a multiple is found out by Triton itself."""
    return x


@rule("reciprocal")
def _reciprocal(ctx: RuleContext, x: Any, **_: Any) -> Any:
    return ctx.lower_fun(lambda x: elementwise.div(1.0, x), x)


@rule("bitcast_convert_type")
def _bitcast(ctx: RuleContext, x: Any, *, new_dtype: Any) -> Any:
    if np.dtype(new_dtype).itemsize != ctx.avals_in[0].dtype.itemsize:
        raise NotImplementedError("a bitcast to a dtype of another width.")
    element, shape = element_type(new_dtype), shape_of(x)
    target = tensor_type(shape, element) if shape else element
    if x.type == target:
        return x
    return dialect("tt").bitcast(target, x)
