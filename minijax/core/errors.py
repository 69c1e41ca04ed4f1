"""JAX's exceptions, whose messages explain an error and how to correct it.

A message gives the user's file and line, the reason why the operation cannot work
there, and a line to write instead. `error.facts` has the same as a dict of plain
values, for views and tests: `used_at` (a `Frame`), `line`, `value`, `born`, `rule`,
`instead`.

This file does not import tracers: the constructors accept any value, and call its
methods `_error_repr()` and `birth()` if it has them.

In JAX: `jax/_src/errors.py`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

from .events import Hook
from .runtime import JaxRuntimeError as JaxRuntimeError
from .source_info import Frame, format_line, source_text, user_frame_now

AnyException = TypeVar("AnyException", bound=BaseException)
AnyFunction = TypeVar("AnyFunction", bound=Callable)


def check_bool_conversion(size: int) -> None:
    """Raise ValueError unless an array of `size` elements has one truth value."""
    if size == 0:
        raise ValueError(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` "
            "to check that an array is not empty."
        )
    if size > 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. "
            "Use a.any() or a.all()"
        )


def with_facts(error: AnyException, **facts: Any) -> AnyException:
    """Attach facts to any exception: `raise with_facts(TypeError(...), rule="add")`.

    The user's line that led to the error is added to the facts, as `used_at` and
    `line`, and to the message.
    """
    known = dict(getattr(error, "facts", {}))
    if "used_at" not in known and "used_at" not in facts:
        frame = user_frame_now()
        known |= _place(frame)
        if frame is not None and error.args and isinstance(error.args[0], str):
            place = f"\nIt happened at\n  {format_line(frame)}"
            error.args = (error.args[0] + place, *error.args[1:])
    error.facts = known | facts  # type: ignore[attr-defined]
    return error


def type_error(message: str, **facts: Any) -> TypeError:
    """A TypeError with facts and the user's line: `raise type_error("...")`."""
    return with_facts(TypeError(message), **facts)


def value_error(message: str, **facts: Any) -> ValueError:
    """A ValueError with facts and the user's line: `raise value_error("...")`."""
    return with_facts(ValueError(message), **facts)


def _place(frame: Frame | None) -> dict[str, Any]:
    return {} if frame is None else {"used_at": frame, "line": source_text(frame)}


def _describe(value: Any) -> str:
    describe = getattr(value, "_error_repr", None)
    return describe() if describe is not None else str(value)


def traced_message(what: str, value: Any, why: str, instead: str) -> tuple[str, dict]:
    """The message and facts of an operation that needs a value while tracing."""
    frame = user_frame_now()
    paragraphs = [f"{what}: {_describe(value)}."]
    if frame is not None:
        paragraphs.append(f"It happened at\n  {format_line(frame)}")
    paragraphs += [why, instead]
    origin = getattr(value, "birth", str)().strip()  # str() is ""
    if origin:
        paragraphs.append(origin)
    facts = {
        "value": _describe(value),
        "origin": origin,
        "rule": why,
        "instead": instead,
        **_place(frame),
    }
    return "\n".join(paragraphs), facts


_NO_VALUES = (
    "While a function is traced its arrays have a shape and a dtype but no values yet, "
    "so Python cannot decide anything by them."
)


class _TeachingError(Exception):
    """An exception with facts and a message."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts or _place(user_frame_now())


class JAXTypeError(_TeachingError, TypeError):
    """A TypeError that carries facts."""


class ConcretizationTypeError(JAXTypeError):
    """A value was needed while only its shape and dtype are known.

    Typical causes are a traced argument where a static one is expected (an axis, a
    shape), `float(x)`, `x.item()`, and shapes that depend on values.
    """

    def __init__(self, tracer: Any, context: str = "") -> None:
        message, facts = traced_message(
            "A concrete value is needed, but this one is traced",
            tracer,
            " ".join(part for part in (context.strip(), _NO_VALUES) if part),
            "Mark the argument as static (`jit(f, static_argnums=...)`), or compute "
            "with array operations, whose shapes do not depend on values.",
        )
        super().__init__(message, **facts)


class TracerBoolConversionError(ConcretizationTypeError):
    """Python needed the truth value of a traced array, as in `if x > 0:`.

    `while`, `and`, `or`, `not`, `min(x, y)` and `assert` need it too.
    """

    def __init__(self, tracer: Any) -> None:
        message, facts = traced_message(
            "The truth value of a traced array was asked for",
            tracer,
            _NO_VALUES,
            "Write `jnp.where(condition, a, b)` or `lax.cond(condition, f, g, x)` "
            "in place of `if`, `lax.while_loop` in place of `while`, `jnp.minimum` in "
            "place of `min`, `&` and `|` in place of `and` and `or`; or make the "
            "argument static (`jit(f, static_argnums=...)`).",
        )
        JAXTypeError.__init__(self, message, **facts)


class TracerArrayConversionError(JAXTypeError):
    """A traced array was passed to NumPy, as in `np.sin(x)` or `table[i]`."""

    def __init__(self, tracer: Any) -> None:
        message, facts = traced_message(
            "A traced array cannot become a NumPy array",
            tracer,
            "NumPy computes at once and needs values; a traced array has none yet.",
            "Call the function of `jnp` in place of the one of `np`. To index a "
            "NumPy array with a traced index, write `jnp.asarray(table)[index]`.",
        )
        super().__init__(message, **facts)


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its trace ended, or in another trace.

    It left its function by a side effect: a global, an attribute, a list.
    """


class JaxprTypeError(TypeError):
    """A jaxpr is ill-typed: found by the checker, never the user's fault."""


# ---- boundaries: what the user called -----------------------------------------------

# Code objects of functions that users call and that filter tracebacks themselves.
boundaries: set[types.CodeType] = set()


@Hook
def filter_traceback(error: Exception) -> None:
    """Filter the traceback of an exception that leaves a boundary.

    By default the traceback does not change.
    """


def api_boundary(fun: AnyFunction) -> AnyFunction:
    """`fun` as a boundary: exceptions that leave it have their traceback filtered."""

    @functools.wraps(fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            filter_traceback.run(error)
            raise

    return boundary  # type: ignore[return-value]


boundaries.add(api_boundary(len).__code__)  # type: ignore[attr-defined]
