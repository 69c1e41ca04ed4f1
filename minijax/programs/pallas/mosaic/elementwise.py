"""Elementwise operations of a kernel on a TPU that other machines do otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.programs.pallas.kernel_arithmetic import one_operation
from minijax.programs.pallas.kernel_rules import RuleContext
from minijax.programs.pallas.mosaic.kernel_context import rule, value_type

rule("abs")(one_operation(float="math.absf", int="math.absi"))
rule("pow")(one_operation(float="math.powf"))
rule("exp")(one_operation(float="math.exp"))
rule("exp2")(one_operation(float="math.exp2"))
rule("log")(one_operation(float="math.log"))
rule("log1p")(one_operation(float="math.log1p"))
rule("sqrt")(one_operation(float="math.sqrt"))
rule("rsqrt")(one_operation(float="math.rsqrt"))
rule("tanh")(one_operation(float="math.tanh"))
rule("sin")(one_operation(float="math.sin"))
rule("cos")(one_operation(float="math.cos"))
rule("tan")(one_operation(float="math.tan"))
rule("erf")(one_operation(float="math.erf"))
rule("floor")(one_operation(float="math.floor"))
rule("ceil")(one_operation(float="math.ceil"))


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
        raise NotImplementedError("a bitcast to a dtype of another width.")
    target = value_type(ctx.avals_out[0])
    if x.type == target:
        return x
    module = "tpu" if ctx.avals_in[0].shape else "arith"
    return dialect(module).bitcast(target, x)
