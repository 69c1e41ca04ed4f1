"""How rooms give classes and tables of rooms below their parts: each place takes one.

Hooks, the third kind of place, are in `core/events.py`.
"""

from __future__ import annotations

from typing import Any


def add_methods(cls: type, methods: dict[str, Any]) -> None:
    """Give a class the methods and properties that a room above writes for it.

    A class names in `to_fill` those that it has only until they are given.

    Raises:
      RuntimeError: the class has one of that name, which is not to be filled.
    """
    places = vars(cls).get("to_fill", set())
    for name, method in methods.items():
        if name in vars(cls) and name not in places:
            raise RuntimeError(f"the class {cls.__name__} has {name} already")
        places.discard(name)
        setattr(cls, name, method)


def enter(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Put a part into a table that a room below declares.

    Raises:
      RuntimeError: the table has an entry for `key`.
    """
    if key in table:
        raise RuntimeError(f"the table has {table[key]} for {key} already")
    table[key] = value
