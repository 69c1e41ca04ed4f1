"""The order of launches of several processes, by threads that send each other lines.

The processes of test_faults.py are real; here are more orders than they could try.
"""

import json
import queue
import random
import threading
import time
import types

import pytest

from minijax.processes import launch_order
from minijax.processes.launch_order import Group, Told


class Process:
    """A process: its group, and the thread that hears what the others say."""

    initialization_timeout = 30.0

    def __init__(self, number, count, everybody, seed):
        self.process_id = number
        self.everybody = everybody
        self.heard = queue.Queue()
        self.launched = []
        self.sent = 0
        self.errors = []
        self.random = random.Random(seed + number)
        self.group = Group(",".join(map(str, range(count))), self)
        threading.Thread(target=self.listen, daemon=True).start()

    def tell_launch(self, *said):
        self.sent += 1
        for other in self.everybody:
            if other is not self:
                other.heard.put(json.dumps(said))

    def listen(self):
        while True:
            _, *said = json.loads(self.heard.get())
            self.sleep(0.1)
            self.group.hear(*said)

    def sleep(self, share):
        if self.random.random() < share:
            time.sleep(self.random.random() * 0.001)

    def run(self, titles):
        try:
            for title in titles:
                self.sleep(0.05)
                told = Told(title, title, threading.current_thread().name)
                self.group.launch(told, self.launched.append, title)
        except RuntimeError as error:
            self.errors.append(str(error))


def run(seed, *orders):
    """Processes whose threads launch these programs: for each one {thread: titles}."""
    everybody = []
    for number in range(len(orders)):
        everybody.append(Process(number, len(orders), everybody, seed))
    threads = [
        threading.Thread(target=process.run, args=(titles,), name=name, daemon=True)
        for process, order in zip(everybody, orders)
        for name, titles in order.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    for titles in zip(*(process.launched for process in everybody)):
        assert len(set(titles)) == 1
    return everybody


def titles(seed, count):
    """Programs in cycles of one to four, each made up to 40 times."""
    chance, found = random.Random(seed), []
    while len(found) < count:
        found += chance.choices("abcd", k=chance.randint(1, 4)) * chance.randint(1, 40)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_all_launch_what_the_first_one_does(seed):
    wanted = titles(seed, 800)
    everybody = run(seed, *[{"main": wanted}] * 3)
    assert all(process.launched == wanted for process in everybody)


def test_a_loop_is_told_once():
    first, *others = run(0, *[{"main": ["step"] * 1000}] * 3)
    assert first.sent == 2 * launch_order._LONGEST + 1
    assert not any(other.sent for other in others)


def test_a_cycle_ends_when_all_have_answered():
    launched, said = [], []
    member = types.SimpleNamespace(
        process_id=0,
        tell_launch=lambda *a: said.append(a),
        initialization_timeout=30.0,
    )
    group = Group("0,1,2", member)

    def launch(title):
        group.launch(Told(title, title, "main"), launched.append, title)

    for _ in range(20):
        launch("a")
    member.initialization_timeout = 0.2
    with pytest.raises(
        RuntimeError, match="waits for processes 1 and 2, which did not"
    ):
        launch("b")
    assert said[-1][1] == "leave"
    group.hear("at", 18, 1)
    with pytest.raises(
        RuntimeError, match=r"21 .* process 2, which did not .* 0 is at b"
    ):
        launch("b")
    member.initialization_timeout = 30.0
    thread = threading.Thread(target=launch, args=("b",), daemon=True)
    thread.start()
    thread.join(0.3)
    assert launched[-1] == "a"
    group.hear("at", 20, 2)
    thread.join(5)
    assert launched[-1] == "b"


@pytest.mark.parametrize("seed", range(2))
def test_threads_wait_for_each_other(seed):
    order = {"one": ["a"] * 200 + ["b"] * 50, "two": ["c", *["d"] * 30] * 5}
    for process in run(seed, order, order, order):
        assert not process.errors
        assert len(process.launched) == 405


@pytest.mark.parametrize("seed", range(6))
def test_another_order_is_refused_before_it_launches(seed, monkeypatch):
    monkeypatch.setattr(Process, "initialization_timeout", 0.5)
    wanted = titles(seed, 400)
    place = random.Random(seed).randrange(20, 400)
    other = wanted[:place] + ["other"] + wanted[place + 1 :]
    orders = [{"main": wanted}] * 3
    orders[seed % 3] = {"main": other}
    everybody = run(seed, *orders)
    said = f"launch {place + 1} over several processes is "
    errors = [error for process in everybody for error in process.errors]
    named = [e for e in errors if e.startswith(said) and "other" in e]
    assert named and all(wanted[place] in error for error in named)
