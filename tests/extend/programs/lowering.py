"""Lowering rules that build constants, types and attributes by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import chlo, stablehlo
from jax.interpreters import mlir

results = {}
primitives = {}


def compiled(name, types):
    """A primitive with a type and a lowering rule only, used under jit."""

    def add(rule):
        primitive = Primitive(name)
        primitive.def_abstract_eval(types)
        mlir.register_lowering(primitive, rule)
        primitives[name] = primitive
        return rule

    return add


def same(x, **_):
    return core.ShapedArray(x.shape, x.dtype)


@compiled("plus_constant", same)
def plus_constant(ctx, x, *, number):
    (aval,) = ctx.avals_in
    constant = mlir.ir_constant(np.full(aval.shape, number, aval.dtype))
    return [stablehlo.add(x, constant)]


@compiled("erf_of", same)
def erf_of(ctx, x):
    return [chlo.erf(x)]


@compiled("repeat", lambda x, *, times: core.ShapedArray((times, *x.shape), x.dtype))
def repeat(ctx, x, *, times):
    (aval,) = ctx.avals_out
    out = mlir.aval_to_ir_type(ctx.module_context, aval)
    assert isinstance(out, ir.RankedTensorType)
    dims = mlir.dense_int_array(range(1, len(aval.shape)))
    return [stablehlo.broadcast_in_dim(out, x, dims)]


@compiled("as_ints", lambda x: core.ShapedArray(x.shape, np.dtype("int32")))
def as_ints(ctx, x):
    element = mlir.dtype_to_ir_type(np.dtype("int32"))
    return [stablehlo.convert(ir.RankedTensorType.get(x.type.shape, element), x)]


@compiled("custom_call_name", same)
def by_functions(ctx, x):
    return mlir.lower_fun(lambda a: jnp.tanh(a) * 2.0, multiple_results=False)(ctx, x)


x = jnp.float32([0.5, 1.5, -2.0])


def run(name, **params):
    function = jax.jit(lambda x: primitives[name].bind(x, **params))
    results[name] = function(x)
    try:
        primitives[name].bind(x, **params)
        results[name + " eagerly"] = "computed"
    except Exception as error:
        results[name + " eagerly"] = type(error).__name__


run("plus_constant", number=2.5)
run("erf_of")
run("repeat", times=2)
run("as_ints")
run("custom_call_name")


@compiled("where_am_i", same)
def anywhere(ctx, x):
    return [stablehlo.negate(x)]


mlir.register_lowering(
    primitives["where_am_i"], lambda ctx, x: [stablehlo.abs(x)], platform="cpu"
)
run("where_am_i")
