"""The flags of the compilation cache: which programs are kept on disk.

In JAX: `jax/_src/compiler.py`, `compile_or_get_cached`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from minijax.backend import disk_cache, dynamic_shapes
from minijax.backend.build_settings import BuildSettings
from minijax.core import compiler, errors, lowering
from minijax.core.state import state
from minijax.values.symbolic_sizes import SymbolicSize

# Module contexts of programs with a name that only this process knows.
private_contexts: weakref.WeakSet[Any] = weakref.WeakSet()


def load_or_compile(
    lowered: lowering.Lowered, devices: Sequence[Any], settings: BuildSettings
) -> compiler.Executable:
    """Compile a program, or read it from the cache directory that the flags name.

    Raises ValueError for a program with symbolic sizes.

    A program with callbacks, or in `private_contexts`, is never kept: it calls
    functions of this process, or has a name that no other process will look for.
    """
    if SymbolicSize.made and dynamic_shapes.has_unknown_sizes(lowered.module):
        raise ValueError(
            "a program with symbolic sizes cannot be compiled: the sizes are not "
            "known. Export it, `exported = export(jit(f))(types)`, and call it with "
            "arrays: `exported.call(x)`."
        )
    try:
        with lowered.context:
            return _load_or_compile(lowered, devices, settings)
    except errors.JaxRuntimeError as error:
        if settings.options:
            error.add_note(f"It was compiled with compiler_options={settings.options}.")
        raise


def _load_or_compile(
    lowered: lowering.Lowered, devices: Any, settings: Any
) -> compiler.Executable:
    module, callbacks = lowered.module, lowered.host_callbacks
    directory = state.compilation_cache_dir
    private = callbacks or lowered.context in private_contexts
    if not directory or not state.enable_compilation_cache or private:
        return compiler.compile_module(module, devices, settings, callbacks)
    policy = disk_cache.Policy(
        directory,
        state.persistent_cache_min_compile_time_secs,
        state.persistent_cache_min_entry_size_bytes,
        state.compilation_cache_max_size,
        state.raise_persistent_cache_errors,
    )
    return disk_cache.load_or_compile(module, devices, settings, policy)
