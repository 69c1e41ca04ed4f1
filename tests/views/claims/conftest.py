"""The claims of the views; `make test` holds half of them (`tests/conftest.py`)."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            # They count in programs as JAX prints them.
            item.add_marker(pytest.mark.of_one_jax)
