"""Observing a running program: the primitives of debug.callback and debug.print.

A debug callback is a Python function that a program calls and that returns nothing. It
only observes values, so it goes along with every transformation of the program, where
an io callback is often refused:

- `jvp` and `grad` call it with the values alone: once, in the forward pass. In a
  function that `checkpoint` computes again it is called again, since so it happened.
- `vmap` calls it once for each example; in order, since the calls stand in the program
  one after the other.
- Its effect, `Debug`, is allowed everywhere: in loops and branches, in functions with
  custom derivatives, in checkpointed ones. It keeps the equation from being dead code.
- Unordered calls come in any order, and may come after the function has returned:
  `effects_barrier()` waits. With `ordered=True` the effect is `OrderedDebug`, which has
  a token (`compile/tokens.py`).

Outside of all transformations there is no program, and the function is simply called.

`debug_print` is the same with the format string in the equation instead of a function:
what is printed can be read in the jaxpr. Arguments that are no arrays (strings, None)
cannot be operands; they are kept in the parameter `static_args`, by position among the
leaves. NumPy's print options are those of the moment when the equation is written.

In JAX: `jax/_src/debugging.py`.
"""

from __future__ import annotations

import copy
import functools
import logging
import string
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.compile.placing import device_put
from minijax.core import effects, rules, source_info
from minijax.core.events import enter
from minijax.core.language import Primitive, register, shaped_abstractify
from minijax.core.signatures import check_functions
from minijax.core.trees import checked, tree_flatten, tree_unflatten
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.shape import slicing
from minijax.programs.callbacks.callback import emit_python_callback
from minijax.transforms.rematerialize import split_rules

logger = logging.getLogger(__name__)


class DebugEffect(effects.Effect):
    """A debug callback observes a value."""


class OrderedDebugEffect(effects.Effect):
    """A debug callback observes a value, in the order of the program."""


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()

effects.ordered_effects.add_type(OrderedDebugEffect)
for _allowing in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.remat_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.partial_eval_kept_effects,
):
    _allowing.add_type(DebugEffect, OrderedDebugEffect)


# ----------------------------------------------------------------------------------
# What both primitives have in common
# ----------------------------------------------------------------------------------


def effect_of(ordered: bool) -> effects.Effect:
    return ordered_debug_effect if ordered else debug_effect


def _debug_primitive(name: str, purpose: str, call_of: Callable) -> Primitive:
    """A primitive that passes values to Python and returns nothing.

    `call_of(**params)` gives the flat function and the effect.
    """
    primitive = register(Primitive(name, multiple_results=True))
    primitive.cache_types = False
    primitive.without("meaning", "it has no results")

    @primitive.def_effectful_abstract_eval
    def debug_type(*avals, **params) -> tuple:
        return [], frozenset({call_of(**params)[1]})

    @primitive.def_impl
    def debug_now(*args, **params) -> list:
        call_of(**params)[0](*(device_put(arg) for arg in args))
        return []

    @primitive.def_lowering
    def debug_lowering(ctx, *operands, **params) -> list[Any]:
        function, effect = call_of(**params)
        return emit_python_callback(
            ctx, function, effect, operands, purpose=purpose, has_side_effect=True
        )

    rules.def_zero_jvp(primitive)

    @primitive.def_transpose
    def transpose(cts, *args, **params) -> list:
        return [None] * len(args)

    @primitive.def_batch
    def batch(axis_data, args, dims, **params) -> tuple:
        for index in range(axis_data.size):
            primitive.bind(
                *(
                    x
                    if dim is rules.not_mapped
                    else slicing.index_in_dim(x, index, axis=dim, keepdims=False)
                    for x, dim in zip(args, dims)
                ),
                **params,
            )
        return [], []

    def partial_eval_custom(saveable, unknown, inst, eqn) -> tuple:
        """Run in each part that has all values; save no value for it alone."""
        if any(unknown):
            residuals = [v for v, there in zip(eqn.invars, inst) if not there]
            return None, eqn, [], [], residuals
        avals = [v.aval for v in eqn.invars]
        if saveable(primitive, *avals, **eqn.params) and not all(inst):
            return eqn, None, [], [], []
        return eqn, eqn, [], [], []

    def discharge(discharged, *args, **params) -> tuple[list, list]:
        return [None] * len(args), primitive.bind(*args, **params)

    enter(split_rules, primitive, partial_eval_custom)
    enter(discharge_rules, primitive, discharge)
    return primitive


# ----------------------------------------------------------------------------------
# debug_callback
# ----------------------------------------------------------------------------------

debug_callback_p = _debug_primitive(
    "debug_callback", "debug.callback", lambda callback, effect, **_: (callback, effect)
)


def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function while a program runs, to look at its values.

    Args:
      callback: called as `callback(*args, **kwargs)`; what it returns is ignored. None:
        a function is returned that takes the callback and its arguments:
        `debug.callback(ordered=True)(callback, x)`, which leaves all names to `kwargs`.
      *args: trees. Arrays come as Arrays with their values, other leaves as they are.
      ordered: whether these calls, and ordered prints, happen in the program's order.
      partitioned: on several devices, whether each calls with its part of the arrays.
      **kwargs: trees, by name.

    Raises:
      TypeError: when the callback cannot be called; for arguments without a callback.
    """

    def call(callback: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        check_functions("debug.callback", callback=callback)
        in_tree, dynamic, static = split_arguments(args, kwargs)
        debug_callback_p.bind(
            *dynamic,
            callback=_flat_callback(callback, in_tree, static),
            effect=effect_of(ordered),
            partitioned=partitioned,
        )

    return _now_or_later("debug_callback", call, callback, args, kwargs)


def _now_or_later(name: str, call: Callable, first: Any, args: Any, kwargs: Any) -> Any:
    """Call now; without a first argument, return the function to call.

    In that two-call form, TypeError for arguments in the first call.
    """
    if first is not None:
        return call(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(
            f"{name} received unexpected arguments in the two-call form: "
            f"{args=} {kwargs=}. Pass them in the second call."
        )
    return call


def split_arguments(args: tuple, kwargs: dict) -> tuple[Any, list, dict[int, Any]]:
    """(the arguments' tree, the leaves that are arrays, the others by position)."""
    leaves, in_tree = tree_flatten((args, kwargs))
    dynamic, static = [], {}
    for position, leaf in enumerate(leaves):
        try:
            shaped_abstractify(leaf)
        except TypeError:
            static[position] = leaf
        else:
            dynamic.append(leaf)
    return in_tree, dynamic, static


def _flat_callback(
    callback: Callable[..., None], in_tree: Any, static: dict[int, Any]
) -> Callable[..., list]:
    """The user's function as one of the leaves that are arrays."""

    @functools.wraps(callback, updated=())
    def flat(*dynamic: Any) -> list:
        given = iter(dynamic)
        count = len(static) + len(dynamic)
        leaves = [static[i] if i in static else next(given) for i in range(count)]
        args, kwargs = tree_unflatten(in_tree, leaves)
        callback(*args, **kwargs)
        return []

    return flat


# ----------------------------------------------------------------------------------
# debug_print
# ----------------------------------------------------------------------------------


def _printer(
    *,
    fmt: str,
    in_tree: Any,
    static_args: tuple,
    np_printoptions: tuple,
    has_placeholders: bool,
    logging_record: Any,
    ordered: bool,
    **_: Any,
) -> tuple[Callable[..., list], effects.Effect]:
    """The function that an equation stands for, and its effect."""

    def show(*args: Any, **kwargs: Any) -> None:
        if has_placeholders:
            with np.printoptions(**dict(np_printoptions)):
                message = fmt.format(*args, **kwargs)
        else:
            message = " ".join([fmt, *map(str, args)])
        if logging_record is None:
            sys.stdout.write(message + "\n")
            return
        record = copy.copy(logging_record)
        record.msg = message
        logger.handle(record)

    return _flat_callback(show, in_tree, dict(static_args)), effect_of(ordered)


debug_print_p = _debug_primitive("debug_print", "debug.print", _printer)


class _FormatChecker(string.Formatter):
    """Checks that a format string and its arguments match."""

    def format_field(self, value: Any, format_spec: str) -> str:
        # Values are not there yet: nothing is formatted.
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [arg for index, arg in enumerate(args) if index not in used_args]
        unused_names = [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(
                f"Unused positional arguments to `jax.debug.print`: {unused}. The "
                "format string needs a {} for each."
            )
        if unused_names:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {unused_names}. You "
                'may be passing an f-string (i.e, `f"{x}"`) into `jax.debug.print` and '
                "instead should pass in a regular string."
            )


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values while a program runs: `debug.print("x is {}, y is {y}", x, y=y)`.

    Args:
      fmt: a format string, filled as by `fmt.format(*args, **kwargs)` when the values
        are there; no f-string, which would be filled with tracers. None: a function is
        returned that takes the string and the arguments:
        `debug.print(ordered=True)("x is {x}", x=x)`.
      *args: arrays and anything else.
      ordered: whether these prints, and ordered callbacks, come in the program's order.
      partitioned: on several devices, whether each prints its part of the arrays.
      skip_format_check: do not ask whether string and arguments belong together. A
        string without `{}` is then printed before the arguments.
      **kwargs: arrays and anything else, by name.

    Raises:
      ValueError: for arguments that the string does not use.
      KeyError, IndexError: for a place in the string without an argument.
      TypeError: for arguments without a string.
    """

    def show(fmt: str, *args: Any, **kwargs: Any) -> None:
        fmt = checked(fmt, str, "a string as fmt")
        if not skip_format_check:
            _FormatChecker().format(fmt, *args, **kwargs)
        parsed = list(string.Formatter().parse(fmt))
        in_tree, dynamic, static = split_arguments(args, kwargs)
        debug_print_p.bind(
            *dynamic,
            fmt=fmt,
            ordered=ordered,
            partitioned=partitioned,
            in_tree=in_tree,
            static_args=tuple(static.items()),
            np_printoptions=tuple(np.get_printoptions().items()),
            has_placeholders=bool(parsed) and parsed[0][1] is not None,
            logging_record=_logging_record() if _use_logging else None,
        )

    return _now_or_later("debug_print", show, fmt, args, kwargs)


debug_log = functools.partial(debug_print, _use_logging=True)


def _logging_record() -> logging.LogRecord:
    """A log record of the user's line, without a message."""
    frame = source_info.user_frame_now()
    file, line = ("(unknown file)", 0)
    if frame is not None:
        file, line = frame.file_name, frame.start_line
    return logger.makeRecord(logger.name, logging.INFO, file, line, "", (), None)
