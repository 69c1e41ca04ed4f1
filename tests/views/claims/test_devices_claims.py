"""`see.placement` and `see.collectives` of programs that are hard to count in."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.turns(3)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", params=("jax", "minijax"))
def found(request):
    """What `hard_on_devices.py` found, in a process with eight devices."""
    command = [sys.executable, "-m", "tests.views.claims.hard_on_devices"]
    done = subprocess.run(
        [*command, request.param], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def kinds_in(headline: str) -> dict[str, int]:
    """How many collectives of each kind a headline counts."""
    kinds = r"all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
    return {kind: int(n) for n, kind in re.findall(rf"(\d+) ({kinds})", headline)}


def test_collectives_are_counted_as_often_as_they_run(found):
    for name, case in found.items():
        assert case["told"] == case["counted"], name
        kinds = Counter(one[0] for one in case["counted"])
        if sum(kinds.values()) > 1:
            assert kinds_in(case["sent"]) == kinds, name
    every = [one[3] for case in found.values() for one in case["counted"]]
    assert {1, 5, None} <= set(every)  # once, in a loop of five turns, unknown


def test_placement_counts_collectives_pieces_and_copies(found):
    for name, case in found.items():
        kinds = Counter(one[0] for one in case["counted"])
        assert Counter(case["opcodes"]) == kinds, name
        assert kinds_in(case["placed"]) == kinds, name
        assert case["results"] == case["pieces"], name
    assert len({tuple(one) for case in found.values() for one in case["pieces"]}) > 1
