"""`make test` holds half of the claims, which half says the commit.

`make test-all` holds all of them, and so does pytest where it is called by hand.
"""

import functools
import os
import subprocess
import zlib
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@functools.cache
def commit() -> str:
    """The commit that is checked out; nothing outside of a repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        ran = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    except OSError:
        return ""
    return ran.stdout.strip()


def left_out(name: str, by: str) -> bool:
    """Whether a test waits for another commit: about half of all do."""
    return zlib.crc32(f"{by} {name}".encode()) % 2 == 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        # They count in programs as JAX prints them.
        item.add_marker(pytest.mark.of_one_jax)
        if os.environ.get("MINIJAX_TEST_HALF") and left_out(item.nodeid, commit()):
            reason = f"of the other half at {commit()[:8]}: MINIJAX_TEST_ALL=1 runs it"
            item.add_marker(pytest.mark.skip(reason=reason))
