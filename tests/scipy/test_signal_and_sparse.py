"""scipy.signal and scipy.sparse.linalg against jax."""

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

from tests.numpy.test_linalg import LIBRARIES, assert_equal, in_both, matrix


def room(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}.scipy.{name}")


NAMES = {
    "signal": "convolve correlate fftconvolve stft",
    "sparse.linalg": "bicgstab cg gmres",
}
TYPES = [np.float64, np.complex64, np.int32]


def draw(*shape: int, dtype: Any) -> np.ndarray:
    if dtype == np.int32:
        return np.arange(np.prod(shape), dtype=dtype).reshape(shape) % 5 - 2
    return matrix(*shape, dtype=dtype)


@pytest.mark.parametrize("module", NAMES)
def test_signatures(module) -> None:
    for name in NAMES[module].split():
        theirs, ours = (
            [
                (p.name, p.kind, p.default)
                for p in inspect.signature(
                    getattr(room(m, module), name)
                ).parameters.values()
            ]
            for m in LIBRARIES
        )
        assert ours == theirs, name


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
def test_convolutions(name, mode, dtype) -> None:
    shapes = [((7,), (3,)), ((3,), (8,)), ((6, 5), (2, 5)), ((4, 3, 2), (4, 3, 2))]
    for first, second in shapes:
        x, y = draw(*first, dtype=dtype), draw(*second, dtype=dtype)

        def call(m: Any, x: Any, y: Any, **options: Any) -> Any:
            f = getattr(room(m, "signal"), name)
            return f(m.numpy.asarray(x), m.numpy.asarray(y), mode, **options)

        assert_equal(call, x, y)
        if name != "fftconvolve" and len(first) == 2:
            assert_equal(lambda m, x, y: call(m, x, y, method="fft"), x, y)
        if len(first) == 2 and dtype == np.float64:
            loss = lambda m: lambda x, y: (call(m, x, y) ** 2).sum()
            assert_equal(lambda m, x, y: m.grad(loss(m), (0, 1))(x, y), x, y)
    x, y = draw(2, 7, dtype=dtype), draw(2, 3, dtype=dtype)
    if name == "fftconvolve":
        for axes in (1, [-1]):
            assert_equal(lambda m, x, y: call(m, x, y, axes=axes), x, y)


SPECTRA: list[dict] = [
    {},
    {"fs": 10.0, "nperseg": 8, "noverlap": 5, "nfft": 12},
    {"nperseg": 9, "boundary": None, "padded": False, "detrend": "constant"},
    {"nperseg": 8, "boundary": "even", "detrend": "linear", "axis": 0},
    {"nperseg": 8, "boundary": "odd", "detrend": lambda x: x * 2},
    {"nperseg": 7, "boundary": "constant", "return_onesided": False},
    {"nperseg": 6, "window": np.arange(1.0, 7.0)},
    {"nperseg": 1, "noverlap": 0},
    {"nperseg": 6, "window": ("kaiser", 4.0)},
]


@pytest.mark.parametrize("case", range(len(SPECTRA)))
@pytest.mark.filterwarnings("ignore")
def test_short_time_spectra(case) -> None:
    options, dtype = SPECTRA[case], [*TYPES, np.float32][case % 4]
    x = draw(30, 40, dtype=dtype)
    assert_equal(lambda m, x: room(m, "signal").stft(x, **options), x)


def test_wrong_signals() -> None:
    one, two = np.ones(3), np.ones((3, 3))
    calls = [
        lambda s: s.convolve(one, two),
        lambda s: s.convolve(one, one, "x"),
        lambda s: s.convolve(one, one, method="x"),
        lambda s: s.convolve(np.ones((2, 3)), np.ones((3, 2))),
        lambda s: s.convolve(np.ones(0), one),
        lambda s: s.fftconvolve(two, np.ones((2, 3)), axes=1),
        lambda s: s.fftconvolve(np.ones((2, 3)), np.ones((3, 2)), "valid"),
        lambda s: s.stft(one, nperseg=2, noverlap=2),
        lambda s: s.stft(one, nperseg=2, nfft=1),
        lambda s: s.stft(one, nperseg=2, boundary="x"),
        lambda s: s.stft(one, window=np.ones(2), nperseg=3),
        lambda s: s.stft(one, window="hannah", nperseg=2),
    ]
    for library in LIBRARIES:
        for call in calls:
            with pytest.raises(ValueError):
                call(room(library, "signal"))


# -- equations -----------------------------------------------------------------------


def equation(n: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    a = matrix(n, n, dtype=dtype)
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype), matrix(n, dtype=dtype)


METHODS = ["cg", "bicgstab", "gmres"]


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("name", METHODS)
def test_solutions_and_derivatives(name, dtype) -> None:
    """To rounding, in a number of steps in which all of them arrive."""
    a, b = equation(6, dtype)
    tight = 1e-6 if dtype == np.float32 else 1e-12
    bound = 1e-4 if dtype == np.float32 else 1e-9
    diagonal = np.diag(1 / np.diag(a))

    def ways(m: Any, a: Any, b: Any) -> Any:
        def solve(a: Any, b: Any, **options: Any) -> Any:
            options = {"tol": tight, **options}
            return getattr(room(m, "sparse.linalg"), name)(a, b, **options)[0]

        total = lambda a, b: abs(solve(a, b)).sum()
        return [
            solve(lambda x: m.numpy.dot(a, x), b),
            solve(a, b, M=diagonal, x0=m.numpy.ones_like(b), maxiter=50),
            m.vmap(lambda b: solve(a, b))(m.numpy.stack([b, 2 * b])),
            m.jvp(lambda b: solve(a, b), (b,), (b + 1,)),
            m.grad(total, (0, 1))(a, b),
        ]

    theirs, ours = in_both(ways, a, b)
    for x, y in zip(theirs, ours, strict=True):
        assert x.dtype == y.dtype and x.weak_type == y.weak_type
        np.testing.assert_allclose(y, x, bound, bound)
    x, info = getattr(room(LIBRARIES[1], "sparse.linalg"), name)(a, b, tol=tight)
    assert (info is None) == (name != "gmres")
    np.testing.assert_allclose(a @ np.asarray(x), b, 1e-3, 1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_single_steps(name) -> None:
    """Stopped early: the same way, not only the same end."""
    a, b = equation(6, np.float64)
    for steps in (1, 3):
        options = {"maxiter": 1, "restart": steps} if name == "gmres" else {}
        options = options or {"maxiter": steps}
        call = lambda m, a, b: getattr(room(m, "sparse.linalg"), name)(a, b, **options)
        assert_equal(lambda m, a, b: call(m, a, b)[0], a, b)


@pytest.mark.parametrize("name", METHODS)
def test_trees(name) -> None:
    b = {"x": np.arange(1.0, 4.0), "y": [np.ones((2, 2))]}
    operator = lambda tree: {"x": 3 * tree["x"], "y": [2 * tree["y"][0]]}
    for library in LIBRARIES:
        x = getattr(room(library, "sparse.linalg"), name)(operator, b)[0]
        np.testing.assert_allclose(x["x"], b["x"] / 3, 1e-6)
        np.testing.assert_allclose(x["y"][0], 0.5, 1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_wrong_equations(name) -> None:
    b = np.ones(3)
    for library in LIBRARIES:
        solve = getattr(room(library, "sparse.linalg"), name)
        with pytest.raises(ValueError):
            solve(np.ones((3, 2)), b)
        with pytest.raises(TypeError):
            solve(None, b)
        with pytest.raises(TypeError):
            solve("A", b)
        with pytest.raises(ValueError):
            solve(np.eye(3), b, x0=[b])
    with pytest.raises(ValueError, match="shapes"):
        getattr(room(LIBRARIES[1], "sparse.linalg"), name)(np.eye(3), b, x0=np.ones(2))


def test_methods_of_gmres() -> None:
    for library in LIBRARIES:
        solve = room(library, "sparse.linalg").gmres
        x, info = solve(np.diag([1.0, 2.0]), np.ones(2), solve_method="incremental")
        assert int(info) == 0 and info.weak_type
        np.testing.assert_allclose(x, [1, 0.5], 1e-6)
        with pytest.raises(ValueError):
            solve(np.eye(2), np.ones(2), solve_method="x")
