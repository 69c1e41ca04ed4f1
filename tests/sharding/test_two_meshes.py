"""Arrays of other meshes than the one in use: refused where they meet, as in JAX."""

import pytest

from tests.sharding import two_meshes
from tests.sharding.test_automatic import compare


@pytest.mark.parametrize("name", two_meshes.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"], False)
