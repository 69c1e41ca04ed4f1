"""What a function was made from: `vmap(grad(f), in_axes=(None, 0))`, for views.

The names in printed programs stay those of the innermost function, as in JAX. A view
needs more: two programs of `f` differ in the transformations around it.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

# The title of each program that `make_jaxpr` has made of a transformed function.
titles: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def entitle(jaxpr: Any, title: str) -> None:
    """Note what the function of a program was made from."""
    titles[jaxpr] = title


# What a transformation was asked for, where it is not this.
USUAL = {"argnums": 0, "in_axes": 0, "out_axes": 0}
TRANSFORMATIONS = {
    *("grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "checkpoint")
}
# Wrappers that leave the function what it is.
PLAIN = {"", "api_boundary", "_decorate", "named_call"}
PACKAGE = os.path.dirname(os.path.dirname(__file__))


def title_of(function: Callable[..., Any]) -> str:
    """A function's name with the transformations around it; a lambda is "lambda"."""
    if isinstance(function, functools.partial):
        return title_of(function.func)
    code = getattr(function, "__code__", None)
    inner = getattr(function, "__wrapped__", None)
    if inner is not None and (code is None or code.co_filename.startswith(PACKAGE)):
        name = "" if code is None else code.co_qualname.partition(".")[0]
        if name in PLAIN:
            return title_of(inner)
        if name in TRANSFORMATIONS:
            return f"{name}({', '.join([title_of(inner), *options_of(function)])})"
    name = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else name


def options_of(function: Any) -> list[str]:
    """The options of a transformation besides its function, as the user wrote them."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    held = {name: cell.cell_contents for name, cell in cells}
    if "numbers" in held and "single" in held:  # as `value_and_grad` keeps them
        numbers = held["numbers"]
        held["argnums"] = numbers[0] if held["single"] else tuple(numbers)
    found = [
        f"{name}={held[name]!r}"
        for name, usual in USUAL.items()
        if name in held and held[name] != usual
    ]
    # `grad` keeps a `value_and_grad`, which knows the arguments' numbers.
    for value in held.values():
        if value is function.__wrapped__ or not hasattr(value, "__code__"):
            continue
        code = value.__code__
        if code.co_filename.startswith(PACKAGE) and hasattr(value, "__wrapped__"):
            found += options_of(value)
            if code.co_qualname.startswith("api_boundary"):
                found += options_of(value.__wrapped__)
    return list(dict.fromkeys(found))
