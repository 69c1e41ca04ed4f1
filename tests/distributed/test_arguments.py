"""Arguments that are wrong, and meshes of devices: no other process is needed."""

import dataclasses
import itertools
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.experimental import mesh_utils as theirs

import minijax
from minijax.experimental import mesh_utils, multihost_utils
from minijax.processes import connecting, lines
from minijax.sharding import Mesh, PartitionSpec

from .starting import environment

WRONG = [
    ("", "ValueError", "coordinator_address should be defined"),
    ("'host'", "ValueError", "host and port"),
    ("'host:1x', 2, 0", "ValueError", "host and port"),
    ("'127.0.0.1:1'", "ValueError", "num_processes must be defined"),
    ("'127.0.0.1:1', 2", "ValueError", "process_id must be defined"),
    ("'127.0.0.1:1', 2, 2", "ValueError", "process_id < num_processes"),
    ("'127.0.0.1:1', 2, -1", "ValueError", "process_id < num_processes"),
    ("'127.0.0.1:1', 2, '1'", "TypeError", "process_id must be an int"),
    ("'127.0.0.1:1', 2.0, 1", "TypeError", "num_processes must be an int"),
    ("'127.0.0.1:1', 2, 1, []", "ValueError", "local_device_ids"),
    ("'127.0.0.1:1', 2, 1, [0, 0]", "ValueError", "local_device_ids"),
    ("cluster_detection_method='slurm'", "ValueError", "asks no cluster"),
    ("slice_index=0", "ValueError", "slice_index=0"),
    ("partition_index=0", "ValueError", "partition_index=0"),
]


def test_wrong_arguments_of_initialize():
    """In one other process: in this one, devices exist already."""
    program = "import minijax\n"
    for arguments, _, _ in WRONG:
        program += (
            "try:\n"
            f"    minijax.distributed.initialize({arguments})\n"
            "except Exception as error:\n"
            "    print(type(error).__name__, str(error).replace('\\n', ' '))\n"
        )
    program += "print(minijax.distributed.is_initialized())\n"
    program += "minijax.distributed.shutdown()\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    printed = done.stdout.splitlines()
    assert len(printed) == len(WRONG) + 1, done.stdout + done.stderr
    assert printed[-1] == "False"
    for line, (arguments, kind, said) in zip(printed, WRONG):
        assert line.startswith(kind) and said in line, (arguments, line)


def test_initialize_after_the_devices_exist():
    minijax.devices()
    with pytest.raises(RuntimeError, match="must be called before"):
        minijax.distributed.initialize("127.0.0.1:1", 2, 0)


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match="process 0 cannot listen"):
            connecting._start_coordinator("127.0.0.1", port, 2, 4.0, None)


def test_addresses():
    assert lines.split_address("10.0.0.1:1234") == ("10.0.0.1", 1234)
    assert lines.split_address("[::1]:80") == ("::1", 80)
    for wrong in ("10.0.0.1", ":80", "host:", "host:99999", ""):
        with pytest.raises(ValueError, match="host and port"):
            lines.split_address(wrong)


# ---- one process ------------------------------------------------------------


def test_multihost_utils_of_one_process():
    tree = {"a": np.arange(3), "b": 1.5}
    for library, utils in (
        (minijax, multihost_utils),
        (jax, __import__("jax.experimental.multihost_utils").experimental),
    ):
        utils = getattr(utils, "multihost_utils", utils)
        assert np.array_equal(utils.broadcast_one_to_all(tree)["a"], [0, 1, 2])
        assert utils.process_allgather(tree)["a"].shape == (1, 3)
        assert utils.process_allgather(tree, tiled=True)["a"].shape == (3,)
        utils.assert_equal(tree)
        utils.sync_global_devices("here")
        assert library.process_count() == 1
    with pytest.raises(TypeError, match="cannot be called inside a function"):
        minijax.jit(multihost_utils.process_allgather)(np.ones(3))
    mesh = Mesh(np.array(minijax.devices()[:1]), ("x",))
    with pytest.raises(ValueError, match="`None` is not a valid input"):
        multihost_utils.host_local_array_to_global_array(np.ones(3), mesh, None)
    whole = multihost_utils.host_local_array_to_global_array(
        np.arange(4), mesh, PartitionSpec("x")
    )
    assert np.array_equal(whole, np.arange(4))
    assert mesh.local_mesh == mesh


# ---- meshes -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Device:
    """A device, as far as meshes ask."""

    id: int
    process_index: int
    platform: str = "cpu"
    device_kind: str = "cpu"
    slice_index: int = 0


def both(name, *args, **kwargs):
    """The results of minijax and jax: ids, or the class and text of the error."""
    found = []
    for module in (mesh_utils, theirs):
        try:
            made = getattr(module, name)(*args, **kwargs)
            found.append([[d.id for d in made.flat], made.shape])
        except Exception as error:
            found.append([type(error), str(error)])
    return found


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_device_meshes(platform):
    devices = [Device((5 * i) % 8, i // 4, platform) for i in range(8)]
    for shape in ((8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), [8, 1], (3,), (2, 2), "ab"):
        one, other = both("create_device_mesh", shape, devices)
        assert one == other


def test_hybrid_meshes():
    devices = [Device(i, i // 4, slice_index=i // 2) for i in (6, 7, *range(6))]
    for shape, outer, process, ordered in itertools.product(
        ((2, 2), (4, 1), (1, 4), (2, 1), (1, 2)),
        ((2, 1), (1, 2), (4, 1), (2, 2), (3, 1)),
        (True, False),
        (True, False),
    ):
        one, other = both(
            "create_hybrid_device_mesh",
            shape,
            outer,
            devices,
            process_is_granule=process,
            should_sort_granules_by_key=ordered,
        )
        assert one == other


def test_a_hybrid_mesh_without_slices():
    with pytest.raises(ValueError, match="does not have attribute slice_index"):
        mesh_utils.create_hybrid_device_mesh((1,), (1,))


def test_cpu_devices_are_chosen_in_time():
    program = (
        "import minijax\n"
        "minijax.config.update('jax_num_cpu_devices', 8)\n"
        "print(len(minijax.devices()))\n"
        "try:\n"
        "    minijax.config.update('jax_num_cpu_devices', 4)\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "minijax.config.update('jax_num_cpu_devices', 8)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.stdout.splitlines()[0] == "8", done.stderr
    assert "jax_num_cpu_devices must be set before the first" in done.stdout
    asked = "import minijax; print(len(minijax.devices()))"
    for variable in (
        {"JAX_NUM_CPU_DEVICES": "8"},
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", asked],
            capture_output=True,
            text=True,
            env=environment(**variable),
            timeout=60,
        )
        assert done.stdout.strip() == "8", done.stderr
