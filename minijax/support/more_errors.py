"""The exceptions of indexing, random keys and symbolic shapes, with JAX's names.

In JAX: `jax/_src/errors.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.support.errors import JAXTypeError, _TeachingError, traced_message


class JAXIndexError(_TeachingError, IndexError):
    """An IndexError that carries facts."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced mask was used as an index: the size of the result is not known."""

    def __init__(self, tracer: Any) -> None:
        message, facts = traced_message(
            "A boolean index must have known values, but this one is traced",
            tracer,
            "The mask decides how large the result is, and shapes must be known while "
            "tracing.",
            "Write `jnp.where(mask, x, 0)` and go on with the full shape, or "
            "`jnp.nonzero(mask, size=n)` with a size that you choose.",
        )
        super().__init__(message, **facts)


class KeyReuseError(JAXTypeError):
    """A random key was used twice, which gives the same numbers twice."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message, **facts)


class InconclusiveDimensionOperation(Exception):
    """A symbolic dimension cannot be compared or divided without its value."""


def facts_of(error: BaseException) -> dict[str, Any]:
    """The facts attached to an exception; empty for a foreign one."""
    return dict(getattr(error, "facts", {}))
