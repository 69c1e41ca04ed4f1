"""custom_jvp: a function with a user's rule for forward mode.

The rule gives value and tangent together; reverse mode follows by transposing it. How
a call with rules goes through the traces is told in `custom_calls.py`.

In JAX: `jax/_src/custom_derivatives.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import batching, signatures
from minijax.core.errors import api_boundary
from minijax.core.language import Tracer, get_aval, mapped_aval, unmapped_aval
from minijax.core.pretty import printed_first
from minijax.core.rules import (
    AxisData,
    Zero,
    add_tangents,
    instantiate,
    match_axis,
    not_mapped,
    zeros_of,
)
from minijax.core.signatures import argnums_tuple, check_callable, fun_name, wraps
from minijax.core.trees import keystr, tree_flatten, tree_unflatten
from minijax.primitives.shape import ordering
from minijax.programs.calls import as_array
from minijax.programs.custom.custom_calls import (
    CustomCallPrimitive,
    Dims,
    def_custom_call,
    named_like,
)
from minijax.support.tree_util import tree_leaves_with_path, tree_map
from minijax.values.symbolic_zeros import SymbolicZero, from_symbolic, to_symbolic

# ----------------------------------------------------------------------------------
# custom_jvp
# ----------------------------------------------------------------------------------


class CustomFunction:
    """The base class of functions with a user's rules."""

    # Rules of a wrapped function with custom rules, which `update_wrapper` copies.
    not_inherited: tuple[str, ...] = ()
    __call__: Callable[..., Any]

    def __init__(
        self,
        fun: Callable,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        check_callable(fun, type(self).__name__)
        wraps(fun)(self)
        for name in self.not_inherited:
            vars(self).pop(name, None)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)

    def __getattr__(self, name: str) -> Any:
        """`def_vmap` and the like, of a custom rule inside of another custom rule."""
        if name.startswith("def"):
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


class custom_jvp(CustomFunction):
    """A function with a user's rule for forward mode (which also serves reverse mode).

        @custom_jvp
        def f(x): return x ** 3

        @f.defjvp
        def f_jvp(primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return f(x), 3 * x ** 2 * x_dot

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: arguments that are not arrays, or are not
        differentiated; the rule gets them first.

    In JAX: `jax.custom_jvp`.
    """

    jvp: Callable | None = None
    symbolic_zeros: bool = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule `(primals, tangents) -> (value, tangent of the value)`.

        With `symbolic_zeros`, tangents that are zero come as `SymbolicZero`.
        """
        signatures.check_functions("defjvp", jvp=jvp)
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set one rule per argument: `(tangent, value, *primals) -> tangent`, or None.

        The tangent of the value is their sum.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use `defjvps` with `nondiff_argnums`: use `defjvp`.")

        rules = {f"jvps[{n}]": rule for n, rule in enumerate(jvps) if rule is not None}
        signatures.check_functions("defjvps", **rules)

        def jvp(primals, tangents) -> tuple:
            if len(jvps) != len(primals):
                raise ValueError(
                    f"defjvps got {len(jvps)} rules for {len(primals)} arguments of "
                    f"{fun_name(self.fun)}: give one for each, None for no derivative."
                )
            out = self(*primals)
            parts = [
                rule(tangent, out, *primals)
                for rule, tangent in zip(jvps, tangents)
                if rule is not None
            ]
            if not parts:
                return out, tree_map(lambda x: zeros_of(get_aval(x)), out)
            total = parts[0]
            for part in parts[1:]:
                total = tree_map(add_tangents, total, part)
            return out, total

        self.defjvp(jvp)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = fun_name(self.fun)
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name}. Write one with "
                f"`@{name}.defjvp`."
            )
        args = positional_arguments(self.fun, args, kwargs)
        if self.nondiff_argnums:
            args = _stopped(args, self.nondiff_argnums)
        static, dynamic = split_static(args, self.nondiff_argnums)
        leaves, in_tree = flatten_arrays(tuple(dynamic))
        call = FlatCall(self.fun, args, self.nondiff_argnums, in_tree)
        jvp = functools.partial(self.jvp, *static) if static else self.jvp
        rule = _FlatJvp(jvp, fun_name(self.jvp), call)
        outputs = custom_jvp_call_p.bind_call(
            call, rule, leaves, symbolic_zeros=self.symbolic_zeros
        )
        return tree_unflatten(call.tree_of_result(rule), outputs)


def nondiff_positions(fun: Callable, nums: Any, names: Any) -> tuple[int, ...]:
    """The positions of arguments that are not differentiated."""
    numbers = set(argnums_tuple(nums, "nondiff_argnums"))
    for name in signatures.argnames_tuple(names, "nondiff_argnames"):
        parameters = list(inspect.signature(fun).parameters)
        if name not in parameters:
            raise ValueError(
                f"nondiff_argnames has {name!r}, but {fun_name(fun)} takes {parameters}"
            )
        numbers.add(parameters.index(name))
    return tuple(sorted(numbers))


def positional_arguments(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """All arguments by position, defaults filled in."""
    if not kwargs:
        try:
            inspect.signature(fun)
        except (ValueError, TypeError):  # some built-in functions have none
            return args
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"keyword arguments {list(bound.kwargs)} of {fun_name(fun)} could not be "
            "resolved to positions; custom rules take positional arguments only."
        )
    return bound.args


def _stopped(args: tuple, nondiff: tuple[int, ...]) -> tuple:
    """The arguments; those that are not differentiated lose their tangents."""

    def stop(x: Any) -> Any:
        return ordering.stop_gradient(x) if isinstance(x, Tracer) else x

    positions = static_positions(args, nondiff)
    return tuple(tree_map(stop, x) if n in positions else x for n, x in enumerate(args))


def flatten_arrays(tree: Any) -> tuple[list[Any], Any]:
    """Leaves and tree; plain numbers become arrays, since rules may ask for a shape."""
    leaves, treedef = tree_flatten(tree)
    for leaf in leaves:
        get_aval(leaf)  # TypeError, unless it may be an argument of a primitive
    return [as_array(leaf) for leaf in leaves], treedef


def static_positions(args: tuple, nondiff: tuple[int, ...]) -> set[int]:
    """Which arguments are not differentiated; IndexError for one that is not there."""
    for n in nondiff:
        if not -len(args) <= n < len(args):
            raise IndexError(
                f"nondiff_argnums has {n}, but the function got {len(args)} arguments"
            )
    return {n % len(args) for n in nondiff}


def split_static(args: tuple, nondiff: tuple[int, ...]) -> tuple[list, list]:
    positions = static_positions(args, nondiff)
    static = [args[position] for position in sorted(positions)]
    dynamic = [arg for position, arg in enumerate(args) if position not in positions]
    return static, dynamic


class FlatCall:
    """The user's function on flat lists of its differentiable arguments."""

    def __init__(self, fun: Callable, args: tuple, nondiff: tuple, in_tree: Any):
        self.fun = fun
        self.positions = {n % len(args) for n in nondiff} if nondiff else set()
        # The others are passed at each call; kept here they would outlive their trace.
        self.args = [
            arg if position in self.positions else None
            for position, arg in enumerate(args)
        ]
        self.in_tree = in_tree
        self.name = fun_name(fun)
        self.out_tree: Any = None

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments of the function, for leaves of the differentiable ones."""
        dynamic = iter(tree_unflatten(self.in_tree, leaves))
        return [
            arg if position in self.positions else next(dynamic)
            for position, arg in enumerate(self.args)
        ]

    def __call__(self, *leaves: Any) -> list[Any]:
        outputs, self.out_tree = tree_flatten(self.fun(*self.arguments(leaves)))
        signatures.check_outputs(outputs, self.out_tree, self.name, "a custom rule")
        return outputs

    def tree_of_result(self, rule: Any) -> Any:
        return self.out_tree if self.out_tree is not None else rule.out_tree


class _FlatJvp:
    """The user's jvp rule on flat lists of primals and tangents."""

    def __init__(self, jvp: Callable, name: str, call: FlatCall):
        self.jvp = jvp
        self.__name__ = name
        self.call = call
        self.out_tree: Any = None

    def __call__(self, *values: Any) -> list[Any]:
        half = len(values) // 2
        primals = tree_unflatten(self.call.in_tree, map(as_array, values[:half]))
        tangents = tree_unflatten(self.call.in_tree, map(as_array, values[half:]))
        pair = self.jvp(primals, tangents)
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {self.call.name} must "
                "produce a pair (list or tuple of length two) representing primal and "
                f"tangent outputs, but got {pair}."
            )
        outs, out_tree = tree_flatten(pair[0])
        out_tangents, tangent_tree = tree_flatten(
            pair[1], is_leaf=lambda x: type(x) is SymbolicZero
        )
        if out_tree != tangent_tree:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {self.call.name} must "
                "produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {out_tree} and {tangent_tree} respectively."
            )
        expected = self.call.out_tree
        if expected is not None and out_tree != expected:
            raise TypeError(
                f"Custom JVP rule {self.__name__} must produce the container (pytree) "
                f"structure of {self.call.name}, {expected}, but got {out_tree}."
            )
        self.out_tree = out_tree
        for (path, out), tangent in zip(tree_leaves_with_path(pair[0]), out_tangents):
            _check_custom_tangent(self, keystr(path), out, tangent)
        return [*outs, *out_tangents]


def _check_custom_tangent(rule: _FlatJvp, path: str, out: Any, tangent: Any) -> None:
    expected = get_aval(out).to_tangent_aval()
    actual = tangent.aval if type(tangent) is SymbolicZero else get_aval(tangent)
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        raise TypeError(
            f"Custom JVP rule {rule.__name__} for function {rule.call.name} must "
            "produce primal and tangent outputs with corresponding shapes and dtypes. "
            f"Expected {expected.str_short()} (tangent type of "
            f"{get_aval(out).str_short()}) but got {actual.str_short()}"
            + (f" at {path}." if path else ".")
        )


class CustomJVPCallPrimitive(CustomCallPrimitive):
    """The primitive of custom_jvp calls; it is bound with Python functions.

    The rule on flat lists: `(*primals, *tangents) -> (*outputs, *their tangents)`.

    In JAX: `CustomJVPCallPrimitive`.
    """

    process = "process_custom_jvp_call"
    rules = ("jvp_jaxpr_fun",)

    def without_consts(self, rules: Sequence[Callable], count: int) -> list[Callable]:
        (jvp,) = rules

        @named_like(jvp)
        def own_jvp(*values) -> list[Any]:
            half = len(values) // 2
            return jvp(*values[count:half], *values[half + count :])

        return [own_jvp]

    def run_jvp(
        self,
        jvp: Callable,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        symbolic_zeros: bool,
    ) -> tuple[list[Any], list[Any]]:
        """(outputs, tangents) by the user's rule; zeros are arrays by default."""
        if symbolic_zeros:
            tangents = to_symbolic(tangents)
        else:
            tangents = [instantiate(t) for t in tangents]
        outs = jvp(*primals, *tangents)
        half = len(outs) // 2
        return outs[:half], from_symbolic(outs[half:])

    def batched_rules(
        self, rules: Sequence[Callable], axis_data: AxisData, in_dims: Dims, tag: Any
    ) -> tuple[list[Callable], list[int | None]]:
        """A primal and its tangent need their batch axis at one position.

        So outputs are moved where the two differ.
        """
        (jvp,) = rules
        size = axis_data.size
        out_dims: list[int | None] = []

        def of_one(tangent: Any, dim: int | None) -> tuple[Any, int | None]:
            if type(tangent) is not SymbolicZero:
                return tangent, dim
            return SymbolicZero(mapped_aval(size, dim, tangent.aval)), not_mapped

        def to_axis(out: Any, dim: int | None, wanted: int | None) -> Any:
            if type(out) in (Zero, SymbolicZero):
                return type(out)(unmapped_aval(size, wanted, out.aval))
            return match_axis(axis_data, out, dim, wanted)

        @named_like(jvp)
        def batched_jvp(*values) -> list[Any]:
            half = len(values) // 2
            pairs = [of_one(t, dim) for t, dim in zip(values[half:], in_dims)]
            all_dims = [*in_dims, *(dim for _, dim in pairs)]
            dims: list[int | None] = []
            run = batching.batch_flat(jvp, axis_data, all_dims, dims, tag)
            outs = run(*values[:half], *(tangent for tangent, _ in pairs))
            half = len(outs) // 2
            out_dims[:] = [
                of_tangent if of_primal is not_mapped else of_primal
                for of_primal, of_tangent in zip(dims[:half], dims[half:])
            ]
            return list(map(to_axis, outs, dims, out_dims * 2))

        return [batched_jvp], out_dims


custom_jvp_call_p = def_custom_call(
    CustomJVPCallPrimitive("custom_jvp_call", multiple_results=True)
)


@printed_first("name")
def _custom_jvp_pretty(params: dict[str, Any]) -> dict[str, Any]:
    shown = dict(params, name=params["call_jaxpr"].debug_info.func_name)
    shown["jvp"] = fun_name(shown.pop("jvp_jaxpr_fun"))
    if not shown["num_consts"]:
        del shown["num_consts"]
    return shown


custom_jvp_call_p.pretty = _custom_jvp_pretty
