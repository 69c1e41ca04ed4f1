"""The flags of the compilation cache: which programs are kept on disk.

In JAX: `jax/_src/compiler.py`, `compile_or_get_cached`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.backend import disk_cache, dynamic_shapes
from minijax.backend.build_settings import BuildSettings
from minijax.core import compiler, errors, lowering
from minijax.core.state import state
from minijax.values.symbolic_sizes import SymbolicSize


def load_or_compile(
    lowered: lowering.Lowered, devices: Sequence[Any], settings: BuildSettings
) -> compiler.Executable:
    """Compile, or take from the directory that the flags name.

    ValueError for a program with symbolic sizes.

    A program with callbacks is never kept: it calls functions of this process.
    """
    if SymbolicSize.made and dynamic_shapes.has_unknown_sizes(lowered.module):
        raise ValueError(
            "a program with symbolic sizes cannot be compiled: the sizes are not "
            "known. Export it, `exported = export(jit(f))(types)`, and call it with "
            "arrays: `exported.call(x)`."
        )
    try:
        with lowered.context:
            return _load_or_compile(
                lowered.module, devices, settings, lowered.host_callbacks
            )
    except errors.JaxRuntimeError as error:
        if settings.options:
            error.add_note(f"It was compiled with compiler_options={settings.options}.")
        raise


def _load_or_compile(
    module: Any, devices: Any, settings: Any, host_callbacks: Any
) -> compiler.Executable:
    directory = state.compilation_cache_dir
    if not directory or not state.enable_compilation_cache or host_callbacks:
        return compiler.compile_module(module, devices, settings, host_callbacks)
    policy = disk_cache.Policy(
        directory,
        state.persistent_cache_min_compile_time_secs,
        state.persistent_cache_min_entry_size_bytes,
        state.compilation_cache_max_size,
        state.raise_persistent_cache_errors,
    )
    return disk_cache.load_or_compile(module, devices, settings, policy)
