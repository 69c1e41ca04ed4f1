"""Elementwise functions of a kernel on a GPU.

exp, sin and their like are functions of NVIDIA's library libdevice, one for float32 and
one for float64. Shorter floats are computed as float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import arithmetic as elementwise
from minijax.kernels.kernel_arithmetic import one_operation
from minijax.kernels.kernel_rules import RuleContext, kind_of
from minijax.kernels.triton import kernel_context

# Primitives that have a function in libdevice; float32's ends in f.
_NAMES = (
    *("exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "cbrt", "pow"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "floor", "ceil"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "lgamma", "nextafter"),
)
_FUNCTIONS = {name: f"__nv_{name}" for name in _NAMES} | {"erf_inv": "__nv_erfinv"}

kernel_context.rule("abs")(one_operation(float="math.absf", int="math.absi"))


@kernel_context.rule(*_FUNCTIONS)
def _function(ctx: RuleContext, *values: Any, **params: Any) -> Any:
    """A call of libdevice's function."""
    (aval,) = ctx.avals_out
    if kind_of(aval.dtype) != "float":
        raise NotImplementedError(f"{aval.dtype}: convert it to a float by `.astype`.")
    if kind_of(ctx.avals_in[-1].dtype) != "float":
        raise NotImplementedError(
            f"a power of {ctx.avals_in[-1].dtype}; convert it with `.astype`."
        )
    if params.get("accuracy") is not None:
        raise NotImplementedError("accuracy=; leave it out: libdevice has one of each.")
    return _called(_FUNCTIONS[ctx.eqn.primitive.name], ctx.operands(*values), aval)


def _called(name: str, values: Sequence[Any], aval: Any) -> Any:
    """What a function of libdevice gives for floats of a type, in the width it has."""
    arith = dialect("arith")
    wide = aval.dtype.itemsize < 4
    if wide:
        kind = kernel_context.value_type(aval.update(dtype=np.dtype(np.float32)))
        values = [arith.extf(kind, value) for value in values]
    if aval.dtype.itemsize < 8:
        name = f"{name}f"
    kind = values[0].type
    result = dialect("tt").extern_elementwise(kind, values, "", "", name, True)
    return arith.truncf(kernel_context.value_type(aval), result) if wide else result


@kernel_context.rule("round")
def _round(ctx: RuleContext, x: Any, *, rounding_method: Any) -> Any:
    """To the nearest integer; halves to the even one, or away from zero."""
    name = "__nv_rint" if "EVEN" in rounding_method.name else "__nv_round"
    return _called(name, [x], ctx.avals_in[0])


@kernel_context.rule("multiple_of")
def _multiple_of(ctx: RuleContext, x: Any, **_: Any) -> Any:
    """What is a multiple is found out by Triton itself."""
    return x


@kernel_context.rule("reciprocal")
def _reciprocal(ctx: RuleContext, x: Any, **_: Any) -> Any:
    return ctx.lower_fun(lambda x: elementwise.div(1.0, x), x)


@kernel_context.rule("bitcast_convert_type")
def _bitcast(ctx: RuleContext, x: Any, *, new_dtype: Any) -> Any:
    if np.dtype(new_dtype).itemsize != ctx.avals_in[0].dtype.itemsize:
        raise NotImplementedError("a bitcast to another width: do it before.")
    element, shape = kernel_context.element_type(new_dtype), kernel_context.shape_of(x)
    target = kernel_context.tensor_type(shape, element) if shape else element
    return x if x.type == target else dialect("tt").bitcast(target, x)
