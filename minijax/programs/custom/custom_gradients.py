"""Functions built on custom rules: custom_gradient, closure_convert, linear_call.

`custom_gradient` is `custom_vjp` written as one function, which returns its value and
the function that pulls a cotangent back. `closure_convert` makes explicit arguments of
what a function closes over, so that a custom rule sees it. `linear_call` calls a linear
function whose transpose is given.

In JAX: `jax/_src/custom_derivatives.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minijax.core import autodiff, dtypes, language, partial_eval, signatures
from minijax.core.rules import Zero, instantiate, is_linear, zeros_of
from minijax.core.signatures import check_callable
from minijax.core.trees import tree_flatten, tree_structure, tree_unflatten
from minijax.programs.calls import def_call
from minijax.programs.control_flow.bodies import trace_at_types, trace_with_consts
from minijax.programs.control_flow.operands import merge
from minijax.programs.custom.custom_backward import custom_vjp
from minijax.support.tree_util import register_dataclass, tree_map
from minijax.transforms.rematerialize import where, where_not
from minijax.values.inner_programs import jaxpr_as_fun
from minijax.values.symbolic_zeros import SymbolicZero


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zero tangents for a tree of values: arrays, or `SymbolicZero`s.

    For rules of `custom_jvp`. In JAX: `jax.custom_derivatives.zero_from_primal`.
    """

    def zero(x: Any) -> Any:
        aval: Any = language.get_aval(x).to_tangent_aval()
        return SymbolicZero(aval) if symbolic_zeros else zeros_of(aval)

    return tree_map(zero, val)


# ----------------------------------------------------------------------------------
# custom_gradient
# ----------------------------------------------------------------------------------


@dataclass
class _Residuals:
    """The program that pulls a cotangent back; its constants are what is saved."""

    jaxpr: language.Jaxpr
    in_tree: Any
    out_tree: Any
    consts: Any


register_dataclass(_Residuals, ["consts"], ["jaxpr", "in_tree", "out_tree"])


def custom_gradient(fun: Callable) -> Callable:
    """`fun`, which returns (value, backward rule), as a differentiable function.

        @custom_gradient
        def f(x, y):
            return x * y, lambda ct: (ct * y, ct * x)

    Args:
      fun: returns `(value, pullback)`. The pullback takes a cotangent of the value and
        returns a tuple of cotangents, one for each argument (for one argument the
        cotangent itself will do). It may close over whatever `fun` computed.

    Returns:
      a function that returns the value only.
    """
    check_callable(fun, "custom_gradient")

    @custom_vjp
    def wrapped_fun(*args: Any, **kwargs: Any) -> Any:
        value, _ = fun(*args, **kwargs)
        return value

    def fwd(*args: Any, **kwargs: Any) -> tuple:
        value, pullback = fun(*args, **kwargs)
        leaves, out_tree = tree_flatten((value,))
        avals = [language.get_aval(leaf).to_ct_aval() for leaf in leaves]
        in_trees: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            flat_answer, tree = tree_flatten(pullback(*tree_unflatten(out_tree, cts)))
            in_trees.append(tree)
            return flat_answer

        info = signatures.lazy_debug_info(pullback, out_tree, "custom_gradient fwd")
        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, info)
        return value, _Residuals(jaxpr, in_trees[0], out_tree, consts)

    def bwd(res: _Residuals, cts: Any) -> Any:
        leaves, out_tree = tree_flatten((cts,))
        if out_tree != res.out_tree:
            raise TypeError(
                f"the cotangent has the structure {out_tree}, but the value of the "
                f"function has {res.out_tree}."
            )
        flat_answer = language.eval_jaxpr(res.jaxpr, res.consts, *leaves)
        answer = tree_unflatten(res.in_tree, flat_answer)
        return (answer,) if res.in_tree == tree_structure(0) else answer

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


# ----------------------------------------------------------------------------------
# closure_convert
# ----------------------------------------------------------------------------------


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """Make arguments of the values a function closes over.

    For functions with custom rules that take a function: what that one closes over and
    is differentiated must be passed as an argument.

    Args:
      fun: a pure function.
      example_args: arguments of it; only their trees and types matter.

    Returns:
      `(converted, consts)`: `converted(*args, *consts)` equals `fun(*args)`. `consts`
      holds what may have a tangent; plain arrays stay inside of `converted`.

    The converted function raises TypeError for arguments of another tree.
    """
    check_callable(fun, "closure_convert")
    in_tree = tree_structure(tuple(example_args))
    closed, consts, out_tree = trace_with_consts(fun, example_args, "closure_convert")
    hoisted = [_may_have_tangent(const) for const in consts]
    kept, num_hoisted = where_not(hoisted, consts), sum(hoisted)

    def converted(*args_and_consts: Any) -> Any:
        count = len(args_and_consts) - num_hoisted
        args = args_and_consts[:count]
        all_consts = merge(hoisted, kept, args_and_consts[count:])
        leaves, tree = tree_flatten(tuple(args))
        if tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the "
                "same Pytree structure as the example arguments passed when "
                f"closure_convert was called. Expected {in_tree}, but got {tree}"
            )
        outputs = jaxpr_as_fun(closed)(*all_consts, *leaves)
        return tree_unflatten(out_tree, outputs)

    return converted, where(hoisted, consts)


def _may_have_tangent(value: Any) -> bool:
    """Whether a value may carry a tangent, now or when a program is differentiated."""
    if not isinstance(value, language.Tracer):
        return False
    if isinstance(value, autodiff.JVPTracer):
        return type(value.tangent) is not Zero or _may_have_tangent(value.primal)
    if isinstance(value, partial_eval.DynamicJaxprTracer):
        aval = value.aval.to_tangent_aval()
        return isinstance(aval, language.ShapedArray) and not dtypes.is_float0(
            aval.dtype
        )
    return _may_have_tangent(getattr(value, "value", None))


# ----------------------------------------------------------------------------------
# linear_call
# ----------------------------------------------------------------------------------

linear_call_p = language.register(
    language.Primitive("linear_call", multiple_results=True)
)
def_call(linear_call_p, "callee")
linear_call_p.without("batch", "JAX has none: batch the functions inside")


def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function whose transpose is given.

    Args:
      fun: `(residuals, x) -> y`, linear in the tree `x`.
      fun_transpose: `(residuals, ct of y) -> ct of x`.
      residual_args, linear_args: trees of arrays.

    Raises:
      TypeError: when transposed, if `fun_transpose` gives another tree than that of
        `linear_args`.
    """
    residuals, res_tree = tree_flatten(residual_args)
    linear, lin_tree = tree_flatten(linear_args)
    args = (residual_args, linear_args)
    callee, consts, out_tree = trace_with_consts(fun, args, "linear_call fun")
    example = (residual_args, tree_unflatten(out_tree, callee.out_avals))
    in_tree = tree_structure(example)
    avals = [*(language.get_aval(x) for x in residuals), *callee.out_avals]
    known: list[Any] = []

    def transpose_thunk() -> tuple[language.ClosedJaxpr, list[Any]]:
        if not known:
            closed, own, tree = trace_at_types(
                fun_transpose, in_tree, avals, "linear_call fun_transpose"
            )
            if tree != lin_tree:
                raise TypeError(
                    "transpose output pytree structure must match that of linear "
                    f"inputs, got output structure {tree} and input structure "
                    f"{lin_tree}."
                )
            known.append((closed, own))
        return known[0]

    outputs = linear_call_p.bind(
        *consts,
        *residuals,
        *linear,
        callee=callee,
        transpose_thunk=transpose_thunk,
        num_callee_consts=len(consts),
        num_res=len(residuals),
    )
    return tree_unflatten(out_tree, outputs)


@linear_call_p.def_jvp_rule
def _linear_call_jvp(primals, tangents, **params) -> tuple[list, list]:
    count = params["num_callee_consts"] + params["num_res"]
    if any(type(t) is not Zero for t in tangents[:count]):
        raise NotImplementedError(
            "linear_call is differentiated in its linear arguments only; pass its "
            "residual arguments through `lax.stop_gradient`."
        )
    outs = linear_call_p.bind(*primals, **params)
    given = [instantiate(t) for t in tangents[count:]]
    return outs, linear_call_p.bind(*primals[:count], *given, **params)


@linear_call_p.def_transpose
def _linear_call_transpose(
    cts, *args, callee, transpose_thunk, num_callee_consts, num_res
) -> list[Any]:
    """Call the other function, with this one as its transpose."""
    transpose, consts = transpose_thunk()
    count = num_callee_consts + num_res
    own, residuals = args[:num_callee_consts], args[num_callee_consts:count]
    if any(is_linear(x) for x in args[:count]):
        raise NotImplementedError(
            "linear_call cannot be transposed in its residual arguments; pass what is "
            "to be transposed among the linear ones."
        )
    answers = linear_call_p.bind(
        *consts,
        *residuals,
        *(instantiate(ct) for ct in cts),
        callee=transpose,
        transpose_thunk=lambda: (callee, own),
        num_callee_consts=len(consts),
        num_res=num_res,
    )
    return [None] * count + list(answers)
