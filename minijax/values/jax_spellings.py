"""What JAX offers to outside authors and minijax's own code does not need.

Each says here what it is in minijax. They are methods of `Primitive`, whose class is in
`core/language.py`; `assembly.py` gives them to it.

In JAX: `core.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.language import AbstractValue, Primitive, Trace, type_of_application


def bind_with_trace(
    self: Primitive, trace: Trace, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Apply the primitive in a given trace, instead of the current one."""
    return trace.process_primitive(self, args, params)


def get_bind_params(self: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters with which `bind` repeats an equation that has these `params`.

    They are the same ones: a primitive whose `bind` takes Python functions finds their
    programs in its parameters.
    """
    return params


def abstract_eval(self: Primitive, *avals: AbstractValue, **params: Any) -> tuple:
    """(type or types of the output, effects), cached."""
    return type_of_application(self, avals, params)


PRIMITIVE_METHODS = {
    method.__name__: method
    for method in (bind_with_trace, get_bind_params, abstract_eval)
}
