"""Identities that mean something to a transformation or to the compiler.

`copy` makes a new array, `stop_gradient` ends derivatives, `optimization_barrier` keeps
the compiler from moving operations across it, `dce_sink` keeps a value alive, and
tokens put operations with side effects in an order.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import dtypes, effects, hlo, language, rules, trees
from minijax.core.rules import Zero, def_linear, instantiate, zero_tangent_of
from minijax.primitives import families
from minijax.support import tree_util
from minijax.values.ref_avals import AbstractToken, abstract_token

# ----------------------------------------------------------------------------------
# copy
# ----------------------------------------------------------------------------------

# Never left out of a program: a copy is always another array.
copy_p = language.register(language.Primitive("copy"))
copy_p.meaning = lambda x: x.copy()
copy_p.def_abstract_eval(lambda x: x)
copy_p.batch = rules.elementwise_batch(copy_p)
copy_p.def_lowering(lambda ctx, x: x)
def_linear(copy_p, lambda ct, x: [copy_p.bind(ct)])


def array_copy(x: Any) -> Any:
    """A new array with the same entries (`minijax.numpy.copy`)."""
    return copy_p.bind(x)


# ----------------------------------------------------------------------------------
# stop_gradient
# ----------------------------------------------------------------------------------

stop_gradient_p = language.register(language.Primitive("stop_gradient"))
stop_gradient_p.meaning = lambda x: x
stop_gradient_p.def_abstract_eval(lambda x: x)
stop_gradient_p.batch = rules.elementwise_batch(stop_gradient_p)
stop_gradient_p.def_lowering(lambda ctx, x: x)
stop_gradient_p.without("transpose", "its tangent is always zero")


@stop_gradient_p.def_impl
def _stop_gradient_now(x) -> Any:
    aval = language.get_aval(x)  # raises TypeError unless it is an array
    numpy = isinstance(x, (np.ndarray, np.generic))
    return x.astype(aval.dtype) if numpy and x.dtype != aval.dtype else x


@stop_gradient_p.def_jvp_rule
def _stop_gradient_jvp(primals, tangents) -> Any:
    (x,) = primals
    # Bound again, so that the derivatives of outer transformations stop as well.
    return _stop_one(x), zero_tangent_of(x)


def _stop_one(x: Any) -> Any:
    aval = language.get_aval(x)
    if isinstance(aval, language.ShapedArray) and dtypes.is_extended(aval.dtype):
        return x
    return stop_gradient_p.bind(x)


def stop_gradient(x: Any) -> Any:
    """Returns `x` unchanged; derivatives treat it as a constant.

    Args:
      x: an array or a tree of arrays.

    Returns:
      The same tree; `grad` and its kin see no dependence on it, at any order.

    Raises:
      TypeError: when a leaf is not an array.
    """
    return tree_util.tree_map(_stop_one, x)


# ----------------------------------------------------------------------------------
# optimization_barrier
# ----------------------------------------------------------------------------------

optimization_barrier_p = families.several_results(
    "optimization_barrier", lambda *avals: list(avals), lambda *arrays: list(arrays)
)


def _barrier_transpose(cts, *args) -> list:
    if all(type(ct) is Zero for ct in cts):
        return [None] * len(args)
    out = optimization_barrier_p.bind(*(instantiate(ct) for ct in cts))
    return [ct if rules.is_linear(x) else None for ct, x in zip(out, args)]


def_linear(optimization_barrier_p, _barrier_transpose)


@optimization_barrier_p.def_batch
def _barrier_batch(axis_data, args, dims) -> Any:
    return optimization_barrier_p.bind(*args), list(dims)


@optimization_barrier_p.def_lowering
def _barrier_lowering(ctx, *operands) -> list:
    return list(hlo.stablehlo.OptimizationBarrierOp(list(operands)).results)


def optimization_barrier(operand: Any, /) -> Any:
    """Returns `operand` unchanged; the compiler moves no operation across this one.

    Everything that uses one of the results runs after all of the operands are computed,
    and equal computations on the two sides are not merged into one. It has no effect
    outside of compiled programs.

    Args:
      operand: a tree of arrays.

    Raises:
      TypeError: when a leaf is not an array.
    """
    leaves, treedef = trees.tree_flatten(operand)
    return trees.tree_unflatten(treedef, optimization_barrier_p.bind(*leaves))


# ----------------------------------------------------------------------------------
# dce_sink
# ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class NoDCEEffect(effects.Effect):
    """Marks an equation that dead-code elimination must keep."""


no_dce_effect = NoDCEEffect()
effects.control_flow_allowed_effects.add_type(NoDCEEffect)
effects.lowerable_effects.add_type(NoDCEEffect)

dce_sink_p = language.register(language.Primitive("dce_sink", multiple_results=True))
dce_sink_p.meaning = lambda x, prevent_mlir_dce: []
dce_sink_p.def_impl(lambda x, **params: [])
dce_sink_p.def_effectful_abstract_eval(
    lambda x, **params: ([], frozenset({no_dce_effect}))
)
rules.def_zero_jvp(dce_sink_p)
dce_sink_p.def_batch(
    lambda axis_data, args, dims, **params: (dce_sink_p.bind(*args, **params), [])
)
dce_sink_p.def_lowering(lambda ctx, x, **params: [])


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Marks the arrays of a tree as used, so that what computes them is not removed."""
    for leaf in trees.tree_leaves(val):
        dce_sink_p.bind(leaf, prevent_mlir_dce=prevent_mlir_dce)


# ----------------------------------------------------------------------------------
# Tokens
# ----------------------------------------------------------------------------------

create_token_p = language.register(language.Primitive("create_token"))
create_token_p.def_abstract_eval(lambda: abstract_token)
create_token_p.def_lowering(lambda ctx: hlo.stablehlo.create_token())

after_all_p = language.register(language.Primitive("after_all"))


@after_all_p.def_abstract_eval
def _after_all_type(*avals: language.AbstractValue) -> AbstractToken:
    if any(aval is not abstract_token for aval in avals):
        raise TypeError("Arguments to after_all must be tokens")
    return abstract_token


after_all_p.def_lowering(lambda ctx, *tokens: hlo.stablehlo.after_all(tokens))

for _primitive in (create_token_p, after_all_p):
    _primitive.without("meaning", "tokens have no values")
    _primitive.without("jvp", "tokens have no tangents")
    _primitive.without("transpose", "tokens have no cotangents")
    _primitive.without("batch", "tokens have no axes")


def create_token(_: Any = None) -> Any:
    """Makes a token that depends on no other, while a program is traced."""
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """One token that comes after all of the given ones.

    Raises:
      TypeError: when an argument is not a token.
    """
    return after_all_p.bind(*operands)
