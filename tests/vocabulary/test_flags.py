"""No flag is accepted and ignored: each is honoured, or refused in words."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core.state import state
from minijax.support.config import config
from minijax.support.settings import override
from tests.backend.processes import run

pytestmark = pytest.mark.whole

flags = sys.modules["minijax.support.config"]._flags

ROOT = Path(minijax.__file__).parent
CODE = "\n".join(
    path.read_text()
    for path in ROOT.rglob("*.py")
    if path.name not in ("config.py", "thread_state.py")
)
# Flags that act through a listener: what is made with them is made once in a process.
LISTENED = (
    "platforms",
    "platform_name",
    "num_cpu_devices",
    "cpu_enable_async_dispatch",
)


def refused_values(flag):
    if flag.refused_values:
        return flag.refused_values
    if flag.choices:
        return [choice for choice in flag.choices if choice != flag.initial]
    return [not flag.initial if isinstance(flag.initial, bool) else 3]


@pytest.mark.parametrize("name", flags)
def test_every_flag_is_honoured_or_refused(name):
    flag = flags[name]
    if flag.refused and not flag.refused_values:
        return
    if name in LISTENED:
        assert flag.listeners
        assert flag.process_wide
        with pytest.raises(TypeError, match=f"{name} holds for the whole process"):
            flag(flag.initial)
        return
    if name.startswith("transfer_guard"):
        # jaxlib acts on them: tests/programs/test_transfer_guards.py.
        assert flag.listeners
        return
    assert re.search(rf"\b(state|flags)\.{name}\b", CODE), f"no code reads {name}"


@pytest.mark.parametrize("name", [name for name, flag in flags.items() if flag.refused])
def test_refused_values_say_so(name):
    flag = flags[name]
    before = config.read(name)
    for value in refused_values(flag):
        with pytest.raises(NotImplementedError, match=f"jax_{name} cannot be"):
            config.update(f"jax_{name}", value)
        with pytest.raises(NotImplementedError, match=flag.refused[:20]):
            flag(value)
    assert config.read(name) == before
    config.update(name, flag.initial)


@pytest.mark.parametrize("prefix", ["JAX_", "MINIJAX_"])
def test_environment_variables_of_refused_flags(prefix):
    variable = f"{prefix}USE_SHARDY_PARTITIONER"
    done = subprocess.run(
        [sys.executable, "-c", "import minijax"],
        env=os.environ | {variable: "0"},
        capture_output=True,
        text=True,
    )
    assert "jax_use_shardy_partitioner cannot be False" in done.stderr
    assert variable in done.stderr


def test_environment_variables_of_the_platform():
    code = (
        "import minijax\n"
        "from minijax.backend import clients\n"
        "s = clients.settings\n"
        "print(s.platforms, s.num_cpu_devices, s.client_options['cpu'])\n"
        "print(minijax.device_count())"
    )
    for prefix in ("JAX_", "MINIJAX_"):
        settings = {
            prefix + "PLATFORMS": "CPU",
            prefix + "NUM_CPU_DEVICES": "2",
            prefix + "CPU_ENABLE_ASYNC_DISPATCH": "false",
        }
        plain = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=plain | settings,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split("\n")[0] == "cpu 2 {'asynchronous': False}"
        assert done.stdout.split("\n")[1] == "2"


# ---- flags that were ignored once ---------------------------------------------------


def kept(directory, **settings):
    """How many programs are on disk after one was compiled under these flags."""
    directory.mkdir(exist_ok=True)
    settings = {"persistent_cache_min_compile_time_secs": 0.0, **settings}
    with override("compilation_cache_dir", str(directory)):
        for name, value in settings.items():
            manager = override(name, value)
            manager.__enter__()
        try:
            number = float(np.random.default_rng().integers(1 << 40))
            minijax.jit(lambda x: x * number)(jnp.ones(3)).block_until_ready()
        finally:
            for name in settings:
                state.__dict__.pop(name, None)
    return len(list(directory.iterdir()))


def test_compilation_cache_flags(tmp_path):
    assert kept(tmp_path / "a") > 0
    assert kept(tmp_path / "b", enable_compilation_cache=False) == 0
    slow = {"persistent_cache_min_compile_time_secs": 1000.0}
    assert kept(tmp_path / "c", **slow) == 0
    assert kept(tmp_path / "d", persistent_cache_min_entry_size_bytes=10**9) == 0


def test_raise_persistent_cache_errors(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("in the way")

    def run(number):
        minijax.jit(lambda x: x - number)(jnp.ones(3)).block_until_ready()

    with (
        override("compilation_cache_dir", str(occupied / "below")),
        override("persistent_cache_min_compile_time_secs", 0.0),
    ):
        with pytest.warns(RuntimeWarning, match="could not be"):
            run(31.0)
        with override("raise_persistent_cache_errors", True):
            with pytest.raises(RuntimeError, match="could not be"):
                run(32.0)


def test_captured_constants_warn_bytes():
    big = jnp.arange(5000.0)

    def run(number):
        return minijax.jit(lambda x: x * big + number)(1.0)

    with override("captured_constants_warn_bytes", 1000):
        with pytest.warns(UserWarning, match="closes over arrays of 20,000 bytes"):
            run(1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with override("captured_constants_warn_bytes", -1):
            run(2.5)
        run(3.5)


def test_enable_checks(monkeypatch):
    from minijax.programs import launching

    seen = []
    monkeypatch.setattr(launching, "check_jaxpr", seen.append)
    minijax.jit(lambda x: x + 101.0)(1.0)
    assert not seen
    with override("enable_checks", True):
        minijax.jit(lambda x: x + 102.0)(1.0)
    assert seen


def test_platform_name_of_what_is_there():
    program = """
        import minijax
        minijax.config.update("jax_platform_name", {!r})
        print(minijax.config.jax_platform_name, minijax.default_backend())
        minijax.config.update("jax_platform_name", "cpu")  # the same: nothing to do
    """
    assert run(program.format("CPU")).split() == ["CPU", "cpu"]
    assert run("import minijax; print(minijax.default_backend())").split() == ["cpu"]
    text = "import minijax; print(minijax.default_backend())"
    assert run(text, JAX_PLATFORM_NAME="cpu").split() == ["cpu"]
    with pytest.raises(
        AssertionError, match="'nothing' requested by jax_platform_name"
    ):
        run(text, JAX_PLATFORM_NAME="nothing")


def test_platform_name_among_several(monkeypatch):
    """Whatever platform is best, the named one comes first, and the others stay."""
    from minijax.backend import clients

    monkeypatch.setattr(clients, "factories", {"cpu": object, "cuda": object})
    monkeypatch.setattr(clients, "is_there", {})
    for name, order in (
        (None, ["cuda", "cpu"]),
        ("cpu", ["cpu", "cuda"]),
        ("gpu", ["cuda", "cpu"]),
    ):
        monkeypatch.setattr(clients.settings, "platform_name", name)
        assert list(clients.make(clients.Clients())) == order


def test_pallas_flag_as_programs_set_it():
    before = config.read("jax_pallas_use_mosaic_gpu")
    config.update("jax_pallas_use_mosaic_gpu", False)
    assert config.jax_pallas_use_mosaic_gpu is False is before
    with pytest.raises(NotImplementedError, match="Triton"):
        config.update("jax_pallas_use_mosaic_gpu", True)
