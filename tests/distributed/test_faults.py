"""What goes wrong between processes: each ends, says who, and nothing is left behind.

The time-outs are a few seconds; a bound on the whole run holds against hanging.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from .starting import PROGRAMS, environment, free_address, is_there, launch, run

everything = pytest.mark.skipif(
    os.environ.get("MINIJAX_TEST_ALL") != "1", reason="MINIJAX_TEST_ALL=1 runs it"
)
sizes = pytest.mark.parametrize("count", [2, pytest.param(4, marks=everything)])


def check(ended, code, *said, within=40):
    """Asserts how a launch ended; `said` are (process, pattern)."""
    print(ended.text)
    assert ended.code == code, ended.text
    assert ended.seconds < within, ended.text
    for process, pattern in said:
        own = ended.said(process)
        assert re.search(pattern, own), f"[{process}] did not say {pattern}"
    assert ended.left_over() == []


def others(count, victim):
    return [process for process in range(count) if process != victim]


@everything
def test_nothing_goes_wrong():
    ended = launch(2, "fault.py", "nothing", "0")
    check(ended, 0, (0, "done"), (1, "done"))


def test_what_gloo_writes_is_left_out():
    ended = launch(1, "gloo_lines.py")
    assert ended.said(0).splitlines() == ["between", "3"]


@sizes
def test_one_is_killed(count):
    ended = launch(count, "fault.py", "kill", "1")
    said = rf"process 1 of {count} is gone .*killed, or crashed"
    check(ended, 137, *[(process, said) for process in others(count, 1)])
    assert "process 1 was ended by SIGKILL" in ended.text


@pytest.mark.turns(3)
@sizes
def test_one_is_stopped(count):
    ended = launch(count, "fault.py", "stop", "0")
    said = rf"process 0 of {count} is gone .*silent for 3 s: stopped"
    check(ended, 137, *[(process, said) for process in others(count, 0)])
    assert "process 0 is gone" in ended.text


@sizes
def test_one_raises(count):
    ended = launch(count, "fault.py", "raise", "1")
    said = rf"process 1 of {count} is gone .*it ended with ValueError: a mistake in one"
    check(ended, 1, *[(process, said) for process in others(count, 1)])
    assert "ValueError: a mistake in one process" in ended.said(1)


@sizes
def test_the_coordinator_is_killed(count):
    ended = launch(count, "fault.py", "kill launcher", "1")
    said = r"the coordinator at 127\.0\.0\.1:\d+ is gone"
    check(ended, -signal.SIGKILL, *[(process, said) for process in range(count)])


@everything
def test_the_launcher_is_killed_before_all_have_come():
    def kill(process, text):
        deadline = time.monotonic() + 30
        while text().count("] pid ") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.5)
        process.kill()

    command = [sys.executable, "-m", "minijax", "launch", "-n", "2"]
    ended = run([*command, str(PROGRAMS / "fault.py"), "absent", "1"], 30, kill)
    check(
        ended, -signal.SIGKILL, (1, "process 1 ends: the launcher is gone"), within=15
    )


@pytest.mark.turns(3)
@sizes
def test_the_coordinator_is_stopped(count):
    def end_launcher(process, text):
        deadline = time.monotonic() + 40
        while text().count("it is stopped") < count and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)

    command = [sys.executable, "-m", "minijax", "launch", "-n", str(count)]
    command += ["--devices", "2", "--timeout", "3"]
    command += [str(PROGRAMS / "fault.py"), "stop launcher", "0"]
    ended = run(command, 60, end_launcher)
    said = r"the coordinator at 127\.0\.0\.1:\d+ has been silent for 3 s: it is stopped"
    check(
        ended,
        -signal.SIGKILL,
        *[(process, said) for process in range(count)],
        within=50,
    )


@pytest.mark.turns(3)
@sizes
def test_one_never_comes(count):
    ended = launch(count, "fault.py", "absent", "1", wait=3)
    check(
        ended,
        1,
        *[(p, rf"process 1 of {count} did not come") for p in others(count, 1)],
    )


@pytest.mark.parametrize(
    "what, said",
    [
        ("program", r"the programs themselves differ: at line \d+, .*sine"),
        pytest.param("shape", r"have the types: \(float32\[64\]\)", marks=everything),
        pytest.param("mesh", r"the mesh is: Mesh\('x': 4\), devices", marks=everything),
        pytest.param("axes", r"the mesh is: Mesh\('y': 2, 'x': 2\)", marks=everything),
    ],
)
def test_processes_that_disagree(what, said):
    ended = launch(2, "fault.py", what, "1", wait=8)
    who = "process 1 differs from process 0 in the 2nd program"
    check(ended, 1, (0, who), (1, who), (0, said), (1, said))


@pytest.mark.turns(3)
def test_one_launches_warm_programs_in_another_order():
    ended = launch(2, "order.py", "order", "1", wait=8)
    said = r"launch 43 over .* jit\(double_sum\) in process 0, .* jit\(triple_sum\) in"
    check(ended, 1, (0, said), (1, said))
    assert not re.search(r"(double|triple)_sum \d", ended.said(1))


@pytest.mark.turns(3)
def test_two_threads_launch_400_programs():
    ended = launch(2, "order.py", "threads", "1", wait=20)
    check(ended, 0, *[(process, r"\b0 of 400 wrong") for process in (0, 1)])


@everything
def test_threads_without_common_names_are_refused():
    ended = launch(2, "order.py", "unnamed", "1", wait=8)
    said = "is jit.* from thread '0 .*' in process 0, and jit.* from thread '1 "
    check(ended, 1, (1, said))


@everything
@pytest.mark.parametrize("victim", [0, 1])
def test_one_is_asleep_before_a_warm_program(victim):
    ended = launch(2, "order.py", "asleep", str(victim), wait=5)
    said = rf"launch 3 .* has not been made by process {victim} within 5 s"
    if victim == 1:
        said = (
            r"process 1 of 2 is gone .*not reached launch 3 .*double_sum\), within 5 s"
        )
    check(ended, 1, (1 - victim, said), within=30)


@everything
def test_device_put_of_different_values():
    ended = launch(2, "fault.py", "value", "1", wait=8)
    said = "value passed to device_put is not the same .* process 1 differs"
    check(ended, 1, (0, said), (1, said))


@everything
@pytest.mark.parametrize("what", ["program", "shape", "mesh", "axes"])
def test_one_of_four_disagrees(what):
    ended = launch(4, "fault.py", what, "2", wait=10)
    who = "process 2 differs from processes 0, 1 and 3 in the 2nd program"
    check(ended, 1, *[(process, who) for process in range(4)])


@everything
def test_one_leaves_early():
    ended = launch(2, "fault.py", "leave", "1", wait=8, limit=30)
    check(ended, 1, (1, "process 1 has ended, and process 0 of 2 did not come"))
    assert "process 1 of 2 is gone" in ended.said(0)


@everything
def test_ctrl_c_ends_all():
    def interrupt(process, text):
        deadline = time.monotonic() + 30
        while text().count("] pid ") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2)
        process.send_signal(signal.SIGINT)

    command = [sys.executable, "-m", "minijax", "launch", "-n", "2"]
    ended = run([*command, str(PROGRAMS / "fault.py"), "", "0"], 40, interrupt)
    assert ended.code == 130, ended.text
    assert "interrupted" in ended.text
    assert ended.left_over() == []


# Without the launcher: process 0 is the coordinator.


def by_hand(what, victim, count, numbers, addresses):
    """Starts processes one by one; returns [(status, text)] of them."""
    processes = []
    for number in numbers:
        place = f"{addresses[number]},{count},{number}"
        command = [sys.executable, str(PROGRAMS / "fault.py"), what, str(victim), place]
        processes.append(
            subprocess.Popen(
                command,
                env=environment(JAX_NUM_CPU_DEVICES="2"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    found = []
    for process in processes:
        try:
            text, _ = process.communicate(timeout=40)
        finally:
            process.kill()
        found.append((process.returncode, text))
        print(process.returncode, text)
    return found


def test_a_wrong_address():
    address = free_address()
    ((code, text),) = by_hand("nothing", 0, 2, [1], {1: address})
    assert code == 1
    assert f"process 1 reached no coordinator at {address} within 3 s" in text


@everything
def test_something_else_listens_at_the_address():
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        ((code, text),) = by_hand("nothing", 0, 2, [1], {1: address})
    assert code == 1
    assert f"the coordinator at {address} gave process 1 no answer" in text


@everything
def test_process_0_as_the_coordinator():
    address = free_address()
    found = by_hand("nothing", 0, 2, [0, 1], [address] * 2)
    assert [code for code, _ in found] == [0, 0]
    found = by_hand("kill", 0, 2, [0, 1], [address] * 2)
    assert [code for code, _ in found] == [-9, 1]
    assert f"the coordinator at {address} is gone" in found[1][1]
    found = by_hand("raise", 0, 2, [0, 1], [address] * 2)
    assert [code for code, _ in found] == [1, 1]
    assert "process 0 of 2 is gone" in found[1][1]
    found = by_hand("nothing", 0, 2, [0], [address])
    assert found[0][0] == 1
    assert "process 1 of 2 did not come" in found[0][1]


@everything
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root")
def test_two_hosts_by_network_namespaces():
    """Two hosts that share a name, and reach each other by their addresses alone."""
    hosts = [f"mj{os.getpid()}{letter}" for letter in "ab"]

    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    try:
        for host in hosts:
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
        names = ["link", "add", "v0", "netns", hosts[0], "type", "veth"]
        ip(*names, "peer", "name", "v1", "netns", hosts[1])
        for number, host in enumerate(hosts):
            ip(
                "-n",
                host,
                "addr",
                "add",
                f"10.77.0.{number + 1}/24",
                "dev",
                f"v{number}",
            )
            ip("-n", host, "link", "set", f"v{number}", "up")
        place = "10.77.0.1:9911,2"
        words = [sys.executable, str(PROGRAMS / "fault.py"), "nothing", "0"]
        processes = [
            subprocess.Popen(
                ["ip", "netns", "exec", host, *words, f"{place},{number}"],
                env=environment(JAX_NUM_CPU_DEVICES="2"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for number, host in enumerate(hosts)
        ]
        texts = [process.communicate(timeout=40)[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], texts
        assert all("done" in text for text in texts)
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], check=False)


@everything
def test_numbers_that_do_not_fit():
    address = free_address()
    found = by_hand("nothing", 0, 2, [0, 1, 1], [address] * 2)
    assert sorted(code for code, _ in found) == [0, 0, 1]
    assert any("there is a process 1 already" in text for _, text in found)


def test_is_there_knows_this_process():
    assert is_there(os.getpid())
