"""Functions for kernels that are not array operations: when, loop, multiple_of, sizes.

In JAX: `pallas/helpers.py`, `pallas/utils.py`, `pallas/primitives.py`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, shaping
from minijax.core.rules import elementwise_batch, standard_primitive
from minijax.kernels.memory_spaces import MemoryRef
from minijax.primitives.refs.mutable_arrays import new_ref
from minijax.primitives.shape import broadcasting
from minijax.programs.callbacks import debug_callbacks
from minijax.programs.control_flow import conditionals
from minijax.programs.control_flow.fori_loops import fori_loop
from minijax.support import element_types
from minijax.support.tree_util import tree_map
from minijax.values.concrete import is_concrete
from minijax.values.ref_avals import ShapeDtypeStruct

# ----------------------------------------------------------------------------------
# Branches and loops
# ----------------------------------------------------------------------------------


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """Decorator that calls a function at once, if a condition holds.

    A Python bool is decided now; an array makes a `cond`, whose other branch is empty.
    """

    def decorator(function: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                function()
            return
        conditionals.cond(condition, function, lambda: None)

    return decorator


def loop(
    lower: Any,
    upper: Any,
    *,
    init_carry: Any = None,
    step: Any = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that runs a function for indices from `lower` to `upper`, now.

    Args:
      lower, upper: integers, known or computed; `upper` is not included.
      init_carry: a tree of arrays that the function takes as its second argument and
        returns; without it, the function takes the index alone and returns None.
      step: the distance of indices.
      unroll: as for `lax.fori_loop`.

    Returns:
      a decorator, which returns the last carry.
    """
    for what, bound in (("lower", lower), ("upper", upper), ("step", step)):
        if not dtypes.issubdtype(element_types.result_type(bound), np.integer):
            raise TypeError(
                f"pl.loop takes integers, but {what} is {bound!r}: use `pl.cdiv` or "
                "`//` for whole numbers."
            )
    if is_concrete(step) and int(step) == 0:
        raise ZeroDivisionError("pl.loop with step=0 never ends: give another step.")
    zero: Any = 0
    if not all(is_concrete(x) for x in (lower, upper, step)):
        dtype = element_types.result_type(lower, upper, step)
        lower, upper, step, zero = (
            shaping.convert_element_type(x, dtype) for x in (lower, upper, step, 0)
        )

    def decorator(body: Callable[..., Any]) -> Any:
        def turn(number: Any, carry: Any) -> Any:
            index = lower + number * step
            return body(index) if init_carry is None else body(index, carry)

        count = cdiv(upper - lower, step)
        return fori_loop(zero, count, turn, init_carry, unroll=unroll)

    return decorator


# ----------------------------------------------------------------------------------
# Hints and debugging
# ----------------------------------------------------------------------------------

multiple_of_p = standard_primitive(
    "multiple_of",
    lambda x, *, values: x.shape,
    lambda x, *, values: x.dtype,
    meaning=lambda x, values: x,
)
multiple_of_p.batch = elementwise_batch(multiple_of_p)
multiple_of_p.without("jvp transpose", "it is about integers, without tangents")
multiple_of_p.def_lowering(lambda ctx, x, *, values: x)


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """`x`, with a hint to the compiler: `x` is a multiple of `values`.

    Raises ValueError for numbers that are not positive.
    """
    return multiple_of_p.bind(x, values=positive("pl.multiple_of", values))


def positive(name: str, values: Sequence[int] | int) -> tuple[int, ...]:
    """Returns one or several numbers as a tuple; ValueError unless all are positive."""
    values = (values,) if isinstance(values, int) else tuple(values)
    if not all(isinstance(value, int) and value > 0 for value in values):
        raise ValueError(f"{name} takes positive integers, got {values}.")
    return values


def debug_print(fmt: str, *args: Any) -> None:
    """Print values while a kernel runs.

    Args:
      fmt: words with a `{}` for each value, or without any, then values follow it.
      *args: arrays.
    """
    fields = [field for _, field, *_ in string.Formatter().parse(fmt)]
    has_places = any(field is not None for field in fields)
    if fields.count("") > len(args):
        raise IndexError(
            f"pl.debug_print: {fmt!r} has {fields.count('')} places for values, and "
            f"{len(args)} were given."
        )
    debug_callbacks.debug_print(fmt, *args, skip_format_check=not has_places)


# ----------------------------------------------------------------------------------
# Memory without values
# ----------------------------------------------------------------------------------


def empty_like(x: Any) -> Any:
    """A tree of arrays of the same shapes and dtypes, whose entries are not set."""
    return tree_map(lambda leaf: broadcasting.empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Any:
    """A ref to memory whose entries are not set.

    Args:
      x: memory such as `pltpu.VMEM((8, 128), jnp.float32)`, or a `ShapeDtypeStruct`.
    """
    if not isinstance(x, (MemoryRef, ShapeDtypeStruct)):
        raise ValueError(
            f"empty_ref_like does not support {type(x)}: give memory such as "
            "pltpu.VMEM((8, 128), jnp.float32), or a ShapeDtypeStruct."
        )
    return new_ref(empty_like(x))


# ----------------------------------------------------------------------------------
# Sizes
# ----------------------------------------------------------------------------------


def _is_int(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def cdiv(a: Any, b: Any) -> Any:
    """`a / b`, rounded up: how many blocks of `b` hold `a` elements."""
    if _is_int(a) and _is_int(b):
        return (a + b - 1) // b
    return elementwise.div(a + (b - 1), b)


def align_to(a: Any, alignment: Any) -> Any:
    """The smallest multiple of `alignment` that is not less than `a`."""
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not less than `x`; 1 for 0.

    Raises ValueError for a negative number.
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How far apart neighbours along each axis lie in a row-major array."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides[: len(shape)]))
