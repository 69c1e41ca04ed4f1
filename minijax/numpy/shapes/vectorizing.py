"""`vectorize`: a function of small arrays made to broadcast, by `vmap`.

In JAX: `numpy/vectorize.py`.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.core.signatures import check_functions
from minijax.core.state import state
from minijax.numpy.math.ufunc_api import ufunc
from minijax.numpy.shapes import creation, shaping
from minijax.transforms.vectorization import vmap

CoreDims = tuple[str, ...]

_NAME = r"\w+"
_LIST = rf"(?:{_NAME}(?:,{_NAME})*)?"
_ARGUMENT = rf"\({_LIST}\)"
_ARGUMENTS = rf"{_ARGUMENT}(?:,{_ARGUMENT})*"
_SIGNATURE = rf"^{_ARGUMENTS}->{_ARGUMENTS}$"


def _parse_signature(signature: str) -> tuple[list[CoreDims], list[CoreDims]]:
    """The names of the core dimensions of each argument and of each result."""
    if not isinstance(signature, str) or not re.match(_SIGNATURE, signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    arguments, results = (
        [tuple(re.findall(_NAME, part)) for part in re.findall(_ARGUMENT, side)]
        for side in signature.split("->")
    )
    return arguments, results


def _record_sizes(
    sizes: dict[str, int], shape: tuple[int, ...], names: CoreDims, where: str
) -> None:
    """Note the sizes of named dimensions; raises ValueError when two disagree."""
    lengths = shape[len(shape) - len(names) :]
    for name, length in zip(names, lengths, strict=True):
        known = sizes.setdefault(name, length)
        if known != length:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {length} vs {known} "
                f"{where}"
            )


def _check_results(
    function: Callable[..., Any],
    sizes: dict[str, int],
    expected: list[CoreDims],
    where: str,
) -> Callable[..., Any]:
    """`function`, with the shapes of its results checked against the signature."""

    def checked(*args: Any) -> Any:
        result = function(*args)
        if len(expected) > 1 and not isinstance(result, tuple):
            raise TypeError(
                "output must be a tuple when multiple outputs are expected, got: "
                f"{result!r}\n{where}"
            )
        parts = result if isinstance(result, tuple) else (result,)
        if len(parts) != len(expected):
            raise TypeError(
                f"wrong number of output arguments: expected {len(expected)}, got "
                f"{len(parts)} {where}"
            )
        known = dict(sizes)
        for part, names in zip(parts, expected, strict=True):
            shape = np.shape(part)
            if len(shape) != len(names):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {names} "
                    f"{where}"
                )
            _record_sizes(known, shape, names, where)
        return result

    return checked


def _bind_excluded(
    function: Callable[..., Any],
    excluded: Collection[int | str],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """`function` with its excluded arguments filled in, and the remaining ones."""
    fixed = {i: arg for i, arg in enumerate(args) if i in excluded}
    fixed_kwargs = {name: arg for name, arg in kwargs.items() if name in excluded}

    def remaining(*args: Any, **kwargs: Any) -> Any:
        full = list(args)
        for position, arg in sorted(fixed.items()):
            full.insert(position, arg)
        return function(*full, **kwargs, **fixed_kwargs)

    return (
        remaining,
        [arg for i, arg in enumerate(args) if i not in excluded],
        {name: arg for name, arg in kwargs.items() if name not in excluded},
    )


def _report_rank_promotion(ranks: list[int], shapes: list[Any], where: str) -> None:
    if state.numpy_rank_promotion == "allow" or len(set(ranks)) < 2:
        return
    message = (
        f"operands with shapes {shapes} require rank promotion {where}, and the option "
        f"jax_numpy_rank_promotion is {state.numpy_rank_promotion!r}."
    )
    if state.numpy_rank_promotion == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=4)


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function that maps `pyfunc` over leading axes of its arguments.

    `signature`, such as "(n,m),(m)->(n)", names the axes that `pyfunc` itself handles;
    without one it handles scalars. The axes before those are broadcast together and
    mapped by `vmap`. Arguments in `excluded`, by position or name, are passed on
    untouched. Raises ValueError for a signature that cannot be read or that the
    arguments do not fit.
    """
    check_functions("vectorize", pyfunc=pyfunc)
    if any(not isinstance(entry, (str, int)) for entry in excluded):
        raise TypeError(
            "jax.numpy.vectorize can only exclude integer or string arguments, but "
            f"excluded={excluded!r}"
        )
    if any(isinstance(entry, int) and entry < 0 for entry in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    where = f"on vectorized function with excluded={excluded!r} and {signature=}"

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        function, rest, kwargs = _bind_excluded(pyfunc, excluded, args, kwargs)
        inputs: list[tuple[str, ...]]
        outputs: Any = None
        if signature is None:
            inputs = [()] * len(rest)
        else:
            inputs, outputs = _parse_signature(signature)
        absent = {i for i, arg in enumerate(rest) if arg is None}
        if absent:
            if any(inputs[i] != () for i in absent):
                raise ValueError(
                    f"Cannot pass None at locations {absent} with {signature=}"
                )
            function, rest, _ = _bind_excluded(function, absent, rest, {})
            inputs = [names for i, names in enumerate(inputs) if i not in absent]
        if kwargs:
            function = functools.partial(function, **kwargs)
        return _call_vectorized(function, rest, inputs, outputs, where)

    return wrapped


def _call_vectorized(
    function: Callable[..., Any],
    args: Sequence[Any],
    inputs: list[CoreDims],
    outputs: list[CoreDims] | None,
    where: str,
) -> Any:
    arrays = tuple(map(creation.asarray, args))
    if len(arrays) != len(inputs):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got "
            f"{len(arrays)} {where}"
        )
    sizes: dict[str, int] = {}
    shapes = []
    for array, names in zip(arrays, inputs, strict=True):
        if array.ndim < len(names):
            raise ValueError(
                f"input with shape {array.shape} does not have enough dimensions for "
                f"all core dimensions {names} {where}"
            )
        _record_sizes(sizes, array.shape, names, where)
        shapes.append(array.shape[: array.ndim - len(names)])
    ranks = [len(s) for s, a in zip(shapes, arrays, strict=True) if a.ndim]
    _report_rank_promotion(ranks, [array.shape for array in arrays], where)
    if outputs is not None:
        function = _check_results(function, sizes, outputs, where)

    # Axes of size one are squeezed out, so that vmap needs no broadcasting: along each
    # broadcast axis, counted from the last, an argument is either mapped or it is not.
    squeezed = []
    for array, shape in zip(arrays, shapes, strict=True):
        ones = tuple(i for i, length in enumerate(shape) if length == 1)
        squeezed.append(shaping.squeeze(array, axis=ones))
    rank = len(lax.broadcast_shapes(*shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    unmapped = []
    for axis in reversed(range(rank)):
        in_axes = tuple(None if shape[axis] == 1 else 0 for shape in padded)
        if all(entry is None for entry in in_axes):
            unmapped.append(axis)
        else:
            function = vmap(function, in_axes)
    result = function(*squeezed)
    if not unmapped:
        return result
    if isinstance(result, tuple):
        return tuple(shaping.expand_dims(part, axis=unmapped) for part in result)
    return shaping.expand_dims(result, axis=unmapped)


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None
) -> ufunc:
    """A `ufunc` of a function of scalars; it is mapped over arrays.

    Its `reduce` and `accumulate` go from left to right.
    """
    call = vectorize(func)
    return ufunc(func, nin, nout, identity=identity, call=call, associative=False)
