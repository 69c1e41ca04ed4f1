"""Functions wrapped in layers of transformations that hand out extra results.

A `WrappedFun` is a function of flat lists with transformations around it, the first
one added being the innermost. A transformation gets the function below it and the
arguments; one "with aux" also gets a store, where it leaves a second result that is
read after the call.

minijax does not use these itself (its transformations are plain functions); they are
here for code that was written for JAX.

In JAX: `jax.extend.linear_util`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minijax.core.language import DebugInfo, no_debug_info, weakref_lru_cache
from minijax.core.signatures import fun_name


class StoreException(Exception):
    """A store was read while empty, or written twice."""


class Store:
    """The place of one value, written once."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: list[Any] = []

    def store(self, value: Any) -> None:
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(value)

    def reset(self) -> None:
        self._values.clear()

    @property
    def val(self) -> Any:
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def __bool__(self) -> bool:
        return bool(self._values)


class EqualStore(Store):
    """A store that may be written again with an equal value."""

    __slots__ = ()

    def store(self, value: Any) -> None:
        if self and not bool(self.val == value):
            raise StoreException("Store occupied with not-equal value")
        self._values[:] = [value]


@dataclass(eq=False, repr=False)
class WrappedFun:
    """A function `f` with transformations around it.

    Attributes:
      f: the innermost function.
      transforms: pairs (transformation, its static arguments), outermost first.
      stores: for each transformation its store, or None.
      params: keyword arguments of `f`, as pairs.
    """

    f: Callable
    f_transformed: Callable
    transforms: tuple
    stores: tuple
    params: tuple
    in_type: Any
    debug_info: DebugInfo

    @property
    def __name__(self) -> str:
        return fun_name(self.f)

    def wrap(self, gen: Callable, gen_static_args: tuple, out_store: Any) -> WrappedFun:
        """This function with one more transformation around it, and its store."""
        own = () if out_store is None else (out_store,)
        return WrappedFun(
            self.f,
            functools.partial(gen, self.f_transformed, *own, *gen_static_args),
            ((gen, gen_static_args), *self.transforms),
            (out_store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def populate_stores(self, stores: tuple) -> None:
        """Copy the values of other stores into this function's."""
        for own, other in zip(self.stores, stores):
            if own is not None:
                own.store(other.val)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with all transformations."""
        return self.f_transformed(*args, **kwargs)

    def _key(self) -> tuple:
        return (self.f, self.transforms, self.params, self.in_type)

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        layers = [
            f"{position}   : {fun_name(gen)}   {args}"
            for position, (gen, args) in enumerate(self.transforms)
        ]
        return "\n".join(["Wrapped function:", *layers, f"Core: {self.__name__}"])


def wrap_init(
    f: Callable, params: dict | None = None, *, debug_info: DebugInfo | None = None
) -> WrappedFun:
    """`f`, with keyword arguments `params`, as a WrappedFun without transformations."""
    given = params or {}
    return WrappedFun(
        f,
        functools.partial(f, **given),
        (),
        (),
        tuple(sorted(given.items())),
        None,
        debug_info or no_debug_info,
    )


def _curried(function: Callable) -> Callable:
    """`_curried(g)(x)(y)` is `g(x, y)`, for use as a decorator."""
    return functools.partial(functools.partial, function)


@_curried
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> Any:
    """Add a transformation `gen(f, *static, *args) -> results`."""
    return fun.wrap(gen, gen_static_args, None)


@_curried
def transformation_with_aux2(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Add a transformation `gen(f, store, *static, *args)` that also fills the store.

    Returns the new function, and a function that reads the store.
    """
    store = EqualStore() if use_eq_store else Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _around(gen: Callable, below: Callable, args: tuple, kwargs: dict) -> Any:
    """Run a function inside of a generator, which gets its result by `send`."""
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    return steps.send(below(*inner_args, **inner_kwargs))


@_curried
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> Any:
    """Add a transformation written as a generator.

    It yields `(args, kwargs)` for the function below, is sent its result, and yields
    its own.
    """

    def run(below: Callable, *args: Any, **kwargs: Any) -> Any:
        return _around(gen, below, args, kwargs)

    return transformation2(run)(fun, *gen_static_args)


@_curried
def transformation_with_aux(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Like `transformation`; the generator's last yield is `(result, aux)`."""

    def run(below: Callable, store: Store, *args: Any, **kwargs: Any) -> Any:
        result, aux = _around(gen, below, args, kwargs)
        store.store(aux)
        return result

    return transformation_with_aux2(run)(fun, *gen_static_args)


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """The one of two stores that was written: (whether it is the first, its value).

    StoreException when both were written, or none.
    """
    try:
        first = aux1()
    except StoreException:
        with contextlib.suppress(StoreException):
            return False, aux2()
        raise StoreException("neither store occupied") from None
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both stores occupied")


def cache(call: Callable) -> Callable:
    """Remember `call(fun, *args)` for equal wrapped functions, held weakly.

    A hit copies what the transformations had stored.
    """

    @weakref_lru_cache
    def results_of(f: Callable) -> dict:
        return {}

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        known = results_of(fun.f)
        key = (fun.transforms, fun.params, fun.in_type, args)
        if key in known:
            answer, stores = known[key]
            fun.populate_stores(stores)
            return answer
        answer = call(fun, *args)
        known[key] = (answer, fun.stores)
        return answer

    return cached
