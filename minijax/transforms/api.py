"""The transformations as users call them.

Each function here flattens trees, checks the arguments with messages in whole
sentences, and calls one interpreter. `grad` is `vjp` with the cotangent 1; `jacrev` is
`vmap` of `vjp`; `make_jaxpr` is what `jit` does before compiling.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.compile import api_util, pjit, placing
from minijax.compile.api_util import argnums_tuple, check_callable
from minijax.compile.pjit import JitFunction, JitOptions
from minijax.language.array import Array
from minijax.language.core import AbstractValue, ClosedJaxpr, eval_trace
from minijax.language.more_avals import ShapeDtypeStruct
from minijax.language.named_axes import extend_axis_env
from minijax.primitives.parallel.placement import ArrayCopySemantics, put_arrays
from minijax.support import dtypes, errors, source_info
from minijax.support.errors import api_boundary
from minijax.support.thread_state import state
from minijax.support.tree_util import tree_map
from minijax.support.trees import (
    broadcast_prefix_to_treedef,
    tree_flatten,
    tree_leaves,
    tree_unflatten,
)
from minijax.transforms.differentiation import grad as grad
from minijax.transforms.differentiation import jvp as jvp
from minijax.transforms.differentiation import linear_transpose as linear_transpose
from minijax.transforms.differentiation import linearize as linearize
from minijax.transforms.differentiation import split_arguments
from minijax.transforms.differentiation import value_and_grad as value_and_grad
from minijax.transforms.differentiation import vjp as vjp
from minijax.transforms.jacobians import hessian as hessian
from minijax.transforms.jacobians import jacfwd as jacfwd
from minijax.transforms.jacobians import jacobian as jacobian
from minijax.transforms.jacobians import jacrev as jacrev
from minijax.transforms.vectorization import vmap as vmap

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

    The kind of a call is the tree of its arguments, their shapes, dtypes and weak
    types, and the values of static arguments. Python side effects happen while tracing
    only. Without `fun`, a decorator.

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
    options = JitOptions(
        argnums_tuple(static_argnums, "static_argnums"),
        api_util.argnames_tuple(static_argnames, "static_argnames"),
        argnums_tuple(donate_argnums, "donate_argnums"),
        api_util.argnames_tuple(donate_argnames, "donate_argnames"),
        bool(keep_unused),
        bool(inline),
        tuple(sorted((compiler_options or {}).items())),
    )
    for name, value in (
        ("in_shardings", in_shardings),
        ("out_shardings", out_shardings),
        ("device", device),
        ("backend", backend),
    ):
        if value is not None:
            raise errors.value_error(
                f"jit does not take {name} here: a program runs where its arguments "
                "are. Move them with `device_put` first."
            )
    if fun is None:
        return functools.partial(_jit_with, options)
    return _jit_with(options, fun)


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

    The arguments may be arrays, numbers or `ShapeDtypeStruct`s; only their types
    matter.
    """
    check_callable(fun, "make_jaxpr")
    options = JitOptions(argnums_tuple(static_argnums, "static_argnums"))
    jitted = JitFunction(fun, options)

    @api_boundary
    @functools.wraps(fun)
    def jaxpr_maker(*args: Any, **kwargs: Any) -> Any:
        with extend_axis_env(list(axis_env or ())):
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


def struct_of(aval: AbstractValue) -> ShapeDtypeStruct:
    """Shape and dtype of a type."""
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, sharding=aval.sharding, weak_type=aval.weak_type
    )


@api_boundary
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing anything.

    Returns the result's tree with a `ShapeDtypeStruct` for each array. Arguments may be
    `ShapeDtypeStruct`s themselves. Raises what tracing `fun` raises.
    """
    check_callable(fun, "eval_shape")
    traced, _ = JitFunction(fun, JitOptions()).trace_call(args, kwargs)
    shapes = [struct_of(aval) for aval in traced.closed.out_avals]
    return tree_unflatten(traced.out_tree, shapes)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun`, with a name for its operations in compiled programs and profiles."""
    label = api_util.fun_name(fun) if name is None else name
    return source_info.named_scope(label)(fun)


def fwd_and_bwd(
    fun: Callable,
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable, Callable]:
    """The forward and the backward pass of a function as two functions.

        fwd, bwd = fwd_and_bwd(f, argnums=(0, 1))
        y, residuals = fwd(x, w)
        x_ct, w_ct = bwd(residuals, y_ct)     # compiled once, for all residuals

    Args:
      fun: the function.
      argnums: the argument (or tuple of arguments) to differentiate.
      has_aux: whether `fun` returns a pair `(value, aux)`; `fwd` then returns
        `(value, residuals, aux)`.
      jitted: whether both are jitted.
    """
    check_callable(fun, "fwd_and_bwd")
    numbers = argnums_tuple(argnums, "argnums")

    def fwd(*args: Any, **kwargs: Any) -> Any:
        dynamic, partial_fun = split_arguments(fun, numbers, args, kwargs)
        return vjp(partial_fun, *dynamic, has_aux=has_aux)

    def bwd(residuals: Callable, cotangent: Any) -> Any:
        answers = residuals(cotangent)
        return answers if isinstance(argnums, (tuple, list)) else answers[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


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
    """The arrays of a tree, on a device: the default one, uncommitted, if none is
    given.

    Args:
      x: a tree of arrays, NumPy arrays and numbers.
      device: a `Device` or a sharding of one device, on which the arrays then insist;
        or a `memory.Space` of the device they are on; or a tree of these that is a
        prefix of `x`.
      src: where the arrays come from, for the way back of their gradients.
      donate: whether the arrays may be given away.
      may_alias: False if the result must not share memory with `x`.

    Raises ValueError for another `device`, and TypeError for leaves that are no arrays.
    """
    leaves, tree = tree_flatten(x)
    devices = broadcast_prefix_to_treedef(device, tree)
    if state.trace is eval_trace:
        placed = [placing.device_put(*pair) for pair in zip(leaves, devices)]
        return tree_unflatten(tree, placed)
    for each in devices:
        placing.check_place(each)
    semantics = ArrayCopySemantics.REUSE_INPUT
    if donate:
        semantics = ArrayCopySemantics.DONATE_INPUT
    elif may_alias is False:
        semantics = ArrayCopySemantics.ALWAYS_COPY
    srcs = broadcast_prefix_to_treedef(src, tree)
    return tree_unflatten(tree, put_arrays(leaves, devices, srcs, semantics))


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays on the host; keys stay keys."""

    def on_host(leaf: Any) -> Any:
        if not isinstance(leaf, Array) or isinstance(leaf.dtype, dtypes.ExtendedDType):
            return leaf
        return np.asarray(leaf)

    return tree_map(on_host, x)


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
