"""Effects: what an equation does besides computing its results.

An equation's effects keep it from being removed as dead code, and decide where it may
occur: each set below lists the types of effects that one part of the system accepts.
The core has no effect of its own: the rooms that define one (refs, callbacks, named
axes) add its type to the sets that apply.

In JAX: `jax/_src/effects.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class Effect:
    """Base class of all effects. Instances must hash and compare by meaning."""


class JaxprInputEffect(Effect):
    """An effect on one input of an equation or a jaxpr, such as reading a ref.

    `input` is the variable, or the position of the input where no variables exist
    yet (in a type rule).
    """

    def __init__(self, input: Any) -> None:
        self.input = input

    def replace(self, input: Any) -> JaxprInputEffect:
        """The same effect on another input."""
        return type(self)(input)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JaxprInputEffect):
            return NotImplemented
        return type(self) is type(other) and self.input == other.input

    def __hash__(self) -> int:
        return hash((type(self), self.input))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.input})"


def with_inputs(effects: Iterable[Effect], inputs: Sequence[Any]) -> frozenset:
    """The effects of a type rule, on positions, as effects on an equation's inputs."""
    return frozenset(
        effect.replace(inputs[effect.input])
        if isinstance(effect, JaxprInputEffect)
        else effect
        for effect in effects
    )


def positional(effects: Iterable[Effect], inputs: Sequence[Any]) -> frozenset:
    """The effects of a program, seen by an equation that carries it.

    Effects on the program's inputs become effects on their positions. Effects on refs
    that the program makes itself, which are not among `inputs`, are left out.
    """
    position = {var: index for index, var in enumerate(inputs)}
    seen = []
    for effect in effects:
        if not isinstance(effect, JaxprInputEffect):
            seen.append(effect)
        elif effect.input in position:
            seen.append(effect.replace(position[effect.input]))
    return frozenset(seen)


class EffectTypeSet:
    """A set of effect classes; a subclass of a member belongs to it too."""

    def __init__(self) -> None:
        self._effect_types: set[type[Effect]] = set()

    def add_type(self, effect_type: type[Effect]) -> None:
        self._effect_types.add(effect_type)

    def contains(self, effect: Effect) -> bool:
        return isinstance(effect, tuple(self._effect_types))

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """The effects that belong to the set, in the given order."""
        return [effect for effect in effects if self.contains(effect)]

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """The effects that do not belong to the set, in the given order."""
        return [effect for effect in effects if not self.contains(effect)]

    def __repr__(self) -> str:
        names = sorted(effect_type.__name__ for effect_type in self._effect_types)
        return f"EffectTypeSet({', '.join(names)})"


no_effects: frozenset[Effect] = frozenset()

# Keep program order: lowered with a token that is threaded through the program.
ordered_effects = EffectTypeSet()
# May be lowered to StableHLO.
lowerable_effects = EffectTypeSet()
# May occur in a body of scan, while_loop or cond.
control_flow_allowed_effects = EffectTypeSet()
# May occur in a function with custom derivative rules.
custom_derivatives_allowed_effects = EffectTypeSet()
# May occur in a checkpointed function, which runs twice.
remat_allowed_effects = EffectTypeSet()
# Happen in the known part of a partial evaluation, too.
partial_eval_kept_effects = EffectTypeSet()
# Do not keep an equation whose results are unused from being removed.
dceable_effects = EffectTypeSet()


def of_program(eqns: Iterable[Any], inputs: Sequence[Any]) -> frozenset:
    """The effects of a program: those of its equations, except on refs that it makes.

    `inputs` are the constvars and invars of the program.
    """
    every = no_effects.union(*(eqn.effects for eqn in eqns if eqn.effects))
    if not every:
        return no_effects
    return frozenset(
        effect
        for effect in every
        if not isinstance(effect, JaxprInputEffect)
        or any(effect.input is var for var in inputs)
    )


def of_equation(jaxpr: Any, invars: Sequence[Any]) -> frozenset:
    """The effects of an equation with the given inputs that carries a program."""
    return with_inputs(positional(jaxpr.effects, jaxpr.invars), invars)


def keeps_equation(effects: Iterable[Effect]) -> bool:
    """Whether an equation with these effects stays even if its results are unused."""
    return any(not dceable_effects.contains(effect) for effect in effects)
