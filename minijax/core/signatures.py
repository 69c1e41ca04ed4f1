"""Users' functions as functions of flat lists: arguments, static values, names.

Transformations work on flat lists of arrays. Of a call `f(params, x, n=3)` with `n`
static, `CallSignature.flatten` gives the leaves of `((params, x), {})`, their tree, and
the static value 3 with its name. `call` calls the function with other leaves, such as
tracers, in their places. `leaf_names` names every leaf for messages (`params['w1']`).

In JAX: `jax/_src/api_util.py`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import dtypes, errors, language
from .avals import aval_of_class, aval_of_description
from .language import AbstractValue, DebugInfo, Jaxpr, Tracer
from .state import state
from .trees import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten


def fun_name(fun: Callable) -> str:
    """The name of a function, looking through `functools.partial`."""
    while isinstance(fun, functools.partial) and not hasattr(fun, "__name__"):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else "<unnamed function>"


def wraps(fun: Any, **options: Any) -> Callable:
    """`functools.wraps`, also for objects with a `__name__` that is no string."""
    named = isinstance(getattr(fun, "__name__", ""), str)
    return functools.wraps(fun if named else fun.__call__, **options)


def fun_place(fun: Callable) -> str:
    """Where a function is defined: "file:line", or "" when Python does not know."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = inspect.unwrap(fun)
    code = getattr(fun, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def check_callable(fun: Any, transformation: str) -> None:
    """TypeError unless `fun` is callable and not a generator function."""
    if not callable(fun):
        raise errors.type_error(
            f"Expected a callable value, got {fun!r}. {transformation} "
            "transforms functions: pass the function, not its result."
        )
    if inspect.isgeneratorfunction(fun):
        raise errors.type_error(
            f"Expected a function, got a generator function: {fun!r}. Return a list "
            "of arrays instead of yielding them."
        )


def check_functions(name: str, **functions: Any) -> None:
    """TypeError that names the argument which is not a function."""
    for argument, value in functions.items():
        if not callable(value):
            raise errors.type_error(
                f"{name}: the argument {argument} must be a function, got {value!r} "
                f"of type {type(value).__name__}.",
                argument=argument,
            )


def as_tuple(value: Any) -> tuple:
    """A tuple of a single value or of the items of an iterable; empty for None."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    return tuple(value)


def argnums_tuple(value: Any, name: str) -> tuple[int, ...]:
    """Positions of arguments as a tuple of ints; if not, a TypeError with `name`."""
    numbers = as_tuple(value)
    for number in numbers:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise errors.type_error(
                f"{name} must be an int or a sequence of ints, got {value!r}"
            )
    return tuple(number.__index__() for number in numbers)


def argnames_tuple(value: Any, name: str) -> tuple[str, ...]:
    """Names of arguments as a tuple of strings; if not, a TypeError with `name`."""
    names = as_tuple(value)
    for item in names:
        if not isinstance(item, str):
            raise errors.type_error(
                f"{name} must be a str or a sequence of strs, got {value!r}"
            )
    return names


_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
_POSITIONAL_OR_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD


def type_of_description(value: Any) -> AbstractValue:
    """The type of an array, or of anything that has a shape and a dtype."""
    try:
        return language.shaped_abstractify(value)
    except TypeError:
        described = hasattr(value, "shape") and hasattr(value, "dtype")
        if not described or type(value) in aval_of_class:
            raise
        return language.ShapedArray(value.shape, dtypes.canonicalize_dtype(value.dtype))


@dataclass(frozen=True)
class JitOptions:
    """The options of `jit`, which are part of every cache key."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    compiler_options: tuple = ()


class Bound(NamedTuple):
    """The arguments of one call: leaves and tree of the dynamic ones, and the statics.

    `statics` are triples (position or name, type, value): hashable, and 1 is not 1.0.
    """

    leaves: list[Any]
    tree: Any
    statics: tuple[tuple[int | str, type, Any], ...]
    num_args: int


class CallSignature:
    """Which arguments of a function are static or donated.

    Positions and names go together: `static_argnums=1` also covers the argument given
    by its name. ValueError for positions or names the function does not have.
    """

    def __init__(self, fun: Callable, options: JitOptions = JitOptions()):
        self.fun = fun
        self.name = fun_name(fun)
        self.static_nums, self.static_names = self._both(
            options.static_argnums, options.static_argnames, "static"
        )
        self.donate_nums, self.donate_names = self._both(
            options.donate_argnums, options.donate_argnames, "donate"
        )

    @functools.cached_property
    def parameters(self) -> list[inspect.Parameter] | None:
        """The function's parameters, read at the first use; None for some built-ins."""
        with contextlib.suppress(ValueError, TypeError):
            return list(inspect.signature(self.fun).parameters.values())
        return None

    @functools.cached_property
    def positional(self) -> list[str]:
        """The names of the parameters that may be given by position."""
        return self._names_of(_POSITIONAL_ONLY, _POSITIONAL_OR_KEYWORD)

    def _names_of(self, *kinds: Any) -> list[str]:
        return [p.name for p in self.parameters or () if p.kind in kinds]

    def _both(
        self, nums: tuple[int, ...], names: tuple[str, ...], what: str
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """(positions, names), each with the arguments of the other where possible."""
        if not (nums or names) or self.parameters is None:
            return nums, names
        positional = self.positional
        count = len(positional)
        for num in nums:
            if not -count <= num < count and not self._names_of(_VAR_POSITIONAL):
                raise errors.value_error(
                    f"jitted function {self.name} has {what}_argnums={nums} but only "
                    f"accepts {count} positional arguments."
                )
        known = [p.name for p in self.parameters]
        missing = [name for name in names if name not in known]
        if missing and not self._names_of(_VAR_KEYWORD):
            raise errors.value_error(
                f"jitted function {self.name} has invalid argnames {missing} in "
                f"{what}_argnames. Function takes these args: {known}"
            )
        # With *args, negative positions count from the last argument of each call.
        if not self._names_of(_VAR_POSITIONAL):
            nums = tuple(num % count for num in nums)
        more_names = [positional[num] for num in nums if 0 <= num < count]
        more_nums = [positional.index(name) for name in names if name in positional]
        all_nums = tuple(sorted({*nums, *more_nums}))
        return all_nums, tuple(dict.fromkeys([*names, *more_names]))

    def flatten(self, args: tuple, kwargs: dict[str, Any]) -> tuple[list, Any, tuple]:
        """(leaves and tree of the dynamic arguments, the static arguments)."""
        if not self.static_nums and not self.static_names:
            leaves, tree = tree_flatten((args, kwargs))
            return leaves, tree, ()
        statics: list[tuple[int | str, type, Any]] = []
        dynamic = []
        if min(self.static_nums, default=0) < -len(args):
            raise errors.value_error(f"{self.name}: static_argnums below -{len(args)}")
        for position, arg in enumerate(args):
            if not {position, position - len(args)}.isdisjoint(self.static_nums):
                statics.append((position, type(arg), arg))
            else:
                dynamic.append(arg)
        rest = {}
        for name, value in kwargs.items():
            if name in self.static_names:
                statics.append((name, type(value), value))
            else:
                rest[name] = value
        leaves, tree = tree_flatten((tuple(dynamic), rest))
        return leaves, tree, tuple(statics)

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> Bound:
        """The arguments of a call, flat."""
        return Bound(*self.flatten(args, kwargs), len(args))

    def types_of(
        self,
        leaves: Sequence[Any],
        args: tuple,
        kwargs: dict[str, Any],
        rule: Callable[[Any], AbstractValue] = type_of_description,
    ) -> tuple[AbstractValue, ...]:
        """The types of all leaves, which may be `ShapeDtypeStruct`s by default.

        TypeError, naming the argument, for a leaf that has no type.
        """
        with contextlib.suppress(TypeError):
            avals = tuple(map(rule, leaves))
            if argument_checks.keys().isdisjoint(map(type, avals)):
                return avals
        bound = self.bind(args, kwargs)
        found = []
        for position, leaf in enumerate(leaves):
            try:
                aval = rule(leaf)
            except TypeError as error:
                raise self.bad_leaf(bound, position, error) from None
            if type(aval) in argument_checks:
                argument_checks[type(aval)](self, bound, position)
            found.append(aval)
        return tuple(found)

    def check_statics(self, statics: tuple) -> None:
        """ValueError, naming the argument, for a static value that cannot be hashed."""
        for place, _, value in statics:
            name = self.argument_name(place)
            if isinstance(value, Tracer):
                raise errors.ConcretizationTypeError(
                    value, f"The static argument {name!r} of {self.name} must be known."
                )
            try:
                hash(value)
            except TypeError:
                raise errors.value_error(
                    "Non-hashable static arguments are used in a jit function: "
                    f"argument {name!r} of {self.name} is {value!r} of type "
                    f"{type(value).__name__}. Static arguments are compared by hash "
                    "and equality to find the compiled program: pass a tuple instead "
                    "of a list, or, if it is an array, do not mark it as static.",
                    rule="static arguments are hashable",
                ) from None

    def call(self, bound: Bound, leaves: Sequence[Any]) -> Any:
        """Call the function with other leaves in the places of the dynamic ones."""
        args, kwargs = self.arguments(bound, leaves)
        return self.fun(*args, **kwargs)

    def arguments(self, bound: Bound, leaves: Sequence[Any]) -> tuple[Any, dict]:
        """The arguments with other leaves: (args, kwargs)."""
        dynamic, kwargs = tree_unflatten(bound.tree, leaves)
        if not bound.statics:
            return dynamic, kwargs
        by_place = {place: value for place, _, value in bound.statics}
        remaining = iter(dynamic)
        args = [
            by_place[position] if position in by_place else next(remaining)
            for position in range(bound.num_args)
        ]
        named = {name: v for name, v in by_place.items() if isinstance(name, str)}
        return args, {**kwargs, **named}

    def argument_name(self, place: int | str) -> str:
        """The name of an argument; `args[2]` beyond the named positions."""
        if isinstance(place, str):
            return place
        positional = self.positional
        if place < len(positional):
            return positional[place]
        stars = [*self._names_of(_VAR_POSITIONAL), "args"]
        return f"{stars[0]}[{place - len(positional)}]"

    def _leaf_paths(self, bound: Bound) -> list[tuple[int | str, tuple]]:
        """For every leaf: (position or name of its argument, path inside of that)."""
        dynamic = tree_unflatten(bound.tree, range(len(bound.leaves)))
        static = {place for place, _, _ in bound.statics}
        positions = [place for place in range(bound.num_args) if place not in static]
        paths = []
        for (group, first, *rest), _ in tree_flatten_with_path(dynamic)[0]:
            place = first.key if group.idx else positions[first.idx]
            paths.append((place, tuple(rest)))
        return paths

    def leaf_names(self, bound: Bound) -> tuple[str, ...]:
        """A name for every dynamic leaf: `x`, `params['w'][0]`."""
        return tuple(
            self.argument_name(place) + keystr(rest)
            for place, rest in self._leaf_paths(bound)
        )

    def donated_leaves(self, bound: Bound) -> tuple[bool, ...]:
        """For every dynamic leaf, whether its argument is donated."""
        donated = {*self.donate_nums, *self.donate_names}
        if not donated:
            return (False,) * len(bound.leaves)
        return tuple(place in donated for place, _ in self._leaf_paths(bound))

    def debug_info(self, bound: Bound, traced_for: str) -> DebugInfo:
        """The debug info of a program that is traced from this function."""
        names = self.leaf_names(bound)
        return DebugInfo(traced_for, self.name, fun_place(self.fun), names)

    def bad_leaf(self, bound: Bound, position: int, error: Exception) -> Exception:
        """The error for an argument that is not an array."""
        name = self.leaf_names(bound)[position]
        leaf = bound.leaves[position]
        kind = f"{type(leaf).__module__}.{type(leaf).__qualname__}"
        advice = (
            "Arguments must be arrays, numbers, or containers of these registered as "
            f"pytrees. If {name.split('[')[0]!r} chooses what the function does (a "
            "string, a function), mark it as static: "
            f"`jit(f, static_argnames={name.split('[')[0]!r})`."
        )
        advice = str(error) if hasattr(leaf, "dtype") else advice
        return errors.type_error(
            "Error interpreting argument to "
            f"{self.name} as an abstract array. The problematic value is {leaf!r} "
            f"of type {kind} and was passed to the function at path {name}. {advice}",
            rule="arguments are arrays",
            argument=name,
        )


# Checks of values that are not arrays, such as refs, by the class of their types: of
# arguments, called with (signature, bound arguments, position); of the results and
# constants of a traced program, called with (jaxpr, constants, arguments).
argument_checks: dict[type[AbstractValue], Callable] = {}
program_checks: dict[type[AbstractValue], Callable] = {}


def check_program(jaxpr: Jaxpr, consts: Sequence[Any], leaves: Sequence[Any]) -> None:
    """Raise if a traced program returns or closes over a value that it must not."""
    for kind in {type(v.aval) for v in (*jaxpr.outvars, *jaxpr.constvars)}:
        if kind in program_checks:
            program_checks[kind](jaxpr, consts, leaves)


def lazy_debug_info(fun: Callable, args_tree: Any, traced_for: str) -> DebugInfo:
    """Debug info of a function called with a tuple of arguments of the given tree.

    The names of the leaves are computed only when a message needs them.
    """

    def names() -> tuple[str, ...]:
        signature = CallSignature(fun)
        args = tree_unflatten(args_tree, range(args_tree.num_leaves))
        return signature.leaf_names(signature.bind(args, {}))

    name = fun_name(fun)
    place = fun_place(fun)
    if state.check_tracer_leaks:
        # The names hold no function, whose closure would keep tracers alive.
        return DebugInfo(traced_for, name, place, names())
    return DebugInfo(traced_for, name, place, names)


def flatten_function(
    signature: CallSignature, bound: Bound
) -> tuple[Callable[..., list[Any]], list[Any]]:
    """(the function from flat leaves to flat leaves, a list for its result's tree).

    A call of the function puts the tree into the list.
    """
    trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        outputs, tree = tree_flatten(signature.call(bound, leaves))
        check_outputs(outputs, tree, signature.name, "jit")
        trees.append(tree)
        return outputs

    return flat, trees


def check_outputs(outputs: Sequence[Any], tree: Any, name: str, purpose: str) -> None:
    """TypeError, naming the component, when a function returned a non-array."""
    for position, output in enumerate(outputs):
        if language.valid_jaxtype(output) or type(output) in aval_of_description:
            continue
        paths, _ = tree_flatten_with_path(tree_unflatten(tree, range(len(outputs))))
        path = keystr(paths[position][0])
        at = f" at output component {path}" if path else ""
        raise errors.type_error(
            f"function {name} traced for {purpose} returned a value of type "
            f"{type(output)}{at}, which is not a valid JAX type. Return arrays, "
            "numbers, or containers of these."
        )


def with_result_paths(debug_info: DebugInfo, out_tree: Any) -> DebugInfo:
    """The debug info with a name for every leaf of the result."""
    paths, _ = tree_flatten_with_path(
        tree_unflatten(out_tree, range(out_tree.num_leaves))
    )
    names = tuple(f"result{keystr(path)}" for path, _ in paths)
    return debug_info.with_result_paths(names)
