"""Settings of a compilation beyond XLA flags: little optimisation, build options.

In JAX: `jax/_src/compiler.py`, `get_compile_options`.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from minijax.core.compiler import CompileSettings
from minijax.core.runtime import jaxlib_version

# Compiles a softmax in a third of the time. The programs are slower; the values of the
# elementary functions are the same to rounding.
# (jaxlib 0.12 has no such flag any more.)
_FAST_OPTIONS = (
    {"xla_cpu_use_fusion_emitters": False} if jaxlib_version < (0, 11) else {}
)

# The options that are not XLA flags but fields of the build options.
_BUILD_FIELDS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "memory_fitting_level",
    "optimization_level",
)


@dataclasses.dataclass(frozen=True)
class BuildSettings(CompileSettings):
    """How a program is compiled, for one device.

    Attributes:
      fast_compile: spend little on optimisation; None reads
        `MINIJAX_TEST_FAST_COMPILE` from the environment.
    """

    fast_compile: bool | None = None

    @property
    def is_fast(self) -> bool:
        """Whether little is spent on optimisation."""
        if self.fast_compile is None:
            return os.environ.get("MINIJAX_TEST_FAST_COMPILE", "") == "1"
        return self.fast_compile

    def make_options(self, devices: Any) -> tuple[Any, dict[str, Any]]:
        """jaxlib's options for these settings, and apart from them the XLA flags."""
        options, flags = super().make_options(devices)
        build = options.executable_build_options
        if self.is_fast:
            debug = build.debug_options
            debug.xla_backend_optimization_level = 0
            debug.xla_llvm_disable_expensive_passes = True
            if devices[0].platform == "cpu":
                flags = {**_FAST_OPTIONS, **flags}
        for field in _BUILD_FIELDS:
            if field in flags:
                setattr(build, field, flags.pop(field))
        return options, flags
