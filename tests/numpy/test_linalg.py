"""`numpy.linalg`, `lax.linalg` and `numpy.fft` against jax and by their equations."""

import importlib
from typing import Any

import jax
import numpy as np
import pytest

import minijax
import minijax.lax.linalg
from tests.oracle.oracle import compiled_in_jax

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
LIBRARIES = (jax, minijax)


def matrix(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Normal numbers, the same each time."""
    draw = np.random.RandomState(seed + sum(shape)).randn
    out = draw(*shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * draw(*shape)
    return out.astype(dtype)


def positive(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Hermitian positive definite matrices."""
    a = matrix(*shape, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def in_both(function: Any, *args: Any) -> list[list[Any]]:
    """The leaves of the results of `function(library, *args)` in jax and here."""
    found = []
    for library in LIBRARIES:
        with library.enable_x64(True):
            arrays = [library.numpy.asarray(arg) for arg in args]
            out = compiled_in_jax(function)(library, *arrays)
            found.append(library.tree_util.tree_leaves(out))
    return found


def assert_equal(function: Any, *args: Any, exact: float = 1e-5) -> None:
    """Values to `exact` (its square in float64), dtypes, shapes and weak types."""
    expected, actual = in_both(function, *args)
    for x, y in zip(expected, actual, strict=True):
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)
        bound = exact if x.dtype in (np.float32, np.complex64) else exact**2
        np.testing.assert_allclose(np.asarray(y), np.asarray(x), bound, bound)


# What each function takes; "any" is also tried on tall and wide matrices.
FUNCTIONS: dict[str, tuple[str, Any]] = {
    "cholesky": ("positive", lambda m, a: m.cholesky(a)),
    "upper cholesky": ("positive", lambda m, a: m.cholesky(a, upper=True)),
    "lower triangle": ("any", lambda m, a: m.qr(a, mode="r")),
    "qr": ("any", lambda m, a: m.qr(a)),
    "complete qr": ("any", lambda m, a: m.qr(a, mode="complete")),
    "raw qr": ("any", lambda m, a: m.qr(a, mode="raw")),
    "svd": ("any", lambda m, a: m.svd(a)),
    "thin svd": ("any", lambda m, a: m.svd(a, full_matrices=False)),
    "svd of Hermitian": ("positive", lambda m, a: m.svd(a, hermitian=True)),
    "svdvals": ("any", lambda m, a: m.svdvals(a)),
    "eigh": ("positive", lambda m, a: m.eigh(a)),
    "eigh of a triangle": (
        "square",
        lambda m, a: m.eigh(a, UPLO="U", symmetrize_input=False),
    ),
    "eigvalsh": ("positive", lambda m, a: m.eigvalsh(a)),
    "eig": ("square", lambda m, a: m.eig(a)),
    "eigvals": ("square", lambda m, a: m.eigvals(a)),
    "solve": ("square", lambda m, a: m.solve(a, a[..., :2])),
    "solve a vector": ("square", lambda m, a: m.solve(a, a[(0,) * (a.ndim - 1)])),
    "inv": ("square", lambda m, a: m.inv(a)),
    "pinv": ("any", lambda m, a: m.pinv(a)),
    "pinv with a bound": ("any", lambda m, a: m.pinv(a, rtol=0.4)),
    "pinv of Hermitian": ("positive", lambda m, a: m.pinv(a, hermitian=True)),
    "det": ("square", lambda m, a: m.det(a)),
    "det of three": ("square", lambda m, a: m.det(a[..., :3, :3])),
    "slogdet": ("square", lambda m, a: m.slogdet(a)),
    "slogdet of two": ("square", lambda m, a: m.slogdet(a[..., :2, :2])),
    "matrix_rank": ("any", lambda m, a: m.matrix_rank(a)),
    "matrix_power": ("square", lambda m, a: m.matrix_power(a, -3)),
    "cond": ("any", lambda m, a: m.cond(a)),
    "cond 1": ("square", lambda m, a: m.cond(a, 1)),
    "cond -2": ("any", lambda m, a: m.cond(a, -2)),
    "norm 2": ("any", lambda m, a: m.norm(a, 2, axis=(-2, -1))),
    "nuclear norm": ("any", lambda m, a: m.norm(a, "nuc", (-1, -2), True)),
}
SHAPES = {"any": ((3, 3), (5, 3), (2, 3, 5)), "square": ((4, 4), (2, 4, 4))}
SHAPES["positive"] = SHAPES["square"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_jax(name) -> None:
    kind, function = FUNCTIONS[name]
    make = positive if kind == "positive" else matrix
    for number, shape in enumerate(SHAPES[kind]):
        for dtype in DTYPES[number % 2 :: 2]:
            a = make(*shape, dtype=dtype)
            assert_equal(lambda m, a: function(m.numpy.linalg, a), a)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_every_dtype(name, dtype) -> None:
    kind, function = FUNCTIONS[name]
    make = positive if kind == "positive" else matrix
    for shape in SHAPES[kind]:
        a = make(*shape, dtype=dtype)
        assert_equal(lambda m, a: function(m.numpy.linalg, a), a)


# Differentiable functions, made real where their results have a free phase.
SMOOTH: dict[str, tuple[str, Any]] = {
    name: FUNCTIONS[name]
    for name in (
        *("cholesky", "qr", "complete qr", "svdvals", "eigvalsh", "solve", "inv"),
        *("pinv", "det", "slogdet", "norm 2", "eigvals"),
    )
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_jax(name) -> None:
    kind, function = SMOOTH[name]
    for shape, dtype in (((3, 3), np.float64), ((2, 3, 3), np.complex128)):
        make = positive if kind == "positive" else matrix
        a = make(*shape, dtype=dtype)

        def total(m: Any, a: Any) -> Any:
            leaves = m.tree_util.tree_leaves(function(m.numpy.linalg, a))
            return sum(m.numpy.sum(m.numpy.real(x) ** 2 + x.imag) for x in leaves)

        assert_equal(lambda m, a: m.grad(lambda a: total(m, a))(a), a)
        if len(shape) == 3:
            assert_equal(
                lambda m, a: m.vmap(lambda a: function(m.numpy.linalg, a))(a), a
            )


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_decompositions_satisfy_their_equations(dtype, shape) -> None:
    """Products of factors give the matrix back; unitary factors are unitary."""
    bound = 2e-5 if np.finfo(dtype).bits == 32 else 1e-13
    with minijax.enable_x64(True):
        a = matrix(*shape, dtype=dtype)
        linalg, lax = minijax.numpy.linalg, minijax.lax.linalg

        def unitary(u: Any) -> None:
            own = u.conj().swapaxes(-1, -2) @ u
            np.testing.assert_allclose(
                own, np.broadcast_to(np.eye(u.shape[-1]), own.shape), atol=bound
            )

        q, r = map(np.asarray, linalg.qr(a))
        unitary(q)
        np.testing.assert_allclose(q @ r, a, atol=10 * bound)
        assert not np.tril(r, -1).any()
        u, s, vh = map(np.asarray, linalg.svd(a, full_matrices=False))
        unitary(u)
        np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=10 * bound)
        factors, _, places = map(np.asarray, lax.lu(a))
        size = min(shape[-2:])
        lower = np.tril(factors[..., :size], -1) + np.eye(shape[-2], size)
        upper = np.triu(factors[..., :size, :])
        permuted = np.take_along_axis(a, places[..., None], -2)
        np.testing.assert_allclose(lower @ upper, permuted, atol=10 * bound)
        if shape[-1] == shape[-2]:
            t, z = map(np.asarray, lax.schur(a))
            unitary(z)
            np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=10 * bound)


def test_failures_are_nan() -> None:
    """Not an exception, and only for the matrices that fail."""
    good = np.eye(2, dtype=np.float32)
    both = np.stack([good, -good])
    factors = np.asarray(minijax.numpy.linalg.cholesky(both))
    assert np.array_equal(factors[0], good)
    assert np.isnan(factors[1][0, 0])
    assert_equal(lambda m, a: m.numpy.linalg.cholesky(a), both)
    bad = np.full((3, 3), np.nan, np.float32)
    for name in ("cholesky", "eigh", "eig", "inv", "det", "slogdet", "qr"):
        assert_equal(lambda m, a, n=name: getattr(m.numpy.linalg, n)(a), bad)


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "svd", "eigh", "eig"])
def test_empty_matrices_do_not_end_the_process(name) -> None:
    """LAPACK divides by their number of rows."""
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        a = np.zeros(shape, np.float32)
        out = getattr(minijax.lax.linalg, name)(minijax.numpy.asarray(a))
        for leaf in minijax.tree_util.tree_leaves(out):
            assert np.asarray(leaf).size == 0


WRONG: dict[str, Any] = {
    "not square": lambda m, a: m.numpy.linalg.cholesky(a),
    "inverse of a wide matrix": lambda m, a: m.numpy.linalg.inv(a),
    "determinant of a wide matrix": lambda m, a: m.numpy.linalg.det(a),
    "eigenvalues of a wide matrix": lambda m, a: m.numpy.linalg.eigh(a),
    "general eigenvalues": lambda m, a: m.numpy.linalg.eig(a),
    "svd of a vector": lambda m, a: m.numpy.linalg.svd(a[0]),
    "solve with too few": lambda m, a: m.numpy.linalg.solve(a[:, :2], a[0]),
    "mode of qr": lambda m, a: m.numpy.linalg.qr(a, mode="wrong"),
    "triangle of eigh": lambda m, a: m.numpy.linalg.eigh(a[:, :2], UPLO="x"),
    "both bounds of pinv": lambda m, a: m.numpy.linalg.pinv(a, 0.1, rcond=0.1),
    "method of slogdet": lambda m, a: m.numpy.linalg.slogdet(a[:, :2], method="x"),
    "least squares of other lengths": lambda m, a: m.numpy.linalg.lstsq(a, a[0]),
    "triangular_solve of other sizes": lambda m, a: m.lax.linalg.triangular_solve(
        a[:, :2], a.T, left_side=True
    ),
    "triangular_solve of other dtypes": lambda m, a: m.lax.linalg.triangular_solve(
        a[:, :2], a[:, :2].astype("int32")
    ),
    "lu of integers": lambda m, a: m.lax.linalg.lu(a.astype("int32")),
    "half precision": lambda m, a: m.numpy.linalg.cholesky(a[:, :2].astype("bfloat16")),
    "derivative of a full svd": lambda m, a: m.grad(
        lambda a: m.numpy.linalg.svd(a)[1].sum()
    )(a),
    "fft of no length": lambda m, a: m.numpy.fft.fft(a, n=0),
    "fft along one axis twice": lambda m, a: m.numpy.fft.fft2(a, axes=(0, 0)),
    "norm of fft": lambda m, a: m.numpy.fft.fft(a, norm="wrong"),
    "kind of fft": lambda m, a: m.lax.fft(a, "wrong", (3,)),
    "lengths of fft": lambda m, a: m.lax.fft(a, "FFT", (4,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_as_in_jax(name) -> None:
    """Before anything is launched: XLA checks no shapes."""
    kinds = []
    for library in LIBRARIES:
        a = library.numpy.asarray(matrix(2, 3, dtype=np.float32))
        with pytest.raises(Exception) as caught:
            WRONG[name](library, a)
        kinds.append(next(k for k in caught.type.__mro__ if k.__module__ == "builtins"))
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize(
    "name", "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn irfftn".split()
)
def test_fourier_transforms_are_those_of_jax(name) -> None:
    def transform(m: Any, a: Any, **options: Any) -> Any:
        return getattr(m.numpy.fft, name)(a, **options)

    single = name[-1] not in "2n"
    cut = {"n": 7, "axis": 1} if single else {"s": (3, 6), "axes": (0, 1)}
    real = name.startswith(("r", "ih"))
    for dtype in (np.float32,) if real else (np.float32, np.complex128):
        a = matrix(3, 4, 5, dtype=dtype)
        assert_equal(transform, a)
        assert_equal(lambda m, a: transform(m, a, norm="ortho", **cut), a)
        assert_equal(
            lambda m, a: m.grad(lambda a: m.numpy.abs(transform(m, a)).sum())(a), a
        )
    if name in ("irfft", "hfft", "irfft2", "irfftn"):
        for size in (0, 1):
            assert_equal(transform, a[:, :, :size])


def test_random_matrices_and_polynomials() -> None:
    key = 3
    covariance = positive(3, 3, dtype=np.float32)
    for method in ("cholesky", "eigh", "svd"):
        assert_equal(
            lambda m, c, how=method: m.random.multivariate_normal(
                m.random.key(key), m.numpy.zeros(3), c, (2,), method=how
            ),
            covariance,
        )
    assert_equal(lambda m: m.random.orthogonal(m.random.key(key), 2, (3,), m=4))
    for name, shape in (("orthogonal", (3, 4, 5)), ("delta_orthogonal", (3, 2, 4))):
        assert_equal(
            lambda m, n=name, s=shape: getattr(m.nn.initializers, n)(2.0)(
                m.random.key(key), s
            )
        )
    p = np.array([0, 1.0, 2, 3])
    assert_equal(lambda m, p: m.numpy.roots(p), p)
    assert_equal(lambda m, p: m.numpy.roots(p, strip_zeros=False), p)
    x = np.arange(6.0)
    for options in ({}, {"full": True}, {"cov": True}, {"cov": "unscaled", "w": x + 1}):
        assert_equal(
            lambda m, x, o=options: m.numpy.polyfit(x, m.numpy.sin(x), 2, **o), x
        )


def test_lapack_waits_for_its_first_use() -> None:
    """Importing minijax loads neither SciPy nor these modules."""
    code = (
        "import sys, minijax; assert 'scipy' not in sys.modules;"
        "assert 'minijax.programs.linear_algebra' not in sys.modules"
    )
    subprocess = importlib.import_module("subprocess")
    subprocess.run([importlib.import_module("sys").executable, "-c", code], check=True)
