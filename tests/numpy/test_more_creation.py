"""Windows, grids written as indices, polynomials, bits and interchange, as in jax."""

import io
import re

import jax.numpy
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from tests.numpy.programs import case, check

V = np.array([1.0, -2.0, 0.5], np.float32)
W = np.array([2.0, 0.25], np.float32)
Z = np.array([0.0, 0.0, 3.0, 0.0, 1.0, 0.0], np.float32)
I = np.array([3, -2, 0], np.int32)  # noqa: E741
F = np.arange(6, dtype=np.float32).reshape(2, 3)
BITS = np.array([[1, 0, 0, 1, 1, 1, 0, 0, 1, 0], [0] * 10], np.int32)
BYTES = np.array([[3, 200], [255, 0]], np.uint8)

WINDOWS = [
    case(f"{n} {m}", lambda np, n=n, m=m: getattr(np, n)(m))
    for n in ("bartlett", "blackman", "hamming", "hanning")
    for m in (0, 1, 2, 7)
]
WINDOWS += [case(f"kaiser {m}", lambda np, m=m: np.kaiser(m, 3.0)) for m in (1, 7)]


@pytest.mark.parametrize("one", WINDOWS)
def test_windows(one):
    check(one)


GRIDS = [
    case("mgrid", lambda np: np.mgrid[0:3]),
    case("mgrid 2", lambda np: np.mgrid[0:3, 1:2:0.5]),
    case("mgrid points", lambda np: np.mgrid[0:1:5j, 0:2]),
    case("mgrid nothing", lambda np: np.mgrid[()]),
    case("ogrid", lambda np: np.ogrid[:2, 0:1:3j]),
    case("r_", lambda np: np.r_[1:4, 0, 4]),
    case("r_ points", lambda np: np.r_[-1:1:3j, [0.5] * 2]),
    case("r_ matrix", lambda np, x: np.r_["r", x, x], V),
    case("r_ column", lambda np, x: np.r_["c", x, x], V),
    case("r_ directive", lambda np, x: np.r_["0,2", x, x], V),
    case("r_ trans", lambda np, x: np.r_["1,2,0", x, x], V),
    case("r_ nonsense", lambda np, x: np.r_["x,y", x], V),
    case("r_ late directive", lambda np, x: np.r_[x, "0,2"], V),
    case("c_", lambda np, x: np.c_[x, x], V),
    case("c_ matrix", lambda np, x: np.c_[x, x], F),
    case("s_", lambda np, x: x[np.s_[1:, ::2]], F),
    case("traced slice", lambda np, x: np.mgrid[0 : x[0]], V),
]


@pytest.mark.parametrize("one", GRIDS)
def test_grids(one):
    check(one)


POLYNOMIALS = [
    case("poly", lambda np, x: np.poly(x), V, text=False),
    case("poly of a matrix", lambda np, x: np.poly(x[:2, :2]), F, text=False),
    case("poly of nothing", lambda np, x: np.poly(x[:0]), V, text=False),
    case("polyadd", lambda np, x, y: np.polyadd(x, y), V, W),
    case("polyadd longer", lambda np, x, y: np.polyadd(y, x), V, W),
    case("polysub", lambda np, x, y: np.polysub(x, y), V, I),
    case("polymul", lambda np, x, y: np.polymul(x, y), V, W, text=False),
    case(
        "polymul trim",
        lambda np, x, y: np.polymul(x, y, trim_leading_zeros=True),
        Z,
        W,
        text=False,
    ),
    case("polydiv", lambda np, x, y: np.polydiv(x, y), V, W),
    case("polydiv short", lambda np, x, y: np.polydiv(y, x), V, W),
    case(
        "polydiv trim",
        lambda np, x, y: np.polydiv(x, y, trim_leading_zeros=True),
        V,
        W,
        text=False,
    ),
    case("polyint", lambda np, x: np.polyint(x), V),
    case("polyint 2", lambda np, x: np.polyint(x, 2, np.array([1.0, 2.0])), V),
    case("polyint k", lambda np, x: np.polyint(x, 2, 3), I),
    case("polyint shape", lambda np, x: np.polyint(x, 2, x), V),
    case("polyint negative", lambda np, x: np.polyint(x, -1), V),
    case("polyder", lambda np, x: np.polyder(x), V),
    case("polyder 2", lambda np, x: np.polyder(x, 2), I),
    case("polyder 0", lambda np, x: np.polyder(x, 0), V),
    case("polyder negative", lambda np, x: np.polyder(x, -1), V),
    case("trim_zeros", lambda np, x: np.trim_zeros(x), Z),
    case("trim_zeros f", lambda np, x: np.trim_zeros(x, "f"), Z, text=False),
    case("trim_zeros b", lambda np, x: np.trim_zeros(x, "b"), Z, text=False),
    case("trim_zeros all", lambda np, x: np.trim_zeros(x[:2]), Z, text=False),
    case("trim_zeros axis", lambda np, x: np.trim_zeros(x, axis=0), F, text=False),
]


@pytest.mark.parametrize("one", POLYNOMIALS)
def test_polynomials(one):
    check(one)


PACKED = [
    case("packbits", lambda np, x: np.packbits(x), BITS),
    case("packbits axis", lambda np, x: np.packbits(x, axis=1), BITS),
    case("packbits rows", lambda np, x: np.packbits(x, axis=0), BITS),
    case("packbits little", lambda np, x: np.packbits(x, bitorder="little"), BITS),
    case("packbits floats", lambda np, x: np.packbits(x), F),
    case("packbits order", lambda np, x: np.packbits(x, bitorder="x"), BITS),
    case("unpackbits", lambda np, x: np.unpackbits(x), BYTES),
    case("unpackbits axis", lambda np, x: np.unpackbits(x, axis=1), BYTES),
    case("unpackbits rows", lambda np, x: np.unpackbits(x, axis=0), BYTES),
    case("unpackbits few", lambda np, x: np.unpackbits(x, count=5), BYTES),
    case("unpackbits many", lambda np, x: np.unpackbits(x, count=40), BYTES),
    case("unpackbits less", lambda np, x: np.unpackbits(x, count=-3), BYTES),
    case("unpackbits ints", lambda np, x: np.unpackbits(x), I),
]


@pytest.mark.parametrize("one", PACKED)
def test_bits(one):
    check(one._replace(text=False))


def test_frompyfunc():
    def ours_and_theirs(call):
        ours = call(jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1), jnp)
        theirs = call(jax.numpy.frompyfunc(lambda x, y: 2 * x + y, 2, 1), jax.numpy)
        assert np.array_equal(ours, theirs)

    ours_and_theirs(lambda f, np: f(np.arange(3), 1))
    ours_and_theirs(lambda f, np: f.reduce(np.arange(4)))
    ours_and_theirs(lambda f, np: f.accumulate(np.arange(6).reshape(2, 3), axis=1))
    ours_and_theirs(lambda f, np: f.outer(np.arange(2), np.arange(3)))
    ours_and_theirs(
        lambda f, np: f.at(np.arange(3), np.array([0, 0]), 5, inplace=False)
    )


REDUCEAT = [
    case(
        f"{n} {axis}",
        lambda np, x, i, n=n, a=axis: getattr(np, n).reduceat(x, i, axis=a),
        np.arange(24).reshape(4, 6),
        np.array([0, 3, 1, 3]),
        text=False,
    )
    for n in ("add", "maximum", "subtract")
    for axis in (0, 1)
]
REDUCEAT += [
    case("scalar", lambda np: np.add.reduceat(1, np.array([0]))),
    case("matrix", lambda np, x: np.add.reduceat(x, x), np.eye(2, dtype=int)),
    case("axes", lambda np, x: np.add.reduceat(x, np.array([0]), axis=None), V),
]


@pytest.mark.parametrize("one", REDUCEAT)
def test_reduceat(one):
    check(one)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_late_arguments_of_array():
    assert jnp.array([1], None, True, "K", 2).shape == (1, 1)
    with pytest.raises(TypeError, match="multiple values"):
        jnp.array([1], None, True, ndmin=2)
    with pytest.raises(TypeError, match="at most 5"):
        jnp.array([1], None, True, "K", 2, 3)


def test_print_options_are_numpys():
    with jnp.printoptions(precision=2):
        assert str(jnp.asarray([1 / 3])) == "[0.33]"


def test_load_and_save():
    for dtype in ("float32", "bfloat16", "int8"):
        file = io.BytesIO()
        jnp.save(file, jnp.arange(3).astype(dtype))
        file.seek(0)
        loaded = jnp.load(file)
        assert isinstance(loaded, minijax.Array)
        assert loaded.dtype == dtype and loaded.tolist() == [0, 1, 2]


CAPSULES = {
    "nothing": {},
    "an old version": {"max_version": (0, 8)},
    "a new version": {"max_version": (1, 0)},
    "no copy": {"copy": False},
    "a copy": {"copy": True},
    "the same device": {"dl_device": (1, 0)},
    "another device": {"dl_device": (2, 0)},
    "an unknown argument": {"where": 1},
}


@pytest.mark.whole
@pytest.mark.parametrize("name", CAPSULES)
def test_dlpack_capsules_as_in_jax(name):
    """With each argument of `__dlpack__`, and dtypes that NumPy does not have."""
    for dtype in ("float32", "bool", "complex64", "int8", "bfloat16"):
        kinds = []
        for library in (jnp, jax.numpy):
            try:
                capsule = library.ones((2, 3), dtype).__dlpack__(**CAPSULES[name])
                kinds.append(re.sub(r" at .*", "", repr(capsule)))
            except Exception as error:
                kinds.append(type(error).__name__)
        assert kinds[0] == kinds[1]


def test_dlpack_shares_memory_unless_asked_for_a_copy():
    class Taker:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **options):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    x = jnp.arange(1000.0)
    address = x.unsafe_buffer_pointer()
    for copy, same in ((None, True), (False, True), (True, False)):
        taken = np.from_dlpack(Taker(x.__dlpack__(copy=copy)))
        assert taken.tolist() == x.tolist()
        assert (taken.ctypes.data == address) is same


def test_dlpack_both_ways():
    x = np.arange(3, dtype=np.float32)
    ours = jnp.from_dlpack(x)
    assert isinstance(ours, minijax.Array) and ours.tolist() == [0.0, 1.0, 2.0]
    assert np.from_dlpack(jnp.arange(3)).tolist() == [0, 1, 2]
    assert jnp.from_dlpack(jnp.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="__dlpack__"):
        jnp.from_dlpack([1, 2])


def test_what_cannot_be_traced_names_the_way_out():
    for name in ("fromfile", "fromiter"):
        with pytest.raises(NotImplementedError, match=rf"jnp\.asarray\(np\.{name}"):
            getattr(jnp, name)(iter([1.0]), float)
    assert jnp.fromstring("1 2", sep=" ").tolist() == [1.0, 2.0]
