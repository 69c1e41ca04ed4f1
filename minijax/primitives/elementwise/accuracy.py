"""How exact elementary functions must be: the parameter `accuracy`.

In JAX: `lax/lax.py`, `AccuracyMode` and `Tolerance`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class AccuracyMode(enum.Enum):
    """How exact a function must be: as XLA pleases, or as exact as it can."""

    HIGHEST = 1
    DEFAULT = 2

    @property
    def fields(self) -> tuple:
        """The fields of StableHLO's attribute."""
        return (0.0, 0.0, 0, self.name)


@dataclass(frozen=True)
class Tolerance:
    """The error that is allowed in an elementary function.

    Args:
      atol, rtol: absolute and relative error.
      ulps: error in units of the last place.

    Raises ValueError for negative values, or when all are zero.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        errors = (self.atol, self.rtol, self.ulps)
        if any(error < 0 for error in errors) or not any(errors):
            raise ValueError(
                "Tolerance takes nonnegative errors, one of them positive; got "
                f"atol={self.atol}, rtol={self.rtol}, ulps={self.ulps}"
            )

    @property
    def fields(self) -> tuple:
        """The fields of StableHLO's attribute."""
        return (self.atol, self.rtol, self.ulps, "TOLERANCE")
