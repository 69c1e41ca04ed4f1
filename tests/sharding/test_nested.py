"""`shard_map`, `vmap`, `smap` in each other, against jax on eight CPU devices."""

import numpy as np
import pytest

from tests.sharding import nested
from tests.sharding.both import Library
from tests.sharding.test_automatic import compare

HELD_AGAINST = set(nested.ONLY_HERE.values()) & set(nested.CASES)


def _known(name, results):
    """The gradient that JAX does not give: by hand, or from another kind of mesh."""
    if name in results:
        return results[name]["jax"][1]["values"]
    x = Library.numbers(None, 8, 8).astype(np.float64)
    places = np.where(np.arange(8) % 4 < 2, 0, 1) if name == "three" else 0
    return 2 * (np.sin(x) + places) * np.cos(x)


@pytest.mark.parametrize("name", nested.CASES)
def test_as_in_jax(results, name):
    ours, theirs = (results[name][library] for library in ("minijax", "jax"))
    if name in nested.ONLY_HERE:
        assert isinstance(theirs, dict), "jax can do this now: compare it"
        assert not isinstance(ours, dict), ours["trace"]
        wanted = _known(nested.ONLY_HERE[name], results)
        np.testing.assert_allclose(ours[1]["values"], wanted, rtol=1e-5, atol=1e-5)
    elif name in nested.PRINTED_OTHERWISE:
        assert ours != theirs, "they print the same now: compare it"
        assert not isinstance(ours, dict), ours["trace"]
    else:
        compare(ours, theirs)
