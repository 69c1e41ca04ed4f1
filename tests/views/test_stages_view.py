"""`see.stages`: four levels of a function, linked by equation."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
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
            assert module.instructions[instruction].equation in own
        for kernel in stage.kernels:
            assert own & set(record.compiled.program.kernels[kernel].equations)
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
    assert "minijax/primitives/" in frame.steps[0].detail
    assert frame.panes[0].narrow.width == 360
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


def test_jaxprs_of_both_libraries() -> None:
    mine = see.stages(minijax.make_jaxpr(softmax)(X))

    def theirs(x):
        e = jax.numpy.exp(x - jax.numpy.max(x))
        return e / jax.numpy.sum(e)

    of_jax = see.stages(jax.make_jaxpr(theirs)(X))
    for view, lines in ((mine, 3), (of_jax, 2)):
        assert f"{lines} lines, 5 equations" in view.text()


def test_nothing_to_do_and_wrong_targets() -> None:
    assert see.stages(lambda x: x, X).to_html()
    with pytest.raises(ValueError, match="target"):
        see.stages(softmax, X, target="abacus")
