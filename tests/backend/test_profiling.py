"""The profiler: kernels by name, named blocks, files for other tools."""

import gzip
import json
import os
import socket

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import profiler
from minijax.backend import profiling

X = np.ones((200, 200), np.float32)


@pytest.fixture(scope="module")
def step():
    compiled = minijax.jit(lambda x: jnp.tanh(x @ x).sum())
    compiled(X).block_until_ready()
    return lambda: compiled(X).block_until_ready()


def events_of(data):
    return [
        event for plane in data.planes for line in plane.lines for event in line.events
    ]


def test_kernels_by_name(step) -> None:
    events = events_of(profiling.measure(step))
    kernels = {}
    for event in events:
        stats = dict(event.stats)
        if "hlo_op" in stats:
            kernels[stats["hlo_op"]] = event.duration_ns
    text = minijax.jit(lambda x: jnp.tanh(x @ x).sum()).lower(X).compile().as_text()
    assert kernels
    assert all(f"%{name}" in text for name in kernels)
    assert max(kernels.values()) > 0


def test_files_and_named_blocks(step, tmp_path) -> None:
    @profiler.annotate_function
    def my_function():
        step()

    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.TraceAnnotation("my block"):
            my_function()
        with profiler.StepTraceAnnotation("train", step_num=3):
            step()
    (folder,) = (tmp_path / "plugins" / "profile").iterdir()
    names = os.listdir(folder)
    assert any(name.endswith(".xplane.pb") for name in names)
    with gzip.open(folder / "perfetto_trace.json.gz", "rt") as file:
        trace = json.load(file)
    assert "metadata" not in trace
    found = {event.get("name") for event in trace["traceEvents"]}
    assert {"my block", "train"} <= found
    assert any("my_function" in str(name) for name in found)
    (saved,) = [name for name in names if name.endswith(".xplane.pb")]
    data = profiler.ProfileData.from_file(str(folder / saved))
    assert "my block" in {event.name for event in events_of(data)}


def test_one_at_a_time(step, tmp_path) -> None:
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    with profiler.trace(tmp_path):
        with pytest.raises(RuntimeError, match="already been started"):
            profiler.start_trace(tmp_path)
        with pytest.raises(RuntimeError, match="already been started"):
            profiling.measure(step)
    profiling.measure(step)


def test_a_folder_that_cannot_be_written(step, tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(minijax.errors.JaxRuntimeError) as caught:
        with profiler.trace(tmp_path / "file" / "below"):
            step()
    assert "could not be written" in caught.value.__notes__[0]
    profiling.measure(step)  # the next one works


def test_a_link_to_the_network_is_refused(tmp_path) -> None:
    with pytest.raises(NotImplementedError, match="create_perfetto_trace=True"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_memory(tmp_path) -> None:
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    held = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    theirs = gzip.decompress(jax.profiler.device_memory_profile())
    assert held[:1] == theirs[:1]
    assert b"test_profiling" in held or b"array" in held or b"buffer" in held


def test_server() -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    profiler.start_server(port)
    try:
        with pytest.raises(ValueError, match="one profiler server"):
            profiler.start_server(port)
        with socket.create_connection(("localhost", port), timeout=10):
            pass
    finally:
        profiler.stop_server()
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
