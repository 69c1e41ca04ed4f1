"""Random programs on eight devices, in jax and in minijax."""

import pytest

from tests.sharding import random_programs
from tests.sharding.test_automatic import compare


@pytest.mark.parametrize("name", random_programs.CASES)
def test_as_in_jax(results, name):
    ours, theirs = results[name]["minijax"], results[name]["jax"]
    if name not in random_programs.TYPED:
        assert not isinstance(theirs, dict), theirs["trace"]
    compare(ours, theirs)
