"""JAX's guides on Pallas run with minijax's names, and give jax's answers."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest

import minijax
from tests.pallas import guides
from tests.pallas.kernels import Library

OURS = Library("minijax", interpret=False)
JAX = Library("jax", interpret=True)


@pytest.mark.parametrize("guide", guides.GUIDES, ids=lambda guide: guide.__name__)
def test_cells(guide):
    ours, theirs = guide(OURS), guide(JAX)
    assert list(ours) == list(theirs)
    for cell, value in theirs.items():
        got, expected = np.asarray(ours[cell]), np.asarray(value)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), cell
        tolerance = 1e-2 if "bfloat16" in cell else 1e-4
        np.testing.assert_allclose(
            got, expected, rtol=tolerance, atol=tolerance, err_msg=cell
        )


def test_a_few_pictures_of_the_grid():
    cells = guides.grids_and_blocks(OURS)
    assert cells["slices, cut"] == [(20, 30), (80, 100)]
    np.testing.assert_array_equal(cells["smaller than a block"], [[0, 0]])
    np.testing.assert_array_equal(
        cells["squeezed by None"], [[0, 0, 10, 10], [1, 1, 11, 11], [2, 2, 12, 12]]
    )
    np.testing.assert_array_equal(
        cells["from elements, padded"][1], [10] + [11] * 3 + [12] * 3
    )


def test_products_are_numpy_s():
    cells = guides.matrix_multiplication(OURS)
    for cell in ("first", "by hand", "blocks of 16", "transposed"):
        np.testing.assert_allclose(
            cells[cell], cells["expected"], rtol=1e-4, atol=1e-4, err_msg=cell
        )


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu (minijax[tpu]) is missing",
)
@pytest.mark.parametrize("transposed", [False, True])
def test_the_matmul_of_the_guide_compiles_for_a_tpu(transposed):
    x = np.ones((1024, 1024), ml_dtypes.bfloat16)

    def function(x, y):
        return guides.matmul_call(
            OURS,
            x,
            y,
            size=256,
            transposed=transposed,
            activation=minijax.nn.relu,
        )

    compiled = minijax.jit(function).lower(x, x).compile(target="tpu-v5e:2x2")
    assert "tpu_custom_call" in compiled.as_text()
