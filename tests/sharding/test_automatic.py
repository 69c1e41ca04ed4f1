"""Programs that XLA partitions, against jax on eight CPU devices."""

import re

import numpy as np
import pytest

from tests.sharding import automatic


@pytest.mark.parametrize("name", automatic.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])


def compare(ours, theirs, spelled=True):
    """Ours must be as theirs: errors of the same class, values to rounding.

    With `spelled=False`, `P("x")` counts as `P("x", None)`.
    """
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), f"no error; jax: {theirs['message']}"
        # A class of minijax's own has the name of jax's.
        assert ours["error"][0] == theirs["error"][0], ours["trace"]
        return
    assert not isinstance(ours, dict), ours["trace"]
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        for name in ("text", "dtype", "weak", "sharding", "committed"):
            told = [each.get(name) for each in (one, other)]
            if name == "sharding" and None not in told and not spelled:
                told = [re.sub(r"(, )?None(, None)*\) over", ") over", t) for t in told]
            assert told[0] == told[1]
        if "values" in other:
            np.testing.assert_allclose(
                one["values"], other["values"], rtol=1e-5, atol=1e-6
            )
