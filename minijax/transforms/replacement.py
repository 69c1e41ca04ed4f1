"""`minijax.replace`: your interpreter in the engine.

A learner who wrote a class like `BatchTrace` puts it in the place of minijax's own, and
real `jit`, `grad`, `vmap`, XLA and every view run on it:

    with minijax.replace(BatchTrace=MyBatchTrace):
        vmap(f)(x)

The replacement holds in this thread and inside of the block. It is part of the key of
every cache, so programs that were traced before or after it are not mixed up.
"""

from __future__ import annotations

import inspect
from typing import Any

from minijax.core.state import state
from minijax.support.settings import override

# What the engine calls on a trace of each kind, and how it makes one. A subclass of
# minijax's class has all of it; a class written from nothing needs exactly this.
INTERFACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "DynamicJaxprTrace": (
        "(debug_info, dead_code=False)",
        ("new_arg", "to_atom", "process_primitive", "finish"),
    ),
    "JVPTrace": ("(parent, tag)", ("to_pair", "tracer", "process_primitive")),
    "LinearizeTrace": (
        "(parent, tangent_trace)",
        ("to_pair", "tracer", "process_primitive"),
    ),
    "BatchTrace": (
        "(parent, tag, axis_data)",
        ("to_pair", "tracer", "process_primitive"),
    ),
}


class replace:
    """Context manager: transformations inside use other classes of traces.

    Names are those of minijax's classes: `DynamicJaxprTrace` (writes programs),
    `JVPTrace`, `LinearizeTrace`, `BatchTrace`. Each value is a class; what it must have
    stands in `INTERFACES`. Raises TypeError, naming what is missing, for an unknown
    name, a value that is not a class, and a class without a needed method. An exception
    inside of the block leaves nothing replaced.
    """

    def __init__(self, **classes: type) -> None:
        if not classes:
            raise TypeError(
                "replace takes classes by name, such as "
                "minijax.replace(BatchTrace=MyBatchTrace)."
            )
        for name, made in classes.items():
            check(name, made)
        self.pairs = tuple(classes.items())
        self.entered: list[Any] = []

    def __enter__(self) -> None:
        names = {name for name, _ in self.pairs}
        kept = tuple(pair for pair in state.replaced if pair[0] not in names)
        inner = override("replaced", kept + self.pairs)
        inner.__enter__()
        self.entered.append(inner)

    def __exit__(self, *exception: Any) -> None:
        self.entered.pop().__exit__(*exception)


def check(name: str, made: Any) -> None:
    """TypeError, which names a missing method, unless `made` can replace `name`."""
    if name not in INTERFACES:
        raise TypeError(
            f"replace takes the names {', '.join(INTERFACES)}, got {name!r}. Write the "
            "name of the class of minijax that yours replaces."
        )
    arguments, methods = INTERFACES[name]
    if not inspect.isclass(made):
        raise TypeError(
            f"replace({name}=...) takes a class, and got {type(made).__name__}: pass "
            "the class, not an instance."
        )
    missing = [name for name in methods if not callable(getattr(made, name, None))]
    if missing:
        raise TypeError(
            f"{made.__name__} cannot take the place of {name}: it has no method "
            f"{', '.join(missing)}. A {name} is made as {made.__name__}{arguments} and "
            f"has {', '.join(methods)}; a subclass of minijax's {name} has them all."
        )
