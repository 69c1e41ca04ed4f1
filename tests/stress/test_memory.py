"""Memory stays constant over many calls."""

import gc
import weakref

import numpy as np
import pytest

minijax = pytest.importorskip("minijax")

CALLS = 100_000
pytestmark = pytest.mark.usefixtures("small_heap")


def resident_bytes() -> int:
    """The resident memory of this process."""
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
    except OSError:
        pytest.skip("this system has no /proc/self/statm to read memory from")
    import resource

    return pages * resource.getpagesize()


def growth(step, calls: int, warm_up: int) -> int:
    """How many bytes `calls` calls of `step` add after `warm_up` of them."""
    for _ in range(warm_up):
        step()
    gc.collect()
    before = resident_bytes()
    for _ in range(calls):
        step()
    gc.collect()
    return resident_bytes() - before


def test_compiled_call_keeps_nothing():
    double = minijax.jit(lambda x: x * 2)
    x = minijax.numpy.arange(1000.0)
    # A leaked result would be 400 MB, a leaked Python object of 80 bytes 8 MB.
    assert growth(lambda: double(x), CALLS, 10_000) < 6_000_000


def test_eager_operation_keeps_nothing():
    x = minijax.numpy.arange(1000.0)
    assert growth(lambda: x + 1.0, 20_000, 2000) < 4_000_000


def test_tracing_keeps_nothing():
    x = np.arange(3.0, dtype=np.float32)

    def step():
        # A new function each time: caches that hold functions strongly would grow.
        minijax.make_jaxpr(lambda x: minijax.numpy.sin(x) * x)(x)

    assert growth(step, 3000, 500) < 6_000_000


def test_gradient_keeps_nothing():
    def loss(x):
        return (minijax.numpy.sin(x) * x).sum()

    gradient = minijax.jit(minijax.grad(loss))
    x = minijax.numpy.arange(1000.0)
    assert growth(lambda: gradient(x), 20_000, 2000) < 4_000_000


def test_jitted_function_is_freed():
    class Big:
        def __init__(self):
            self.array = minijax.numpy.ones(1000)

    big = Big()

    def function(x, big=big):
        return x + big.array.sum()

    kept = weakref.ref(big)
    minijax.jit(function)(1.0)
    del function, big
    gc.collect()
    assert kept() is None


def test_checkpoint_keeps_nothing():
    x = np.arange(3.0, dtype=np.float32)

    def step():
        f = minijax.checkpoint(lambda x: minijax.numpy.sin(minijax.numpy.sin(x)))
        minijax.make_jaxpr(minijax.grad(lambda x: f(x).sum()))(x)

    assert growth(step, 600, 200) < 6_000_000


def test_programs_with_refs_keep_nothing():
    def program():
        def f(x):
            ref = minijax.new_ref(x)
            ref[0] = x[1]
            return minijax.freeze(ref)

        closed = minijax.make_jaxpr(minijax.jit(f))(np.zeros(3, np.float32))
        discharged = discharge_state(closed)
        return weakref.ref(closed), weakref.ref(discharged), weakref.ref(f)

    from minijax.transforms.discharge import discharge_state

    gone = program()
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]


def test_a_write_to_a_ref_keeps_nothing():
    ref = minijax.new_ref(minijax.numpy.zeros(1000))
    add = minijax.jit(lambda ref, x: ref.addupdate(x))
    x = minijax.numpy.ones(1000)
    assert growth(lambda: add(ref, x), 20_000, 2000) < 4_000_000


def test_callbacks_keep_nothing():
    """Neither calls that succeed nor calls that fail, in programs and outside."""
    kind = minijax.ShapeDtypeStruct((1000,), "float32")
    x = minijax.numpy.arange(1000.0)

    def fails(v):
        raise ValueError("no")

    pure = minijax.jit(lambda x: minijax.pure_callback(np.asarray, kind, x))
    ordered = minijax.jit(
        lambda x: minijax.experimental.io_callback(np.asarray, kind, x, ordered=True)
    )
    failing = minijax.jit(lambda x: minijax.pure_callback(fails, kind, x))

    def step():
        pure(x)
        ordered(x)
        minijax.pure_callback(lambda v: np.asarray(v), kind, x)
        with pytest.raises(minijax.errors.JaxRuntimeError):
            failing(x).block_until_ready()

    # One leaked argument a step would be 12 MB.
    assert growth(step, 3000, 500) < 4_000_000
