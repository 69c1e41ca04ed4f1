"""Copies between host and device that a guard refuses: the same as in JAX."""

import contextlib
import threading

import jax
import numpy as np
import pytest

import minijax

LIBRARIES = (minijax, jax)
LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


def uses(lib):
    function = lib.jit(lambda x: x + 1)
    x = lib.numpy.ones(3)
    function(x)
    return {
        "jit of a NumPy array": lambda: function(np.ones(3, np.float32)),
        "jit of a number": lambda: function(1.0),
        "Arrays": lambda: x + x,
        "an Array and a NumPy array": lambda: x + np.ones(3, np.float32),
        "an Array and a number": lambda: x + 1,
        "array": lambda: lib.numpy.array([1.0, 2.0]),
        "asarray": lambda: lib.numpy.asarray(np.ones(3)),
        "device_put": lambda: lib.device_put(np.ones(3)),
        "np.asarray": lambda: np.asarray(function(x)),
        "device_get": lambda: lib.device_get(function(x)),
        "ones": lambda: lib.numpy.ones(3),
        "arange": lambda: lib.numpy.arange(3),
        "print": lambda: repr(function(x)),
    }


def outcomes(lib, guard, level):
    found = {}
    for name, use in uses(lib).items():
        with getattr(lib, guard)(level):
            try:
                use()
                found[name] = "done"
            except Exception as error:
                found[name] = type(error).__name__
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "guard",
    [
        "transfer_guard",
        "transfer_guard_host_to_device",
        "transfer_guard_device_to_host",
    ],
)
def test_guards_refuse_what_jax_refuses(guard, level):
    ours, theirs = (outcomes(lib, guard, level) for lib in LIBRARIES)
    assert ours == theirs


def test_a_level_that_does_not_exist():
    for lib in LIBRARIES:
        with pytest.raises(ValueError, match="nope"), lib.transfer_guard("nope"):
            pass
        with pytest.raises(ValueError, match="nope"):
            lib.config.update("jax_transfer_guard", "nope")


def test_the_process_and_its_threads():
    def put():
        with contextlib.suppress(minijax.errors.JaxRuntimeError):
            done.append(minijax.numpy.asarray(np.ones(3)))

    done = []
    with minijax.transfer_guard("disallow"):
        thread = threading.Thread(target=put)
        thread.start()
        thread.join()
        assert len(done) == 1, "the level is this thread's"
    minijax.config.update("jax_transfer_guard", "disallow")
    try:
        put()
        assert len(done) == 1
        with minijax.transfer_guard("allow"):
            put()
        assert len(done) == 2
    finally:
        minijax.config.update("jax_transfer_guard", None)
    put()
    assert len(done) == 3
