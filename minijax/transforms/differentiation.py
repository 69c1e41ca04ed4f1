"""Derivatives with all their options: jvp, linearize, vjp, grad, linear_transpose.

The work is done by the functions of the same names in `core/api.py`. Here are the
arguments that few need, and the messages about values that do not fit together.

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
from minijax.core.language import ShapedArray, get_aval
from minijax.core.rules import Accumulator, instantiate
from minijax.core.signatures import (
    CallSignature,
    check_callable,
)
from minijax.core.trees import (
    tree_flatten,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
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
      has_aux: `fun` returns a pair whose second part is passed on undifferentiated.

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
    """`derivative.push` of tangents that fit the arguments."""
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
        if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
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
      NotImplementedError: for `reduce_axes`, which JAX does not take any longer either.
    """
    check_callable(fun, "vjp")
    if reduce_axes:
        raise NotImplementedError(
            "reduce_axes argument to vjp is deprecated: add up with `lax.psum`."
        )
    leaves = tree_leaves(primals)
    for leaf in leaves:
        signatures.check_arg(leaf, "vjp")
    flat, outs, derivative, residuals = differentiated(fun, primals, has_aux, "vjp")
    name = signatures.fun_name(fun)
    return flat.result(outs, pullback_of(derivative, name, leaves, residuals))


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable:
    """A function that returns the value of `fun` and its gradient.

    Args:
      fun: returns a scalar (with `has_aux` a pair of a scalar and anything).
      argnums: the argument (or tuple of arguments) to differentiate; keyword arguments
        are not differentiated.
      has_aux: whether `fun` returns a pair `(value, aux)`.
      holomorphic: whether `fun` is complex-differentiable, of complex arguments.
      allow_int: whether integer arguments are allowed; their gradient is float0.
      reduce_axes: must be empty.

    Returns:
      A function with the arguments of `fun` that returns `(value, gradient)`; the value
      is `(value, aux)` with `has_aux`, the gradient a tuple if `argnums` is one.

    Raises:
      TypeError: `fun` does not return a real scalar, or an argument is not of floats.
    """
    _refuse_reduce_axes(reduce_axes)
    checks = _checks(holomorphic, allow_int)
    return api.value_and_grad(fun, argnums, has_aux, **checks)


def _checks(holomorphic: bool, allow_int: bool) -> dict[str, Callable]:
    """What `grad` asks of its arguments and of the value."""
    return {
        "check_input": functools.partial(
            check_grad_input, "grad", holomorphic, allow_int
        ),
        "check_output": functools.partial(check_grad_output, "grad", holomorphic),
    }


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable:
    """A function that returns the gradient of `fun`, a function to a scalar.

    The arguments are those of `value_and_grad`. Returns the gradient, of the tree,
    shapes and dtypes of the differentiated argument; with `has_aux`, `(gradient, aux)`.
    """
    _refuse_reduce_axes(reduce_axes)
    checks = _checks(holomorphic, allow_int)
    return api.grad(fun, argnums, has_aux, **checks)


def _refuse_reduce_axes(reduce_axes: Sequence[Any]) -> None:
    if reduce_axes:
        raise errors.value_error(
            "reduce_axes must be empty; use shard_map to reduce gradients"
        )


def check_grad_input(name: str, holomorphic: bool, allow_int: bool, x: Any) -> None:
    signatures.check_arg(x, name)
    dtype = get_aval(x).dtype
    if not isinstance(get_aval(x), ShapedArray):
        raise errors.type_error(
            f"{name} differentiates with respect to arrays, but got a value of type "
            f"{get_aval(x).str_short()}. Make the ref inside of the function: pass its "
            "content and write `ref = new_ref(x)`."
        )
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise errors.type_error(
                f"{name} with holomorphic=True requires inputs with complex dtype, but "
                f"got {dtype.name}."
            )
    elif not allow_int:
        api.check_real_input(x, name)


def check_grad_output(name: str, holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise errors.type_error(
                f"{name} with holomorphic=True requires outputs with complex dtype, "
                f"but got {dtype.name}."
            )
    else:
        api.check_real_output(x, name)


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
    kinds = {dtypes.issubdtype(a.dtype, np.inexact) for a in [*in_avals, *out_avals]}
    if len(kinds) > 1:
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
            if (actual.shape, actual.dtype) != (aval.shape, aval.dtype):
                raise errors.type_error(
                    "linear_transpose cotangent does not match function output: "
                    f"expected {aval.str_short()}, got {actual.str_short()}"
                )
        accumulators = [Accumulator(aval.to_ct_aval()) for aval in in_avals]
        autodiff.vjp(jaxpr, consts, [True] * len(out_avals), accumulators, cotangents)
        return tree_unflatten(in_tree, [instantiate(x.freeze()) for x in accumulators])

    return transposed
