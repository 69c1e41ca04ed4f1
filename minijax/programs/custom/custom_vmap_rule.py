"""custom_vmap: a function with a user's rule for vmap.

The rule gets the size of the batch, a tree that says which arguments have a batch axis
(it stands first), and the arguments; it returns the results and a tree that says which
of them have one. So it can call something that exists for batches only, or a loop.

In a program the call is one equation, which carries the function traced for one
example; the derivative of the call is a call of the derivative, whose own rule for
batches differentiates the user's.

In JAX: `jax/_src/custom_batching.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import autodiff, batching
from minijax.core.language import ClosedJaxpr, Primitive, TraceTag, register
from minijax.core.rules import AxisData, instantiate, no_axis_name
from minijax.core.signatures import fun_name
from minijax.core.trees import tree_flatten, tree_structure, tree_unflatten
from minijax.primitives.families import mapped_at_front
from minijax.programs.calls import def_call
from minijax.programs.control_flow import scans
from minijax.programs.control_flow.bodies import trace_with_consts
from minijax.programs.custom.custom_forward import CustomFunction, positional_arguments
from minijax.support.tree_util import tree_map
from minijax.transforms.differentiation import jvp


class custom_vmap(CustomFunction):
    """A function with a user's rule for `vmap`.

        @custom_vmap
        def f(x, y):
            return x + y

        @f.def_vmap
        def f_vmap(axis_size, in_batched, xs, ys):
            return xs + ys, True

    Args:
      fun: the function for one example.

    In JAX: `jax.custom_batching.custom_vmap`.
    """

    vmap_rule: Callable | None = None
    not_inherited = ("vmap_rule",)

    def __init__(self, fun: Callable):
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Set the rule `(axis_size, in_batched, *args) -> (results, out_batched)`."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises AttributeError when no rule was set, TypeError for keyword arguments
        that have no position.
        """
        args = positional_arguments(self.fun, args, kwargs)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function "
                f"{fun_name(self.fun)} using def_vmap. Write one with "
                f"`@{fun_name(self.fun)}.def_vmap`."
            )
        leaves, in_tree = tree_flatten(args)
        call, consts, out_tree = trace_with_consts(self.fun, args, "custom_vmap fun")
        in_tree = tree_structure((consts, args))
        params = {"call": call, "rule": _ClosedRule(self.vmap_rule)}
        params |= {"in_tree": in_tree, "out_tree": out_tree}
        outputs = custom_vmap_p.bind(*consts, *leaves, **params)
        return tree_unflatten(out_tree, outputs)


class _ClosedRule:
    """The user's rule for a call with constants, which are not batched."""

    def __init__(self, rule: Callable):
        self.rule = rule
        self.__name__ = _name_of(rule)

    def __call__(self, axis_size: int, in_batched: Any, consts: Any, args: Any) -> Any:
        consts_batched, args_batched = in_batched
        if any(consts_batched):
            raise NotImplementedError(
                f"the custom_vmap function with the rule {self.__name__} closes over a "
                "value that vmap batches; pass it as an argument."
            )
        return self.rule(axis_size, list(args_batched), *args)

    def __str__(self) -> str:
        return str(self.rule)


def _name_of(rule: Any) -> str:
    return getattr(rule, "__name__", "<unnamed rule>")


def _check_trees(rule: Any, expected: Any, out_tree: Any, batched_tree: Any) -> None:
    if out_tree != batched_tree:
        raise ValueError(
            "structure of output value and output batching specification returned by "
            f"custom vmap rule ({_name_of(rule)}) do not match.\n"
            f"Output values: {out_tree}\nBatching spec: {batched_tree}"
        )
    if out_tree != expected:
        raise ValueError(
            f"structure of output returned by custom vmap rule ({_name_of(rule)}) does "
            "not match that of original custom-vmapped function.\n"
            f"Original output: {expected}\nRule output: {out_tree}"
        )


custom_vmap_p = register(Primitive("custom_vmap_call", multiple_results=True))
def_call(custom_vmap_p, "call")
custom_vmap_p.without("transpose", "it has no backward mode, as JAX's: use custom_vjp")


@custom_vmap_p.def_batch
def _custom_vmap_batch(axis_data, args, dims, **params) -> tuple[list, list]:
    rule, in_tree = params["rule"], params["in_tree"]
    moved = tree_unflatten(in_tree, mapped_at_front(args, dims))
    in_batched = tree_unflatten(in_tree, [dim is not None for dim in dims])
    out, out_batched = rule(axis_data.size, list(in_batched), *moved)
    outputs, tree = tree_flatten(out)
    flags, flags_tree = tree_flatten(out_batched)
    _check_trees(rule, params["out_tree"], tree, flags_tree)
    return outputs, [0 if flag else None for flag in flags]


@custom_vmap_p.def_jvp_rule
def _custom_vmap_jvp(
    primals, tangents, *, call: ClosedJaxpr, rule, in_tree, out_tree
) -> tuple[list, list]:
    forward, _ = autodiff.jvp_jaxpr(
        call, [True] * len(primals), [True] * len(call.out_avals)
    )
    params = {"call": forward, "rule": _RuleOfJvp(rule, out_tree)}
    params |= {"in_tree": _pair_of(in_tree), "out_tree": _pair_of(out_tree)}
    outputs = custom_vmap_p.bind(*primals, *map(instantiate, tangents), **params)
    half = len(outputs) // 2
    return outputs[:half], outputs[half:]


def _pair_of(tree: Any) -> Any:
    example = tree_unflatten(tree, [0] * tree.num_leaves)
    return tree_structure((example, example))


class _RuleOfJvp:
    """The rule for batches of the derivative: the derivative of the rule.

    Where a primal and its tangent are both batched, the user's rule handles the axis;
    an axis that only one of the two has is batched around it.
    """

    def __init__(self, rule: Callable, out_tree: Any):
        self.rule = rule
        self.out_tree = out_tree
        self.__name__ = f"jvp_of_{_name_of(rule)}"

    def __call__(
        self, axis_size: int, in_batched: Any, primals: Any, tangents: Any
    ) -> tuple[Any, Any]:
        primals_batched, tangents_batched = in_batched
        both = tree_map(operator.and_, primals_batched, tangents_batched)
        out_both: list[Any] = []

        def run_rule(*primals) -> Any:
            out, out_batched = self.rule(axis_size, list(both), *primals)
            trees = tree_structure(out), tree_structure(out_batched)
            _check_trees(self.rule, self.out_tree, *trees)
            out_both[:] = [out_batched]
            return out

        leaves, in_tree = tree_flatten((primals, tangents))

        def flat(*leaves: Any) -> list[Any]:
            primals, tangents = tree_unflatten(in_tree, leaves)
            return tree_flatten(jvp(run_rule, tuple(primals), tuple(tangents)))[0]

        of_primals = tree_flatten(primals_batched)[0]
        of_tangents = tree_flatten(tangents_batched)[0]
        extra = [p and not t for p, t in zip(of_primals, of_tangents)]
        extra += [t and not p for p, t in zip(of_primals, of_tangents)]
        dims: list[int | None] = []
        axis_data = AxisData(no_axis_name, axis_size)
        in_dims = [0 if flag else None for flag in extra]
        run = batching.batch_flat(flat, axis_data, in_dims, dims, TraceTag())
        outputs = mapped_at_front(run(*leaves), dims)
        mutual = tree_flatten(out_both[0])[0] * 2
        batched = [dim is not None or flag for dim, flag in zip(dims, mutual)]
        return self._pair(outputs), self._pair(batched)

    def __str__(self) -> str:
        return f"<function {self.__name__}>"

    def _pair(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
        """Leaves of values and of tangents as two trees."""
        half = len(leaves) // 2
        return (
            tree_unflatten(self.out_tree, leaves[:half]),
            tree_unflatten(self.out_tree, leaves[half:]),
        )


def sequential_vmap(f: Callable) -> custom_vmap:
    """A function that `vmap` calls for one example after another, in a loop.

    In JAX: `jax.custom_batching.sequential_vmap`.
    """
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size: int, in_batched, *args) -> tuple[Any, Any]:
        leaves, tree = tree_flatten(list(args))
        flags = tree_flatten(in_batched)[0]

        def call(rows: Sequence[Any]) -> Any:
            given = iter(rows)
            own = [next(given) if flag else x for x, flag in zip(leaves, flags)]
            return wrapped(*tree_unflatten(tree, own))

        out = scans.map(call, [x for x, flag in zip(leaves, flags) if flag])
        return out, tree_map(lambda _: True, out)

    return wrapped
