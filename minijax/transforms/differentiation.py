"""jvp, linearize and vjp with messages for users, and linear_transpose.

The work is done by the functions of the same names in `core/api.py`. Here are the
rarely used arguments, and the messages about values that do not match. `grad`
and `value_and_grad` are those of the core.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import api, autodiff, dtypes, errors, partial_eval, signatures
from minijax.core.api import differentiated
from minijax.core.errors import api_boundary
from minijax.core.language import get_aval, typecompat
from minijax.core.rules import Accumulator, instantiate
from minijax.core.signatures import CallSignature, check_callable
from minijax.core.trees import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from minijax.support.tree_util import Partial
from minijax.transforms.pullbacks import pullback_of


@api_boundary
def jvp(
    fun: Callable,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """Value of `fun` at `primals`, and its derivative there in direction `tangents`.

    Args:
      fun: the function to differentiate.
      primals: a tuple of its arguments.
      tangents: a tuple of the same trees, shapes and dtypes (float0 for integers).
      has_aux: `fun` returns a pair, and its second part is not differentiated.

    Returns:
      (value, tangent of the value), and the aux if there is one.

    Raises:
      TypeError: not tuples, or trees or dtypes that do not match.
      ValueError: shapes that do not match.
    """
    check_callable(fun, "jvp")
    for values in (primals, tangents):
        if not isinstance(values, (tuple, list)):
            raise errors.type_error(
                "primal and tangent arguments to minijax.jvp must be tuples or lists; "
                f"found {type(primals).__name__} and {type(tangents).__name__}. Write "
                "`jvp(f, (x,), (t,))`."
            )
    flat_primals, in_tree = tree_flatten(primals)
    flat_tangents, tangent_tree = tree_flatten(tangents)
    if in_tree != tangent_tree:
        raise errors.type_error(
            "primal and tangent arguments to minijax.jvp must have the same tree "
            f"structure; primals have tree structure {in_tree} whereas tangents have "
            f"tree structure {tangent_tree}."
        )
    for primal, tangent in zip(flat_primals, flat_tangents):
        _check_tangent(primal, tangent)
    return api.jvp(fun, primals, tangents, has_aux)


def _check_tangent(primal: Any, tangent: Any) -> None:
    expected = get_aval(primal).to_tangent_aval()
    actual = get_aval(tangent)
    if expected.dtype != actual.dtype:
        raise errors.type_error(
            "primal and tangent arguments to minijax.jvp do not match; dtypes must be "
            "equal, or in case of int/bool primal dtype the tangent dtype must be "
            f"float0. Got primal dtype {get_aval(primal).dtype} and so expected "
            f"tangent dtype {expected.dtype}, but got tangent dtype {actual.dtype} "
            "instead."
        )
    if expected.shape != actual.shape:
        raise errors.value_error(
            "jvp called with different primal and tangent shapes; got primal shape "
            f"{expected.shape} and tangent shape {actual.shape}"
        )


@api_boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Value of `fun`, and its derivative at that point as a linear function.

    The returned function maps tangents of `primals` to the tangent of the value; it
    does not run `fun` again and may be called many times.

    Returns:
      (value, linear function), and the aux if `has_aux`.
    """
    check_callable(fun, "linearize")
    flat, outs, derivative, residuals = differentiated(
        fun, primals, has_aux, "linearize"
    )
    return flat.result(outs, Partial(functools.partial(_push, derivative), residuals))


def _push(derivative: api.Derivative, residuals: Sequence[Any], *tangents: Any) -> Any:
    """Apply `derivative.push` to tangents, after a check of their types."""
    flat, tree = tree_flatten(tangents)
    in_tree, in_avals = derivative.in_tree, derivative.in_avals
    if tree != in_tree:
        raise errors.type_error(
            "the linearized function takes tangents of the tree structure of the "
            f"arguments, {in_tree}, but got {tree}"
        )
    for tangent, primal_aval in zip(flat, in_avals):
        expected = primal_aval.to_tangent_aval()
        actual = get_aval(tangent)
        if not typecompat(expected, actual):
            raise errors.value_error(
                "linearized function called on tangent values inconsistent with the "
                f"original primal values: got tangent type {actual.str_short()} for "
                f"primal type {primal_aval.str_short()} but expected "
                f"{expected.str_short()}"
            )
    return derivative.push(residuals, *tangents)


@api_boundary
def vjp(
    fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> Any:
    """Value of `fun`, and the function that pulls cotangents back.

    The returned function maps a cotangent of the value (same tree, shapes, dtypes) to a
    tuple of cotangents of `primals`; it holds the residuals and may be called many
    times.

    Returns:
      (value, vjp function), and the aux if `has_aux`.

    Raises:
      NotImplementedError: `reduce_axes` is not empty; JAX has removed this feature.
    """
    check_callable(fun, "vjp")
    if reduce_axes:
        raise NotImplementedError(
            "reduce_axes argument to vjp is deprecated: add up with `lax.psum`."
        )
    flat, outs, derivative, residuals = differentiated(fun, primals, has_aux, "vjp")
    name = signatures.fun_name(fun)
    leaves = tree_leaves(primals)
    return flat.result(outs, pullback_of(derivative, name, leaves, residuals))


def linear_transpose(
    fun: Callable, *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable:
    """The transpose of a function that is linear: cotangents out to cotangents in.

    Args:
      fun: a linear function of `primals`.
      primals: arrays or `ShapeDtypeStruct`s; only their types matter.

    Raises:
      NotImplementedError: when `fun` is not linear, naming the primitive.
    """
    if reduce_axes:
        raise errors.value_error("reduce_axes must be empty")
    check_callable(fun, "linear_transpose")
    signature = CallSignature(fun)
    bound = signature.bind(primals, {})
    in_avals = signature.types_of(bound.leaves, primals, {})
    for aval in in_avals:
        if not dtypes.issubdtype(aval.dtype, np.inexact) and not dtypes.is_float0(
            aval.to_tangent_aval().dtype
        ):
            raise errors.type_error(
                f"linear_transpose cannot transpose in {aval.str_short()}"
            )
    flat, trees = signatures.flatten_function(signature, bound)
    jaxpr, consts = partial_eval.trace_to_jaxpr(
        flat, in_avals, signature.debug_info(bound, "linear_transpose")
    )
    in_tree = tree_structure(primals)
    out_avals = jaxpr.out_avals
    avals = [*in_avals, *out_avals]
    kinds = (np.inexact, np.integer)
    if not any(all(dtypes.issubdtype(a.dtype, k) for a in avals) for k in kinds):
        raise errors.type_error(
            "linear_transpose only supports [float or complex] -> [float or complex], "
            "and integer -> integer functions, but the function takes "
            f"{[a.str_short() for a in in_avals]} and returns "
            f"{[a.str_short() for a in out_avals]}."
        )

    def transposed(cotangent: Any) -> Any:
        cotangents, tree = tree_flatten(cotangent)
        if tree != trees[0]:
            raise errors.type_error(
                "cotangent tree does not match function output, expected "
                f"{trees[0]} but got {tree}"
            )
        for ct, aval in zip(cotangents, out_avals):
            actual = get_aval(ct)
            if not typecompat(aval, actual):
                raise errors.type_error(
                    "linear_transpose cotangent does not match function output: "
                    f"expected {aval.str_short()}, got {actual.str_short()}"
                )
        accumulators = [Accumulator(aval.to_ct_aval()) for aval in in_avals]
        autodiff.vjp(jaxpr, consts, [True] * len(out_avals), accumulators, cotangents)
        return tree_unflatten(in_tree, [instantiate(x.freeze()) for x in accumulators])

    return transposed
