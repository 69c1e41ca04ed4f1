"""Events: subscribers, order, threads, and subscribers that fail."""

import ast
import pathlib
import re
import threading
import warnings

import pytest

from minijax.core import events
from minijax.support.event_watching import subscribe


def test_without_subscribers_the_list_is_empty_and_emit_is_harmless():
    assert not events.subscribers
    events.emit("bind", primitive="sin")


def test_subscribers_hear_names_and_their_own_copy_of_the_data():
    heard = []

    def careless(name, data):
        data.clear()

    with (
        subscribe(careless),
        subscribe(lambda *e: heard.append(e)),
    ):
        events.emit("jit.miss", name="f", reason="shape")
        events.emit("jit.hit", name="f")
    events.emit("jit.hit", name="g")
    assert heard == [
        ("jit.miss", {"name": "f", "reason": "shape"}),
        ("jit.hit", {"name": "f"}),
    ]


class Equal:
    """Equal to everything: removal must go by identity."""

    def __init__(self):
        self.heard = 0

    def __eq__(self, other):
        return True

    __hash__ = None

    def __call__(self, name, data):
        self.heard += 1


def test_removal_is_by_identity():
    first, second = Equal(), Equal()
    with subscribe(first):
        with subscribe(second):
            events.emit("bind")
        events.emit("bind")
        assert events.subscribers[0] is first
    assert (first.heard, second.heard) == (2, 1)
    assert not events.subscribers


def test_subscribed_twice_hears_twice():
    listener = Equal()
    with subscribe(listener), subscribe(listener):
        events.emit("bind")
    assert listener.heard == 2
    assert not events.subscribers


def test_a_failing_subscriber_warns_once_and_stays():
    heard = []

    def failing(name, data):
        heard.append(name)
        raise KeyError("oops")

    with (
        subscribe(failing),
        subscribe(lambda n, d: heard.append("b")),
    ):
        with pytest.warns(RuntimeWarning, match="KeyError"):
            events.emit("lower")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            events.emit("compile")
    assert heard == ["lower", "b", "compile", "b"]
    with subscribe(failing), pytest.warns(RuntimeWarning):
        events.emit("lower")


def test_leaving_by_an_exception_unsubscribes():
    with pytest.raises(ZeroDivisionError), subscribe(print):
        raise ZeroDivisionError
    assert not events.subscribers


def test_threads():
    heard = []

    def worker():
        for _ in range(200):
            with subscribe(lambda n, d: None):
                events.emit("bind", thread=threading.get_ident())

    with subscribe(lambda n, d: heard.append(d["thread"])):
        threads = [threading.Thread(target=worker) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(heard) == 800
    assert not events.subscribers


def is_emit(function):
    return ast.unparse(function) in ("emit", "events.emit")


def emitted():
    """The names and fields of all calls of `emit` in the package."""
    found = {}
    for path in sorted(pathlib.Path(events.__file__).parents[1].rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not is_emit(node.func):
                continue
            name = node.args[0]
            assert isinstance(name, ast.Constant), f"{path}: the name is not a literal"
            fields = {keyword.arg for keyword in node.keywords}
            assert found.setdefault(name.value, fields) == fields, (path, name.value)
    return found


def test_the_documented_events_are_those_that_are_emitted():
    pattern = re.compile(r"- `([\w.]+)`: .*? Data: ([\w, ]+)")
    documented = {
        name: set(fields.split(", "))
        for name, fields in pattern.findall(events.__doc__)
    }
    assert documented == emitted()
