"""Compiled programs as bytes: as in JAX, in another process, and what is refused."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import minijax as mj
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.backend.disk_cache import usable_cores
from minijax.experimental import serialize_executable
from tests.sharding import serialized
from tests.sharding.test_automatic import compare

X = np.arange(64, dtype=np.float32).reshape(8, 8)
TWICE_TANH = mj.jit(lambda x: jnp.tanh(x) * 2)


@pytest.mark.parametrize("name", serialized.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])


WRITES = """
import pickle, sys, numpy as np, minijax as mj, minijax.numpy as jnp
from minijax.experimental import serialize_executable
from minijax.sharding import AxisType, NamedSharding, PartitionSpec
mj.config.update("jax_num_cpu_devices", 8)
mesh = mj.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
x = np.arange(64, dtype=np.float32).reshape(8, 8)
x = mj.device_put(x, NamedSharding(mesh, PartitionSpec("x")))
f = mj.jit(lambda d: {"a": jnp.sin(d["x"]) @ d["x"].T, "b": d["x"].sum()})
compiled = f.lower({"x": x}).compile()
answer = {name: np.asarray(out) for name, out in compiled({"x": x}).items()}
kept = serialize_executable.serialize(compiled)
root = mj.jit(jnp.linalg.cholesky).lower(np.eye(3, dtype=np.float32) * 4).compile()
root = serialize_executable.serialize(root)
sys.stdout.buffer.write(pickle.dumps((kept, answer, root)))
"""
READS = """
import pickle, sys, numpy as np, minijax as mj
from minijax.experimental import serialize_executable
mj.config.update("jax_num_cpu_devices", int(sys.argv[1]))
kept, answer, root = pickle.loads(sys.stdin.buffer.read())
try:
    out = serialize_executable.deserialize_and_load(*kept)(
        {"x": np.arange(64, dtype=np.float32).reshape(8, 8)}
    )
except ValueError as error:
    print(error)
else:
    print(*(np.abs(np.asarray(out[name]) - answer[name]).max() for name in "ab"))
    print(out["a"].sharding.spec, len(out["a"].devices()))
    root = serialize_executable.deserialize_and_load(*root)
    print(root(np.eye(3, dtype=np.float32) * 4).sum())
"""


def elsewhere(program, *args, given=None):
    """What a program of its own process writes."""
    command = [sys.executable, "-c", program, *args]
    done = subprocess.run(command, capture_output=True, input=given)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def written():
    return elsewhere(WRITES)


def test_in_another_process(written):
    lines = elsewhere(READS, "8", given=written).decode().splitlines()
    assert lines == ["0.0 0.0", "P('x',) 8", "6.0"]


def test_devices_that_are_not_there(written):
    text = elsewhere(READS, "2", given=written).decode()
    assert "compiled for the device with id" in text
    assert "those given have the ids [0, 1]. Compile it again for them." in text


@pytest.mark.skipif(usable_cores() < 2, reason="the machine has one core")
def test_on_another_machine(written):
    """A process with one core stands for one: XLA's code divides work by cores."""
    one_core = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    text = elsewhere(one_core + READS, "8", given=written).decode()
    assert "were written with another jaxlib, minijax or processor." in text


@pytest.fixture(scope="module")
def kept():
    return serialize_executable.serialize(TWICE_TANH.lower(X).compile())


def test_one_device(kept):
    loaded = serialize_executable.deserialize_and_load(*kept)
    np.testing.assert_array_equal(loaded(X), TWICE_TANH(X))
    assert "HloModule" in loaded.as_text()


def test_twice(kept):
    loaded = serialize_executable.deserialize_and_load(*kept)
    with pytest.raises(ValueError, match="was itself read from bytes.*compile the fun"):
        serialize_executable.serialize(loaded)


@pytest.mark.parametrize("devices", [None, mj.devices()])
def test_backend(kept, devices):
    def read(backend):
        return serialize_executable.deserialize_and_load(*kept, backend, devices)

    with pytest.raises(RuntimeError, match="Unknown backend nix"):
        read("nix")
    for backend in ("cpu", mj.devices()[0].client):
        np.testing.assert_array_equal(read(backend)(X), TWICE_TANH(X))


@pytest.mark.parametrize("view", [see.stages, see.fusion, see.passes])
def test_views(kept, view):
    loaded = serialize_executable.deserialize_and_load(*kept)
    with pytest.raises(TypeError, match="read from bytes has no jaxpr"):
        view(loaded)


def test_pickled(kept):
    loaded = serialize_executable.deserialize_and_load(
        *pickle.loads(pickle.dumps(kept))
    )
    np.testing.assert_array_equal(loaded(X), TWICE_TANH(X))


def flipped(data, place):
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda data: flipped(data, 5000), "are damaged"),
        (lambda data: flipped(data, 40), "are damaged"),
        (lambda data: data[:-5], "are damaged"),
        (lambda data: data + b"x", "are damaged"),
        (lambda data: flipped(data, 0), "another jaxlib, minijax or processor"),
        (lambda data: b"", "another jaxlib, minijax or processor"),
        (lambda data: b"\x89PNG picture" * 20, "another jaxlib, minijax or processor"),
    ],
)
def test_bytes_that_do_not_fit(kept, change, text):
    data, *trees = kept
    with pytest.raises(ValueError, match=f"{text}. Compile it here"):
        serialize_executable.deserialize_and_load(change(data), *trees)


def with_callback(x):
    kind = mj.ShapeDtypeStruct(x.shape, x.dtype)
    return mj.pure_callback(lambda v: v, kind, x)


def with_ordered_effect(x):
    mj.debug.print("{}", x, ordered=True)
    return x


LARGE = jnp.ones((300, 300))
REF = mj.new_ref(jnp.ones(3))


@pytest.mark.parametrize(
    "function, arg",
    [
        (with_callback, X),
        (with_ordered_effect, X),
        (lambda x: x + LARGE, LARGE),
        (lambda x: x + REF[...], np.ones(3, np.float32)),
    ],
)
def test_refused(function, arg):
    compiled = mj.jit(function).lower(arg).compile()
    with pytest.raises(ValueError, match="needs more than its arguments"):
        serialize_executable.serialize(compiled)


def test_options_of_the_compiler():
    options = {"xla_cpu_enable_fast_math": True}
    compiled = mj.jit(lambda x: jnp.tanh(x).sum()).lower(X).compile(options)
    kept = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*kept)
    np.testing.assert_allclose(loaded(X), np.tanh(X).sum(), rtol=1e-5)
