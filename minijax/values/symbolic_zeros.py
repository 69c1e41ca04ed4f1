"""Zero tangents that a user's own derivative rule may see.

In JAX: `ad_util.py`, `SymbolicZero`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.rules import Zero


class SymbolicZero(Zero):
    """A zero tangent, as rules with `symbolic_zeros=True` get and may return it.

    Interpreters work with `Zero` itself, so that a tangent which a rule has passed
    through their hands is never taken for one of their own.
    """

    __slots__ = ()

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def to_symbolic(tangents: Sequence[Any]) -> list[Any]:
    """Tangents as a rule sees them: each `Zero` as a `SymbolicZero`."""
    return [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]


def from_symbolic(tangents: Sequence[Any]) -> list[Any]:
    """Tangents as interpreters take them: each `SymbolicZero` as a `Zero`."""
    return [Zero(t.aval) if type(t) is SymbolicZero else t for t in tangents]
