"""What XLA writes about its work while it compiles one program.

    with compile_with_dump(target, module, settings, passes=".*") as dump:
        dump.names()          # "module_0001.jit_f.0003.algsimp.after_...", ...
        dump.read(name)

XLA writes files: the program after each pass, the machine's code, which buffer holds
what. They go to a private temporary folder, which is removed at the end.

In JAX there is no counterpart but the environment: `XLA_FLAGS=--xla_dump_to=folder`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from minijax.backend.build_settings import BuildSettings
from minijax.backend.targets import Target
from minijax.core.compiler import Executable
from minijax.core.runtime import jaxlib_version


@dataclasses.dataclass(frozen=True)
class Dump:
    """The compiled program, and the folder with what XLA wrote."""

    executable: Executable
    folder: Path

    def names(self, ending: str = "") -> list[str]:
        """The names of the files with this ending, in order."""
        names = (path.name for path in self.folder.iterdir())
        return sorted(name for name in names if name.endswith(ending))

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.folder / name).read_text(errors="replace")


@contextlib.contextmanager
def compile_with_dump(
    target: Target,
    module: Any,
    settings: BuildSettings,
    passes: str = "",
    fusion_steps: bool = False,
    host_callbacks: Sequence[Callable[..., Any]] = (),
) -> Iterator[Dump]:
    """Compiles a module; while the block runs, what XLA wrote can be read.

    Args:
      target: for which machine.
      module: an MLIR module.
      settings: how.
      passes: the program is written after each pass whose name this regular expression
        matches; "" for none.
      fusion_steps: whether XLA writes each decision to fuse (GPUs only).
      host_callbacks: Python functions that the program calls, if it can run.

    Raises:
      OSError: if no temporary folder can be written to. XLA would say nothing.
    """
    with private_folder() as folder:

        def debug(options: Any) -> None:
            options.xla_dump_to = str(folder)
            options.xla_dump_hlo_as_text = True
            if passes:
                options.xla_dump_hlo_pass_re = passes
            if fusion_steps:
                options.xla_dump_fusion_visualization = True

        if target.platform == "cpu" and jaxlib_version >= (0, 11):
            # XLA writes the LLVM code of kernels only if an option asks for it.
            options = {"xla_dump_emitter_re": "llvm.*", **settings.options}
            settings = dataclasses.replace(settings, options=options)
        executable = target.compile(module, settings, debug, host_callbacks)
        if not any(folder.iterdir()):
            raise OSError(f"XLA wrote nothing to {folder}.")
        yield Dump(executable, folder)


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that only this user can read, removed at the end."""
    import tempfile  # here, since it brings half of the standard library along

    try:
        folder = tempfile.TemporaryDirectory(
            prefix="minijax-", ignore_cleanup_errors=True
        )
        probe = os.path.join(folder.name, "probe")
        with open(probe, "x"):
            pass
        os.remove(probe)
    except OSError as error:
        raise OSError(
            "XLA describes its work in files, and no temporary folder can be written "
            f"to ({error}). Name one in the environment: TMPDIR=/path/to/folder."
        ) from error
    with folder:
        yield Path(folder.name)
