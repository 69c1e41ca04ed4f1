"""`see.kernel`: blocks and bytes against the interpreter, findings, and the picture."""

import math
import re
from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from minijax.experimental.pallas import triton
from minijax.kernels.interpret_params import InterpretParams
from minijax.kernels.interpreter import interpret_grid
from minijax.kernels.watched_memory import Watch
from minijax_lab.explain import pallas_kernels
from minijax_lab.explain.kernel_facts import better_order, pipeline
from minijax_lab.explain.kernel_work import operations_of
from minijax_lab.explain.pallas_kernels import MOST_RUN, reached, traced
from minijax_widgets.kernel_values import blocks_on_chip
from tests.pallas.kernels import TABLE, Library

OURS = Library("minijax", interpret=False)
IN_LOOPS = {"inside_of_a_loop", "scalars_under_vmap"}
SHOWN = [entry for entry in TABLE if entry.name not in IN_LOOPS]


def struct(*shape):
    return minijax.ShapeDtypeStruct(shape, np.float32)


def ones(*shape):
    return np.ones(shape, np.float32)


def matmul(x, y):
    """Blocks of 4 x 4, summed over the last axis of the grid."""

    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...] @ y_ref[...]

    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        kernel,
        struct(m, n),
        grid=(m // 4, n // 4, k // 4),
        in_specs=[
            pl.BlockSpec((4, 4), lambda i, j, k: (i, k)),
            pl.BlockSpec((4, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
    )(x, y)


def column_sums(x):
    """Every program adds to the same block."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...].sum(axis=0)

    return pl.pallas_call(
        kernel,
        struct(x.shape[1]),
        grid=(x.shape[0] // 4,),
        in_specs=[pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((x.shape[1],), lambda i: (0,)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def double(x, size=4, grid=None, index_map=lambda i: (i,)):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    return pl.pallas_call(
        kernel,
        struct(*x.shape),
        grid=(pl.cdiv(x.shape[0], size) if grid is None else grid,),
        in_specs=[pl.BlockSpec((size,), index_map)],
        out_specs=pl.BlockSpec((size,), lambda i: (i,)),
    )(x)


# ---- facts --------------------------------------------------------------------------


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: entry.name)
def test_blocks_and_bytes_are_those_of_the_interpreter(entry):
    """What each program's refs show is the part of the array that is drawn; bytes are
    counted once more from these elements."""
    call = entry.build(OURS)
    record = see.kernel(call, *entry.args).recording
    shown = []

    class Addresses(Watch):
        def begin(self, blocks):
            shown.append([np.sort(b.addresses[b.addresses >= 0]) for b in blocks])

        def report(self, finding):
            pass

    eqn, operands = reached(traced(call, entry.args, {}), entry.args, 0)
    params = eqn.params | {"interpret": InterpretParams(detect_races=True)}
    interpret_grid(*operands, watch_with=Addresses, **params)
    assert len(shown) == len(record.places) == math.prod(record.grid) == record.ran
    for number, operand in enumerate(record.operands):
        if not operand.starts:
            continue
        seen, before = [], None
        for program, refs in enumerate(shown):
            sides = [np.arange(a, b) for a, b in operand.inside(program)]
            places = np.meshgrid(*sides, indexing="ij") if sides else []
            inside = np.zeros(1, int)
            if places:
                inside = np.ravel_multi_index(places, operand.shape).ravel()
            np.testing.assert_array_equal(refs[number], inside)
            assert operand.block_bytes(program) == len(inside) * operand.itemsize
            # Which blocks differ is seen from where they begin: padding counts, too.
            if before != operand.starts[program]:
                seen.append(len(inside) * operand.itemsize)
            before = operand.starts[program]
        if operand.moved:
            assert operand.copied == sum(seen)
        assert operand.ideal <= min(operand.copied, operand.bytes)


def test_bytes_of_a_matmul_by_hand():
    record = see.kernel(matmul, ones(8, 12), ones(12, 16)).recording
    x, y, o = record.operands
    # x is read once for each of 4 columns of blocks, y for each of 2 rows.
    assert (x.copied, x.ideal, x.copies, x.blocks) == (4 * 384, 384, 24, 6)
    assert (y.copied, y.ideal) == (2 * 768, 768)
    assert (o.copied, o.ideal, o.used) == (512, 512, 3 * 512)
    assert record.fetched == 4 * 384 + 2 * 768 and record.needed == 384 + 768
    assert record.headline == (
        "kernel matmul, grid (2, 4, 3): 3,072 B fetched where 1,152 would do; "
        "x_ref is fetched 4 times"
    )
    assert record.telling == record.refetches[0] == 3
    # 3 programs add to each block: it is read by all of them, and written 4 times.
    assert sum(read for read, _ in o.touched) == 3 * 512
    assert sum(written for _, written in o.touched) == 4 * 512
    assert record.problems == [] and record.wrong == []
    assert record.on_chip == 2 * 3 * 4 * 4 * 4


def test_a_block_that_stays_is_not_fetched_again():
    def first_of_all(i):
        return (0,)

    record = see.kernel(partial(double, index_map=first_of_all), ones(16)).recording
    x, o = record.operands
    assert x.moves == [True, False, False, False] and x.copied == 16
    assert o.moves == [True] * 4


def test_bytes_of_scalars_are_whole_numbers():
    def scale(s_ref, o_ref):
        o_ref[...] = s_ref[...] * 2

    view = see.kernel(pl.pallas_call(scale, struct()), np.float32(3.0))
    assert "4 B in and 4 B out" in view.text() and "4 B fetched" in view.text()


def test_operations_are_counted():
    def program(x, y):
        z = lax.cond(x.sum() > 0, lambda: x @ y, lambda: x @ y + 1)
        return jnp.exp(z)

    jaxpr = minijax.make_jaxpr(program)(ones(4, 8), ones(8, 2)).jaxpr
    least = 4 * 8 + 2 * 4 * 8 * 2 + 4 * 2 + 4 * 2
    assert least <= operations_of(jaxpr) <= least + 2


def test_the_pipeline_has_two_buffers():
    record = see.kernel(
        matmul, ones(8, 12), ones(12, 16), machine=see.Machine("slow", 1e9, 1e9)
    ).recording
    slots = pipeline(record)
    assert [slot.program for slot in slots] == list(range(24))
    copied = sum(slot.copy_in[1] - slot.copy_in[0] for slot in slots)
    assert copied == pytest.approx(record.fetched / 1e9)
    left = sum(slot.copy_out[1] - slot.copy_out[0] for slot in slots)
    assert left == pytest.approx(record.written / 1e9)
    for n, slot in enumerate(slots):
        assert slot.compute[0] >= slot.copy_in[1]
        assert slot.copy_out[0] >= slot.compute[1]
        computed = slot.compute[1] - slot.compute[0]
        assert computed == pytest.approx(record.operations / 1e9)
        if n:
            assert slot.compute[0] >= slots[n - 1].compute[1]
        if n > 1:
            assert slot.copy_in[0] >= slots[n - 2].compute[1]
            assert slot.compute[0] >= slots[n - 2].copy_out[1]


# ---- what is wrong ------------------------------------------------------------------


def test_a_race_is_told_and_drawn():
    view = see.kernel(column_sums, ones(16, 8))
    record = view.recording
    assert record.headline == (
        "kernel column_sums, grid (4,): race on o_ref between programs (0,) and (1,)"
    )
    (race,) = record.wrong
    assert (race.kind, race.program, race.other, race.element) == ("race", 1, 0, [0])
    frame = view.frame()
    assert frame.telling == 1 and frame.steps[1].look == "error"
    marks = [m for m in frame.panes[0].scene.marks if "e0" in m.keys]
    # A cross on each program, an arrow between them, a cross on the element.
    assert len(marks) == 4 and all(mark.at == 1 for mark in marks)
    # The line of the kernel is lit.
    lines = [row for pane in frame.panes for row in pane.rows if row.look == "miss"]
    assert len(lines) == 1 and "o_ref[...] +=" in lines[0].pieces()[1][0].text
    assert set(lines[0].keys) & set(frame.steps[1].on)


def test_an_index_map_that_leaves_the_array():
    view = see.kernel(partial(double, index_map=lambda i: (i + 1,)), ones(8))
    (problem,) = view.recording.wrong
    assert (problem.kind, problem.operand, problem.program) == ("out of bounds", 0, 1)
    assert "x_ref gives program (1,) the block (2,)" in problem.message
    assert view.recording.ran == 1 and "stopped at program (1,)" in view.text()
    assert view.frame().steps[1].look == "error"


def test_an_access_outside_of_a_ref():
    def reaches(x):
        def kernel(x_ref, o_ref):
            i = pl.program_id(0)
            o_ref[i] = x_ref[i + 2]

        return pl.pallas_call(kernel, struct(4), grid=(4,))(x)

    record = see.kernel(reaches, ones(4)).recording
    (problem,) = record.wrong
    assert (problem.kind, problem.program) == ("out of bounds", 2)
    assert record.operands[problem.operand].name == "x_ref"
    assert record.ran == 3


def test_memory_that_nobody_wrote():
    def half(x):
        def kernel(x_ref, o_ref):
            o_ref[:2] = x_ref[:2] + o_ref[:2]

        return pl.pallas_call(kernel, struct(4))(x)

    kinds = [p.kind for p in see.kernel(half, ones(4)).recording.wrong]
    assert kinds == ["uninitialized", "missing write"]


def test_nothing_is_printed(capsys):
    see.kernel(column_sums, ones(16, 8))
    assert capsys.readouterr().out == ""


# ---- what it takes ------------------------------------------------------------------


def test_types_give_the_blocks():
    record = see.kernel(matmul, struct(8, 12), struct(12, 16)).recording
    assert record.ran == 0 and record.fetched == 3072
    assert "nothing was run" in see.kernel(matmul, struct(8, 4), struct(4, 8)).text()


def test_one_of_several_kernels():
    def both(x):
        return double(double(x) + 1, size=2)

    assert see.kernel(both, ones(8)).recording.grid == [2]
    second = see.kernel(both, ones(8), which=1)
    assert second.recording.grid == [4] and "kernel 1 of 2" in second.text()
    with pytest.raises(ValueError, match="which=2.*2 kernels"):
        see.kernel(both, ones(8), which=2)


def test_what_is_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match="one of JAX"):
        see.kernel(jax.jit(lambda x: x), ones(4))
    with pytest.raises(TypeError, match="a function that calls a kernel"):
        see.kernel(3.0)
    with pytest.raises(ValueError, match="calls no pallas_call"):
        see.kernel(jnp.sin, ones(4))
    with pytest.raises(TypeError, match="no see.Machine"):
        see.kernel(double, ones(4), machine="fast")

    def in_a_loop(x):
        return lax.fori_loop(0, 3, lambda i, x: double(x), x)

    with pytest.raises(NotImplementedError, match="inside of `scan`"):
        see.kernel(in_a_loop, ones(4))


# ---- the picture --------------------------------------------------------------------


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: entry.name)
def test_every_kernel_has_a_picture(entry):
    view = see.kernel(entry.build(OURS), *entry.args)
    assert all(len(row) <= 100 for row in view.text().splitlines())
    frame = view.frame()
    assert len(frame.steps) == len(view.recording.places)
    assert "<svg" in view.to_svg() and view.static_html()


def test_a_recording_comes_back(tmp_path):
    view = see.kernel(column_sums, ones(16, 8))
    view.save(tmp_path / "kernel.json.gz")
    again = see.open(tmp_path / "kernel.json.gz")
    assert again.text() == view.text()
    assert again.frame().to_json() == view.frame().to_json()


@pytest.mark.turns(3)
def test_a_large_grid_stays_usable():
    """The blocks of all programs are known; a part of them is run and has steps."""
    view = see.kernel(matmul, ones(128, 80), ones(80, 48))
    record = view.recording
    assert len(record.places) == 32 * 12 * 20 == 7680
    assert record.ran == MOST_RUN and "the first 4,096 of 7,680" in view.text()
    frame = view.frame()
    assert len(frame.steps) == 1000
    assert len(frame.panes[0].scene.marks) < 2000
    assert any("1,000 of 7,680" in pane.title for pane in frame.panes)
    assert len(frame.to_json()) < 3_000_000
    assert record.operands[0].copied == 12 * record.operands[0].bytes


def test_a_grid_of_several_axes_has_a_slider_for_each():
    frame = see.kernel(matmul, ones(8, 12), ones(12, 16)).frame()
    assert frame.axes.names == ["i", "j", "k"] and frame.axes.sizes == [2, 4, 3]
    assert frame.axes.places[4] == [0, 1, 1] and len(frame.axes.places) == 24
    assert see.kernel(column_sums, ones(16, 8)).frame().axes is None


def test_values_are_those_of_the_arrays():
    x = np.sin(np.arange(96, dtype=np.float32)).reshape(8, 12)
    y = np.cos(np.arange(192, dtype=np.float32)).reshape(12, 16)
    view = see.kernel(matmul, x, y, values=True)
    record = view.recording
    first, _, out = record.operands
    np.testing.assert_array_equal(first.values[4], x[:4, 4:8])
    # The third program is the last that adds to the first block.
    np.testing.assert_allclose(out.values[2], (x @ y)[:4, :4], rtol=1e-5)
    np.testing.assert_allclose(out.values[1], (x[:, :8] @ y[:8])[:4, :4], rtol=1e-5)
    frame = view.frame()
    assert frame.live == "values"
    assert frame.steps[0].live[0][1].startswith("0 0.84 0.91")
    shown = [m for m in frame.panes[0].scene.marks if m.label.startswith("values of")]
    assert {mark.label for mark in shown} == {
        "values of x_ref, read", "values of y_ref, read",
        "values of o_ref, before", "values of o_ref, after",
    }  # fmt: skip
    with pytest.raises(ValueError, match="holds nothing"):
        see.kernel(matmul, struct(8, 12), struct(12, 16), values=True)


def texts_at(frame, label, step):
    """The numbers that marks of a label show at a step, and where they stand."""
    for mark in frame.panes[0].scene.marks:
        said = [part.text for part in mark.parts(step) if part.tag == "text"]
        if mark.label == label and said:
            return [float(one) for one in said], mark.place(step)
    return [], None


def test_numbers_flow_from_the_arrays_over_the_chip():
    """Small arrays show them without being asked; each step is held against NumPy."""
    x = (np.arange(64).reshape(8, 8) % 7 - 3).astype(np.float32)
    y = (np.arange(64).reshape(8, 8) % 5 - 2).astype(np.float32)
    view = see.kernel(matmul, x, y)
    record, frame = view.recording, view.frame()
    left, right, out = record.operands
    places, went = set(), set()
    for program, (i, j, k) in enumerate(record.places):
        blocks = [
            (left, x[4 * i : 4 * i + 4, 4 * k : 4 * k + 4]),
            (right, y[4 * k : 4 * k + 4, 4 * j : 4 * j + 4]),
        ]
        for operand, block in blocks:
            said, place = texts_at(frame, f"values of {operand.name}, read", program)
            assert said == list(block.ravel())
            places.add((operand.name, place))
        rows, columns = x[4 * i : 4 * i + 4], y[:, 4 * j : 4 * j + 4]
        for what, end in (("before", k), ("after", k + 1)):
            said, _ = texts_at(frame, f"values of {out.name}, {what}", program)
            held = (rows[:, : 4 * end] @ columns[: 4 * end]).ravel()
            assert said == (list(held) if end else [])
    # A block ends in one place on the chip, and comes from its own in the array.
    assert len(places) == 2
    for mark in frame.panes[0].scene.marks:
        if mark.label == f"values of {left.name}, read" and mark.moves:
            went.add((mark.x, mark.y))
    assert len(went) > 4
    # In the end the array itself shows the product.
    last = len(record.places)
    numbers = [
        float(part.text)
        for mark in frame.panes[0].scene.marks
        if not mark.label and not mark.keys and len(mark.drawn) == 0
        for part in mark.parts(last)
        if part.tag == "text" and part.text.lstrip("-").isdigit()
    ]
    assert sorted(numbers) == sorted((x @ y).ravel())
    assert not see.kernel(matmul, x, y, values=False).recording.operands[0].values
    # Of larger arrays, too, if their blocks are small and programs are few.
    assert see.kernel(matmul, ones(40, 8), ones(8, 40)).recording.operands[0].values
    many = see.kernel(matmul, ones(40, 40), ones(40, 40))
    assert not many.recording.operands[0].values

    def copy(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    whole = pl.pallas_call(copy, struct(64, 64))
    assert not see.kernel(whole, ones(64, 64)).recording.operands[0].values


def test_values_of_large_blocks_are_not_kept():
    view = see.kernel(partial(double, size=64), ones(128), values=True)
    assert view.recording.operands[0].values == [[], []]
    assert view.frame().steps[0].live == []


def outer(x, y, swapped=False):
    """All pairs of blocks; the blocks of y are longer."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...][:, None] * y_ref[...]

    def of(index_map):
        return lambda *place: index_map(*(place[::-1] if swapped else place))

    grid = (x.shape[0] // 2, y.shape[0] // 8)
    return pl.pallas_call(
        kernel,
        struct(x.shape[0], y.shape[0]),
        grid=grid[::-1] if swapped else grid,
        in_specs=[
            pl.BlockSpec((2,), of(lambda i, j: (i,))),
            pl.BlockSpec((8,), of(lambda i, j: (j,))),
        ],
        out_specs=pl.BlockSpec((2, 8), of(lambda i, j: (i, j))),
    )(x, y)


def test_a_better_order_of_the_axes_is_told():
    """What it promises is what the kernel with that order copies."""
    record = see.kernel(outer, ones(8), ones(16)).recording
    axes, total = better_order(record)
    assert axes == ["j", "i"]
    other = see.kernel(partial(outer, swapped=True), ones(8), ones(16)).recording
    assert total == other.fetched + other.written < record.fetched + record.written
    assert better_order(other) is None
    assert "in the order (j, i)" in see.kernel(outer, ones(8), ones(16)).text()
    # The axis over which a matmul adds stays the last one.
    better = better_order(see.kernel(matmul, ones(8, 12), ones(12, 16)).recording)
    assert better is None or better[0][-1] == "k"


def test_a_function_that_calls_a_kernel_of_jax_is_refused():
    scope = {"pl": pytest.importorskip("jax.experimental.pallas")}
    exec("def double(x):\n  return pl.pallas_call(lambda a, b: None, x)(x)", scope)
    with pytest.raises(TypeError, match="from minijax.experimental import pallas"):
        see.kernel(scope["double"], ones(8))


def test_an_operand_is_linked_with_the_lines_that_touch_it():
    view = see.kernel(column_sums, ones(16, 8))
    x, o = view.recording.operands
    assert set(x.lines) < set(o.lines) and len(o.lines) == 2
    rows = [
        row for pane in view.frame().panes if pane.kind == "code" for row in pane.rows
    ]
    linked = [row.pieces()[1][0].text.strip() for row in rows if "o0" in row.keys]
    assert linked == ["o_ref[...] += x_ref[...].sum(axis=0)"]


def test_large_arrays_are_not_watched(monkeypatch):
    monkeypatch.setattr(pallas_kernels, "MOST_ELEMENTS", 20)
    view = see.kernel(double, ones(16))
    assert view.recording.ran == 0 and "32 elements, too many to watch" in view.text()
    monkeypatch.setattr(pallas_kernels, "MOST_ELEMENTS", 100)
    monkeypatch.setattr(pallas_kernels, "MOST_WATCHED", 10)
    view = see.kernel(double, ones(16))
    assert view.recording.ran == 2 and "the first 2 of 4 programs" in view.text()


def test_a_sum_of_products_is_told_where_the_numbers_say_so(show):
    x = np.sin(np.arange(64, dtype=np.float32)).reshape(8, 8)
    view = see.kernel(matmul, x, x)
    page = show(view)
    for step in range(2):
        slider = page.get_by_label("step", exact=True)
        slider.fill(str(step))
        page.wait_for_timeout(300)
        cell = page.locator('.mj-scene [data-n="o_ref, after"]').last
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.6)
        said = page.locator(".mj-detail").inner_text()
        place, found, total = said.split(" = ")
        assert place == "o_ref, after[2, 1]" and total.count(" + ") == 3 + step
        depth = 4 * (step + 1)
        assert abs(float(found) - (x[:4, :depth] @ x[:depth, :4])[2, 1]) < 1e-3
        parts = [part.split(" * ") for part in total.split(" + ")]
        assert abs(sum(math.prod(map(float, p)) for p in parts) - float(found)) < 5e-3


def test_what_is_no_product_is_not_told_as_one():
    view = see.kernel(column_sums, ones(16, 8))
    places = [str(place) for place in view.recording.places]
    _, after = blocks_on_chip(view.drawn, view.programs, places)
    assert after and not any(any(held.products.values()) for held in after)


def test_what_a_mask_leaves_out_is_hatched():
    def kernel(x_ref, o_ref):
        mask = jnp.arange(4) < 3
        at = pl.ds(0, 4)
        o_ref[...] = triton.load(x_ref.at[at], mask=mask, other=0.0)

    def call(x):
        return pl.pallas_call(kernel, struct(4))(x)

    view = see.kernel(call, np.float32([1, 2, 3, 4]), values=True)
    x, out = view.recording.operands
    np.testing.assert_array_equal(x.values[0], [[1, 2, 3, np.nan]])
    assert out.values[0] == [[1, 2, 3, 0]]


def iterated(x):
    for _ in range(150):
        x = jnp.sin(x) * 1.5
    return x


# Of each view: its height, how many panes are drawn, the sentence below them, and of
# its timeline the share of the canvas with ink, whether it is as wide as drawn, and how
# many bars are named.
DRAWN = """() => [...document.querySelectorAll(".mj-live")].map(root => {
  const canvas = root.querySelector(".mj-bars canvas");
  const found = {height: root.getBoundingClientRect().height, timeline: null,
    panes: root.querySelectorAll(".mj-pane").length,
    detail: root.querySelector(".mj-detail")?.textContent};
  if (canvas) {
    const {width, height} = canvas;
    const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    const inked = data.filter((value, at) => at % 4 == 3 && value).length;
    const named = root.querySelectorAll(".mj-bars li").length;
    found.timeline = [inked / (width * height), width == canvas.clientWidth, named];
  }
  return found;
})"""


@pytest.mark.parametrize("width", [1200, 480])
@pytest.mark.parametrize("still", [False, True])
def test_pages_with_timelines_are_drawn_to_their_end(browser, tmp_path, width, still):
    """Also as pictures of pages are taken, where views do not follow their width."""
    pictures = pytest.importorskip("pictures", reason="needs pillow, which is not here")
    views = [
        see.jaxpr(iterated, ones(4)),
        see.kernel(matmul, struct(24, 20), struct(20, 20)),
        see.kernel(matmul, struct(8, 8), struct(8, 8)),
        see.memory(minijax.grad(lambda x: iterated(x).sum()), ones(4)),
    ]
    frames = [view.frame() for view in views]
    path = tmp_path / "page.html"
    text = "".join(view.to_html() for view in views)
    path.write_text(f"<!doctype html><meta charset=utf-8>{text}", encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 700}, offline=True)
    if still:
        page.add_init_script(pictures.STILL)
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('.mj-live').length == 4")
    sliders = page.locator(".mj-bar:not(.mj-axes) > [type=range]").all()
    for step in (None, 1, 40):
        for slider in sliders if step is not None else []:
            slider.fill(str(min(step, int(slider.get_attribute("max")))))
        drawn = page.evaluate(DRAWN)
        page.wait_for_timeout(200)
        assert page.evaluate(DRAWN) == drawn
        assert [one["panes"] for one in drawn] == [len(f.panes) for f in frames]
        assert all(one["detail"] for one in drawn)
        lines = [one["timeline"] for one in drawn]
        assert [line is not None for line in lines] == [False, True, True, True]
        for ink, fits, named in filter(None, lines):
            assert 0.05 < ink < 1 and fits and named
    page.close()


@pytest.mark.parametrize("count", [101, 1001])
def test_a_timeline_tells_programs_apart_that_take_picoseconds(count):
    """Each program's bars are where and as long as the model says, to a hundredth."""

    def copy(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((2,), lambda i: (i,))
    call = pl.pallas_call(
        copy, struct(2 * count), grid=(count,), in_specs=[block], out_specs=block
    )
    view = see.kernel(call, ones(2 * count))
    (scene,) = (p.scene for p in view.frame().panes if "pipeline of" in p.title)
    starts, lengths, rows, *_ = scene.to_json()["bars"]["columns"]
    slots = pipeline(view.recording)
    nanoseconds = 1e9
    for row in range(3):
        shown = [(a, b) for a, b, r in zip(starts, lengths, rows) if r == row]
        made = [slot.lanes[row] for slot in slots]
        right = [(a * nanoseconds, (b - a) * nanoseconds) for a, b in made if b > a]
        np.testing.assert_allclose(shown, right, rtol=0.01, atol=0.06e-3)


def doubles(count):
    """A kernel of so many programs, each of which doubles two numbers."""
    size = 2 * count
    call = partial(double, size=2)
    return see.kernel(call, ones(size))


def test_a_picture_without_a_script_names_its_rows_and_has_little_ink_for_little():
    view = see.kernel(partial(double, size=1024), struct(1024 * 2000))
    (scene,) = (p.scene for p in view.frame().panes if "pipeline of" in p.title)
    drawn = scene.parts(0)
    inks = re.findall(
        r'<path [^>]*stroke="([^"]+)"[^>]*?(stroke-opacity="0.1")?/>', drawn
    )
    copies, compute, *_ = [ink for _, ink in inks]
    assert not copies and compute
    for said in ("copy in", "compute", "copy out", f"0 ns to {scene.end:,.0f} ns"):
        assert f">{said}</text>" in drawn


SEEN = "document.querySelector('.mj-seen').textContent"


def touched(browser, view, path):
    """A view on a narrow page that fingers touch, and the session that moves them."""
    view.save(path)
    context = browser.new_context(
        viewport={"width": 480, "height": 900}, has_touch=True, offline=True
    )
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live")
    return page, context.new_cdp_session(page)


def test_fingers_zoom_a_timeline_and_a_picture(browser, tmp_path):
    """Two fingers that move apart: what is between them stays, and the page too."""
    view = see.kernel(matmul, struct(24, 20), struct(20, 20))
    page, client = touched(browser, view, tmp_path / "page.html")

    def apart(selector):
        box = page.locator(selector).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + 20
        for kind, by in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80)):
            points = [{"x": x - by, "y": y, "id": 0}, {"x": x + by, "y": y, "id": 1}]
            client.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
            )
        client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def seen():
        first, last = re.match(
            r"([\d.,]+) ns to ([\d.,]+) ns", page.evaluate(SEEN)
        ).groups()
        return float(first.replace(",", "")), float(last.replace(",", ""))

    page.locator(".mj-bars canvas").scroll_into_view_if_needed()
    page.locator(".mj-bars").get_by_label("all of it").click()
    (start, end), step = seen(), page.locator(".mj-where").inner_text()
    apart(".mj-bars canvas")
    left, right = seen()
    assert (right - left) * 4 == pytest.approx(end - start, rel=0.02)
    assert (left + right) / 2 == pytest.approx((start + end) / 2, rel=0.02)
    page.evaluate("scrollTo(0, 0)")
    width = "document.querySelector('svg.mj-scene:not([hidden])').clientWidth"
    before = page.evaluate(width)
    apart("svg.mj-scene:not([hidden])")
    assert page.evaluate(width) == pytest.approx(4 * before, rel=0.02)
    assert page.locator(".mj-where").inner_text() == step
    assert page.evaluate("visualViewport.scale") == 1
    page.context.close()


def seen_in_ns(page):
    said = re.findall(r"([\d.,]+) ns", page.evaluate(SEEN))
    return [float(number.replace(",", "")) for number in said]


@pytest.mark.parametrize("count", [4, 40])
def test_a_timeline_of_picoseconds_zooms_until_its_shortest_bar_is_seen(show, count):
    page = show(doubles(count))
    larger = page.locator(".mj-bars").get_by_label("larger", exact=True)
    page.locator(".mj-bars").get_by_label("all of it").click()
    start, end, whole = seen_in_ns(page)
    assert (start, end) == (0, whole)
    larger.click()
    start, end, _ = seen_in_ns(page)
    assert end - start == pytest.approx(whole / 2, rel=0.02)
    for _ in range(20):
        larger.click()
    start, end, _ = seen_in_ns(page)
    slot = pipeline(doubles(count).recording)[0]
    compute = (slot.compute[1] - slot.compute[0]) * 1e9
    assert end - start == pytest.approx(4 * compute, rel=0.05)
    for row in page.locator(".mj-bars li").all_inner_texts():
        first, last = re.findall(r"([\d.,]+) ns", row)
        assert first != last


def test_a_finger_beside_a_timeline_zooms_nothing(browser, tmp_path):
    page, client = touched(browser, doubles(40), tmp_path / "page.html")
    page.locator(".mj-bars canvas").scroll_into_view_if_needed()
    box = page.locator(".mj-bars canvas").bounding_box()
    x, y = box["x"] + 200, box["y"] + 20
    before = page.evaluate(SEEN)

    def touch(kind, *points):
        told = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})

    touch("touchStart", (x, y))
    touch("touchStart", (x, y), (x, y - 80))
    for by in (2, 4, 30):
        touch("touchMove", (x, y + by), (x, y - 80 - by))
    touch("touchEnd")
    assert page.evaluate(SEEN) == before
    page.context.close()


def test_a_drag_that_the_browser_ends_moves_nothing_more(show):
    page = show(see.kernel(matmul, struct(24, 20), struct(20, 20)))
    page.locator(".mj-bars").get_by_label("larger", exact=True).click()
    box = page.locator(".mj-bars canvas").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 10)
    moved = page.evaluate(SEEN)
    page.evaluate("window.dispatchEvent(new PointerEvent('pointercancel'))")
    page.mouse.move(box["x"] + 100, box["y"] + 10)
    assert page.evaluate(SEEN) == moved
    page.mouse.up()


def test_a_bar_without_a_step_is_no_button(show):
    """Of many programs not each has a step; the pointer says which bars lead to one."""
    view = see.kernel(matmul, struct(48, 48), struct(48, 48))
    (scene,) = (p.scene for p in view.frame().panes if "pipeline of" in p.title)
    assert {bar.go >= 0 for bar in scene.bars} == {True, False}
    page = show(view)
    canvas = page.locator(".mj-bars canvas")
    cursor = "canvas => getComputedStyle(canvas).cursor"
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 10)
    assert canvas.evaluate(cursor) == "pointer"
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + 70 + 10)  # on the strip
    page.mouse.down()
    page.mouse.up()
    before = page.locator(".mj-where").inner_text()
    page.mouse.move(box["x"] + 300, box["y"] + 10)
    assert canvas.evaluate(cursor) == "crosshair"
    page.mouse.click(box["x"] + 300, box["y"] + 10)
    assert page.locator(".mj-where").inner_text() == before
