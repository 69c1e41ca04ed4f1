"""Differences from JAX that random programs found, kept as small programs."""

import jax
import numpy as np
import pytest

from tests.golden.make import EXPECTED_JAX
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.oracle.oracle import assert_same
from tests.programs.sides import same_error

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


def aux_of_any_class(jax):
    def f(x):
        return x * x, {"name": "an aux", "class": object, "x": x}

    x = jax.numpy.float32(2)
    value, aux = jax.value_and_grad(f, has_aux=True)(x)[0]
    for _, _, other in (
        jax.vjp(f, x, has_aux=True),
        jax.jvp(f, (x,), (x,), has_aux=True),
        jax.linearize(f, x, has_aux=True),
    ):
        assert (other["name"], other["class"]) == (aux["name"], aux["class"])
    return value, aux["x"], aux["name"] == "an aux"


def nondiff_argument_of_custom_jvp_has_no_tangent(jax):
    f = jax.custom_jvp(lambda x, n: x * n, nondiff_argnums=(1,))
    f.defjvp(lambda n, primals, tangents: (f(primals[0], n), tangents[0] * n * 7))
    return jax.grad(f)(2.0, 3.0), jax.grad(lambda x, n: f(x, n), 1)(2.0, 3.0)


def cotangent_that_stands_for_a_tree(jax):
    f = jax.custom_vjp(lambda tree: tree["a"] + tree["b"][0])
    f.defvjp(lambda tree: (f(tree), None), lambda _, ct: (ct * 3,))
    return jax.grad(f)({"a": 1.0, "b": (2.0,)})


def symbolic_cotangents_have_a_dtype(jax):
    dtypes = []

    def bwd(_, ct):
        dtypes.append(ct.dtype == np.float32)
        return (ct,)

    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x.value * 2, None), bwd, symbolic_zeros=True)
    return jax.grad(f)(1.0), dtypes


def associative_scan_of_a_weak_array(jax):
    weak = jax.numpy.stack([0.5, 0.7])
    scan = jax.lax.associative_scan
    return scan(jax.numpy.multiply, weak), jax.jacfwd(
        lambda x: scan(jax.numpy.multiply, jax.numpy.stack([x, x]))
    )(0.7)


def gradient_of_a_typed_key(jax):
    f = jax.grad(lambda key, x: jax.random.normal(key) * x, allow_int=True)
    return f(jax.random.key(0), 1.0).dtype == jax.dtypes.float0


def dtype_of_what_is_stopped(jax):
    return jax.lax.stop_gradient(np.ones(3)).dtype == np.float32


def vmap_with_a_mesh_axis(jax):
    return jax.vmap(lambda x: x * 2, spmd_axis_name="rows")(VECTOR)


@pytest.mark.parametrize(
    "program",
    [
        aux_of_any_class,
        nondiff_argument_of_custom_jvp_has_no_tangent,
        cotangent_that_stands_for_a_tree,
        symbolic_cotangents_have_a_dtype,
        associative_scan_of_a_weak_array,
        gradient_of_a_typed_key,
        vmap_with_a_mesh_axis,
        dtype_of_what_is_stopped,
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


def cond_of_a_known_number(jax):
    cond = jax.lax.cond
    return lambda x: cond(1, lambda x: x, lambda x: -x, cond(0.0, abs, abs, x)), (2.0,)


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
        cond_of_a_known_number,
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


def text_for_a_custom_rule(jax):
    f = jax.custom_jvp(lambda x, text: x)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    f(1.0, "text")


def too_few_rules(jax):
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda tangent, answer, x, y: tangent)
    jax.grad(f)(1.0, 2.0)


def position_of_no_argument(jax):
    f = jax.custom_vjp(lambda x, y: x * y, nondiff_argnums=(3,))
    f.defvjp(lambda x, y: (x * y, None), lambda _, ct: (ct, ct))
    jax.grad(f)(1.0, 2.0)


def linear_transpose_from_integers_to_floats(jax):
    jax.linear_transpose(lambda x: x * 2.0, 1)(1.0)


def linear_transpose_of_booleans(jax):
    jax.linear_transpose(lambda x: x, jax.numpy.ones(3, bool))


def no_argument_to_differentiate(jax):
    jax.grad(lambda x: x, argnums=())(1.0)


def negative_position_of_no_argument(jax):
    jax.grad(lambda x: x, argnums=-3)(1.0)


@pytest.mark.parametrize(
    "program",
    [
        text_for_a_custom_rule,
        too_few_rules,
        position_of_no_argument,
        linear_transpose_from_integers_to_floats,
        linear_transpose_of_booleans,
        no_argument_to_differentiate,
        negative_position_of_no_argument,
    ],
    ids=lambda p: p.__name__,
)
def test_errors(program):
    same_error(lambda library: lambda: program(library))


@pytest.mark.parametrize("argnums", [3, -3, (0, 3)])
@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_jacobian_of_an_argument_that_is_not_there(name, argnums):
    for library in (jax, minijax):
        jacobian = getattr(library, name)(lambda x, y: x * y, argnums=argnums)
        with pytest.raises(ValueError):
            jacobian(1.0, 2.0)


def test_one_argument_is_differentiated_once():
    # jax passes None for the second there.
    with pytest.raises(ValueError, match="none twice"):
        minijax.grad(lambda x, y: x * y, argnums=(0, 0))(1.0, 2.0)


class Nameless:
    """As Equinox's modules come out of a tree: their `__name__` is no string."""

    __name__ = object()

    def __call__(self, x):
        return x * 2.0


@pytest.mark.parametrize(
    "transform",
    ["jit", "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "checkpoint"]
    + ["custom_jvp", "custom_vjp", "make_jaxpr", "hessian"],
)
def test_callables_whose_name_is_no_string(transform):
    """jax's own `jit` takes none, its other transformations do."""
    f = getattr(minijax, transform)(Nameless())
    if transform not in ("custom_jvp", "custom_vjp"):
        f(minijax.numpy.ones(1) if transform == "vmap" else 1.0)
