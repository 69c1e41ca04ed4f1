"""Sorting, searching, counting, and arrays as sets: as `jax.numpy`."""

import numpy as np
import pytest

from tests.numpy.programs import BM, B, C, E, I, J, M, N, T, U, V, case, check

DATA = {"float": M, "int": I, "nan": N, "bool": BM, "unsigned": U, "complex": C}

SORTS = [
    *(case(f"sort {n}", lambda np, x: np.sort(x), a) for n, a in DATA.items()),
    *(case(f"argsort {n}", lambda np, x: np.argsort(x), a) for n, a in DATA.items()),
    case("sort axis", lambda np, x: np.sort(x, axis=0), M),
    case("sort flat", lambda np, x: np.sort(x, axis=None), M),
    case("sort down", lambda np, x: np.sort(x, descending=True), M),
    case("sort unstable", lambda np, x: np.sort(x, stable=False), M),
    case("sort kind", lambda np, x: np.sort(x, kind="quicksort"), M),
    case("sort order", lambda np, x: np.sort(x, order="f"), M),
    case("sort scalar", lambda np: np.sort(np.asarray(1.0))),
    case("argsort axis", lambda np, x: np.argsort(x, axis=0), M),
    case("argsort flat", lambda np, x: np.argsort(x, axis=None), M),
    case("argsort down", lambda np, x: np.argsort(x, descending=True), J),
    case(
        "argsort down unstable",
        lambda np, x: np.argsort(x, descending=True, stable=False),
        V,
    ),
    case("argsort dtype", lambda np, x: np.argsort(x, dtype="int8"), V),
    case("lexsort", lambda np, x, y: np.lexsort((x, y)), J, V),
    case("lexsort matrix", lambda np, x: np.lexsort(x), M),
    case("lexsort shapes", lambda np, x, y: np.lexsort((x, y)), J, B),
    case("lexsort none", lambda np: np.lexsort(())),
    case("sort_complex", lambda np, x: np.sort_complex(x), V),
    *(
        case(f"partition {n}", lambda np, x: np.partition(x, 1), a)
        for n, a in DATA.items()
        if n not in ("bool", "nan")
    ),
    case("partition axis", lambda np, x: np.partition(x, -1, axis=0), M),
    case("argpartition", lambda np, x: np.argpartition(x, 1), M),
    case("argpartition unsigned", lambda np, x: np.argpartition(x, 1), U),
    case("argpartition complex", lambda np, x: np.argpartition(x, 1), C),
]

SORTED = np.sort(V)
METHODS = ["scan", "scan_unrolled", "sort", "compare_all"]

SEARCHES = [
    *(
        case(
            f"searchsorted {method} {side}",
            lambda np, a, v, m=method, s=side: np.searchsorted(a, v, side=s, method=m),
            SORTED,
            np.array([[-1.0, 0.0, 3.0], [9.0, np.nan, -9.0]], np.float32),
            text=method == "compare_all" or method == "scan",
        )
        for method in METHODS
        for side in ("left", "right")
    ),
    case("searchsorted ints", lambda np, a: np.searchsorted(a, 2), np.sort(J)),
    case(
        "searchsorted mixed",
        lambda np, a, v: np.searchsorted(a, v),
        np.sort(J),
        V,
    ),
    case("searchsorted empty", lambda np, a, v: np.searchsorted(a[:0], v), V, V),
    case(
        "searchsorted complex",
        lambda np, a, v: np.searchsorted(a, v, method="compare_all"),
        np.sort(C),
        C,
        text=False,
    ),
    case(
        "searchsorted sorter",
        lambda np, a, v: np.searchsorted(a, v, sorter=np.argsort(a)),
        V,
        V,
    ),
    case("searchsorted matrix", lambda np, a: np.searchsorted(a, 1), M),
    case("searchsorted side", lambda np, a: np.searchsorted(a, 1, side="up"), V),
    case("searchsorted method", lambda np, a: np.searchsorted(a, 1, method="x"), V),
    case(
        "digitize",
        lambda np, x: np.digitize(x, np.array([0.0, 1.0, 3.0])),
        V,
    ),
    case(
        "digitize right",
        lambda np, x: np.digitize(x, x[:0:-1], right=True),
        SORTED,
    ),
    case("digitize none", lambda np, x: np.digitize(x, x[:0]), V),
    case("digitize matrix", lambda np, x: np.digitize(x, x), M),
]

COUNTS = [
    case("nonzero", lambda np, x: np.nonzero(x), M, text=False),
    case("nonzero size", lambda np, x: np.nonzero(x, size=3), M),
    case("nonzero fill", lambda np, x: np.nonzero(x, size=14, fill_value=-1), M),
    case("nonzero fills", lambda np, x: np.nonzero(x, size=14, fill_value=(8, 9)), M),
    case("nonzero fill array", lambda np, x: np.nonzero(x, size=3, fill_value=x), V),
    case("nonzero scalar", lambda np: np.nonzero(np.asarray(1))),
    case("nonzero empty", lambda np, x: np.nonzero(x, size=2), E),
    case("nonzero traced", lambda np, x: np.nonzero(x), V),
    case("nonzero bool", lambda np, x: np.nonzero(x, size=2), B),
    case("flatnonzero", lambda np, x: np.flatnonzero(x, size=2), BM),
    case("argwhere", lambda np, x: np.argwhere(x, size=3), M),
    case("argwhere scalar", lambda np: np.argwhere(np.asarray(1), size=1)),
    case("where one", lambda np, x: np.where(x, size=2), BM),
    case("unravel_index", lambda np, i: np.unravel_index(i, (2, 3)), J),
    case("unravel_index out", lambda np, i: np.unravel_index(i * 5 - 9, (2, 3)), J),
    case("unravel_index flat", lambda np, i: np.unravel_index(i, 5), U),
    case("unravel_index nested", lambda np, i: np.unravel_index(i, ((2,),)), J),
    *(
        case(
            f"ravel_multi_index {mode}",
            lambda np, i, m=mode: np.ravel_multi_index((i, i), (5, 3), mode=m),
            J,
        )
        for mode in ("wrap", "clip", "ignore", "raise", "other")
    ),
    case(
        "ravel_multi_index F",
        lambda np, i: np.ravel_multi_index((i, i), (5, 6), "clip", "F"),
        J,
    ),
    case(
        "ravel_multi_index float",
        lambda np, i: np.ravel_multi_index((i, i), (5, 6), "clip"),
        V,
    ),
    case("diag_indices", lambda np: np.diag_indices(3)),
    case("diag_indices 3", lambda np: np.diag_indices(2, ndim=3)),
    case("diag_indices -1", lambda np: np.diag_indices(-1)),
    case("diag_indices_from", lambda np, x: np.diag_indices_from(x[:, :3]), M),
    *(
        case(f"triu_indices {n} {k} {m}", lambda np, a=(n, k, m): np.triu_indices(*a))
        for n, k, m in ((3, 0, None), (3, 1, 4), (4, -2, 2), (2, 5, None))
    ),
    *(
        case(f"tril_indices {n} {k} {m}", lambda np, a=(n, k, m): np.tril_indices(*a))
        for n, k, m in ((3, 0, None), (3, 1, 4), (4, -2, 2), (2, -5, None))
    ),
    case("triu_indices_from", lambda np, x: np.triu_indices_from(x, k=1), M),
    case("tril_indices_from", lambda np, x: np.tril_indices_from(x), M),
    case("mask_indices", lambda np: np.mask_indices(3, np.triu, size=6)),
    case("bincount", lambda np, x: np.bincount(x, length=6), J),
    case("bincount free", lambda np, x: np.bincount(x), J, text=False),
    case("bincount negative", lambda np, x: np.bincount(x - 3), J, text=False),
    case("bincount traced", lambda np, x: np.bincount(x), J),
    case("bincount weights", lambda np, x, w: np.bincount(x, w, length=6), J, V),
    case("bincount minlength", lambda np, x: np.bincount(x, minlength=9), J),
    case("bincount float", lambda np, x: np.bincount(x, length=3), V),
    case("bincount bool", lambda np, x: np.bincount(x, length=3), B),
    case("bincount matrix", lambda np, x: np.bincount(x, length=3), I),
    case("histogram", lambda np, x: np.histogram(x, bins=4), V),
    case("histogram ints", lambda np, x: np.histogram(x, bins=4), J),
    case("histogram range", lambda np, x: np.histogram(x, 3, range=(0, 3)), V),
    case(
        "histogram edges",
        lambda np, x: np.histogram(x, np.array([0, 1, 5])),
        V,
    ),
    case(
        "histogram density",
        lambda np, x: np.histogram(x, 3, density=True),
        V,
    ),
    case("histogram weights", lambda np, x: np.histogram(x, 3, weights=x), V),
    case("histogram wrong", lambda np, x: np.histogram(x, 3, weights=x[1:]), V),
    case("histogram flat", lambda np, x: np.histogram_bin_edges(x * 0, 3), V),
    case("histogram words", lambda np, x: np.histogram_bin_edges(x, "auto"), V),
    case(
        "histogram2d", lambda np, x: np.histogram2d(x, x[::-1], bins=3), V, text=False
    ),
    case(
        "histogramdd",
        lambda np, x: np.histogramdd(x, bins=[2, 3, 2, 2], density=True),
        M,
        text=False,
    ),
]

SETS = [
    *(
        case(f"unique {n}", lambda np, x: np.unique(x), a, text=False)
        for n, a in DATA.items()
    ),
    *(
        case(
            f"unique all {n}",
            lambda np, x: np.unique(x, True, True, True),
            a,
            text=False,
        )
        for n, a in DATA.items()
    ),
    case(
        "unique size",
        lambda np, x: np.unique(x, True, True, True, size=4),
        J,
    ),
    case(
        "unique size fill",
        lambda np, x: np.unique(x, True, True, True, size=7, fill_value=-1),
        N,
    ),
    case("unique axis", lambda np, x: np.unique(x, axis=0, size=3), I),
    case(
        "unique rows", lambda np, x: np.unique(np.stack([x, x]), axis=0), V, text=False
    ),
    case("unique traced", lambda np, x: np.unique(x), V),
    case("unique nan", lambda np, x: np.unique(x, equal_nan=False), N, text=False),
    case("unique empty", lambda np, x: np.unique(x, True, True, True), E, text=False),
    case("unique empty size", lambda np, x: np.unique(x, size=2), E),
    case("unique_all", lambda np, x: np.unique_all(x, size=3), J),
    case("unique_counts", lambda np, x: np.unique_counts(x, size=3), J),
    case("unique_inverse", lambda np, x: np.unique_inverse(x, size=3), J),
    case("unique_values", lambda np, x: np.unique_values(x, size=3), J),
    *(
        case(
            f"isin {method} {invert}",
            lambda np, x, m=method, i=invert: np.isin(x, x[0, :2], invert=i, method=m),
            I,
        )
        for method in ("auto", "compare_all", "binary_search", "sort", "other")
        for invert in (False, True)
    ),
    case("isin empty", lambda np, x: np.isin(x, x[:0]), V),
    case("union1d", lambda np, x, y: np.union1d(x, y), J, V, text=False),
    case("union1d size", lambda np, x, y: np.union1d(x, y, size=9), J, V),
    case("intersect1d", lambda np, x, y: np.intersect1d(x, y), J, V, text=False),
    case(
        "intersect1d where",
        lambda np, x, y: np.intersect1d(x, y, return_indices=True),
        J,
        V,
        text=False,
    ),
    case(
        "intersect1d size",
        lambda np, x, y: np.intersect1d(x, y, return_indices=True, size=3),
        J,
        V,
        text=False,
    ),
    case(
        "intersect1d unique",
        lambda np, x, y: np.intersect1d(x[:3], y, True, True, size=4, fill_value=7),
        J,
        V,
        text=False,
    ),
    case("setdiff1d", lambda np, x, y: np.setdiff1d(x, y), J, V, text=False),
    case("setdiff1d size", lambda np, x, y: np.setdiff1d(x, y, size=4), J, V),
    case(
        "setdiff1d fill",
        lambda np, x, y: np.setdiff1d(x, y, True, size=4, fill_value=9),
        V,
        J,
    ),
    case("setxor1d", lambda np, x, y: np.setxor1d(x, y), J, V, text=False),
    case("setxor1d size", lambda np, x, y: np.setxor1d(x, y, size=6), J, V, text=False),
    case(
        "setxor1d unique",
        lambda np, x, y: np.setxor1d(x[:3], y, True, size=6, fill_value=0),
        J,
        V,
        text=False,
    ),
]

OF_THREE = [case("sort 3", lambda np, x: np.sort(x, axis=1), T)]


@pytest.mark.parametrize("one", SORTS + SEARCHES + COUNTS + SETS + OF_THREE)
def test_agrees_with_jax(one) -> None:
    check(one)
