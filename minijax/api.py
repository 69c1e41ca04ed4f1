"""The transformations as users call them.

Each function here flattens trees, checks the arguments with messages in whole sentences,
and calls one interpreter. `grad` is `vjp` with the cotangent 1; `jacrev` is `vmap` of
`vjp`; `make_jaxpr` is what `jit` does before compiling.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import functools
from typing import Any

import numpy as np

from minijax import api_util, dtypes, pjit, source_info
from minijax.api_util import CallSignature, NoOptions, argnums_tuple, check_callable
from minijax.array import Array
from minijax.core import (
    AbstractValue,
    ClosedJaxpr,
    ShapeDtypeStruct,
    get_aval,
)
from minijax.interpreters import ad, batching, dispatch, partial_eval
from minijax.pjit import JitFunction, JitOptions
from minijax.partition_spec import PartitionSpec
from minijax.primitives import complex_numbers
from minijax.primitives import casting, shaping
from minijax.rules import AxisData, Zero, instantiate, no_axis_name, scalar_like
from minijax.tree_prefix import broadcast_prefix_to_treedef, prefix_errors
from minijax.tree_util import (
    Partial,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_transpose,
    tree_unflatten,
)

# ----------------------------------------------------------------------------------
# jit
# ----------------------------------------------------------------------------------


def jit(
    fun: Callable | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """`fun`, compiled by XLA: traced once for each kind of arguments, then only run.

    The kind of a call is the tree of its arguments, their shapes, dtypes and weak types,
    and the values of static arguments. Python side effects happen while tracing only.
    Without `fun`, a decorator.

    Args:
      fun: takes and returns arrays, numbers, or trees of them; must be pure.
      in_shardings, out_shardings, device, backend: must be None; arguments run where
        they are (`device_put`).
      static_argnums, static_argnames: arguments whose *values* choose the program.
        They must be hashable. Positions imply names and the other way round.
      donate_argnums, donate_argnames: arguments whose memory the results may take over;
        they cannot be used afterwards.
      keep_unused: keep arguments in the program that it does not need.
      inline: in another traced function leave no `jit` equation behind.
      compiler_options: XLA flags by name, for a call outside of other transformations.

    Raises:
      TypeError: `fun` is no function, or an argument is no array.
      ValueError: a static argument is not hashable or does not exist.
    """
    options = _jit_options(
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        inline,
        compiler_options,
    )
    for name, value in (
        ("in_shardings", in_shardings),
        ("out_shardings", out_shardings),
        ("device", device),
        ("backend", backend),
    ):
        if value is not None:
            raise ValueError(
                f"jit does not take {name} here: a program runs where its arguments "
                "are. Move them with `device_put` first."
            )
    if fun is None:
        return functools.partial(_jit_with, options)
    return _jit_with(options, fun)


def _jit_options(
    static_argnums: Any,
    static_argnames: Any,
    donate_argnums: Any,
    donate_argnames: Any,
    keep_unused: bool,
    inline: bool,
    compiler_options: dict[str, Any] | None,
) -> JitOptions:
    return JitOptions(
        argnums_tuple(static_argnums, "static_argnums"),
        api_util.argnames_tuple(static_argnames, "static_argnames"),
        argnums_tuple(donate_argnums, "donate_argnums"),
        api_util.argnames_tuple(donate_argnames, "donate_argnames"),
        bool(keep_unused),
        bool(inline),
        tuple(sorted((compiler_options or {}).items())),
    )


def _jit_with(options: JitOptions, fun: Callable) -> JitFunction:
    check_callable(fun, "jit")
    return JitFunction(fun, options)


def clear_caches() -> None:
    """Forget every traced and compiled program; they are made again when needed."""
    for caches in list(pjit.all_caches):
        caches.clear()


# ----------------------------------------------------------------------------------
# Looking at programs
# ----------------------------------------------------------------------------------


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable:
    """A function that returns the jaxpr of `fun` for given arguments.

    Args:
      fun: what to trace.
      static_argnums: arguments that are passed on as they are.
      axis_env: named axes in scope, as pairs (name, size).
      return_shape: return also the result's tree of `ShapeDtypeStruct`s.

    The arguments may be arrays, numbers or `ShapeDtypeStruct`s; only their types matter.
    """
    check_callable(fun, "make_jaxpr")
    options = JitOptions(argnums_tuple(static_argnums, "static_argnums"))
    jitted = JitFunction(fun, options)

    @functools.wraps(fun)
    def jaxpr_maker(*args: Any, **kwargs: Any) -> Any:
        with _axis_env_of(axis_env):
            traced, _ = jitted.trace_call(args, kwargs)
        closed = traced.closed
        if traced.outer:
            jaxpr = closed.jaxpr
            count = len(traced.outer)
            opened = jaxpr.replace(
                constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:]
            )
            closed = ClosedJaxpr(opened, traced.outer)
        if not return_shape:
            return closed
        shapes = [struct_of(aval) for aval in closed.out_avals]
        return closed, tree_unflatten(traced.out_tree, shapes)

    jaxpr_maker.__module__ = "minijax"
    return jaxpr_maker


def _axis_env_of(axis_env: Sequence[tuple[Any, int]] | None) -> Any:
    from minijax.core import extend_axis_env

    return extend_axis_env(list(axis_env or ()))


def struct_of(aval: AbstractValue) -> ShapeDtypeStruct:
    """Shape and dtype of a type."""
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, sharding=aval.sharding, weak_type=aval.weak_type
    )


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing anything.

    Returns the result's tree with a `ShapeDtypeStruct` for each array. Arguments may be
    `ShapeDtypeStruct`s themselves. Raises what tracing `fun` raises.
    """
    check_callable(fun, "eval_shape")
    traced, _ = JitFunction(fun, JitOptions()).trace_call(args, kwargs)
    shapes = [struct_of(aval) for aval in traced.closed.out_avals]
    return tree_unflatten(traced.out_tree, shapes)


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
                raise TypeError(
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


def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
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
            raise TypeError(
                "primal and tangent arguments to minijax.jvp must be tuples or lists; "
                f"found {type(primals).__name__} and {type(tangents).__name__}. Write "
                "`jvp(f, (x,), (t,))`."
            )
    flat_primals, in_tree = tree_flatten(tuple(primals))
    flat_tangents, tangent_tree = tree_flatten(tuple(tangents))
    if in_tree != tangent_tree:
        raise TypeError(
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
        raise TypeError(
            "primal and tangent arguments to minijax.jvp do not match; dtypes must be "
            "equal, or in case of int/bool primal dtype the tangent dtype must be "
            f"float0. Got primal dtype {get_aval(primal).dtype} and so expected tangent "
            f"dtype {expected.dtype}, but got tangent dtype {actual.dtype} instead."
        )
    if expected.shape != actual.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; got primal shape "
            f"{expected.shape} and tangent shape {actual.shape}"
        )


def _check_flat_outputs(outputs: Sequence[Any], flat: _FlatFunction, what: str) -> None:
    name = api_util.fun_name(flat.fun)
    api_util.check_outputs(outputs, flat.out_tree, name, what)


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Value of `fun`, and its derivative at that point as a linear function.

    The returned function maps tangents of `primals` to the tangent of the value; it does
    not run `fun` again and may be called many times.

    Returns:
      (value, linear function), and the aux if `has_aux`.
    """
    check_callable(fun, "linearize")
    flat_primals, in_tree = tree_flatten(primals)
    flat = _FlatFunction(fun, in_tree, has_aux)
    outs, jaxpr, residuals, nonzeros = ad.linearize(
        flat, flat_primals, api_util.lazy_debug_info(fun, in_tree, "linearize"), flat.aux
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
        raise TypeError(
            "the linearized function takes tangents of the tree structure of the "
            f"arguments, {in_tree}, but got {tree}"
        )
    for tangent, primal_aval in zip(flat, in_avals):
        expected = primal_aval.to_tangent_aval()
        actual = get_aval(tangent)
        if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
            raise ValueError(
                "linearized function called on tangent values inconsistent with the "
                f"original primal values: got tangent type {actual.str_short()} for "
                f"primal type {primal_aval.str_short()} but expected "
                f"{expected.str_short()}"
            )
    from minijax.core import eval_jaxpr

    answers = iter(eval_jaxpr(jaxpr, residuals, *flat))
    outputs = [
        next(answers) if nonzero else instantiate(Zero(aval.to_tangent_aval()))
        for nonzero, aval in zip(nonzeros, out_avals)
    ]
    return tree_unflatten(out_tree, outputs)


# ----------------------------------------------------------------------------------
# Reverse mode
# ----------------------------------------------------------------------------------


def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """Value of `fun`, and the function that pulls cotangents back.

    The returned function maps a cotangent of the value (same tree, shapes, dtypes) to a
    tuple of cotangents of `primals`; it holds the residuals and may be called many times.

    Returns:
      (value, vjp function), and the aux if `has_aux`.
    """
    check_callable(fun, "vjp")
    flat_primals, in_tree = tree_flatten(primals)
    flat = _FlatFunction(fun, in_tree, has_aux)
    outs, pullback = _vjp_flat(flat, flat_primals, fun)
    value = flat.result(outs)
    if has_aux:
        return value, pullback, flat.aux_result()
    return value, pullback


def _vjp_flat(
    flat: _FlatFunction, flat_primals: list[Any], fun: Callable
) -> tuple[list[Any], Partial]:
    for primal in flat_primals:
        api_util.check_arg(primal, "vjp")
    outs, jaxpr, residuals, nonzeros = ad.linearize(
        flat, flat_primals, api_util.lazy_debug_info(fun, flat.in_tree, "vjp"), flat.aux
    )
    _check_flat_outputs(outs, flat, "vjp")
    in_avals = [get_aval(primal) for primal in flat_primals]
    out_avals = [get_aval(out) for out in outs]
    pull = functools.partial(
        _pull_back,
        jaxpr,
        nonzeros,
        in_avals,
        out_avals,
        flat.in_tree,
        flat.out_tree,
        api_util.fun_name(fun),
    )
    return outs, Partial(pull, residuals)


def _pull_back(
    jaxpr: Any,
    nonzeros: Sequence[bool],
    in_avals: Sequence[Any],
    out_avals: Sequence[Any],
    in_tree: Any,
    out_tree: Any,
    name: str,
    residuals: Sequence[Any],
    cotangent: Any,
) -> Any:
    cotangents, tree = tree_flatten(cotangent)
    if tree != out_tree:
        raise ValueError(
            "unexpected tree structure. The argument to a VJP function returned by "
            "`minijax.vjp` must match the pytree structure of the differentiated "
            f"function {name}: it returned {out_tree}, but the argument is {tree}."
        )
    for ct, aval in zip(cotangents, out_avals):
        expected, actual = aval.to_ct_aval(), get_aval(ct)
        if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
            raise ValueError(
                "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: "
                f"got {actual.str_short()}, but expected {expected.str_short()} because "
                "the corresponding output of the differentiated function had JAX type "
                f"{aval.str_short()}"
            )
    answers = ad.vjp(jaxpr, residuals, nonzeros, in_avals, cotangents)
    return tree_unflatten(in_tree, [instantiate(ct) for ct in answers])


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
        raise ValueError("reduce_axes must be empty; use shard_map to reduce gradients")
    check_callable(fun, "value_and_grad")
    numbers = argnums_tuple(argnums, "argnums")
    single = not isinstance(argnums, (tuple, list))

    @functools.wraps(fun)
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        dynamic, partial_fun = _split_arguments(fun, numbers, args, kwargs)
        for leaf in tree_leaves(dynamic):
            _check_grad_input("grad", holomorphic, allow_int, leaf)
        flat_primals, in_tree = tree_flatten(dynamic)
        flat = _FlatFunction(partial_fun, in_tree, has_aux)
        outs, pullback = _vjp_flat(flat, flat_primals, partial_fun)
        _check_scalar_output(outs, flat)
        (out,) = outs
        _check_grad_output("grad", holomorphic, out)
        gradient = pullback(flat.result([scalar_like(get_aval(out), 1)]))
        value = flat.result(outs)
        gradient = gradient[0] if single else gradient
        if has_aux:
            return (value, flat.aux_result()), gradient
        return value, gradient

    return value_and_grad_f


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

    @functools.wraps(fun)
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def _split_arguments(
    fun: Callable, argnums: tuple[int, ...], args: tuple, kwargs: dict
) -> tuple[tuple, Callable]:
    """(the arguments to differentiate, `fun` as a function of only these)."""
    needed = max((n + 1 if n >= 0 else -n for n in argnums), default=0)
    if needed > len(args):
        raise TypeError(
            f"differentiating with respect to argnums={_shown(argnums)} requires at "
            f"least {needed} positional arguments to be passed by the caller, but got "
            f"only {len(args)} positional arguments."
        )
    positions = [n % len(args) for n in argnums]

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
    elif get_aval(outputs[0]).shape != ():
        problem = f"Output had shape: {get_aval(outputs[0]).shape}"
    if problem is not None:
        from minijax import errors

        raise errors.with_facts(
            TypeError(
                f"Gradient only defined for scalar-output functions. {problem}. Reduce "
                "it to a scalar (`.sum()`, `.mean()`), return other values as aux with "
                "has_aux=True, or use jacrev for all derivatives."
            ),
            rule="a gradient is of a scalar",
            instead="return x.sum()",
        )


def _check_grad_input(name: str, holomorphic: bool, allow_int: bool, x: Any) -> None:
    api_util.check_arg(x, name)
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but "
                f"got {dtype.name}."
            )
    elif dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.inexact):
        if allow_int and not dtypes.is_extended(dtype):
            return
        raise TypeError(
            f"{name} requires real- or complex-valued inputs (input dtype that is a "
            f"sub-dtype of np.inexact), but got {dtype.name}. Convert the argument to a "
            "float (`2.0` instead of `2`, `x.astype(float)`), choose another argument "
            "with argnums, or set allow_int=True."
        )


def _check_grad_output(name: str, holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{name} with holomorphic=True requires outputs with complex dtype, but "
                f"got {dtype.name}."
            )
    elif dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name}. For holomorphic differentiation, pass "
            "holomorphic=True. For functions with integer or complex outputs, use "
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
        raise ValueError("reduce_axes must be empty")
    check_callable(fun, "linear_transpose")
    signature = CallSignature(fun, NoOptions)
    bound = signature.bind(primals, {})
    in_avals = api_util.abstract_leaf(signature, bound)
    for aval in in_avals:
        if not dtypes.issubdtype(aval.dtype, np.inexact) and not dtypes.is_float0(
            aval.to_tangent_aval().dtype
        ):
            raise TypeError(f"linear_transpose cannot transpose in {aval.str_short()}")
    flat, result = api_util.flatten_function(signature, bound)
    jaxpr, consts = partial_eval.trace_to_jaxpr(
        flat, in_avals, signature.debug_info(bound, "linear_transpose")
    )
    in_tree = tree_structure(primals)
    out_avals = jaxpr.out_avals

    def transposed(cotangent: Any) -> Any:
        cotangents, tree = tree_flatten(cotangent)
        if tree != result.tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {result.tree} "
                f"but got {tree}"
            )
        for ct, aval in zip(cotangents, out_avals):
            actual = get_aval(ct)
            if (actual.shape, actual.dtype) != (aval.shape, aval.dtype):
                raise TypeError(
                    "linear_transpose cotangent does not match function output: "
                    f"expected {aval.str_short()}, got {actual.str_short()}"
                )
        answers = ad.vjp(jaxpr, consts, [True] * len(out_avals), in_avals, cotangents)
        return tree_unflatten(in_tree, [instantiate(ct) for ct in answers])

    return transposed


# ----------------------------------------------------------------------------------
# Jacobians
# ----------------------------------------------------------------------------------


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """A function that returns the Jacobian of `fun`, one column at a time (forward).

    The Jacobian of an output of shape `s` in an argument of shape `t` has shape `s + t`.
    Best for more outputs than inputs. Arguments as in `grad`.
    """
    check_callable(fun, "jacfwd")
    numbers = argnums_tuple(argnums, "argnums")
    single = not isinstance(argnums, (tuple, list))

    @functools.wraps(fun)
    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        dynamic, partial_fun = _split_arguments(fun, numbers, args, kwargs)
        for leaf in tree_leaves(dynamic):
            _check_jacfwd_input(holomorphic, leaf)
        primals = dynamic[0] if single else dynamic

        def push(tangent: Any) -> Any:
            tangents = (tangent,) if single else tangent
            return jvp(partial_fun, dynamic, tangents, has_aux=has_aux)

        out_axes = (None, -1, None) if has_aux else (None, -1)
        value, columns, *aux = vmap(push, out_axes=out_axes)(_standard_basis(primals))
        for leaf in tree_leaves(value):
            _check_jacfwd_output(holomorphic, leaf)
        jacobian = tree_map(
            lambda y, jac: _unravel(primals, -1, y, jac), value, columns
        )
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacobian_f


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """A function that returns the Jacobian of `fun`, one row at a time (reverse).

    The Jacobian of an output of shape `s` in an argument of shape `t` has shape `s + t`.
    Best for more inputs than outputs. Arguments as in `grad`.
    """
    check_callable(fun, "jacrev")
    numbers = argnums_tuple(argnums, "argnums")
    single = not isinstance(argnums, (tuple, list))

    @functools.wraps(fun)
    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        dynamic, partial_fun = _split_arguments(fun, numbers, args, kwargs)
        for leaf in tree_leaves(dynamic):
            _check_grad_input("jacrev", holomorphic, allow_int, leaf)
        value, pullback, *aux = vjp(partial_fun, *dynamic, has_aux=has_aux)
        for leaf in tree_leaves(value):
            _check_grad_output("jacrev", holomorphic, leaf)
        rows = vmap(pullback)(_standard_basis(value))
        rows = rows[0] if single else rows
        example = dynamic[0] if single else dynamic
        by_input = tree_map(lambda x, jac: _unravel(value, 0, x, jac), example, rows)
        jacobian = tree_transpose(tree_structure(example), tree_structure(value), by_input)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacobian_f


jacobian = jacrev


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable:
    """A function that returns the matrix of second derivatives of `fun`.

    Forward over reverse: `jacfwd(jacrev(fun))`. For a scalar function of an argument of
    shape `t` it has shape `t + t`.
    """
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux=has_aux, holomorphic=holomorphic)


def _check_jacfwd_input(holomorphic: bool, x: Any) -> None:
    api_util.check_arg(x, "jacfwd")
    dtype = get_aval(x).dtype
    wanted = np.complexfloating if holomorphic else np.floating
    if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, wanted):
        kind = "complex" if holomorphic else "real"
        raise TypeError(
            f"jacfwd requires {kind}-valued inputs (input dtype that is a sub-dtype of "
            f"np.{wanted.__name__}), but got {dtype.name}. Convert the argument, pass "
            "holomorphic=True for complex inputs, or use minijax.jvp directly."
        )


def _check_jacfwd_output(holomorphic: bool, x: Any) -> None:
    dtype = get_aval(x).dtype
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            "jacfwd with holomorphic=True requires outputs with complex dtype, but got "
            f"{dtype.name}."
        )


def _standard_basis(tree: Any) -> Any:
    """The unit vectors of the space of a tree, stacked along a new first axis."""
    leaves = tree_leaves(tree)
    size = sum(get_aval(leaf).size for leaf in leaves)
    dtype = dtypes.result_type(*leaves)
    identity = shaping.identity_matrix(size, dtype)
    return _unravel(tree, 1, None, identity)


def _unravel(tree: Any, axis: int, example: Any, array: Any) -> Any:
    """An axis of `array` split and reshaped as the leaves of `tree`.

    The parts get the dtype and weak type of `example`, or of their leaf if it is None.
    """
    leaves, treedef = tree_flatten(tree)
    axis = axis % get_aval(array).ndim
    parts = shaping.split(array, [get_aval(leaf).size for leaf in leaves], axis)
    shaped = []
    for leaf, part in zip(leaves, parts):
        aval = get_aval(part)
        full = aval.shape[:axis] + get_aval(leaf).shape + aval.shape[axis + 1 :]
        part = shaping.reshape(part, full)
        wanted = get_aval(leaf if example is None else example)
        if aval.dtype.kind == "c" and wanted.dtype.kind != "c":
            part = complex_numbers.real(part)
        # Given a sharding, the conversion stands there even when it changes nothing.
        sharding = PartitionSpec(*[None] * len(full)) if example is None else None
        shaped.append(
            casting.convert_element_type_to(
                part, wanted.dtype, wanted.weak_type, sharding=sharding
            )
        )
    return tree_unflatten(treedef, shaped)


# ----------------------------------------------------------------------------------
# vmap
# ----------------------------------------------------------------------------------


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable:
    """`fun` for one example becomes a function for a batch of them.

    Args:
      fun: the function of one example.
      in_axes: for each positional argument (or for all) the axis over which it is
        batched, None where it is shared; may be a tree prefix of the argument. Negative
        axes count from the end.
      out_axes: where the batch axis of the results goes; a tree prefix of the result.
      axis_name: a name for the axis, for collectives such as `lax.psum` inside `fun`.
      axis_size: the size of the batch, needed when nothing is batched.
      spmd_axis_name: must be None.

    Keyword arguments are batched over their first axis.

    Raises:
      ValueError: sizes that disagree (naming the arguments), axes out of range, trees
        that do not fit.
      TypeError: `in_axes` or `out_axes` that are no axes.
    """
    check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or _is_axis(in_axes) or isinstance(in_axes, tuple)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to "
            f"the positional arguments passed to the function, but got {in_axes}."
        )
    for axes, name in ((in_axes, "in_axes"), (out_axes, "out_axes")):
        for leaf in tree_leaves(axes):
            if not _is_axis(leaf):
                raise TypeError(
                    f"vmap {name} must be an int, None, or (nested) container with "
                    f"those types as leaves, but got {axes}."
                )
    if spmd_axis_name is not None:
        raise ValueError("vmap does not take spmd_axis_name here")

    @functools.wraps(fun)
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding "
                "to the positional arguments passed to the function, but got "
                f"len(in_axes)={len(in_axes)}, len(args)={len(args)}"
            )
        leaves, in_tree = tree_flatten((args, kwargs))
        for leaf in leaves:
            api_util.check_arg(leaf, "vmap")
        dims = _flat_axes("vmap in_axes", in_tree, in_axes, args, kwargs)
        dims = _normalized(leaves, dims)
        size = _batch_size(fun, args, kwargs, leaves, dims, axis_size)
        axis_data = AxisData(no_axis_name if axis_name is None else axis_name, size)
        out_tree: Any = None

        def flat(*flat_args: Any) -> list[Any]:
            nonlocal out_tree
            inner_args, inner_kwargs = tree_unflatten(in_tree, flat_args)
            answer = fun(*inner_args, **inner_kwargs)
            outputs, out_tree = tree_flatten(answer)
            api_util.check_outputs(outputs, out_tree, api_util.fun_name(fun), "vmap")
            return outputs

        outputs, out_dims = batching.batch(flat, axis_data, leaves, dims)
        wanted = _flat_out_axes(out_tree, out_axes)
        moved = [
            _move_output(size, output, dim, target)
            for output, dim, target in zip(outputs, out_dims, wanted)
        ]
        return tree_unflatten(out_tree, moved)

    return vmap_f


def _is_axis(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _flat_axes(name: str, tree: Any, in_axes: Any, args: tuple, kwargs: dict) -> list:
    try:
        return broadcast_prefix_to_treedef((in_axes, 0), tree)
    except ValueError:
        pass
    for error in prefix_errors(in_axes, args):
        raise error(name) from None
    raise ValueError(
        f"{name} specification must be a tree prefix of the corresponding value, got "
        f"{in_axes} for {tree}"
    )


def _flat_out_axes(out_tree: Any, out_axes: Any) -> list:
    try:
        return broadcast_prefix_to_treedef(out_axes, out_tree)
    except ValueError:
        pass
    placeholder = tree_unflatten(out_tree, [object()] * out_tree.num_leaves)
    for error in prefix_errors(out_axes, placeholder):
        raise error("vmap out_axes") from None
    raise ValueError(
        "vmap out_axes specification must be a tree prefix of the corresponding value, "
        f"got {out_axes} for {out_tree}"
    )


def _normalized(leaves: Sequence[Any], dims: Sequence[Any]) -> list[int | None]:
    """Axes counted from the front; ValueError for one that the leaf does not have."""
    answer: list[int | None] = []
    for leaf, dim in zip(leaves, dims):
        if dim is None:
            answer.append(None)
            continue
        aval = get_aval(leaf)
        if not -aval.ndim <= dim < aval.ndim:
            needed = dim + 1 if dim >= 0 else -dim
            raise ValueError(
                f"vmap was requested to map its argument along axis {dim}, which implies "
                f"that its rank should be at least {needed}, but is only {aval.ndim} "
                f"(its shape is {aval.shape})"
            )
        answer.append(int(dim) % aval.ndim)
    return answer


def _batch_size(
    fun: Callable,
    args: tuple,
    kwargs: dict,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    axis_size: int | None,
) -> int:
    """The size of the batch; ValueError, naming the arguments, when sizes differ."""
    sizes = [
        get_aval(leaf).shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None
    ]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes or axis_size must be "
            "specified"
        )
    if all(size == sizes[0] for size in sizes):
        return int(sizes[0])
    signature = CallSignature(fun, NoOptions)
    names = signature.leaf_names(signature.bind(args, kwargs))
    lines = []
    if axis_size is not None:
        lines.append(f"  * the `axis_size` argument was {axis_size};")
    groups: dict[int, list[str]] = {}
    for name, leaf, dim in zip(names, leaves, dims):
        if dim is not None:
            aval = get_aval(leaf)
            text = f"axis {dim} of argument {name} of type {aval.str_short()}"
            groups.setdefault(aval.shape[dim], []).append(text)
    for size, texts in sorted(groups.items(), key=lambda item: -len(item[1])):
        if len(texts) == 1:
            lines.append(f"  * one axis had size {size}: {texts[0]};")
        else:
            lines.append(
                f"  * {len(texts)} axes had size {size}, e.g. {texts[0]} and {texts[1]};"
            )
    from minijax import errors

    raise errors.with_facts(
        ValueError(
            "vmap got inconsistent sizes for array axes to be mapped:\n"
            + "\n".join(lines)[:-1]
            + ".\nBatched axes must have one size; share an argument with None in in_axes."
        ),
        rule="batched axes have one size",
    )


def _move_output(size: int, output: Any, dim: int | None, target: Any) -> Any:
    from minijax.rules import match_axis

    if target is None:
        if dim is not None:
            raise ValueError(
                f"at vmap out_axes, got axis spec None but output was batched on axis "
                f"{dim}. The results differ from example to example: give them an axis."
            )
        return output
    rank = get_aval(output).ndim + (dim is None)
    if not -rank <= target < rank:
        raise ValueError(
            f"vmap out_axes asks for axis {target}, but the batched output has only "
            f"{rank} dimensions"
        )
    return match_axis(size, output, dim, int(target) % rank)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun`, with a name for its operations in compiled programs and profiles."""
    label = api_util.fun_name(fun) if name is None else name
    return source_info.named_scope(label)(fun)


# ----------------------------------------------------------------------------------
# Devices and waiting
# ----------------------------------------------------------------------------------


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """The arrays of a tree, on a device: the default one, uncommitted, if none is given.

    Args:
      x: a tree of arrays, NumPy arrays and numbers.
      device: a `Device` or a sharding of one device; the arrays then insist on it.
    """
    return tree_map(lambda leaf: dispatch.device_put(leaf, device), x)


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays on the host."""
    return tree_map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x
    )


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a tree have their values; returns the tree."""
    for leaf in tree_leaves(x):
        if type(leaf) is Array:
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Begin copying all arrays of a tree to the host; returns the tree."""
    for leaf in tree_leaves(x):
        if type(leaf) is Array:
            leaf.copy_to_host_async()
    return x


