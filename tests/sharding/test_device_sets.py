"""Programs that name a device twice, or devices of several meshes, against jax."""

import pytest

from tests.sharding import device_sets


@pytest.mark.parametrize("name", device_sets.CASES)
def test_as_in_jax(results, name):
    """The same values on the same devices, or an error of the same kind."""
    ours, theirs = results[name]["minijax"], results[name]["jax"]
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), f"no error; jax: {theirs['message']}"
        assert "ValueError" in theirs["error"] and "ValueError" in ours["error"]
        return
    assert not isinstance(ours, dict), ours["trace"]
    for one, other in zip(ours, theirs, strict=True):
        assert one.get("values") == other.get("values")
        assert one.get("text") == other.get("text")
        if "pmap" not in name:  # it names its axis otherwise
            assert one.get("sharding") == other.get("sharding")
