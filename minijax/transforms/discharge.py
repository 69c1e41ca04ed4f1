"""Discharge: a program with refs becomes a pure one, as XLA needs it.

The interpreter walks over the equations and keeps, for every ref, the value it has at
that point. `b <- a[0]` becomes a slice of that value, `a[0] <- b` makes a new value,
`new_ref` and `freeze` vanish. Refs that are inputs become arrays, and their last values
become results after those of the program:

    { lambda ; a:Ref{f32[3]} b:f32[]. let a[0] <- b in () }
    { lambda ; a:f32[3] b:f32[]. let c = dynamic_update_slice a b 0 in (c,) }

A primitive with a ref among its inputs, or refs of its own inside, has a rule in the
table `discharge_rules` (`primitives/refs/ref_blocks.py`):

    rule(discharged, *args, **params) -> (new contents, outputs)

`discharged[i]` says whether input `i` is a ref, which becomes an array; `args` hold the
refs' contents in their places, and `new contents` has one entry for each input: the
content of a ref after the equation, or None for a ref that did not change and for other
inputs. A primitive that carries a program discharges it by
`discharge_state`, binds itself with the result, and separates the last results by
`split_contents`.

To run a program with refs is to run its pure one on the refs' contents and to put the
new contents into the refs: `compile/refs.py`.

In JAX: `state/discharge.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import Any

from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, Var, weakref_lru_cache
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.core.rules import Flags
from minijax.primitives.refs import mutable_arrays
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.refs.ref_effects import InternalMutableArrayEffect, RefEffect
from minijax.primitives.shape import broadcasting
from minijax.transforms.walking import run_equations
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# Programs to programs
# ----------------------------------------------------------------------------------


def has_refs(closed: ClosedJaxpr) -> bool:
    """Whether a program takes, closes over or makes refs."""
    kinds = (RefEffect, InternalMutableArrayEffect)
    if any(isinstance(effect, kinds) for effect in closed.effects):
        return True
    jaxpr = closed.jaxpr
    return any(type(v.aval) is AbstractRef for v in (*jaxpr.invars, *jaxpr.constvars))


def discharge_state(
    closed: ClosedJaxpr, should_discharge: bool | Sequence[bool] = True
) -> ClosedJaxpr:
    """The program without refs: from contents to results, then final contents.

    `should_discharge` says for which inputs that are refs (all, or one by one); the
    others stay refs.
    """
    if isinstance(should_discharge, bool):
        should_discharge = (should_discharge,) * len(closed.in_avals)
    return _discharge_state(closed, tuple(should_discharge))


@weakref_lru_cache
def _discharge_state(
    closed: ClosedJaxpr, should_discharge: tuple[bool, ...]
) -> ClosedJaxpr:
    in_avals = [
        aval.inner_aval if type(aval) is AbstractRef and flag else aval
        for aval, flag in zip(closed.in_avals, should_discharge, strict=True)
    ]

    def pure(*args: Any) -> list[Any]:
        return eval_discharged(closed.jaxpr, closed.consts, should_discharge, args)

    jaxpr, consts = trace_to_jaxpr(pure, in_avals, closed.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def eval_discharged(
    jaxpr: Jaxpr, consts: Sequence[Any], should_discharge: Flags, args: Sequence[Any]
) -> list[Any]:
    """Run a program with contents in place of refs: (results, final contents).

    Raises NotImplementedError for a primitive that takes a ref and has no rule.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    inputs = [
        var
        for var, flag in zip(jaxpr.invars, should_discharge, strict=True)
        if flag and type(var.aval) is AbstractRef
    ]
    discharged = set(inputs)

    step = partial(_eval_eqn, discharged=discharged, env=env)
    outputs = run_equations(jaxpr, env, step)
    return [*outputs, *(env[var] for var in inputs)]


def _eval_eqn(eqn: JaxprEqn, args: list[Any], discharged: set[Var], env: dict) -> Any:
    primitive = eqn.primitive
    if primitive is mutable_arrays.new_ref_p:
        discharged.add(eqn.outvars[0])
        return args[0]
    if primitive is mutable_arrays.empty_ref_p:
        discharged.add(eqn.outvars[0])
        aval = eqn.params["ty"]
        return broadcasting.empty(aval.shape, aval.dtype)
    flags = [v in discharged for v in eqn.invars]
    if any(flags) and primitive is mutable_arrays.freeze_p:
        return args[0]
    if any(flags) and primitive is mutable_arrays.free_ref_p:
        return []
    own = any(isinstance(e, InternalMutableArrayEffect) for e in eqn.effects)
    if not any(flags) and not own:
        return primitive.rebind(args, eqn.params)
    rule = discharge_rules.get(primitive)
    if rule is None:
        raise NotImplementedError(
            f"No state discharge rule implemented for primitive: {primitive}. It takes "
            "a ref, or makes one inside; enter a rule in `discharge_rules`, or read "
            "the ref before and write it after."
        )
    contents, outputs = rule(flags, *args, **eqn.params)
    for var, flag, content in zip(eqn.invars, flags, contents, strict=True):
        if content is None:
            continue
        if not flag:
            raise ValueError(
                f"the discharge rule of {primitive} gave a new content for an input "
                "that is not a discharged ref"
            )
        env[var] = content
    return outputs


def split_contents(
    results: Sequence[Any], discharged: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """Results of a discharged program, as a rule returns them: (contents, outputs)."""
    num_outputs = len(results) - sum(discharged)
    last = iter(results[num_outputs:])
    contents = [next(last) if flag else None for flag in discharged]
    return contents, list(results[:num_outputs])


# ----------------------------------------------------------------------------------
# Programs that are compiled
# ----------------------------------------------------------------------------------


def pure_and_donated(
    closed: ClosedJaxpr, donated: Sequence[bool] | None
) -> tuple[ClosedJaxpr, tuple[bool, ...], list[Ref]]:
    """(the pure program, which of its inputs are donated, the refs it closes over)."""
    pure, own = pure_program(closed)
    flags = donated or (False,) * len(closed.in_avals)
    of_refs = [type(aval) is AbstractRef for aval in closed.in_avals]
    merged = [a or b for a, b in zip(flags, of_refs, strict=True)]
    return pure, (*merged, *[True] * len(own)), own


@weakref_lru_cache
def pure_program(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Ref]]:
    """(the program without refs, the refs it closes over).

    The contents of these are its last inputs.
    """
    opened, own = hoist_refs(closed)
    return discharge_state(opened), own


def has_ref_constants(closed: ClosedJaxpr) -> bool:
    """Whether a program closes over refs."""
    return any(type(var.aval) is AbstractRef for var in closed.jaxpr.constvars)


@weakref_lru_cache
def hoist_refs(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Ref]]:
    """(the program with the refs it closes over as its last inputs, those refs)."""
    jaxpr = closed.jaxpr
    moved = [type(var.aval) is AbstractRef for var in jaxpr.constvars]
    if not any(moved):
        return closed, []
    kept = [not flag for flag in moved]
    opened = jaxpr.replace(
        constvars=list(compress(jaxpr.constvars, kept)),
        invars=[*jaxpr.invars, *compress(jaxpr.constvars, moved)],
    )
    consts = list(compress(closed.consts, kept))
    return ClosedJaxpr(opened, consts), list(compress(closed.consts, moved))
