"""Small drawings: a tangent, functions as boxes inside each other, got and expected."""

import json

import numpy as np
import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import ShapeDtypeStruct, grad, jvp, lax
from minijax_lab.explain.compiled import times_in_words
from minijax_lab.explain.recording import Recording
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.glyph import text_width


def wave(x):
    return jnp.sin(x) * x


def test_a_tangent_has_the_value_and_slope_of_one_jvp():
    view = see.tangent(wave, 2.0)
    assert view.text() == "at x = 2: value 1.8186, slope 0.0770"
    dot = next(mark for mark in view.recording.marks if mark[0] == "dot")
    ends = view.recording.marks[2][2]
    rise = (ends[1][1] - ends[0][1]) / (ends[1][0] - ends[0][0])
    # The line goes through the dot, and rises as the slope says in the curve's scale.
    assert abs(ends[0][1] + rise * (dot[2] - ends[0][0]) - dot[3]) < 0.2
    numbers = [mark[4] for mark in view.recording.marks if mark[0] == "text"]
    assert numbers == ["-6", "-4", "-2", "0", "2", "4", "6"]
    steps = see.tangent(jnp.exp, 0.5, 0.0, 1.0).recording.marks
    assert [mark[4] for mark in steps if mark[0] == "text"][1:3] == ["0.2", "0.4"]
    # The curve fills the height: what it does not reach is at most a tenth.
    downs = [down for _, down in view.recording.marks[1][2]]
    assert min(downs) < 22 and max(downs) > 198
    assert 'd="M' in view.to_svg() and "<path" in view.to_svg(dark=True)
    with pytest.raises(ValueError, match="x = 9 is not between"):
        see.tangent(wave, 9)
    with pytest.raises(ValueError, match="low and high are both 2.0"):
        see.tangent(wave, 2.0, 2.0, 2.0)


def test_boxes_count_equations_and_loops():
    def network(x):
        last, _ = lax.scan(lambda x, _: (jnp.tanh(x), None), x, None, length=4)
        return jnp.sum(last)

    def order(x, v):
        return jvp(grad(network), (x,), (v,))[1]

    layers = {"jvp": order, "grad": grad(network), "network": network}
    view = see.nested(layers, np.ones(3, np.float32), np.ones(3, np.float32))
    lines = view.text().splitlines()
    assert lines[0].startswith("jvp: ") and lines[0].endswith("2 loops")
    assert lines[2].startswith("    network: 2 equations, 1 loop")
    boxes = [mark for mark in view.recording.marks if mark[0] == "box"]
    for (_, _, x, y, w, h, _), (_, _, x2, y2, w2, h2, _) in zip(boxes, boxes[1:]):
        assert x < x2 and y < y2 and x2 + w2 < x + w and y2 + h2 < y + h
    x = np.ones(3, np.float32)
    beside = see.nested(layers, x, x, others=[{"again": order}])
    assert beside.text().splitlines()[:3] == lines
    assert beside.text().splitlines()[3].startswith("again: ")
    below = [mark for mark in beside.recording.marks if mark[0] == "box"][-1]
    assert below[3] > max(mark[3] + mark[5] for mark in boxes)


def test_what_differs_is_drawn_in_the_second_colour():
    view = see.compare([[1.0, 2.0], [3.0, jnp.nan]], [[1.0, 5.0], [3.0, 4.0]])
    assert view.text().startswith("2 of 4 entries differ. At index (1, 1): expected 4")
    roles = [mark[1] for mark in view.recording.marks if mark[0] == "box"]
    assert roles == ["value", "miss", "value", "miss", *["value"] * 4]
    nan, inf = np.nan, np.inf
    text = see.compare([1.0, nan, inf], [1.0, nan, -inf]).text()
    assert text == "1 of 3 entries differ. At index 2: expected -inf, got inf."
    assert see.compare(np.eye(2), np.eye(2)).text() == "All 4 entries are the same."
    with pytest.raises(ValueError, match=r"got has shape \(2,\), expected \(3,\)"):
        see.compare(np.ones(2), np.ones(3))
    again = Recording.from_dict(view.recording.to_dict())
    assert again == view.recording


def test_a_cell_has_room_for_its_number():
    """Also for a long one, a complex one, and one that is not finite."""
    for array in (
        np.array([[0.258702, -875.807, 1e-7]]),
        np.array([1.5 - 2.25j, 3.0]),
        np.array([np.inf, -np.inf, True]),
    ):
        marks = see.compare(array, array + 1.0).recording.marks
        cells = [mark for mark in marks if mark[0] == "box"]
        assert len(cells) == 2 * array.size
        for *_, wide, _, text in cells:
            assert 0 < text_width(text, 13, mono=True) < wide


def test_the_legend_says_what_each_sketch_means():
    def told(view):
        page = json.loads(view.frame().to_json())
        return {kind: meaning for kind, meaning, *_ in page["legend"]}

    compared = told(see.compare(np.array([1.0, 2.0]), np.array([1.0, 3.0])))
    assert compared["miss"] == "an entry that differs from the expected"
    touched = told(see.tangent(jnp.sin, 1.0))
    assert touched["batch"] == "the tangent, and where it touches"
    layers = {"outer": lambda x: x * 2, "inner": lambda x: x + 1}
    assert told(see.nested(layers, 1.0))["mesh"] == "a function around others"


@pytest.mark.parametrize(
    "shape, told",
    [
        ((3, 4), "got"),
        ((5,), "got"),
        ((), "got"),
        ((2, 3, 4), "got[0]"),
        ((40,), "got, the first 12"),
        ((0, 2, 3), "got[0]"),
        ((0, 2, 2, 3), "got[0][0]"),
        ((2, 0, 3), "got[0]"),
        ((3, 0), "got"),
        ((2, 2, 20, 3), "got[0][0], the first 12 x 3"),
    ],
)
def test_a_comparison_says_which_part_is_drawn(shape, told):
    array = np.zeros(shape)
    marks = see.compare(array, array + 1.0).recording.marks
    titles = [mark[-1] for mark in marks if mark[0] == "text"]
    assert titles == [told, told.replace("got", "expected")]


def test_truth_values_are_compared_as_they_are_written():
    page = see.compare([True, False], [True, True]).frame().to_json()
    assert '"True"' in page and '"False"' in page


def test_large_ratios_and_sizes_are_written_out():
    assert size_in_words(1000.3 * 1024) == "1,000.3 KiB"
    assert [times_in_words(x) for x in (2.04, 12.4, 99.4, 2001.2)] == [
        "2", "12", "99", "2,001"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: see.compare("a", "b"), "arrays of numbers, and got is 'a'"),
        (lambda: see.compare([1, 2], [1, [2]]), "and expected is "),
        (lambda: see.nested([jnp.sin], 1.0), "functions by name, the outermost"),
        (lambda: see.nested({}, 1.0), "functions by name, the outermost"),
        (lambda: see.tangent(lambda x: x * jnp.ones(3), 1.0), "result is one number"),
        (lambda: see.tangent(lambda x: 3, 1.0), "this one returned 3"),
        (lambda: see.stages(None), "got None first"),
        (lambda: see.fusion(None), "got None first"),
        (lambda: see.scale(jnp.sin, 1.0, target=3), "target is a text such as 'h100'"),
        (
            lambda: see.stages(jnp.sin, 1.0).difference(3),
            "another view that see.stages",
        ),
        (lambda: see.jaxpr(jnp.sin, 1.0).why("a"), "the number of an equation"),
    ],
)
def test_wrong_arguments_get_a_sentence_with_the_way_out(call, told):
    with pytest.raises(TypeError) as caught:
        call()
    assert told in str(caught.value)


@pytest.mark.parametrize("view", [see.trace, see.grad, see.vmap])
def test_a_type_without_a_value_cannot_run(view):
    x = ShapeDtypeStruct((3,), np.float32)
    with pytest.raises(TypeError, match="pass an array, or leave out values=True"):
        view(jnp.sum, x, values=True)


@pytest.mark.parametrize("view", [see.trace, see.grad, see.memory, see.stages])
def test_keys_without_an_order_are_told(view):
    told = f"see.{view.__name__} got a dict whose keys have no order .*keys of one kind"
    with pytest.raises(ValueError, match=told):
        view(lambda p: p["w"].sum(), {"w": jnp.ones(3), (0, "b"): jnp.ones(3)})
