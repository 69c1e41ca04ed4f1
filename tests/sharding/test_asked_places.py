"""Places that are asked for: `out_sharding`, structs with a sharding, trees."""

import pytest

from tests.sharding import asked_places
from tests.sharding.test_automatic import compare


@pytest.mark.parametrize("name", asked_places.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])
