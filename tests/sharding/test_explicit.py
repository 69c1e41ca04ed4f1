"""Programs on Explicit meshes, against jax on eight CPU devices."""

import pytest

from tests.sharding import explicit
from tests.sharding.both import results_of
from tests.sharding.test_automatic import compare

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def results():
    """What both libraries gave for every case, from one process."""
    return results_of("explicit")


@pytest.mark.parametrize("name", explicit.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])
