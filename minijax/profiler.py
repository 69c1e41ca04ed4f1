"""Where the time goes, and what holds memory. In JAX: `jax.profiler`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.backend.profiling import (
    ProfileData, ProfileEvent, ProfileOptions, ProfilePlane, StepTraceAnnotation,
    TraceAnnotation, annotate_function, device_memory_profile,
    save_device_memory_profile, start_server, start_trace, stop_server, stop_trace,
    trace,
)
