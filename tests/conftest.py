"""What all tests share: quick compilation, markers, and what this machine lacks."""

import os
import shutil

import pytest

# Value tests compile many small programs and run each once: XLA's optimisations cost
# more than they save. minijax reads its variable when it compiles; it is set only while
# a test of this folder runs, since the kernels of notebooks inherit the environment and
# should compile as a learner's would. JAX reads its own when it is imported.
FAST_COMPILE = "MINIJAX_TEST_FAST_COMPILE"
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    before = os.environ.get(FAST_COMPILE)
    os.environ[FAST_COMPILE] = before or "1"
    try:
        return (yield)
    finally:
        if before is None:
            del os.environ[FAST_COMPILE]


# marker, the programs of which one must be there, what is skipped without
TOOLS = {
    "browser": (("chromium", "google-chrome"), "views are not tried in a browser"),
    "compiler": (("g++",), "nothing written in C++ is built"),
    "node": (("node",), "the sources of the views are not built again"),
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: runs only with MINIJAX_TEST_ALL=1")
    for marker, (programs, _) in TOOLS.items():
        config.addinivalue_line("markers", f"{marker}: needs {' or '.join(programs)}")


def _missing_tools() -> dict[str, str]:
    """For each marker whose tool is not here, the sentence that says so."""
    return {
        marker: f"{' or '.join(programs)} is not on this machine: {consequence}"
        for marker, (programs, consequence) in TOOLS.items()
        if not any(shutil.which(program) for program in programs)
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = _missing_tools()
    if not os.environ.get("MINIJAX_TEST_ALL"):
        reasons["slow"] = "a long test: MINIJAX_TEST_ALL=1 runs it"
    if not os.environ.get("MINIJAX_TEST_GPU"):
        reasons["gpu"] = "needs an accelerator: MINIJAX_TEST_GPU=1 runs it"
    for item in items:
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter) -> None:
    for sentence in _missing_tools().values():
        terminalreporter.write_line(sentence)
