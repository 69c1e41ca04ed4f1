"""Where the time goes, and what holds memory. In JAX: `jax.profiler`."""

from minijax.backend.profiling import ProfileData as ProfileData
from minijax.backend.profiling import ProfileEvent as ProfileEvent
from minijax.backend.profiling import ProfileOptions as ProfileOptions
from minijax.backend.profiling import ProfilePlane as ProfilePlane
from minijax.backend.profiling import StepTraceAnnotation as StepTraceAnnotation
from minijax.backend.profiling import TraceAnnotation as TraceAnnotation
from minijax.backend.profiling import annotate_function as annotate_function
from minijax.backend.profiling import device_memory_profile as device_memory_profile
from minijax.backend.profiling import (
    save_device_memory_profile as save_device_memory_profile,
)
from minijax.backend.profiling import start_server as start_server
from minijax.backend.profiling import start_trace as start_trace
from minijax.backend.profiling import stop_server as stop_server
from minijax.backend.profiling import stop_trace as stop_trace
from minijax.backend.profiling import trace as trace
