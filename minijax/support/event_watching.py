"""How a view subscribes to the events of `core/events.py`.

In JAX: `jax.monitoring`, `register_event_listener`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from minijax.core.events import Subscriber, subscribers, warned

_lock = threading.Lock()


@contextlib.contextmanager
def subscribe(callback: Subscriber) -> Iterator[Subscriber]:
    """Context manager: call `callback(name, data)` for every event of every thread.

    The same callback may be subscribed several times and is then called as often for
    each event; leaving a block removes one subscription.
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
                warned.discard(id(callback))
