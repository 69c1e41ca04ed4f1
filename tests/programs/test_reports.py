"""log_compiles, explain_cache_misses, no_tracing, no_execution, live_arrays."""

import logging
import re

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core import events
from minijax.support.config import enable_compilation_cache
from tests.programs.sides import LIBRARIES

VECTOR = np.arange(3, dtype=np.float32)


def logged(caplog, library, flag, run):
    caplog.clear()
    with caplog.at_level(logging.WARNING), getattr(library, flag)(True):
        run()
    return [record.getMessage() for record in caplog.records]


def plain(lines):
    """Without times, types in JAX's spelling, and the mapping of arguments."""
    lines = [re.sub(r"\d+\.\d+ sec", "S sec", line) for line in lines]
    return [re.sub(r"\. Argument mapping: .*", ".", line) for line in lines]


def test_log_compiles_as_jax(caplog):
    found = []
    for library in LIBRARIES:

        def doubled(x):
            return x * 2

        f = library.jit(doubled)
        x = library.numpy.asarray(VECTOR)
        # Another test may have left this program on the disk.
        with enable_compilation_cache(False):
            lines = logged(caplog, library, "log_compiles", lambda: f(x))
        found.append(plain(lines))
        assert logged(caplog, library, "log_compiles", lambda: f(x)) == []
    assert found[0] == found[1]
    assert found[0] == [
        "Finished tracing doubled for jit in S sec",
        "Compiling jit(doubled) with global shapes and types "
        "(ShapedArray(float32[3]),).",
        "Finished jaxpr to MLIR module conversion jit(doubled) in S sec",
        "Finished XLA compilation of jit(doubled) in S sec",
    ]


def test_nobody_listens_afterwards(caplog):
    before = list(events.subscribers)
    with minijax.log_compiles(), minijax.explain_cache_misses():
        assert len(events.subscribers) == len(before) + 2
        with minijax.log_compiles(False):
            assert logged(caplog, minijax, "log_compiles", lambda: None) == []
    assert events.subscribers == before
    minijax.config.update("jax_log_compiles", True)
    assert len(events.subscribers) == len(before) + 1
    with caplog.at_level(logging.WARNING):
        minijax.jit(lambda x: x + 1)(jnp.asarray(VECTOR))
    assert len([r for r in caplog.records if "Finished tracing" in r.message]) == 1
    minijax.config.update("jax_log_compiles", False)
    assert events.subscribers == before


def test_switched_off_inside(caplog):
    minijax.config.update("jax_log_compiles", True)
    try:
        with minijax.log_compiles(False), caplog.at_level(logging.WARNING):
            minijax.jit(lambda x: x + 1)(jnp.asarray(VECTOR))
        assert caplog.records == []
    finally:
        minijax.config.update("jax_log_compiles", False)


def misses(library, caplog, f, *calls):
    """What is said about each call, without addresses and lines of this file."""

    def run():
        for args, kwargs in calls:
            f(*args, **kwargs)

    lines = logged(caplog, library, "explain_cache_misses", run)
    return [message for message in lines if "CACHE MISS" in message]


def test_explained_as_in_jax(caplog):
    said = []
    for library in LIBRARIES:
        x = library.numpy.asarray(VECTOR)
        one = library.numpy.ones(1)

        @library.jit
        def g(x, y):
            return x + y

        calls = [((x, x), {}), ((x, one), {}), ((x,), {"y": one})]
        said.append(misses(library, caplog, g, *calls))
    for ours, theirs in zip(*said, strict=True):
        phrases = ["TRACING CACHE MISS at", "never seen function", "at y, now f32[1]"]
        phrases += ["different input types", "different input pytree", "length 2"]
        phrases += ["For the closest previous key"]
        for phrase in phrases:
            assert (phrase in ours) == (phrase in theirs)


def test_explained_statics_settings_and_places(caplog):
    f = minijax.jit(lambda x, n: x * n, static_argnums=1)
    x = jnp.asarray(VECTOR)
    first, second = misses(minijax, caplog, f, ((x, 2), {}), ((x, 3), {}))
    assert "never seen function" in first
    assert "* at n, now 3 and before 2" in second
    assert "(misses.<locals>.run)" in second

    def again():
        with minijax.default_matmul_precision("highest"):
            f(x, 3)

    (third,) = logged(caplog, minijax, "explain_cache_misses", again)
    assert "default_matmul_precision" in third
    (weak,) = misses(minijax, caplog, f, ((2.0, 3), {}))
    assert "weak_type=True" in weak and "before f32[3]" in weak


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_tracing(library):
    f = library.jit(lambda x: x * 2)
    x, y = library.numpy.ones(3), library.numpy.ones(4)
    f(x)
    with library.no_tracing(True):
        f(x)
        with pytest.raises(RuntimeError, match="re-tracing function .* for `jit`"):
            f(y)
    f(y)


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_execution(library):
    f = library.jit(lambda x: x * 2)
    x = library.numpy.ones(3)
    f(x)
    with library.no_execution(True):
        with pytest.raises(RuntimeError, match="tried to execute function jit"):
            f(x)
        with pytest.raises(RuntimeError, match="tried to execute function jit"):
            x + x
        assert "mul" in str(library.make_jaxpr(f)(x))
        f.lower(x)
    np.testing.assert_array_equal(f(x), [2, 2, 2])


def test_live_arrays():
    count = len(minijax.live_arrays())
    x = jnp.full((3, 17), 2.5)
    y = jnp.full((3, 18), 2.5)
    alive = minijax.live_arrays("cpu")
    assert len(alive) >= count + 2
    shapes = [array.shape for array in alive]
    assert (3, 17) in shapes and (3, 18) in shapes
    assert all(type(array) is minijax.Array for array in alive)
    del alive
    y.delete()
    assert (3, 18) not in [array.shape for array in minijax.live_arrays()]
    assert x.shape == (3, 17)


def test_environment_info(capsys, monkeypatch):
    monkeypatch.setenv("JAX_SOMETHING", "7")
    text = minijax.print_environment_info(return_string=True)
    assert minijax.print_environment_info() is None
    assert capsys.readouterr().out == text + "\n"
    theirs = jax.print_environment_info(return_string=True).splitlines()
    labels = [line.partition(":")[0] for line in theirs if ":" in line]
    assert labels[0] == "jax" and text.startswith("minijax: ")
    for label in labels[1:7]:
        assert f"\n{label}:" in text
    assert "JAX_SOMETHING=7" in text
