"""Selection, series, differences and comparisons: as `jax.numpy`."""

import numpy as np
import pytest

from tests.numpy.programs import BM, B, C, E, H, I, J, M, N, T, U, V, case, check

K = np.array([0, -1, 4, 9], np.int32)

SELECTIONS = [
    case("where", lambda np, x: np.where(x > 1, x, 0), V),
    case("where arrays", lambda np, x: np.where(x > 1, x, -x), V),
    case("where floats", lambda np, x: np.where(x > 1, 1.0, 0.0), V),
    case("where ints", lambda np, x: np.where(x > 1, 1, 0), V),
    case("where broadcast", lambda np, x, c: np.where(c[:, None], x, x[0]), M, B),
    case("where scalar condition", lambda np, x: np.where(True, x, 0), V),
    case("where numbers", lambda np, x: np.where(x, 1.5, x), I),
    case("where mixed", lambda np, x, i: np.where(i > 0, i, x[:2, :3]), M, I),
    case("where half", lambda np, x: np.where(x > 0, x, 2.0), H),
    case("where shapes", lambda np, x: np.where(x, x, x[0]), M.T),
    case("where two", lambda np, x: np.where(x, x), V),
    case("where size", lambda np, x: np.where(x, x, x, size=2), V),
    case("where list", lambda np, x: np.where([True], x, x), V),
    case("where empty", lambda np, x: np.where(x > 0, x, 0), E),
    case("select", lambda np, x: np.select([x > 2, x > 0], [x, 2 * x]), V),
    case("select default", lambda np, x: np.select([x > 2], [x], default=7), I),
    case("select shapes", lambda np, x: np.select([x > 2], [x[0]], 1.5), M),
    case("select none", lambda np: np.select([], [])),
    case("select lengths", lambda np, x: np.select([x > 0], [x, x]), V),
    case("clip", lambda np, x: np.clip(x, 0, 2), V),
    case("clip min", lambda np, x: np.clip(x, min=0), I),
    case("clip max", lambda np, x: np.clip(x, max=2.5), I),
    case("clip arrays", lambda np, x: np.clip(x, x[::-1], 3), V),
    case("clip nothing", lambda np, x: np.clip(x), V),
    case("clip missing", lambda np: np.clip()),
    case("clip complex", lambda np, x: np.clip(x, 0, 1), C),
    *(
        case(f"choose {m}", lambda np, a, x, m=m: np.choose(a, [x, -x], mode=m), J, V)
        for m in ("wrap", "clip", "raise", "other")
    ),
    case("choose float", lambda np, x: np.choose(x, [x], mode="clip"), V),
    case(
        "piecewise",
        lambda np, x: np.piecewise(x, [x < 0, x > 2], [lambda v: -v, 5]),
        V,
    ),
    case(
        "piecewise default",
        lambda np, x: np.piecewise(x, [x < 0], [lambda v, k: k * v, np.sin], 3),
        V,
    ),
    case("piecewise counts", lambda np, x: np.piecewise(x, [x < 0], [1, 2, 3]), V),
]

TAKES = [
    *(
        case(
            f"take {mode}", lambda np, x, i, m=mode: np.take(x, i, axis=1, mode=m), M, K
        )
        for mode in (None, "fill", "clip", "wrap", "raise", "other")
    ),
    case("take flat", lambda np, x, i: np.take(x, i), M, K),
    case("take matrix", lambda np, x, i: np.take(x, i, axis=0), M, I),
    case("take scalar", lambda np, x: np.take(x, 1, axis=-1), T),
    case("take ints", lambda np, x, i: np.take(x, i, axis=0), I, K),
    case("take unsigned", lambda np, x, i: np.take(x, i), U, U),
    case("take fill value", lambda np, x, i: np.take(x, i, fill_value=-1), V, K),
    case("take empty", lambda np, x, i: np.take(x, i[:0]), V, K),
    case("take from empty", lambda np, x, i: np.take(x, i, axis=0), E, K),
    case("take float", lambda np, x: np.take(x, x), V),
    case("take out", lambda np, x, i: np.take(x, i, out=x), V, K),
    *(
        case(
            f"take_along_axis {mode}",
            lambda np, x, i, m=mode: np.take_along_axis(x, i, axis=1, mode=m),
            M,
            np.array([[0, -1], [7, 1], [2, 2]]),
        )
        for mode in (None, "fill", "clip", "promise_in_bounds", "one_hot")
    ),
    case(
        "take_along_axis argsort",
        lambda np, x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
        M,
    ),
    case(
        "take_along_axis argmax",
        lambda np, x: np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1),
        T,
    ),
    case("take_along_axis flat", lambda np, x, i: np.take_along_axis(x, i, None), M, K),
    case(
        "take_along_axis broadcast",
        lambda np, x, i: np.take_along_axis(x[:1], i[:, None, None], 2),
        T,
        B.astype(int),
    ),
    case("take_along_axis rank", lambda np, x, i: np.take_along_axis(x, i, 0), M, K),
    case("take_along_axis float", lambda np, x: np.take_along_axis(x, x, 0), M),
    case("take_along_axis vector", lambda np, x, i: np.take_along_axis(x, i, 0), V, K),
    case(
        "take_along_axis one hot",
        lambda np, x, i: np.take_along_axis(x, i, 0, mode="one_hot"),
        V,
        J,
    ),
    case(
        "put_along_axis",
        lambda np, x: np.put_along_axis(
            x, x[:, :1].astype(int) % 4, 9, 1, inplace=False
        ),
        M,
    ),
    case(
        "put_along_axis flat",
        lambda np, x, i: np.put_along_axis(x, i, 9, None, inplace=False),
        M,
        K,
    ),
    case(
        "put_along_axis inplace", lambda np, x, i: np.put_along_axis(x, i, 9, 0), V, K
    ),
    *(
        case(
            f"put {mode}",
            lambda np, x, i, m=mode: np.put(x, i, x[0, :2], mode=m, inplace=False),
            M,
            K,
        )
        for mode in (None, "clip", "wrap", "raise", "other")
    ),
    case("put inplace", lambda np, x, i: np.put(x, i, 1), V, K),
    case("place", lambda np, x, m: np.place(x, m, x[0, :2], inplace=False), M, BM),
    case("place sizes", lambda np, x, m: np.place(x, m, 1, inplace=False), M, B),
    case("place inplace", lambda np, x, m: np.place(x, m, 1), M, BM),
    case(
        "compress", lambda np, x: np.compress([True, False, True], x, 0), M, text=False
    ),
    case("compress size", lambda np, c, x: np.compress(c, x, 0, size=2), B, M),
    case(
        "compress fill",
        lambda np, c, x: np.compress(c, x, 0, size=3, fill_value=8),
        B,
        M,
    ),
    case("compress flat", lambda np, c, x: np.compress(c, x, size=3), B, M),
    case("compress beyond", lambda np, c, x: np.compress(c, x[:2], 0), B, M),
    case("compress large", lambda np, c, x: np.compress(c, x, 0, size=5), B, M),
    case("compress matrix", lambda np, c, x: np.compress(c, x, 0), BM, M),
    case("extract", lambda np, c, x: np.extract(c, x, size=4), BM, M),
]

SERIES = [
    case("interp", lambda np, x, p: np.interp(x, p, p**2), V, np.sort(V)),
    case("interp scalar", lambda np, p: np.interp(1.0, p, p**2), np.sort(V)),
    case(
        "interp ints",
        lambda np, x: np.interp(x, np.arange(4), np.arange(4)),
        J,
    ),
    case(
        "interp ends",
        lambda np, x, p: np.interp(x, p, p, -1, 1),
        V,
        np.sort(V)[1:3],
    ),
    case(
        "interp extrapolate",
        lambda np, x, p: np.interp(x, p, 2 * p, "extrapolate", "extrapolate"),
        V,
        np.sort(V)[1:3],
    ),
    case(
        "interp period",
        lambda np, x, p: np.interp(x, p, p, period=3.0),
        V,
        V,
    ),
    case("interp word", lambda np, x: np.interp(x, x, x, "left"), V),
    case("interp shapes", lambda np, x: np.interp(x, x, x[1:]), V),
    case("interp complex", lambda np, x: np.interp(x, x, x), C),
    case("polyval", lambda np, p, x: np.polyval(p, x), V, M),
    case("polyval scalar", lambda np, p: np.polyval(p, 2), J),
    case("polyval columns", lambda np, p, x: np.polyval(p, x[:4]), M, V),
    *(
        case(
            f"convolve {mode}", lambda np, x, y, m=mode: np.convolve(x, y, m), V, N[:1]
        )
        for mode in ("full", "same", "valid", "other")
    ),
    *(
        case(f"convolve 3 {m}", lambda np, x, y, m=m: np.convolve(x, y, m), V, M[0, :3])
        for m in ("full", "same", "valid")
    ),
    *(
        case(f"correlate {m}", lambda np, x, y, m=m: np.correlate(x, y, m), M[0, :3], V)
        for m in ("full", "same", "valid")
    ),
    case("convolve ints", lambda np, x: np.convolve(x, x), J),
    case("correlate complex", lambda np, x: np.correlate(x, x, "full"), C),
    case("convolve matrix", lambda np, x: np.convolve(x, x), M),
    case("convolve empty", lambda np, x: np.convolve(x, x[:0]), V),
    case(
        "convolve preferred",
        lambda np, x: np.convolve(x, x, preferred_element_type="float32"),
        H[0],
    ),
    case("cov", lambda np, x: np.cov(x), M),
    case("cov columns", lambda np, x: np.cov(x, rowvar=False), M),
    case("cov vector", lambda np, x: np.cov(x), V),
    case("cov two", lambda np, x: np.cov(x[0], x[1]), M),
    case("cov ints", lambda np, x: np.cov(x), I),
    case("cov bias", lambda np, x: np.cov(x, bias=True), M),
    case("cov ddof", lambda np, x: np.cov(x, ddof=0), M),
    case("cov complex", lambda np, x: np.cov(x), C),
    case(
        "cov weights",
        lambda np, x: np.cov(x, fweights=np.array([1, 2, 1, 3]), aweights=x[0]),
        M,
    ),
    case("cov fweights", lambda np, x: np.cov(x, fweights=x[0]), M),
    case("cov weight shape", lambda np, x: np.cov(x, aweights=x), M),
    case("cov weight length", lambda np, x: np.cov(x, aweights=x[0, :2]), M),
    case("cov three", lambda np, x: np.cov(x), T),
    case("cov empty", lambda np, x: np.cov(x), E),
    case("cov dtype", lambda np, x: np.cov(x, dtype="int32"), M),
    case("corrcoef", lambda np, x: np.corrcoef(x), M, text=False),
    case("corrcoef vector", lambda np, x: np.corrcoef(x), V, text=False),
    case("corrcoef complex", lambda np, x: np.corrcoef(x, x), C, text=False),
]

DIFFERENCES = [
    case("diff", lambda np, x: np.diff(x), M),
    case("diff 2", lambda np, x: np.diff(x, 2, axis=0), M),
    case("diff 0", lambda np, x: np.diff(x, 0), M),
    case("diff -1", lambda np, x: np.diff(x, -1), M),
    case("diff bool", lambda np, x: np.diff(x), B),
    case("diff edges", lambda np, x: np.diff(x, prepend=0, append=x), M),
    case("diff scalar", lambda np: np.diff(np.asarray(1.0))),
    case("ediff1d", lambda np, x: np.ediff1d(x), M),
    case("ediff1d ends", lambda np, x: np.ediff1d(x, to_end=x, to_begin=9), J),
    case("gradient", lambda np, x: np.gradient(x), M),
    case("gradient axis", lambda np, x: np.gradient(x, axis=1), M),
    case("gradient step", lambda np, x: np.gradient(x, 2.0, axis=0), I.T),
    case("gradient steps", lambda np, x: np.gradient(x, 2.0, 0.5), M),
    case("gradient places", lambda np, x: np.gradient(x, x**2 + 1), V),
    case("gradient count", lambda np, x: np.gradient(x, 1, 2, 3), M),
    case("gradient length", lambda np, x: np.gradient(x, x[1:]), V),
    case("gradient small", lambda np, x: np.gradient(x[:1]), V),
    case("gradient edge", lambda np, x: np.gradient(x, edge_order=2), V),
    case("trapezoid", lambda np, x: np.trapezoid(x), M),
    case("trapezoid ints", lambda np, x: np.trapezoid(x, dx=2), I),
    case("trapezoid places", lambda np, x: np.trapezoid(x, x[0]), M),
    case("trapezoid many", lambda np, x: np.trapezoid(x, x, axis=0), M),
    case("trapezoid steps", lambda np, x: np.trapezoid(x, dx=x[0, 1:]), M),
    case("unwrap", lambda np, x: np.unwrap(3 * x), V),
    case("unwrap ints", lambda np, x: np.unwrap(5 * x, period=4), J),
    case("unwrap discont", lambda np, x: np.unwrap(3 * x, discont=5.0), V),
    case("unwrap complex", lambda np, x: np.unwrap(x), C),
    case("allclose", lambda np, x: np.allclose(x, x + 1e-9), V),
    case("allclose nan", lambda np, x: np.allclose(x, x, equal_nan=True), N),
    case("allclose list", lambda np, x: np.allclose(x, [1]), V),
    case("array_equal", lambda np, x: np.array_equal(x, x), V),
    case("array_equal shapes", lambda np, x: np.array_equal(x, x[1:]), V),
    case("array_equal nan", lambda np, x: np.array_equal(x, x, equal_nan=True), N),
    case("array_equal list", lambda np: np.array_equal([1, 2], [1, 2])),
    case("array_equiv", lambda np, x: np.array_equiv(x, x[0]), M),
    case("array_equiv shapes", lambda np, x: np.array_equiv(x, x[1:]), V),
]


@pytest.mark.parametrize("one", SELECTIONS + TAKES + SERIES + DIFFERENCES)
def test_agrees_with_jax(one) -> None:
    check(one)
