"""fori_loop: a loop over whole numbers, as a `scan` or as a `while`.

With bounds that are known when the program is traced the number of steps is known: the
loop is a `scan` without rows, and has a derivative in reverse mode. With bounds that
are known only when the program runs it is a `while`, and has none.

In JAX: `lax/control_flow/loops.py`, `fori_loop`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, errors, language, shaping
from minijax.core.errors import api_boundary
from minijax.core.signatures import check_functions, fun_name
from minijax.core.state import state
from minijax.programs.control_flow import bodies
from minijax.programs.control_flow.scans import scan
from minijax.programs.control_flow.while_loops import while_loop
from minijax.values.concrete import is_concrete
from minijax.values.symbolic_sizes import is_symbolic


@api_boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable,
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """`val = body_fun(i, val)` for i from `lower` up to, not including, `upper`.

    Args:
      lower, upper: integer scalars of one dtype. Known when the program is traced, they
        make a `scan`, which has a derivative in reverse mode; otherwise a `while_loop`.
      body_fun: takes i and the carry, returns a carry of the same tree, shapes and
        dtypes.
      init_val: the first carry, an array or a tree of arrays.
      unroll: how many steps to write out in one turn of the loop, True for all of them;
        only with known bounds.

    Returns:
      the last carry; `init_val` when `upper <= lower`.

    Raises:
      TypeError: `body_fun` is not a function, the bounds have different dtypes, or the
        body returns a carry of another type.
      ValueError: `unroll` is given for bounds that are not known.
    """
    check_functions("lax.fori_loop", body_fun=body_fun)
    lower, upper = (x.__jax_array__() if is_symbolic(x) else x for x in (lower, upper))
    dtype = _dtype(lower, upper)
    bounds = _known(lower, upper)
    if bounds is not None:
        first, last = bounds
        length = max(last - first, 0)
        if state.disable_jit and length == 0:
            return init_val
        (_, result), _ = scan(
            _scan_body(body_fun),
            (first, init_val),
            None,
            length=length,
            unroll=False if unroll is None else unroll,
        )
        return result
    if unroll is not None and unroll is not False and unroll != 1:
        raise errors.value_error(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically "
            "known: pass Python integers."
        )
    lower, upper = (
        x
        if language.get_aval(x).dtype == dtype
        else shaping.convert_element_type(x, dtype)
        for x in (lower, upper)
    )
    start = (lower, upper, init_val)
    return while_loop(_goes_on, _while_body(body_fun), start)[2]


def _dtype(lower, upper) -> Any:
    """The dtype of the counter; a Python integer takes that of the other bound."""
    first, second = language.get_aval(lower), language.get_aval(upper)
    if first.dtype == second.dtype:
        return first.dtype
    signed = [dtypes.issubdtype(a.dtype, np.signedinteger) for a in (first, second)]
    if all(signed) and first.weak_type != second.weak_type:
        return second.dtype if first.weak_type else first.dtype
    raise errors.type_error(
        "lower and upper arguments to fori_loop must have equal types, got "
        f"{first.dtype.name} and {second.dtype.name}"
    )


def _known(lower: Any, upper: Any) -> tuple[int, int] | None:
    """Both bounds as numbers, when they are known."""
    if not (is_concrete(lower) and is_concrete(upper)):
        return None
    try:
        first, last = (int(language.to_concrete_value(x)) for x in (lower, upper))  # type: ignore[arg-type]
        return first, last
    except TypeError:
        return None


def _goes_on(loop: tuple) -> Any:
    i, upper, _ = loop
    return elementwise.lt(i, upper)


def _remembered(make: Callable) -> Callable:
    """One body for one function, so that a loop used twice is traced once."""
    once = language.weakref_lru_cache(make)

    def body(fun: Callable) -> Callable:
        return once(fun) if bodies.can_be_remembered(fun) else make(fun)

    return body


@_remembered
def _scan_body(fun: Callable) -> Callable:
    held = bodies.held_weakly(fun)

    def scanned_fun(carry: tuple, _: None) -> tuple:
        i, x = carry
        return (elementwise.add(i, _one(i)), held()(i, x)), None

    scanned_fun.__name__ = fun_name(fun)
    return scanned_fun


@_remembered
def _while_body(fun: Callable) -> Callable:
    held = bodies.held_weakly(fun)

    def while_body_fun(loop: tuple) -> tuple:
        i, upper, x = loop
        return elementwise.add(i, _one(i)), upper, held()(i, x)

    while_body_fun.__name__ = fun_name(fun)
    return while_body_fun


def _one(i: Any) -> Any:
    return language.numpy_scalar(1, language.get_aval(i).dtype)
