"""The values of a program's arrays, for views that draw them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.language import (
    Atom,
    JaxprEqn,
    Literal,
    eval_trace,
    jaxprs_in_params,
    set_current_trace,
)
from minijax.core.source_info import is_user_filename
from minijax_lab.explain.recording import is_installed

# Arrays of at most so many rows and columns have their numbers shown.
MOST_SHOWN = 32
# Without being asked, only programs of so many equations and numbers are run.
MOST_EQUATIONS = 200
MOST_NUMBERS = 2**22

Values = list[list[float]]


def is_real(aval: Any) -> bool:
    """Whether arrays of a type are real numbers, of which one knows how many."""
    dtype = getattr(aval, "dtype", None)
    if not isinstance(dtype, np.dtype) or not isinstance(aval.size, int):
        return False
    return dtype.kind != "c" and not dtype.names


def is_small(aval: Any) -> bool:
    """Whether arrays of a type are few real numbers."""
    return is_real(aval) and aval.size <= MOST_SHOWN**2


def cheap_inputs(leaves: Sequence[Any]) -> list[np.ndarray] | None:
    """Copies of arguments; None unless all of them are arrays of real numbers with
    values, together not too many."""
    count = 0
    for leaf in leaves:
        if not isinstance(leaf, (Array, np.ndarray, np.generic, int, float)):
            return None
        aval = get_aval(leaf)
        if not is_real(aval):
            return None
        count += aval.size
    return [np.array(leaf) for leaf in leaves] if count <= MOST_NUMBERS else None


def can_run(eqns: Sequence[JaxprEqn]) -> bool:
    """Whether running equations costs little: few, of not too many real numbers,
    without effects, calls of Python and loops of many or unknown length; so in their
    programs too."""
    return numbers_made(eqns) <= MOST_NUMBERS


def numbers_made(eqns: Sequence[JaxprEqn]) -> float:
    """How many numbers equations compute; infinite if they should not be run."""
    count = 0.0 if len(eqns) <= MOST_EQUATIONS else math.inf
    for eqn in eqns:
        turns = eqn.params.get("length", 1)
        many = turns > MOST_EQUATIONS
        if many or eqn.effects or eqn.primitive.name in ("while", "pure_callback"):
            return math.inf
        if not all(is_real(v.aval) for v in eqn.outvars):
            return math.inf
        count += sum(v.aval.size for v in eqn.outvars)
        for jaxpr in jaxprs_in_params(eqn.params):
            count += turns * numbers_made(jaxpr.eqns)
    return count


def why_not(run: Callable[[], None]) -> str:
    """Runs a program of the user; returns what it raised, in a line, or "".

    What the values or the user's own code raise is told in the picture; any other
    exception is a defect of ours, and is raised.
    """
    try:
        run()
    except Exception as error:
        ours = not isinstance(error, (ArithmeticError, RuntimeError, MemoryError))
        traceback = error.__traceback__
        while ours and traceback is not None:
            file = traceback.tb_frame.f_code.co_filename
            ours = is_installed(file) or not is_user_filename(file)
            traceback = traceback.tb_next
        if ours:
            raise
        said = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {said}".removesuffix(": ")
    return ""


def read(atom: Atom, known: dict[Any, Any]) -> Any:
    """The value of an atom."""
    return atom.val if isinstance(atom, Literal) else known[atom]


def compute(eqn: JaxprEqn, known: dict[Any, Any], by_xla: bool = False) -> list[Any]:
    """What an equation computes, which is known then: by its meaning in NumPy, or by
    XLA where it has none or that is asked for."""
    primitive = eqn.primitive
    given = [read(v, known) for v in eqn.invars]
    if by_xla or primitive.meaning is None:
        with set_current_trace(eval_trace):
            out = primitive.rebind(given, eqn.params)
    else:
        types: list[Any] = [v.aval for v in eqn.invars]
        given = [np.asarray(x, aval.dtype) for x, aval in zip(given, types)]
        with np.errstate(all="ignore"):
            out = primitive.meaning(*given, **eqn.params)
    results = list(out) if primitive.multiple_results else [out]
    known.update(zip(eqn.outvars, results))
    return results


def rows_of(value: Any) -> Values:
    """The numbers of an array as rows, to four digits; none of a large one."""
    if not is_small(get_aval(value)):
        return []
    array = np.asarray(value)
    if array.ndim > 2 or max(array.shape, default=1) > MOST_SHOWN or not array.size:
        return []
    return [[float(f"{float(x):.4g}") for x in row] for row in np.atleast_2d(array)]
