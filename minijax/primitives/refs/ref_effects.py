"""The effects of refs: reading, writing, adding, and making one.

In JAX: `jax/_src/state/types.py`, and `core.py`, `InternalMutableArrayEffect`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from minijax.core import effects


@dataclass(frozen=True, repr=False)
class RefEffect(effects.Effect):
    """Base class of the effects on refs: on one input of an equation or a jaxpr.

    In JAX: `effects.py`, `JaxprInputEffect`.
    """

    name: ClassVar[str]
    input: Any

    def renamed(self, rename: Callable[[Any], Any]) -> effects.Effect | None:
        found = rename(self.input)
        return None if found is None else type(self)(found)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.input})"

    def __str__(self) -> str:
        return f"{self.name}<{self.input}>"


class ReadEffect(RefEffect):
    """The ref is read."""

    name = "Read"


class WriteEffect(RefEffect):
    """The ref is written; its old content may be returned."""

    name = "Write"


class AccumEffect(RefEffect):
    """Something is added to the ref, without looking at its content."""

    name = "Accum"


class InternalMutableArrayEffect(effects.Effect):
    """A ref is made or frozen: the program that does so has refs of its own.

    In JAX: `core.py`, `InternalMutableArrayEffect`.
    """

    def __repr__(self) -> str:
        return "InternalMutableArrayEffect"


internal_mutable_array_effect = InternalMutableArrayEffect()


for _allowed in (
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.remat_allowed_effects,
    effects.partial_eval_kept_effects,
):
    _allowed.add_type(RefEffect, InternalMutableArrayEffect)

del _allowed

effects.dceable_effects.add_type(ReadEffect, InternalMutableArrayEffect)
