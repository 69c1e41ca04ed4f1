"""Names of a package that are imported when they are first used.

The package's `__init__` ends with:

    __getattr__, __dir__, __all__ = late_names(
        globals(), "fft linalg", {".rare.sets": "isin union1d"}
    )
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def late_names(
    package: dict[str, Any], modules: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
      package: the globals of the package, with all that is imported at once.
      modules: the names of its modules that are imported late.
      names: for each module with late names, relative to the package if it starts with
        a dot, these names. A name that was used once is in `package`.
    """
    file_of = {name: file for file, text in names.items() for name in text.split()}
    late = [*modules.split(), *file_of]
    name_of_package = package["__name__"]

    def get(name: str) -> Any:
        if name in file_of:
            module = importlib.import_module(file_of[name], name_of_package)
            package[name] = getattr(module, name)  # the next use finds it at once
            return package[name]
        if name in late:
            return importlib.import_module(f"{name_of_package}.{name}")
        raise AttributeError(f"module {name_of_package!r} has no attribute {name!r}")

    def names_there() -> list[str]:
        return sorted({*package, *late})

    return get, names_there, [n for n in names_there() if not n.startswith("_")]
