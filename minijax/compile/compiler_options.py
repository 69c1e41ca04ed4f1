"""XLA's options by name, as `compile` and `jit(compiler_options=)` take them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from minijax.core import errors


def check_options(options: Any) -> dict[str, Any]:
    """The options as a dict of their own; {} for None.

    XLA itself checks the names and the values, when it compiles. It says nothing when
    it cannot write its dump.

    Raises:
      TypeError: for options that are no dict.
      OSError: if `xla_dump_to` names a folder that cannot be made or written to.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise errors.type_error(
            "compiler_options is a dict of XLA's flags by name, such as "
            "{'xla_cpu_enable_fast_math': True}, got "
            f"{options!r} of type {type(options).__name__}."
        )
    folder = options.get("xla_dump_to")
    if folder and folder != "-":
        _check_folder(str(folder))
    return dict(options)


def _check_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise OSError(
            f"compiler_options={{'xla_dump_to': {folder!r}}}: XLA cannot write there, "
            "and would not say so. Name a folder that can be made and written to."
        )
