"""`PartitionSpec`s alone, against jax on eight CPU devices; what is ours alone."""

import pytest

import minijax
from tests.sharding import contexts
from tests.sharding.test_automatic import compare


@pytest.mark.parametrize("name", contexts.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])


def test_the_older_form_warns() -> None:
    mesh = minijax.make_mesh((1,), ("x",))
    with pytest.warns(DeprecationWarning, match="set_mesh"), mesh:
        pass
