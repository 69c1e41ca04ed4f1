"""`monitoring`: listeners hear what is compiled, and what users record, as in JAX."""

import jax
import numpy as np
import pytest

import minijax
from minijax.core import events

LIBRARIES = (minijax, jax)
KINDS = ("event", "event_duration_secs", "event_time_span", "scalar")


@pytest.fixture(autouse=True)
def no_listeners():
    yield
    minijax.monitoring.clear_event_listeners()
    jax.monitoring.clear_event_listeners()


def heard(library, work):
    """What listeners of all kinds were told: (kind, event, numbers, facts)."""
    found = []
    for kind in KINDS:

        def listen(event, *numbers, kind=kind, **facts):
            found.append((kind, event, numbers, facts))

        getattr(library.monitoring, f"register_{kind}_listener")(listen)
    work(library)
    library.monitoring.clear_event_listeners()
    return found


def test_the_same_names() -> None:
    public = [name for name in dir(jax.monitoring) if not name.startswith("_")]
    assert set(public) <= set(dir(minijax.monitoring))


def test_what_users_record() -> None:
    def work(library):
        library.monitoring.record_event("/a", where="here")
        library.monitoring.record_event_duration_secs("/b", 1.5, n=2)
        library.monitoring.record_event_time_span("/c", 1.0, 2.0)
        library.monitoring.record_scalar("/d", 3)

    ours, theirs = (heard(library, work) for library in LIBRARIES)
    assert ours == theirs and len(ours) == 4


def test_a_compiled_function() -> None:
    number = np.random.default_rng().uniform()

    def work(library):
        def scaled(x):
            return library.jit(library.numpy.sin)(x) * number

        f = library.jit(scaled)
        f(np.ones(3, np.float32))
        f(np.ones(3, np.float32))

    ours, theirs = (heard(library, work) for library in LIBRARIES)

    def told(found):
        return [one[:2] + one[3:] for one in found if one[1].startswith("/jax/core")]

    # The scalar is the time of the beginning: here it comes with the end.
    assert sorted(told(ours), key=str) == sorted(told(theirs), key=str)
    for kind, event, numbers, _ in ours:
        if kind == "event_duration_secs":
            assert 0 <= numbers[0] < 600
            spans = [n for k, e, n, _ in ours if (k, e) == ("event_time_span", event)]
            assert spans and spans[0][0] <= spans[0][1]


def test_listeners_leave() -> None:
    before = list(events.subscribers)
    found = []
    m = minijax.monitoring
    for register, unregister in (
        (m.register_event_listener, m.unregister_event_listener),
        (m.register_event_duration_secs_listener, m.unregister_event_duration_listener),
        (m.register_event_time_span_listener, m.unregister_event_time_span_listener),
        (m.register_scalar_listener, m.unregister_scalar_listener),
    ):
        register(found.append)
        assert len(events.subscribers) == len(before) + 1
        unregister(found.append)
        with pytest.raises(AssertionError):
            unregister(found.append)
    assert events.subscribers == before  # without a listener nothing is paid
    m.record_event("/a")
    assert not found


def test_a_trace_that_fails_is_over() -> None:
    def work(library):
        @library.jit
        def fails(x):
            raise ArithmeticError

        for _ in range(2):
            with pytest.raises(ArithmeticError):
                fails(1.0)

    (first, second) = (
        one
        for one in heard(minijax, work)
        if one[0] == "event_duration_secs" and "trace" in one[1]
    )
    assert first[3] == second[3] == {"fun_name": "fails"}
