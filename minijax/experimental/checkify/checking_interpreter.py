"""The interpreter: run a program and carry an `Error` along.

For each equation a rule `(error, enabled, *inputs, **params) -> (error, outputs)` is
looked up in `error_checks`; a primitive without one is bound as it is. Rules compute
with ordinary operations in the current trace, so that what comes out can be jitted,
batched and differentiated like anything else.

In JAX: `jax/_src/checkify.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.core import language, partial_eval, signatures
from minijax.core.errors import api_boundary
from minijax.core.signatures import check_callable, fun_name
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.experimental.checkify import error_values
from minijax.primitives.shape import casting
from minijax.transforms.walking import run_equations

Enabled = frozenset[error_values.ErrorCategory]
# What a rule returns: the error after the equation, and its outputs.
Checked = tuple[error_values.Error, Any]

# What is checked beside a primitive, or how the error passes through its programs.
error_checks: dict[language.Primitive, Callable] = {}


def rule_for(*primitives: language.Primitive) -> Callable[[Callable], Callable]:
    """Enter a rule for primitives; it gets the primitive as its first argument."""

    def enter(rule: Callable) -> Callable:
        for primitive in primitives:
            error_checks[primitive] = functools.partial(rule, primitive)
        return rule

    return enter


def checkify_jaxpr(
    jaxpr: language.Jaxpr,
    consts: Sequence[Any],
    enabled: Enabled,
    error: error_values.Error,
    *args: Any,
) -> tuple[error_values.Error, list[Any]]:
    """Run a program: (the error after it, its outputs)."""
    env: dict[language.Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args, strict=True))

    def step(eqn: language.JaxprEqn, inputs: list[Any]) -> Any:
        nonlocal error
        rule = error_checks.get(eqn.primitive)
        if rule is None:
            return eqn.primitive.rebind(inputs, eqn.params)
        error, outputs = rule(error, enabled, *inputs, **eqn.params)
        return outputs

    outputs = run_equations(jaxpr, env, step)
    return error, outputs


@dataclass(slots=True, eq=False)
class CheckedProgram:
    """A program with its checks: it takes the leaves of an error before its inputs.

    Its outputs are the leaves of the error after it, and then its own. `out_tree` is
    the tree of (error, outputs), `kinds` the errors that it knows.
    """

    closed: language.ClosedJaxpr
    out_tree: Any
    kinds: list[error_values.ErrorEffect]

    def result(self, flat: Sequence[Any]) -> tuple[error_values.Error, list[Any]]:
        """(error, outputs) of the results of the program."""
        return tree_unflatten(self.out_tree, flat)


def checked_program(
    closed: language.ClosedJaxpr,
    enabled: Enabled,
    error: error_values.Error,
    in_avals: Sequence[Any],
    one: bool = False,
    typed: Callable = language.get_aval,
) -> CheckedProgram:
    """The checked form of a program, for an error and inputs of these types.

    With `one` it returns one error, also where those of several devices came in.
    `typed` gives the types of the error's leaves.
    """
    leaves, err_tree = tree_flatten(error)
    avals = (*map(typed, leaves), *in_avals)
    return _checked_program(closed, frozenset(enabled), err_tree, avals, one)


@language.weakref_lru_cache
def _checked_program(
    closed: language.ClosedJaxpr, enabled: Enabled, err_tree: Any, avals: Any, one: bool
) -> CheckedProgram:
    trees: list[Any] = []
    kinds: list[error_values.ErrorEffect] = []

    def flat(*values: Any) -> list[Any]:
        count = err_tree.num_leaves
        error = tree_unflatten(err_tree, values[:count])
        error, outputs = checkify_jaxpr(
            closed.jaxpr, closed.consts, enabled, error, *values[count:]
        )
        if one:
            error = error_values.one_error(error)
        leaves, tree = tree_flatten((error, outputs))
        trees.append(tree)
        kinds.extend(error._pred)
        return leaves

    # The names of the arguments would not be at their places any more.
    old = closed.jaxpr.debug_info
    info = language.DebugInfo(old.traced_for, old.func_name, old.place)
    jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, info)
    return CheckedProgram(language.ClosedJaxpr(jaxpr, consts), trees[0], kinds)


def checkify(
    f: Callable,
    errors: frozenset[error_values.ErrorCategory] = error_values.user_checks,
) -> Callable[..., tuple[error_values.Error, Any]]:
    """A function that returns `(error, result of f)`: errors become values.

        err, y = checkify(f, errors=float_checks)(x)
        err.throw()                                 # or err.get(): a message, or None

    Args:
      f: the function; it may contain `check`, and be jitted.
      errors: which errors are looked for: `user_checks` (calls of `check`),
        `nan_checks`, `div_checks`, `index_checks`, or a union of them:
        `float_checks`, `automatic_checks`, `all_checks`.

    Returns:
      A function with the arguments of `f`. The error is that of the check that came
      first among those that failed.
    """
    check_callable(f, "checkify")

    @api_boundary
    def checked_fun(*args: Any, **kwargs: Any) -> tuple[error_values.Error, Any]:
        trees: list[Any] = []

        # The arguments are closed over, so that numbers stay numbers while tracing.
        def flat() -> list[Any]:
            outputs, tree = tree_flatten(f(*args, **kwargs))
            signatures.check_outputs(outputs, tree, fun_name(f), "checkify")
            trees.append(tree)
            return outputs

        in_tree = tree_flatten(((), {}))[1]
        info = signatures.lazy_debug_info(f, in_tree, "checkify")
        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, [], info)
        error, outputs = checkify_jaxpr(jaxpr, consts, errors, error_values.init_error)
        if state.trace is language.eval_trace:
            outputs = [casting.asarray(x) for x in outputs]  # not the literals
        return error, tree_unflatten(trees[0], outputs)

    return checked_fun
