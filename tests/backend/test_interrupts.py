"""Ctrl-C while the first programs are traced, compiled and launched."""

import pytest

from tests.backend.processes import run

# The interrupt comes `DELAY` seconds after the first program was begun. Python drops an
# interrupt that comes in a finalizer or a callback of the garbage collector, as in any
# program; then another one follows, as from a user who presses Ctrl-C again.
_INTERRUPTED = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
import numpy as np
import minijax, minijax.numpy as jnp
from minijax.core.language import eval_trace
from minijax.core.state import state

def programs():
    f = minijax.jit(minijax.grad(lambda x: minijax.lax.fori_loop(
        0, 3, lambda i, c: c + jnp.sin(c @ x), x).sum()))
    f(jnp.ones((4, 4))).block_until_ready()
    g = minijax.vmap(lambda x: minijax.lax.cond(x > 0, jnp.sin, jnp.cos, x))
    g(jnp.arange(3.0)).block_until_ready()

def interrupt():
    time.sleep(DELAY)
    while not interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)

thread = threading.Thread(target=interrupt)
interrupted = False
try:
    thread.start()
    while True:
        programs()
        minijax.clear_caches()
except KeyboardInterrupt:
    interrupted = True
thread.join()
programs()
assert state.trace is eval_trace
slope = minijax.jit(minijax.grad(lambda x: (x**2).sum()))(jnp.arange(9.0))
assert np.array_equal(slope, 2 * np.arange(9.0))
assert isinstance(jnp.ones(3) + 1, minijax.Array)
print("usable", interrupted)
"""


def _stays_usable(delay: float, folder: object) -> None:
    program = _INTERRUPTED.replace("DELAY", str(delay))
    printed = run(program, MINIJAX_COMPILATION_CACHE_DIR=str(folder))
    assert printed.split() == ["usable", "True"]


@pytest.mark.parametrize("delay", [0.03, 0.05, 0.07, 0.09, 0.12, 0.3])
def test_the_process_stays_usable(delay, tmp_path):
    """The imports of MLIR's dialects are under way from about 0.04 to 0.1 seconds."""
    _stays_usable(delay, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_at_forty_moments(number, tmp_path):
    _stays_usable(0.01 + number * 0.011, tmp_path)


def test_an_interrupt_waits_for_the_end():
    program = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from minijax.core.runtime import uninterrupted

done = []
@uninterrupted
def whole():
    os.kill(os.getpid(), signal.SIGINT)
    for step in range(1000):
        done.append(step)

try:
    whole()
except KeyboardInterrupt:
    print(len(done), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert run(program).split() == ["1000", "True"]
