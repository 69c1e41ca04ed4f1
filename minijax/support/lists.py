"""map and zip that return lists and raise ValueError for unequal lengths.

In JAX: `jax/_src/util.py`, `safe_map` and `safe_zip`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def safe_map(function: Callable, /, *iterables: Iterable[Any]) -> list[Any]:
    """`list(map(function, *iterables))`; ValueError if their lengths differ."""
    return [function(*items) for items in safe_zip(*iterables)]


def safe_zip(*iterables: Iterable[Any]) -> list[tuple]:
    """`list(zip(*iterables))`; ValueError if their lengths differ."""
    return list(zip(*iterables, strict=True))
