"""Sums, extrema, moments, quantiles: values, dtypes, weak types and jaxprs of jax."""

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
Z = np.array([[np.nan, np.inf, 2.0], [0.5, np.nan, 1.0]], np.float32)
E = np.zeros((0, 3), np.float32)
ARRAYS = {"f": F, "i": I, "u": U, "b": B, "h": H, "c": C, "z": Z, "e": E}

ALL = """
    sum prod max min amax amin all any mean var std ptp count_nonzero average median
    argmax argmin nansum nanprod nanmax nanmin nanmean nanvar nanstd nanargmax nanargmin
    nanmedian cumsum cumprod nancumsum nancumprod
""".split()
RUNNING = {"cumsum", "cumprod", "nancumsum", "nancumprod"}


def reduction(name, key, **options):
    label = " ".join([name, key, *(f"{k}={v}" for k, v in options.items())])
    text = not (options.get("keepdims") and name in ("median", "nanmedian"))
    function = lambda np, x: getattr(np, name)(x, **options)  # noqa: E731
    return case(label, function, ARRAYS[key], text=text)


@pytest.mark.parametrize("one", [reduction(n, k) for n in ALL for k in "fibhczue"])
def test_dtypes(one):
    check(one)


@pytest.mark.parametrize("one", [reduction(n, "f", axis=1) for n in ALL])
def test_axis(one):
    check(one)


KEEPING = [n for n in ALL if n not in RUNNING]


@pytest.mark.parametrize(
    "one",
    [reduction(n, "f", axis=-1, keepdims=True) for n in KEEPING]
    + [reduction(n, "f", keepdims=True) for n in KEEPING],
)
def test_keepdims(one):
    check(one)


OPTIONS = [
    {"axis": (0, 1)},
    {"axis": ()},
    {"axis": 5},
    {"axis": (0, 0)},
    {"axis": (-1, 0)},
    {"out": 1},
    {"axis": 1.5},
]
SOME = "sum max mean var all any nansum nanmax".split()


@pytest.mark.parametrize(
    "one", [reduction(n, "f", **o) for n, o in itertools.product(SOME, OPTIONS)]
)
def test_options(one):
    check(one)


DTYPES = [
    reduction(n, k, dtype=d)
    for n in "sum prod mean var std nansum nanmean nanvar cumsum".split()
    for k, d in [("f", "float16"), ("i", "float32"), ("f", "int32"), ("b", "bool")]
]


@pytest.mark.parametrize("one", DTYPES)
def test_result_dtype(one):
    check(one)


MASKED = [
    case(f"{n} where", lambda np, x, w, n=n: getattr(np, n)(x, where=w), F, B)
    for n in "sum prod mean var std all any nansum nanmean nanvar nanstd max".split()
]
MASKED += [
    case("max where", lambda np, x, w: np.max(x, where=w, initial=0.0), F, B),
    case("min where axis", lambda np, x, w: np.min(x, 1, where=w, initial=9), F, B),
    case("nanmax where", lambda np, x, w: np.nanmax(x, where=w, initial=0), Z, B),
    case("where of ints", lambda np, x: np.sum(x, where=np.array([1, 0, 1])), F),
    case("initial", lambda np, x: np.sum(x, initial=3), F),
    case("initial of rank 1", lambda np, x: np.sum(x, initial=x[0]), F),
]


@pytest.mark.parametrize("one", MASKED)
def test_where_and_initial(one):
    check(one)


REST = [
    case("sum unpromoted", lambda np, x: np.sum(x, promote_integers=False), U),
    case("sum list", lambda np: np.sum([1.0, 2.0])),
    case("sum number", lambda np: np.sum(3)),
    case("var ddof", lambda np, x: np.var(x, ddof=1, axis=0), F),
    case("var correction", lambda np, x: np.var(x, correction=1), F),
    case("var both", lambda np, x: np.var(x, ddof=1, correction=1), F),
    case("var mean", lambda np, x: np.var(x, mean=np.mean(x)), F),
    case("var real of complex", lambda np, x: np.var(x, dtype=np.float32), C),
    case("std of ints", lambda np, x: np.std(x, dtype=np.int32), F),
    case("average weights", lambda np, x: np.average(x, weights=x), F),
    case("average along", lambda np, x: np.average(x, 1, x[0]), F),
    case("average shape", lambda np, x: np.average(x, weights=x[0]), F),
    case("average sum", lambda np, x: np.average(x, 1, x[0], returned=True), F),
    case("average plain sum", lambda np, x: np.average(x, 0, returned=True), F),
    case("cumulative_sum", lambda np, x: np.cumulative_sum(x[0]), U),
    case("cumulative_sum rank", lambda np, x: np.cumulative_sum(x), F),
    case("cumulative_sum scalar", lambda np: np.cumulative_sum(1.0)),
    case(
        "cumulative_sum initial",
        lambda np, x: np.cumulative_sum(x, axis=1, include_initial=True),
        F,
    ),
    case(
        "cumulative_prod initial",
        lambda np, x: np.cumulative_prod(x, axis=0, include_initial=True),
        F,
    ),
    case("argmax empty", lambda np, x: np.argmax(x), E),
    case("argmax keepdims", lambda np, x: np.argmax(x, 0, keepdims=True), F),
]


@pytest.mark.parametrize("one", REST)
def test_arguments(one):
    check(one)


METHODS = "linear lower higher midpoint nearest inverted_cdf unknown".split()
Q = np.array([0.2, 0.7], np.float32)
QUANTILES = [
    one
    for m in METHODS
    for one in (
        case(f"{m} 0.3", lambda np, x, m=m: np.quantile(x, 0.3, method=m), F),
        case(f"{m} q", lambda np, x, q, m=m: np.quantile(x, q, 1, method=m), F, Q),
        case(f"{m} nan", lambda np, x, m=m: np.nanquantile(x, 0.3, 1, method=m), Z),
        case(
            f"{m} keepdims",
            lambda np, x, m=m: np.percentile(x, 30, (0, 1), method=m, keepdims=True),
            F,
        ),
        case(
            f"{m} nan keepdims",
            lambda np, x, q, m=m: np.nanpercentile(x, q, 0, method=m, keepdims=True),
            Z,
            Q * 100,
        ),
    )
]
QUANTILES += [
    case(
        "weights",
        lambda np, x: np.quantile(x, 0.5, 1, weights=np.abs(x), method="inverted_cdf"),
        F,
    ),
    case(
        "weights along",
        lambda np, x: np.quantile(
            x, 0.5, 1, weights=np.abs(x[0]), method="inverted_cdf"
        ),
        F,
    ),
    case("weights linear", lambda np, x: np.quantile(x, 0.5, weights=x), F),
    case("complex", lambda np, x: np.quantile(x, 0.5), C),
    case("rank of q", lambda np, x: np.quantile(x, x), F),
    case("repeated axis", lambda np, x: np.quantile(x, 0.5, (0, 0)), F),
]


@pytest.mark.parametrize("one", QUANTILES)
def test_quantiles(one):
    plain = one.name.startswith(METHODS[0]) and "keepdims" not in one.name
    check(one._replace(text=plain and "nan" not in one.name))
