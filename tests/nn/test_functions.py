"""Activations and the softmax family against jax: values, derivatives, jaxprs."""

import os

import jax
import numpy as np
import pytest

import minijax
from tests.golden.normalise import normalise, plain_numpy_scalars

X = np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)
Y = np.array([[-1.0, 2.0, 0.5, 3.0], [0.25, -2.0, 1.5, -0.75]], np.float32)
MASK = Y > -1.5

ELEMENTWISE = """celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity
leaky_relu log1mexp log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus
sparse_plus sparse_sigmoid squareplus swish tanh""".split()
REDUCING = "glu log_softmax logmeanexp logsumexp softmax standardize".split()


def text(jaxpr):
    with plain_numpy_scalars():
        return normalise(str(jaxpr))


def assert_same_program(name, *args, x=X, **keywords):
    """Value, gradient, second derivative and all three jaxprs are those of jax."""

    def programs(library):
        function = getattr(library.nn, name)

        def plain(x):
            return function(x, *args, **keywords)

        def loss(x):
            return plain(x).sum()

        return plain, library.grad(loss), library.jit(library.grad(loss))

    pairs = zip(programs(minijax), programs(jax), strict=True)
    for number, (ours, theirs) in enumerate(pairs):
        expected = text(jax.make_jaxpr(theirs)(x))
        assert text(minijax.make_jaxpr(ours)(x)) == expected
        if number == 1 and not os.environ.get("MINIJAX_TEST_ALL"):
            continue  # the same gradient follows as one compiled program
        left, right = ours(x), theirs(x)
        assert left.dtype == right.dtype
        assert left.weak_type == right.weak_type
        np.testing.assert_allclose(
            np.asarray(left), np.asarray(right), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", ELEMENTWISE + REDUCING)
def test_same_program(name):
    assert_same_program(name)


@pytest.mark.parametrize("name", [n for n in REDUCING if n != "glu"])
def test_axes_and_masks(name):
    assert_same_program(name, x=Y, axis=(0, 1))
    assert_same_program(name, x=Y, axis=0, where=MASK)
    if name in ("logsumexp", "logmeanexp"):
        assert_same_program(name, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "name", [n for n in REDUCING if n not in ("glu", "standardize")]
)
def test_mapped_axes(name):
    def program(library):
        def function(x):
            first = getattr(library.nn, name)(x, axis="r")
            return first, getattr(library.nn, name)(x, axis=("r", 0))

        return library.vmap(function, axis_name="r")(X)

    for ours, theirs in zip(program(minijax), program(jax), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)
    with pytest.raises(NameError, match="unbound axis name: r"):
        getattr(minijax.nn, name)(X, axis="r")


def test_options():
    assert_same_program("gelu", approximate=False)
    assert_same_program("elu", 0.5)
    assert_same_program("celu", 0.5)
    assert_same_program("leaky_relu", 0.2)
    assert_same_program("squareplus", 2.0)
    assert_same_program("glu", axis=0)
    assert_same_program("standardize", algorithm="stable")
    assert_same_program("standardize", mean=0.5, variance=2.0)
    assert_same_program("logsumexp", b=np.abs(X))


@pytest.mark.parametrize("name", ELEMENTWISE + REDUCING)
@pytest.mark.parametrize("dtype", ["int32", "bfloat16"])
def test_other_dtypes(name, dtype):
    if name in ("log1mexp",):
        x = np.arange(1, 9).astype(dtype).reshape(2, 4)
    else:
        x = np.arange(-4, 4).astype(minijax.numpy.dtype(dtype)).reshape(2, 4)

    def run(library):
        try:
            return getattr(library.nn, name)(x)
        except TypeError:
            return None

    ours, theirs = run(minijax), run(jax)
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            np.asarray(ours, np.float64), np.asarray(theirs, np.float64), rtol=2e-2
        )


def test_softmax_with_its_own_derivative():
    def program(library):
        library.config.update("jax_softmax_custom_jvp", True)
        try:
            softmax = library.nn.softmax
            value = softmax(X, axis=0, where=MASK)
            jaxpr = library.make_jaxpr(lambda x: softmax(x))(X)
            gradient = library.grad(lambda x: (softmax(x) ** 2).sum())(X)
            return value, gradient, text(jaxpr)
        finally:
            library.config.update("jax_softmax_custom_jvp", False)

    ours, theirs = program(minijax), program(jax)
    for left, right in zip(ours[:2], theirs[:2]):
        np.testing.assert_allclose(np.asarray(left), np.asarray(right), atol=1e-6)
    assert ours[2] == theirs[2]


def test_derivatives_at_the_corners():
    for name, point, expected in (
        ("relu", 0.0, 0.0),
        ("relu6", 0.0, 0.0),
        ("relu6", 6.0, 0.0),
        ("relu", 1.0, 1.0),
    ):
        assert float(minijax.grad(getattr(minijax.nn, name))(point)) == expected
    # The branch that is not taken would overflow.
    assert float(minijax.grad(minijax.nn.elu)(1000.0)) == 1.0
    assert np.isfinite(minijax.grad(minijax.nn.log_sigmoid)(-1000.0))


def test_large_numbers():
    big = np.array([1000.0, 0.0, -1000.0], np.float32)
    np.testing.assert_array_equal(minijax.nn.softmax(big), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(minijax.nn.log_softmax(big), [0.0, -1000.0, -2000.0])
    assert float(minijax.nn.logsumexp(big)) == 1000.0
    assert float(minijax.nn.logsumexp(np.array([-np.inf, -np.inf]))) == -np.inf
    assert float(minijax.nn.logsumexp(np.array([np.inf, 0.0]))) == np.inf


def test_logsumexp_with_signs():
    b = np.array([[1.0, -2.0, 0.5, -1.0]] * 2, np.float32)
    for keywords in ({"axis": 1}, {}, {"axis": 0, "keepdims": True}):
        ours = minijax.scipy.special.logsumexp(X, b=b, return_sign=True, **keywords)
        theirs = jax.scipy.special.logsumexp(X, b=b, return_sign=True, **keywords)
        for left, right in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(left, np.asarray(right), rtol=1e-5)
        np.testing.assert_allclose(
            minijax.scipy.special.logsumexp(X, b=b, **keywords),
            np.asarray(jax.scipy.special.logsumexp(X, b=b, **keywords)),
            rtol=1e-5,
        )


def test_one_hot():
    indices = np.array([[0, 2], [5, -1]])
    for axis in (-1, 0, 1, 2):
        for dtype in (None, "int32", "bool"):

            def program(library, axis=axis, dtype=dtype):
                return lambda i: library.nn.one_hot(i, 3, axis=axis, dtype=dtype)

            ours, theirs = program(minijax)(indices), program(jax)(indices)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
            assert text(minijax.make_jaxpr(program(minijax))(indices)) == text(
                jax.make_jaxpr(program(jax))(indices)
            )


def test_one_hot_along_a_mapped_axis():
    def program(library):
        return library.vmap(
            lambda i: library.nn.one_hot(i, 3, axis="classes"), axis_name="classes"
        )(np.array([0, 2, 2]))

    np.testing.assert_array_equal(program(minijax), np.asarray(program(jax)))


ERRORS = {
    "one-hot-axis": lambda nn: nn.one_hot(np.arange(3), 4, axis=5),
    "glu-odd": lambda nn: nn.glu(X[:, :3]),
    "glu-axis": lambda nn: nn.glu(X, axis=4),
    "standardize-algorithm": lambda nn: nn.standardize(X, algorithm="z"),
    "silu-of-a-list": lambda nn: nn.silu([1.0]),
    "softmax-axis": lambda nn: nn.softmax(X, axis=4),
    "logsumexp-axes": lambda nn: nn.logsumexp(X, axis=(0, 0)),
    "standardize-of-a-string": lambda nn: nn.standardize("x"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_same_exception(name):
    raised = []
    for library in (minijax, jax):
        with pytest.raises(Exception) as caught:
            ERRORS[name](library.nn)
        raised.append(type(caught.value).__name__)
    assert raised[0] == raised[1]
