"""scipy.fft and scipy.optimize against jax."""

import importlib
from typing import Any

import numpy as np
import pytest

import minijax.scipy.fft
import minijax.scipy.optimize
from tests.numpy.test_linalg import LIBRARIES, assert_equal, in_both, matrix


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms_are_those_of_jax(name, norm) -> None:
    sized: dict[str, Any] = {"s": (7, 3), "axes": (0, 1)}
    sized = sized if name.endswith("n") else {"n": 7, "axis": 0}
    for dtype in (np.float32, np.complex128):
        a = matrix(4, 5, 6, dtype=dtype)

        def transform(m: Any, a: Any, **options: Any) -> Any:
            return getattr(m.scipy.fft, name)(a, norm=norm, **options)

        assert_equal(transform, a)
        assert_equal(lambda m, a: transform(m, a, **sized), a)
        assert_equal(lambda m, a: m.grad(lambda a: abs(transform(m, a)).sum())(a), a)
    for library in LIBRARIES:
        with pytest.raises(NotImplementedError):
            getattr(library.scipy.fft, name)(np.ones(3), type=3)
        with pytest.raises(ValueError):
            getattr(library.scipy.fft, name)(np.ones(3), norm="x")


def optimize(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.scipy.optimize")


FUNCTIONS: dict[str, Any] = {
    "rosenbrock": lambda m, x: m.numpy.sum(
        100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2
    ),
    "quadratic": lambda m, x: m.numpy.sum(
        (x - 3) ** 2 * m.numpy.arange(1, 3, dtype=x.dtype)
    ),
    "himmelblau": lambda m, x: (
        (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2
    ),
    "without a minimum": lambda m, x: x[0] + x[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bfgs_is_that_of_jax(name, dtype) -> None:
    """Each step of the way: stopped after three, and at the end."""
    x = np.array([0.7, -1.2], dtype)
    for options in ({"maxiter": 3}, {"gtol": 1e-3}):
        run = lambda m, x, o=options: optimize(m).minimize(
            lambda x: FUNCTIONS[name](m, x), x, method="BFGS", options=o
        )
        theirs, ours = in_both(run, x)
        for a, b in zip(theirs, ours, strict=True):
            assert a.dtype == b.dtype
            bound = 2e-3 if dtype == np.float32 else 1e-6
            np.testing.assert_allclose(np.asarray(b), np.asarray(a), bound, bound)


def test_wrong_arguments_of_minimize() -> None:
    for library in LIBRARIES:
        minimize = optimize(library).minimize
        with pytest.raises(TypeError):
            minimize(sum, library.numpy.ones(2), [1], method="BFGS")
        with pytest.raises(ValueError):
            minimize(sum, library.numpy.ones(2), method="x")
    with pytest.raises(NotImplementedError, match="BFGS"):
        method = "l-bfgs-experimental-do-not-rely-on-this"
        minijax.scipy.optimize.minimize(sum, minijax.numpy.ones(2), method=method)
