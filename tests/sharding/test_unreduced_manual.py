"""Unreduced and reduced types inside `shard_map`, against jax on eight CPU devices."""

import numpy as np
import pytest

from tests.sharding import unreduced_manual
from tests.sharding.test_automatic import compare

HELD_AGAINST = set(unreduced_manual.VALUES_OF.values())


# A later jax names the kind of addends in types, and has rules for more operations.
@pytest.mark.parametrize("name", unreduced_manual.CASES)
def test_as_in_jax(results, name):
    ours, theirs = (results[name][library] for library in ("minijax", "jax"))
    if name in unreduced_manual.ONLY_HERE:
        assert isinstance(theirs, dict), "jax can do this now: compare it"
        assert not isinstance(ours, dict), ours["trace"]
    elif name in unreduced_manual.VALUES_OF:
        assert isinstance(theirs, dict), "jax can do this now: compare it"
        plain = results[unreduced_manual.VALUES_OF[name]]["jax"]
        assert not isinstance(ours, dict), ours["trace"]
        values = (one[0]["values"] for one in (ours, plain))
        np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-6)
    elif name in unreduced_manual.PRINTED_OTHERWISE:
        assert ours != theirs, "they print the same now: compare it"
        assert not isinstance(ours, dict), ours["trace"]
    elif name.endswith("_only_refused_here"):
        assert "ShardingTypeError" in ours["error"]
    else:
        compare(ours, theirs)
        if name.endswith("_refused"):
            assert isinstance(theirs, dict)
