"""debug_key_reuse: an error when a random key is used twice.

A key that was split, or from which numbers were drawn, is *consumed*: to use it again
gives the same numbers again. For each primitive a signature says what it does to keys:
which inputs it consumes, which outputs are fresh keys, and which outputs are an input
in another form. The signature of a program follows from those of its equations, and
finds a key that is used twice within it. Between programs that run one after another
a flag of every key array says whether it was consumed.

Keys in one array are told apart where a slice says which are meant (a mask).

In JAX: `jax/experimental/key_reuse/_core.py`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, errors, language, source_info
from minijax.support import element_types, special_errors
from minijax.values.inner_programs import InnerProgram, inner_programs

Mask = Any  # True for all keys of an array, or a Boolean array


class Signature(NamedTuple):
    """What an operation does to the keys among its inputs and outputs.

    `sinks`: input -> which keys it consumes. `sources`: outputs that are fresh keys.
    `forwards`: output -> the input that it is.
    """

    sinks: dict[int, Mask]
    sources: frozenset[int] = frozenset()
    forwards: dict[int, int] | None = None


def _signature(sinks: Sequence[int] = (), source: bool = False) -> Signature:
    return Signature(dict.fromkeys(sinks, True), frozenset([0] if source else []))


_FORWARD = Signature({}, frozenset(), {0: 0})
_NOTHING = _signature()

_signatures: dict[str, Signature] = {
    "random_bits": _signature([0]),
    "random_split": _signature([0], source=True),
    "random_gamma": _signature([0]),
    "random_clone": _signature(source=True),
    "random_fold_in": _signature(source=True),
    "random_seed": _signature(source=True),
    "random_wrap": _signature(source=True),
    "random_unwrap": _NOTHING,
    "debug_callback": _NOTHING,
    "debug_print": _NOTHING,
    "eq": _NOTHING,
    "ne": _NOTHING,
    "dynamic_update_slice": Signature({1: True}, frozenset(), {0: 0}),
    "scatter": Signature({2: True}, frozenset(), {0: 0}),
    **dict.fromkeys(
        "broadcast_in_dim copy stage convert_element_type reshape squeeze "
        "dynamic_slice gather".split(),
        _FORWARD,
    ),
}

# Signatures that depend on the parameters of the equation.
_rules: dict[str, Callable[[language.JaxprEqn], Signature]] = {}


def _rule(name: str) -> Callable[[Callable], Callable]:
    def enter(rule: Callable) -> Callable:
        _rules[name] = rule
        return rule

    return enter


def is_key(aval: Any) -> bool:
    """Whether a type is that of typed random keys."""
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and dtypes.issubdtype(dtype, element_types.prng_key)


def signature_of_eqn(eqn: language.JaxprEqn) -> Signature:
    """What an equation does to keys.

    A primitive without a signature and without programs consumes all it is given.
    """
    name = eqn.primitive.name
    if name in _rules:
        return _rules[name](eqn)
    known = _signatures.get(name)
    if known is not None:
        return known
    programs = inner_programs(eqn)
    if programs:
        return _signature_of_programs(programs)
    return _signature([i for i, v in enumerate(eqn.invars) if is_key(v.aval)])


@language.weakref_lru_cache
def signature_of(jaxpr: language.Jaxpr) -> Signature:
    """What a program does to its inputs, which its constants follow.

    Raises KeyReuseError, with the line, when it uses a key twice.
    """
    consumed: dict[language.Var, Mask] = {}
    same: dict[language.Var, Any] = {}  # a variable -> the one whose other form it is

    def origin(var: Any) -> Any:
        while var in same:
            var = same[var]
        return var

    for eqn in jaxpr.eqns:
        with source_info.user_context(eqn.source_info):
            signature = signature_of_eqn(eqn)
        for out, position in (signature.forwards or {}).items():
            if type(eqn.invars[position]) is not language.Literal:
                same[eqn.outvars[out]] = eqn.invars[position]
        for position, mask in signature.sinks.items():
            var = eqn.invars[position]
            if not is_key(var.aval):
                continue
            var = origin(var)
            if np.any(np.logical_and(consumed.get(var, False), mask)):
                raise _reused_in_program(eqn, position)
            consumed[var] = np.logical_or(consumed.get(var, False), mask)
        for position, var in enumerate(eqn.outvars):
            if is_key(var.aval) and var not in same:
                consumed[var] = position not in signature.sources
    inputs = [*jaxpr.invars, *jaxpr.constvars]
    places = {var: position for position, var in enumerate(inputs)}
    sinks = {
        position: consumed[var]
        for var, position in places.items()
        if is_key(var.aval) and np.any(consumed.get(var, False))
    }
    sources, forwards = [], {}
    for position, var in enumerate(jaxpr.outvars):
        if not is_key(var.aval):
            continue
        first = origin(var)
        if first in places:
            forwards[position] = places[first]
        elif not np.any(consumed.get(first, False)):
            sources.append(position)
    return Signature(sinks, frozenset(sources), forwards)


def _reused_in_program(
    eqn: language.JaxprEqn, position: int
) -> special_errors.KeyReuseError:
    place = source_info.format_line(eqn.source_info)
    return special_errors.KeyReuseError(
        f"In {eqn.primitive}, argument {position} is already consumed.\n"
        + (f"It happened at\n  {place}\n" if place else "")
        + _ADVICE,
        line=place,
        instead=_ADVICE,
    )


_ADVICE = (
    "A key that was split, or from which numbers were drawn, gives the same again. "
    "Split it first, `key, subkey = random.split(key)`, and use each part once."
)

# ----------------------------------------------------------------------------------
# Equations whose signature depends on their parameters
# ----------------------------------------------------------------------------------


@_rule("slice")
def _slice(eqn: language.JaxprEqn) -> Signature:
    aval, params = eqn.invars[0].aval, eqn.params
    if not is_key(aval):
        return _FORWARD
    starts, limits = params["start_indices"], params["limit_indices"]
    strides = params["strides"] or (1,) * len(starts)
    mask = np.zeros(aval.shape, bool)
    mask[tuple(slice(*bounds) for bounds in zip(starts, limits, strides))] = True
    return Signature({0: mask}, frozenset([0]))


@_rule("concatenate")
def _concatenate(eqn: language.JaxprEqn) -> Signature:
    count = len(eqn.invars)
    return _FORWARD if count == 1 else _signature(range(count), source=True)


@_rule("remat2")
def _remat(eqn: language.JaxprEqn) -> Signature:
    """The second pass reuses the keys of the first one on purpose."""
    if eqn.params["differentiated"]:
        return _NOTHING
    return signature_of(eqn.params["jaxpr"])


# ----------------------------------------------------------------------------------
# Equations that carry programs
# ----------------------------------------------------------------------------------


def _signature_of_programs(programs: Sequence[InnerProgram]) -> Signature:
    """The use of keys in calls, branches and loops, from that in their programs.

    What any program consumes is consumed. An output is fresh, or an input in another
    form, if it is so in every program that returns it.
    """
    sinks: dict[int, Mask] = {}
    returning: list[Signature] = []
    for program in programs:
        own = signature_of(program.jaxpr)
        if program.carry is not None:
            own = _repeated(program, own)
        for place, mask in own.sinks.items():
            if place < len(program.inputs):
                position = program.inputs[place]
                sinks[position] = np.logical_or(sinks.get(position, False), mask)
        if not program.decides:
            forwards = {
                out: program.inputs[place]
                for out, place in (own.forwards or {}).items()
                if place < len(program.inputs)
            }
            returning.append(Signature({}, own.sources, forwards))
    sources = frozenset.intersection(*(own.sources for own in returning))
    first, *rest = [own.forwards or {} for own in returning]
    forwards = {
        out: position
        for out, position in first.items()
        if all(other.get(out) == position for other in rest)
    }
    return Signature(sinks, sources, forwards)


def _repeated(program: InnerProgram, step: Signature) -> Signature:
    """What all steps of a loop together do to keys.

    KeyReuseError when a step uses a key that an earlier step used: one that all steps
    have, or an entry of the carry that no step replaces.
    """
    carry = program.carry or range(0)
    sources = frozenset() if program.decides else step.sources
    for place, mask in step.sinks.items():
        entry = place - carry.start
        if not np.any(mask) or entry >= len(carry) or entry in sources:
            continue
        kind = (
            "a key that it closes over is consumed in every step"
            if entry < 0
            else f"entry {entry} of the carry is consumed and not replaced by a new key"
        )
        raise errors.with_facts(
            special_errors.KeyReuseError(
                f"{program.name} leads to key reuse when repeatedly executed: {kind}.\n"
                f"{_ADVICE} In a loop, carry the new key on, or scan over split keys."
            ),
            instead="key, subkey = random.split(key)",
        )
    sinks = {place: True for place, mask in step.sinks.items() if np.any(mask)}
    kept = {
        out: place
        for out, place in (step.forwards or {}).items()
        if place == carry.start + out
    }
    return Signature(sinks, step.sources, kept)


# ----------------------------------------------------------------------------------
# Between programs
# ----------------------------------------------------------------------------------


class _Keys:
    """Which key arrays on devices were consumed, and where they were used first.

    By the identity of the device's array: it is forgotten with it.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Mask, Any]] = {}

    def consumed(self, buffer: Any) -> Mask:
        return self.known.get(id(buffer), (None, False, None))[1]

    def first_use(self, buffer: Any) -> Any:
        return self.known.get(id(buffer), (None, False, None))[2]

    def note(self, buffer: Any, mask: Mask, place: Any) -> None:
        key = id(buffer)
        alive = weakref.ref(buffer, lambda _: self.known.pop(key, None))
        self.known[key] = (alive, mask, place)


_keys = _Keys()


def checking(launch: Callable, lowered: Any) -> Callable:
    """The launcher of a program, which consumes the keys it is given.

    Raises KeyReuseError at once when the program itself uses a key twice, and when it
    is launched with a key that was used before.
    """
    closed: language.ClosedJaxpr | None = lowered.source()
    if closed is None:
        return launch
    signature = signature_of(closed.jaxpr)
    eager = closed.debug_info.traced_for == "eager"
    name = lowered.name if eager else "jit-compiled function"
    at = {place: i + len(lowered.constants) for i, place in enumerate(lowered.kept)}
    count = len(closed.in_avals)
    consts = [getattr(const, "_buffer", None) for const in closed.consts]
    key_outputs = [i for i, aval in enumerate(closed.out_avals) if is_key(aval)]

    def buffer_of(arguments: list[Any], place: int) -> Any:
        if place >= count:
            return consts[place - count]
        return arguments[at[place]] if place in at else None

    def run(arguments: list[Any]) -> list[Any]:
        here = source_info.current().traceback
        for place, mask in signature.sinks.items():
            buffer = buffer_of(arguments, place)
            before = _keys.consumed(buffer)
            if np.any(np.logical_and(before, mask)):
                raise _reused(name, place, _keys.first_use(buffer))
            if buffer is not None:
                _keys.note(buffer, np.logical_or(before, mask), here)
        results = launch(arguments)
        for place in key_outputs:
            kept = (signature.forwards or {}).get(place)
            if kept is not None:
                old = buffer_of(arguments, kept)
                mask = bool(np.all(_keys.consumed(old)))
                _keys.note(results[place], mask, _keys.first_use(old))
            elif place not in signature.sources:
                _keys.note(results[place], True, here)
        return results

    return run


def _reused(name: str, place: int, first: Any) -> special_errors.KeyReuseError:
    line = source_info.format_line(first) if first is not None else ""
    error = special_errors.KeyReuseError(
        f"Previously-consumed key passed to {name} at index {place}.\n"
        + (f"It was first used at\n  {line}\n" if line else "")
        + _ADVICE
    )
    return errors.with_facts(error, first_used=line, instead=_ADVICE)
