"""`see.collectives` on programs of JAX and of minijax, on eight CPU devices."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gallery
from minijax_lab.explain.collectives import ring, rounds, who_sends
from minijax_lab.explain.placement import MeshAxis, MeshFacts
from minijax_lab.explain.recording import Source, Span
from minijax_lab.explain.spmd import Collective
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.collectives_scene import Drawing, around
from minijax_widgets.placement_scene import NARROW_RING, WIDE, MeshPicture, name_axes
from minijax_widgets.scene import Scene

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=("jax", "minijax"))
def found(request):
    """What `partitioned_programs.py` found, in a process with eight devices."""
    script = ROOT / "tests/views/partitioned_programs.py"
    done = subprocess.run(
        [sys.executable, str(script), request.param],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return request.param, json.loads(done.stdout.splitlines()[-1])


def test_collectives_are_those_of_the_program(found):
    """Their number, groups and bytes equal those counted in `compiled.as_text()`."""
    programs = found[1]["programs"]
    assert len(programs) >= 11
    for label, program in programs.items():
        assert program["recorded"] == program["counted"], label
        assert program["same"], label
    assert programs["no collective"]["recorded"] == []
    assert sum(len(program["recorded"]) for program in programs.values()) >= 10


def test_axes_loops_and_lines(found):
    programs = found[1]["programs"]
    dot = programs["dot"]
    assert dot["recorded"] == [["all-reduce", [[0, 1], [2, 3], [4, 5], [6, 7]], 32]]
    assert dot["axes"] == [["y"]]
    assert dot["lines"] == ["c = a @ b"]
    assert "all-reduce over y  32 B from each device" in dot["text"]
    assert "all 256 B" in dot["text"]
    assert dot["steps"] == [
        "all-reduce",
        "all-reduce, round 1 of 2",
        "all-reduce, round 2 of 2",
    ]
    assert 5 in programs["loop"]["times"]
    moved = programs["loop"]["text"].splitlines()[2]
    assert "collective-permute" not in moved or "message" in moved


def test_refusals(found):
    """What is no function; a function of JAX's is jitted by JAX."""
    _, page = found
    assert "a function" in page["refused"][0]
    assert page["refused"][1] == ""


@pytest.mark.parametrize(
    "opcode, groups, size, all_alike",
    [
        ("all-reduce", [[0, 1], [2, 3]], 8, True),
        ("all-reduce", [[0, 1, 2, 3]], 4, False),  # one number has no four parts
        ("collective-permute", [[0, 1], [1, 0], [2, 3], [3, 2]], 8, True),
        ("collective-permute", [[0, 1], [2, 3]], 8, False),
    ],
)
def test_each_device_sends_only_where_all_do(opcode, groups, size, all_alike):
    mesh = MeshFacts([MeshAxis("x", 4)], [0, 1, 2, 3], "cpu")
    each = Collective(opcode, "", groups, ["x"], size, size, "", itemsize=4)
    sent = [0] * 4
    if opcode == "collective-permute":
        for sender, _ in groups:
            sent[sender] += size
    else:
        n = len(groups[0])
        parts = [4 * (size // 4 * (k + 1) // n - size // 4 * k // n) for k in range(n)]
        for message in ring(opcode, n):
            for group in groups:
                sent[group[message.sender]] += parts[message.part]
    assert each.total == sum(sent)
    assert (len({*sent}) == 1) == all_alike
    assert ("up to" not in who_sends(each, mesh)) == all_alike


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_the_ring_computes_the_collective(n):
    """The messages, carried out on numbers, give what the collective means."""
    parts = np.random.default_rng(n).integers(0, 100, (n, n))
    for opcode in ("all-reduce", "reduce-scatter", "all-gather", "all-to-all"):
        held = parts.copy()
        if opcode == "all-gather":
            held = np.where(np.eye(n, dtype=bool), parts, -1)
        got = {}
        for number in range(1, rounds(opcode, n) + 1):
            before = held.copy()
            senders = [m.sender for m in ring(opcode, n) if m.round == number]
            assert sorted(senders) == list(range(n))
            for message in ring(opcode, n):
                if message.round != number:
                    continue
                a, b, part = message.sender, message.receiver, message.part
                if opcode == "all-to-all":
                    got[b, a] = parts[a, part]
                elif opcode == "all-gather":
                    held[b, part] = before[a, part]
                elif opcode == "all-reduce" and number >= n:
                    held[b, part] = before[a, part]
                else:
                    held[b, part] = before[a, part] + held[b, part]
        if opcode == "all-reduce":
            assert (held == parts.sum(0)).all()
        elif opcode == "reduce-scatter":
            assert [held[k, k] for k in range(n)] == list(parts.sum(0))
        elif opcode == "all-gather":
            assert (held == np.diag(parts)).all()
        else:
            assert all(got[b, a] == parts[a, b] for b, a in got)
            assert len(got) == n * (n - 1)


@pytest.mark.parametrize("across, lines", [(4, 2), (2, 4), (3, 2), (2, 3)])
def test_devices_in_two_lines_stand_as_a_ring(across, lines):
    """The next one stands beside or below, the first beside the last: none crosses."""
    grid = [(90.0 * x, 60.0 * y) for y in range(lines) for x in range(across)]
    ring_of = around(grid)
    assert sorted(ring_of) == sorted(grid) and ring_of[0] == grid[0]
    for (x, y), (to_x, to_y) in zip(ring_of, [*ring_of[1:], ring_of[0]], strict=True):
        assert (abs(to_x - x), abs(to_y - y)) in ((90.0, 0.0), (0.0, 60.0))


def test_other_places_of_devices_are_left_alone():
    for places in ([(0.0, 0.0)], [(90.0 * x, 0.0) for x in range(8)]):
        assert around(places) == places
    square = [(90.0 * x, 60.0 * y) for y in range(3) for x in range(3)]
    assert around(square) == square and around(square[:8]) == square[:8]


@pytest.mark.parametrize("sizes", [WIDE, NARROW_RING])
@pytest.mark.parametrize("n", [3, 5, 8])
@pytest.mark.parametrize("opcode", ["all-reduce", "reduce-scatter", "all-to-all"])
def test_a_ring_is_drawn_as_a_ring(opcode, n, sizes):
    """Devices stand on a circle, and in the end the numbers are those of the sums."""
    mesh = MeshFacts([MeshAxis("i", n)], list(range(n)), "", named=True)
    one = Collective(opcode, "", [list(range(n))], ["i"], 8 * n, 8, "", itemsize=4)
    scene, count = Scene(sizes.width, 100), rounds(opcode, n)
    drawing = Drawing(scene, mesh, one, sizes, "c0", 5, count, ring(opcode, n))
    low = drawing.draw(0)
    scene.end_at(low, 0)
    assert scene.width <= sizes.width
    middles = []
    for mark in scene.marks:
        if mark.keys == ["c0g0"]:
            half = mark.drawn[0].has["width"] / 2
            middles.append((mark.x + half, mark.y + half))
            assert mark.y + 2 * half <= low
    assert len(middles) == n
    center = np.mean(middles, 0)
    far = np.linalg.norm(np.array(middles) - center, axis=1)
    assert np.allclose(far, far[0]) and np.linalg.norm(middles[0] - center) > 60
    last = [mark.parts(5 + count) for mark in scene.marks if mark.keys == []]
    said = [part.text for drawn in last for part in drawn if part.tag == "text"]
    sums = said.count(f"{n}")
    if opcode == "all-reduce":
        assert sums >= n * n  # every part of every device
    elif opcode == "reduce-scatter":
        assert n <= sums <= 2 * n + 1  # one part of each, with what moved there
    sent = "14" if opcode == "all-reduce" else "7"
    assert n < 8 or f"each has sent {8 * int(sent)} B" in " ".join(
        part.text
        for mark in scene.marks
        for part in mark.parts(5 + count)
        if part.tag == "text"
    )


@pytest.mark.parametrize("sizes", [WIDE, NARROW_RING])
@pytest.mark.parametrize("opcode", ["all-reduce", "collective-permute"])
def test_long_names_of_axes_are_cut_and_do_not_overlap(opcode, sizes):
    """The text goes below the title, and the names of columns keep their places."""
    names = ["d" * 60, "m" * 60]
    mesh = MeshFacts([MeshAxis(n, 2) for n in names], list(range(4)), "", named=True)
    one = Collective(opcode, "", [[0, 1], [2, 3]], names, 16, 16, "", itemsize=4)
    scene, count = Scene(sizes.width, 100), rounds(opcode, 2)
    Drawing(scene, mesh, one, sizes, "c0", 0, count, ring(opcode, 2)).draw(0)
    assert min(mark.x for mark in scene.marks) >= 0
    parts = [part for mark in scene.marks for part in mark.drawn if part.tag == "text"]
    said = [part.text for part in parts]
    for place in ("=0", "=1"):
        assert sum(text.endswith("..." + place) for text in said) == 2
    assert all(len(text) < 30 for text in said if "=" in text)
    assert ("dark: the device has it whole; amber: what moves" in said) == (
        opcode == "all-reduce"
    )
    assert ("a number: which part of the array" in said) == (opcode == "all-reduce")


def test_a_listing_begins_at_the_function():
    """Of a file only what the spans are in is shown, with the marks at their place."""
    lines = ["import os", "", "def f(x):", "    return g(x)", "", "y = f(1)", "z = 2"]
    source = Source(0, "<module>", "a.py", 1, lines)
    spans = [Span(0, 4, 11, 4, 15), Span(0, 6, 4, 6, 8)]
    for given, shown in ((spans, lines[2:6]), (spans[:1], lines[2:4])):
        made = code_panes([source], given)
        assert [row.cells[1] for row in made.panes[0].rows] == shown
        assert mark_of(made, spans[0], 1) == [(1, 1, 11, 15)]
    cell = Source(0, "<module>", "cell", 1, lines)
    assert len(code_panes([cell], spans).panes[0].rows) == 7


def test_the_name_of_an_axis_is_whole_where_columns_are_narrow():
    mesh = MeshFacts([MeshAxis("data", 1), MeshAxis("model", 3)], [0, 1, 2], "", True)

    def named(device):
        corners = [(60.0 + column * (device + 10), 30.0) for column in range(3)]
        scene = Scene(288, 90)
        name_axes(scene, mesh, MeshPicture(corners, (device, 30.0), 288, 60))
        return [p.text for mark in scene.marks for p in mark.drawn][1:]

    assert named(30) == ["model=0", "=1", "=2"]
    assert named(60) == ["model=0", "model=1", "model=2"]


@pytest.mark.parametrize("name", ["collectives", "collectives, loop"])
def test_a_narrow_picture_has_whole_labels(name):
    """The user's line stands below its number; no line of a label is one short word."""
    view = gallery.STATES[name]()
    (scene,) = (pane.narrow for pane in view.frame().panes if pane.narrow)
    texts = [p for mark in scene.marks for p in mark.drawn if p.tag == "text"]
    said = [part.text for part in texts]
    assert not [text for text in said if text.endswith("...")]
    each = view.recording.collectives[0]
    assert each.line in " ".join(" ".join(said).split())
    given = [part.text for part in texts if part.has["fill"] == "meshy"]
    lines = [text for text in given if "=" not in text]
    assert len(lines) == 2 and min(map(len, lines)) > max(map(len, lines)) / 2
