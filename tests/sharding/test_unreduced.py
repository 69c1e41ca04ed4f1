"""Unreduced and reduced types on Explicit meshes, against jax on eight CPU devices."""

import numpy as np
import pytest

from tests.sharding import unreduced
from tests.sharding.test_automatic import compare

HELD_AGAINST = ("reduced", "add")

REFUSALS = {"NotImplementedError", "AssertionError", "ShardingTypeError"}


# A later jax names the kind of addends in types, and has rules for more operations.
@pytest.mark.parametrize("name", unreduced.CASES)
def test_as_in_jax(results, name):
    ours, theirs = (results[name][library] for library in ("minijax", "jax"))
    if name.endswith("_only_here"):
        assert isinstance(theirs, dict), "jax can do this now: compare it"
        if name.startswith("argument_from_host"):
            theirs = results["reduced"]["jax"][2]["values"]
            assert ours[0]["values"][:3] == pytest.approx(theirs[0][:3])
            return
        whole = np.asarray(results["add"]["jax"][2]["values"]) / 2
        factor = 2 if "mul" in name else 1
        assert ours[0]["text"].endswith("{U:x}")
        np.testing.assert_allclose(np.ravel(ours[2]["values"]), factor * whole.ravel())
        return
    if name.endswith("_not_here"):
        assert isinstance(ours, dict), "the words were forgotten"
        assert REFUSALS.intersection(ours["error"]), ours["trace"]
        return
    compare(ours, theirs)
    assert isinstance(theirs, dict) == name.endswith("_refused"), theirs
