"""Launches on several devices that nobody waits for: many, failing, nested."""

from tests.backend.processes import run

EIGHT = """
import threading, time
import numpy as np
import minijax, minijax.numpy as jnp
from minijax.backend import several_devices
from minijax.sharding import NamedSharding, PartitionSpec as P, AxisType

mesh = minijax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
cut = NamedSharding(mesh, P("i"))
x = minijax.device_put(jnp.arange(64.0).reshape(8, 8), cut)
total = minijax.jit(lambda x: (x @ x.T).sum())
expected = float((np.asarray(x) @ np.asarray(x).T).sum())
"""


def test_a_thousand_launches() -> None:
    program = """
results = [total(x) for _ in range(1000)]
assert len(several_devices._under_way) == several_devices.LAUNCHES_UNDER_WAY
assert {float(one) for one in results} == {expected}
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_four_threads_launch() -> None:
    program = """
found = []
def work():
    found.append({float(one) for one in [total(x) for _ in range(200)]})
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert found == [{expected}] * 4
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_a_callback_launches() -> None:
    """A callback of a program on one device launches more than may be under way."""
    program = """
def host(v):
    for _ in range(20):
        last = total(x)
    return np.float32(last)

inner = minijax.jit(lambda y: minijax.pure_callback(
    host, minijax.ShapeDtypeStruct((), np.float32), y) + y)
results = [inner(jnp.float32(1)) for _ in range(12)]
assert {float(one) for one in results} == {expected + 1}
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]


def test_a_callback_that_would_wait_for_itself() -> None:
    """A callback of a program on all devices launches on all devices. jax hangs."""
    program = """
twice = minijax.jit(lambda x: 2 * x)

def host(v):
    return np.float32(twice(x)[0, 1])

inner = minijax.jit(lambda y: minijax.pure_callback(
    host, minijax.ShapeDtypeStruct((), np.float32), y) + y)
y = minijax.device_put(jnp.float32(1), NamedSharding(mesh, P()))
try:
    float(inner(y))
except Exception as error:
    print(type(error).__name__)
    assert "They all wait for the callback" in str(error.__cause__), error.__cause__
assert float(total(x)) == expected
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["JaxRuntimeError", "fine"]


def test_a_failure_is_raised_where_it_is_read() -> None:
    program = """
def host(v):
    raise ValueError("no")

bad = minijax.jit(lambda y: minijax.pure_callback(
    host, minijax.ShapeDtypeStruct((), np.float32), y))
y = minijax.device_put(jnp.float32(1), NamedSharding(mesh, P()))
try:
    minijax.block_until_ready(bad(y))
except minijax.errors.JaxRuntimeError:
    print("raised")
results = [total(x) for _ in range(50)]
assert {float(one) for one in results} == {expected}
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["raised", "fine"]


def test_the_barrier_waits_for_all_devices() -> None:
    program = """
seen = []
def host(v):
    time.sleep(0.05)
    seen.append(v.shape)

def body(x):
    minijax.debug.callback(host, x)
    return x * 2

cuts = dict(mesh=mesh, in_specs=P("i"), out_specs=P("i"))
f = minijax.jit(minijax.shard_map(body, **cuts))
for _ in range(3):
    f(x)
minijax.effects_barrier()
assert seen == [(1, 8)] * 24, seen
print("fine")
"""
    assert run(EIGHT + program, devices=8).split() == ["fine"]
