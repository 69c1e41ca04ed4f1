"""Elementwise functions against `jax.numpy`: values, dtypes, weak types, jaxprs."""

import itertools

import numpy as np
import pytest

from tests.numpy.programs import case, check

F = np.array([[0.5, -1.0, 2.5], [3.0, 0.25, -0.75]], np.float32)
I = np.array([[3, -2, 0], [1, 5, -3]], np.int32)  # noqa: E741
U = np.array([[3, 0, 7], [1, 200, 2]], np.uint8)
B = np.array([[True, False, True], [False, True, True]])
H = F.astype(np.float16)
C = (F + 1j * F[::-1]).astype(np.complex64)
Z = np.array([[np.nan, np.inf, -np.inf], [0.0, -0.0, 1.0]], np.float32)
V = np.array([1.0, -2.0, 0.5], np.float32)

ARRAYS = {"f": F, "i": I, "u": U, "b": B, "h": H, "c": C, "z": Z, "v": V}
NUMBERS = {"2": 2, "1.5": 1.5, "True": True, "1j": 1j, "np2": np.float32(2)}

UNARY = """
    exp exp2 expm1 log log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh
    arcsinh arctanh asin acos atan asinh atanh arccosh acosh log2 log10 square
    reciprocal deg2rad rad2deg degrees radians sinc conjugate conj real imag angle
    iscomplex isreal floor ceil trunc rint round around modf isnan isfinite isinf
    isposinf isneginf nan_to_num signbit frexp spacing negative positive absolute abs
    fabs sign logical_not bitwise_not invert bitwise_invert bitwise_count i0
""".split()

BINARY = """
    add subtract multiply true_divide divide floor_divide remainder mod divmod fmod
    power pow float_power minimum maximum fmin fmax equal not_equal less less_equal
    greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor left_shift right_shift bitwise_left_shift bitwise_right_shift arctan2
    atan2 logaddexp logaddexp2 hypot isclose copysign heaviside nextafter ldexp gcd lcm
""".split()

# Programs whose text JAX makes from other primitives or an accident of its own.
NO_TEXT = {"i0", "bitwise_count", "nextafter", "gcd", "lcm"}


def unary(name, key):
    text = name not in NO_TEXT
    if key in NUMBERS:
        number = NUMBERS[key]
        return case(f"{name} {key}", lambda np: getattr(np, name)(number), text=text)
    return case(f"{name} {key}", lambda np, x: getattr(np, name)(x), ARRAYS[key])


def binary(name, left, right):
    label = f"{name} {left} {right}"
    text = name not in NO_TEXT
    if right in NUMBERS:
        number = NUMBERS[right]
        function = lambda np, x: getattr(np, name)(x, number)  # noqa: E731
        return case(label, function, ARRAYS[left], text=text)
    function = lambda np, x, y: getattr(np, name)(x, y)  # noqa: E731
    return case(label, function, ARRAYS[left], ARRAYS[right], text=text)


@pytest.mark.parametrize("one", [unary(n, k) for n in UNARY for k in "fibcz"])
def test_one_array(one):
    check(one)


@pytest.mark.parametrize("one", [unary(n, k) for n in UNARY for k in ("2", "1.5")])
def test_one_number(one):
    check(one)


PAIRS = ["ff", "fi", "ib", "cf", "fv", "zf"]


@pytest.mark.parametrize("one", [binary(n, *p) for n in BINARY for p in PAIRS])
def test_two_arrays(one):
    check(one)


WITH_NUMBER = [("f", "2"), ("i", "1.5"), ("u", "2"), ("b", "True"), ("h", "1.5")]


@pytest.mark.parametrize("one", [binary(n, *p) for n in BINARY for p in WITH_NUMBER])
def test_array_and_number(one):
    check(one)


ARGUMENTS = [
    case("power static", lambda np, x: np.power(x, 3), F),
    case("power negative", lambda np, x: np.power(x, -2), F),
    case("power integers", lambda np, x: np.power(x, -1), I),
    case("power float", lambda np, x: np.power(x, 2.0), F),
    case("power traced", lambda np, x, y: np.power(x, y), F, I),
    case("power reversed", lambda np, x: np.power(2, x), F),
    case("round 2", lambda np, x: np.round(x, 2), F),
    case("round -1", lambda np, x: np.round(x, -1), F),
    case("round complex", lambda np, x: np.round(x, 1), C),
    case("round half", lambda np, x: np.round(x, 2), H),
    case("round integers", lambda np, x: np.round(x, -1), I),
    case("round far", lambda np, x: np.round(x, 100), F),
    case("nan_to_num", lambda np, x: np.nan_to_num(x, nan=1, posinf=3.0), Z),
    case("isclose", lambda np, x: np.isclose(x, x, equal_nan=True), Z),
    case("isclose atol", lambda np, x, y: np.isclose(x, y, 0.1, 1.0), F, F * 1.01),
    case("angle deg", lambda np, x: np.angle(x, deg=True), C),
    case("list", lambda np: np.sin([1.0])),
    case("list in ufunc", lambda np, x: np.add([1.0], x), F),
    case("None", lambda np, x: np.add(x, None), F),
    case("out", lambda np, x: np.modf(x, out=1), F),
    case("out of ufunc", lambda np, x: np.add(x, x, out=1), F),
    case("where of ufunc", lambda np, x: np.add(x, x, where=x > 0), F),
    case("huge", lambda np, x: np.add(x, 2**40), F),
    case("wraps", lambda np, x: np.add(x, -1), U),
    case("shapes", lambda np, x, y: np.add(x, y), F, V[:2]),
]


@pytest.mark.parametrize("one", ARGUMENTS)
def test_arguments(one):
    check(one)


METHODS = [
    ("reduce", lambda u, x: u.reduce(x)),
    ("reduce axis", lambda u, x: u.reduce(x, axis=1, keepdims=True)),
    ("reduce all", lambda u, x: u.reduce(x, axis=None)),
    ("reduce out", lambda u, x: u.reduce(x, out=1)),
    ("outer", lambda u, x: u.outer(x[0], x[1])),
    ("at inplace", lambda u, x: u.at(x, 0, 2)),
]
REDUCED = "add multiply bitwise_or logical_and logical_or maximum minimum logaddexp"


@pytest.mark.parametrize(
    "one",
    [
        case(f"{n}.{m}", lambda np, x, n=n, f=f: f(getattr(np, n), x), I, text=False)
        for n, (m, f) in itertools.product(REDUCED.split(), METHODS)
    ],
)
def test_ufunc_methods(one):
    check(one)


SCATTERED = [
    case(
        f"{n}.at",
        lambda np, x, n=n: getattr(np, n).at(x, np.array([0, 0]), 2, inplace=False),
        I,
        text=False,
    )
    for n in ("add", "multiply", "subtract")
]


@pytest.mark.parametrize("one", SCATTERED)
def test_ufunc_at(one):
    check(one)
