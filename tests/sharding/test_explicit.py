"""Programs on Explicit meshes, against jax on eight CPU devices."""

import pytest

from tests.sharding import explicit
from tests.sharding.test_automatic import compare


@pytest.mark.later_jax(
    "jax 0.12 writes one line with shardings more", cases=["sharding_texts"]
)
@pytest.mark.parametrize("name", explicit.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])
