"""Elementwise operations of a kernel on a TPU that other machines do otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import arithmetic as elementwise
from minijax.core import shaping
from minijax.kernels.kernel_arithmetic import compared, one_operation
from minijax.kernels.kernel_rules import RuleContext
from minijax.kernels.mosaic.kernel_context import filled, rule, value_type
from minijax.primitives.elementwise import rounding, special

rule("abs")(one_operation(float="math.absf", int="math.absi"))
rule("pow")(one_operation(float="math.powf"))
# Primitives that have an operation of the same name.
for _name in (
    *("exp", "exp2", "log", "log1p", "sqrt", "rsqrt", "tanh", "sin", "cos", "tan"),
    *("erf", "floor", "ceil", "atan2"),
):
    rule(_name)(one_operation(float=f"math.{_name}"))
rule("population_count")(one_operation(int="math.ctpop", uint="math.ctpop"))
rule("clz")(one_operation(int="math.ctlz", uint="math.ctlz"))


@rule("round")
def _round(ctx: RuleContext, x: Any, *, rounding_method: Any) -> Any:
    to_even = int(rounding_method) == 1
    return (dialect("math").roundeven if to_even else dialect("math").round)(x)


@rule("eq", "ne", "lt", "le", "gt", "ge")
def _compare(ctx: RuleContext, x: Any, y: Any) -> Any:
    """Mosaic compares numbers only: comparisons of bools become logic."""
    x, y = ctx.operands(x, y)
    name = ctx.eqn.primitive.name
    if ctx.avals_in[0].dtype != np.dtype(bool):
        return compared(name, ctx.avals_in[0].dtype, x, y, ctx)
    arith, true = dialect("arith"), filled(-1, ctx.avals_out[0])
    if name in ("eq", "ne"):
        differ = arith.xori(x, y)
        return differ if name == "ne" else arith.xori(differ, true)
    if name in ("gt", "ge"):
        x, y = y, x
    less = arith.xori(x, true)
    return (arith.andi if name in ("lt", "gt") else arith.ori)(less, y)


# ----------------------------------------------------------------------------------
# Functions that are made of others
# ----------------------------------------------------------------------------------


@rule("erfc")
def _erfc(ctx: RuleContext, x: Any) -> Any:
    """1 - erf(x): right to 1e-7, so that beyond 4 nothing is left of it."""

    def function(x: Any) -> Any:
        return elementwise.sub(shaping.filled_like(x, 1), special.erf(x))

    return ctx.lower_fun(function, x)


@rule("expm1")
def _expm1(ctx: RuleContext, x: Any, **_: Any) -> Any:
    """tanh(x / 2) (exp(x) + 1), which loses nothing near 0; far away exp(x) - 1."""

    def function(x: Any) -> Any:
        one = shaping.filled_like(x, 1)
        power = elementwise.exp(x)
        half = elementwise.mul(x, shaping.filled_like(x, 0.5))
        near = elementwise.mul(elementwise.tanh(half), elementwise.add(power, one))
        is_near = elementwise.lt(rounding.abs(x), one)
        return elementwise.select(is_near, near, elementwise.sub(power, one))

    return ctx.lower_fun(function, x)


@rule("sinh", "cosh")
def _hyperbolic(ctx: RuleContext, x: Any, **_: Any) -> Any:
    """Half of the sum, or of the difference, of exp(x) and exp(-x)."""
    combine = elementwise.sub if ctx.eqn.primitive.name == "sinh" else elementwise.add

    def function(x: Any) -> Any:
        both = combine(elementwise.exp(x), elementwise.exp(elementwise.neg(x)))
        return elementwise.mul(both, shaping.filled_like(x, 0.5))

    return ctx.lower_fun(function, x)


@rule("reciprocal")
def _reciprocal(ctx: RuleContext, x: Any, *, approx: bool, full_range: bool) -> Any:
    if ctx.avals_in[0].dtype != np.float32:
        raise NotImplementedError("only float32 has a fast reciprocal on a TPU.")
    tpu = dialect("tpu")
    return tpu.reciprocal(x, approx=approx, full_range=full_range)


@rule("multiple_of")
def _multiple_of(ctx: RuleContext, x: Any, *, values: tuple[int, ...]) -> Any:
    for value in values:
        x = dialect("tpu").assume_multiple(x, value)
    return x


@rule("bitcast_convert_type")
def _bitcast(ctx: RuleContext, x: Any, *, new_dtype: Any) -> Any:
    if np.dtype(new_dtype).itemsize != ctx.avals_in[0].dtype.itemsize:
        raise NotImplementedError("a bitcast to another width: do it before.")
    target = value_type(ctx.avals_out[0])
    if x.type == target:
        return x
    module = "tpu" if ctx.avals_in[0].shape else "arith"
    return dialect(module).bitcast(target, x)
