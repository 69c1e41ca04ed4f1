"""Operators, methods, properties and `.at` of arrays and tracers, as in jax."""

import copy
import operator
import pickle

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from tests.numpy.programs import case, check

F = np.array([[0.5, -1.0, 2.5], [3.0, 0.25, -0.75]], np.float32)
I = np.array([[3, -2, 0], [1, 5, -3]], np.int32)  # noqa: E741
U = np.array([[3, 0, 7], [1, 200, 2]], np.uint8)
B = np.array([[True, False, True], [False, True, True]])
H = F.astype(np.float16)
C = (F + 1j * F[::-1]).astype(np.complex64)
V = np.array([1.0, -2.0, 0.5], np.float32)
S = np.array([[4, 1, 0], [2, 3, 1], [0, 5, 2]], np.float32)
ARRAYS = {"f": F, "i": I, "u": U, "b": B, "h": H, "c": C, "v": V}

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "divmod": divmod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OTHERS = {
    "2": 2,
    "2.5": 2.5,
    "-1": -1,
    "True": True,
    "1j": 1j,
    "huge": 2**40,
    "np.float32": np.float32(2),
    "np.int8": np.int8(3),
    "ndarray": np.arange(3.0),
    "list": [1],
    "str": "a",
    "None": None,
}


def beside(symbol, key, other):
    op, value = BINARY[symbol], OTHERS[other]
    return case(f"{key} {symbol} {other}", lambda np, x: op(x, value), ARRAYS[key])


def reflected(symbol, key, other):
    op, value = BINARY[symbol], OTHERS[other]
    return case(f"{other} {symbol} {key}", lambda np, x: op(value, x), ARRAYS[key])


@pytest.mark.parametrize("one", [beside(s, "f", o) for s in BINARY for o in OTHERS])
def test_beside_floats(one):
    check(one)


SOME = ("2", "2.5", "-1", "True", "np.float32")


@pytest.mark.parametrize(
    "one",
    [
        beside(s, k, o)
        for s in ("+", "*", "/", "**", "&", "==", "<", "//")
        for k in "iubhc"
        for o in SOME
    ],
)
def test_beside_others(one):
    check(one)


@pytest.mark.parametrize(
    "one",
    [
        reflected(s, k, o)
        for s in ("+", "-", "/", "**", "%", "|", "<")
        for k in "fi"
        for o in ("2", "2.5", "1j", "np.float32", "ndarray", "list")
    ],
)
def test_reflected(one):
    check(one)


@pytest.mark.parametrize(
    "one",
    [
        case(f"{a} {s} {b}", lambda np, x, y, s=s: BINARY[s](x, y), A, ARRAYS[b])
        for s in BINARY
        for a, A, b in [("f", F, "f"), ("f", F, "i"), ("f", F, "v"), ("i", I, "i")]
    ],
)
def test_two_arrays(one):
    check(one)


WEAK = [
    case(f"weak {s}", lambda np, s=s: BINARY[s](np.asarray(2.0), 3), text=False)
    for s in ("+", "*", "/", "-", "**", "<")
]
UNARY = [
    case(f"{n} {k}", lambda np, x, op=op: op(x), ARRAYS[k])
    for n, op in [
        ("neg", operator.neg),
        ("pos", operator.pos),
        ("abs", abs),
        ("invert", operator.invert),
        ("round", round),
    ]
    for k in "fiubc"
]
UNARY += [
    case("round 1", lambda np, x: round(x, 1), F),
    case("matmul", lambda np, x, y: x @ y, F, S),
    case("rmatmul", lambda np, x: F @ x, S),
    case("matmul list", lambda np, x: x @ [1], S),
    case("in", lambda np, x: x.__contains__(0.5), V),
    case("None in", lambda np, x: x.__contains__(None), V),
    case("in matrix", lambda np, x: x.__contains__(0.5), F),
    case("integer keys", lambda np, x: x[1] + x[-1], F),
    case("unpack", lambda np, x: (lambda a, b: a + b)(*x), F),
    case("iterate scalar", lambda np, x: list(x[0]), V),
    case("len", lambda np, x: len(x), F, text=False),
    case("len of scalar", lambda np, x: len(x[0]), V),
]


@pytest.mark.parametrize("one", WEAK + UNARY)
def test_other_operators(one):
    check(one)


def method(name, *args, x=F, text=True, **options):
    label = f".{name}{args}{options or ''}"[:60]
    function = lambda np, x: getattr(x, name)(*args, **options)  # noqa: E731
    return case(label, function, x, text=text)


METHODS = [
    *[method(n) for n in "sum prod max min mean var std all any ptp".split()],
    *[method(n, 1) for n in "sum max mean std cumsum cumprod argmax argmin".split()],
    method("sum", axis=0, keepdims=True),
    method("std", ddof=1),
    method("astype", "int32"),
    method("astype", bool),
    method("reshape", 3, 2),
    method("reshape", (3, 2)),
    method("reshape", -1),
    method("reshape", 4),
    method("reshape", 3, 2, order="F"),
    method("flatten"),
    method("ravel"),
    method("ravel", "F"),
    method("transpose"),
    method("transpose", 1, 0),
    method("transpose", (1, 0)),
    method("transpose", None),
    method("swapaxes", 0, 1),
    method("squeeze"),
    method("squeeze", 0),
    method("round", 1),
    method("clip", 0, 1),
    method("clip", max=1.0),
    method("conj", x=C),
    method("conjugate"),
    method("copy"),
    method("diagonal", x=S, text=False),
    method("diagonal", 1),
    method("trace", x=S),
    method("dot", S),
    method("repeat", 2),
    method("repeat", 2, axis=1),
    method("take", np.array([0, 2]), axis=1),
    method("sort"),
    method("argsort", axis=0),
    method("searchsorted", 0.3, x=np.sort(V), text=False),
    method("view", "int32"),
    method("view", "uint8", text=False),
    method("view", "float16", text=False),
    method("view", "float32", x=C, text=False),
    method("view", "complex64", x=F[:, :2], text=False),
    method("byteswap", x=I, text=False),
    method("item"),
    method("item", 2),
    method("tolist", text=False),
    method("sum", out=1),
    method("nonzero", size=2, text=False),
]
PROPERTIES = [
    case(f".{n} {k}", lambda np, x, n=n: getattr(x, n), ARRAYS[k])
    for n in ("T", "mT", "real", "imag", "flat", "shape", "ndim", "size")
    for k in "fcv"
]
PROPERTIES += [
    case(f".{n}", lambda np, x, n=n: getattr(x, n), F) for n in ("nbytes", "itemsize")
]


@pytest.mark.parametrize("one", METHODS + PROPERTIES)
def test_methods(one):
    check(one)


def updated(name, index, *args, x=F, text=True, **options):
    label = f".at[{index}].{name}{args}{options or ''}"[:60]
    function = lambda np, x: getattr(x.at[index], name)(*args, **options)  # noqa: E731
    return case(label, function, x, text=text)


COLUMN = (slice(None), 1)
TWICE = (np.array([0, 0]), np.array([1, 1]))
UPDATES = [
    *[
        updated(n, i, 2)
        for n in "set add subtract multiply mul divide power min max".split()
        for i in (0, COLUMN, TWICE)
    ],
    *[
        updated("set", (5, 0), 9, mode=m)
        for m in ("drop", "clip", "promise_in_bounds", "fill", "unknown")
        if m != "promise_in_bounds"
    ],
    updated("get", (0, 1)),
    updated("get", 9, mode="fill", fill_value=7),
    updated("get", 9, mode="clip"),
    updated("get", np.array([0, 9])),
    updated("apply", 0, abs, text=False),
    updated("set", (slice(0, 2), slice(None, None, 2)), 1.0),
    updated("set", 0, np.arange(3.0)),
    updated("set", 0, np.arange(2.0)),
    updated("add", 1, 2, x=I),
    updated("add", 1, 2.5, x=I),
    updated("set", -1, 1, x=V),
    updated("set", (0, 0, 0), 1),
    updated("set", 0.5, 1),
    updated("set", np.array([0]), 1, unique_indices=True, indices_are_sorted=True),
    updated("set", -1, 1, wrap_negative_indices=False),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("one", UPDATES)
def test_updates(one):
    check(one)


def test_numpy_on_the_left_defers():
    ours = np.arange(3.0, dtype=np.float32) + jnp.ones(3)
    assert isinstance(ours, minijax.Array)
    assert isinstance(np.float32(2) * jnp.ones(3), minijax.Array)
    traced = []
    minijax.jit(lambda x: traced.append(V - x) or x)(jnp.ones(3))
    assert not isinstance(traced[0], np.ndarray)


def test_numpy_functions_take_arrays():
    assert np.array_equal(np.sin(jnp.arange(3.0)), np.sin(np.arange(3.0, dtype="f")))
    assert np.add(jnp.ones(2), np.ones(2)).tolist() == [2.0, 2.0]


def test_item_assignment_names_the_way_out():
    x = jnp.ones(3)
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        x[0] = 1
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        minijax.jit(lambda x: operator.setitem(x, 0, 1))(x)


def test_scalars_convert():
    x = jnp.asarray(3)
    assert (int(x), float(x), complex(x), operator.index(x)) == (3, 3.0, 3 + 0j, 3)
    assert [0, 1, 2, 9][x] == 9
    assert bool(jnp.asarray(1.0)) and f"{jnp.asarray(2.5):.2f}" == "2.50"
    with pytest.raises(TypeError):
        operator.index(jnp.asarray(3.0))
    for truth in (bool, minijax.jit(bool)):
        with pytest.raises(ValueError, match="ambiguous"):
            truth(jnp.ones(2))
        with pytest.raises(ValueError, match="empty array"):
            truth(jnp.ones(0))


def test_iteration_gives_arrays_with_the_weak_type():
    rows = list(jnp.arange(6).reshape(3, 2))
    assert len(rows) == 3 and isinstance(rows[0], minijax.Array)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    weak = jnp.full(2, 1.5)
    assert next(iter(weak)).weak_type == next(iter(jax.numpy.full(2, 1.5))).weak_type


def test_unhashable_and_copied():
    x = jnp.ones(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert copy.deepcopy(x).tolist() == [1.0] * 3
    assert pickle.loads(pickle.dumps(x)).tolist() == [1.0] * 3


def test_namespace():
    assert jnp.ones(2).__array_namespace__() is jnp
    with pytest.raises(ValueError, match="only '2024.12' is"):
        jnp.ones(2).__array_namespace__(api_version="1999.1")


def test_version_of_the_array_api():
    assert jnp.__array_api_version__ == jax.numpy.__array_api_version__


@pytest.mark.parametrize("wide", [False, True])
def test_namespace_info(wide):
    """What the array API asks about devices, dtypes and capabilities, as in jax."""
    ours = jnp.__array_namespace_info__()
    theirs = jax.numpy.__array_namespace_info__()
    assert [str(each) for each in ours.devices()] == list(map(str, theirs.devices()))
    with minijax.enable_x64(wide), jax.enable_x64(wide):
        for name in ("default_device", "capabilities", "default_dtypes"):
            assert getattr(ours, name)() == getattr(theirs, name)()
        for kind in (None, "bool", "integral", ("real floating", "complex floating")):
            assert ours.dtypes(kind=kind) == theirs.dtypes(kind=kind)
    with pytest.raises(ValueError, match="isdtype: the kind 'large'"):
        ours.dtypes(kind="large")


def test_each_argument_error_names_function_and_position():
    with pytest.raises(TypeError, match="add requires ndarray.*at position 1.*asarray"):
        jnp.add(jnp.ones(2), [1, 2])
    with pytest.raises(TypeError, match="sum requires ndarray.*at position 0"):
        jnp.sum([1, 2])


def test_rank_promotion_flag():
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with minijax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        x + y
    with minijax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        x + y
    assert (x + y).shape == (2, 3)
