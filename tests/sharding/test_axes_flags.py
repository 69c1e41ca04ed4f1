"""The two flags of types on meshes, against jax on eight CPU devices."""

import numpy as np
import pytest

from tests.sharding import axes_flags
from tests.sharding.test_automatic import compare

HELD_AGAINST = set(axes_flags.ONLY_HERE.values())


@pytest.mark.parametrize("name", axes_flags.CASES)
def test_as_in_jax(results, name):
    ours, theirs = (results[name][library] for library in ("minijax", "jax"))
    if name in axes_flags.ONLY_HERE:
        assert isinstance(theirs, dict), "jax can do this now: compare it"
        assert not isinstance(ours, dict), ours["trace"]
        _same_values(ours, results[axes_flags.ONLY_HERE[name]]["jax"])
    elif name in axes_flags.APART:
        with pytest.raises((AssertionError, TypeError)):
            compare(ours, theirs)
    elif name in axes_flags.PRINTED_OTHERWISE:
        assert ours != theirs, "they print the same now: compare it"
        assert not isinstance(ours, dict), ours["trace"]
    else:
        compare(ours, theirs)


def _same_values(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        if "values" in other:
            np.testing.assert_allclose(
                one["values"], other["values"], rtol=1e-5, atol=1e-6
            )
