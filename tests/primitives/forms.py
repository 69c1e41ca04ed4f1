"""The printed jaxprs of a function and of what the transformations make of it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.golden.normalise import normalise, plain_numpy_scalars


def texts(
    library: Any,
    function: Callable[..., Any],
    args: Sequence[Any],
    in_axes: Sequence[Any] | None = None,
    differentiate: bool = True,
) -> dict[str, str]:
    """The normalised text of each form: itself, jvp and vjp, or vmap over `in_axes`.

    The vjp is of all results, with cotangents as inputs of the program. For vmap, three
    copies of an argument are stacked along its axis.
    """
    count = len(args)
    forms: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {}
    if in_axes is not None:
        mapped = [
            arg if axis is None else np.stack([arg] * 3, axis)
            for arg, axis in zip(args, in_axes)
        ]
        forms["vmap"] = (library.vmap(function, in_axes=tuple(in_axes)), mapped)
        differentiate = False
    else:
        forms["itself"] = (function, args)
    if differentiate:
        outs = library.eval_shape(function, *args)

        def forward(*values: Any) -> Any:
            return library.jvp(function, values[:count], values[count:])

        def backward(cts: Any, *values: Any) -> Any:
            return library.vjp(function, *values)[1](cts)

        forms["jvp"] = (forward, (*args, *args))
        forms["vjp"] = (backward, (outs, *args))
    with plain_numpy_scalars():
        return {
            name: normalise(str(library.make_jaxpr(form)(*inputs)))
            for name, (form, inputs) in forms.items()
        }


def assert_same_texts(
    minijax: Any,
    jax: Any,
    build: Callable[[Any], Callable[..., Any]],
    *args: Any,
    in_axes: Sequence[Any] | None = None,
    differentiate: bool = True,
) -> None:
    """Fails unless all forms of `build(library)` print alike in both libraries."""
    ours = texts(minijax, build(minijax), args, in_axes, differentiate)
    theirs = texts(jax, build(jax), args, in_axes, differentiate)
    for name, text in theirs.items():
        assert ours[name] == text, f"{name}:\nminijax\n{ours[name]}\njax\n{text}"
