"""`see.memory(compiled=True)`: the map of a compiled program's buffers.

What the map claims is counted another way: by jax's own memory_analysis, and from the
text of XLA's live ranges, byte by byte.
"""

from __future__ import annotations

import itertools
import json

import jax
import numpy as np
import pytest

import gallery
import minijax
import minijax_widgets as see
from minijax_lab.explain.buffer_map import record_buffers
from minijax_lab.explain.buffers import assignment
from minijax_lab.explain.recording import Recording
from tests.views.compiled_programs import PROGRAMS, A, B, X, loss
from tests.views.test_compiled_recording import H100, TPU

LINE = "-- differs between machines --"


@pytest.fixture(scope="module")
def of_loss():
    return see.memory(minijax.grad(loss), B, A, compiled=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_map_covers_what_is_in_use(name) -> None:
    """The rectangles at a point cover as many bytes as are in use there, the most of
    them at the peak; no two lie over each other for longer than one overwrites."""
    function, args = PROGRAMS[name]
    record = record_buffers(function, args, {})
    memory = record.memory
    covered = []
    for point in range(len(memory.schedule)):
        bytes_at: dict[int, set[int]] = {}
        for place in record.places:
            if place.first <= point <= place.last:
                cells = range(place.offset, place.offset + place.bytes)
                bytes_at.setdefault(place.allocation, set()).update(cells)
        covered.append(sum(len(cells) for cells in bytes_at.values()))
    assert covered == memory.live()
    assert record.telling == covered.index(max(covered))
    sizes = {each.id: each.bytes for each in memory.allocations}
    for place in record.places:
        assert place.offset + place.bytes <= sizes[place.allocation]
    assert Recording.from_dict(json.loads(json.dumps(record.to_dict()))) == record


@pytest.mark.parametrize("name", ["loss", "grad of loss", "softmax", "attention"])
def test_bands_are_what_memory_analysis_says(name) -> None:
    function, args = PROGRAMS[name]
    record = record_buffers(function, args, {})
    stats = minijax.jit(function).lower(*args).compile().memory_analysis()
    said = {
        "argument": stats.argument_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "result": stats.output_size_in_bytes,
    }
    drawn = dict.fromkeys(said, 0)
    for allocation in record.memory.allocations:
        if allocation.kind in drawn:
            drawn[allocation.kind] += allocation.bytes
    assert drawn == said
    told = sum(b.bytes for b in record.memory.alive(record.memory.told_peak))
    assert told == record.memory.told_most


def gradient(x):
    y = jax.numpy.sin(x) @ x
    return jax.numpy.cos(y).sum()


def test_programs_of_jax() -> None:
    x = np.ones((64, 64), np.float32)
    jitted = jax.jit(jax.grad(gradient))
    stats = jitted.lower(x).compile().memory_analysis()
    for view in (
        see.memory(jitted.lower(x), compiled=True),
        see.memory(jitted, x, compiled=True),
    ):
        kinds = view.recording.memory.kinds
        assert kinds["temporaries"] == stats.temp_size_in_bytes
        assert kinds["arguments"] == stats.argument_size_in_bytes
        assert "y = jax.numpy." in view.text()
    with pytest.raises(TypeError, match="Pass its Lowered"):
        see.memory(jitted.lower(x).compile(), compiled=True)
    with pytest.raises(ValueError, match="JAX compiled the program for cpu"):
        see.memory(jitted.lower(x), compiled=True, target="h100")


def test_the_twin(of_loss) -> None:
    head, line, told, kinds, *rows = of_loss.text().split("\n")
    assert head == "compiled memory of grad(loss): 14 equations" and line == LINE
    assert told.startswith("memory of grad(loss) compiled for cpu: peak 1.1 KiB at ")
    assert kinds.strip() == "672 B of arguments, 288 B of results, 192 B of temporaries"
    assert len(rows) == len(of_loss.recording.places)
    assert all(len(row) <= 100 for row in rows)


def test_the_picture(of_loss) -> None:
    frame = of_loss.frame()
    record = of_loss.recording
    scene = frame.panes[0].scene
    drawn = {key for mark in scene.marks for key in mark.keys if key[0] == "b"}
    assert drawn == {f"b{number}" for number in range(len(record.places))}
    assert len(frame.steps) == len(record.memory.schedule)
    assert frame.telling == record.memory.peak
    for mark in scene.marks:
        for key in mark.keys:
            if key[0] == "b":
                # A click goes to the instruction that makes it, where it is lit.
                assert key in frame.steps[mark.go].on
                assert record.places[int(key[1:])].first == mark.go
                assert "allocation" in mark.tell
    temporaries = [p for p in record.places if p.kind == "temporaries"]
    assert temporaries and all("line " in of_loss.told(p) for p in temporaries)
    texts = [p.text for mark in scene.marks for p in mark.drawn if p.tag == "text"]
    assert any(text.startswith("peak 1.1 KiB, at ") for text in texts)
    assert "<img" in of_loss.static_html() and of_loss.to_svg().startswith("<svg")


@pytest.mark.parametrize("target", [H100, TPU])
def test_other_machines(target) -> None:
    view = see.memory(minijax.grad(loss), B, A, target=target, compiled=True)
    assert f"compiled for {target}: peak " in view.text()
    assert view.to_html()


def test_large_programs_and_none() -> None:
    assert see.memory(lambda x: x, X, compiled=True).to_html()
    weights = [minijax.ShapeDtypeStruct((16, 16), np.float32)] * 24
    x = minijax.ShapeDtypeStruct((8, 16), np.float32)

    def network(weights, x):
        for w in weights:
            x = minijax.numpy.tanh(x @ w)
        return (x * x).sum()

    view = see.memory(minijax.grad(network), weights, x, compiled=True)
    assert len(view.frame().panes[0].scene.marks) < 900
    assert len(view.to_html()) < 1_500_000
    with pytest.raises(ValueError, match="beside= is a second one"):
        see.memory(loss, B, A, beside=loss, compiled=True)


def test_the_memory_on_the_chip_is_counted_apart() -> None:
    """Of what libtpu writes, the colours above 0 are other memories."""
    text = (
        "allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:\n"
        " value: <1 x.1 @0> (size=64,offset=0): f32[16]{0}\n"
        "allocation 1: size 4096, color 1, preallocated-temp:\n"
        " value: <2 copy.1 @0> (size=64,offset=0): f32[16]{0}\n"
        "allocation 2: size 8, color 2, preallocated-temp:\n"
        "allocation 3: size 512, preallocated-temp:\n"
    )
    kinds = [each.kind for each in assignment(text, "tpu")[0]]
    assert kinds == ["argument", "on-chip", "flags", "temporaries"]
    assert [each.kind for each in assignment(text, "cuda")[0]][1] == "temporaries"


@pytest.mark.parametrize("target", [TPU])
def test_the_map_of_a_tpu(target) -> None:
    weights = [np.ones((64, 64), np.float32)] * 4

    def network(weights, x):
        for w in weights:
            x = minijax.numpy.tanh(x @ w)
        return (x * x).sum()

    x = np.ones((256, 64), np.float32)
    record = record_buffers(minijax.grad(network), (weights, x), {}, target)
    chip = [each.id for each in record.memory.allocations if each.kind == "on-chip"]
    inside = [p for p in record.places if p.allocation in chip]
    assert chip and {place.kind for place in inside} == {"on-chip"}
    largest = sum(a.bytes for a in record.memory.allocations if a.id not in chip)
    assert max(record.memory.live()) <= largest


def test_boxes_have_whole_names_or_numbers_of_kernels():
    weights = [np.ones((64, 64), np.float32)] * 4
    x = np.ones((256, 64), np.float32)

    def layers(weights, x):
        for w in weights:
            x = minijax.numpy.tanh(x @ w)
        return (x**2).sum()

    view = see.memory(minijax.grad(layers), weights, x, compiled=True)
    pane = view.frame().panes[0]
    names = {place.buffers[0] for place in view.recording.places}
    buffers = view.recording.memory.buffers
    whole = {buffers[n].name.removesuffix("{}") for n in names}
    kernels = {f"K{n + 1}" for n in view.recording.kernels().values()}
    for scene in filter(None, (pane.scene, pane.middle, pane.narrow)):
        boxes = [mark for mark in scene.marks if any(k[:1] == "b" for k in mark.keys)]
        said = [p.text for mark in boxes for p in mark.drawn if p.tag == "text"]
        told = {text.split("  ")[0] for text in said if not text.endswith("B")}
        assert boxes and told <= whole | kernels, told - whole - kernels


def test_a_thin_place_stands_in_its_frame() -> None:
    """A tuple of 32 bytes at the end of an allocation is drawn as a line, in it."""
    scene = gallery.STATES["memory, compiled"]().frame().panes[0].scene
    frames = [
        (mark.y, mark.y + part.has["height"])
        for mark in scene.marks
        for part in mark.drawn
        if part.tag == "rect" and not mark.label
    ]
    (path,) = [m.drawn[0].has for m in scene.marks if m.label.startswith("tuple.1 ")]
    y, half = float(path["d"].split()[-1]), path["stroke-width"] / 2
    assert any(top <= y - half and y + half <= end for top, end in frames)


def test_numbers_of_kernels_stand_apart() -> None:
    """The frame of one that is lit holds no other; a wide page has them all."""
    view = gallery.STATES["memory, compiled"]()
    pane = view.frame().panes[0]
    for scene in (pane.scene, pane.middle, pane.narrow):
        names = [m for m in scene.marks if any(key[:1] == "p" for key in m.keys)]
        names = [mark for mark in names if mark.drawn[0].tag == "text"]
        # Letters and digits of DejaVu Sans are 0.65 of their size wide.
        places = [(m.x, m.y, len(m.drawn[0].text) * 12 * 0.65) for m in names]
        for (x, y, wide), (to_x, to_y, to_wide) in itertools.combinations(places, 2):
            frames_apart = abs(y - to_y) > 18
            assert frames_apart or abs(x - to_x) - (wide + to_wide) / 2 > 5
        lowest = max(y for _, y, _ in places)
        frame = names[0].halo.has
        assert lowest + frame["y"] + frame["height"] + 1 <= scene.height
        count = len(view.recording.kernels())
        assert len(names) == count if scene is not pane.narrow else len(names) > 9
