"""`jax.experimental.hijax`, as far as a library can declare what it never uses.

"High-level" types and primitives are experiments inside JAX; minijax has one kind of
program. Flax declares some when it is imported, and uses them only for variables made
with `hijax=True`: then binding one is refused here, with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from minijax.core.effects import control_flow_allowed_effects
from minijax.core.language import AbstractValue
from minijax.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal
from minijax.values.ref_avals import AbstractRef

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive",
    "HiType", "MutableHiType", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]  # fmt: skip


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"{what}: high-level types and primitives (hijax) are experiments inside JAX, "
        "which minijax does not have. With Flax, make variables without hijax=True."
    )


class HiPrimitive:
    """A high-level primitive: it can be declared, not bound."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Not here: NotImplementedError."""
        _refuse(f"the primitive {self.name}")


class HiType:
    """A high-level type: a base for classes that are declared."""


class MutableHiType(HiType):
    """A high-level type whose values change."""


class AvalQDD:
    """A type with what is known of a value that changes; not to be made here."""

    def __init__(self, *args: Any):
        _refuse("AvalQDD")


class AvalMutableQDD(AvalQDD):
    """As `AvalQDD`, while a program is traced."""


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Takes note of nothing: values of such a class are refused as arguments of JAX."""


class aval_method(NamedTuple):
    """A method that tracers of a high-level type have; there are no such tracers."""

    fun: Callable


class aval_property(NamedTuple):
    """A property that tracers of a high-level type have; there are no such tracers."""

    fget: Callable
