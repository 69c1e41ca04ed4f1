"""device_put in programs: JAX's texts, the way back, memories of the host."""

import numpy as np
import pytest

import minijax
from tests.programs.sides import LIBRARIES, same_error, same_text, same_values

X = np.array([0.5, -1.0, 2.0], np.float32)


def space(lib):
    return lib.memory.Space


PROGRAMS = {
    "default": lambda lib: lambda x: lib.device_put(x) + 1,
    "number": lambda lib: lambda x: lib.device_put(2.0) + x,
    "device": lambda lib: lambda x: lib.device_put(x, lib.devices()[0]),
    "tree": lambda lib: lambda x: lib.device_put({"a": x, "b": 2}, lib.devices()[0]),
    "prefix": lambda lib: lambda x: lib.device_put((x, x), (lib.devices()[0], None)),
    "donated": lambda lib: lambda x: lib.device_put(x, donate=True),
    "a copy": lambda lib: lambda x: lib.device_put(x, may_alias=False),
    "source": lambda lib: (
        lambda x: lib.device_put(x, lib.devices()[0], src=lib.devices()[0])
    ),
    "host": lambda lib: lambda x: lib.device_put(x, space(lib).Host),
    "there and back": lambda lib: (
        lambda x: lib.device_put(lib.device_put(x, space(lib).Host), space(lib).Device)
    ),
    "grad": lambda lib: lib.grad(lambda x: (lib.device_put(x) * x).sum()),
    "grad of one of two": lambda lib: lib.grad(
        lambda x: lib.device_put((x, x * 2), lib.devices()[0])[0].sum()
    ),
    "jvp": lambda lib: (
        lambda x: lib.jvp(lambda x: lib.device_put(lib.numpy.sin(x)), (x,), (x,))
    ),
    "vmap": lambda lib: lib.vmap(lambda x: lib.device_put(x) * x),
    "eye": lambda lib: lambda x: lib.numpy.eye(3, device=lib.devices()[0]) + x,
    "zeros": lambda lib: lambda x: lib.numpy.zeros(3, device=lib.devices()[0]) + x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    same_text(PROGRAMS[name], X)
    same_values(PROGRAMS[name], X)
    same_values(lambda lib: lib.jit(PROGRAMS[name](lib)), X)


def test_method():
    same_text(lambda lib: lambda x: x.to_device(lib.devices()[0]), X)


def test_donated_input_has_no_way_back():
    same_error(
        lambda lib: lib.grad(lambda x: lib.device_put(x, donate=True).sum()),
        X,
        match="Leave donate out",
    )


HOST_ARRAYS = {
    "float64": np.ones(3),
    "foreign byte order": np.arange(3, dtype=">f4"),
    "longdouble": np.ones(3, np.longdouble),
    "strided": np.arange(6, dtype=np.float32)[::2],
    "no axes": np.array(2.0),
    "strings": np.array(["x"]),
    "objects": np.array([None]),
    "structured": np.zeros(3, [("a", np.float32)]),
}


@pytest.mark.parametrize("name", HOST_ARRAYS)
@pytest.mark.parametrize("place", [None, 0])
def test_an_array_of_numpy_beside_one_of_a_device(name, place):
    def called(lib):
        one = lib.numpy.ones(3)
        if place is not None:
            one = lib.device_put(one, lib.devices()[place])
        f = lib.jit(lambda a, b: a + b.sum())
        f(one, HOST_ARRAYS[name])
        return f(one, HOST_ARRAYS[name])

    answers = []
    for lib in LIBRARIES:
        try:
            y = called(lib)
            answers.append((y.tolist(), y.dtype, y.weak_type, y.committed, y.device))
        except TypeError:
            answers.append("TypeError")
    assert str(answers[0]) == str(answers[1])


@pytest.mark.parametrize("where", [3, "cpu", [None, None]])
def test_bad_places(where):
    same_error(lambda lib: lambda x: lib.device_put(x, where), X)
    same_error(lambda lib: lib.jit(lambda x: lib.device_put(x, where)), X)


def test_arrays_with_the_host():
    for make in (
        lambda lib: lambda x: lib.device_put(x, space(lib).Host),
        lambda lib: lib.jit(lambda x: lib.device_put(x, space(lib).Host)),
    ):
        for lib in LIBRARIES:
            y = make(lib)(X)
            assert y.sharding.memory_kind == "pinned_host"
            assert str(lib.typeof(y)) == "float32<host>[3]"
            assert y.committed
            np.testing.assert_array_equal(np.asarray(y), X)
            z = lib.device_put(y, space(lib).Device)
            assert z.sharding.memory_kind == "device"
            assert str(lib.typeof(z)) == "float32[3]"


def test_a_sharding_may_name_the_memory():
    def make(lib):
        place = lib.sharding.SingleDeviceSharding(
            lib.devices()[0], memory_kind="pinned_host"
        )
        return lambda x: lib.device_put(x, place)

    for lib in LIBRARIES:
        for f in (make(lib), lib.jit(make(lib))):
            assert f(X).sharding.memory_kind == "pinned_host"
            assert str(lib.typeof(f(X))) == "float32<host>[3]"
    same_text(make, X)


def test_programs_take_arrays_of_the_host():
    y = minijax.device_put(X, minijax.memory.Space.Host)
    back = minijax.memory.Space.Device
    doubled = minijax.jit(lambda y: minijax.device_put(y, back) * 2)(y)
    np.testing.assert_array_equal(np.asarray(doubled), 2 * X)
    np.testing.assert_array_equal(np.asarray(minijax.numpy.add(y, 1)), X + 1)


def test_gpu_moves_between_its_memories():
    lowered = minijax.jit(
        lambda x: minijax.device_put(x, minijax.memory.Space.Host)
    ).trace(X)
    text = lowered.lower(lowering_platforms=("cuda",)).as_text()
    assert "annotate_device_placement" in text
    assert '_xla_buffer_placement = "pinned_host"' in text
