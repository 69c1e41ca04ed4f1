"""Splitting a program in two under a policy: which values are saved or recomputed.

Partial evaluation of a program whose inputs are partly unknown gives a known program
and a staged one, with residuals between. Here every variable has two marks: whether it
is *unknown*, and whether it is *instantiated*, that is, there in the staged program
without being a residual. A known equation always goes to the known program. If the
policy says that its results may be saved, they become residuals where the staged
program needs them; if not, the equation goes to the staged program as well, which so
computes them again. Dead code is removed from both afterwards.

    policy(primitive, *avals, **params) -> True (save) or False (compute again)

A primitive that carries a program has a rule in the table `split_rules`:

    rule(saveable, unknown_in, inst_in, eqn)
        -> (known equation, staged equation, unknown_out, inst_out, residuals)

In JAX: `interpreters/partial_eval.py`, `partial_eval_jaxpr_custom` and its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.backend.buffer_copies import ArrayCopySemantics
from minijax.core import language
from minijax.core.effects import of_equation, of_program
from minijax.primitives.parallel.device_moves import device_put_p, placed_aval
from minijax.primitives.refs import mutable_arrays, references
from minijax.primitives.refs.ref_effects import InternalMutableArrayEffect
from minijax.support import user_source
from minijax.support.memory_spaces import space_of_kind
from minijax.support.tables import Table
from minijax.transforms import unknown_refs
from minijax.values.named_axes import NamedAxisEffect
from minijax.values.ref_avals import AbstractRef

# By primitive: how an equation is split, as said above.
split_rules = Table("split_rules")


class RecomputeType:
    """The answer of a policy: compute it again."""


class SaveableType:
    """The answer of a policy: it may be saved."""


class Offloadable(NamedTuple):
    """The answer of a policy: it may be saved in another memory, `dst`."""

    src: str
    dst: str


Recompute = RecomputeType()
Saveable = SaveableType()


def _may_be_saved(answer: Any) -> bool:
    """A policy's answer as a bool.

    TypeError for an answer that a policy may not give.
    """
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, SaveableType):
        return True
    if isinstance(answer, RecomputeType):
        return False
    raise TypeError(
        "Value returned by a remat policy should be a bool or "
        "`ad_checkpoint.Recompute`, `ad_checkpoint.Saveable` or "
        f"`ad_checkpoint.Offloadable(...)`. Got {answer} of type {type(answer)}."
    )


def _move(
    inputs: Sequence[Any], outputs: Sequence[Any], kind: str
) -> language.JaxprEqn:
    """The equation that moves values to the memory of a kind."""
    params = {
        "devices": (space_of_kind(kind),) * len(inputs),
        "srcs": (None,) * len(inputs),
        "copy_semantics": (ArrayCopySemantics.ALWAYS_COPY,) * len(inputs),
    }
    source = user_source.new_source_info()
    return language.JaxprEqn(
        [*inputs], [*outputs], device_put_p, params, language.no_effects, source
    )


def _must_run_once(eqn: language.JaxprEqn) -> bool:
    """Whether an equation has an outside effect, so that it must not be repeated."""
    repeatable = (NamedAxisEffect, InternalMutableArrayEffect)
    return any(not isinstance(effect, repeatable) for effect in eqn.effects)


class Split(NamedTuple):
    """What `partial_eval_jaxpr_custom` returns.

    `known` maps the known inputs to the known outputs and `num_res` residuals;
    `staged` maps the residuals and the instantiated inputs to the instantiated outputs.
    """

    known: language.Jaxpr
    staged: language.Jaxpr
    unknown_out: list[bool]
    inst_out: list[bool]
    num_res: int


def partial_eval_jaxpr_custom(
    jaxpr: language.Jaxpr,
    unknown_in: Sequence[bool],
    inst_in: Sequence[bool],
    ensure_out_unknowns: Sequence[bool] | bool,
    ensure_out_inst: Sequence[bool] | bool,
    saveable: Callable,
) -> Split:
    """Split a program by which inputs are known and what a policy saves.

    `ensure_out_unknowns` and `ensure_out_inst` flag outputs that are to be unknown, or
    in the staged program, in any case.
    """
    count = len(jaxpr.outvars)
    if isinstance(ensure_out_unknowns, bool):
        ensure_out_unknowns = [ensure_out_unknowns] * count
    if isinstance(ensure_out_inst, bool):
        ensure_out_inst = [ensure_out_inst] * count
    flags = (unknown_in, inst_in, ensure_out_unknowns, ensure_out_inst)
    return _partial_eval_jaxpr_custom(jaxpr, *map(tuple, flags), saveable)


@language.weakref_lru_cache
def _partial_eval_jaxpr_custom(
    jaxpr: language.Jaxpr,
    unknown_in: tuple[bool, ...],
    inst_in: tuple[bool, ...],
    ensure_out_unknowns: tuple[bool, ...],
    ensure_out_inst: tuple[bool, ...],
    saveable: Callable,
) -> Split:
    """`partial_eval_jaxpr_custom`, with flags as tuples, which can be hashed."""
    marks: dict[language.Var, tuple[bool, bool]] = dict.fromkeys(
        jaxpr.constvars, (False, True)
    )
    marks.update(zip(jaxpr.invars, zip(unknown_in, inst_in, strict=True)))
    residuals: dict[language.Var, None] = {}

    def read(atom: language.Atom) -> tuple[bool, bool]:
        return marks[atom] if isinstance(atom, language.Var) else (False, True)

    def save(atom: language.Atom, inst: bool) -> None:
        if isinstance(atom, language.Var) and not inst:
            residuals[atom] = None

    refs = unknown_refs.unknown_refs(jaxpr, unknown_in)
    known_eqns: list[language.JaxprEqn] = []
    staged_eqns: list[language.JaxprEqn] = []

    def stage(eqn: language.JaxprEqn, inst: Sequence[bool], unknown: bool) -> None:
        """Put an equation into the staged program; save the inputs not there yet."""
        for atom, flag in zip(eqn.invars, inst):
            save(atom, flag)
        staged_eqns.append(eqn)
        marks.update(dict.fromkeys(eqn.outvars, (unknown, True)))

    for eqn in jaxpr.eqns:
        unknown = [read(v)[0] for v in eqn.invars]
        inst = [read(v)[1] for v in eqn.invars]
        rule = split_rules.get(eqn.primitive)
        makes_unknown = not refs.isdisjoint(eqn.outvars)
        if makes_unknown or (rule is None and any(unknown)):
            stage(eqn, inst, True)
        elif rule is not None:
            known, staged, unknown_out, inst_out, saved = rule(
                saveable, unknown, inst, eqn
            )
            if known is not None:
                known_eqns.append(known)
            if staged is not None:
                staged_eqns.append(staged)
            for var in saved:
                _check_no_ref(var, eqn)
                save(var, False)
            marks.update(zip(eqn.outvars, zip(unknown_out, inst_out, strict=True)))
        else:
            known_eqns.append(eqn)
            avals = [v.aval for v in eqn.invars]
            answer = saveable(eqn.primitive, *avals, **eqn.params)
            if isinstance(answer, Offloadable) and not _must_run_once(eqn):
                space = space_of_kind(answer.dst)
                moved = [language.Var(placed_aval(v.aval, space)) for v in eqn.outvars]
                known_eqns.append(_move(eqn.outvars, moved, answer.dst))
                staged_eqns.append(_move(moved, eqn.outvars, answer.src))
                residuals.update(dict.fromkeys(moved))
                marks.update(dict.fromkeys([*moved, *eqn.outvars], (False, True)))
            elif _must_run_once(eqn) or _may_be_saved(answer):
                marks.update(dict.fromkeys(eqn.outvars, (False, False)))
            else:
                stage(eqn, inst, False)
    out_marks = [read(v) for v in jaxpr.outvars]
    for atom, (_, flag), wanted in zip(jaxpr.outvars, out_marks, ensure_out_inst):
        if wanted:
            save(atom, flag)
    unknown_out = [a or b for (a, _), b in zip(out_marks, ensure_out_unknowns)]
    inst_out = [a or b for (_, a), b in zip(out_marks, ensure_out_inst)]
    saved_vars = list(residuals)
    known_jaxpr = _with(
        jaxpr,
        [v for v, flag in zip(jaxpr.invars, unknown_in) if not flag],
        [*(v for v, flag in zip(jaxpr.outvars, unknown_out) if not flag), *saved_vars],
        known_eqns,
    )
    staged_jaxpr = _with(
        jaxpr,
        [*saved_vars, *(v for v, flag in zip(jaxpr.invars, inst_in) if flag)],
        [v for v, flag in zip(jaxpr.outvars, inst_out) if flag],
        staged_eqns,
    )
    return Split(known_jaxpr, staged_jaxpr, unknown_out, inst_out, len(saved_vars))


def _check_no_ref(var: Any, eqn: language.JaxprEqn) -> None:
    if isinstance(var.aval, AbstractRef):
        raise NotImplementedError(
            f"the ref that {eqn.primitive} uses is made where the policy saves it; a "
            "ref cannot be saved. Make it inside of the checkpointed function."
        )


def _with(
    jaxpr: language.Jaxpr,
    invars: Sequence[language.Var],
    outvars: Sequence[language.Atom],
    eqns: Sequence[language.JaxprEqn],
) -> language.Jaxpr:
    effects = of_program(eqns, [*jaxpr.constvars, *invars])
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns, effects=effects)


# ----------------------------------------------------------------------------------
# Rules of primitives that carry a program
# ----------------------------------------------------------------------------------


def where(flags: Sequence[bool], items: Sequence[Any]) -> list[Any]:
    """The items whose flag is set."""
    return [item for flag, item in zip(flags, items, strict=True) if flag]


def where_not(flags: Sequence[bool], items: Sequence[Any]) -> list[Any]:
    """The items whose flag is not set."""
    return [item for flag, item in zip(flags, items, strict=True) if not flag]


def closed_call_rule(with_program: Callable, key: str = "jaxpr") -> Callable:
    """The rule of a primitive that calls the ClosedJaxpr in its parameter `key`.

    `with_program(params, closed)` gives the parameters for another program. Residuals
    that the caller has, as inputs or as results, are not returned again.
    """

    def rule(saveable, unknown, inst, eqn) -> tuple:
        known, staged, unknown_out, inst_out, from_input, from_output = split_closed(
            eqn.params[key], tuple(unknown), tuple(inst), saveable
        )
        known_in = where_not(unknown, eqn.invars)
        known_out = where_not(unknown_out, eqn.outvars)
        new: list[language.Var] = []
        saved: list[Any] = []
        avals = staged.in_avals[: len(from_input)]
        for aval, source_in, source_out in zip(avals, from_input, from_output):
            if source_out is not None:
                saved.append(known_out[source_out])
            elif source_in is not None:
                saved.append(known_in[source_in])
            else:
                new.append(language.Var(aval))
                saved.append(new[-1])
        eqn_known = eqn.replace(
            invars=known_in,
            outvars=[*known_out, *new],
            params=with_program(eqn.params, known),
            effects=of_equation(known.jaxpr, known_in),
        )
        staged_in = [*saved, *where(inst, eqn.invars)]
        eqn_staged = eqn.replace(
            invars=staged_in,
            outvars=where(inst_out, eqn.outvars),
            params=with_program(eqn.params, staged),
            effects=of_equation(staged.jaxpr, staged_in),
        )
        needed = [v for v in where_not(inst, eqn.invars) if isinstance(v, language.Var)]
        residuals = [v for v in (*needed, *saved) if isinstance(v, language.Var)]
        return eqn_known, eqn_staged, unknown_out, inst_out, residuals

    return rule


@language.weakref_lru_cache
def split_closed(
    closed: language.ClosedJaxpr,
    unknown: tuple[bool, ...],
    inst: tuple[bool, ...],
    saveable: Callable,
) -> tuple:
    split = partial_eval_jaxpr_custom(
        closed.jaxpr, unknown, inst, False, False, saveable
    )
    count = len(split.known.outvars) - split.num_res
    outvars, saved = split.known.outvars[:count], split.known.outvars[count:]
    inputs = {id(v): position for position, v in enumerate(split.known.invars)}
    outputs = {id(v): position for position, v in enumerate(outvars)}
    from_input = [inputs.get(id(v)) for v in saved]
    from_output = [outputs.get(id(v)) for v in saved]
    sources = zip(saved, from_input, from_output)
    new = [v for v, a, b in sources if a is None and b is None]
    known = split.known.replace(outvars=[*outvars, *new])
    return (
        language.ClosedJaxpr(known, closed.consts),
        language.ClosedJaxpr(split.staged, closed.consts),
        split.unknown_out,
        split.inst_out,
        from_input,
        from_output,
    )


# ----------------------------------------------------------------------------------
# Rules of refs: reads and writes are repeated on a ref that is made again
# ----------------------------------------------------------------------------------


def _new_ref_rule(saveable, unknown, inst, eqn) -> tuple:
    residuals = where_not(inst, eqn.invars)
    if unknown[0]:
        return None, eqn, [True], [True], residuals
    return eqn, eqn, [False], [True], residuals


def _ref_rule(saveable, unknown, inst, eqn) -> tuple:
    residuals = where_not(inst[1:], eqn.invars[1:])
    outputs = len(eqn.outvars)
    if unknown[0]:
        return None, eqn, [True] * outputs, [True] * outputs, residuals
    if eqn.invars[0].aval.kind == "no_grad_no_remat":
        return eqn, None, [False] * outputs, [False] * outputs, residuals
    return eqn, eqn, [False] * outputs, [True] * outputs, residuals


split_rules[mutable_arrays.new_ref_p] = _new_ref_rule
for _primitive in (references.get_p, references.swap_p, references.addupdate_p):
    split_rules[_primitive] = _ref_rule
