"""Tables in which each key is entered once."""

from __future__ import annotations

from typing import Any


class Table(dict):
    """A dict whose entries are not replaced: KeyError for a second one of a key.

    `del table[key]` takes an entry out.
    """

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __setitem__(self, key: Any, value: Any) -> None:
        if key in self:
            raise KeyError(f"{self.name} has an entry for {key} already")
        super().__setitem__(key, value)
