"""The part of SciPy's interface that minijax has."""

import importlib as _importlib
from typing import Any as _Any

from minijax.scipy import special as special
from minijax.scipy import stats as stats

# Loaded on first use: few programs need them.
_LAZY = ("fft", "linalg", "optimize", "signal", "sparse")


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [name for name in __dir__() if not name.startswith("_")]
