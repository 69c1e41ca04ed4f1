"""Programs that XLA partitions, against jax on eight CPU devices."""

import numpy as np
import pytest

from tests.sharding import automatic


@pytest.mark.parametrize("name", automatic.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])


def compare(ours, theirs):
    """Ours must be as theirs: errors of the same class, values to rounding."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), f"no error; jax: {theirs['message']}"
        # A class of minijax's own has the name of jax's.
        assert ours["error"][0] == theirs["error"][0], ours["trace"]
        return
    assert not isinstance(ours, dict), ours["trace"]
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        for name in ("text", "dtype", "weak", "sharding", "committed"):
            assert one.get(name) == other.get(name)
        if "values" in other:
            np.testing.assert_allclose(
                one["values"], other["values"], rtol=1e-5, atol=1e-6
            )
