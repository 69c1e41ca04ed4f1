"""How a view hears the events of `core/events.py`.

In JAX: `jax.monitoring`, `register_event_listener`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from minijax.core.events import Subscriber, _warned, subscribers

_lock = threading.Lock()


@contextlib.contextmanager
def subscribe(callback: Subscriber) -> Iterator[Subscriber]:
    """Context manager: `callback(name, data)` hears every event of every thread.

    The same callback may be subscribed several times and then hears each event as
    often; leaving a block removes one subscription.
    """
    with _lock:
        subscribers.append(callback)
    try:
        yield callback
    finally:
        with _lock:
            # By identity: callbacks may define an equality of their own.
            for position, subscriber in enumerate(subscribers):
                if subscriber is callback:
                    subscribers.pop(position)
                    break
            if not any(subscriber is callback for subscriber in subscribers):
                _warned.discard(id(callback))
