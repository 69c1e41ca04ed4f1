"""What a step costs: the committed recordings, and a small step that really runs."""

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax.backend import cuda, targets
from minijax_lab.explain.hlo_text import parse
from minijax_lab.explain.kernels import kernels_of
from minijax_lab.explain.roofline import chip_named
from minijax_lab.explain.scale import Buffer, newly_covered, part_of
from minijax_widgets.glyph import right_end
from minijax_widgets.scale_scene import Drawing
from tests.views.test_book import script

ROOT = Path(__file__).resolve().parents[2]
H100 = pytest.mark.skipif(
    not cuda.is_installed(), reason="jax-cuda13-pjrt (minijax[h100]) is missing"
)
TPU = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="libtpu (minijax[tpu]) is missing",
)
SMALL = """
import json, sys
sys.path.insert(0, "book")
import numpy as np
import minijax
import minijax_widgets as see
import scale

minijax.config.update("jax_num_cpu_devices", 4)
size = scale.Size(
    layers=4, width=32, heads=4, words=64, tokens=16, batch=8, parts=4
)
plans = {
    name: scale.plan(layout, size)
    for name, layout in scale.layouts(minijax.devices(), 4, 4).items()
}
found = {}
random = np.random.RandomState(0)
host = minijax.tree.map(
    lambda s: (random.randn(*s.shape) * 0.1).astype("f"), plans["data"][1]
)
for name, (step, params, mean, square, tokens) in plans.items():
    def placed(value, like):
        return minijax.device_put(value, like.sharding)

    zeros = minijax.tree.map(lambda s: np.zeros(s.shape, "f"), mean)
    given = (
        minijax.tree.map(placed, host, params),
        minijax.tree.map(placed, zeros, mean),
        minijax.tree.map(placed, zeros, square),
        placed(np.arange(8 * 17, dtype="i").reshape(8, 17) % 64, tokens),
    )
    held = {
        names: sum(
            leaf.addressable_shards[0].data.nbytes
            for leaf in minijax.tree.leaves(part)
        )
        for names, part in zip(("params", "mean", "square", "tokens"), given)
    }
    found[name] = {"held": held, "loss": float(step(*given)[3])}
target = sys.argv[1] if len(sys.argv) > 1 else None
view = see.scale(plans, target=target)
print(json.dumps([found, view.recording.to_dict(), view.text(full=True)]))
"""


@pytest.fixture(scope="module")
def small():
    """(what running said, the plans by name, the text) of a step on four devices."""
    done = subprocess.run(
        [sys.executable, "-c", SMALL],
        capture_output=True,
        text=True,
        cwd=ROOT,
        # XLA's passes stay, LLVM's work is left out.
        env={
            **os.environ,
            "MINIJAX_TEST_FAST_COMPILE": "1",
            "XLA_FLAGS": "--xla_backend_optimization_level=0 "
            "--xla_llvm_disable_expensive_passes=true",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ran, record, text = json.loads(done.stdout.splitlines()[-1])
    return ran, {plan["name"]: plan for plan in record["plans"]}, text


def sent(plan, opcode):
    return sum(each["bytes"] for each in plan["traffic"] if each["opcode"] == opcode)


@pytest.mark.turns(3)
def test_all_layouts_compute_the_same_loss(small):
    losses = [found["loss"] for found in small[0].values()]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-3)


@pytest.mark.turns(3)
def test_arguments_are_what_a_device_holds(small):
    ran, plans, _ = small
    for name, plan in plans.items():
        owned = {o["name"]: o["bytes"] for o in plan["owners"]}
        assert {key: owned[key] for key in ran[name]["held"]} == ran[name]["held"]
        assert sum(owned.values()) == plan["memory"]
        assert min(owned.values()) >= 0, owned


@pytest.mark.turns(3)
def test_bytes_sent_are_those_of_the_layout(small):
    """Data: the sum of all gradients once around, twice three quarters of them."""
    ran, plans, _ = small
    params = ran["data"]["held"]["params"]
    whole = 2 * 3 / 4 * params
    # Weights are rounded before use, so gradients are summed in 16 or 32 bits.
    assert whole / 2 <= sent(plans["data"], "all-reduce") <= whole * 1.1
    assert {t["opcode"] for t in plans["data"]["traffic"]} == {"all-reduce"}
    gathered = sent(plans["fully sharded"], "all-gather")
    # Each layer's are gathered twice, in 16 or 32 bits.
    assert 3 / 4 * params / 2 < gathered < 2 * 3 / 4 * params * 1.5
    assert {t["axes"] for t in plans["tensor"]["traffic"]} == {"model"}
    # A stage passes each part of the batch on, and its gradient back.
    part = 2 * 16 * 32 * 2
    assert sent(plans["pipeline"], "collective-permute") >= 2 * 7 * part


@pytest.mark.turns(3)
def test_operations_are_those_of_the_model(small):
    """Six operations a parameter and token, two more for what is computed again."""
    _, plans, _ = small
    weights, tokens = 4 * 12 * 32 * 32, 8 * 16
    attention = 4 * 4 * 4 * 16 * 32 * tokens
    products = 8 * weights * tokens + attention + 6 * 64 * 32 * tokens
    for name in ("data", "fully sharded", "tensor"):
        # Of each layer's last product only the inputs are computed again.
        assert 0.9 * products < 4 * plans[name]["flops"] < 2 * products, name


@pytest.mark.turns(3)
def test_the_text_tells_each_plan(small):
    text = small[2]
    first, line, headline = text.splitlines()[:3]
    assert first == "scale of data, fully sharded, tensor, pipeline"
    assert line == "-- differs between machines --"
    assert headline.startswith("4 plans for 4 devices: ")
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(re.findall("^  ?>? ?all-reduce|^    all-reduce", text, re.M)) >= 3


def test_the_committed_recordings_are_those_of_the_script():
    scale = script("scale")
    files = {path.name for path in scale.SCALE.iterdir()}
    assert files == {scale.path_of(name).name for name in scale.TITLES}
    for name in scale.MACHINES:
        view = see.open(scale.path_of(name))
        record = view.recording
        target, batch, model, stages, parts = scale.MACHINES[name]
        size = scale.Size(batch=batch, parts=parts)
        assert record.target == target
        assert record.machine == chip_named(target)
        for plan in record.plans:
            assert sum(owner.bytes for owner in plan.owners) == plan.memory
        whole, cut, *_ = record.plans
        params = next(o.bytes for o in whole.owners if o.name == "params")
        assert params == 4 * size.parameters
        count = len(whole.mesh.devices)
        norms = 8 * size.layers * size.width
        owned = next(o.bytes for o in cut.owners if o.name == "params")
        assert owned == (params - norms) // count + norms
        refused = [plan.name for plan in record.plans if plan.refused]
        assert refused == ([] if target.startswith("h100") else ["data"])
        assert "does not fit" in view.text() or not refused
        assert view.frame().static_html().count("<img") == 1
    assert 1.9e9 < scale.Size().parameters < 2.2e9


def test_depth_costs_nothing_in_a_scan():
    scale = script("scale")
    plans = {p.name: p for p in see.open(scale.path_of("depth")).recording.plans}
    scanned = [plans[f"{n} layers, one scan"] for n in scale.DEPTHS]
    assert len({plan.equations for plan in scanned}) == 1
    assert max(p.instructions for p in scanned) < 1.05 * min(
        p.instructions for p in scanned
    )
    written = [plans[f"{n} layers, written out"] for n in scale.WRITTEN_OUT]
    assert written[-1].equations > 6 * written[0].equations
    assert written[-1].compiled > 2 * scanned[-1].compiled
    deepest = scanned[-1], written[-1]
    assert deepest[0].flops == pytest.approx(deepest[1].flops, rel=0.02)
    assert deepest[0].sent == pytest.approx(deepest[1].sent, rel=0.1)


@H100
@pytest.mark.slow
def test_a_recompilation_gives_the_committed_figures():
    """Five layers for eight H100s, as the book has them."""
    scale = script("scale")
    kept = see.open(scale.path_of("depth")).recording.plans[0]
    devices = targets.find("h100:8").all_devices
    layout = scale.layouts(devices, 8, 8)["fully sharded"]
    view = see.scale(*scale.plan(layout, scale.Size(layers=5)), target="h100:8")
    (made,) = view.recording.plans
    for name in ("owners", "memory", "traffic", "flops", "equations"):
        assert getattr(made, name) == getattr(kept, name), name


def test_what_shares_memory_counts_once():
    def buffer(offset, size):
        return Buffer("b", "", size, 0, offset, 0, 1, None)

    taken = []
    added = [newly_covered(taken, buffer(*at)) for at in ((4, 4), (0, 6), (2, 10))]
    assert added == [4, 4, 4]


def test_parts_of_a_step_by_their_scopes():
    assert part_of("jit(f)/jvp()/dot_general") == "forward pass"
    assert part_of("transpose(jvp())/dot_general") == "backward pass"
    again = "transpose(jvp())/scan/rematted_computation/jvp()/exp"
    assert part_of(again) == "forward pass again"
    assert part_of("jit(f)/add") == "rest of the step"


LOOP = """HloModule m

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%p), index=0
  %two = s32[] constant(2)
  %more = s32[] add(%n, %two)
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %y = f32[8]{0} sine(%x)
  ROOT %t = (s32[], f32[8]{0}) tuple(%more, %y)
}

%test (p: (s32[], f32[8])) -> pred[] {
  %p = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%p), index=0
  %end = s32[] constant(9)
  ROOT %less = pred[] compare(%n, %end), direction=LT
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = s32[] copy(%zero)
  %given = (s32[], f32[8]{0}) tuple(%start, %x)
  %loop = (s32[], f32[8]{0}) while(%given), condition=%test, body=%body
  ROOT %y = f32[8]{0} get-tuple-element(%loop), index=1
}
"""


def test_a_loop_without_a_written_length_is_counted():
    times = [each.times for each in parse(LOOP).instructions if each.opcode == "while"]
    assert times == [5]
    turned = LOOP.replace("add(%n, %two)", "multiply(%n, %two)")
    loops = [each for each in parse(turned).instructions if each.opcode == "while"]
    assert loops[0].times is None


BATCHED = """HloModule m

ENTRY %main (x: bf16[4,256,16,128], y: bf16[4,256,16,128]) -> bf16[4,16,256,256] {
  %x = bf16[4,256,16,128]{3,2,1,0} parameter(0)
  %y = bf16[4,256,16,128]{3,2,1,0} parameter(1)
  ROOT %c = bf16[4,16,256,256]{3,2,1,0} convolution(%x, %y), \
window={size=4x16 stride=3x15 lhs_dilate=4x16}, dim_labels=0b1f_0o1i->01bf
}
"""


def test_a_product_written_as_a_convolution_counts_what_is_multiplied():
    """What libtpu makes of a batched product; XLA's own count is the same."""
    (kernel,) = kernels_of(parse(BATCHED))
    assert kernel.flops == 2 * 4 * 16 * 256 * 256 * 128


def test_functions_such_as_tanh_are_counted_apart():
    view = see.scale(lambda x: jnp.tanh(x), jnp.ones(256))
    (plan,) = view.recording.plans
    assert view.text().startswith("scale of lambda\n")
    assert (plan.flops, plan.functions) == (0, 256)
    assert "256 of exp, tanh and the like" in view.text()
    assert not any("computes nothing" in step.detail for step in view.frame().steps)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="a dict of plans such as"):
        see.scale(3)
    with pytest.raises(TypeError, match="plan 'a' is a tuple of a function and its"):
        see.scale({"a": 3})
    with pytest.raises(TypeError, match="each plan has its own arguments"):
        see.scale({"a": (abs, 1.0)}, 2.0)


@TPU
def test_slices_that_libtpu_would_abort_on_are_refused():
    with pytest.raises(ValueError, match="no side of a slice of v5e"):
        targets.find("tpu-v5e:32x32")


def test_the_legend_has_the_colours_of_each_column():
    """Those of memory, of the modelled seconds and of compiling; axes are in bars."""
    scale = script("scale")
    record = see.open(scale.path_of(next(iter(scale.MACHINES)))).recording
    for width in (1000, 690, 288):
        drawing = Drawing(record, width)
        marks = drawing.scene.marks
        shown = {}
        for swatch, name in itertools.pairwise(marks):
            box = swatch.drawn[0].has
            if swatch.drawn[0].tag == "rect" and (box["width"], box["height"]) == (
                13,
                14,
            ):
                shown.setdefault(name.drawn[0].text, box["stroke"])
        ends = [mark.x + right_end(part) for mark in marks for part in mark.drawn]
        assert max(ends) <= width
        for column in (drawing.seconds, drawing.making):
            for part in (part for plan in record.plans for part in column(plan)):
                assert shown[part.said] == part.role
        roles = {part.role for plan in record.plans for part in drawing.memory(plan)}
        assert roles - {""} <= set(shown.values())


def test_all_sizes_are_seen_on_a_narrow_page(show):
    scale = script("scale")
    page = show(see.open(scale.path_of(next(iter(scale.MACHINES)))), width=330)
    seen, cut = page.evaluate(
        """() => {
          const cells = [...document.querySelectorAll(".mj-pane td")].filter(
            cell => cell.getClientRects().length);
          return [cells.length, cells.filter(cell => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            const pane = cell.closest(".mj-pane").getBoundingClientRect();
            return text.getBoundingClientRect().right > pane.right;
          }).map(cell => cell.textContent)];
        }"""
    )
    assert seen > 60 and cut == []
