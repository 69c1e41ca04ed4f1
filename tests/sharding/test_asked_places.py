"""Places that are asked for: `out_sharding`, structs with a sharding, trees."""

import pytest

from tests.sharding import asked_places
from tests.sharding.test_automatic import compare

HELD_AGAINST = asked_places.OUTSIDE.values()


@pytest.mark.parametrize("name", asked_places.OUTSIDE)
def test_lies_as_where_the_mesh_is_in_use(results, name):
    compare(results[name]["minijax"], results[asked_places.OUTSIDE[name]]["jax"], False)


@pytest.mark.parametrize(
    "name", sorted(asked_places.CASES.keys() - asked_places.OUTSIDE)
)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"], False)
