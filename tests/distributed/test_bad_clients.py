"""What comes to the coordinator's port from others than its processes."""

import json
import os
import socket
import threading
import time

import pytest

from minijax.processes.coordinator import Coordinator, said_of_launch
from minijax.processes.lines import Lines

from .starting import launch
from .test_faults import check

pytestmark = pytest.mark.whole


def message(**fields):
    return json.dumps(fields).encode() + b"\n"


NO_MESSAGES = {
    "random bytes": os.urandom(200) + b"\n",
    "a web browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no UTF-8": b"\xff\xfe\n",
    "a list": b"[1]\n",
    "another message": message(hello=1),
    "deep brackets": b"[" * 100_000 + b"\n",
    "a very long number": b'{"join": ' + b"9" * 5000 + b"}\n",
    "a very long line": b"x" * (2**20 + 10),
    "a text as number": message(join="0", of=2, about="somebody"),
    "a truth value as number": message(join=True, of=2, about="somebody"),
    "a list as number": message(join=[0], of=2, about="somebody"),
    "no number": message(join=None, of=2, about="somebody"),
    "no count": message(join=0, about="somebody"),
    "nothing about itself": message(join=0, of=2),
}


@pytest.fixture
def coordinator(monkeypatch):
    """A coordinator of two processes; `lost` and `errors` are what it noted."""
    errors = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    lost = []
    found = Coordinator("127.0.0.1", 0, 2, 5.0, lambda *gone: lost.append(gone))
    found.lost, found.errors = lost, errors
    yield found
    found.close(1.0)


def connected(coordinator):
    return socket.create_connection(("127.0.0.1", coordinator.port), 10)


def joined(coordinator, number):
    lines = Lines(connected(coordinator))
    lines.send(join=number, of=2, about=f"test {number}")
    return lines


@pytest.mark.parametrize("name", NO_MESSAGES)
def test_what_is_no_join_is_hung_up_on(coordinator, name):
    with connected(coordinator) as client:
        client.sendall(NO_MESSAGES[name])
        assert client.recv(100) == b""
    assert not coordinator._members and not coordinator.lost
    assert not coordinator.errors


@pytest.mark.parametrize("number", [-1, 2, 7, 10**30])
def test_a_number_that_does_not_exist_is_refused(coordinator, number):
    answer = joined(coordinator, number).receive(10)
    assert f"there is no process {number} of 2" in answer["refused"]
    assert not coordinator._members and not coordinator.lost


def test_a_number_that_is_taken_is_refused(coordinator):
    assert joined(coordinator, 1).receive(10)["welcome"] == 1
    assert "process 1 already" in joined(coordinator, 1).receive(10)["refused"]


def test_a_number_stays_taken_when_its_process_is_gone(coordinator):
    first = joined(coordinator, 1)
    assert first.receive(10)["welcome"] == 1
    first.close()
    wait_for(lambda: coordinator.lost)
    assert "process 1 already" in joined(coordinator, 1).receive(10)["refused"]


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xfe\n",
        b"[1]\n",
        message(failed=3),
        message(gave_up="soon"),
        message(gave_up=None),
        message(launch=["0,1", "next", 0]),
        b"launch 0,1 next 0\n",
        b"launch 0,1 next zero null\n",
        b"launch \xff next 0 null\n",
        b"launch none next 0 null\n",
    ],
    ids=str,
)
def test_a_process_that_sends_what_is_no_message_is_gone(coordinator, sent):
    lines = joined(coordinator, 0)
    assert lines.receive(10)["welcome"] == 0
    lines.connection.sendall(sent)
    wait_for(lambda: coordinator.lost)
    ((number, why),) = coordinator.lost
    assert number == 0 and "not a message of a process" in why
    assert not coordinator.errors


def test_a_line_about_a_launch_is_passed_on_as_it_came(coordinator):
    first, second = joined(coordinator, 0), joined(coordinator, 1)
    while "all" not in first.receive(10):
        pass
    line = 'launch 0,1 next 7 ["jit(a b\u00e9)", "c", "\\u00e9 thread"]'.encode()
    first.send_line(line)
    while "launch" not in (found := second.receive(10)):
        pass
    assert found["launch"] == line
    told = ["jit(a b\u00e9)", "c", "\u00e9 thread"]
    *said, text = said_of_launch(line)
    assert said == ["0,1", "next", 7] and json.loads(text) == told


def test_clients_that_leave_early(coordinator):
    for start in (b"", b'{"join":', b'{"relay": true}\nxxxx', message(join=9)):
        for _ in range(5):
            client = connected(coordinator)
            client.sendall(start)
            # Reset instead of closed in good order.
            client.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0" + bytes(4)
            )
            client.close()
    last = joined(coordinator, 0)  # kept, since it leaves when nobody refers to it
    assert last.receive(30)["welcome"] == 0
    assert not coordinator.lost and not coordinator.errors


def test_accepting_goes_on_after_an_error(coordinator, monkeypatch):
    """A client that is gone before it is accepted, or too many open files."""
    listener = coordinator._listener

    class Failing:
        times = 3

        def accept(self):
            if self.times:
                self.times -= 1
                raise ConnectionAbortedError
            return listener.accept()

        close = listener.close

    coordinator._listener = Failing()
    connected(coordinator).close()  # ends the accept that waits
    assert joined(coordinator, 0).receive(10)["welcome"] == 0
    assert coordinator._listener.times == 0


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_launcher_outlives_bad_clients():
    ended = launch(2, "bad_client.py")
    check(ended, 0, (0, "all are here"), (1, "all are here"))
    assert "Traceback" not in ended.text
