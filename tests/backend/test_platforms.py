"""Devices, and values on their way to them and back."""

import threading

import ml_dtypes
import numpy as np
import pytest

from minijax.backend import buffer_copies, processes
from minijax.core import runtime
from tests.backend.processes import FORBID_JAX, run
from tests.backend.reference import supported_dtypes


class Aval:
    def __init__(self, shape, dtype, weak_type=False):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.weak_type = weak_type


def there_and_back(array: np.ndarray) -> np.ndarray:
    device = runtime.devices()[0]
    native = array.dtype.newbyteorder("=")
    aval = Aval(array.shape, native)
    buffer = runtime.put(array, aval, device, committed=True)
    assert buffer.aval is aval
    return buffer_copies.to_numpy(buffer)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


# The six-bit floats exist in NumPy and in StableHLO; jaxlib 0.10 has no arrays of them.
STORED = [d for d in supported_dtypes() if not d.name.startswith("float6")]


@pytest.mark.parametrize("dtype", STORED, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (0, 3), (2, 3), (2, 1, 4)])
def test_every_dtype_survives(dtype, shape) -> None:
    values = np.random.RandomState(0).randint(0, 2, size=shape).astype(np.float32)
    array = values.astype(dtype)
    back = there_and_back(array)
    assert same_bits(array, back)
    assert not back.flags.writeable


def test_special_values_keep_their_bits() -> None:
    patterns = np.array([0x7FC00001, 0xFFC00002, 0x80000000, 1, 0x7F800000], np.uint32)
    array = patterns.view(np.float32)
    assert same_bits(array, there_and_back(array))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0)[::-1],
        np.arange(12.0)[::3],
        np.arange(12.0).reshape(3, 4).T,
        np.arange(24.0).reshape(2, 3, 4)[:, ::-1, 1:3],
        np.broadcast_to(np.float32(3), (2, 3)),
        np.frombuffer(b"\0" + np.arange(3.0).tobytes(), np.uint8)[1:].view(np.float64),
        np.zeros(4, [("a", "f4"), ("b", "i1")])["a"],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(6, dtype=">i4"),
        np.arange(6, dtype=">f8").reshape(2, 3).T,
        np.arange(3, dtype=">c16") * (1 + 2j),
    ],
)
def test_strides_and_byte_orders(array) -> None:
    back = there_and_back(array)
    assert back.dtype.isnative
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("size", [1, 16, 1000, 1 << 18])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "int4"])
def test_later_writes_to_the_source_change_nothing(size, dtype) -> None:
    scalar = getattr(ml_dtypes, dtype, None) or dtype
    raw = np.zeros(size * 8 + 64, np.uint8)
    start = -raw.ctypes.data % 64  # the alignment at which jaxlib would share memory
    array = raw[start : start + size * np.dtype(scalar).itemsize].view(scalar)
    array[...] = 1
    aval = Aval(array.shape, array.dtype)
    buffer = runtime.put(array, aval, runtime.devices()[0], True)
    array[...] = 0
    assert (buffer_copies.to_numpy(buffer) == 1).all()


def test_put_keeps_committed_and_sharding() -> None:
    device = runtime.devices()[0]
    aval = Aval((), np.float32, weak_type=True)
    for committed in (True, False):
        buffer = runtime.put(np.float32(1).reshape(()), aval, device, committed)
        assert buffer._committed is committed
        assert buffer._sharding is runtime.single_device_sharding(device)


def test_64_bits_are_not_cut() -> None:
    assert there_and_back(np.array([2**40])).tolist() == [2**40]
    assert there_and_back(np.array([1e300])).tolist() == [1e300]


def test_deleted_array_says_so() -> None:
    aval = Aval((2,), np.float32)
    buffer = runtime.put(np.ones(2, np.float32), aval, runtime.devices()[0], True)
    buffer.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        buffer_copies.to_numpy(buffer)


def test_unknown_platforms() -> None:
    with pytest.raises(RuntimeError, match="Unknown backend nowhere. Available"):
        runtime.devices("nowhere")
    with pytest.raises(ValueError, match="Unknown process_index 3"):
        processes.local_devices(process_index=3)


def test_counts() -> None:
    assert processes.device_count() == len(runtime.devices())
    assert processes.local_device_count() == len(processes.local_devices())
    assert processes.process_index() == 0
    assert processes.process_count() == 1
    assert processes.process_indices() == [0]
    client = runtime.get_backend("cpu")
    assert runtime.get_backend(client) is client
    assert runtime.backends()["cpu"] is client


def test_requested_platform_that_is_not_there() -> None:
    program = """
    from minijax.core import runtime as platforms
    for _ in range(2):
        try:
            platforms.devices()
        except RuntimeError as error:
            print(error)
    """
    for name in ("nonsense", "cpu,nonsense"):
        lines = run(program, JAX_PLATFORMS=name).splitlines()
        assert len(lines) == 2
        assert all("Unable to initialize backend 'nonsense'" in line for line in lines)
    ours = run(
        "from minijax.backend import processes; print(processes.default_backend())",
        MINIJAX_PLATFORMS="cpu",
        JAX_PLATFORMS="nonsense",
    )
    assert ours.split() == ["cpu"]


def test_number_of_cpu_devices() -> None:
    program = "from minijax.backend import processes; print(processes.device_count())"
    assert run(program).split() == ["1"]
    assert run(program, devices=5).split() == ["5"]
    assert run(program, JAX_NUM_CPU_DEVICES="3").split() == ["3"]
    by_setting = """
    from minijax.backend import clients, processes
    clients.settings.num_cpu_devices = 4
    print(processes.device_count())
    """
    assert run(by_setting, JAX_NUM_CPU_DEVICES="3").split() == ["4"]


def test_threads_get_one_client() -> None:
    printed = run(
        """
        import threading
        from minijax.core import runtime as platforms
        found, gate = [], threading.Barrier(8)
        def ask():
            gate.wait()
            client = platforms.get_backend()
            sharding = platforms.single_device_sharding(client.devices()[0])
            found.append((id(client), id(sharding)))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(len(found), len(set(found)))
        """
    )
    assert printed.split() == ["8", "1"]


def test_many_threads_put_and_fetch() -> None:
    wrong = []

    def work(number: int) -> None:
        for turn in range(50):
            array = np.full((17,), number * 100 + turn, np.int32)
            if there_and_back(array).tolist() != array.tolist():
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_several_devices_without_importing_jax() -> None:
    printed = run(
        FORBID_JAX
        + """
import ml_dtypes
import numpy as np
from minijax.backend import buffer_copies
from minijax.core import runtime as platforms
from minijax.support.devices.mesh import Mesh
from minijax.support.devices.partition_spec import P
from minijax.support.devices.shardings import NamedSharding

class Aval:
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.weak_type = shape, np.dtype(dtype), False

devices = platforms.devices()
mesh = Mesh(np.array(devices).reshape(2, 2), ("x", "y"))
for dtype in (np.float32, ml_dtypes.bfloat16, ml_dtypes.int4, bool):
    whole = (np.arange(32).reshape(8, 4) % 5).astype(dtype)
    for spec in (P(), P("x"), P("x", "y"), P(("y", "x")), P(None, "y")):
        sharding = NamedSharding(mesh, spec)
        index = sharding.devices_indices_map(whole.shape)
        parts = [whole[index[d]] for d in devices]
        a = buffer_copies.put_shards(parts, Aval(whole.shape, dtype), sharding)
        back = buffer_copies.to_numpy(a)
        assert back.dtype == whole.dtype and (back == whole).all(), spec
        assert not back.flags.writeable
        for device, part in buffer_copies.shards(a):
            assert part.aval.shape == sharding.shard_shape(whole.shape)
            assert part._sharding is platforms.single_device_sharding(device)
            assert (buffer_copies.to_numpy(part) == whole[index[device]]).all()
    one = platforms.put(whole, Aval(whole.shape, dtype), devices[0], True)
    moved = buffer_copies.copy_to_device(one, devices[3])
    assert moved._sharding._device == devices[3]
    assert (buffer_copies.to_numpy(moved) == whole).all()
    here = buffer_copies.copy_to_device(one, devices[0])
    address = buffer_copies.unsafe_buffer_pointer
    assert address(here) != address(one)
    other = NamedSharding(mesh.update(devices=mesh.devices[::-1]), P("x"))
    b = buffer_copies.copy_to_sharding(
        buffer_copies.put_shards([whole[:4], whole[:4], whole[4:], whole[4:]],
                             Aval(whole.shape, dtype), NamedSharding(mesh, P("x"))),
        other)
    assert b._sharding is other
print("fine", "jax" in sys.modules)
""",
        devices=4,
    )
    assert printed.split() == ["fine", "False"]
