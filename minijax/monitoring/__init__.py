"""Listeners for what is traced, lowered and compiled. In JAX: `jax.monitoring`."""

from minijax.monitoring.listeners import clear_event_listeners as clear_event_listeners
from minijax.monitoring.listeners import record_event as record_event
from minijax.monitoring.listeners import (
    record_event_duration_secs as record_event_duration_secs,
)
from minijax.monitoring.listeners import (
    record_event_time_span as record_event_time_span,
)
from minijax.monitoring.listeners import record_scalar as record_scalar
from minijax.monitoring.listeners import (
    register_event_duration_secs_listener as register_event_duration_secs_listener,
)
from minijax.monitoring.listeners import (
    register_event_listener as register_event_listener,
)
from minijax.monitoring.listeners import (
    register_event_time_span_listener as register_event_time_span_listener,
)
from minijax.monitoring.listeners import (
    register_scalar_listener as register_scalar_listener,
)
from minijax.monitoring.listeners import (
    unregister_event_duration_listener as unregister_event_duration_listener,
)
from minijax.monitoring.listeners import (
    unregister_event_listener as unregister_event_listener,
)
from minijax.monitoring.listeners import (
    unregister_event_time_span_listener as unregister_event_time_span_listener,
)
from minijax.monitoring.listeners import (
    unregister_scalar_listener as unregister_scalar_listener,
)
