"""Compiling, launching, and programs kept on disk."""

import os
import threading
import warnings

import numpy as np
import pytest

from minijax.backend import buffer_copies, disk_cache, executables, hlo_parts
from minijax.backend.build_settings import BuildSettings
from minijax.core import hlo, runtime
from minijax.core.compiler import compile_module
from tests.backend.processes import FORBID_JAX, run


class Aval:
    def __init__(self, shape, dtype=np.float32, weak_type=False):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.weak_type = weak_type


SINE = """
module @jit_sine { func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.sine %x : tensor<3xf32>
  return %y : tensor<3xf32> } }"""

TWO = """
module @two { func.func public @main(%x: tensor<3xf32>, %y: tensor<i32>)
    -> (tensor<i32>, tensor<3xf32>) {
  %z = stablehlo.add %x, %x : tensor<3xf32>
  return %y, %z : tensor<i32>, tensor<3xf32> } }"""

X = np.array([0.5, 1, 2], np.float32)


def cpu():
    return runtime.devices("cpu")[0]


def put(array, aval=None):
    aval = aval or Aval(array.shape, array.dtype)
    return runtime.put(array, aval, cpu(), True)


def launch_sine(executable) -> np.ndarray:
    sharding = runtime.single_device_sharding(cpu())
    launch = executable.launcher([Aval((3,))], [sharding])
    return buffer_copies.to_numpy(launch([put(X)])[0])


@pytest.mark.parametrize("form", ["text", "bytes", "module"])
def test_all_forms_of_a_program(form) -> None:
    with hlo_parts.context():
        module = hlo_parts.parse(SINE)
        program = {
            "text": SINE,
            "bytes": hlo.module_to_bytes(module),
            "module": module,
        }[form]
        executable = compile_module(program, [cpu()])
    assert not executable.from_disk
    assert executable.seconds > 0
    np.testing.assert_allclose(launch_sine(executable), np.sin(X), rtol=1e-6)


def test_outputs_have_the_avals_shardings_and_commitments_asked_for() -> None:
    sharding = runtime.single_device_sharding(cpu())
    avals = [Aval((), np.int32, True), Aval((3,))]
    executable = compile_module(TWO, [cpu()])
    arguments = [put(X), put(np.array(7, np.int32))]
    for committed in (True, False):
        launch = executable.launcher(avals, [sharding, sharding], committed)
        number, doubled = launch(arguments)
        assert number._committed == doubled._committed == committed
    assert number.aval is avals[0]
    assert doubled.aval is avals[1]
    assert number._sharding is sharding
    assert buffer_copies.to_numpy(number) == 7
    np.testing.assert_array_equal(buffer_copies.to_numpy(doubled), X + X)


def test_launcher_wants_as_many_avals_as_shardings() -> None:
    with pytest.raises(ValueError, match="shorter|longer"):
        compile_module(TWO, [cpu()]).launcher([Aval(())], [])


def test_what_can_be_asked_of_an_executable() -> None:
    executable = compile_module(SINE, [cpu()])
    assert "sine" in executable.hlo_text()
    assert executable.hlo_modules()[0].name.startswith("jit_sine")
    assert executables.cost_analysis(executable)["bytes accessed"] == 24
    stats = executables.memory_stats(executable)
    assert stats.argument_size_in_bytes == 12
    assert stats.output_size_in_bytes == 12
    assert len(executables.serialize(executable)) > 100


def test_donated_argument_is_gone() -> None:
    text = """
    module { func.func public @main(%x: tensor<3xf32> {tf.aliasing_output = 0 : i32})
        -> tensor<3xf32> {
      %y = stablehlo.sine %x : tensor<3xf32>
      return %y : tensor<3xf32> } }"""
    sharding = runtime.single_device_sharding(cpu())
    launch = compile_module(text, [cpu()]).launcher([Aval((3,))], [sharding])
    given = put(X)
    (result,) = launch([given])
    assert given.is_deleted()
    np.testing.assert_allclose(buffer_copies.to_numpy(result), np.sin(X), rtol=1e-6)


def test_errors_come_as_they_are() -> None:
    with pytest.raises(runtime.JaxRuntimeError, match="INVALID_ARGUMENT.*no_such_flag"):
        compile_module(SINE, [cpu()], BuildSettings(options={"no_such_flag": 1}))
    with pytest.raises(runtime.JaxRuntimeError):
        compile_module("not a program", [cpu()])


def test_options_reach_the_compiler() -> None:
    text = """
    module { func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = stablehlo.add %x, %x : tensor<8xf32>
      %z = stablehlo.multiply %y, %x : tensor<8xf32>
      return %z : tensor<8xf32> } }"""
    fused = compile_module(text, [cpu()], BuildSettings(fast_compile=False))
    apart = compile_module(
        text,
        [cpu()],
        BuildSettings(options={"xla_disable_hlo_passes": "fusion"}, fast_compile=False),
    )
    count = [e.hlo_text().count(" fusion(") for e in (fused, apart)]
    assert count[0] != count[1]


def test_fast_compile_follows_the_environment(monkeypatch) -> None:
    monkeypatch.setenv("MINIJAX_TEST_FAST_COMPILE", "1")
    assert BuildSettings().is_fast
    assert not BuildSettings(fast_compile=False).is_fast
    monkeypatch.delenv("MINIJAX_TEST_FAST_COMPILE")
    assert not BuildSettings().is_fast
    for fast in (True, False):
        executable = compile_module(SINE, [cpu()], BuildSettings(fast_compile=fast))
        np.testing.assert_allclose(launch_sine(executable), np.sin(X), rtol=1e-6)


def test_host_callback() -> None:
    text = """
    module { func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
        {api_version = 4 : i32, has_side_effect = true,
         backend_config = {index = 0 : ui64}}
        : (tensor<3xf32>) -> tensor<3xf32>
      return %y : tensor<3xf32> } }"""
    seen = []

    def reverse(x):
        seen.append(np.array(x))
        return (np.ascontiguousarray(x[::-1]),)

    executable = compile_module(text, [cpu()], None, [reverse])
    np.testing.assert_array_equal(launch_sine(executable), X[::-1])
    np.testing.assert_array_equal(seen, [X])


# ---------------------------------------------------------------------------
# The cache on disk


def kept(directory, text=SINE, policy=None, **settings):
    """The program compiled, or found in the directory."""
    policy = policy or disk_cache.Policy(str(directory))
    settings = BuildSettings(**settings)
    return disk_cache.load_or_compile(text, [cpu()], settings, policy)


def test_second_compilation_comes_from_disk(tmp_path) -> None:
    directory = tmp_path / "made" / "here"
    first = kept(directory)
    second = kept(directory)
    assert (first.from_disk, second.from_disk) == (False, True)
    np.testing.assert_array_equal(launch_sine(first), launch_sine(second))
    assert len(os.listdir(directory)) == 1


def test_locations_do_not_matter_and_everything_else_does(tmp_path) -> None:
    def found(text=SINE, **more) -> bool:
        return kept(tmp_path, text, **more).from_disk

    moved = SINE.replace("%x : tensor<3xf32>\n", '%x : tensor<3xf32> loc("a":3:4)\n')
    assert moved != SINE
    assert not found(fast_compile=True)
    assert found(moved, fast_compile=True)
    assert not found(SINE.replace("sine", "cosine"), fast_compile=True)
    assert not found(fast_compile=False)
    flags = {"xla_cpu_enable_fast_math": True, "xla_disable_hlo_passes": "fusion"}
    assert not found(options=flags)
    assert found(options=dict(reversed(flags.items())))
    assert not found(options={**flags, "xla_cpu_enable_fast_math": False})


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_damaged_files_are_replaced(tmp_path, damage) -> None:
    kept(tmp_path)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = bytes([content[middle] ^ 1])
    file.write_bytes(
        {
            "cut": content[:middle],
            "flip": content[:middle] + flipped + content[middle + 1 :],
            "empty": b"",
            "other": b"something else entirely" * 20,
        }[damage]
    )
    with pytest.warns(RuntimeWarning, match="is damaged"):
        again = kept(tmp_path)
    assert not again.from_disk
    np.testing.assert_allclose(launch_sine(again), np.sin(X), rtol=1e-6)
    assert kept(tmp_path).from_disk


def test_file_that_jaxlib_refuses(tmp_path, monkeypatch) -> None:
    class Refuses:
        @staticmethod
        def serialize() -> bytes:
            return b"no executable"

    with monkeypatch.context() as patch:
        written = disk_cache.DiskEntry.write
        patch.setattr(
            disk_cache.DiskEntry, "write", lambda self, _: written(self, Refuses)
        )
        kept(tmp_path)
    with pytest.warns(RuntimeWarning, match="could not be loaded"):
        again = kept(tmp_path)
    assert not again.from_disk
    assert kept(tmp_path).from_disk


def test_directory_that_cannot_be(tmp_path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    with pytest.warns(RuntimeWarning, match="could not be"):
        executable = kept(occupied / "below")
    np.testing.assert_allclose(launch_sine(executable), np.sin(X), rtol=1e-6)


def test_quick_and_small_programs_are_not_kept(tmp_path) -> None:
    for policy in (
        disk_cache.Policy(str(tmp_path), min_seconds=1000.0),
        disk_cache.Policy(str(tmp_path), min_bytes=10**9),
    ):
        kept(tmp_path, policy=policy)
        assert not list(tmp_path.iterdir())


def test_trouble_raises_if_asked(tmp_path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    policy = disk_cache.Policy(str(occupied / "below"), raise_errors=True)
    with pytest.raises(RuntimeError, match="could not be"):
        kept(tmp_path, policy=policy)


def test_another_process_finds_it(tmp_path) -> None:
    program = f"""
import numpy as np
from minijax.backend import buffer_copies, disk_cache
from minijax.backend.build_settings import BuildSettings
from minijax.core import compiler, runtime as platforms
class Aval:
    shape, dtype, weak_type = (3,), np.dtype("float32"), False
device = platforms.devices("cpu")[0]
settings = BuildSettings(
    fast_compile=True,
    options={{"xla_cpu_enable_fast_math": False, "xla_disable_hlo_passes": "cse"}})
executable = disk_cache.load_or_compile(
    '''{SINE}''', [device], settings, disk_cache.Policy({str(tmp_path)!r}))
sharding = platforms.single_device_sharding(device)
x = platforms.put(np.array([0.5, 1, 2], np.float32), Aval(), device, True)
(y,) = executable.launcher([Aval()], [sharding])([x])
print(executable.from_disk, buffer_copies.to_numpy(y).tolist())
"""
    first, second = run(program), run(program)
    assert first.startswith("False")
    assert second == first.replace("False", "True")


def test_threads_share_a_directory(tmp_path) -> None:
    results = []

    def work() -> None:
        executable = kept(tmp_path)
        results.append(launch_sine(executable).tolist())

    threads = [threading.Thread(target=work) for _ in range(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 6
    assert all(result == results[0] for result in results)
    assert len(list(tmp_path.iterdir())) == 1


# ---------------------------------------------------------------------------
# Several devices

SEVERAL = (
    FORBID_JAX
    + """
import numpy as np
from minijax.backend import buffer_copies
from minijax.backend import disk_cache, executables, hlo_parts, several_devices
from minijax.core import compiler, hlo, runtime as platforms
from minijax.support.devices.mesh import AxisType, Mesh
from minijax.support.devices.partition_spec import P
from minijax.support.devices.shardings import (
    GSPMDSharding,
    NamedSharding,
    sdy_sharding,
    spec_of_hlo_sharding,
)

class Aval:
    def __init__(self, shape, dtype=np.float32):
        self.shape, self.dtype, self.weak_type = shape, np.dtype(dtype), False

def scatter(whole, sharding):
    index = sharding.devices_indices_map(whole.shape)
    parts = [whole[index[d]] for d in sharding._device_assignment]
    return buffer_copies.put_shards(parts, Aval(whole.shape, whole.dtype), sharding)

devices = platforms.devices()
assert len(devices) == 8
"""
)


def test_partitioned_program_on_eight_devices(tmp_path) -> None:
    program = (
        SEVERAL
        + f"""
def matmul(a, b, out, directory=None):
    # out = a @ b, with these shardings of arguments and result
    with hlo_parts.context():
        f32 = np.float32
        ta, tb = hlo.tensor_type((16, 8), f32), hlo.tensor_type((8, 4), f32)
        tc = hlo.tensor_type((16, 4), f32)
        module = hlo.ir.Module.create()
        with hlo.ir.InsertionPoint(module.body):
            main = hlo.func.FuncOp("main", hlo.ir.FunctionType.get([ta, tb], [tc]))
            main.attributes["sym_visibility"] = hlo.string("public")
            with hlo.ir.InsertionPoint(main.add_entry_block()):
                numbers = hlo.stablehlo.DotDimensionNumbers.get([], [], [1], [0])
                c = hlo.stablehlo.dot_general(tc, *main.arguments, numbers)
                hlo.func.return_([c])
        attributes = lambda s: hlo.ir.DictAttr.get(
            {{"sdy.sharding": sdy_sharding(s, 2)}} if s is not None else {{}})
        given = [attributes(a), attributes(b)]
        main.attributes["arg_attrs"] = hlo.ir.ArrayAttr.get(given)
        main.attributes["res_attrs"] = hlo.ir.ArrayAttr.get([attributes(out)])
        hlo_parts.verify(module)
        settings = several_devices.PartitionedSettings(
            num_partitions=8,
            propagate_to_outputs=(out is None,))
        if directory is None:
            return compiler.compile_module(module, a._device_assignment, settings)
        return disk_cache.load_or_compile(
            module, a._device_assignment, settings, disk_cache.Policy(directory))

rng = np.random.RandomState(0)
A = rng.randint(-4, 5, (16, 8)).astype(np.float32)
B = rng.randint(-4, 5, (8, 4)).astype(np.float32)
straight = np.array(devices).reshape(4, 2)
for order in (straight, straight[::-1], straight.T.reshape(4, 2)):
    mesh = Mesh(order, ("x", "y"))
    sh = lambda *spec: NamedSharding(mesh, P(*spec))
    for a, b, out in [
        (sh("x", None), sh(None, "y"), sh("x", "y")),
        (sh("x", "y"), sh("y", None), sh("x")),
        (sh(), sh(), sh(("y", "x"))),
        (sh("x", "y"), sh(("y",), None), sh()),
    ]:
        executable = matmul(a, b, out)
        launch = executable.launcher([Aval((16, 4))], [out])
        for _ in range(3):
            (c,) = launch([scatter(A, a), scatter(B, b)])
            assert (buffer_copies.to_numpy(c) == A @ B).all()
        assert c._sharding is out
        (found,) = executables.output_shardings(executable)
        assert found == out._to_xla_hlo_sharding(2)

# The compiler chooses the result's sharding, and it can be named again.
a, b = sh("x", None), sh(None, "y")
chosen = executables.output_shardings(matmul(a, b, None))[0]
out = NamedSharding(mesh, spec_of_hlo_sharding(chosen, mesh))
assert out.spec is P("x", "y"), out
(c,) = matmul(a, b, None).launcher([Aval((16, 4))], [out])(
    [scatter(A, a), scatter(B, b)])
assert (buffer_copies.to_numpy(c) == A @ B).all()
gspmd = GSPMDSharding(a._device_assignment, chosen)
(c,) = matmul(a, b, None).launcher([Aval((16, 4))], [gspmd])(
    [scatter(A, a), scatter(B, b)])
assert (buffer_copies.to_numpy(c) == A @ B).all()

# From disk, too.
for expected in (False, True):
    executable = matmul(a, b, out, {str(tmp_path)!r})
    assert executable.from_disk is expected
    (c,) = executable.launcher([Aval((16, 4))], [out])([scatter(A, a), scatter(B, b)])
    assert (buffer_copies.to_numpy(c) == A @ B).all()
print("fine", "jax" in sys.modules)
"""
    )
    assert run(program, devices=8).split() == ["fine", "False"]


def test_many_launches_in_flight() -> None:
    program = (
        SEVERAL
        + '''
text = """module { func.func public @main(%x: tensor<8xf32> {sdy.sharding =
    #sdy.sharding<mesh<["x"=8]>, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding =
    #sdy.sharding<mesh<["x"=8]>, [{}]>}) {
  %y = stablehlo.add %x, %x : tensor<8xf32>
  return %y : tensor<8xf32> } }"""
mesh = Mesh(np.array(devices), ("x",))
cut, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
executable = compiler.compile_module(
    text, devices, several_devices.PartitionedSettings(num_partitions=8))
assert several_devices.is_bounded(executable)
launch = several_devices.bounded_launcher(executable, [Aval((8,))], [whole])
x = scatter(np.arange(8, dtype=np.float32), cut)
results = [launch([x])[0] for _ in range(200)]
assert all((buffer_copies.to_numpy(r) == 2 * np.arange(8)).all() for r in results)
assert len(several_devices._under_way) == several_devices.LAUNCHES_UNDER_WAY
print("fine")
'''
    )
    assert run(program, devices=8).split() == ["fine"]


def test_program_on_the_third_device() -> None:
    program = (
        SEVERAL
        + f"""
third = devices[3]
sharding = platforms.single_device_sharding(third)
executable = compiler.compile_module('''{SINE}''', [third])
x = platforms.put(np.ones(3, np.float32), Aval((3,)), third, True)
(y,) = executable.launcher([Aval((3,))], [sharding])([x])
assert np.allclose(buffer_copies.to_numpy(y), np.sin(1))
assert buffer_copies.shards(y)[0][0] == third
print("fine")
"""
    )
    assert run(program, devices=8).split() == ["fine"]
