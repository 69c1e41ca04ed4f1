"""What all tests share: quick compilation, markers, and what this machine lacks."""

import collections
import contextlib
import functools
import gc
import importlib.metadata
import importlib.util
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cheap_jax import FAST_COMPILE, compile_cheaply

# Value tests compile many small programs and run each once: XLA's optimisations cost
# more than they save. minijax reads its variable when it compiles; it is set only while
# a test of this folder runs, since the kernels of notebooks inherit the environment and
# should compile as a learner's would. JAX reads its own when it is imported.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# Compiled programs are kept for the next process by default. In the tests they are kept
# in a folder of their own, which all processes of one run share: what stands in the
# user's folder changes no test, and the cache is used by many processes at once.
CACHE_FOLDER = "MINIJAX_COMPILATION_CACHE_DIR"

# `make test-all` runs the tests in another order each time; with this variable in one
# that was printed before.
SEED = "MINIJAX_TEST_SEED"

# Set by `make test`, which runs a twelfth of what there are many cases of: see MANY.
PART = "MINIJAX_TEST_PART"
HERE = Path(__file__).parent


def pytest_collection_finish() -> None:
    # By now the test modules have imported JAX, if they need it.
    compile_cheaply()
    # Thousands of tests and both libraries stay until the end: the garbage collector
    # need not look at them again and again.
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def small_heap():
    """The garbage collector sees only the objects that are made from here on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def whole_tracebacks():
    """Failures show minijax's own frames, which users do not see by default."""
    config = sys.modules.get("minijax.support.config")
    with config.traceback_filtering("off") if config else contextlib.nullcontext():
        yield


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

# The chapter that builds a library while it runs.
BUILDS_CPP = "20_calling_out.ipynb"


def pytest_configure(config: pytest.Config) -> None:
    if CACHE_FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="minijax-programs-")
        os.environ[CACHE_FOLDER] = folder
        config.add_cleanup(functools.partial(shutil.rmtree, folder, True))
    config.addinivalue_line("markers", "slow: runs only with MINIJAX_TEST_ALL=1")
    config.addinivalue_line(
        "markers", "long: of a file that starts first, and not in `make check`"
    )
    config.addinivalue_line("markers", "whole: runs all of its cases at every commit")
    config.addinivalue_line(
        "markers",
        "turns(n): long, and hardly made wrong by one commit; `make test` runs it at "
        "one commit of so many",
    )
    config.addinivalue_line(
        "markers", "repeats: goes a way that another test goes; as slow"
    )
    config.addinivalue_line(
        "markers", "full_optimisation: compiles as users do, in tests/random"
    )
    if os.environ.get("MINIJAX_TEST_ALL"):
        # Workers inherit it: they must agree on the order.
        os.environ.setdefault(SEED, str(random.SystemRandom().randrange(10**6)))
    for marker, (programs, _) in TOOLS.items():
        config.addinivalue_line("markers", f"{marker}: needs {' or '.join(programs)}")


# minijax follows jax 0.10.2. What a later jax does otherwise, and by which tests it
# shows, is listed in a file: on that jax these tests are expected to fail.
EXPECTED_JAX = "0.10.2"
DIFFERENCES = HERE / "later_jax.toml"

# Seconds of each test file, as `make test-all` took them, which writes this file. The
# longest start first: what starts last should be short, since the other workers wait
# for it.
TIMINGS = HERE / "timings.json"
WRITES_TIMINGS = "MINIJAX_TEST_TIMINGS"


# Of a test with so many cases, `make test` runs a twelfth of them; the commit says
# which, so that each case has its turn. Tests marked `whole` run all at every
# commit: their cases are cheap, or one process runs them together. `make test-all` runs
# all of them, and so does pytest where it is called by hand.
MANY = 4
PARTS = 12


@functools.cache
def commit() -> str:
    """The commit that is checked out; nothing outside of a repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        ran = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    except OSError:
        return ""
    return ran.stdout.strip()


@functools.cache
def recorded_seconds() -> dict[str, float]:
    """Seconds by test file, relative to the repository."""
    return json.loads(TIMINGS.read_text(encoding="utf-8"))


def seconds_of(item: pytest.Item) -> float:
    """How long the tests of an item's file take; endless where nobody knows."""
    name = item.path.relative_to(HERE.parent).as_posix()
    if item.get_closest_marker("long"):
        return math.inf
    return recorded_seconds().get(name, sys.float_info.max)


def left_out(name: str, by: str, parts: int = PARTS) -> bool:
    """Whether a test waits for another commit: of so many parts all but one do."""
    return zlib.crc32(f"{by} {name}".encode()) % parts != 0


def in_turn(names: Sequence[str], parts: int) -> list[str]:
    """All of them; in `make test` one in so many, at each commit others."""
    if PART not in os.environ:
        return list(names)
    return [name for name in names if not left_out(name, commit(), parts)]


def _take_turns(items: list[pytest.Item]) -> list[pytest.Item]:
    """Takes eleven twelfths of the cases of tests that have many out of `items`, and
    most tests that are marked `turns`; returns them.

    A test of few cases runs whole: one may stand for what no other tries. The cases are
    deselected, which takes no time; 19,000 skips take 50 seconds.
    """
    cases = collections.Counter(item.nodeid.partition("[")[0] for item in items)

    def waits(item: pytest.Item) -> bool:
        turns = item.get_closest_marker("turns")
        # Of one file all at the same commit: they may share a fixture.
        if turns and left_out(item.path.name, commit(), *turns.args):
            return True
        one_of_many = cases[item.nodeid.partition("[")[0]] >= MANY
        return (
            one_of_many
            and not item.get_closest_marker("whole")
            and left_out(item.nodeid, commit())
        )

    waiting = [item for item in items if waits(item)]
    left = set(map(id, waiting))
    items[:] = [item for item in items if id(item) not in left]
    return waiting


def _expect_differences(items: list[pytest.Item]) -> None:
    """On another jax, the tests of `DIFFERENCES` must fail; one that passes is told.

    It is a failure on the jax that the file was made with, where the list is exact.
    """
    if importlib.util.find_spec("jax") is None:
        return
    version = importlib.metadata.version("jax")
    if version == EXPECTED_JAX:
        return
    listed = tomllib.loads(DIFFERENCES.read_text())
    marks: dict[str, pytest.MarkDecorator] = {}
    for difference in listed["differences"]:
        mark = pytest.mark.xfail(
            reason=difference["cause"],
            run=difference.get("run", True),
            strict=version == listed["jax"],
        )
        for test, cases in difference["tests"].items():
            marks |= {f"tests/{test}[{case}]": mark for case in cases}
            if not cases:
                marks[f"tests/{test}"] = mark
    for item in items:
        mark = marks.get(item.nodeid) or marks.get(item.nodeid.partition("[")[0])
        if mark:
            item.add_marker(mark)


def _shuffle(items: list[pytest.Item], seed: str) -> None:
    """Puts files, and the tests inside of each, into an order that the seed decides.

    The cells of a notebook and what is between them stay as they are.
    """
    order = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    groups = list(files.values())
    order.shuffle(groups)
    for group in groups:
        if group[0].path.suffix == ".py":
            order.shuffle(group)
    items[:] = [item for group in groups for item in group]


def _missing_tools() -> dict[str, str]:
    """For each marker whose tool is not here, the sentence that says so."""
    return {
        marker: f"{' or '.join(programs)} is not on this machine: {consequence}"
        for marker, (programs, consequence) in TOOLS.items()
        if not any(shutil.which(program) for program in programs)
    }


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    reasons = _missing_tools()
    if not os.environ.get("MINIJAX_TEST_ALL"):
        reasons["slow"] = "a long test: MINIJAX_TEST_ALL=1 runs it"
        reasons["repeats"] = "repeats another test: MINIJAX_TEST_ALL=1 runs it"
    if not os.environ.get("MINIJAX_TEST_GPU"):
        reasons["gpu"] = "needs an accelerator: MINIJAX_TEST_GPU=1 runs it"
    _expect_differences(items)
    checking = "MINIJAX_TEST_UNTIL" in os.environ
    if PART in os.environ:
        config.hook.pytest_deselected(items=_take_turns(items))
    if SEED in os.environ:
        _shuffle(items, os.environ[SEED])
    if not checking:
        # Shuffled files keep their places, except for the longest.
        least = 30.0 if SEED in os.environ else 0.0
        items.sort(key=lambda item: max(least, seconds_of(item)), reverse=True)
    for item in items:
        if checking and item.get_closest_marker("long"):
            reason = "too long for `make check`: `make test` runs it"
            item.add_marker(pytest.mark.skip(reason=reason))
        if item.path.name == BUILDS_CPP:
            item.add_marker(pytest.mark.compiler)
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


# Seconds of the files whose tests have run: in the process that collects the reports.
TOOK: collections.Counter[str] = collections.Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    TOOK[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the seconds, where it is asked for and this is no worker."""
    if WRITES_TIMINGS in os.environ and not hasattr(session.config, "workerinput"):
        took = {name: round(TOOK[name], 1) for name in sorted(TOOK)}
        TIMINGS.write_text(json.dumps(took, indent=0) + "\n", encoding="utf-8")


def pytest_report_header() -> list[str]:
    if SEED not in os.environ:
        return []
    return [f"order of the tests: {SEED}={os.environ[SEED]} gives it again"]


def pytest_runtest_setup() -> None:
    # `make check` has two minutes, on a slow machine too.
    if time.time() > float(os.environ.get("MINIJAX_TEST_UNTIL", "inf")):
        pytest.skip("not reached in the time of `make check`: `make test` runs it")


def pytest_terminal_summary(terminalreporter) -> None:
    for sentence in [*_missing_tools().values(), *pytest_report_header()]:
        terminalreporter.write_line(sentence)
    if PART in os.environ:
        terminalreporter.write_line(
            "left to other commits (deselected): eleven of twelve cases of tests with "
            f"{MANY} or more, but for those marked whole; most tests marked turns"
        )
    if not os.environ.get("MINIJAX_TEST_ALL"):
        terminalreporter.write_line(
            "left to make test-all: tests marked slow or repeats; random programs "
            "after the first 60; values of programs whose calls another case compares; "
            "JAX and samplers compiled in more than one way"
        )
