"""The start-up of jaxlib: what it loads, and that jax may come before or after."""

import json

from tests.backend.processes import run

USE_BOTH = """
import numpy as np

def use_minijax():
    from minijax.backend import buffer_copies
    from minijax.core import compiler, runtime as platforms
    class Aval:
        shape, dtype, weak_type = (2,), np.dtype("float32"), False
    device = platforms.devices()[0]
    sharding = platforms.single_device_sharding(device)
    program = '''module { func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = stablehlo.add %x, %x : tensor<2xf32>
      return %y : tensor<2xf32> } }'''
    aval = Aval()
    launch = compiler.compile_module(program, [device]).launcher([aval], [sharding])
    x = platforms.put(np.array([1, 2], np.float32), aval, device, True)
    assert buffer_copies.to_numpy(launch([x])[0]).tolist() == [2, 4]
    assert repr(sharding) == (
        "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
    )

def use_jax():
    import jax
    import jax.numpy as jnp
    assert jax.jit(lambda x: x + 1)(jnp.arange(3)).tolist() == [1, 2, 3]
    assert jnp.arange(2).dtype == jnp.int32
    with jax.enable_x64(True):
        assert jnp.arange(2).dtype == jnp.int64
    s = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert s.is_equivalent_to(jnp.arange(2).sharding, 1)
    mesh = jax.make_mesh((1,), ("x",))
    named = jax.NamedSharding(mesh, jax.P("x"))
    assert jax.device_put(np.arange(2), named).sharding == named
    assert jax.device_put(np.arange(2)).sharding == s
"""


def test_jax_before_minijax() -> None:
    run(USE_BOTH + "use_jax(); use_minijax(); use_jax(); use_minijax()")


def test_jax_after_minijax() -> None:
    run(USE_BOTH + "use_minijax(); use_jax(); use_minijax(); use_jax()")


def test_import_is_light() -> None:
    printed = run(
        """
        import json, sys
        from minijax.core import compiler, runtime as door, hlo, runtime as platforms
        assert not platforms._clients
        print(json.dumps(sorted(sys.modules)))
        """
    )
    modules = json.loads(printed)
    heavy = ("jax", "scipy", "jaxlib.mlir", "jaxlib.triton")
    assert not [m for m in modules for h in heavy if m == h or m.startswith(f"{h}.")]


def test_pretty_printer_comes_through_the_door() -> None:
    printed = run(
        """
        import sys
        from minijax.core import runtime as door
        assert door.pretty_printer is sys.modules["jaxlib._pretty_printer"]
        from minijax.core.runtime import pretty_printer
        print(str(pretty_printer.text("so")))
        """
    )
    assert "so" in printed


def test_environment_is_prepared_and_left_alone_where_set() -> None:
    program = """
    import os
    from minijax.core import runtime as platforms
    before = os.environ.get("PJRT_NPROC")
    platforms.devices()
    print(before, os.environ.get("PJRT_NPROC"), os.environ["TF_CPP_MIN_LOG_LEVEL"])
    """
    # XLA's number of threads, as in jax, however many the devices are.
    assert run(program).split() == ["None", "None", "1"]
    assert run(program, devices=2).split() == ["None", "None", "1"]
    assert run(program, JAX_NUM_CPU_DEVICES="2").split() == ["None", "None", "1"]
    assert run(program, devices=2, PJRT_NPROC="4").split() == ["4", "4", "1"]


def test_version_is_a_tuple_of_numbers() -> None:
    from minijax.core import runtime

    assert runtime.jaxlib_version >= (0, 10)
    assert all(isinstance(part, int) for part in runtime.jaxlib_version)
    assert runtime.jaxlib_version_text.startswith(
        ".".join(map(str, runtime.jaxlib_version[:3]))
    )
