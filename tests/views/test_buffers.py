"""Live ranges and buffers of compiled programs, as XLA wrote them down."""

import importlib.util
import json

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.backend import cuda
from minijax_lab.explain.buffers import compiled_memory
from minijax_lab.explain.memory import record_memory
from minijax_lab.explain.recording import Recording
from tests.views.compiled_programs import PROGRAMS, A, B, X, loss

H100 = pytest.param(
    "h100",
    marks=pytest.mark.skipif(
        not cuda.is_installed(), reason="jax-cuda13-pjrt (minijax[h100]) is missing"
    ),
)
TPU = pytest.param(
    "tpu-v5e:2x2",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None,
        reason="libtpu (minijax[tpu]) is missing",
    ),
)
TARGETS = ["cpu", H100, TPU]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bytes_alive_add_up_to_xlas_peak(name, target):
    function, args = PROGRAMS[name]
    memory = compiled_memory(function, args, {}, target)
    told = sum(buffer.bytes for buffer in memory.alive(memory.told_peak))
    if memory.platform == "tpu":
        assert told >= memory.told_most  # which counts no padding to whole tiles
    else:
        assert told == memory.told_most
    live = memory.live()
    assert len(live) == len(memory.schedule) and live[memory.peak] == max(live)
    allocated = sum(allocation.bytes for allocation in memory.allocations)
    assert max(live) <= allocated
    sizes = {allocation.id: allocation.bytes for allocation in memory.allocations}
    for buffer in memory.buffers:
        assert buffer.offset + buffer.bytes <= sizes[buffer.allocation]
    of_arguments = sum(a.bytes for a in memory.allocations if a.kind == "argument")
    assert of_arguments >= sum(np.asarray(arg).nbytes for arg in args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_buffers_that_share_a_place_are_not_alive_together(name):
    function, args = PROGRAMS[name]
    memory = compiled_memory(function, args, {})
    for allocation in memory.allocations:
        known = [b for b in memory.sharing(allocation.id) if b.first is not None]
        for place, one in enumerate(known):
            for other in known[place + 1 :]:
                apart = one.offset + one.bytes <= other.offset
                apart |= other.offset + other.bytes <= one.offset
                apart |= one.last <= other.first or other.last <= one.first
                assert apart, (one, other)


def test_a_buffer_knows_its_equation():
    memory = compiled_memory(minijax.grad(loss), (B, A), {})
    made = [b for b in memory.buffers if b.equation is not None and b.first is not None]
    assert made
    kinds = {allocation.kind for allocation in memory.allocations}
    assert {"argument", "result", "temporaries"} <= kinds


def test_memory_is_recorded_with_what_xla_allocates():
    def function(x):
        return jnp.sum(jnp.sin(x) @ jnp.cos(x))

    x = np.ones((128, 128), np.float32)
    recording = record_memory(function, (x,), {})
    (account,) = recording.accounts
    memory = compiled_memory(function, (x,), {}, None)
    assert account.compiled == memory.kinds and memory.kinds["arguments"] == x.nbytes
    assert memory.alive(memory.peak)[0].bytes == x.nbytes
    again = Recording.from_dict(json.loads(json.dumps(recording.to_dict())))
    assert again.accounts[0].compiled == account.compiled


@pytest.mark.parametrize("target", TARGETS[1:])
def test_memory_of_a_machine_that_is_not_there(target):
    recording = record_memory(jnp.sin, (X,), {}, target=target)
    assert recording.platform == target
    assert recording.accounts[0].compiled["arguments"] >= X.nbytes
