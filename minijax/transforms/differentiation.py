"""Derivatives as users call them: jvp, linearize, vjp, grad.

`grad` is `vjp` with the cotangent 1. Each function flattens trees, checks its arguments
with messages in whole sentences, and calls `transforms/ad.py`.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.compile import api_util
from minijax.compile.api_util import (
    CallSignature,
    NoOptions,
    argnums_tuple,
    check_callable,
)
from minijax.language.core import ShapedArray, eval_jaxpr, get_aval
from minijax.language.rules import Accumulator, Zero, instantiate, scalar_like
from minijax.primitives.shape import shaping
from minijax.support import dtypes, element_types, errors
from minijax.support.errors import api_boundary
from minijax.support.tree_util import Partial, tree_map
from minijax.support.trees import (
    tree_flatten,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from minijax.transforms import ad, partial_eval
from minijax.transforms.pullbacks import VJP, pullback_of

# ----------------------------------------------------------------------------------
# Forward mode
# ----------------------------------------------------------------------------------


class _FlatFunction:
    """A function of trees as one of flat lists; it leaves its trees behind.

    With `has_aux` the function returns a pair, and the leaves of its second part stand
    in `aux`.
    """

    def __init__(self, fun: Callable, in_tree: Any, has_aux: bool = False):
        self.fun = fun
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux: list[Any] = []
        self.aux_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        answer = self.fun(*tree_unflatten(self.in_tree, leaves))
        if self.has_aux:
            if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                raise errors.type_error(
                    "expected function with aux output to return a two-element tuple, "
                    f"but got type {type(answer)} with value {answer!r}. Write "
                    "`return value, aux`, or leave out has_aux=True."
                )
            answer, aux = answer
            self.aux[:], self.aux_tree = tree_flatten(aux)
        outputs, self.out_tree = tree_flatten(answer)
        return outputs

    def result(self, outputs: Sequence[Any]) -> Any:
        return tree_unflatten(self.out_tree, outputs)

    def aux_result(self) -> Any:
        return tree_unflatten(self.aux_tree, self.aux)


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
    flat = _FlatFunction(fun, in_tree, has_aux)
    outputs, out_tangents = ad.jvp(flat, flat_primals, flat_tangents, flat.aux)
    _check_flat_outputs(outputs, flat, "jvp")
    tangents_out = flat.result([instantiate(t) for t in out_tangents])
    if has_aux:
        return flat.result(outputs), tangents_out, flat.aux_result()
    return flat.result(outputs), tangents_out


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


def _check_flat_outputs(outputs: Sequence[Any], flat: _FlatFunction, what: str) -> None:
    name = api_util.fun_name(flat.fun)
    api_util.check_outputs(outputs, flat.out_tree, name, what)


@api_boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Value of `fun`, and its derivative at that point as a linear function.

    The returned function maps tangents of `primals` to the tangent of the value; it
    does not run `fun` again and may be called many times.

    Returns:
      (value, linear function), and the aux if `has_aux`.
    """
    check_callable(fun, "linearize")
    flat_primals, in_tree = tree_flatten(primals)
    flat = _FlatFunction(fun, in_tree, has_aux)
    outs, jaxpr, residuals, nonzeros = ad.linearize(
        flat,
        flat_primals,
        api_util.lazy_debug_info(fun, in_tree, "linearize"),
        flat.aux,
    )
    _check_flat_outputs(outs, flat, "linearize")
    in_avals = [get_aval(primal) for primal in flat_primals]
    out_avals = [get_aval(out) for out in outs]
    apply = functools.partial(
        _apply_linear, jaxpr, nonzeros, in_avals, out_avals, in_tree, flat.out_tree
    )
    linear = Partial(apply, residuals)
    if has_aux:
        return flat.result(outs), linear, flat.aux_result()
    return flat.result(outs), linear


def _apply_linear(
    jaxpr: Any,
    nonzeros: Sequence[bool],
    in_avals: Sequence[Any],
    out_avals: Sequence[Any],
    in_tree: Any,
    out_tree: Any,
    residuals: Sequence[Any],
    *tangents: Any,
) -> Any:
    flat, tree = tree_flatten(tangents)
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
    answers = iter(eval_jaxpr(jaxpr, residuals, *flat))
    outputs = [
        next(answers) if nonzero else instantiate(Zero(aval.to_tangent_aval()))
        for nonzero, aval in zip(nonzeros, out_avals)
    ]
    return tree_unflatten(out_tree, outputs)


# ----------------------------------------------------------------------------------
# Reverse mode
# ----------------------------------------------------------------------------------


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
    flat_primals, in_tree = tree_flatten(primals)
    flat = _FlatFunction(fun, in_tree, has_aux)
    outs, pullback = _vjp_flat(flat, flat_primals, fun)
    value = flat.result(outs)
    if has_aux:
        return value, pullback, flat.aux_result()
    return value, pullback


def _vjp_flat(
    flat: _FlatFunction, flat_primals: list[Any], fun: Callable
) -> tuple[list[Any], VJP]:
    for primal in flat_primals:
        api_util.check_arg(primal, "vjp")
    outs, jaxpr, residuals, nonzeros = ad.linearize(
        flat, flat_primals, api_util.lazy_debug_info(fun, flat.in_tree, "vjp"), flat.aux
    )
    _check_flat_outputs(outs, flat, "vjp")
    in_avals = [get_aval(primal) for primal in flat_primals]
    out_avals = [get_aval(out) for out in outs]
    pullback = pullback_of(
        flat_primals,
        flat.in_tree,
        residuals,
        jaxpr=jaxpr,
        nonzeros=nonzeros,
        in_avals=in_avals,
        out_avals=out_avals,
        out_tree=flat.out_tree,
        name=api_util.fun_name(fun),
    )
    return outs, pullback


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
    if reduce_axes:
        raise errors.value_error(
            "reduce_axes must be empty; use shard_map to reduce gradients"
        )
    check_callable(fun, "value_and_grad")
    numbers = argnums_tuple(argnums, "argnums")
    single = not isinstance(argnums, (tuple, list))

    @api_boundary
    @functools.wraps(fun)
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        dynamic, partial_fun = split_arguments(fun, numbers, args, kwargs)
        for leaf in tree_leaves(dynamic):
            check_grad_input("grad", holomorphic, allow_int, leaf)
        flat_primals, in_tree = tree_flatten(dynamic)
        flat = _FlatFunction(partial_fun, in_tree, has_aux)
        outs, pullback = _vjp_flat(flat, flat_primals, partial_fun)
        _check_scalar_output(outs, flat)
        (out,) = outs
        check_grad_output("grad", holomorphic, out)
        gradient = pullback(flat.result([scalar_like(get_aval(out), 1)]))
        gradient = tree_map(_as_array, gradient)
        value = flat.result(outs)
        gradient = gradient[0] if single else gradient
        if has_aux:
            return (value, flat.aux_result()), gradient
        return value, gradient

    return value_and_grad_f


def _as_array(x: Any) -> Any:
    """A plain number as an array: the gradient of the identity is the cotangent 1."""
    plain = isinstance(x, (int, float, complex, np.generic))
    return shaping.stage(x) if plain else x


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
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @api_boundary
    @functools.wraps(fun)
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def split_arguments(
    fun: Callable, argnums: tuple[int, ...], args: tuple, kwargs: dict
) -> tuple[tuple, Callable]:
    """(the arguments to differentiate, `fun` as a function of only these)."""
    needed = max((n + 1 if n >= 0 else -n for n in argnums), default=0)
    if needed > len(args):
        negative = min(argnums) < -len(args)
        raise (errors.value_error if negative else errors.type_error)(
            f"differentiating with respect to argnums={_shown(argnums)} requires at "
            f"least {needed} positional arguments to be passed by the caller, but got "
            f"only {len(args)} positional arguments."
        )
    positions = [n % len(args) for n in argnums]
    if len(set(positions)) < max(len(positions), 1):
        raise errors.value_error(
            f"argnums={argnums} must name at least one argument, and none twice"
        )

    @functools.wraps(fun)
    def partial_fun(*dynamic: Any) -> Any:
        full = list(args)
        for position, value in zip(positions, dynamic):
            full[position] = value
        return fun(*full, **kwargs)

    return tuple(args[position] for position in positions), partial_fun


def _shown(argnums: tuple[int, ...]) -> Any:
    return argnums[0] if len(argnums) == 1 else argnums


def _check_scalar_output(outputs: Sequence[Any], flat: _FlatFunction) -> None:
    problem = None
    if len(outputs) != 1 or tree_structure(0) != flat.out_tree:
        problem = f"Output was {flat.result(outputs)}"
    elif not isinstance(get_aval(outputs[0]), ShapedArray):
        problem = f"Output had abstract value {get_aval(outputs[0]).str_short()}"
    elif get_aval(outputs[0]).shape != ():
        problem = f"Output had shape: {get_aval(outputs[0]).shape}"
    if problem is not None:
        raise errors.type_error(
            f"Gradient only defined for scalar-output functions. {problem}. Reduce "
            "it to a scalar (`.sum()`, `.mean()`), return other values as aux with "
            "has_aux=True, or use jacrev for all derivatives.",
            rule="a gradient is of a scalar",
            instead="return x.sum()",
        )


def check_grad_input(name: str, holomorphic: bool, allow_int: bool, x: Any) -> None:
    api_util.check_arg(x, name)
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
    elif element_types.is_extended(dtype) or not dtypes.issubdtype(dtype, np.inexact):
        if allow_int:
            return
        raise errors.type_error(
            f"{name} requires real- or complex-valued inputs (input dtype that is a "
            f"sub-dtype of np.inexact), but got {dtype.name}. Convert the argument to "
            "a float (`2.0` instead of `2`, `x.astype(float)`), choose another "
            "argument with argnums, or set allow_int=True."
        )


def check_grad_output(name: str, holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise errors.type_error(
                f"{name} with holomorphic=True requires outputs with complex dtype, "
                f"but got {dtype.name}."
            )
    elif element_types.is_extended(dtype) or not dtypes.issubdtype(dtype, np.floating):
        raise errors.type_error(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name}. For holomorphic differentiation, "
            "pass holomorphic=True. For functions with integer or complex outputs, use "
            "minijax.vjp directly."
        )


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
    signature = CallSignature(fun, NoOptions)
    bound = signature.bind(primals, {})
    in_avals = signature.types_of(bound.leaves, primals, {})
    for aval in in_avals:
        if not dtypes.issubdtype(aval.dtype, np.inexact) and not dtypes.is_float0(
            aval.to_tangent_aval().dtype
        ):
            raise errors.type_error(
                f"linear_transpose cannot transpose in {aval.str_short()}"
            )
    flat, result = api_util.flatten_function(signature, bound)
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
        if tree != result.tree:
            raise errors.type_error(
                "cotangent tree does not match function output, expected "
                f"{result.tree} but got {tree}"
            )
        for ct, aval in zip(cotangents, out_avals):
            actual = get_aval(ct)
            if (actual.shape, actual.dtype) != (aval.shape, aval.dtype):
                raise errors.type_error(
                    "linear_transpose cotangent does not match function output: "
                    f"expected {aval.str_short()}, got {actual.str_short()}"
                )
        accumulators = [Accumulator(aval.to_ct_aval()) for aval in in_avals]
        ad.vjp(jaxpr, consts, [True] * len(out_avals), accumulators, cotangents)
        return tree_unflatten(in_tree, [instantiate(x.freeze()) for x in accumulators])

    return transposed
