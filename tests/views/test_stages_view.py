"""`see.stages`: four levels of a function, linked by equation."""

import dataclasses

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_lab.explain.compiled import find_by_frames
from minijax_lab.explain.recording import Recording
from minijax_lab.explain.stages import record_stages
from tests.views.compiled_programs import PROGRAMS
from tests.views.test_compiled_recording import H100, TPU

X = np.linspace(0.1, 1.0, 1024, dtype=np.float32)
LINE = "-- differs between machines --"


def softmax(x):
    x_max = jnp.max(x)
    e = jnp.exp(x - x_max)
    return e / jnp.sum(e)


def network(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x * x).sum()


@pytest.fixture(scope="module")
def of_softmax():
    return see.stages(softmax, X)


def texts(scene):
    return [p.text for mark in scene.marks for p in mark.drawn if p.tag == "text"]


def test_the_twin(of_softmax) -> None:
    above, _, below = of_softmax.text().partition(LINE)
    first = softmax.__code__.co_firstlineno
    head, *rows = above.strip("\n").split("\n")
    assert head == (
        "stages of softmax(f32[1024]): 3 lines, 5 equations, 9 StableHLO operations"
    )
    assert [row[2:5].strip() for row in rows] == [str(first + n) for n in (1, 2, 3)]
    assert "sub exp" in rows[1] and "broadcast_in_dim subtract exp" in rows[1]
    assert f"line {first + 2}: K" in below


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_level_is_divided_among_the_lines(name) -> None:
    function, args = PROGRAMS[name]
    record = record_stages(function, args, {})
    stages = record.stages
    every = [e for stage in stages for e in stage.equations]
    equations = record.compiled.jaxpr.equations
    assert sorted(every) == list(range(len(equations)))
    for number, stage in enumerate(stages):
        own = set(stage.equations)
        lines = [record.lowering.lines[o] for o in stage.operations]
        assert all(line.equation in own for line in lines)
        module = record.compiled.program.module
        for instruction in stage.instructions:
            each = module.instructions[instruction]
            assert own.intersection((each.equation, *each.around))
        for kernel in stage.kernels:
            each = record.compiled.program.kernels[kernel]
            members = [
                module.instructions[m] for m in (each.instruction, *each.members)
            ]
            assert any(own.intersection((m.equation, *m.around)) for m in members)
        assert number == min(
            n for n, other in enumerate(stages) if other.equations == stage.equations
        )
    linked = {i for stage in stages for i in stage.instructions}
    left = [
        i for i in record.compiled.program.module.instructions if i.id not in linked
    ]
    assert all(instruction.equation is None for instruction in left)
    assert Recording.from_dict(record.to_dict()) == record


@pytest.mark.parametrize("target", [H100, TPU])
def test_other_machines(target) -> None:
    view = see.stages(softmax, X, target=target)
    below = view.text().partition(LINE)[2]
    assert below.strip().startswith(f"{target}: ")
    assert view.text().partition(LINE)[0].count("\n") == 4
    assert view.to_html()


def test_the_picture(of_softmax) -> None:
    frame = of_softmax.frame()
    scene = frame.panes[0].scene
    shown = texts(scene)
    for word in ("reduce_max", "sub", "div", "broadcast_in_dim", "reduce"):
        assert word in shown
    assert shown[:2] == ["3", "lines"]
    titles = [pane.title for pane in frame.panes[1:]]
    assert titles[1:] == ["jaxpr", "StableHLO", "compiled for cpu"]
    assert [step.on for step in frame.steps] == [["g0"], ["g1"], ["g2"]]
    # Each step lights a row in every text.
    for step in frame.steps:
        for pane in frame.panes[1:]:
            assert any(step.on[0] in row.keys for row in pane.rows), pane.title
    assert "minijax/core/" in frame.steps[0].detail
    assert frame.panes[0].narrow.width == 288
    assert of_softmax.to_svg().startswith("<svg")


def test_ribbons_join_an_equation_with_what_it_wrote(of_softmax) -> None:
    """As many ribbons as real links: line to equation, equation to operation, and an
    equation's last operation to each kernel that computes it."""
    record = of_softmax.recording
    scene = of_softmax.frame().panes[0].scene
    ribbons = [mark for mark in scene.marks if mark.label == "arrow"]
    equations = sum(len(stage.equations) for stage in record.stages)
    operations = sum(len(stage.operations) for stage in record.stages)
    kernels = sum(len(k.equations) for k in record.compiled.program.kernels)
    assert len(ribbons) == equations + operations + kernels


def test_a_twelve_layer_gradient_stays_usable() -> None:
    weights = [minijax.ShapeDtypeStruct((16, 16), np.float32)] * 12
    x = minijax.ShapeDtypeStruct((8, 16), np.float32)
    view = see.stages(minijax.grad(network), weights, x)
    scene = view.frame().panes[0].scene
    assert len(scene.marks) < 200 and scene.height < 1200
    assert len(view.to_html()) < 1_500_000
    assert len(view.text().split("\n")) < 30


def test_each_text_of_a_long_program_is_whole_and_opens_in_parts() -> None:
    def f(x):
        for _ in range(700):
            x = jnp.sin(x) * 1.5
        return x

    view = see.stages(f, X)
    record = view.recording
    # XLA is slow to compile so many operations without fusion: it was not asked to.
    assert record.compiled.unfused is None
    _, _, *texts = view.frame().panes
    counts = [len(record.compiled.jaxpr.lines), len(record.lowering.lines)]
    module = record.compiled.program.module
    inside = [computation.instructions for computation in module.computations]
    counts.append(sum(map(len, inside)) + len(inside))
    for pane, count in zip(texts, counts, strict=True):
        heads = [row for row in pane.rows if row.folded]
        assert len(pane.rows) - len(heads) == count > 1200, pane.title
        assert len(heads) == -(-count // 100)
        starts = [pane.rows.index(head) for head in heads] + [len(pane.rows)]
        assert max(b - a for a, b in zip(starts, starts[1:])) == 101


def test_a_jaxpr_of_minijax() -> None:
    view = see.stages(minijax.make_jaxpr(softmax)(X))
    assert "3 lines, 5 equations" in view.text()


def test_a_jaxpr_of_jax() -> None:
    def theirs(x):
        e = jax.numpy.exp(x - jax.numpy.max(x))
        return e / jax.numpy.sum(e)

    view = see.stages(jax.make_jaxpr(theirs)(X))
    assert "2 lines, 5 equations" in view.text()


def test_nothing_to_do_and_wrong_targets() -> None:
    assert see.stages(lambda x: x, X).to_html()
    with pytest.raises(ValueError, match="target"):
        see.stages(softmax, X, target="abacus")


def test_machine_code_is_a_fifth_level() -> None:
    """As many bars as kernels with code; a bar's number is the code's lines."""
    view = see.stages(softmax, X, code=True)
    record = view.recording
    frame = view.frame()
    shown = texts(frame.panes[0].scene)
    assert "lines of LLVM" in shown
    found = [record.code_of(n) for n in range(len(record.compiled.program.kernels))]
    codes = [code for code in found if code is not None]
    assert len(codes) == len(record.code.codes) > 2
    lines = [len(code.optimised.split("\n")) for code in codes]
    # Of code that is cut after so many lines, "400+".
    counts = {text.rstrip("+") for text in shown}
    assert f"{sum(lines):,}" in counts and {f"{n:,}" for n in lines} <= counts
    (pane,) = [pane for pane in frame.panes if pane.title == "machine code"]
    heads = [row for row in pane.rows if row.folded]
    assert len(heads) == len(codes)
    wrote = sum(len(code.written.split("\n")) for code in codes)
    assert len(pane.rows) == sum(lines) + wrote + 3 * len(codes)
    # The kernel of `exp` is lit with its line.
    (exp,) = [n for n, s in enumerate(record.stages) if "exp" in record.line_text(s)]
    assert any(f"g{exp}" in row.keys for row in heads)
    assert "lines of LLVM as XLA wrote them" in view.text()
    assert Recording.from_dict(record.to_dict()) == record
    assert view.to_svg() and "<img" in view.static_html()


def test_passes_are_lit_with_their_line() -> None:
    view = see.stages(softmax, X, passes=True)
    passes = see.passes(softmax, X).recording.passes
    pane = view.frame().panes[-1]
    heads = [row.cells[0] for row in pane.rows if row.look == "group"]
    assert [head.split("  ")[0] for head in heads] == [each.name for each in passes]
    added = [row for row in pane.rows if row.look == "add"]
    assert len(added) == sum(len(each.added) for each in passes)
    record = view.recording
    equations = {x.equation for each in passes for x in (*each.added, *each.altered)}
    touched = {f"g{n}" for n, s in enumerate(record.stages)
               if equations & set(s.equations)}  # fmt: skip
    lit = {key for row in pane.rows for key in row.keys}
    assert lit == touched


@pytest.mark.parametrize("target", [H100, TPU])
def test_code_of_other_machines(target) -> None:
    view = see.stages(softmax, X, target=target, code=True)
    said = "lines of PTX" if target == "h100" else "libtpu does not show its code"
    assert said in view.text() and view.to_html()


def test_a_key_hides_the_passes(browser, tmp_path) -> None:
    path = tmp_path / "stages.html"
    see.stages(softmax, X, passes=True).save(path)
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live")
    passes = page.locator(".mj-pane").filter(has_text="XLA's passes")
    assert passes.is_visible()
    page.locator(".mj-live").focus()
    page.keyboard.press("s")
    assert not passes.is_visible()
    page.keyboard.press("s")
    assert passes.is_visible()
    page.keyboard.press("?")
    assert page.get_by_text("XLA's passes: hide, show").is_visible()
    page.close()


@minijax.jit
def clipped(x):
    return jnp.maximum(x, 0.0) * 2.0


def twice_clipped(x, y):
    a = clipped(x)
    b = clipped(y)
    return jnp.sum(a) + jnp.sum(jnp.sin(b))


def test_a_helper_that_two_lines_call_is_linked_to_both():
    x = np.ones(4, np.float32)
    view = see.stages(twice_clipped, x, x)
    record = view.recording
    module = record.compiled.program.module
    calls = [s for s in record.stages if "clipped(" in record.line_text(s)]
    assert len(calls) == 2 and "nothing is left" not in view.text()
    found = []
    for stage in calls:
        names = [module.instructions[i].opcode for i in stage.instructions]
        assert stage.kernels
        found.append((names.count("maximum"), names.count("multiply")))
    # Of the helper's own lines the first call has none, they stand under the helper.
    assert found[1] == (1, 1)
    helper = next(s for s in record.stages if "maximum" in record.line_text(s))
    names = [module.instructions[i].opcode for i in helper.instructions]
    assert names.count("maximum") == 2
    second = calls[1].equations[0]
    assert second not in record.compiled.without_instructions()
    assert len(record.compiled.instructions_of(second)) >= 2


def test_a_call_whose_work_stands_under_its_helper_is_told_so():
    """Each line without a kernel has none of its own operations in the program."""

    @minijax.jit
    def relu(x):
        return jnp.maximum(x, 0.0)

    def mixed(x, y):
        a = relu(x)
        b = relu(y)
        c = jnp.sin(a)
        return c @ b

    x = np.ones((8, 8), np.float32)
    view = see.stages(mixed, x, x)
    record = view.recording
    helper = next(s for s in record.stages if "maximum" in record.line_text(s))
    bare = [s for s in record.stages if not s.kernels]
    assert bare and all("relu(" in record.line_text(stage) for stage in bare)
    for stage in bare:
        told = f"what it calls stands under line {helper.span.line}"
        assert f"line {stage.span.line}: {told}" in view.text()


def test_an_instruction_without_a_name_is_found_by_its_frames():
    record = record_stages(twice_clipped, (np.ones(4), np.ones(4)), {}).compiled
    module = record.program.module
    sine = next(each for each in module.instructions if each.opcode == "sine")
    bare = dataclasses.replace(sine, op_name="", equation=None, around=[])
    module.instructions.append(bare)
    find_by_frames(module)
    assert bare.equation == sine.equation is not None
    lost = dataclasses.replace(bare, equation=None, frame=None)
    module.instructions.append(lost)
    find_by_frames(module)
    assert lost.equation is None
