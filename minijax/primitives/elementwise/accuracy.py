"""How exact elementary functions must be: the parameter `accuracy`.

In JAX: `lax/lax.py`, `AccuracyMode` and `Tolerance`.
"""

from __future__ import annotations

import enum
from typing import Any

from minijax.backend import hlo


class AccuracyMode(enum.Enum):
    """How exact a function must be: as XLA pleases, or as exact as it can."""

    HIGHEST = 1
    DEFAULT = 2


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

    def _key(self) -> tuple:
        return (self.atol, self.rtol, self.ulps)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Tolerance) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def _accuracy_attribute(accuracy: Any) -> Any:
    """StableHLO's attribute for an accuracy: a mode, its name, or a tolerance."""
    if isinstance(accuracy, Tolerance):
        atol, rtol, ulps = accuracy._key()
        return hlo.stablehlo.ResultAccuracyAttr.get(atol, rtol, ulps, "TOLERANCE")
    mode = accuracy.upper() if isinstance(accuracy, str) else accuracy.name
    return hlo.stablehlo.ResultAccuracyAttr.get(0.0, 0.0, 0, mode)


def accurate_lowering(operation: str) -> Any:
    """Lowering of functions with an `accuracy` parameter (None: the default)."""

    def lower(ctx: Any, x: Any, *, accuracy: Any) -> Any:
        if accuracy is None:
            return ctx.operation(operation)(x)
        attribute = _accuracy_attribute(accuracy)
        return ctx.operation(operation)(x, result_accuracy=attribute)

    return lower
