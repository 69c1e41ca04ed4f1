"""What `see.collectives` claims of bytes, held against arrays that are sent around."""

import numpy as np
import pytest

from minijax_lab.explain.collectives import ring
from minijax_lab.explain.spmd import Collective


def sent_around(opcode: str, members: int, elements: int) -> list[int]:
    """How many elements each member sends, part by part, as `np.array_split` cuts."""
    parts = [len(p) for p in np.array_split(np.zeros(elements), members)]
    if opcode == "all-gather":
        parts = [elements] * members
    sent = [0] * members
    for message in ring(opcode, members):
        sent[message.sender] += parts[message.part]
    return sent


@pytest.mark.parametrize("elements", [1, 3, 8, 64, 100])
@pytest.mark.parametrize("members", [2, 3, 8])
@pytest.mark.parametrize("opcode", ["all-reduce", "all-gather", "reduce-scatter"])
def test_bytes_of_a_ring(opcode, members, elements):
    groups = [list(range(members)), list(range(members, 2 * members))]
    one = Collective(
        opcode, "", groups, [], 4 * elements, 4 * elements, "", 7, itemsize=4
    )
    sent = sent_around(opcode, members, elements)
    assert one.total == 7 * 2 * 4 * sum(sent)
    # No member sends more, and where parts are empty one may send a little less.
    assert 0 <= one.sent - 4 * max(sent) <= 4
    assert one.sent % 4 == 0
