"""ravel_pytree, check_grads, and derivatives of unusual dtypes and high orders."""

import numpy as np
import pytest

import minijax
from minijax.numpy.shapes.raveling import ravel_pytree
from minijax.programs.debugging import gradient_checks as test_util
from tests.programs.sides import LIBRARIES, same_error, same_text, same_values

X = np.array([0.5, -1.0, 2.0], np.float32)


def raveling(lib):
    if lib is minijax:
        return ravel_pytree
    from jax.flatten_util import ravel_pytree as theirs

    return theirs


TREES = {
    "empty": lambda: {},
    "one": lambda: X,
    "same dtype": lambda: {"a": X, "b": [np.ones((2, 2), np.float32), 3.0]},
    "several dtypes": lambda: (X, np.arange(4, dtype=np.int32).reshape(2, 2), True),
    "complex": lambda: [X, np.array([1 + 2j], np.complex64)],
    "scalars": lambda: [1.0, 2.0],
}


@pytest.mark.parametrize("name", TREES)
def test_ravel_pytree(name):
    def make(lib):
        def f(tree):
            vector, unravel = raveling(lib)(tree)
            return vector, unravel(vector)

        return f

    same_values(make, TREES[name]())
    same_text(make, TREES[name]())


def test_unravel_keeps_the_dtype_of_the_vector():
    def make(lib):
        def f(x):
            vector, unravel = raveling(lib)({"a": x})
            return unravel(vector.astype("float16"))

        return f

    same_values(make, X)


def test_unravel_checks_the_dtype():
    def make(lib):
        def f(x):
            vector, unravel = raveling(lib)([x, 1])
            return unravel(vector.astype("float16"))

        return f

    same_error(make, X, match="expected dtype float32")


def test_unravels_of_equal_trees_are_equal():
    for lib in LIBRARIES:
        ravel = raveling(lib)
        one, two = (ravel({"a": X * k})[1] for k in (1, 2))
        assert one == two and hash(one) == hash(two)
        assert one != ravel({"b": X})[1]


def test_derivative_through_ravel():
    def make(lib):
        def loss(tree):
            vector, _ = raveling(lib)(tree)
            return (vector**2).sum()

        return lib.grad(loss)

    same_values(make, {"a": X, "b": np.ones((2, 2), np.float32)})


# ---- check_grads ---------------------------------------------------------------------

GOOD = {
    "one argument": (lambda lib: lib.numpy.sin, (X,)),
    "numbers and trees": (
        lambda lib: lambda x, y: {"a": lib.numpy.sin(x) * y["b"]},
        (X, {"b": 2.0}),
    ),
    "complex": (lambda lib: lambda x: x * lib.numpy.exp(x), (X * (1 + 2j),)),
    "real of complex": (
        lambda lib: lambda x: lib.numpy.abs(x * (2 + 1j)) ** 2,
        (X * np.complex64(1 + 2j),),
    ),
}


def library_of_checks(lib):
    if lib is minijax:
        return test_util
    import jax.test_util

    return jax.test_util


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("lin",), ("fwd", "rev")])
def test_check_grads_accepts_right_rules(name, modes):
    make, args = GOOD[name]
    for lib in LIBRARIES:
        library_of_checks(lib).check_grads(make(lib), args, 2, modes, 0.05, 0.05, 1e-2)


def wrong_forward(lib):
    f = lib.custom_jvp(lambda x: lib.numpy.sin(x))
    f.defjvp(lambda p, t: (f(*p), t[0] * lib.numpy.cos(p[0]) * 1.1))
    return f


def wrong_backward(lib):
    return lib.custom_gradient(lambda x: (x**2, lambda ct: 5.0 * ct))


def wrong_second_order(lib):
    f = lib.custom_jvp(lambda x: lib.numpy.sin(x))
    slope = lib.custom_jvp(lambda x: lib.numpy.cos(x))
    f.defjvp(lambda p, t: (f(*p), t[0] * slope(p[0])))
    slope.defjvp(lambda p, t: (slope(*p), t[0]))
    return f


@pytest.mark.parametrize(
    ("make", "order", "modes"),
    [
        (wrong_forward, 1, ("fwd",)),
        (wrong_forward, 1, ("rev",)),
        (wrong_backward, 1, ("rev",)),
        (wrong_second_order, 2, ("fwd",)),
        (wrong_second_order, 2, ("rev",)),
    ],
)
def test_check_grads_finds_wrong_rules(make, order, modes):
    for lib in LIBRARIES:
        with pytest.raises(AssertionError):
            library_of_checks(lib).check_grads(make(lib), (X,), order, modes)
        if order == 2:
            library_of_checks(lib).check_grads(make(lib), (X,), 1, modes)


def test_the_message_of_check_grads_names_the_modes():
    with pytest.raises(AssertionError, match="JVP of JVP tangent"):
        test_util.check_grads(
            wrong_second_order(minijax), (X,), 2, modes=("rev", "fwd"), rtol=0.02
        )


# ---- dtypes and orders ---------------------------------------------------------------


def test_holomorphic_derivatives():
    z = np.array([1 + 2j, 0.5 - 1j], np.complex64)

    def make(lib):
        f = lambda z: (z * lib.numpy.sin(z)).sum()
        return lambda z: (
            lib.grad(f, holomorphic=True)(z),
            lib.jacfwd(lib.numpy.exp, holomorphic=True)(z),
            lib.jacrev(lib.numpy.exp, holomorphic=True)(z),
            lib.hessian(f, holomorphic=True)(z),
        )

    same_values(make, z)


COMPLEX_ERRORS = {
    "complex input": lambda lib: lib.grad(lambda x: lib.numpy.abs(x + 0j).sum()),
    "complex output": lambda lib: lambda x: lib.grad(lambda x: x * 1j)(x[0].real),
    "real input": lambda lib: lambda x: lib.grad(lambda x: x, holomorphic=True)(1.0),
    "real output": lambda lib: (
        lambda x: lib.grad(lambda x: lib.numpy.abs(x).sum(), holomorphic=True)(x)
    ),
    "jacfwd of complex": lambda lib: lib.jacfwd(lambda x: x),
    "jacrev of complex": lambda lib: lib.jacrev(lambda x: x),
}


@pytest.mark.parametrize("name", COMPLEX_ERRORS)
def test_errors_of_complex_derivatives(name):
    z = np.array([1 + 2j, 0.5 - 1j], np.complex64)
    if name == "complex input":
        same_values(lambda lib: lambda z: lib.vjp(lib.numpy.abs, z)[0], z)
    else:
        same_error(COMPLEX_ERRORS[name], z)


def test_integers_have_float0_derivatives():
    def make(lib):
        def f(x, n):
            return (x * n).sum()

        def g(x, n):
            grads = lib.grad(f, argnums=(0, 1), allow_int=True)(x, n)
            return grads[0], np.array(grads[1].dtype == lib.float0), grads[1].shape

        return g

    same_values(make, X, np.arange(3, dtype=np.int32), compiled=False)
    same_error(lambda lib: lib.grad(lambda n: n * 2.0), np.int32(3))


def test_fourth_order():
    """Forward over reverse over forward over reverse."""

    def make(lib):
        def f(x):
            return lib.numpy.sin(x) * lib.numpy.exp(x * 0.5)

        def forward(g):
            return lambda x: lib.jvp(g, (x,), (1.0,))[1]

        return lambda x: (
            forward(lib.grad(forward(lib.grad(f))))(x),
            lib.grad(forward(lib.grad(forward(f))))(x),
            lib.grad(lib.grad(lib.grad(lib.grad(f))))(x),
            lib.jit(lib.grad(lib.jit(forward(lib.jit(lib.grad(f))))))(x),
        )

    same_values(make, np.float32(0.7), rtol=1e-4)


def test_fwd_and_bwd():
    def make(lib):
        def f(x, y):
            return {"out": lib.numpy.sin(x) * y}

        def run(x, y):
            results = []
            for jitted in (True, False):
                for argnums in (0, (1, 0)):
                    fwd, bwd = lib.fwd_and_bwd(f, argnums, jitted=jitted)
                    for k in range(2):
                        out, residuals = fwd(x * k, y)
                        results.append((out, bwd(residuals, {"out": y})))
            fwd, bwd = lib.fwd_and_bwd(lambda x: (x * x, x + 1.0), 0, has_aux=True)
            out, residuals, aux = fwd(x)
            return results, out, aux, bwd(residuals, x)

        return run

    same_values(make, X, X + 1)


def test_bwd_is_compiled_once():
    fwd, bwd = minijax.fwd_and_bwd(lambda x: minijax.numpy.sin(x), 0)
    for k in range(3):
        out, residuals = fwd(X * k)
        bwd(residuals, out)
    assert (fwd._cache_size(), bwd._cache_size()) == (1, 1)


class Later:
    """A leaf that is no array, and can be waited for and copied."""

    def __init__(self):
        self.called = []

    def block_until_ready(self):
        self.called.append("ready")

    def copy_to_host_async(self):
        self.called.append("copied")


@pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
def test_leaves_of_any_class_are_waited_for(lib):
    leaf = Later()
    tree = {"a": leaf, "b": [1.0, "no array"]}
    assert lib.block_until_ready(tree) is tree
    assert lib.copy_to_host_async(tree) is tree
    assert leaf.called == ["ready", "copied"]
    assert lib.jit(lambda x: lib.block_until_ready(x) + 1.0)(1.0) == 2.0
