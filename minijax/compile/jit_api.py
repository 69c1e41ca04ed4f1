"""jit with all its options, and what else looks at programs: make_jaxpr, eval_shape.

In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from minijax.compile.compiler_options import check_options
from minijax.compile.titles import entitle, title_of
from minijax.core import api, errors, runtime, signatures
from minijax.core import jit as pjit
from minijax.core.errors import api_boundary
from minijax.core.events import Hook
from minijax.core.jit import JitFunction
from minijax.core.signatures import JitOptions, argnums_tuple, check_callable, wraps
from minijax.core.trees import tree_unflatten
from minijax.support import user_source
from minijax.transforms import differentiation
from minijax.values.named_axes import extend_axis_env
from minijax.values.ref_avals import ShapeDtypeStruct

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
      in_shardings: how the arguments are cut over devices: a sharding, a
        `PartitionSpec` for the mesh in use, or None where the arguments say it; or a
        tree of these that is a prefix of the arguments. Arguments that are
        not committed are moved there. A `Format` says also in which layout they lie in
        memory (`Layout.AUTO`: the compiler chooses); it holds where the function is
        called by itself, not in another transformation.
      out_shardings: the same for the results; None lets the compiler choose.
      device, backend: the one device on which the function runs, or a platform whose
        first device that is; a call with arrays moves them there, and one that is
        traced does not. Deprecated: use `device_put`.
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
    if device is not None or backend is not None:
        if in_shardings is not None or out_shardings is not None or device and backend:
            raise errors.value_error(
                "jit takes one of device, backend, and in_shardings with out_shardings;"
                f" got device={device}, backend={backend}. Leave the others out."
            )
        warnings.warn(
            "backend and device argument on jit is deprecated: a program runs where "
            "its arguments are. Move them: `device_put(x, device)`.",
            DeprecationWarning,
            stacklevel=2,
        )
        device = device or runtime.devices(backend)[0]
    jitting: Callable[[Callable], JitFunction] = functools.partial(
        pjit.jit,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=argnums_tuple(donate_argnums, "donate_argnums"),
        donate_argnames=signatures.argnames_tuple(donate_argnames, "donate_argnames"),
        keep_unused=bool(keep_unused),
        inline=bool(inline),
        compiler_options=tuple(sorted(check_options(compiler_options).items())),
    )
    if in_shardings is not None or out_shardings is not None or device is not None:
        shardings = in_shardings, out_shardings, device
        jitting = functools.partial(_sharded, jitting, shardings)
    return (
        functools.partial(_checked, jitting) if fun is None else _checked(jitting, fun)
    )


def _sharded(plain: Callable, shardings: tuple, fun: Callable) -> JitFunction:
    return jit_with_shardings.run(fun, shardings, plain(fun)._options)


@Hook
def jit_with_shardings(
    fun: Callable, shardings: tuple[Any, Any, Any], options: Any
) -> JitFunction:
    """A jitted function with shardings of arguments and results, or on a device.

    `programs/sharding` attaches it.
    """
    raise NotImplementedError("`import minijax` attaches the shardings of jit.")


def _checked(jitting: Callable, fun: Callable) -> JitFunction:
    """The jitted function; ValueError for arguments both static and donated."""
    jitted = jitting(fun)
    signature, options = jitted._signature, jitted._options
    shared = set(signature.static_nums) & set(signature.donate_nums)
    if shared:
        raise errors.value_error(
            f"jitted function has static_argnums={options.static_argnums} and "
            f"donate_argnums={options.donate_argnums}, which share {sorted(shared)}: a "
            "static argument is no array and cannot be donated."
        )
    return jitted


def clear_caches() -> None:
    """Forget every traced and compiled program; they are made again when needed."""
    for caches in list(pjit.all_caches):
        caches.clear()


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
        positions = api.positions_of(numbers, args)
        dynamic = [args[position] for position in positions]
        partial_fun = api.function_of(positions, fun, args, kwargs)
        return differentiation.vjp(partial_fun, *dynamic, has_aux=has_aux)

    def bwd(residuals: Callable, cotangent: Any) -> Any:
        answers = residuals(cotangent)
        return answers if isinstance(argnums, (tuple, list)) else answers[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


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
    title = title_of(fun)
    titled = isinstance(title, str) and not title.isidentifier()

    @api_boundary
    @wraps(fun)
    def jaxpr_maker(*args: Any, **kwargs: Any) -> Any:
        with extend_axis_env(() if axis_env is None else axis_env):
            traced, _ = jitted.trace_call(args, kwargs)
        closed = pjit.with_outer_constants(traced)
        if titled:
            entitle(closed.jaxpr, title)
        if not return_shape:
            return closed
        shapes = list(map(ShapeDtypeStruct.of, closed.out_avals))
        return closed, tree_unflatten(traced.out_tree, shapes)

    jaxpr_maker.__module__ = "minijax"
    return jaxpr_maker


@api_boundary
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing anything.

    Returns the result's tree with a `ShapeDtypeStruct` for each array. Arguments may be
    `ShapeDtypeStruct`s themselves. Raises what tracing `fun` raises.
    """
    check_callable(fun, "eval_shape")
    traced, _ = JitFunction(fun, JitOptions()).trace_call(args, kwargs)
    shapes = list(map(ShapeDtypeStruct.of, traced.closed.out_avals))
    return tree_unflatten(traced.out_tree, shapes)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun`, with a name for its operations in compiled programs and profiles."""
    check_callable(fun, "named_call")
    label = signatures.fun_name(fun) if name is None else name
    return user_source.named_scope(label)(fun)  # type: ignore[operator]
