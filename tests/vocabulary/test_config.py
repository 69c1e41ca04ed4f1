"""The thread's state, the flags and the trace key."""

import json
import os
import subprocess
import sys
import threading

import pytest

from minijax.core.state import State, positions, state
from minijax.support.config import config
from minijax.support.settings import override

pytestmark = pytest.mark.whole

# The module; `minijax.config` itself is the object that holds the flags.
flags = sys.modules["minijax.support.config"]


@pytest.fixture(autouse=True)
def _defaults_come_back():
    before = config.values
    yield
    for name, value in before.items():
        if config.read(name) != value:
            config.update(name, value)


def in_thread(function):
    """The result of a function run in a new thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(20)
    return results[0]


def test_names_with_and_without_prefix():
    config.update("jax_enable_x64", True)
    assert config.jax_enable_x64 is True
    assert config.enable_x64 is True
    assert state.enable_x64 is True
    assert config.x64_enabled is True
    config.update("enable_x64", False)
    assert config.values["jax_enable_x64"] is False


# In minijax programs are kept on disk without being asked, in a bounded folder; kernels
# for GPUs are compiled by Triton, since minijax does not compile by Mosaic GPU.
CHOSEN = (
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_pallas_use_mosaic_gpu",
)


def test_every_flag_has_the_name_and_default_of_jax():
    code = (
        "import jax, json\n"
        "holders = jax.config._value_holders\n"
        "print(json.dumps({n: str(h.value) for n, h in holders.items()}))"
    )
    environment = {k: v for k, v in os.environ.items() if "JAX_" not in k}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    for name in config.values:
        flag = flags._flags[name.removeprefix("jax_")]
        # A flag or two of JAX's go without the prefix.
        name = name if name in theirs else flag.name
        assert name in theirs, name
        if "JAX_" + flag.name.upper() in os.environ:
            continue
        # Enumerations in JAX, plain strings here.
        enumerated = {
            "jax_explicit_x64_dtypes": "warn",
            "jax_legacy_prng_key": "allow",
        }
        if name in CHOSEN:
            assert str(flag.default) != theirs[name]
            continue
        expected = enumerated.get(name, theirs[name])
        assert str(flag.default).lower() == expected.lower(), name


@pytest.mark.parametrize("name", ["nonsense", "jax_nonsense", ""])
def test_unknown_names(name):
    with pytest.raises(AttributeError, match="Unrecognized config option"):
        config.update(name, 1)
    with pytest.raises(AttributeError, match="Unrecognized config option"):
        config.read(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numpy_dtype_promotion", "sloppy"),
        ("numpy_rank_promotion", None),
        ("default_matmul_precision", "exact"),
        ("default_device", 3),
        ("compilation_cache_dir", 3),
        ("random_seed_offset", "two"),
        ("enable_x64", "maybe"),
    ],
)
def test_bad_values(name, value):
    before = config.read(name)
    with pytest.raises(ValueError, match=name):
        config.update(name, value)
    assert config.read(name) == before


def test_flags_are_not_assigned_and_are_not_truth_values():
    with pytest.raises(AttributeError, match="config.update"):
        config.jax_enable_x64 = True
    with pytest.raises(TypeError, match="enable_x64"):
        bool(flags.enable_x64)
    with pytest.raises(TypeError, match="argument"):
        flags.numpy_rank_promotion()


def test_context_managers_nest_and_end_by_exceptions():
    own, key = "trace_key" in state.__dict__, state.trace_key
    with flags.enable_x64(True):
        inner = state.trace_key
        assert state.enable_x64
        assert inner is not key
        assert inner.differing(key) == ("enable_x64",)
        with pytest.raises(ZeroDivisionError), flags.enable_x64(False):
            assert not state.enable_x64
            assert state.trace_key is key
            raise ZeroDivisionError
        assert state.enable_x64
        assert state.trace_key is inner
    assert not state.enable_x64
    assert state.trace_key is key
    assert "enable_x64" not in state.__dict__
    assert ("trace_key" in state.__dict__) == own


def test_equal_combinations_share_a_key_in_any_order():
    with flags.enable_x64(True), flags.numpy_rank_promotion("raise"):
        first = state.trace_key
    with flags.numpy_rank_promotion("raise"), flags.enable_x64(True):
        assert state.trace_key is first
    with flags.debug_nans(True):
        assert state.trace_key.values == State.trace_key.values


def test_one_manager_enters_twice_and_decorates():
    manager = flags.enable_x64()
    key = state.trace_key
    with manager:
        with manager:
            assert state.enable_x64
        assert state.enable_x64
    assert state.trace_key is key

    @flags.disable_jit()
    def inside():
        return state.disable_jit

    assert inside()
    assert not state.disable_jit


def test_out_of_order_exits_leave_nothing():
    key = state.trace_key
    first, second = flags.enable_x64(True), flags.numpy_rank_promotion("warn")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not state.enable_x64
    assert state.trace_key.differing(key) == ("numpy_rank_promotion",)
    second.__exit__(None, None, None)
    assert state.trace_key is key


def test_overrides_are_of_one_thread():
    with flags.enable_x64(True):
        assert in_thread(lambda: state.enable_x64) is False
        assert in_thread(lambda: state.trace_key) is State.trace_key
    config.update("enable_x64", True)
    assert in_thread(lambda: state.enable_x64) is True


def test_update_renews_the_keys_of_threads_inside_a_context():
    entered, updated = threading.Event(), threading.Event()
    seen = []

    def worker():
        with flags.enable_x64(True):
            seen.append(state.trace_key)
            entered.set()
            assert updated.wait(20)
            seen.append(state.trace_key)
            seen.append(state.numpy_rank_promotion)
        seen.append(state.trace_key)

    thread = threading.Thread(target=worker)
    thread.start()
    assert entered.wait(20)
    config.update("numpy_rank_promotion", "raise")
    updated.set()
    thread.join(20)
    before, during, promotion, after = seen
    assert during.differing(before) == ("numpy_rank_promotion",)
    assert promotion == "raise"
    assert after is State.trace_key


def test_many_threads_agree():
    failures = []
    barrier = threading.Barrier(8)

    def worker(number):
        barrier.wait(20)
        for _ in range(300):
            with flags.enable_x64(bool(number % 2)), flags.debug_nans(True):
                right = state.enable_x64 == bool(number % 2)
                position = positions["enable_x64"]
                if not right or state.trace_key.values[position] != bool(number % 2):
                    failures.append(number)

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert state.trace_key is State.trace_key


def test_unhashable_override_changes_nothing():
    key = state.trace_key
    with pytest.raises(TypeError, match="mesh"), override("mesh", {}):
        raise AssertionError("an unhashable mesh was entered")
    assert state.trace_key is key
    assert "mesh" not in state.__dict__


def test_listeners_may_refuse():
    def refuse(value):
        raise RuntimeError("too late")

    config.on_update("log_compiles", refuse)
    try:
        with pytest.raises(RuntimeError, match="too late"):
            config.update("log_compiles", True)
        assert not state.log_compiles
    finally:
        flags.log_compiles.listeners.remove(refuse)


@pytest.mark.parametrize("prefix", ["JAX_", "MINIJAX_"])
def test_environment_variables(prefix):
    code = (
        "from minijax.core.state import state\n"
        "print(state.enable_x64, state.numpy_rank_promotion, state.random_seed_offset)"
    )
    environment = os.environ | {
        prefix + "ENABLE_X64": "On",
        prefix + "NUMPY_RANK_PROMOTION": "warn",
        prefix + "RANDOM_SEED_OFFSET": "7",
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == ["True", "warn", "7"]
    environment[prefix + "ENABLE_X64"] = "perhaps"
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "ValueError" in done.stderr
    assert "enable_x64" in done.stderr


def test_platform_flags_reach_the_backend():
    code = (
        "from minijax.support.config import config\n"
        "from minijax.backend import processes\n"
        "config.update('jax_num_cpu_devices', 3)\n"
        "config.update('jax_platforms', 'cpu')\n"
        "print(processes.device_count())\n"
        "try:\n"
        "    config.update('jax_num_cpu_devices', 4)\n"
        "except RuntimeError as error:\n"
        "    print('before' in str(error))\n"
    )
    command = [sys.executable, "-c", code]
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == ["3", "True"]
