"""convert_element_type, bitcasts, reduce_precision, and identities with a meaning."""

import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax.core import shaping
from minijax.primitives.shape import casting
from tests.oracle.oracle import assert_same, value_difference
from tests.primitives.checks import (
    assert_batches_as_a_loop,
    assert_means_what_xla_does,
    assert_prints_the_same,
    assert_same_derivatives,
    assert_same_error,
    assert_same_values,
    call,
    numbers,
)

X = numbers(2, 3)
BYTES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)

CALLS = [
    call("to half", lambda lax: lambda x: lax.convert_element_type(x, "float16"), X),
    call("to int", lambda lax: lambda x: lax.convert_element_type(x, "int32"), X * 8),
    call("to bool", lambda lax: lambda x: lax.convert_element_type(x, "bool"), X),
    call(
        "to complex", lambda lax: lambda x: lax.convert_element_type(x, "complex64"), X
    ),
    call("to itself", lambda lax: lambda x: lax.convert_element_type(x, "float32"), X),
    call(
        "of a constant",
        lambda lax: lambda x: lax.convert_element_type(2, "float32") * x,
        X,
    ),
    call(
        "int to half",
        lambda lax: lambda x: lax.convert_element_type(x, "float16"),
        numbers(3, dtype=np.int32),
    ),
    call("bitcast", lambda lax: lambda x: lax.bitcast_convert_type(x, "uint32"), X),
    call("bitcast down", lambda lax: lambda x: lax.bitcast_convert_type(x, "uint8"), X),
    call(
        "reduce_precision", lambda lax: lambda x: lax.reduce_precision(x, 5, 2), X * 9.7
    ),
    call(
        "reduce_precision to nothing",
        lambda lax: lambda x: lax.reduce_precision(x, 3, 1),
        np.array([1e-3, 20.0, -30.0, 0.3, np.inf], np.float32),
    ),
    call("stop_gradient", lambda lax: lambda x: lax.stop_gradient(x) * x, X),
    call("stop_gradient of all", lambda lax: lax.stop_gradient, X),
    call(
        "optimization_barrier",
        lambda lax: lambda x, y: lax.optimization_barrier({"a": x, "b": y}),
        X,
        X[0],
    ),
]
BITCAST_UP = call(
    "bitcast up", lambda lax: lambda x: lax.bitcast_convert_type(x, "int32"), BYTES
)
IDS = [entry.name for entry in CALLS]
each_call = pytest.mark.parametrize("entry", CALLS, ids=IDS)


@each_call
def test_meaning(entry):
    assert_means_what_xla_does(entry)


@each_call
def test_values_and_text(entry):
    assert_same_values(entry)
    assert_prints_the_same(entry.function, entry.args)


SMOOTH = [
    e for e in CALLS if e.name not in ("to int", "to bool", "bitcast", "bitcast down")
]


@pytest.mark.parametrize("entry", SMOOTH, ids=lambda entry: entry.name)
def test_derivatives(entry):
    assert_same_derivatives(entry)


def test_what_has_no_derivative():
    """Integers and bits have tangents of no bytes, and their gradients are zero."""
    for entry in CALLS:
        if entry in SMOOTH:
            continue
        function = entry.function(minijax)
        _, (tangent,) = minijax.jvp(function, entry.args, entry.args)
        assert tangent.dtype == minijax.float0
        gradient = minijax.grad(lambda x, f=function: (f(x)[0] * 0.5).sum())
        assert np.array_equal(gradient(entry.args[0]), np.zeros_like(entry.args[0]))


@each_call
def test_batching(entry):
    assert_batches_as_a_loop(entry)


def test_bitcast_to_wider():
    """JAX's batch rule loses the last axis where it is the mapped one."""
    assert_means_what_xla_does(BITCAST_UP)
    assert_same_values(BITCAST_UP)
    words = minijax.vmap(BITCAST_UP.function(minijax), in_axes=3)
    stacked = np.stack([BYTES, BYTES + 1], 3)
    expected = np.stack([BYTES.view(np.int32), (BYTES + 1).view(np.int32)])
    assert np.array_equal(words(stacked)[0], expected[..., 0])


KINDS = ["bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize("target", [*KINDS, "complex64"])
def test_every_pair_of_dtypes(target):
    values = np.array([0, 1, 3, 100], np.float32)

    def program(library):
        return [
            library.lax.convert_element_type(
                values.astype(library.numpy.dtype(source)), target
            )
            for source in KINDS
        ]

    assert_same(program, minijax, jax)


def test_small_dtypes():
    for name in ("int4", "float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(ml_dtypes, name)
        cast = minijax.lax.convert_element_type(np.array([1.0, 2.0, -3.0]), dtype)
        assert cast.dtype == dtype
        back = minijax.lax.convert_element_type(cast, np.float32)
        assert np.array_equal(back, [1.0, 2.0, -3.0])


PROGRAMS = [
    lambda j: j.lax.convert_element_type(2, "float32"),
    lambda j: j.lax.convert_element_type(2.7, "int32"),
    lambda j: j.lax.convert_element_type(2**100, "float32"),
    lambda j: j.lax.convert_element_type(True, "float32"),
    lambda j: j.lax.convert_element_type(1.5, float),
    lambda j: j.lax.convert_element_type(j.numpy.asarray(1.5), "float32"),
    lambda j: j.lax.convert_element_type(np.float64(1.5), "float64"),
    lambda j: j.lax.convert_element_type(np.arange(3), "int64"),
    lambda j: j.lax.convert_element_type(-1, "uint8"),
    lambda j: j.lax.convert_element_type(300, "int8"),
    lambda j: j.lax.convert_element_type(1e20, "int32"),
    lambda j: j.lax.convert_element_type(float("inf"), "int32"),
    lambda j: j.lax.convert_element_type(float("nan"), "float16"),
    lambda j: j.lax.reduce_precision(1.2345, 5, 3),
    lambda j: j.lax.reduce_precision(np.float16([1.2, 3e4]), 4, 3),
    lambda j: j.lax.bitcast_convert_type(1.5, "int32"),
    lambda j: j.lax.bitcast_convert_type(True, "bool"),
    lambda j: j.lax.stop_gradient({"a": j.numpy.ones(2), "b": (j.numpy.ones(1),)}),
    lambda j: j.lax.optimization_barrier((1.0, [j.numpy.ones(2)])),
    lambda j: j.numpy.copy(np.ones(2)),
    lambda j: j.lax.stage(1.5),
    lambda j: j.grad(lambda x: x)(2.0),
    lambda j: j.grad(lambda x: j.grad(lambda y: j.lax.stop_gradient(x * y) * y)(x))(
        2.0
    ),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_weak_types_and_edges(program):
    # Compiled whole, XLA folds casts of constants, which rounds beyond the edges.
    assert_same(program, minijax, jax, whole=False)


ERRORS = [
    lambda j: j.lax.convert_element_type(X, "no dtype"),
    lambda j: j.lax.convert_element_type("a", "float32"),
    lambda j: j.lax.convert_element_type([1, 2], "float32"),
    lambda j: j.lax.convert_element_type(2**70, "no dtype"),
    lambda j: j.lax.bitcast_convert_type(X, "bool"),
    lambda j: j.lax.bitcast_convert_type(X, "complex64"),
    lambda j: j.lax.bitcast_convert_type(BYTES, "int16"),
    lambda j: j.lax.bitcast_convert_type(np.uint8(1), "int16"),
    lambda j: j.lax.reduce_precision(X, 0, 1),
    lambda j: j.lax.reduce_precision(X, 5, -1),
    lambda j: j.lax.reduce_precision(1, 5, 3),
    lambda j: j.lax.stop_gradient("a"),
    lambda j: j.lax.optimization_barrier("a"),
    lambda j: j.lax.convert_element_type(j.random.key(0), "uint32"),
]


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program):
    assert_same_error(program)


def test_complex_to_real_warns_and_keeps_the_real_part():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        real = minijax.lax.convert_element_type(np.complex64([1 + 2j]), "float32")
    assert np.array_equal(real, [1.0])
    assert [w.category for w in caught] == [np.exceptions.ComplexWarning]


def test_weakly_typed_constants_stay_literals():
    """A folded conversion keeps the type that was asked for, in dtypes of any width."""
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.int8):
        for weak in (False, True):
            closed = minijax.make_jaxpr(
                lambda dtype=dtype, weak=weak: shaping.convert_element_type_to(
                    2, dtype, weak
                )
            )()
            (out,) = closed.jaxpr.outvars
            assert not closed.eqns
            assert out.aval.dtype == dtype
            assert out.aval.weak_type == weak


def test_arrays_are_returned_as_they_are():
    x = minijax.numpy.ones(2)
    assert shaping.convert_element_type_to(x, np.float32) is x
    assert casting.asarray(x) is x
    assert minijax.lax.stop_gradient(3.5) == 3.5


def test_reduce_precision_is_float16():
    x = np.float32([1.0009765, 65519.0, 65520.0, -1e-9, 3.14159])
    reduced = np.asarray(minijax.lax.reduce_precision(x, 5, 10))
    expected = x.astype(np.float16).astype(np.float32)
    assert value_difference(reduced, expected) is None


def test_dce_sink_keeps_a_value():
    def f(x):
        minijax.lax.dce_sink(x * 2)
        return x

    closed = minijax.make_jaxpr(f)(1.0)
    assert [str(eqn.primitive) for eqn in closed.eqns] == ["mul", "dce_sink"]
    assert minijax.jit(f)(1.0) == 1.0
    assert minijax.grad(f)(1.0) == 1.0
