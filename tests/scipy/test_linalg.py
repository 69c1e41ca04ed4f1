"""scipy.linalg against jax: values, dtypes, batches, keywords, derivatives, errors."""

import inspect
import re
from typing import Any

import jax.scipy.linalg
import numpy as np
import pytest

import minijax.scipy.linalg
from tests.numpy.test_linalg import DTYPES, LIBRARIES, assert_equal, matrix, positive

ANY = ((3, 3), (5, 3), (2, 3, 5))
SQUARE = ((4, 4), (2, 4, 4))
ONE = ((4, 4),)
VECTOR = ((5,), (2, 5))
# Of each function: the kind of its argument, the shapes, and calls of it.
FUNCTIONS: dict[str, tuple[Any, Any, Any]] = {
    "cholesky": (positive, SQUARE, lambda m, a: [m.cholesky(a), m.cholesky(a, True)]),
    "cho_factor": (positive, SQUARE, lambda m, a: m.cho_factor(a, lower=True)[0]),
    "cho_solve": (
        positive,
        SQUARE,
        lambda m, a: [m.cho_solve(m.cho_factor(a, w), a[..., :2]) for w in (0, 1)],
    ),
    "cho_solve vector": (
        positive,
        SQUARE,
        lambda m, a: m.cho_solve(m.cho_factor(a), a.reshape(-1)[:4]),
    ),
    "arguments that nothing reads": (
        positive,
        ONE,
        lambda m, a: [
            m.cholesky(a, overwrite_a=np.asarray(True)),
            m.solve(a, a, check_finite=np.asarray(True), debug=[1]),
            m.qr(a, lwork=[1], mode="r"),
            m.eigh(a, type=np.int64(1), turbo=np.asarray(False), eigvals_only=True),
        ],
    ),
    "svd": (matrix, ANY, lambda m, a: [m.svd(a), m.svd(a, False), m.svd(a, True, 0)]),
    "det": (matrix, SQUARE, lambda m, a: m.det(a)),
    "inv": (matrix, SQUARE, lambda m, a: m.inv(a)),
    "eigh": (
        positive,
        SQUARE,
        lambda m, a: [m.eigh(a), m.eigh(a, lower=False, eigvals_only=True)],
    ),
    "schur": (matrix, SQUARE, lambda m, a: [m.schur(a), m.schur(a, "complex")]),
    "lu_factor": (matrix, ANY, lambda m, a: m.lu_factor(a)),
    "lu_solve": (
        matrix,
        SQUARE,
        lambda m, a: [m.lu_solve(m.lu_factor(a), a[..., :2], t) for t in (0, 1, 2)],
    ),
    "lu": (matrix, ((3, 3), (5, 3), (3, 5)), lambda m, a: [m.lu(a), m.lu(a, True)]),
    "qr": (matrix, ANY, lambda m, a: [m.qr(a), m.qr(a, mode="economic")]),
    "qr r": (matrix, ANY, lambda m, a: m.qr(a, mode="r")),
    "qr pivoting": (
        matrix,
        ANY,
        lambda m, a: [m.qr(a, pivoting=True), m.qr(a, mode="r", pivoting=True)],
    ),
    "qr_multiply": (
        matrix,
        ANY,
        lambda m, a: [
            m.qr_multiply(a, a.mT, pivoting=p, conjugate=c)
            for p in (False, True)
            for c in (False, True)
        ],
    ),
    "qr_multiply left": (
        matrix,
        ((3, 3), (5, 3)),
        lambda m, a: [
            m.qr_multiply(a, a[..., :3, :], "left"),
            m.qr_multiply(a, a[0], "left", conjugate=True),
        ],
    ),
    "solve": (
        positive,
        SQUARE,
        lambda m, a: [
            m.solve(a, a[..., :2], assume_a=kind) for kind in ("gen", "sym", "pos")
        ],
    ),
    "solve vector": (
        positive,
        ONE,
        lambda m, a: [m.solve(a, a[0], True, assume_a=kind) for kind in ("her", "pos")],
    ),
    "solve_triangular": (
        positive,
        SQUARE,
        lambda m, a: [
            m.solve_triangular(a, a[..., :2], trans=t, lower=w, unit_diagonal=u)
            for t, w, u in ((0, 0, 0), ("T", 1, 0), ("C", 0, 1), (2, 1, 0))
        ],
    ),
    "solve_triangular batch": (
        positive,
        SQUARE,
        lambda m, a: m.solve_triangular(a, a.reshape(-1, 4, 4)[0, 0], lower=True),
    ),
    "hessenberg": (
        matrix,
        SQUARE,
        lambda m, a: [m.hessenberg(a), m.hessenberg(a, calc_q=True)],
    ),
    "expm": (
        matrix,
        SQUARE,
        lambda m, a: [m.expm(a * s) for s in (1e-3, 0.1, 1, 4)],
    ),
    "expm triangular": (
        matrix,
        ONE,
        lambda m, a: m.expm(_triu(a), upper_triangular=True),
    ),
    "expm too large": (matrix, ONE, lambda m, a: m.expm(a * 100, max_squarings=2)),
    "expm_frechet": (
        matrix,
        SQUARE,
        lambda m, a: [m.expm_frechet(a, a.mT), m.expm_frechet(a, a, compute_expm=0)],
    ),
    "funm": (
        positive,
        ONE,
        lambda m, a: [m.funm(a / 9, lambda x: x**2 + 1), m.funm(a, abs, disp=False)],
    ),
    "sqrtm": (positive, ONE, lambda m, a: m.sqrtm(a)),
    "rsf2csf": (matrix, SQUARE, lambda m, a: m.rsf2csf(*m.schur(a))),
    "polar": (matrix, ((3, 3), (5, 3), (2, 4, 3)), lambda m, a: m.polar(a)),
    "polar left": (matrix, ((3, 5),), lambda m, a: m.polar(a, "left")),
    "polar svd": (
        matrix,
        ANY,
        lambda m, a: [m.polar(a, side, method="svd") for side in ("left", "right")],
    ),
    "solve_sylvester": (
        positive,
        SQUARE,
        lambda m, a: m.solve_sylvester(a, a[..., :2, :2], a[..., :2]),
    ),
    "solve_sylvester eigen": (
        positive,
        ONE,
        lambda m, a: [
            m.solve_sylvester(a, a, a, method="eigen"),
            m.solve_sylvester(a, -a, a),
        ],
    ),
    "eigh_tridiagonal": (
        matrix,
        ((6,), (25,), (1,)),
        lambda m, d: [
            # Vectors are unique up to their phase.
            [abs(x) for x in m.eigh_tridiagonal(d, d[1:])],
            m.eigh_tridiagonal(d, d[1:], eigvals_only=True, tol=0.01),
        ],
    ),
    "eigh_tridiagonal some": (
        matrix,
        ((6,),),
        lambda m, d: m.eigh_tridiagonal(d, d[1:], select="i", select_range=(1, 3)),
    ),
    "block_diag": (matrix, ONE, lambda m, a: m.block_diag(a, a[0], a[0, 0], a[:, :1])),
    "toeplitz": (
        matrix,
        VECTOR,
        lambda m, c: [m.toeplitz(c), m.toeplitz(c, c[..., :3])],
    ),
    "hankel": (matrix, VECTOR, lambda m, c: [m.hankel(c), m.hankel(c, c[..., :3])]),
    "circulant": (matrix, VECTOR, lambda m, c: m.circulant(c)),
    "companion": (matrix, VECTOR, lambda m, c: m.companion(c)),
    "fiedler": (matrix, VECTOR, lambda m, c: m.fiedler(c)),
    "fiedler_companion": (
        matrix,
        VECTOR,
        lambda m, c: [m.fiedler_companion(c[..., :n]) for n in (1, 2, 3, 4, 5)],
    ),
    "leslie": (matrix, VECTOR, lambda m, c: m.leslie(c, c[..., 1:])),
    "convolution_matrix": (
        matrix,
        VECTOR,
        lambda m, c: [
            m.convolution_matrix(c, n, mode)
            for n in (2, 5, 8)
            for mode in ("full", "valid", "same")
        ],
    ),
    "of a size": (
        matrix,
        ONE,
        lambda m, a: [
            m.hilbert(4), m.invhilbert(4), m.pascal(5), m.pascal(4, "lower"),
            m.pascal(4, "upper"), m.invpascal(5), m.invpascal(4, "lower"), m.dft(4),
            m.invpascal(4, "upper"), m.helmert(4), m.helmert(3, full=True),
            m.hadamard(8), m.hadamard(2, np.float32), m.dft(4, "n"), m.dft(5, "sqrtn"),
            m.dft(3, dtype=np.complex64), m.block_diag(),
        ],
    ),
}  # fmt: skip


def _triu(a: Any) -> Any:
    return a * np.triu(np.ones(a.shape, a.dtype))


def tolerance(name: str) -> float:
    """Iterations and products of many factors are compared to fewer digits."""
    loose = {"expm": 1e-4, "expm_frechet": 1e-4, "funm": 2e-4, "polar": 3e-5}
    loose |= {"solve_sylvester": 1e-4, "solve_sylvester eigen": 1e-4, "sqrtm": 1e-4}
    loose |= {"polar left": 3e-5, "of a size": 3e-5, "solve": 1e-4, "lu_solve": 1e-4}
    loose |= {"eigh_tridiagonal": 1e-4, "eigh_tridiagonal some": 1e-4}
    loose |= {"expm triangular": 1e-4, "cho_solve": 1e-4, "polar svd": 3e-5}
    return loose.get(name, 2e-5)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_jax(name) -> None:
    make, shapes, function = FUNCTIONS[name]
    for shape, dtype in zip(shapes, (np.float32, np.complex128, np.float64)):
        a = make(*shape, dtype=dtype)
        call = lambda m, a: function(m.scipy.linalg, a)
        assert_equal(call, a, exact=tolerance(name))


@pytest.mark.whole
@pytest.mark.parametrize(
    "name", "cholesky eigh hessenberg lu lu_factor qr schur svd".split()
)
def test_programs_have_the_names_of_jax(name) -> None:
    a, named = matrix(3, 3), []
    for m in LIBRARIES:
        function = getattr(m.scipy.linalg, name)
        assert function.__name__ == name
        text = str(m.make_jaxpr(lambda a, function=function: function(a))(a))
        named.append(re.findall(r"name=(\w+)", text)[:1])
    assert named[0] == named[1] != []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_every_dtype(name, dtype) -> None:
    make, shapes, function = FUNCTIONS[name]
    for shape in shapes:
        a = make(*shape, dtype=dtype)
        call = lambda m, a: function(m.scipy.linalg, a)
        assert_equal(call, a, exact=tolerance(name))


SMALL: dict[str, Any] = {
    "funm": lambda m, a: m.funm(a, abs, disp=False),
    "sqrtm": lambda m, a: m.sqrtm(a),
    "rsf2csf": lambda m, a: m.rsf2csf(a, a) if a.size else a,
    "expm": lambda m, a: m.expm(a),
    "solve_sylvester": lambda m, a: m.solve_sylvester(a, a, a),
    "polar": lambda m, a: m.polar(a),
    "polar from the left": lambda m, a: m.polar(a, "left"),
    "hessenberg": lambda m, a: m.hessenberg(a, calc_q=True),
    "qr_multiply": lambda m, a: m.qr_multiply(a, a),
}


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", SMALL)
def test_matrices_of_one_row_and_of_none(name, size) -> None:
    """Where jax refuses one (functions through an empty Schur form), both do."""
    a = np.full((size, size), 2, np.float32)
    results = []
    for library in LIBRARIES:
        try:
            results.append(SMALL[name](library.scipy.linalg, library.numpy.asarray(a)))
        except (IndexError, TypeError, ValueError):
            assert size == 0
            results.append("refused")
        except NotImplementedError:
            assert name == "polar from the left"
            results.append("refused")
    assert jax.tree.structure(results[0]) == jax.tree.structure(results[1])
    if "refused" in results:
        assert results == ["refused"] * 2
        return
    for ours, theirs in zip(*map(jax.tree.leaves, results), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)


def slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


SMOOTH = (
    *("cholesky", "cho_solve", "det", "inv", "lu", "qr", "solve", "solve vector"),
    *("solve_triangular", "expm", "polar", "polar svd", "lu_solve"),
    *("hankel", "companion", "block_diag", "toeplitz", "expm_frechet"),
    "convolution_matrix",
)


@pytest.mark.parametrize("dtype", [np.float64, slow(np.complex128)])
@pytest.mark.parametrize("name", [*SMOOTH[:-3], *map(slow, SMOOTH[-3:])])
def test_derivatives_are_those_of_jax(name, dtype) -> None:
    """Forward, and where jax has it in reverse; and of batches."""
    make, shapes, function = FUNCTIONS[name]
    a = make(*shapes[0], dtype=dtype) / 4
    direction = matrix(*shapes[0], dtype=dtype, seed=1)

    def forward(m: Any, a: Any, d: Any) -> Any:
        call = lambda a: m.tree_util.tree_leaves(function(m.scipy.linalg, a))
        return m.jvp(call, (a,), (d,))[1]

    def total(m: Any, a: Any) -> Any:
        leaves = m.tree_util.tree_leaves(function(m.scipy.linalg, a))
        return sum(m.numpy.sum(m.numpy.real(x) ** 2 + x.imag) for x in leaves)

    assert_equal(forward, a, direction, exact=1e-4)
    if not name.startswith("polar"):
        assert_equal(lambda m, a: m.grad(lambda a: total(m, a))(a), a, exact=1e-4)
    elif name == "polar":
        with pytest.raises(ValueError, match="everse"):
            minijax.grad(lambda a: total(minijax, a))(a)
    batch = np.stack([a, a + 0.1 * make(*shapes[0], dtype=dtype)])
    mapped = lambda m, a: m.vmap(lambda a: function(m.scipy.linalg, a))(a)
    assert_equal(mapped, batch, exact=1e-4)


def test_qdwh_is_that_of_jax() -> None:
    for dtype in (np.float32, np.complex128):
        a = matrix(5, 3, dtype=dtype)
        assert_equal(lambda m, a: m.lax.linalg.qdwh(a)[:2], a, exact=3e-5)
        assert_equal(
            lambda m, a: m.lax.linalg.qdwh(a, max_iterations=1, eps=0.1)[2:], a
        )


@pytest.mark.parametrize("name", dir(jax.scipy.linalg))
def test_parameters_are_those_of_jax(name) -> None:
    if not name.startswith("_"):
        ours, theirs = (
            inspect.signature(getattr(m.scipy.linalg, name)) for m in LIBRARIES
        )
        assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
            (p.name, p.kind, p.default) for p in theirs.parameters.values()
        ]


WRONG: dict[str, Any] = {
    "second matrix of eigh": lambda m, a: m.eigh(a[:, :2], a[:, :2]),
    "type of eigh": lambda m, a: m.eigh(a[:, :2], type=2),
    "eigvals of eigh": lambda m, a: m.eigh(a[:, :2], eigvals=(0, 1)),
    "output of schur": lambda m, a: m.schur(a[:, :2], "x"),
    "mode of qr": lambda m, a: m.qr(a, mode="x"),
    "mode of qr_multiply": lambda m, a: m.qr_multiply(a, a, "x"),
    "size of qr_multiply": lambda m, a: m.qr_multiply(a, a),
    "size of qr_multiply left": lambda m, a: m.qr_multiply(a, a[0], "left"),
    "kind of solve": lambda m, a: m.solve(a[:, :2], a, assume_a="x"),
    "solve of other sizes": lambda m, a: m.solve(a[:, :2], a.T, assume_a="pos"),
    "solve of a wide matrix": lambda m, a: m.solve(a, a, assume_a="pos"),
    "trans": lambda m, a: m.solve_triangular(a[:, :2], a, trans=3),
    "trans of lu_solve": lambda m, a: m.lu_solve(m.lu_factor(a[:, :2]), a, trans=3),
    "expm of a wide matrix": lambda m, a: m.expm(a),
    "expm_frechet": lambda m, a: m.expm_frechet(a, a),
    "funm": lambda m, a: m.funm(a, abs),
    "blocks of sqrtm": lambda m, a: m.sqrtm(a[:, :2], blocksize=2),
    "rsf2csf": lambda m, a: m.rsf2csf(a, a),
    "side of polar": lambda m, a: m.polar(a, "x"),
    "method of polar": lambda m, a: m.polar(a, "left", method="x"),
    "polar of a wide matrix": lambda m, a: m.polar(a),
    "polar of a vector": lambda m, a: m.polar(a[0]),
    "sizes of solve_sylvester": lambda m, a: m.solve_sylvester(a, a, a),
    "select": lambda m, a: m.eigh_tridiagonal(a[0], a[0, 1:], select="x"),
    "select v": lambda m, a: m.eigh_tridiagonal(a[0], a[0, 1:], select="v"),
    "no range": lambda m, a: m.eigh_tridiagonal(a[0], a[0, 1:], select="i"),
    "two dtypes": lambda m, a: m.eigh_tridiagonal(a[0], a[0, 1:].astype("int32")),
    "integers": lambda m, a: m.eigh_tridiagonal(*[a[0].astype("int32")] * 2),
    "block_diag": lambda m, a: m.block_diag(a[None]),
    "hankel of a number": lambda m, a: m.hankel(a[0, 0]),
    "leslie": lambda m, a: m.leslie(a[0], a[0]),
    "companion": lambda m, a: m.companion(a[0, :1]),
    "fiedler_companion": lambda m, a: m.fiedler_companion(a[0, :0]),
    "convolution_matrix": lambda m, a: m.convolution_matrix(a[0], 0),
    "mode of convolution_matrix": lambda m, a: m.convolution_matrix(a[0], 2, "x"),
    "kind of pascal": lambda m, a: [m.pascal(3, "x")],
    "kind of invpascal": lambda m, a: [m.invpascal(3, "x")],
    "helmert": lambda m, a: m.helmert(0),
    "hadamard": lambda m, a: m.hadamard(3),
    "scale of dft": lambda m, a: m.dft(3, "x"),
    "dtype of dft": lambda m, a: m.dft(3, dtype=np.float32),
    "array for lu_solve": lambda m, a: m.lu_solve(np.eye(3), a[0, 0]),
    "None for cho_solve": lambda m, a: m.cho_solve(None, a[0, 0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_as_in_jax(name) -> None:
    kinds = []
    for library in LIBRARIES:
        a = library.numpy.asarray(matrix(2, 3, dtype=np.float32))
        with pytest.raises(Exception) as caught:
            WRONG[name](library.scipy.linalg, a)
        kinds.append(next(k for k in caught.type.__mro__ if k.__module__ == "builtins"))
    assert kinds[0] is kinds[1]


def test_factors_that_are_no_pair() -> None:
    with pytest.raises(ValueError, match="lu_and_piv is the pair that lu_factor ret"):
        minijax.scipy.linalg.lu_solve(np.eye(3), np.ones(3))
    with pytest.raises(TypeError, match="c_and_lower is the pair that cho_factor ret"):
        minijax.scipy.linalg.cho_solve(None, np.ones(3))
