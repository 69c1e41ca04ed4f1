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
    lists = [list(iterable) for iterable in iterables]
    if len({len(items) for items in lists}) > 1:
        lengths = ", ".join(str(len(items)) for items in lists)
        raise ValueError(
            f"safe_map and safe_zip take iterables of one length, got lengths {lengths}"
        )
    return list(zip(*lists))
