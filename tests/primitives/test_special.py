"""Special functions against jax and scipy, and their derivatives."""

import numpy as np
import pytest
import scipy.special

jax = pytest.importorskip("jax")
minijax = pytest.importorskip("minijax")

SHAPES = np.array([0.1, 0.5, 1, 2, 5, 10, 30, 50, 100, 0.3, 3, 7])
SCALES = (0.01, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_in_float64(name):
    theirs = {"igamma": "gammainc", "igammac": "gammaincc"}[name]
    with minijax.enable_x64(True):
        for scale in SCALES:
            x = SHAPES * scale
            mine = np.asarray(getattr(minijax.lax, name)(SHAPES, x))
            expected = getattr(scipy.special, theirs)(SHAPES, x)
            np.testing.assert_allclose(mine, expected, rtol=1e-11, atol=1e-17)


@pytest.mark.parametrize("name", ["igamma_grad_a", "random_gamma_grad"])
def test_slopes_of_incomplete_gamma(name):
    with minijax.enable_x64(True), jax.enable_x64(True):
        for scale in SCALES:
            x = SHAPES * scale
            mine = np.asarray(getattr(minijax.lax, name)(SHAPES, x))
            theirs = np.asarray(getattr(jax.lax, name)(SHAPES, x))
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-15)


def test_float32_is_near():
    a = SHAPES.astype(np.float32)
    for scale in SCALES:
        x = (a * np.float32(scale)).astype(np.float32)
        mine = np.asarray(minijax.lax.igamma(a, x))
        expected = scipy.special.gammainc(a.astype(float), x.astype(float))
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-7)


def test_incomplete_beta():
    b = SHAPES[::-1].copy()
    with minijax.enable_x64(True):
        for value in (0.0, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0):
            x = np.full_like(b, value)
            mine = np.asarray(minijax.lax.betainc(SHAPES, b, x))
            expected = scipy.special.betainc(SHAPES, b, x)
            np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-14)
    assert np.isnan(minijax.lax.betainc(1.0, 1.0, -0.5))
    assert np.isnan(minijax.lax.betainc(1.0, 1.0, 1.5))


def test_outside_of_the_domain_and_at_its_edges():
    assert np.isnan(minijax.lax.igamma(-1.0, 1.0))
    assert np.isnan(minijax.lax.igamma(1.0, -1.0))
    assert minijax.lax.igamma(2.0, 0.0) == 0
    assert minijax.lax.igamma(2.0, np.inf) == 1
    assert minijax.lax.igammac(2.0, 0.0) == 1
    assert minijax.lax.igammac(2.0, np.inf) == 0


@pytest.mark.parametrize("name", ["bessel_i0e", "bessel_i1e", "digamma", "lgamma"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_one_argument(name, dtype):
    x = np.array([0.2, 0.5, 1, 3, 7.9, 8.1, 20], dtype)
    mine = getattr(minijax.lax, name)(x)
    theirs = getattr(jax.lax, name)(x)
    assert mine.dtype == theirs.dtype
    tolerance = 2e-6 if dtype == np.float32 else 2e-3
    np.testing.assert_allclose(
        np.asarray(mine, float),
        np.asarray(theirs, float),
        rtol=tolerance,
        atol=tolerance,
    )


def test_gradients_that_do_not_exist_say_so():
    with pytest.raises(ValueError, match="Betainc gradient"):
        minijax.grad(lambda a: minijax.lax.betainc(a, 1.0, 0.5))(1.0)
    with pytest.raises(ValueError, match="polygamma gradient"):
        minijax.grad(lambda m: minijax.lax.polygamma(m, 1.0))(1.0)
