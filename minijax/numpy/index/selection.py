"""Choosing among values: `where`, `select`, `clip` and their kin.

In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arraylike, promotion
from minijax.numpy.reduce import counting, reducing, reductions, running
from minijax.numpy.shapes import creation, diagonals, joining, sorting, vectorizing
from minijax.numpy.shapes.broadcasting import _where, broadcast_arrays
from minijax.numpy.shapes.shaping import expand_dims, moveaxis, ravel

# --------------------------------------------------------------------------
# Element by element


def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """`x` where `condition` holds, `y` elsewhere; all three are broadcast together.

    The dtype is the promoted one of `x` and `y`. Both branches are computed, so a NaN
    in the one not chosen still spoils a gradient: choose safe arguments first. Called
    with `condition` alone it is `nonzero`, with its `size` and `fill_value`.

    Raises TypeError when only one of `x` and `y` is given.
    """
    if x is None and y is None:
        arraylike.check_arraylike("where", condition)
        return counting.nonzero(condition, size=size, fill_value=fill_value)
    arraylike.check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    return _where(condition, x, y)


def select(
    condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0
) -> Array:
    """From the first choice whose condition holds; `default` where none does.

    The dtype is the promoted one of all choices and `default`. Raises ValueError for
    empty lists and for lists of different lengths.
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            "condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})"
        )
    if not condlist:
        raise ValueError("condlist must be non-empty")
    arraylike.check_arraylike("select", *condlist, *choicelist, default)
    conditions = [creation.asarray(condition) for condition in condlist]
    choices = [creation.asarray(choice) for choice in choicelist]
    choices = promotion.promote_dtypes(creation.asarray(default), *choices)
    # "None before me held" is a condition too: argmax finds the first that is true.
    table = joining.stack(broadcast_arrays(False, *conditions))
    table = lax.convert_element_type(table, np.bool_)
    chosen = reductions.argmax(table, axis=0)
    return lax.select_n(*broadcast_arrays(chosen, *choices))


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Element by element from `choices[a]`, all of them broadcast together.

    Out of bounds, `mode` "wrap" counts on from zero and "clip" stays at the ends;
    "raise" needs concrete indices. Raises ValueError for an index out of bounds and for
    indices that are not integers.
    """
    reducing.refuse_out("choose", out)
    a, *choices = arraylike.ensure_arraylike_tuple("choose", (a, *choices))
    if not dtypes.issubdtype(a.dtype, np.integer):
        raise ValueError("`a` array must be integer typed")
    count = len(choices)
    names = "jnp.choose", "choice", "'raise', 'wrap', or 'clip'"
    index = counting.in_bounds(*names, a, count, mode)
    index, *choices = broadcast_arrays(index, *choices)
    table = creation.array(choices)
    return table[(index, *diagonals.indices(index.shape, sparse=True))]


def piecewise(
    x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any
) -> Array:
    """`x` through a function, or replaced by a constant, chosen by conditions.

    Where several conditions hold the last one counts; where none does, the result is
    zero or, if `funclist` has one entry more, that entry. Functions are applied to one
    element at a time, under `vmap`. Raises ValueError when the counts do not fit.
    """
    array = arraylike.ensure_arraylike("piecewise", x)
    conditions, functions = len(condlist), len(funclist)
    if functions == conditions + 1:
        entries = [funclist[-1], *funclist[:-1]]
    elif functions == conditions:
        entries = [0, *funclist]
    else:
        raise ValueError(
            f"with {conditions} condition(s), either {conditions} or {conditions + 1} "
            f"functions are expected; got {functions}"
        )
    constants = {i: entry for i, entry in enumerate(entries) if not callable(entry)}
    callables = {i: entry for i, entry in enumerate(entries) if callable(entry)}
    condlist = creation.asarray(condlist, dtype=bool)
    return _piecewise(
        array, condlist, constants, frozenset(callables.items()), *args, **kw
    )


@jit(static_argnames=["funcs"])
def _piecewise(
    x: Array,
    condlist: Array,
    consts: dict[int, Any],
    funcs: frozenset[tuple[int, Callable[..., Any]]],
    *args: Any,
    **kw: Any,
) -> Array:
    by_position = dict(funcs)
    first_row = creation.zeros_like(condlist[:1])
    counts = running.cumsum(joining.concatenate([first_row, condlist], 0), 0)
    chosen = reductions.argmax(counts, 0)

    def branch(position: int) -> Callable[[Array], Array]:
        if position in by_position:
            function = by_position[position]
            return lambda v: lax.convert_element_type(function(v, *args, **kw), x.dtype)
        constant = consts[position]
        return lambda v: creation.array(constant, dtype=x.dtype)

    branches = [branch(position) for position in range(len(condlist) + 1)]
    return vectorizing.vectorize(lax.switch, excluded=(1,))(chosen, branches, x)


# --------------------------------------------------------------------------
# By mask


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """The slices of `a` along `axis` where `condition` holds.

    Without an axis, `a` is flattened. Under `jit`, give the result's `size`; what is
    left over is filled with `fill_value`. Raises ValueError for a condition that is not
    one-dimensional, or true out of bounds.
    """
    reducing.refuse_out("compress", out)
    condition, array, fill = arraylike.ensure_arraylike(
        "compress", condition, a, fill_value
    )
    condition = lax.convert_element_type(condition, np.bool_)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        axis = 0
        array = ravel(array)
    else:
        array = moveaxis(array, axis, 0)
    length = array.shape[0]
    condition, beyond = condition[:length], condition[length:]
    array = array[: condition.shape[0]]
    if size is None:
        if reductions.any(beyond):
            raise ValueError("condition contains entries that are out of bounds")
        result = array[condition]
    elif not 0 <= size <= array.shape[0]:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; "
            f"got {size=} for a.shape[axis]={array.shape[0]}"
        )
    else:
        mask = expand_dims(condition, range(1, array.ndim))
        fill = creation.array(fill, dtype=array.dtype)
        array = where(mask, array, fill)
        order = sorting.argsort(condition, stable=True, descending=True)
        result = array[order][:size]
    return moveaxis(result, 0, axis)


def extract(
    condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    """The elements of `arr` where `condition` holds, both flattened."""
    arraylike.check_arraylike("extract", condition, arr, fill_value)
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)
