"""Transformations called from many threads at once, tracing included."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

minijax = pytest.importorskip("minijax")

THREADS = 8


def in_threads(work, count=THREADS):
    """The results of `work(k)` for each thread `k`, all started at one moment."""
    barrier = threading.Barrier(count)

    def run(k):
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_one_function_is_traced_once_for_each_type():
    traced = []

    @minijax.jit
    def double(x):
        traced.append(x.shape)
        return x * 2

    results = in_threads(lambda k: np.asarray(double(np.full(3, k, np.float32))))
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(3, 2 * k))
    assert traced == [(3,)]


def test_threads_trace_different_shapes_of_one_function():
    @minijax.jit
    def total(x):
        return (x * x).sum()

    def work(k):
        return [float(total(np.ones(n, np.float32))) for n in range(1, k + 2)]

    for k, result in enumerate(in_threads(work)):
        assert result == [float(n) for n in range(1, k + 2)]


def test_threads_trace_their_own_functions():
    jnp = minijax.numpy

    def work(k):
        def loss(x):
            return (jnp.sin(x) * k).sum()

        gradient = minijax.vmap(minijax.jit(minijax.grad(loss)))
        return np.asarray(gradient(np.ones((2, 3), np.float32)))

    for k, result in enumerate(in_threads(work)):
        np.testing.assert_allclose(result, np.full((2, 3), k * np.cos(1)), rtol=1e-5)


def test_a_thread_started_while_tracing_is_not_traced():
    seen = []

    def elsewhere():
        seen.append(minijax.numpy.add(1, 2))

    @minijax.jit
    def function(x):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return x + 1

    assert float(function(1.0)) == 2.0
    assert isinstance(seen[0], minijax.Array) and int(seen[0]) == 3


def test_flags_of_one_thread_stay_in_it():
    started, finish = threading.Event(), threading.Event()

    def wide(_):
        with minijax.enable_x64(True):
            started.set()
            finish.wait(30)
            return str(minijax.numpy.arange(3.0).dtype)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(wide, None)
        assert started.wait(30)
        mine = str(minijax.numpy.arange(3.0).dtype)
        finish.set()
        assert (mine, other.result()) == ("float32", "float64")
