"""The same program on an accelerator and on the CPU; `make test-gpu` runs these."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

pytestmark = pytest.mark.gpu


def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def test_arrays_live_there():
    device = minijax.devices("gpu")[0]
    x = minijax.device_put(np.arange(6.0, dtype=np.float32), device)
    assert x.devices() == {device}
    assert (x + 1.0).devices() == {device}
    np.testing.assert_array_equal(np.asarray(x + 1.0), np.arange(1.0, 7.0))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        minijax.grad,
        lambda f: minijax.vmap(minijax.grad(f), in_axes=(None, 0)),
    ],
    ids=["value", "gradient", "per_example"],
)
def test_agrees_with_the_cpu(transform):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(5, 3)).astype(np.float32)
    x = rng.normal(size=(4, 2, 5)).astype(np.float32)
    function = minijax.jit(transform(loss))
    answers = []
    for platform in ("cpu", "gpu"):
        device = minijax.devices(platform)[0]
        with minijax.default_matmul_precision("highest"):
            answer = function(*minijax.device_put((w, x), device))
        assert answer.devices() == {device}
        answers.append(np.asarray(answer))
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-4, atol=1e-5)


def test_programs_there_call_python():
    """Arguments come to the host, results go back, prints keep their order."""
    device = minijax.devices("gpu")[0]
    seen = []

    @minijax.jit
    def function(x):
        kind = minijax.ShapeDtypeStruct(x.shape, x.dtype)
        y = minijax.pure_callback(lambda v: np.sin(np.asarray(v)), kind, x)
        for k in range(3):
            minijax.experimental.io_callback(
                lambda v: seen.append(float(v)), None, y[k], ordered=True
            )
        return y * 2.0

    x = minijax.device_put(np.arange(3.0, dtype=np.float32), device)
    answer = function(x)
    assert answer.devices() == {device}
    minijax.effects_barrier()
    expected = np.sin(np.arange(3.0))
    np.testing.assert_allclose(np.asarray(answer), 2.0 * expected, rtol=1e-5)
    np.testing.assert_allclose(seen, expected, rtol=1e-5)
