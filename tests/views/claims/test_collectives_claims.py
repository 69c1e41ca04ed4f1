"""What `see.collectives` claims of bytes, held against arrays that are sent around."""

import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.collectives import ring
from minijax_lab.explain.hlo_text import parse
from minijax_lab.explain.placement import MeshAxis, MeshFacts
from minijax_lab.explain.spmd import Collective, Program, collectives_of


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


def test_the_title_has_the_transformations():
    def loss(w):
        return (w * w).sum()

    for function, name in (
        (loss, "loss"),
        (minijax.grad(loss), "grad(loss)"),
        (minijax.jit(minijax.grad(loss)), "grad(loss)"),
        (minijax.jit(minijax.grad(loss)).lower(np.ones(3, np.float32)), "loss"),
    ):
        args = () if hasattr(function, "compile") else (np.ones(3, np.float32),)
        assert see.collectives(function, *args).recording.call == name


def test_what_was_joined_is_told():
    text = """HloModule joined

ENTRY %main (a: f32[4], b: f32[2]) -> (f32[4], f32[2]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[2]{0} parameter(1)
  ROOT %r = (f32[4]{0}, f32[2]{0}) all-reduce(%a, %b), replica_groups={{0,1}}
}
"""
    module = parse(text)
    mesh = MeshFacts([MeshAxis("x", 2)], [0, 1], "", named=True)
    (one,) = collectives_of(Program("f", text, module, mesh, None))
    assert (one.bytes, one.itemsize) == (24, 4)
    assert one.note == "XLA joined 2 of them; the line is that of one"
