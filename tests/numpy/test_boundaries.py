"""The jit boundaries of `jax.numpy`, read from jax: which functions are jitted, whether
inline, and which of their arguments are static."""

import functools
import inspect
from typing import Any

import jax
import pytest

import minijax
from minijax.core.jit import JitFunction

ROOMS = {"numpy": jax.numpy, "numpy.linalg": jax.numpy.linalg}


def shared_names() -> list[tuple[str, str]]:
    """The public functions that both libraries have."""
    found = []
    for room, theirs in ROOMS.items():
        ours = minijax.numpy if room == "numpy" else minijax.numpy.linalg
        for name in sorted(dir(theirs)):
            function = getattr(theirs, name)
            is_function = callable(function) and not isinstance(function, type)
            if not name.startswith("_") and is_function and hasattr(ours, name):
                found.append((room, name))
    return found


def static_names(function: Any, argnums: Any, argnames: Any) -> set[str]:
    """Static arguments by name, however they were given."""
    parameters = list(inspect.signature(function).parameters)
    return {parameters[number] for number in argnums} | set(argnames)


def boundary_of_jax(function: Any) -> tuple[bool, set[str]] | None:
    """Whether jax jits a function inline, and what is static; None: not jitted."""
    info = getattr(function, "_jit_info", None)
    if info is None:
        return None
    static = static_names(function, info.static_argnums, info.static_argnames)
    # A later jax has names for it.
    inline = getattr(info.inline, "value", info.inline)
    return inline in (True, "jax_early"), static


def boundary_of_minijax(function: Any) -> tuple[bool, set[str]] | None:
    """The same for minijax, where inline functions are wrapped (`inline_jit`)."""
    asked = getattr(function, "lower", None)
    jitted = asked.args[0] if isinstance(asked, functools.partial) else function
    if not isinstance(jitted, JitFunction):
        return None
    options = jitted._options
    static = static_names(function, options.static_argnums, options.static_argnames)
    return options.inline, static


@pytest.mark.parametrize(("room", "name"), shared_names())
def test_boundary_is_that_of_jax(room: str, name: str) -> None:
    ours = minijax.numpy if room == "numpy" else minijax.numpy.linalg
    expected = boundary_of_jax(getattr(ROOMS[room], name))
    assert boundary_of_minijax(getattr(ours, name)) == expected


def test_the_oracle_shows_boundaries() -> None:
    assert boundary_of_jax(jax.numpy.sort) is not None
    assert boundary_of_jax(jax.numpy.reshape) is None
    assert len(shared_names()) > 300
