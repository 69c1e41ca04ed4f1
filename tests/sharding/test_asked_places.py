"""Places that are asked for: `out_sharding`, structs with a sharding, trees."""

import pytest

from tests.sharding import asked_places
from tests.sharding.both import results_of
from tests.sharding.test_automatic import compare


@pytest.fixture(scope="module")
def results():
    """What both libraries gave for every case, from one process."""
    return results_of("asked_places")


@pytest.mark.of_one_jax
@pytest.mark.parametrize("name", asked_places.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])
