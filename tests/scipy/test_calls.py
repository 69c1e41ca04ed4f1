"""scipy.special and scipy.stats against jax: values, dtypes, derivatives."""

import importlib
import inspect

import jax
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import pytest
import scipy.special

minijax = pytest.importorskip("minijax")

ODD = [0.0, -0.0, 1.0, -1.0, -2.5, 0.3, 7.9, 8.0, 30.0, np.inf, -np.inf, np.nan]
REAL = np.concatenate([ODD, np.linspace(-12, 12, 25)]).astype(np.float32)
POSITIVE = np.array([1e-3, 0.2, 0.5, 1.0, 2.5, 8.0, 9.5, 40.0], np.float32)
UNIT = np.array([0, 1e-6, 0.01, 0.3, 0.5, 0.86, 0.9, 0.9999, 1], np.float32)
WHOLE = np.arange(-2, 9, dtype=np.int32)
EXPONENTS = np.array(
    [-30, -4, -1, -0.3, -1e-4, 0, 1e-4, 0.4, 1, 1.1, 5, 20, 39, 41, 60, np.nan],
    np.float32,
)
PAIR = (POSITIVE[:, None], POSITIVE)

SPECIAL = {
    "gammasgn": [REAL], "gamma": [REAL], "loggamma": [POSITIVE], "factorial": [WHOLE],
    "comb": [WHOLE[:, None], WHOLE], "poch": PAIR, "betaln": PAIR, "beta": PAIR,
    "betainc": [2.0, 3.0, UNIT], "gammainc": PAIR,
    "gammaincc": PAIR,
    "polygamma": [2, POSITIVE], "zeta": [POSITIVE + 1, POSITIVE], "i0": [REAL],
    "i0e": [REAL], "i1": [REAL], "i1e": [REAL], "multigammaln": [POSITIVE + 2, 3],
    "boxcox": PAIR, "boxcox1p": PAIR, "entr": [REAL], "kl_div": [UNIT[:, None], UNIT],
    "rel_entr": [UNIT[:, None], UNIT], "ndtr": [REAL], "ndtri": [UNIT],
    "log_ndtr": [REAL], "softmax": [POSITIVE], "log_softmax": [POSITIVE],
    "bernoulli": [9], "expi": [EXPONENTS], "exp1": [EXPONENTS],
    "dawsn": [REAL], "erfcx": [REAL], "spence": [np.delete(REAL, 9)],
    "wofz": [np.append(REAL[:9], REAL[12:])[:, None] + 1j * REAL[12:]],
    "sici": [REAL], "expn": [WHOLE[2:, None], np.append(POSITIVE, [-1, np.nan])],
    "bessel_jn": [REAL],
}  # fmt: skip
STATS = {
    "norm": [], "uniform": [], "beta": [2.0, 3.5], "gamma": [2.5], "expon": [],
    "laplace": [], "logistic": [], "t": [3.0], "poisson": [2.5], "bernoulli": [0.3],
}  # fmt: skip
CALLS = [
    (distribution, name)
    for distribution in STATS
    for name in dir(getattr(jax.scipy.stats, distribution))
    if not name.startswith("_")
]


def of(library, path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{library}.scipy.{module}"), name)


# Arguments by name; with more steps the recurrence of bessel_jn overflows float32.
KEYWORDS = {"special.bessel_jn": {"v": 3, "n_iter": 14}}


def assert_alike(path, args, tolerance=3e-6):
    named = KEYWORDS.get(path, {})
    both = [of(library, path)(*args, **named) for library in ("minijax", "jax")]
    assert isinstance(both[0], tuple) == isinstance(both[1], tuple)
    for ours, theirs in zip(*map(jax.tree.leaves, both), strict=True):
        assert ours.dtype == theirs.dtype and ours.weak_type == theirs.weak_type
        np.testing.assert_allclose(ours, theirs, tolerance, 1e-7)


@pytest.mark.parametrize("name", SPECIAL)
def test_special(name):
    assert_alike(f"special.{name}", SPECIAL[name], 2e-5)
    ours, theirs = (of(lib, f"special.{name}") for lib in ("minijax", "jax"))
    assert list(inspect.signature(ours).parameters) == list(
        inspect.signature(theirs).parameters
    )


# At these points the derivative is a finite number in jax.
@pytest.mark.parametrize(
    "name",
    "betaln ndtr ndtri log_ndtr entr gamma boxcox i1 expi dawsn erfcx spence".split(),
)
@pytest.mark.parametrize("at", [0.2, 0.7, 0.95])
def test_derivatives_of_special(name, at):
    rest = SPECIAL[name][1:] and [np.float32(9.0)]
    for order in (1, 2):
        values = []
        for library in (minijax, jax):
            f = of(library.__name__, f"special.{name}")
            for _ in range(order):
                f = library.grad(f)
            values.append(f(np.float32(at), *rest))
        np.testing.assert_allclose(*values, 1e-4)


# Close to 1 the parts of the series cancel: relative errors grow.
@pytest.mark.parametrize("name, sign", [("exp1", 1), ("expi", -1)])
def test_exponential_integrals_below_one(name, sign):
    x = sign * np.geomspace(1e-30, 1, 4001, dtype=np.float32)
    exact = getattr(scipy.special, name)(x.astype(np.float64))
    np.testing.assert_allclose(of("minijax", f"special.{name}")(x), exact, 6e-7)


INTEGRALS = "dawsn erfcx spence sici wofz expn bessel_jn".split()


@pytest.mark.parametrize("name", INTEGRALS)
@pytest.mark.parametrize("dtype, tolerance", [("float64", 2e-12), ("float16", 4e-3)])
def test_integrals_in_other_dtypes(name, dtype, tolerance):
    if dtype == "float16" and name not in ("dawsn", "erfcx", "wofz"):
        pytest.skip("jax takes two dtypes, or has NaN and few digits in this one")
    x = np.array([-2.5, -0.3, 0.0, 1e-3, 0.7, 1.0, 1.5, 4.0, 6.9, 12.0], dtype)
    args = [np.int32(2), x[3:]] if name == "expn" else [x]
    with minijax.enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):
        assert_alike(f"special.{name}", args, tolerance)
        if name not in ("spence", "bessel_jn"):
            assert_alike(f"special.{name}", [*args[:-1], np.int32(2)], tolerance)


def test_sici_of_half_floats():
    x = np.array([-2.5, 0.3, 1.5, 4.0, 12.0], np.float16)  # jax has NaN at the last
    ours = minijax.scipy.special.sici(x)
    for half, exact in zip(ours, scipy.special.sici(x.astype(np.float64)), strict=True):
        assert half.dtype == np.float16
        np.testing.assert_allclose(half[1:], exact[1:], 3e-3)


def test_expn_at_zero_and_of_negative_orders():
    # As in SciPy; jax 0.10.2 has 1 / n at zero, and numbers for some negative orders.
    expn = minijax.scipy.special.expn
    np.testing.assert_allclose(
        expn(np.arange(6), 0.0), [np.inf, np.inf, 1, 1 / 2, 1 / 3, 1 / 4], 1e-6
    )
    assert np.isnan(expn(-1, 2.5)) and np.isnan(expn(2, -1.0)) and expn(3, np.inf) == 0


@pytest.mark.parametrize("name, args", [("sici", (1.3,)), ("expn", (3, 0.4))])
def test_derivatives_of_integrals(name, args):
    slopes = []
    for library in (minijax, jax):
        f = of(library.__name__, f"special.{name}")
        slopes += library.tree.leaves(
            library.jacfwd(lambda x: f(*args[:-1], x))(args[-1])
        )
    half = len(slopes) // 2
    np.testing.assert_allclose(slopes[:half], slopes[half:], 1e-5)


@pytest.mark.parametrize("distribution, name", CALLS)
def test_stats(distribution, name):
    path = f"stats.{distribution}.{name}"
    shape = STATS[distribution]
    if name == "entropy":
        calls = [[np.array([0, 0.5, 9.9, 10, 80, 150], np.float32)], [3.0]]
    else:
        x = UNIT if name in ("ppf", "isf") else REAL
        calls = [[x, *shape], [0.4, *shape], [np.int32(1), *shape]]
        parameters = inspect.signature(of("jax", path)).parameters
        if name in ("ppf", "isf") or "norm" in path:
            calls.pop()
        if "scale" in parameters:
            calls.append([x, *shape, 0.5, 2.0])
        elif "loc" in parameters:
            calls.append([x, *shape, 1])
    for args in calls:
        assert_alike(path, args, 2e-5)


@pytest.mark.parametrize(
    "path, args",
    [
        ("special.ndtr", [1]),
        ("special.log_ndtr", [1.0, 31]),
        ("special.log_ndtr", [1.0, 1.5]),
        ("special.polygamma", [1.0, 2.0]),
        ("special.zeta", [2.0]),
        ("special.factorial", [3, True]),
        ("special.bernoulli", [-1]),
        ("special.beta", [1j, 1.0]),
        ("special.dawsn", [1j]),
        ("special.sici", [1j]),
        ("special.expn", [1, 1j]),
        ("special.spence", [1]),
    ],
)
def test_refused(path, args):
    kinds = []
    for library in ("minijax", "jax"):
        with pytest.raises(Exception) as caught:
            of(library, path)(*args)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
