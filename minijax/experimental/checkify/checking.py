"""check: a condition that must hold, as an operation of the program.

The primitive `check` takes an `Error` and raises it. Eagerly it does so at once; in a
program that is compiled there is nothing that could raise, so `checkify` must have
turned it into values before. `debug_check` is there only under `checkify`.

In JAX: `jax/_src/checkify.py`, `check_p`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.core import errors, events, language, rules, source_info, trees
from minijax.core.array import Array
from minijax.experimental.checkify import error_values
from minijax.support import traceback_filtering

# ----------------------------------------------------------------------------------
# The primitive: it takes an error, and has no results
# ----------------------------------------------------------------------------------

check_p = language.register(language.Primitive("check", multiple_results=True))
check_p.cache_types = False


@check_p.def_effectful_abstract_eval
def _check_type(*avals, err_tree, debug: bool) -> tuple:
    return [], frozenset(trees.tree_unflatten(err_tree, avals)._pred)


@check_p.def_impl
def _check_impl(*args, err_tree, debug: bool) -> list:
    if debug:
        return []
    exception = trees.tree_unflatten(err_tree, args).get_exception()
    if exception is not None:
        place = source_info.user_frame(exception.traceback_info)
        error = error_values.JaxRuntimeError(str(exception))
        error.facts = {} if place is None else {"born": place}  # type: ignore
        raise error from traceback_filtering.with_python_traceback(
            exception, exception.traceback_info
        )
    return []


@check_p.def_lowering
def _check_lowering(ctx, *operands, err_tree, debug: bool) -> list:
    if debug:
        return []
    raise errors.with_facts(
        ValueError(
            "Cannot abstractly evaluate a checkify.check which was not functionalized. "
            "A compiled program cannot raise: wrap the function in `checkify.checkify` "
            "before `jit`, as in `err, y = jit(checkify(f))(x)`, and call "
            "`err.throw()`."
        ),
        rule="a compiled program cannot raise",
        instead="err, y = jit(checkify(f))(x); err.throw()",
    )


@check_p.def_batch
def _check_batch(axis_data, args, dims, err_tree, debug: bool) -> tuple[list, list]:
    stacked = [rules.batch_at_front(x, d, axis_data) for x, d in zip(args, dims)]
    bind_check(trees.tree_unflatten(err_tree, stacked), debug=debug)
    return [], []


rules.def_zero_jvp(check_p)


def _check_pretty(params: dict[str, Any]) -> dict[str, Any]:
    return {"debug": params["debug"]}


check_p.pretty = _check_pretty
check_p.without("transpose", "it has no results, so it stands in no linear program")


def bind_check(error: error_values.Error, *, debug: bool = False) -> None:
    """Raise the error in the current trace; that of a batch is reduced to one."""
    leaves, tree = trees.tree_flatten(error_values.one_error(error))
    check_p.bind(*leaves, err_tree=tree, debug=debug)


def throw(self: error_values.Error) -> None:
    """Raise `JaxRuntimeError` if there was an error.

    Like `check_error`, it can be functionalized by `checkify` again.
    """
    bind_check(self)


events.add_methods(error_values.Error, {"throw": throw})


# ----------------------------------------------------------------------------------
# What users call
# ----------------------------------------------------------------------------------


def check(
    pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any
) -> None:
    """Demand that `pred` holds; otherwise there is an error with the message `msg`.

        check(x > 0, "{x} must be positive", x=x)

    Outside of all transformations it raises at once. A function that is compiled, or
    stands in a loop, must be functionalized by `checkify`.

    Args:
      pred: a scalar truth value, which may be traced.
      msg: the message, a format string.
      fmt_args, fmt_kwargs: arrays, or trees of arrays, for the format string.
      debug: whether the check is left out where `checkify` is not used.

    Raises:
      JaxRuntimeError: the check failed, eagerly.
      TypeError: `pred` is not a scalar truth value, or an argument is not an array.
      ValueError: compiled without `checkify`.
    """
    _check(pred, msg, debug, fmt_args, fmt_kwargs)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` that is there under `checkify` only, and does nothing elsewhere.

    Args and TypeError as for `check`.
    """
    _check(pred, msg, True, fmt_args, fmt_kwargs)


def check_error(error: error_values.Error) -> None:
    """Raise the error that `error` stands for, if any: the inverse of `checkify`.

    Like `check` it is an operation of the program, and can be functionalized again.
    Raises TypeError when it is given anything but an `Error`.
    """
    if not isinstance(error, error_values.Error):
        raise errors.type_error(
            f"check_error takes an Error as argument, got type {type(error)} instead: "
            "give it the first result of a function that `checkify` made."
        )
    bind_check(error)


def _check(
    pred: Any, msg: str, debug: bool, fmt_args: tuple, fmt_kwargs: dict[str, Any]
) -> None:
    if not _is_scalar_truth(pred):
        name = "debug_check" if debug else "check"
        raise errors.type_error(
            f"{name} takes a scalar pred as argument, got {pred}. Write `jnp.all(...)` "
            "around a condition on an array."
        )
    for arg in trees.tree_leaves((fmt_args, fmt_kwargs)):
        if not isinstance(arg, (Array, np.ndarray)):
            raise errors.type_error(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, "
                f"but got {arg!r} of type {type(arg)}. Put what is static into the "
                "message itself: f'...'."
            )
    here = source_info.current().traceback
    failed = error_values.FailedCheckError(here, msg, *fmt_args, **fmt_kwargs)
    bind_check(
        error_values.assert_func(
            error_values.init_error, jnp.logical_not(pred), failed
        ),
        debug=debug,
    )


def _is_scalar_truth(pred: Any) -> bool:
    if isinstance(pred, bool):
        return True
    if not isinstance(pred, Array):
        return False
    aval = language.get_aval(pred)
    return aval.shape == () and aval.dtype == np.dtype(bool)
