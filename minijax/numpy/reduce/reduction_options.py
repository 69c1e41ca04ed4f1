"""The parameters of reductions, listed once.

`sum`, `nanmean`, `quantile` and their like take many of the same options, each of them
its own selection in NumPy's order. A function here is written as its arithmetic, a body
of the array and a record of options; `takes` makes the public function, whose signature
is a list of names.

In JAX: `numpy/reduce/reductions.py`, where each function spells its parameters out.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.typing import ArrayLike, DTypeLike

Axis = int | str | Sequence[int | str] | None


class Options(NamedTuple):
    """The arguments of a reduction other than its array."""

    axis: Axis = None
    dtype: DTypeLike | None = None
    out: None = None
    keepdims: bool = False
    initial: ArrayLike | None = None
    where: ArrayLike | None = None
    promote_integers: bool = True
    ddof: int = 0
    mean: ArrayLike | None = None
    correction: int | float | None = None
    overwrite_input: bool = False
    method: str = "linear"
    weights: ArrayLike | None = None
    out_sharding: Any = None

    def only(self, names: str) -> dict[str, Any]:
        """Some of the options, as arguments of another function."""
        return {name: getattr(self, name) for name in names.replace("*", "").split()}


# The options of each kind, in order. Those after the star are given by name alone.
OF_EXTREMUM = "axis out keepdims initial where"
OF_TRUTH = "axis out keepdims * where"
OF_NAN_SUM = "axis dtype out keepdims initial where"
OF_SUM = OF_NAN_SUM + " promote_integers"
OF_MEAN = "axis dtype out keepdims * where"
OF_NAN_MEAN = "axis dtype out keepdims where"
OF_VARIANCE = "axis dtype out ddof keepdims * where mean correction"
OF_NAN_VARIANCE = "axis dtype out ddof keepdims where mean"
OF_QUANTILE = "axis out overwrite_input method keepdims * weights"
OF_RUNNING = "axis dtype out"
OF_MEDIAN = "axis out overwrite_input keepdims"

# Options that decide what is computed: known while tracing, a part of the cache key.
_STATIC = (
    *("axis", "dtype", "keepdims", "promote_integers", "returned"),
    *("overwrite_input", "method", "out_sharding"),
)


def takes(
    options: str, arrays: str = "a"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes the public function of a body that is called as `(*arrays, options)`.

    Both are names with spaces between them. TypeError when the function is called
    with other arguments.
    """
    by_position, _, by_name = options.partition("*")
    first = arrays.split()
    order = (*first, *by_position.split())
    known = {*order, *by_name.split()}
    signature = _signature(order, by_name.split())

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(body)
        def function(*args: Any, **keywords: Any) -> Any:
            given = dict(zip(order, args), **keywords)
            each_once = len(given) == len(args) + len(keywords)
            if not (each_once and known >= given.keys() >= set(first)):
                try:
                    signature.bind(*args, **keywords)
                except TypeError as error:
                    raise TypeError(f"{body.__name__}() {error}") from None
            return body(*map(given.pop, first), Options(**given))

        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


def _signature(order: Sequence[str], by_name: Sequence[str]) -> inspect.Signature:
    def parameter(name: str, kind: Any) -> inspect.Parameter:
        default = Options._field_defaults.get(name, inspect.Parameter.empty)
        annotation = Options.__annotations__.get(name, ArrayLike)
        return inspect.Parameter(name, kind, default=default, annotation=annotation)

    by_position = [parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in order]
    by_keyword = [parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in by_name]
    return inspect.Signature(by_position + by_keyword, return_annotation=Array)


def static_options(function: Callable[..., Any]) -> list[str]:
    """The parameters of a function that are static options."""
    parameters = inspect.signature(function).parameters
    return [name for name in _STATIC if name in parameters]


def compiled(
    options: str, arrays: str = "a"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`takes`, where the function is a jitted one."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        function = takes(options, arrays)(body)
        return jit(function, static_argnames=static_options(function))

    return decorate
