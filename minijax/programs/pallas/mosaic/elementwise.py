"""Elementwise operations of a kernel on a TPU.

Most are one operation of MLIR's dialects `arith` and `math`: one for floats, one for
integers, one for integers without a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import hlo, mosaic
from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.primitives.elementwise import choosing
from minijax.primitives.shape import shaping
from minijax.programs.pallas.mosaic.kernel_context import (
    RuleContext,
    constant,
    filled,
    repeated,
    rule,
    rules,
    value_type,
)
from minijax.support import dtypes


def _kind(dtype: Any) -> str:
    if dtypes.issubdtype(dtype, np.floating):
        return "float"
    if dtypes.issubdtype(dtype, np.signedinteger):
        return "int"
    return "bool" if np.dtype(dtype) == np.dtype(bool) else "uint"


def _operation(name: str) -> Any:
    """The builder of an operation such as `arith.addf`."""
    dialect, operation = name.split(".")
    return getattr(mosaic.dialect(dialect), operation)


def _elementwise(name: str, **operations: str) -> None:
    """The rule of a primitive that is one operation for each kind of dtype."""

    def lower(ctx: RuleContext, *values: Any, **_: Any) -> Any:
        kind = _kind(ctx.avals_in[0].dtype)
        if kind not in operations:
            raise NotImplementedError(f"Mosaic has none for {ctx.avals_in[0].dtype}.")
        return _operation(operations[kind])(*ctx.operands(*values))

    rules[name] = lower


_elementwise("add", float="arith.addf", int="arith.addi", uint="arith.addi")
_elementwise("add_any", float="arith.addf", int="arith.addi", uint="arith.addi")
_elementwise("sub", float="arith.subf", int="arith.subi", uint="arith.subi")
_elementwise("mul", float="arith.mulf", int="arith.muli", uint="arith.muli")
_elementwise("div", float="arith.divf", int="arith.divsi", uint="arith.divui")
_elementwise("rem", float="arith.remf", int="arith.remsi", uint="arith.remui")
_elementwise("max", float="arith.maximumf", int="arith.maxsi", uint="arith.maxui")
_elementwise("min", float="arith.minimumf", int="arith.minsi", uint="arith.minui")
_elementwise("abs", float="math.absf", int="math.absi")
_elementwise("pow", float="math.powf")
_elementwise("exp", float="math.exp")
_elementwise("exp2", float="math.exp2")
_elementwise("log", float="math.log")
_elementwise("log1p", float="math.log1p")
_elementwise("sqrt", float="math.sqrt")
_elementwise("rsqrt", float="math.rsqrt")
_elementwise("tanh", float="math.tanh")
_elementwise("sin", float="math.sin")
_elementwise("cos", float="math.cos")
_elementwise("tan", float="math.tan")
_elementwise("erf", float="math.erf")
_elementwise("floor", float="math.floor")
_elementwise("ceil", float="math.ceil")
_elementwise("and", int="arith.andi", uint="arith.andi", bool="arith.andi")
_elementwise("or", int="arith.ori", uint="arith.ori", bool="arith.ori")
_elementwise("xor", int="arith.xori", uint="arith.xori", bool="arith.xori")
_elementwise("shift_left", int="arith.shli", uint="arith.shli")
_elementwise("shift_right_arithmetic", int="arith.shrsi", uint="arith.shrsi")
_elementwise("shift_right_logical", int="arith.shrui", uint="arith.shrui")


@rule("stop_gradient", "copy", "optimization_barrier")
def _same(ctx: RuleContext, x: Any, **_: Any) -> Any:
    return x


@rule("neg")
def _neg(ctx: RuleContext, x: Any) -> Any:
    (aval,) = ctx.avals_in
    if _kind(aval.dtype) == "float":
        return mosaic.dialect("arith").negf(x)
    return mosaic.dialect("arith").subi(filled(0, aval), x)


@rule("not")
def _not(ctx: RuleContext, x: Any) -> Any:
    return mosaic.dialect("arith").xori(x, filled(-1, ctx.avals_in[0]))


@rule("square")
def _square(ctx: RuleContext, x: Any) -> Any:
    return _times(ctx, x, x)


def _times(ctx: RuleContext, x: Any, y: Any) -> Any:
    is_float = _kind(ctx.avals_in[0].dtype) == "float"
    return _operation("arith.mulf" if is_float else "arith.muli")(x, y)


@rule("integer_pow")
def _integer_pow(ctx: RuleContext, x: Any, *, y: int) -> Any:
    """x multiplied with itself: a product for each bit of the exponent."""
    (aval,) = ctx.avals_in
    result, power, left = None, x, abs(y)
    while left:
        if left & 1:
            result = power if result is None else _times(ctx, result, power)
        left >>= 1
        if left:
            power = _times(ctx, power, power)
    if result is not None and y > 0:
        return result
    one = filled(1, aval)
    return one if result is None else mosaic.dialect("arith").divf(one, result)


@rule("logistic")
def _logistic(ctx: RuleContext, x: Any, **_: Any) -> Any:
    def function(x: Any) -> Any:
        one = shaping.filled_like(x, 1)
        return elementwise.div(
            one, elementwise.add(one, elementwise.exp(elementwise.neg(x)))
        )

    return ctx.lower_fun(function, x)


@rule("sign")
def _sign(ctx: RuleContext, x: Any) -> Any:
    def function(x: Any) -> Any:
        zero, one = shaping.filled_like(x, 0), shaping.filled_like(x, 1)
        negative = choosing.select(elementwise.lt(x, zero), elementwise.neg(one), x)
        return choosing.select(elementwise.gt(x, zero), one, negative)

    if _kind(ctx.avals_in[0].dtype) == "uint":
        raise NotImplementedError("Mosaic has none for unsigned integers.")
    return ctx.lower_fun(function, x)


@rule("reciprocal")
def _reciprocal(ctx: RuleContext, x: Any, *, approx: bool, full_range: bool) -> Any:
    if ctx.avals_in[0].dtype != np.float32:
        raise NotImplementedError("only float32 has a fast reciprocal on a TPU.")
    tpu = mosaic.dialect("tpu")
    return tpu.reciprocal(x, approx=approx, full_range=full_range)


@rule("multiple_of")
def _multiple_of(ctx: RuleContext, x: Any, *, values: tuple[int, ...]) -> Any:
    for value in values:
        x = mosaic.dialect("tpu").assume_multiple(x, value)
    return x


# ----------------------------------------------------------------------------------
# Comparing and choosing
# ----------------------------------------------------------------------------------

# The numbers of predicates in `arith.cmpf` (false for NaN) and in `arith.cmpi` (signed,
# unsigned). Mosaic has no comparison that is true for NaN: `ne` is `eq` negated.
_PREDICATES = {
    "eq": (1, 0, 0),
    "ne": (1, 1, 1),
    "lt": (4, 2, 6),
    "le": (5, 3, 7),
    "gt": (2, 4, 8),
    "ge": (3, 5, 9),
}


@rule(*_PREDICATES)
def _compare(ctx: RuleContext, x: Any, y: Any) -> Any:
    x, y = ctx.operands(x, y)
    return compared(ctx.eqn.primitive.name, ctx.avals_in[0].dtype, x, y, ctx)


def compared(name: str, dtype: Any, x: Any, y: Any, ctx: RuleContext) -> Any:
    """The bools of a comparison of two values of one type."""
    of_floats, of_ints, of_uints = _PREDICATES[name]
    kind = _kind(dtype)
    arith, ir = mosaic.dialect("arith"), hlo.ir
    number = {"float": of_floats, "int": of_ints}.get(kind, of_uints)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    if kind != "float":
        return arith.cmpi(predicate, x, y)
    bools = arith.cmpf(predicate, x, y)
    if name == "ne":
        return arith.xori(bools, filled(-1, ctx.avals_out[0]))
    return bools


@rule("is_finite")
def _is_finite(ctx: RuleContext, x: Any) -> Any:
    """Only infinities and NaN are no number when they are subtracted from themselves"""
    arith, ir = mosaic.dialect("arith"), hlo.ir
    ordered_equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    zero = filled(0, ctx.avals_in[0])
    return arith.cmpf(ordered_equal, arith.subf(x, x), zero)


@rule("select_n")
def _select(ctx: RuleContext, which: Any, *cases: Any) -> Any:
    if len(cases) != 2 or ctx.avals_in[0].dtype != np.dtype(bool):
        raise NotImplementedError(
            "a choice among more than two arrays; write it as several `where`."
        )
    return mosaic.dialect("arith").select(which, cases[1], cases[0])


@rule("clamp")
def _clamp(ctx: RuleContext, low: Any, x: Any, high: Any) -> Any:
    shape = ctx.avals_out[0].shape
    low = repeated(low, ctx.avals_in[0], shape)
    high = repeated(high, ctx.avals_in[2], shape)
    kind = _kind(ctx.avals_in[1].dtype)
    smaller, larger = {
        "float": ("arith.minimumf", "arith.maximumf"),
        "int": ("arith.minsi", "arith.maxsi"),
        "uint": ("arith.minui", "arith.maxui"),
    }[kind]
    return _operation(smaller)(_operation(larger)(x, low), high)


# ----------------------------------------------------------------------------------
# Converting
# ----------------------------------------------------------------------------------


@rule("convert_element_type")
def _convert(ctx: RuleContext, x: Any, *, new_dtype: Any, **_: Any) -> Any:
    (aval,), (result,) = ctx.avals_in, ctx.avals_out
    before, after = _kind(aval.dtype), _kind(new_dtype)
    arith, target = mosaic.dialect("arith"), value_type(result)
    if x.type == target:
        return x
    narrow = _bits(new_dtype) < _bits(aval.dtype)
    if after == "bool":
        return compared("ne", aval.dtype, x, filled(0, aval), ctx)
    if before == "bool" and after == "float":
        x = arith.extui(value_type(aval.update(dtype=np.dtype(np.int32))), x)
        return arith.sitofp(target, x)
    if before == "float" and after == "float":
        return arith.truncf(target, x) if narrow else arith.extf(target, x)
    if before == "float":
        return (arith.fptosi if after == "int" else arith.fptoui)(target, x)
    if after == "float":
        return (arith.sitofp if before == "int" else arith.uitofp)(target, x)
    if narrow:
        return arith.trunci(target, x)
    return (arith.extsi if before == "int" else arith.extui)(target, x)


def _bits(dtype: Any) -> int:
    dtype = np.dtype(dtype)
    return 1 if dtype == np.dtype(bool) else dtype.itemsize * 8


@rule("bitcast_convert_type")
def _bitcast(ctx: RuleContext, x: Any, *, new_dtype: Any) -> Any:
    if np.dtype(new_dtype).itemsize != ctx.avals_in[0].dtype.itemsize:
        raise NotImplementedError("a bitcast to a dtype of another width.")
    target = value_type(ctx.avals_out[0])
    if x.type == target:
        return x
    module = "tpu" if ctx.avals_in[0].shape else "arith"
    return mosaic.dialect(module).bitcast(target, x)


@rule("program_id")
def _program_id(ctx: RuleContext, *, axis: int) -> Any:
    return ctx.kernel.indices[axis]


@rule("axis_index")
def _axis_index(ctx: RuleContext, *, axis_name: Any) -> Any:
    if axis_name not in ctx.kernel.names:
        raise NotImplementedError(f"the axis {axis_name!r}, which is not the grid's.")
    return ctx.kernel.indices[ctx.kernel.names.index(axis_name)]


@rule("num_programs")
def _num_programs(ctx: RuleContext, *, axis: int) -> Any:
    return constant(ctx.kernel.sizes[axis], np.int32)
