"""Making arrays, as `jax.numpy` makes them."""

import re

import numpy as np
import pytest

from tests.numpy.programs import case, check

F = np.array([[0.5, -1.0, 2.5], [3.0, 0.25, -0.75]], np.float32)
I = np.array([[3, -2, 0], [1, 5, -3]], np.int32)  # noqa: E741
B = np.array([[True, False, True], [False, True, True]])
C = (F + 1j * F[::-1]).astype(np.complex64)
V = np.array([1.0, -2.0, 0.5], np.float32)
S = np.array([[4, 1, 0], [2, 3, 1], [0, 5, 2]], np.float32)
T = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ARRAYS = {"f": F, "i": I, "b": B, "c": C}


def call(name, *args, text=True, **options):
    label = f"{name}{args}{options or ''}".replace("\n", "")
    label = re.sub(r" at 0x\w+", "", label)[:70]  # the same in every process
    function = lambda np: getattr(np, name)(*args, **options)  # noqa: E731
    return case(label, function, text=text)


FILLED = [
    call(name, *args, **options)
    for name in ("zeros", "ones", "empty")
    for args, options in [
        (((2, 3),), {}),
        ((3,), {}),
        (((2,),), {"dtype": int}),
        ((2, 3), {}),
        (((-1,),), {}),
        (((2.5,),), {}),
        (([2, 3],), {}),
        ((np.array([2, 3]),), {}),
        (((2,),), {"dtype": "bfloat16"}),
        (((),), {}),
        ((iter([2]),), {}),
    ]
]
FILLED += [
    call("full", (2, 3), 2),
    call("full", (2, 3), 2.5),
    call("full", (2,), True, dtype="float32"),
    call("full", 3, 1j),
    call("full", (2,), [1, 2]),
    call("full", (2, 3), np.float32(2)),
    case("full of vector", lambda np, x: np.full((2, 3), x), V),
    case("full mismatch", lambda np, x: np.full((2,), x), F),
    call("zeros_like", 1.5),
    call("ones_like", [1.0]),
    call("full_like", 3, 2.5),
]
FILLED += [
    case(f"{n} {k}", lambda np, x, n=n: getattr(np, n)(x), ARRAYS[k])
    for n in ("zeros_like", "ones_like", "empty_like")
    for k in ARRAYS
]
FILLED += [
    case("zeros_like dtype", lambda np, x: np.zeros_like(x, dtype=int), F),
    case("zeros_like shape", lambda np, x: np.zeros_like(x, shape=(2,)), F),
    case("full_like", lambda np, x: np.full_like(x, 3), F),
    case("full_like ints", lambda np, x: np.full_like(x, 2.5), I),
    case("full_like vector", lambda np, x, y: np.full_like(x, y), F, V),
]


@pytest.mark.parametrize("one", FILLED)
def test_filled(one):
    check(one)


RANGES = [(3,), (2, 7), (1, 8, 2), (3.0,), (0, 1, 0.25), (5, 0, -2), (2.5,), (-3,)]
COUNTED = [call("arange", *args) for args in RANGES]
COUNTED += [
    call("arange", 3, dtype="float32"),
    call("arange", 0, 1, 0.1, dtype="bfloat16"),
    call("arange", np.int8(3)),
    call("arange", np.float32(2.5)),
    call("arange", 1j),
    call("arange", None),
    call("arange", "x"),
    call("arange", np.arange(2)),
    call("arange", 0, 5, 0),
    case("arange traced", lambda np, x: np.arange(x[0]), V),
]
ENDS = [(0, 1, 5), (0, 1), (0, 1, 1), (0, 1, 0), (2.0, -1.0, 4), (1j, 2, 3)]
COUNTED += [
    call("linspace", *args, **options)
    for args in ENDS
    for options in ({}, {"endpoint": False}, {"retstep": True})
]
COUNTED += [
    call("linspace", 0, 5, 4, dtype=int),
    call("linspace", 0, 1, -1),
    call("linspace", 0, 1, 3, dtype="bfloat16"),
    case("linspace axis", lambda np, x: np.linspace(x, 2, 4, axis=1), V),
    case("linspace last", lambda np, x: np.linspace(x, 2, 4, axis=-1), V),
    call("logspace", 0, 1, 3),
    call("logspace", 0, 1, 3, base=2),
    call("geomspace", 1, 8, 4),
    call("geomspace", -1, -8, 4),
    case("geomspace axis", lambda np, x: np.geomspace(x * x, 9, 3, axis=1), V),
]


@pytest.mark.parametrize("one", COUNTED)
def test_counted_and_spaced(one):
    check(one)


MATRICES = [
    call("eye", *args)
    for args in [(3,), (2, 3), (3, 3, 1), (3, 2, -1), (0,), (2, -1), (3, 3, 1.5)]
]
MATRICES += [call("tri", *args) for args in [(3,), (2, 3), (3, 3, 1), (3, 2, -1)]]
MATRICES += [call("identity", 3), call("eye", 2, dtype=int), call("tri", 2, dtype=int)]
MATRICES += [
    case(f"{n} {k}", lambda np, x, n=n, k=k: getattr(np, n)(x, k), S)
    for n in ("tril", "triu", "diag", "diagonal", "diagflat")
    for k in (1, -1)
]
MATRICES += [
    case(f"{n} {label}", lambda np, x, n=n: getattr(np, n)(x), x)
    for n in ("tril", "triu")
    for label, x in (("ints", I), ("bools", B), ("batch", T), ("vector", V))
]
MATRICES += [
    case("diag vector", lambda np, x: np.diag(x), V),
    case("diag vector 2", lambda np, x: np.diag(x, -2), V),
    case("diag scalar", lambda np, x: np.diag(x[0]), V),
    case("diag batch", lambda np, x: np.diag(x), T),
    case("diag square", lambda np, x: np.diag(x), S, text=False),
    case("diagonal axes", lambda np, x: np.diagonal(x, 1, -1, 0), T),
    case("diagonal of a vector", lambda np, x: np.diagonal(x), V),
    case("vander", lambda np, x: np.vander(x), V),
    case("vander up", lambda np, x: np.vander(x, 2, increasing=True), V),
    case("vander matrix", lambda np, x: np.vander(x), F),
    case("fill_diagonal", lambda np, x: np.fill_diagonal(x, 0, inplace=False), S),
    case("fill_diagonal in place", lambda np, x: np.fill_diagonal(x, 0), S),
    case("meshgrid", lambda np, x, y: np.meshgrid(x, y), V, V[:2]),
    case("meshgrid ij", lambda np, x, y: np.meshgrid(x, y, indexing="ij"), V, V[:2]),
    case("meshgrid sparse", lambda np, x: np.meshgrid(x, x, sparse=True), V),
    case("meshgrid ab", lambda np, x: np.meshgrid(x, x, indexing="ab"), V),
    case("meshgrid matrix", lambda np, x: np.meshgrid(x), F),
    call("indices", (2, 3)),
    call("indices", (2, 3), sparse=True),
    call("indices", (2,), dtype="float32"),
]


@pytest.mark.parametrize("one", MATRICES)
def test_matrices(one):
    check(one)


DATA = {
    "int": 1,
    "float": 2.5,
    "bool": True,
    "complex": 1j,
    "float32": np.float32(3),
    "float64": np.float64(3),
    "int8": np.int8(1),
    "int64 array": np.arange(3),
    "float64 array": np.array(1.5),
    "list": [1, 2.0],
    "nested": [[1], [2]],
    "empty": [],
    "mixed": [True, 2],
    "tuple": (1, 2),
    "None": None,
    "holds None": [1, None],
    "string": "a",
    "ragged": [1, [2]],
    "strings": np.array(["a"]),
    "huge": 2**40,
    "lowest": -(2**31),
    "dict": {1: 2},
    "arrays": [np.arange(2), np.arange(2)],
    "buffer": memoryview(b"abc"),
    "many": list(range(40)),
}
FROM_DATA = [
    case(f"{n} {k}", lambda np, n=n, v=v: getattr(np, n)(v))
    for n in ("array", "asarray")
    for k, v in DATA.items()
]
FROM_DATA += [
    case(f"float32 {k}", lambda np, v=v: np.array(v, dtype="float32"))
    for k, v in DATA.items()
]
FROM_DATA += [
    case("copy", lambda np, x: np.array(x), F),
    case("no copy", lambda np, x: np.array(x, copy=False), F),
    case("asarray", lambda np, x: np.asarray(x), F),
    case("to int", lambda np, x: np.array(x, dtype=int), F),
    case("ndmin", lambda np, x: np.array(x, ndmin=3), V),
    case("ndmin list", lambda np: np.array([1, 2], ndmin=2)),
    case("order", lambda np: np.array(1, order="C")),
    case("truncates", lambda np: np.array(1.7, dtype=int)),
    case("out of range", lambda np: np.array(300, dtype="int8")),
    case("complex to real", lambda np: np.array([1 + 2j], dtype="float32")),
    case("copy function", lambda np, x: np.copy(x), F),
    case("copy of a list", lambda np: np.copy([1])),
    case("rows", lambda np, x: np.array([x[0], x[1]]), F),
    case("traced elements", lambda np, x: np.array([[x[0, 0], 1], [2, 3.0]]), F),
    case("many traced", lambda np, x: np.array([x[0, 0]] * 40), F),
    case("frombuffer", lambda np: np.frombuffer(b"abcd", dtype="uint8")),
    case("fromfunction", lambda np: np.fromfunction(lambda i, j: i + j, (2, 3))),
]


@pytest.mark.parametrize("one", FROM_DATA)
def test_from_data(one):
    check(one)


CASTS = [
    case(f"{k} to {d}", lambda np, x, d=d: np.astype(x, d), ARRAYS[k])
    for k in "fibc"
    for d in ("float32", "int32", "bool", "complex64", "bfloat16", None, "uint8")
]
CASTS += [
    case("number", lambda np: np.astype(2, float)),
    case("no dtype", lambda np, x: np.astype(x, "foo"), F),
    case("copy", lambda np, x: np.astype(x, "float32", copy=True), F),
]


@pytest.mark.parametrize("one", CASTS)
def test_astype(one):
    check(one)


QUESTIONS = [
    call(name, value, text=False)
    for name in ("ndim", "shape", "size", "isscalar", "iscomplexobj", "isrealobj")
    for value in (1, 2.5, 1j, F, np.float32(1))
]
QUESTIONS += [
    call("size", F, axis=1, text=False),
    call("size", F, axis=(0, 1), text=False),
    call("issubdtype", np.float32, np.floating, text=False),
    case("result_type", lambda np: str(np.result_type("float32", 1)), text=False),
    case("promote", lambda np: str(np.promote_types("i1", "bfloat16")), text=False),
    call("can_cast", "int32", "float32", text=False),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("one", QUESTIONS)
def test_questions(one):
    check(one)


@pytest.mark.parametrize(
    "name", ["float32", "int32", "bool_", "bfloat16", "complex64", "uint8", "int4"]
)
def test_scalar_types(name):
    import jax.numpy

    import minijax.numpy

    ours, theirs = getattr(minijax.numpy, name), getattr(jax.numpy, name)
    assert np.dtype(ours) == np.dtype(theirs)
    assert ours.__name__ == theirs.__name__
    assert hash(ours) == hash(theirs)
    assert ours == np.dtype(theirs).type
    assert ours(1).dtype == theirs(1).dtype
    assert ours(1).shape == ()
    assert minijax.numpy.zeros(2, ours).dtype == np.dtype(theirs)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(2**32 - 1, "uint32"), (2**32, "uint32"), (2**31, "int32"), (2**40, "float32")],
)
def test_full_of_a_number_beyond_int32(value, dtype):
    import jax.numpy

    import minijax.numpy

    libraries = (minijax.numpy, jax.numpy)
    ours, theirs = (library.full((2,), value, dtype=dtype) for library in libraries)
    assert ours.dtype == theirs.dtype
    assert np.array_equal(np.asarray(ours), np.asarray(theirs))


def test_the_sharding_of_a_type_without_a_mesh_leaves_a_result_as_it_is():
    import minijax
    import minijax.numpy as mnp

    # Optax passes on `typeof(leaf).sharding`, whatever a leaf is.
    place = minijax.typeof(mnp.ones(3)).sharding
    assert place.mesh.empty
    key = minijax.random.key(0)
    drawn = minijax.random.normal(key, (3,), out_sharding=place)
    np.testing.assert_array_equal(drawn, minijax.random.normal(key, (3,)))
    for make in (mnp.zeros, mnp.ones, minijax.lax.full):
        name = "sharding" if make is minijax.lax.full else "out_sharding"
        value = (1.0,) if make is minijax.lax.full else ()
        assert make((3,), *value, **{name: place}).sharding.num_devices == 1
    with pytest.raises(ValueError, match="mesh is empty"):
        minijax.device_put(mnp.ones(3), place)
