"""`see.fusion`: kernels before and after, their bytes, and the picture of them."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_lab.explain.fusion_groups import groups_of
from minijax_lab.explain.recording import Recording
from minijax_widgets.glyph import text_width
from tests.views.compiled_programs import PROGRAMS
from tests.views.test_compiled_recording import H100, TPU

LARGE = minijax.ShapeDtypeStruct((1 << 20,), np.float32)
LINE = "-- differs between machines --"


def chain(x):
    for _ in range(5):
        x = jnp.sin(x) * 2.0
    return x


def softmax(x):
    e = jnp.exp(x - jnp.max(x))
    return e / jnp.sum(e)


@pytest.fixture(scope="module")
def of_chain():
    return see.fusion(chain, LARGE)


def texts(scene):
    return [p.text for mark in scene.marks for p in mark.drawn if p.tag == "text"]


def test_ten_operations_become_one_kernel(of_chain) -> None:
    (group,) = of_chain.groups()
    assert len(group.before) >= 10
    assert group.kernel.bytes == 2 * LARGE.size * 4  # x is read once, written once
    assert group.saved > 9 * group.kernel.bytes
    above, _, below = of_chain.text().partition(LINE)
    assert above == "fusion of chain: 10 equations\n"
    assert "5 sine, 5 multiply" in below and "8.0 MiB" in below


@pytest.mark.parametrize("target", [H100, TPU])
def test_other_machines(target) -> None:
    view = see.fusion(chain, LARGE, target=target)
    (group,) = view.groups()
    assert len(group.before) >= 10 and group.saved > 9 * group.kernel.bytes
    assert f"on {target}" in view.text()
    assert view.to_html()


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_kernel_stands_once_and_no_byte_is_lost(name) -> None:
    function, args = PROGRAMS[name]
    view = see.fusion(function, *args)
    record, groups = view.recording, view.groups()
    assert [group.kernel for group in groups] == record.program.kernels
    before = [id(kernel) for group in groups for kernel in group.before]
    assert len(before) == len(set(before))
    assert record.unfused is not None
    every = {id(kernel) for kernel in record.unfused.kernels}
    left = [k for k in record.unfused.kernels if id(k) not in set(before)]
    assert set(before) <= every
    # What is left over was made by XLA alone, and nothing that is compiled reads it.
    assert all(not kernel.equations for kernel in left)
    for group in groups:
        for kernel in group.before:
            # jaxlib 0.12 gives what XLA makes in a loop the equation of the loop.
            own = {e for each in kernel.equations for e in record.within(each)}
            other = set(group.kernel.equations)
            assert not own or own & other or not other
    assert groups_of(Recording.from_dict(record.to_dict())) == groups
    assert view.to_html()


def test_the_picture(of_chain) -> None:
    frame = of_chain.frame()
    scene = frame.panes[0].scene
    assert {"without fusion", "compiled", "K1"} <= set(texts(scene))
    assert texts(scene).count("sin") == 10  # five rows on the left, five in the box
    rects = [p.has for m in scene.marks for p in m.drawn if p.tag == "rect"]
    read = [r["width"] for r in rects if r.get("fill") == "value-wash"]
    total, *bars = [width for width in read if width > 10]
    assert sum(width > 1.9 * min(bars) for width in bars) == 5  # a product reads two
    assert total > max(bars)
    (large, small) = [text for text in texts(scene) if "kernel" in text]
    assert large.startswith("104.0 MiB") and small.startswith("8.0 MiB")
    narrow = frame.panes[0].narrow
    assert narrow.width == 288 and narrow.height > scene.height
    assert of_chain.to_svg().startswith("<svg")


def test_how_often_a_kernel_runs_is_never_cut() -> None:
    def turns(x):
        body = lambda _, x: softmax(x[::-1] * 2 - x.mean())  # noqa: E731
        return minijax.lax.fori_loop(0, 7, body, x)

    pane = see.fusion(turns, np.ones(64, np.float32)).frame().panes[0]
    for scene in (pane.scene, pane.narrow):
        told = texts(scene)
        assert "runs 7 times" in told
        assert not [t for t in told if "runs" in t and t.endswith("...")]


def test_times_are_measured_here() -> None:
    view = see.fusion(softmax, np.ones(100_000, np.float32), measure=True)
    assert view.times and all(time > 0 for time in view.times.values())
    assert " us" in view.text().partition(LINE)[2]
    assert " us" not in view.text().partition(LINE)[0]
    assert "measured" in view.frame().panes[1].columns


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(ValueError, match="measure=True runs the program on this"):
        see.fusion(chain, LARGE, target="h100", measure=True)
    with pytest.raises(ValueError, match="target"):
        see.fusion(chain, LARGE, target="abacus")
    with pytest.raises(TypeError):
        see.fusion(chain, LARGE, measure=True)  # a shape has no values to run on


def test_nothing_to_do() -> None:
    view = see.fusion(lambda x: x, np.ones(3, np.float32))
    assert "0 equations" in view.text()
    assert view.to_html()


def test_a_large_gradient_stays_small() -> None:
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x * x).sum()

    weights = [np.ones((16, 16), np.float32)] * 60
    view = see.fusion(minijax.grad(loss), weights, np.ones((8, 16), np.float32))
    assert len(view.groups()) > 100
    scene = view.frame().panes[0].scene
    assert len(scene.marks) < 3000
    assert any("smaller kernels" in text for text in texts(scene))
    assert len(view.to_html()) < 1_500_000
    assert "more kernels" in view.text()


@pytest.mark.parametrize("count", [9, 10, 11, 12, 13])
def test_the_note_of_more_operations_stays_in_its_kernel(count):
    def longest(x):
        for number in range(count):
            x = jnp.sin(x) * jnp.cos(x) + number
        return x

    pane = see.fusion(longest, np.ones(8, np.float32)).frame().panes[0]
    for scene in (pane.scene, pane.narrow):
        parts = [(mark, part) for mark in scene.marks for part in mark.drawn]
        (end,) = [
            mark.x + float(part.has.get("x", 0)) + text_width(part.text, 12)
            for mark, part in parts
            if part.tag == "text" and re.fullmatch(r"and \d+ more", part.text)
        ]
        box = max(
            (float(part.has["width"]), mark.x)
            for mark, part in parts
            if part.tag == "rect"
        )
        assert end < sum(box)
