"""What `see.collectives` claims of bytes, held against arrays that are sent around."""

import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.collectives import ring, ways
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


def test_a_gathering_without_a_stack_has_its_readers_line():
    """jaxlib 0.12 writes so; the product that reads it is inside of a kernel."""
    text = """HloModule gathered

%kernel (p: f32[4], q: f32[2]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %q = f32[2]{0} parameter(1)
  %y = f32[4]{0} multiply(%p, %p), metadata={op_name="jit(f)/mul" stack_frame_id=1}
  ROOT %z = f32[4]{0} tanh(%y), metadata={op_name="jit(f)/tanh" stack_frame_id=2}
}

ENTRY %main (w: f32[2]) -> f32[4] {
  %w = f32[2]{0} parameter(0), metadata={op_name="w"}
  %all-gather-start = (f32[2]{0}, f32[4]{0}) all-gather-start(%w), channel_id=1, replica_groups={{0,1}}, dimensions={0}, metadata={op_name="w"}
  %all-gather-done = f32[4]{0} all-gather-done(%all-gather-start), metadata={op_name="w"}
  ROOT %r = f32[4]{0} fusion(%all-gather-done, %w), kind=kLoop, calls=%kernel, metadata={op_name="jit(f)/tanh" stack_frame_id=2}
}
"""  # noqa: E501
    module = parse(text)
    mesh = MeshFacts([MeshAxis("x", 2)], [0, 1], "", named=True)
    lines = {1: ("f.py, line 1", "y = w * w"), 2: ("f.py, line 2", "tanh(y)")}
    program = Program("f", text, module, mesh, None, lines=lines)
    (one,) = collectives_of(program)
    assert (one.where, one.line, one.primitive) == (*lines[1], "mul")


def pairwise(opcode: str, how: str, members: int, elements: int) -> tuple[int, int]:
    """Carries an algorithm out on sums; returns its rounds, and what the busiest sent.

    Each round pairs members that are so far apart; a block is cut in two on the way
    down and joined on the way up.
    """
    held = np.random.default_rng(0).integers(0, 9, (members, elements))
    wanted = held.sum(0)
    distances = [2**k for k in range(members.bit_length() - 1)]
    sent, rounds = np.zeros(members, int), 0
    own = [(0, elements)] * members
    if how == "by doubling" and opcode == "all-reduce":
        for distance in distances:
            held = held + held[np.arange(members) ^ distance]
            sent, rounds = sent + elements, rounds + 1
        assert (held == wanted).all()
        return rounds, int(sent.max())
    if opcode == "all-gather":
        have = [{k} for k in range(members)]
        for distance in distances:
            sent += [len(one) * elements for one in have]
            have = [have[k] | have[k ^ distance] for k in range(members)]
            rounds += 1
        assert all(len(one) == members for one in have)
        return rounds, int(sent.max())
    for distance in reversed(distances):
        before, rounds = held.copy(), rounds + 1
        for k in range(members):
            low, high = own[k]
            middle = (low + high) // 2
            keeps = (middle, high) if k & distance else (low, middle)
            sent[k] += high - low - (keeps[1] - keeps[0])
            held[k, slice(*keeps)] += before[k ^ distance, slice(*keeps)]
            own[k] = keeps
    for k, block in enumerate(own):
        assert (held[k, slice(*block)] == wanted[slice(*block)]).all()
    if opcode == "all-reduce":
        for distance in distances:
            before, blocks, rounds = held.copy(), list(own), rounds + 1
            for k in range(members):
                sent[k] += blocks[k][1] - blocks[k][0]
                other = blocks[k ^ distance]
                held[k, slice(*other)] = before[k ^ distance, slice(*other)]
                own[k] = (min(own[k][0], other[0]), max(own[k][1], other[1]))
        assert (held == wanted).all()
    return rounds, int(sent.max())


def in_a_tree(members: int, elements: int) -> tuple[int, int]:
    """Sums up a binomial tree and sends the sum down: rounds, and the busiest."""
    have, sent, rounds = {0}, [0] * members, 0
    distances = [2**k for k in range((members - 1).bit_length())]
    for distance in reversed(distances):
        for k in sorted(have):
            if k + distance < members and k + distance not in have:
                sent[k] += elements
                sent[k + distance] += elements  # what it gave on the way up
                have.add(k + distance)
        rounds += 2
    assert have == set(range(members))
    return rounds, max(sent)


@pytest.mark.parametrize("members", [3, 4, 6, 8])
@pytest.mark.parametrize("opcode", ["all-reduce", "all-gather", "reduce-scatter"])
def test_rounds_and_bytes_of_other_algorithms(opcode, members):
    """They are those of the algorithms, carried out."""
    elements = 24
    groups = [list(range(members))]
    one = Collective(opcode, "", groups, [], 4 * elements, 0, "", itemsize=4)
    first, *others = ways(one)
    assert first.sent == one.sent
    power = members in (4, 8)
    assert len(others) == (power * 2 + 1 if opcode == "all-reduce" else power)
    for way in others:
        if way.name == "in a tree":
            counted = in_a_tree(members, elements)
        else:
            counted = pairwise(opcode, way.name, members, elements)
        assert (way.rounds, way.sent) == (counted[0], 4 * counted[1]), way
