"""Differences from JAX that random programs found, kept as small programs."""

import jax
import numpy as np
import pytest

from tests.golden.make import EXPECTED_JAX
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.oracle.oracle import assert_same

minijax = pytest.importorskip("minijax")

VECTOR = np.array([-0.6, 0.275], np.float32)


def zero_tangent_of_a_scalar_is_an_array(jax):
    vector = jax.numpy.asarray(VECTOR)
    _, linear = jax.linearize(lambda x: jax.numpy.dot(vector, vector), vector)
    return linear(vector)


def scalar_through_an_eager_custom_rule(jax):
    second = jax.custom_jvp(lambda x, y: y)
    second.defjvp(lambda primals, tangents: (primals[1], tangents[1]))
    return second(0.7, 0.5)


def axis_index_in_an_unmapped_jit(jax):
    inner = jax.jit(lambda y: jax.lax.axis_index("i"))
    return jax.vmap(lambda x: inner(VECTOR), axis_name="i")(VECTOR)


def gradient_of_a_slice_of_a_weak_array(jax):
    """It is not weakly typed: the zeros that it is padded with are not."""
    x = 0.5 + jax.numpy.arange(4)
    return jax.grad(lambda x: x[:3].sum())(x)


def number_through_an_eager_custom_vmap(jax):
    same = jax.custom_batching.custom_vmap(lambda x: x)
    same.def_vmap(lambda size, batched, x: (x, batched[0]))
    return same(0.7)


@pytest.mark.parametrize(
    "program",
    [
        zero_tangent_of_a_scalar_is_an_array,
        scalar_through_an_eager_custom_rule,
        axis_index_in_an_unmapped_jit,
        gradient_of_a_slice_of_a_weak_array,
        number_through_an_eager_custom_vmap,
    ],
    ids=lambda p: p.__name__,
)
def test_values(program):
    assert_same(program, minijax, jax)


def one_jaxpr_for_calls_of_a_custom_rule(jax):
    jnp = jax.numpy
    return lambda x: jnp.logaddexp(jnp.logaddexp(x, x), x), (VECTOR,)


def constants_of_an_inlined_function_stand_in_order(jax):
    def outer(x, flag):
        return jax.jit(lambda y: x * flag + y)(x)

    return outer, (VECTOR, np.array(True))


def zero_cotangents_are_traced(jax):
    def outer(x):
        _, pullback = jax.vjp(lambda a, b: jax.numpy.float32(2), x, x)
        first, _ = pullback(jax.numpy.float32(1))
        return first * first

    return outer, (np.float32(1),)


@pytest.mark.skipif(jax.__version__ != EXPECTED_JAX, reason="text is that of one jax")
@pytest.mark.parametrize(
    "program",
    [
        one_jaxpr_for_calls_of_a_custom_rule,
        constants_of_an_inlined_function_stand_in_order,
        zero_cotangents_are_traced,
    ],
    ids=lambda p: p.__name__,
)
def test_jaxprs(program):
    texts = []
    for library in (minijax, jax):
        function, arguments = program(library)
        with plain_numpy_scalars():
            texts.append(normalise(str(library.make_jaxpr(function)(*arguments))))
    assert texts[0] == texts[1]
