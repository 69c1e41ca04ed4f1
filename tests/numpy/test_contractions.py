"""Products of arrays, einsum and `linalg`: as `jax.numpy`."""

import numpy as np
import pytest

import minijax
from minijax.numpy.products.contraction_paths import find_path
from tests.numpy.programs import B, C, H, I, M, S, T, V, case, check

# Pairs of shapes for matmul: vectors, matrices, batches, axes of length one.
SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 2)),
    ((3, 4), (4, 2)),
    ((2, 3, 4), (4, 2)),
    ((2, 3, 4), (2, 4, 2)),
    ((1, 3, 4), (2, 4, 2)),
    ((2, 1, 3, 4), (2, 4, 2)),
    ((1, 1, 3, 4), (1, 4, 2)),
    ((2, 1, 3, 4), (1, 5, 4, 2)),
    ((3, 4), (5, 4, 2)),
    ((4,), (5, 4, 2)),
    ((5, 3, 4), (4,)),
    ((0, 3), (3, 2)),
    ((3, 4), (3, 4)),
    ((2, 3, 4), (3, 4, 2)),
]


def ones(shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape).astype(np.float32)


def pairs(name, function):
    return [
        case(f"{name} {a} {b}", lambda np, x, y: function(np, x, y), ones(a), ones(b))
        for a, b in SHAPES
    ]


DTYPES = {"int": I, "half": H, "bool": B, "complex": C, "float": V}

PRODUCTS = [
    *pairs("matmul", lambda np, x, y: np.matmul(x, y)),
    *pairs("dot", lambda np, x, y: np.dot(x, y)),
    *pairs("inner", lambda np, x, y: np.inner(x, y)),
    case("matmul scalar", lambda np, x: np.matmul(x, 2.0), M),
    case(
        "matmul preferred",
        lambda np, x: np.matmul(x, x, preferred_element_type=float),
        I[:, :2],
    ),
    case("matmul precision", lambda np, x: np.matmul(x, x, precision="highest"), S),
    case("matmul mixed", lambda np, x, y: np.matmul(x, y), S.astype(int), S),
    case("matmul half", lambda np, x, y: np.matmul(x, y), H, I[:, :2].astype(np.int8)),
    case("operator", lambda np, x: x @ x, S),
    case("dot scalar", lambda np, x: np.dot(x, 2), M),
    case("dot weak", lambda np: np.dot(2, 3.0)),
    case("dot 3", lambda np, x, y: np.dot(x, y), T, ones((2, 4, 5))),
    *(case(f"vdot {n}", lambda np, x: np.vdot(x, x), a) for n, a in DTYPES.items()),
    *(
        case(f"dot {n}", lambda np, x: np.dot(x[..., 0], 3), a)
        for n, a in DTYPES.items()
    ),
    *(case(f"outer {n}", lambda np, x: np.outer(x, x), a) for n, a in DTYPES.items()),
    *(case(f"kron {n}", lambda np, x: np.kron(x, x), a) for n, a in DTYPES.items()),
    case("kron ranks", lambda np, x, y: np.kron(x, y), M, V),
    case("kron scalar", lambda np, x: np.kron(x, 2), M),
    case("outer mixed", lambda np, x, y: np.outer(x, y), M, I),
    case("outer out", lambda np, x: np.outer(x, x, out=x), V),
    case("vdot mixed", lambda np, x, y: np.vdot(x, y[0]), B, I),
    case("vecdot", lambda np, x: np.vecdot(x, x), T),
    case("vecdot broadcast", lambda np, x, y: np.vecdot(x, y), T, M[0]),
    case("vecdot axis", lambda np, x: np.vecdot(x, x, axis=0), T),
    case("vecdot complex", lambda np, x: np.vecdot(x, x), C),
    case("vecdot wrong", lambda np, x: np.vecdot(x, x[:, :2]), M),
    case("matvec", lambda np, x: np.matvec(x, x[0]), M),
    case("vecmat", lambda np, x: np.vecmat(x[:, 0], x), M),
    case("inner scalar", lambda np, x: np.inner(x, 2), M),
    *(
        case(f"tensordot {axes}", lambda np, x, y, a=axes: np.tensordot(x, y, a), T, T)
        for axes in (
            0,
            1,
            2,
            3,
            4,
            (0, 0),
            ((0, 1), (0, 1)),
            ([2], [-1]),
            ((0,), (0, 1)),
        )
    ),
    case("tensordot default", lambda np, x: np.tensordot(x, x), M),
    case("tensordot words", lambda np, x: np.tensordot(x, x, "ij"), M),
    case("cross", lambda np, x: np.cross(x, x[::-1]), S),
    case("cross 2", lambda np, x: np.cross(x[:2], x[1:3]), I.T),
    case("cross 2 3", lambda np, x: np.cross(x[:, :2], x), S),
    case("cross axis", lambda np, x: np.cross(x, x[:, ::-1], axis=0), S),
    case("cross wrong", lambda np, x: np.cross(x, x), M),
    case("trace", lambda np, x: np.trace(x), S),
    case("trace offset", lambda np, x: np.trace(x, offset=1), M),
    case("trace axes", lambda np, x: np.trace(x, axis1=1, axis2=2), T),
    case("trace dtype", lambda np, x: np.trace(x, dtype=float), I),
    case("trace same", lambda np, x: np.trace(x, axis1=1, axis2=1), T),
    case("trace bool", lambda np, x: np.trace(x), np.eye(3, dtype=bool)),
]

EINSUMS = [
    ("ij,jk->ik", (M, T[0].T)),
    ("ij,jk", (M, T[0].T)),
    ("ij->ji", (M,)),
    ("ij->", (M,)),
    ("ij->i", (M,)),
    ("ii", (S,)),
    ("ii->i", (S,)),
    ("iij->ij", (np.stack([S, S + 1, S]),)),
    ("iii->i", (np.stack([S, S + 1, S]),)),
    ("i,j->ij", (V, V)),
    ("i,i->", (V, V)),
    ("i,i->i", (V, V)),
    ("ij,ij->i", (M, M)),
    ("bij,bjk->bik", (T, np.swapaxes(T, 1, 2))),
    ("bij,bjk->kib", (T, np.swapaxes(T, 1, 2))),
    ("...ij,...jk->...ik", (T, T[0].T)),
    ("...j,j", (T, M[0])),
    ("i...,i...", (M, M)),
    ("ij,k->i", (M, V)),
    ("ij,jj->i", (S, S)),
    ("ij,kl->", (M, M)),
    ("ij,j->ij", (S, S[:1, 0])),
    ("ij,jk,kl->il", (M, T[0].T, M)),
    ("ij,jk,kl,l->i", (M, T[0].T, M, M[0])),
    ("ab,bc,cd,de,ef->af", (M, T[0].T, M, T[0].T, M)),
    ("ab,bc,cd,de,ef,fa", (M, T[0].T, M, T[0].T, M, T[0].T)),
    ("a,b,c->abc", (V, V, V)),
    ("ij, jk -> ik", (M, T[0].T)),
    ("ij,jk->iz", (M, S)),
    ("ij,jk->ii", (M, S)),
    ("ij,jk", (M,)),
    ("ijk,jk", (M, M)),
    ("ij->i->j", (M,)),
    ("ij,jk->ik", (M, M)),
    ("i..j", (M,)),
    ("bij,bjk->bik", (T.astype(np.int32), np.swapaxes(T, 1, 2).astype(np.int8))),
    ("ij,jk->ik", (B[None], B[:, None])),
    ("ij->i", (np.eye(3, dtype=bool),)),
    ("i,i", (C, C)),
    ("ij->j", (H,)),
]

MORE = [
    *(
        case(f"einsum {n} {s}", lambda np, *x, s=s: np.einsum(s, *x), *arrays)
        for n, (s, arrays) in enumerate(EINSUMS)
    ),
    case("einsum lists", lambda np, x: np.einsum(x, [0, 1], x, [2, 1], [0, 2]), M),
    case("einsum lists dots", lambda np, x: np.einsum(x, [..., 1], [1, ...]), T),
    case("einsum implicit lists", lambda np, x: np.einsum(x, [1, 0]), M),
    case(
        "einsum False", lambda np, x: np.einsum("ij,jk,kl", x, x, x, optimize=False), S
    ),
    case("einsum True", lambda np, x: np.einsum("ij,jk,kl", x, x, x, optimize=True), S),
    case(
        "einsum path",
        lambda np, x: np.einsum("ij,jk,kl", x, x, x, optimize=[(0, 2), (0, 1)]),
        S,
    ),
    case(
        "einsum three",
        lambda np, x: np.einsum("ij,jk,kl", x, x, x, optimize=[(0, 1, 2)]),
        S,
    ),
    case(
        "einsum preferred",
        lambda np, x: np.einsum("ij,jk", x, x, preferred_element_type=np.float32),
        H,
    ),
    case("einsum out", lambda np, x: np.einsum("ij->ji", x, out=x), S),
    case("einsum weak", lambda np: np.einsum(",", 2.0, 3.0)),
    case("einsum_path", lambda np, x: np.einsum_path("ij,jk,k", x, x, x[0])[0], S),
]

NORMS = [
    *(
        case(f"vector {o}", lambda np, x, o=o: np.linalg.norm(x, o), V)
        for o in (None, 0, 1, 2, 3, 0.5, -1, np.inf, -np.inf, "fro")
    ),
    *(
        case(f"matrix {o}", lambda np, x, o=o: np.linalg.norm(x, o), M)
        for o in (None, 1, -1, np.inf, -np.inf, "fro", 3)
    ),
    *(
        case(
            f"matrix kept {o}",
            lambda np, x, o=o: np.linalg.norm(x, o, axis=(2, 0), keepdims=True),
            T,
        )
        for o in (None, 1, -1, np.inf, -np.inf)
    ),
    case("norm axis", lambda np, x: np.linalg.norm(x, axis=1), M),
    case("norm kept", lambda np, x: np.linalg.norm(x, axis=-1, keepdims=True), M),
    case("norm int", lambda np, x: np.linalg.norm(x), I),
    case("norm complex", lambda np, x: np.linalg.norm(x), C),
    case("norm three", lambda np, x: np.linalg.norm(x, axis=(0, 1, 2)), T),
    case("vector_norm", lambda np, x: np.linalg.vector_norm(x, axis=(0, 2)), T),
    case("vector_norm 3", lambda np, x: np.linalg.vector_norm(x, ord=3), T),
    case("vector_norm inf", lambda np, x: np.linalg.vector_norm(x, ord="inf"), T),
    case("matrix_norm", lambda np, x: np.linalg.matrix_norm(x), T),
    *(
        case(f"power {n}", lambda np, x, n=n: np.linalg.matrix_power(x, n), S)
        for n in (0, 1, 2, 3, 5, 8)
    ),
    case("power float", lambda np, x: np.linalg.matrix_power(x, 1.5), S),
    case("power not square", lambda np, x: np.linalg.matrix_power(x, 2), M),
    case("power vector", lambda np, x: np.linalg.matrix_power(x, 2), V),
    case("multi_dot", lambda np, x: np.linalg.multi_dot([x, x.T, x, x[0]]), M),
    case("multi_dot one", lambda np, x: np.linalg.multi_dot([x]), M),
    case("multi_dot wrong", lambda np, x: np.linalg.multi_dot([x, x]), M),
    case("multi_dot rank", lambda np, x: np.linalg.multi_dot([x, x]), T),
    case("cross", lambda np, x: np.linalg.cross(x, x[::-1]), S),
    case("outer", lambda np, x: np.linalg.outer(x, x), V),
    case("trace", lambda np, x: np.linalg.trace(x), T),
    case("diagonal", lambda np, x: np.linalg.diagonal(x), T),
    case("matmul", lambda np, x: np.linalg.matmul(x, x.T), M),
    case("tensordot", lambda np, x: np.linalg.tensordot(x, x), M),
    case("vecdot", lambda np, x: np.linalg.vecdot(x, x), M),
    case("transpose", lambda np, x: np.linalg.matrix_transpose(x), T),
    case(
        "vectorize",
        lambda np, x, y: np.vectorize(np.dot, signature="(n,m),(m)->(n)")(x, y[:, :4]),
        T,
        ones((2, 5)),
    ),
    case(
        "vectorize scalar", lambda np, x: np.vectorize(lambda a, b: a + b)(x, x[0]), M
    ),
    case(
        "vectorize excluded",
        lambda np, x: np.vectorize(lambda a, n: a * n, excluded=(1,))(x, 3),
        M,
    ),
    case("vectorize wrong", lambda np, x: np.vectorize(np.dot, signature="n->n")(x), V),
]


@pytest.mark.parametrize("one", PRODUCTS + MORE + NORMS)
def test_agrees_with_jax(one) -> None:
    check(one)


@pytest.mark.parametrize(
    "optimize", ["auto", "optimal", "branch-all", "branch-2", "greedy"]
)
@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 9, 11])
def test_paths_contract_everything(optimize: str, count: int) -> None:
    """Each path leaves one operand; a chain is never worse than left to right."""
    if optimize in ("optimal", "branch-all") and count > 6:
        count = 6
    letters = "abcdefghijklm"
    terms = [frozenset(letters[i : i + 2]) for i in range(count)]
    sizes = {letter: 2 + 3 * (i % 3) for i, letter in enumerate(letters)}
    output = frozenset({letters[0], letters[count]})
    path = find_path(optimize, terms, output, sizes)
    left = count
    for step in path:
        assert len(set(step)) == len(step) == 2
        assert max(step) < left
        left -= 1
    assert left == 1


def test_paths_are_those_of_opt_einsum() -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    random = np.random.default_rng(0)
    for _ in range(60):
        count = int(random.integers(2, 7))
        letters = "abcdefgh"
        terms = ["".join(random.choice(list(letters), 3, False)) for _ in range(count)]
        sizes = {letter: int(random.integers(2, 9)) for letter in letters}
        used = sorted(set("".join(terms)))
        output = "".join(letter for letter in used if random.random() < 0.4)
        shapes = [tuple(sizes[c] for c in term) for term in terms]
        subscripts = f"{','.join(terms)}->{output}"
        expected, _ = opt_einsum.contract_path(
            subscripts, *shapes, shapes=True, optimize="auto"
        )
        ours = find_path(
            "auto", [frozenset(t) for t in terms], frozenset(output), sizes
        )
        assert ours == [tuple(step) for step in expected], subscripts


def test_einsum_path_text_names_the_steps() -> None:
    path, text = minijax.numpy.einsum_path("ij,jk,kl->il", S, S, S)
    assert len(path) == 2
    assert "ij,jk,kl->il" in text
