"""How exact elementary functions must be: the parameter `accuracy`.

In JAX: `lax/lax.py`, `AccuracyMode` and `Tolerance`.
"""

from __future__ import annotations

import enum
from typing import Any


class AccuracyMode(enum.Enum):
    """How exact a function must be: as XLA pleases, or as exact as it can."""

    HIGHEST = 1
    DEFAULT = 2

    @property
    def fields(self) -> tuple:
        """The fields of StableHLO's attribute."""
        return (0.0, 0.0, 0, self.name)


class Tolerance:
    """The error that is allowed in an elementary function.

    Args:
      atol, rtol: absolute and relative error.
      ulps: error in units of the last place.

    Raises ValueError for negative values, or when all are zero.
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0.0 or rtol < 0.0 or ulps < 0 or not (atol or rtol or ulps):
            raise ValueError(
                "Tolerance takes nonnegative errors, one of them positive; got "
                f"atol={atol}, rtol={rtol}, ulps={ulps}"
            )
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    @property
    def fields(self) -> tuple:
        """The fields of StableHLO's attribute."""
        return (*self._key(), "TOLERANCE")

    def _key(self) -> tuple:
        return (self.atol, self.rtol, self.ulps)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Tolerance) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"
