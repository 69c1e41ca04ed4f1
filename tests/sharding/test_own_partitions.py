"""`custom_partitioning` against jax: values, shardings, collectives, bad rules."""

import numpy as np
import pytest

from tests.sharding import own_partitions


@pytest.mark.parametrize("name", own_partitions.CASES)
def test_as_in_jax(results, name):
    """The same results, cut alike, by the same collectives; or the same error."""
    ours, theirs = results[name]["minijax"], results[name]["jax"]
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), f"no error; jax: {theirs['message']}"
        kind = theirs["error"][0].replace("XlaRuntimeError", "JaxRuntimeError")
        assert kind in ours["error"], ours["trace"]
        return
    assert not isinstance(ours, dict), ours["trace"]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.get("values", 0), other.get("values", 0), 1e-5)
        for key in ("text", "dtype", "sharding", "committed"):
            assert one.get(key) == other.get(key)
