"""Runs the tests nearest to each of the sabotage lab's faults, with the fault at work.

`python -m tests.rules.sabotaged` prints a JSON object: for each fault how many
tests passed before the first one failed. One process, since importing the tests and jax
takes longer than running them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

import pytest

from minijax_lab.sabotage import FAULTS, sabotage

RULES = "tests/rules/test_derivatives.py::test_derivatives"
BATCHES = "tests/rules/test_batching.py::test_batching"
POINTS = "tests/rules/test_special_points.py"
FLOW = "tests/programs/test_control_flow.py::test_values"

NEAREST: dict[int, list[str]] = {
    1: ["tests/golden -k grad"],
    2: [f"{RULES}[sub]"],
    3: [f"{RULES}[transpose]"],
    4: [f"{RULES}[sin]"],
    5: [f"{RULES}[tanh]"],
    6: [f"{POINTS}::test_derivatives_at_ties[max]"],
    7: [f"{RULES}[broadcast_in_dim]"],
    8: [f"{RULES}[cumsum reverse=False]"],
    9: [f"{RULES}[select_n]"],
    10: [f"{RULES}[integer_pow]"],
    11: [f"{BATCHES}[reduce_sum]"],
    12: [f"{BATCHES}[dot_general]"],
    13: ["tests/random/test_keys.py"],
    14: [FLOW],
    15: [FLOW],
    16: ["tests/golden -k custom_jvp"],
    17: ["tests/programs/test_checkpoint.py::test_policies"],
    18: [f"{POINTS}::test_tiny_arguments[log1p]"],
    19: ["tests/golden -k weak"],
    20: ["tests/primitives/test_reductions.py -k reduce_max"],
}


class Counter:
    """A plugin of pytest that counts tests by their outcome."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.passed += report.passed
            self.failed += report.failed


def run(nodes: list[str]) -> Counter:
    """Runs some tests; each node may end on ` -k EXPRESSION`."""
    counter = Counter()
    os.environ.pop("MINIJAX_TEST_PART", None)  # all cases may notice a fault
    for node in nodes:
        place, _, words = node.partition(" -k ")
        chosen = ["-k", words] if words else []
        options = ["-q", "-x", "--tb=line", "-p", "no:cacheprovider"]
        options += ["-p", "no:xdist", "-p", "no:nbval"]
        pytest.main([place, *chosen, *options], plugins=[counter])
    return counter


def main() -> None:
    counts = {}
    with contextlib.redirect_stdout(sys.stderr):
        for number in map(int, sys.argv[1:]) if sys.argv[1:] else FAULTS:
            with sabotage(number):
                counter = run(NEAREST[number])
            counts[number] = {"passed": counter.passed, "failed": counter.failed}
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
