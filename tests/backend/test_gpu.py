"""The same program on an accelerator and on the CPU; `make test-gpu` runs these."""

import os
import subprocess
import sys

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.backend import profiling

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


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64"])
def test_a_function_of_one_operation_at_places(dtype):
    """XLA takes `add` for an atomic one, and crashed."""
    x = jnp.arange(6).astype(dtype)
    found = x.at[np.array([1, 1, 3])].apply(lambda v: v + v)
    assert found.devices() == {minijax.devices("gpu")[0]}
    expected = np.asarray(x)
    for place in (1, 1, 3):
        expected = expected.copy()
        expected[place] = expected[place] + expected[place]
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_kernels_have_times():
    x = jnp.ones((64, 64))
    f = minijax.jit(lambda x: jnp.tanh(x @ x).sum())
    f(x).block_until_ready()
    found = profiling.measure(lambda: f(x).block_until_ready())
    names = [
        dict(event.stats).get("hlo_op")
        for plane in found.planes
        for line in plane.lines
        for event in line.events
    ]
    assert any(names)


def test_a_cost_before_compilation():
    assert minijax.jit(lambda x: x + 1).lower(1.0).cost_analysis()["flops"] == 1.0


def of_size(*shape, dtype):
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def adjoint(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def times(x, scale):
    return x * scale[..., None, :]


def positive(a):
    return a @ adjoint(a) + 8 * np.eye(a.shape[-1], dtype=a.dtype)


def permuted(a):
    q, r, order = minijax.scipy.linalg.qr(a, mode="economic", pivoting=True)
    return q @ r, jnp.take(a, order, axis=-1)


def three_diagonals(a):
    lower, middle, upper = 0.1 * a[0], 4 + a[1], 0.1 * a[2]
    x = minijax.lax.linalg.tridiagonal_solve(lower, middle, upper, a[3][:, None])[:, 0]
    below = jnp.roll(x, 1).at[0].set(0)
    above = jnp.roll(x, -1).at[-1].set(0)
    return lower * below + middle * x + upper * above, a[3]


def by_eigenvalues(a):
    values, vectors = jnp.linalg.eig(a)
    return a.astype(vectors.dtype) @ vectors, times(vectors, values)


def by_eigenvalues_of_hermitian(a):
    values, vectors = jnp.linalg.eigh(positive(a))
    return times(vectors, values) @ adjoint(vectors), positive(a)


def by_singular_values(a):
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return times(u, s.astype(u.dtype)) @ vh, a


# Each gives two arrays that are equal by the definition of its decomposition.
EQUATIONS = {
    "cholesky": lambda a: (
        jnp.linalg.cholesky(positive(a)) @ adjoint(jnp.linalg.cholesky(positive(a))),
        positive(a),
    ),
    "solve": lambda a: (a @ jnp.linalg.solve(a, a[..., :1]), a[..., :1]),
    "inverse": lambda a: (a @ jnp.linalg.inv(a), jnp.eye(a.shape[-1]) + 0 * a),
    "qr": lambda a: (jnp.linalg.qr(a)[0] @ jnp.linalg.qr(a)[1], a),
    "eig": by_eigenvalues,
    "eigh": by_eigenvalues_of_hermitian,
    "svd": by_singular_values,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", EQUATIONS)
def test_decompositions(name, dtype):
    """By cuSOLVER, a stack of three matrices; the results lie on the GPU."""
    with minijax.enable_x64(True), minijax.default_matmul_precision("highest"):
        device = minijax.devices("gpu")[0]
        a = minijax.device_put(of_size(3, 8, 8, dtype=np.dtype(dtype)), device)
        found, expected = minijax.jit(EQUATIONS[name])(a)
        assert found.devices() == {device}
        close = 2e-3 if a.dtype in (np.float32, np.complex64) else 1e-9
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(expected), rtol=close, atol=close
        )


@pytest.mark.parametrize(
    "function, shape",
    [
        (by_singular_values, (40, 64)),
        (by_singular_values, (1100, 20)),
        (by_singular_values, (20, 1100)),
        (permuted, (9, 5)),
        (three_diagonals, (4, 30)),
        (EQUATIONS["qr"], (300, 200)),
    ],
    ids=["svd_jacobi", "svd_tall", "svd_wide", "qr_pivoting", "tridiagonal", "qr_big"],
)
def test_decompositions_of_other_shapes(function, shape):
    with minijax.default_matmul_precision("highest"):
        a = minijax.device_put(of_size(*shape, dtype=np.float32))
        found, expected = minijax.jit(function)(a)
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(expected), rtol=5e-3, atol=5e-3
    )


def test_a_gradient_through_a_decomposition():
    def of(a):
        return (
            jnp.log(jnp.linalg.det(positive(a))) + jnp.linalg.eigvalsh(positive(a))[0]
        )

    a = of_size(5, 5, dtype=np.float32)
    with minijax.default_matmul_precision("highest"):
        on = [
            np.asarray(minijax.grad(of)(minijax.device_put(a, minijax.devices(p)[0])))
            for p in ("cpu", "gpu")
        ]
    np.testing.assert_allclose(on[1], on[0], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("order", [("minijax", "jax"), ("jax", "minijax")])
def test_beside_jax(order):
    """Both compute on the GPU in one process, whichever asks for it first."""
    pytest.importorskip("jax")
    program = f"""
import importlib, jax
for name in {order}:
    library = importlib.import_module(name)
    numpy = importlib.import_module(name + ".numpy")
    a = library.device_put(numpy.eye(4) * 9, library.devices("gpu")[0])
    print(name, a.devices(), numpy.linalg.cholesky(a).sum())
    print(numpy.linalg.eigvals(a).sum())
"""
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    environment.pop("JAX_PLATFORMS", None)
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    lines = [f"{name} {{CudaDevice(id=0)}} 12.0" for name in order]
    assert found.stdout.splitlines()[::2] == lines, found.stderr
    assert found.stdout.splitlines()[1::2] == ["(36+0j)"] * 2
