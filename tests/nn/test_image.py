"""`image` and `dlpack` against jax."""

import jax
import jax.dlpack
import jax.image
import numpy as np
import pytest

import minijax.dlpack
import minijax.image
from tests.oracle.oracle import compiled_in_jax

IMAGE = np.random.default_rng(0).normal(size=(7, 9, 3)).astype(np.float32)
METHODS = ["nearest", "linear", "cubic", "bicubic", "lanczos3", "lanczos5", "triangle"]
METHODS += ["cubic-pytorch", "bicubic-pytorch", "area"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(14, 5, 3), (3, 20, 3), (7, 9, 3), (7, 1, 5)])
@pytest.mark.parametrize("antialias", [True, False])
def test_resize(method, shape, antialias):
    def out(library, image):
        return library.image.resize(image, shape, method, antialias)

    ours, theirs = out(minijax, IMAGE), compiled_in_jax(out)(jax, IMAGE)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bfloat16", "bool"])
def test_dtypes(dtype):
    image = np.asarray(jax.numpy.asarray(IMAGE * 9).astype(dtype))
    for method in ("linear", "nearest"):
        ours = minijax.image.resize(image, (3, 4, 3), method)
        theirs = jax.image.resize(image, (3, 4, 3), method)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            np.asarray(ours, "f"), np.asarray(theirs, "f"), 1e-2, 1e-2
        )


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize(
    "method", ["linear", "cubic", "lanczos3", "cubic-pytorch", "area"]
)
def test_scale_and_translate_and_its_derivative(method, antialias):
    def out(library, scale, shift):
        return library.image.scale_and_translate(
            IMAGE, (10, 9, 4), (0, 2), scale, shift, method, antialias
        )

    args = np.float32([1.5, 0.8]), np.float32([0.3, -1.2])
    theirs = compiled_in_jax(out)(jax, *args)
    np.testing.assert_allclose(out(minijax, *args), theirs, 1e-5, 1e-5)
    grads = [
        library.grad(lambda *a, lib=library: (out(lib, *a) ** 2).sum(), (0, 1))(*args)
        for library in (minijax, jax)
    ]
    np.testing.assert_allclose(*grads, 1e-3, 1e-3)


WRONG = {
    "rank": lambda image: image.resize(IMAGE, (2, 3), "linear"),
    "method": lambda image: image.resize(IMAGE, (2, 3, 3), "round"),
    "nearest": lambda image: image.scale_and_translate(
        IMAGE, (2, 9, 3), (0,), np.ones(1), np.zeros(1), "nearest"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    for library in (jax, minijax):
        with pytest.raises(ValueError):
            WRONG[name](library.image)


def test_methods():
    assert dir(minijax.image.ResizeMethod) == dir(jax.image.ResizeMethod)
    for ours in minijax.image.ResizeMethod:
        assert jax.image.ResizeMethod[ours.name].value == ours.value


def test_dlpack():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for library in (minijax, jax):
        assert (np.asarray(library.dlpack.from_dlpack(x)) == x).all()
    kinds = (
        "bool int4 int8 uint64 float16 bfloat16 float64 complex128 float8_e5m2".split()
    )
    for kind in kinds:
        dtype = jax.numpy.dtype(kind)
        ours = minijax.dlpack.is_supported_dtype(dtype)
        assert ours == jax.dlpack.is_supported_dtype(dtype), kind
