"""Attributes that the flight recorder replaces, and gives back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

LOCK = threading.RLock()
# What is replaced: by owner and name, (what stood there before, what stands there now),
# the last one on top. Recordings may end in another order than that of their beginning.
REPLACED: dict[tuple[int, str], list[list[Any]]] = {}


def replaced(owner: Any, name: str, value: Any) -> Callable[[], None]:
    """Replaces an attribute; returns what gives it back."""
    with LOCK:
        layer = [getattr(owner, name), value]
        setattr(owner, name, value)
        layers = REPLACED.setdefault((id(owner), name), [])
        layers.append(layer)

    def undo() -> None:
        with LOCK:
            place = next(n for n, each in enumerate(layers) if each is layer)
            if place + 1 < len(layers):
                layers[place + 1][0] = layer[0]
            elif getattr(owner, name) is value:
                setattr(owner, name, layer[0])
            del layers[place]

    return undo
