"""The roofline in `see.fusion` and `see.memory`: dots under the roof, and words."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_lab.explain.roofline import h100, measured_cpu, roofline_of
from minijax_widgets.roofline_scene import number_in_words, seconds_in_words
from minijax_widgets.scene import text_width
from subjects import softmax
from tests.views.compiled_programs import PROGRAMS, A, B, chain, loss
from tests.views.test_compiled_recording import H100, TPU

SMALL = see.Machine("a small machine", 1e12, 1e11)


def floats(*shape):
    return minijax.ShapeDtypeStruct(shape, np.float32)


def mean_error(weights, x, y):
    for w in weights:
        x = jnp.tanh(x @ w)
    return ((x - y) ** 2).mean()


def dots(scene):
    return [
        mark
        for mark in scene.marks
        if mark.keys and mark.drawn[0].tag == "circle" and "operations on" in mark.tell
    ]


def test_no_name_lies_on_a_dot() -> None:
    """On a narrow page, where dots stand close: kernels' names and the roof's rates."""
    args = [[floats(512, 512)] * 3, floats(256, 512), floats(256, 512)]
    for function, given in ((minijax.grad(mean_error), args), (chain, [floats(1024)])):
        scene = see.fusion(function, *given, roofline=SMALL).frame().panes[1].narrow
        names = [m for m in scene.marks if m.drawn[0].tag == "text"]
        assert any("Top/s" in mark.drawn[0].text for mark in names)
        for mark in names:
            has, text = mark.drawn[0].has, mark.drawn[0].text
            mono = has.get("font-family") == "code"
            wide = text_width(text, has["font-size"], mono)
            start = {"end": wide, "middle": wide / 2}.get(has.get("text-anchor"), 0)
            left, base = mark.x + has["x"] - start, mark.y + has["y"]
            for dot in dots(scene):
                r = 0.7 * dot.drawn[0].has["r"]  # the middle of a dot
                beside = left > dot.x + r or left + wide < dot.x - r
                assert beside or base < dot.y - r or base - 9 > dot.y + r, text


def test_each_dot_has_a_name_on_a_narrow_page() -> None:
    """The small dot of `div` lies on a large one, the roof passes below it."""
    panes = see.memory(softmax, floats(1 << 20), roofline=SMALL).frame().panes
    (scene,) = (pane.narrow for pane in panes if pane.title.startswith("roofline"))
    texts = [m for m in scene.marks if m.drawn[0].tag == "text"]
    named = {key for mark in texts for key in mark.keys}
    assert named == {key for dot in dots(scene) for key in dot.keys}
    assert len(named) == 4


def test_a_chain_waits_for_memory_and_a_product_does_not() -> None:
    """Counted by hand: 10 operations a number on 8 MiB, and 2 n^3 on 3 n^2 numbers."""
    view = see.fusion(chain, floats(1 << 20), roofline=SMALL)
    (dot,) = roofline_of(view.program, SMALL).dots
    assert dot.operations == 10 * 2**20 and dot.bytes == 8 * 2**20
    told = seconds_in_words(8 * 2**20 / 1e11)
    assert f"{told}, modelled; memory is the bound for 100% of it" in view.text()
    counted = f"sine: {5 * 2**20:,} results, each counted as one operation though"
    assert counted in view.text() and counted in view.frame().panes[1].title
    view = see.fusion(lambda a, b: a @ b, *[floats(512, 512)] * 2, roofline=SMALL)
    told = seconds_in_words(2 * 512**3 / 1e12)
    assert f"{told}, modelled; memory is the bound for 0% of it" in view.text()
    assert "counted as one operation" not in view.text()


@pytest.mark.parametrize("name", ["grad of loss", "attention", "layer_norm", "scan"])
def test_dots_stand_on_the_roof(name) -> None:
    function, args = PROGRAMS[name]
    view = see.fusion(function, *args, roofline=SMALL)
    frame = view.frame()
    scene = frame.panes[1].scene
    kernels = view.program.kernels
    marks = dots(scene)
    assert len(marks) == len(kernels)

    # Every dot is at or right of its neighbours with fewer operations for each byte.
    def intensity(number):
        kernel = kernels[number]
        return (kernel.flops + kernel.transcendentals) / kernel.bytes

    places = sorted((intensity(int(m.keys[0][1:])), m.x, m.y) for m in marks)
    assert all(a[1] <= b[1] + 0.01 for a, b in zip(places, places[1:], strict=False))
    assert all(a[2] >= b[2] - 0.01 for a, b in zip(places, places[1:], strict=False))
    for mark in marks:
        number = int(mark.keys[0][1:])
        assert mark.go == number and mark.keys[0] in frame.steps[mark.go].on
        bound = "memory" if intensity(number) <= SMALL.ridge else "arithmetic"
        assert f"{bound} is the bound" in mark.tell and "modelled" in mark.tell
    rows = frame.panes[2].rows
    assert len(rows) == len(kernels)


def test_memory_shows_the_same_kernels() -> None:
    view = see.memory(minijax.grad(loss), B, A, roofline=SMALL)
    frame = view.frame()
    marks = dots(frame.panes[1].scene)
    assert len(marks) == len(view.recording.program.kernels)
    for mark in marks:
        assert mark.keys[0] in frame.steps[mark.go].on
    assert "roofline of a small machine" in view.text()


def test_measured_dots() -> None:
    x = np.ones(1 << 16, np.float32)
    view = see.fusion(lambda x: jnp.sin(x) * 2.0, x, roofline=SMALL, measure=True)
    (mark,) = dots(view.frame().panes[1].scene)
    assert "measured: " in mark.tell


def test_this_machine_is_measured() -> None:
    machine = measured_cpu()
    assert machine.operations > 1e8 and machine.bandwidth > 1e7
    assert machine.source.startswith("measured now")
    assert "roofline of this CPU" in see.memory(loss, B, A, roofline=True).text()


@pytest.mark.parametrize("target", [H100, TPU])
def test_described_machines(target) -> None:
    view = see.fusion(loss, B, A, target=target, roofline=True)
    assert f"roofline of {target.partition(':')[0]}: " in view.text()
    assert see.memory(loss, B, A, target=target, roofline=True).to_html()
    if target == "h100":
        assert view.machine == h100()


def test_programs_of_jax() -> None:
    lowered = jax.jit(lambda x: jax.numpy.sin(x) @ x).lower(np.ones((64, 64), "f4"))
    for stage in (lowered, lowered.compile()):
        view = see.fusion(stage, roofline=SMALL)
        assert len(dots(view.frame().panes[1].scene)) == len(view.program.kernels)


def test_wrong_machines() -> None:
    with pytest.raises(TypeError, match="roofline='h100': pass True"):
        see.fusion(loss, B, A, roofline="h100")
    with pytest.raises(ValueError, match="both must be above zero"):
        see.memory(loss, B, A, roofline=see.Machine("none", 0.0, 1.0))


def test_numbers_in_words() -> None:
    assert number_in_words(66.9e12) == "66.9 T" and number_in_words(0.25) == "0.25"
    assert seconds_in_words(2.5e-6) == "2.5 us" and seconds_in_words(3e-9) == "3 ns"
    assert math.isclose(SMALL.ridge, 10)
