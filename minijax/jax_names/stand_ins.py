"""What libraries take from inside of JAX and minijax has in another form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# The version of JAX whose names and answers minijax has.
JAX_VERSION = "0.10.2"
JAX_VERSION_INFO = tuple(map(int, JAX_VERSION.split(".")))


def api_boundary(fun: Callable, **_: Any) -> Callable:
    """The function itself: minijax knows its own frames by their folder."""
    return fun
