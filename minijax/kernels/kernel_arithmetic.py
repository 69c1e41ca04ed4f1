"""Arithmetic in a kernel, for every machine.

Most primitives are one operation of MLIR's dialect `arith`: one for floats, one for
integers, one for integers without a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import arithmetic as elementwise
from minijax.core import shaping
from minijax.kernels.kernel_rules import Rule, RuleContext, kind_of, shared


def operation(name: str) -> Any:
    """The builder of an operation such as `arith.addf`."""
    room, _, builder = name.partition(".")
    return getattr(dialect(room), builder)


def one_operation(**operations: str) -> Rule:
    """The rule of a primitive that is one operation for each kind of dtype."""

    def lower(ctx: RuleContext, *values: Any, **_: Any) -> Any:
        dtype = ctx.avals_in[0].dtype
        if (kind := kind_of(dtype)) not in operations:
            raise NotImplementedError(
                f"{ctx.machine.compiler} has no such operation for {dtype}: convert it."
            )
        return operation(operations[kind])(*ctx.operands(*values))

    return lower


add = shared("add", "add_any")(
    one_operation(float="arith.addf", int="arith.addi", uint="arith.addi")
)
shared("sub")(one_operation(float="arith.subf", int="arith.subi", uint="arith.subi"))
shared("mul")(one_operation(float="arith.mulf", int="arith.muli", uint="arith.muli"))
shared("div")(one_operation(float="arith.divf", int="arith.divsi", uint="arith.divui"))
shared("rem")(one_operation(float="arith.remf", int="arith.remsi", uint="arith.remui"))
shared("max")(
    one_operation(float="arith.maximumf", int="arith.maxsi", uint="arith.maxui")
)
shared("min")(
    one_operation(float="arith.minimumf", int="arith.minsi", uint="arith.minui")
)
shared("and")(one_operation(int="arith.andi", uint="arith.andi", bool="arith.andi"))
shared("or")(one_operation(int="arith.ori", uint="arith.ori", bool="arith.ori"))
shared("xor")(one_operation(int="arith.xori", uint="arith.xori", bool="arith.xori"))
shared("shift_left")(one_operation(int="arith.shli", uint="arith.shli"))
shared("shift_right_arithmetic")(one_operation(int="arith.shrsi", uint="arith.shrsi"))
shared("shift_right_logical")(one_operation(int="arith.shrui", uint="arith.shrui"))


@shared("stop_gradient", "copy", "optimization_barrier")
def _same(ctx: RuleContext, x: Any, **_: Any) -> Any:
    return x


@shared("broadcast_to")
def _broadcast_to(ctx: RuleContext, x: Any, *, shape: Any) -> Any:
    return ctx.machine.repeated(x, ctx.avals_in[0], shape)


@shared("neg")
def _neg(ctx: RuleContext, x: Any) -> Any:
    (aval,) = ctx.avals_in
    if kind_of(aval.dtype) == "float":
        return dialect("arith").negf(x)
    return dialect("arith").subi(ctx.machine.filled(0, aval), x)


@shared("not")
def _not(ctx: RuleContext, x: Any) -> Any:
    return dialect("arith").xori(x, ctx.machine.filled(-1, ctx.avals_in[0]))


@shared("square")
def _square(ctx: RuleContext, x: Any) -> Any:
    return _times(ctx, x, x)


def _times(ctx: RuleContext, x: Any, y: Any) -> Any:
    is_float = kind_of(ctx.avals_in[0].dtype) == "float"
    return operation("arith.mulf" if is_float else "arith.muli")(x, y)


@shared("integer_pow")
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
    one = ctx.machine.filled(1, aval)
    return one if result is None else dialect("arith").divf(one, result)


@shared("logistic")
def _logistic(ctx: RuleContext, x: Any, **_: Any) -> Any:
    def function(x: Any) -> Any:
        one = shaping.filled_like(x, 1)
        return elementwise.div(
            one, elementwise.add(one, elementwise.exp(elementwise.neg(x)))
        )

    return ctx.lower_fun(function, x)


@shared("sign")
def _sign(ctx: RuleContext, x: Any) -> Any:
    def function(x: Any) -> Any:
        zero, one = shaping.filled_like(x, 0), shaping.filled_like(x, 1)
        negative = elementwise.select(elementwise.lt(x, zero), elementwise.neg(one), x)
        return elementwise.select(elementwise.gt(x, zero), one, negative)

    if kind_of(ctx.avals_in[0].dtype) == "uint":
        raise NotImplementedError("unsigned integers: use `(x > 0).astype(x.dtype)`.")
    return ctx.lower_fun(function, x)


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


@shared(*_PREDICATES)
def _compare(ctx: RuleContext, x: Any, y: Any) -> Any:
    x, y = ctx.operands(x, y)
    return compared(ctx.eqn.primitive.name, ctx.avals_in[0].dtype, x, y, ctx)


def compared(name: str, dtype: Any, x: Any, y: Any, ctx: RuleContext) -> Any:
    """The bools of a comparison of two values of one type."""
    of_floats, of_ints, of_uints = _PREDICATES[name]
    kind = kind_of(dtype)
    arith = dialect("arith")
    if kind != "float":
        return arith.cmpi(of_ints if kind == "int" else of_uints, x, y)
    bools = arith.cmpf(of_floats, x, y)
    if name == "ne":
        return arith.xori(bools, ctx.machine.filled(-1, ctx.avals_out[0]))
    return bools


@shared("is_finite")
def _is_finite(ctx: RuleContext, x: Any) -> Any:
    """Only infinities and NaN are no number when they are subtracted from themselves"""
    arith, zero = dialect("arith"), ctx.machine.filled(0, ctx.avals_in[0])
    return arith.cmpf(arith.CmpFPredicate.OEQ, arith.subf(x, x), zero)


@shared("select_n")
def _select(ctx: RuleContext, which: Any, *cases: Any) -> Any:
    if len(cases) != 2 or ctx.avals_in[0].dtype != np.dtype(bool):
        raise NotImplementedError(
            "a choice among more than two arrays; write it as several `where`."
        )
    return dialect("arith").select(which, cases[1], cases[0])


@shared("clamp")
def _clamp(ctx: RuleContext, low: Any, x: Any, high: Any) -> Any:
    shape = ctx.avals_out[0].shape
    low = ctx.machine.repeated(low, ctx.avals_in[0], shape)
    high = ctx.machine.repeated(high, ctx.avals_in[2], shape)
    kind = kind_of(ctx.avals_in[1].dtype)
    smaller, larger = {
        "float": ("arith.minimumf", "arith.maximumf"),
        "int": ("arith.minsi", "arith.maxsi"),
        "uint": ("arith.minui", "arith.maxui"),
    }[kind]
    return operation(smaller)(operation(larger)(x, low), high)


# ----------------------------------------------------------------------------------
# Converting
# ----------------------------------------------------------------------------------


@shared("convert_element_type")
def _convert(ctx: RuleContext, x: Any, *, new_dtype: Any, **_: Any) -> Any:
    (aval,), (result,) = ctx.avals_in, ctx.avals_out
    before, after = kind_of(aval.dtype), kind_of(new_dtype)
    arith, target = dialect("arith"), ctx.machine.value_type(result)
    if x.type == target:
        return x
    narrow = _bits(new_dtype) < _bits(aval.dtype)
    if after == "bool":
        return compared("ne", aval.dtype, x, ctx.machine.filled(0, aval), ctx)
    if before == "bool" and after == "float":
        x = arith.extui(
            ctx.machine.value_type(aval.update(dtype=np.dtype(np.int32))), x
        )
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


@shared("program_id", "axis_index")
def _program_id(ctx: RuleContext, **params: Any) -> Any:
    index = ctx.kernel.place.index_of(ctx.eqn)
    if index is None:
        axis = params["axis_name"]
        raise NotImplementedError(f"axis {axis!r}, which must be one of the grid's.")
    return index


@shared("num_programs")
def _num_programs(ctx: RuleContext, *, axis: int) -> Any:
    return ctx.machine.constant(ctx.kernel.place.sizes[axis], np.int32)
