"""What jax and minijax give on eight CPU devices, for the cases of a test module."""

from typing import Any

import pytest

from tests.sharding.both import results_of


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """What both gave for each case that runs: in `test_manual.py`, of `manual`.

    And for those that a module names as `HELD_AGAINST`, with which others are compared.
    """
    module = request.module
    names = [
        item.callspec.params["name"]
        for item in request.session.items
        if getattr(item, "module", None) is module
        and "name" in getattr(getattr(item, "callspec", None), "params", ())
        and item.get_closest_marker("skip") is None
    ]
    names += sorted(set(getattr(module, "HELD_AGAINST", ())) - set(names))
    return results_of(module.__name__.rpartition("test_")[2], names)
