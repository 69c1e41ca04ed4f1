"""Programs on Explicit meshes, against jax on eight CPU devices."""

import pytest

from tests.sharding import explicit
from tests.sharding.test_automatic import compare


@pytest.mark.parametrize("name", explicit.CASES)
def test_as_in_jax(results, name):
    # Types spell each dimension; JAX forgets one in the gradient of a `reshard`.
    spelled = name != "gradient_through_reshard"
    compare(results[name]["minijax"], results[name]["jax"], spelled)
