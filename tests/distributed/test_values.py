"""Two and four processes against one, on the same mesh of four devices.

Integers and moved data must be equal bit for bit, sums of floats to rounding: Gloo adds
in another order than one process does.
"""

import functools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from .starting import PROGRAMS, ROOT, environment, free_address, launch, run

everything = pytest.mark.skipif(
    os.environ.get("MINIJAX_TEST_ALL") != "1", reason="MINIJAX_TEST_ALL=1 runs it"
)


def values(text):
    found = {}
    for line in text.splitlines():
        if line.startswith("value "):
            name, kind, dtype, shape, bits = json.loads(line[len("value ") :])
            array = np.frombuffer(bytes.fromhex(bits), dtype).reshape(shape)
            found[name] = (kind, array)
    return found


@functools.cache
def of_one_process(library):
    command = [sys.executable, str(PROGRAMS / "values.py"), library]
    ended = run(command, 120, JAX_NUM_CPU_DEVICES="4")
    assert ended.code == 0, ended.text
    return values(ended.text)


@functools.cache
def of_several(count, again=0):
    ended = launch(
        count, "values.py", "minijax", devices=4 // count, timeout=10.0, limit=120
    )
    assert ended.code == 0, ended.text
    found = [values(ended.said(process)) for process in range(count)]
    assert ended.left_over() == []
    return found


def compare(one, other):
    assert list(one) == list(other)
    assert len(one) > 20
    for name, (kind, expected) in one.items():
        _, got = other[name]
        assert got.dtype == expected.dtype, name
        if kind == "exact" or name == "gathered floats" or name == "one to all":
            np.testing.assert_array_equal(got, expected, name)
        else:
            np.testing.assert_allclose(
                got, expected, rtol=1e-5, atol=1e-6, err_msg=name
            )


def test_one_process_has_the_values_of_jax():
    compare(of_one_process("jax"), of_one_process("minijax"))


def test_two_processes_have_the_values_of_one():
    for own in of_several(2):
        compare(of_one_process("minijax"), own)


@everything
def test_four_processes_have_the_values_of_one():
    for own in of_several(4):
        compare(of_one_process("minijax"), own)


@everything
@pytest.mark.parametrize("count", [2, 4])
def test_repeated_runs_are_equal(count):
    first = of_several(count)
    for again in (1, 2):
        for one, other in zip(first, of_several(count, again)):
            for name, (_, value) in one.items():
                assert value.tobytes() == other[name][1].tobytes(), name


def test_the_script_of_the_book(tmp_path):
    page = (ROOT / "book" / "processes.md").read_text()
    script, shown = page.split("```python\n")[1].split("```\n")[:3:2]
    (tmp_path / "average.py").write_text(script)
    ended = launch(2, tmp_path / "average.py", timeout=10.0)
    assert ended.code == 0, ended.text
    printed = shown.splitlines()[1:]
    assert sorted(ended.text.splitlines()) == sorted(printed)


@everything
def test_the_script_of_the_book_without_the_launcher(tmp_path):
    page = (ROOT / "book" / "processes.md").read_text()
    (tmp_path / "average.py").write_text(page.split("```python\n")[1].split("```\n")[0])
    address = free_address()
    processes = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "average.py")],
            env=environment(
                JAX_NUM_CPU_DEVICES="2",
                MINIJAX_COORDINATOR_ADDRESS=address,
                MINIJAX_NUM_PROCESSES="2",
                MINIJAX_PROCESS_ID=str(number),
            ),
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for process in processes:
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert text.splitlines()[-1] == "(8,) 0.5"


@everything
def test_two_processes_have_the_values_of_two_of_jax():
    address = free_address()
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, str(PROGRAMS / "values.py"), "jax"),
                f"{address},2,{number}",
            ],
            env=environment(JAX_NUM_CPU_DEVICES="2"),
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    texts = [process.communicate(timeout=120)[0] for process in processes]
    for text, own in zip(texts, of_several(2)):
        compare(values(text), own)


def test_processes_share_the_cache_on_disk(tmp_path):
    found = []
    for _ in range(2):
        ended = launch(
            2, "cached.py", timeout=10.0, JAX_COMPILATION_CACHE_DIR=str(tmp_path)
        )
        assert ended.code == 0, ended.text
        assert "Warning" not in ended.text
        pattern = r"total (\S+) of (\d+) from disk (\d+)"
        found.append(re.findall(pattern, ended.text))
    cold, warm = found
    assert len(cold) == len(warm) == 2
    assert len({total for total, _, _ in (*cold, *warm)}) == 1
    for total, programs, from_disk in warm:
        assert int(programs) == int(from_disk) >= 8, (total, programs, from_disk)
    assert not list(tmp_path.glob("*.unfinished"))
