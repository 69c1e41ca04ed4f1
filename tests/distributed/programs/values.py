"""One program over four devices: of one process, of two, or of four.

It prints one JSON line for each value: a name, a kind, and the bits. It is run with
minijax and with jax ("minijax" or "jax" as the argument), alone or by a launcher.
"""

import importlib
import json
import os
import sys

import numpy as np

jax = importlib.import_module(sys.argv[1])
jnp = importlib.import_module(f"{sys.argv[1]}.numpy")
multihost = importlib.import_module(f"{sys.argv[1]}.experimental.multihost_utils")
Mesh, NamedSharding = jax.sharding.Mesh, jax.sharding.NamedSharding
P = jax.sharding.PartitionSpec

if sys.argv[2:]:  # "address,count,number", as jax wants them
    address, count, number = sys.argv[2].split(",")
    jax.distributed.initialize(address, int(count), int(number))
elif "MINIJAX_PROCESS_ID" in os.environ:
    jax.distributed.initialize()

devices = np.array(jax.devices())
assert devices.size == 4
grid = Mesh(devices.reshape(2, 2), ("x", "y"))
line = Mesh(devices, ("i",))


def show(name, value):
    """Prints a value that all processes share, from each process."""
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
        value = multihost.process_allgather(value, tiled=True)
    value = np.ascontiguousarray(value)
    kind = "float" if value.dtype.kind == "f" else "exact"
    bits = value.tobytes().hex()
    print(
        "value",
        json.dumps([name, kind, str(value.dtype), list(value.shape), bits]),
        flush=True,
    )


def put(value, mesh, *spec):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


whole = np.arange(64, dtype=np.int32).reshape(8, 8)
real = np.random.RandomState(0).randn(8, 8).astype(np.float32)

show("device_put", put(whole, grid, "x", "y"))
show("transposed", jax.jit(lambda a: a.T)(put(whole, grid, "x", "y")))
show(
    "resharded",
    jax.device_put(put(whole, grid, "x"), NamedSharding(grid, P(None, "y"))),
)
show("sum of ints", jax.jit(lambda a: a.sum(axis=0))(put(whole, grid, "x", "y")))
show("sorted", jax.jit(lambda a: jnp.sort(a, axis=0))(put(-whole, grid, "x", "y")))
show("sum of floats", jax.jit(jnp.sum)(put(real, grid, "x", "y")))
show("product", jax.jit(jnp.dot)(put(real, grid, "x", "y"), put(real, grid, "y")))


def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


weights = put(real, grid, None, "y")
batch = put(real, grid, "x")
step = jax.jit(lambda w, x: w - 0.5 * jax.grad(loss)(w, x))
for _ in range(5):
    weights = step(weights, batch)
show("trained", weights)
show("loss", jax.jit(loss)(weights, batch))


def mapped(f, out, value=whole):
    run = jax.shard_map(f, mesh=line, in_specs=P("i"), out_specs=out, check_vma=False)
    return jax.jit(run)(put(value, line, "i"))


ring = [(i, (i + 1) % 4) for i in range(4)]
show("psum", mapped(lambda a: jax.lax.psum(a, "i"), P()))
show("pmax", mapped(lambda a: jax.lax.pmax(a, "i"), P()))
show("all_gather", mapped(lambda a: jax.lax.all_gather(a, "i"), P()))
show("ppermute", mapped(lambda a: jax.lax.ppermute(a, "i", ring), P("i")))
show(
    "psum_scatter",
    mapped(
        lambda a: jax.lax.psum_scatter(a, "i", scatter_dimension=1, tiled=True),
        P("i"),
    ),
)
show(
    "all_to_all", mapped(lambda a: jax.lax.all_to_all(a, "i", 1, 0, tiled=True), P("i"))
)
show("psum of floats", mapped(lambda a: jax.lax.psum(a, "i"), P(), real))
show("gathered floats", mapped(lambda a: jax.lax.all_gather(a, "i"), P(), real))

entries = 4 // jax.process_count()
mine = slice(jax.process_index() * entries, (jax.process_index() + 1) * entries)


def one_a_device(name, f, axis=0, **options):
    """Shows a pmap, to which each process gives the entries of its own devices."""
    result = jax.pmap(f, axis_name="i", **options)(whole[:4][mine], real[4])
    assert result.is_fully_addressable
    assert result.shape[axis] == entries
    moved = np.moveaxis(np.asarray(result), axis, 0)
    show(f"pmap: {name}", multihost.process_allgather(moved, tiled=True))


one_a_device("psum", lambda a, b: jax.lax.psum(a, "i"), in_axes=(0, None))
one_a_device("index", lambda a, b: a + jax.lax.axis_index("i"), in_axes=(0, None))
one_a_device("ring", lambda a, b: jax.lax.ppermute(a, "i", ring), in_axes=(0, None))
one_a_device("means", lambda a, b: jax.lax.pmean(a * b, "i"), in_axes=(0, None))
one_a_device("columns", lambda a, b: a, axis=1, in_axes=(0, None), out_axes=1)

made = jax.make_array_from_callback(
    (8, 8), NamedSharding(grid, P("x", "y")), lambda index: whole[index] * 3
)
show("from callback", made)
rows = 8 // jax.process_count()
start = rows * jax.process_index()
sharding = NamedSharding(line, P("i"))
own = jax.make_array_from_process_local_data(sharding, whole[start : start + rows])
show("from local data", own)
shared = multihost.host_local_array_to_global_array(
    whole[start : start + rows], line, P("i")
)
show("host local to global", shared)
back = multihost.global_array_to_host_local_array(shared, line, P("i"))
assert back.is_fully_addressable
assert np.array_equal(back, whole[start : start + rows])
show("one to all", multihost.broadcast_one_to_all(real * (jax.process_index() + 1)))

tree = {
    "flag": np.array([True, False]),
    "scalar": np.int32(3),
    "half": real.astype(np.float16),
}
for key, value in multihost.broadcast_one_to_all(tree).items():
    show(f"one to all: {key}", value)
last = jax.process_index() == jax.process_count() - 1
show("last to all", multihost.broadcast_one_to_all(whole + 0 * last, is_source=last))

# What each process gives depends on how many there are, so it is compared here.
count, me = jax.process_count(), jax.process_index()
each = multihost.process_allgather({"a": np.full(3, me), "b": me, "c": me + 0.5})
assert np.array_equal(each["a"], np.repeat(np.arange(count), 3).reshape(count, 3))
assert np.array_equal(each["b"], np.arange(count)), each["b"]
assert np.array_equal(each["c"], np.arange(count) + 0.5)
assert each["c"].dtype == (np.float32 if count > 1 else np.float64)
tiled = multihost.process_allgather(np.full((2, 3), me), tiled=True)
assert np.array_equal(tiled, np.repeat(np.arange(count), 6).reshape(2 * count, 3))
if count > 1:
    shared_by_all = put(whole, grid, "x", "y")
    assert not shared_by_all.is_fully_addressable
    assert len(shared_by_all.addressable_shards) == 4 // count
    assert repr(shared_by_all) == "Array(shape=(8, 8), dtype=int32)"
    cut = NamedSharding(grid, P("x"))
    try:
        jax.jit(lambda a: a + 1, in_shardings=cut)(whole)
    except ValueError as error:
        assert "numpy inputs" in str(error)
    else:
        raise AssertionError("no error")
    try:
        jax.pmap(lambda a: a)(np.ones(entries + 1))
    except (ValueError, AssertionError):
        pass
    else:
        raise AssertionError("no error")
    for wrong in (np.asarray, lambda x: multihost.process_allgather(x)):
        try:
            wrong(shared_by_all)
        except (RuntimeError, ValueError) as error:
            assert "addressable" in str(error)
        else:
            raise AssertionError("no error")
    try:
        multihost.assert_equal(np.arange(3) + me, "they differ")
    except AssertionError as error:
        assert "they differ" in str(error)
    else:
        raise AssertionError("no error")
multihost.assert_equal({"a": whole, "b": 1.5}, "the arrays differ")
multihost.sync_global_devices("end")
