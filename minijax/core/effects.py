"""Effects: what an equation does besides computing its results.

An equation's effects keep it from being removed as dead code, and decide where it may
occur: each set below lists the types of effects that one part of the system accepts.
The core has no effect of its own: the rooms that define one (refs, callbacks, named
axes) add its type to the sets that apply.

In JAX: `jax/_src/effects.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


class Effect:
    """Base class of all effects. Instances must hash and compare by meaning."""

    def renamed(self, rename: Callable[[Any], Any]) -> Effect | None:
        """The same effect on the input that `rename` gives for its input.

        Only effects on inputs override this method, such as that of reading a ref; they
        return None if `rename` gives None. An input is a variable, or a position where
        no variables exist yet (in a type rule).
        """
        return self

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("Effect")


def _renamed(effects: Iterable[Effect], rename: Callable[[Any], Any]) -> frozenset:
    found = [effect.renamed(rename) for effect in effects]
    return frozenset(effect for effect in found if effect is not None)


def with_inputs(effects: Iterable[Effect], inputs: Sequence[Any]) -> frozenset:
    """The effects of a type rule, on positions, as effects on an equation's inputs."""
    return _renamed(effects, lambda position: inputs[position])


def positional(effects: Iterable[Effect], inputs: Sequence[Any]) -> frozenset:
    """The effects of a program, seen by an equation that carries it.

    Effects on the program's inputs become effects on their positions. Effects on refs
    that the program makes itself, which are not among `inputs`, are left out.
    """
    return _renamed(effects, {var: index for index, var in enumerate(inputs)}.get)


class EffectTypeSet:
    """A set of effect classes; a subclass of a member belongs to it too."""

    def __init__(self) -> None:
        self._effect_types: set[type[Effect]] = set()

    def add_type(self, *effect_types: type[Effect]) -> None:
        self._effect_types.update(effect_types)

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
# Are kept in the known part of a partial evaluation.
partial_eval_kept_effects = EffectTypeSet()
# Do not prevent the removal of an equation whose results are unused.
dceable_effects = EffectTypeSet()


def of_program(eqns: Iterable[Any], inputs: Sequence[Any]) -> frozenset:
    """The effects of a program: those of its equations, except on refs that it makes.

    `inputs` are the constvars and invars of the program.
    """
    every = no_effects.union(*(eqn.effects for eqn in eqns if eqn.effects))
    if not every:
        return no_effects
    return _renamed(every, {var: var for var in inputs}.get)


def of_equation(jaxpr: Any, invars: Sequence[Any]) -> frozenset:
    """The effects of an equation that applies the program `jaxpr` to `invars`."""
    return with_inputs(positional(jaxpr.effects, jaxpr.invars), invars)


def keeps_equation(effects: Iterable[Effect]) -> bool:
    """Whether an equation with these effects stays even if its results are unused."""
    return bool(dceable_effects.filter_not_in(effects))
