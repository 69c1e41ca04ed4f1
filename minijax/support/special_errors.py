"""The exceptions of indexing, random keys and symbolic shapes; errors in callbacks.

In JAX: `jax/_src/errors.py`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from minijax.core.errors import _NO_VALUES, JAXTypeError, _TeachingError, traced_message
from minijax.core.source_info import is_user_filename


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


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used as a Python integer: an axis, a size, a list index."""

    def __init__(self, tracer: Any) -> None:
        message, facts = traced_message(
            "A traced array cannot be used as a Python integer",
            tracer,
            _NO_VALUES,
            "If it is an axis, a shape or a count, make the argument static "
            "(`jit(f, static_argnums=...)`). If it indexes a list, write "
            "`jnp.array(items)[index]`.",
        )
        super().__init__(message, **facts)


class KeyReuseError(JAXTypeError):
    """A random key was used twice, so the same numbers would come twice."""


class InconclusiveDimensionOperation(Exception):
    """A symbolic dimension cannot be compared or divided without its value."""


def facts_of(error: BaseException) -> dict[str, Any]:
    """The facts attached to an exception; empty for a foreign one."""
    return dict(getattr(error, "facts", {}))


# ---- callbacks ---------------------------------------------------------------------

# The last exceptions of callbacks. XLA's threads pass on their text only.
_raised_in_callbacks: deque[BaseException] = deque(maxlen=16)


def remember_callback_error(error: BaseException) -> None:
    """Keep what a callback raised until XLA's error about it comes to the user."""
    _raised_in_callbacks.append(error)


def add_callback_cause(error: BaseException) -> None:
    """Give XLA's error about a callback what that raised as its cause.

    XLA knows only the text of an exception of Python. Found again by it, the exception
    itself tells its own traceback, down to the user's line.
    """
    text = str(error)
    for raised in reversed(_raised_in_callbacks):
        if "callback" in text and type(raised).__name__ in text and str(raised) in text:
            _raised_in_callbacks.remove(raised)
            start_at_users_frame(raised)
            error.__cause__ = raised
            return


def start_at_users_frame(error: BaseException) -> None:
    """Leave the library's own frames out at the start of an exception's traceback."""
    rest = error.__traceback__
    while rest is not None and not is_user_filename(rest.tb_frame.f_code.co_filename):
        rest = rest.tb_next
    error.__traceback__ = rest
