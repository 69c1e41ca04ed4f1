"""run_state: a program over refs as a pure function of their contents.

    def double(refs):
        x, y = refs
        y[...] = 2.0 * x[...]

    run_state(double)((x, jnp.zeros(3)))   # the contents afterwards: (x, 2 x)

The equation carries a program whose inputs are all refs and that has no results: its
results are the last contents. Arrays that the function closes over also become refs,
which are read once at the start. The derivative is that of the discharged program,
written over refs again: one ref of tangents for each ref that has any.

In JAX: `state/discharge.py`, `run_state`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core import autodiff, language, partial_eval, signatures
from minijax.core.effects import positional
from minijax.core.events import enter
from minijax.core.rules import Zero, instantiate
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.families import lower_fun
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.refs.ref_effects import RefEffect
from minijax.primitives.refs.references import ref_get
from minijax.programs.calls import run_eagerly
from minijax.programs.control_flow.operands import fixpoint
from minijax.transforms import discharge
from minijax.values.ref_avals import AbstractRef

run_state_p = language.register(language.Primitive("run_state", multiple_results=True))
run_state_p.cache_types = False
run_state_p.without("batch", "JAX has none: batch the function inside")
run_state_p.without("transpose", "its derivative runs forward only, as in JAX")


@run_state_p.def_effectful_abstract_eval
def _run_state_type(*avals, jaxpr: language.Jaxpr, **_) -> tuple:
    """Effects on refs that are not the caller's are not effects of the equation."""
    seen = positional(jaxpr.effects, jaxpr.invars)
    outer = frozenset(
        effect
        for effect in seen
        if not isinstance(effect, RefEffect) or type(avals[effect.input]) is AbstractRef
    )
    return list(avals), outer


def _pure(*contents: Any, jaxpr: language.Jaxpr, **_: Any) -> list[Any]:
    closed = discharge.discharge_state(language.ClosedJaxpr(jaxpr))
    return run_eagerly(closed, *contents)


run_state_p.impl = _pure


run_state_p.def_lowering(lower_fun(_pure))


@run_state_p.def_jvp_rule
def _run_state_jvp(primals, tangents, *, jaxpr, which_linear, **_) -> tuple[list, list]:
    nonzeros = _nonzero_contents(jaxpr, [type(t) is not Zero for t in tangents])
    given = [instantiate(t) for t, nonzero in zip(tangents, nonzeros) if nonzero]
    forward = autodiff.jvp_jaxpr(language.ClosedJaxpr(jaxpr), nonzeros)[0]
    hoisted, consts = _consts_to_refs(forward.jaxpr), forward.consts
    results = run_state_p.bind(
        *consts,
        *primals,
        *given,
        jaxpr=hoisted,
        which_linear=(False,) * len(consts) + which_linear + (True,) * len(given),
        is_initialized=(True,) * len(hoisted.invars),
    )
    return autodiff.split_tangents(results[len(consts) :], nonzeros)


def _nonzero_contents(jaxpr: language.Jaxpr, nonzeros: list[bool]) -> list[bool]:
    """Which refs have tangents in the end: those that are given one or written one."""
    pure = discharge.discharge_state(language.ClosedJaxpr(jaxpr))
    return fixpoint(nonzeros, lambda flags: (autodiff.jvp_jaxpr(pure, flags)[1], None))[
        0
    ]


def _run_state_discharge(discharged, *args, **params) -> tuple:
    contents = run_state_p.bind(*args, **params)
    return [c if flag else None for c, flag in zip(contents, discharged)], contents


enter(discharge_rules, run_state_p, _run_state_discharge)


def _consts_to_refs(jaxpr: language.Jaxpr) -> language.Jaxpr:
    """The program with its constants as leading inputs: refs, read at the start."""
    if not jaxpr.constvars:
        return jaxpr
    const_avals: list[Any] = [v.aval for v in jaxpr.constvars]
    is_ref = [type(aval) is AbstractRef for aval in const_avals]
    avals = [a if flag else AbstractRef(a) for a, flag in zip(const_avals, is_ref)]

    def hoisted(*args: Any) -> list[Any]:
        refs, rest = args[: len(avals)], args[len(avals) :]
        consts = [r if flag else ref_get(r, ()) for r, flag in zip(refs, is_ref)]
        return language.eval_jaxpr(jaxpr, consts, *rest)

    info = jaxpr.debug_info
    return partial_eval.trace_to_jaxpr(hoisted, [*avals, *jaxpr.in_avals], info)[0]


def run_state(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Turns a function of refs into a function of their contents.

    Args:
      f: takes one tree of refs, reads and writes them, and returns None.

    Returns:
      a function of a tree of arrays that returns the tree of the last contents.
    """

    def wrapped(args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        leaf_avals: list[Any] = [language.get_aval(leaf) for leaf in leaves]
        avals = [AbstractRef(aval) for aval in leaf_avals]
        info = signatures.lazy_debug_info(f, tree_flatten((args,))[1], "run_state")

        def flat(*refs: Any) -> list[Any]:
            return tree_flatten(f(tree_unflatten(tree, refs)))[0]

        jaxpr, consts = partial_eval.trace_to_jaxpr(flat, avals, info)
        hoisted = _consts_to_refs(jaxpr)
        count = len(consts) + len(leaves)
        contents = run_state_p.bind(
            *consts,
            *leaves,
            jaxpr=hoisted,
            which_linear=(False,) * count,
            is_initialized=(True,) * count,
        )
        return tree_unflatten(tree, contents[len(consts) :])

    return wrapped
