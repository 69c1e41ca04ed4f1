"""Programs that real JAX compiled, in the views of compiled programs."""

import json
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.compiled import record_compiled
from minijax_lab.explain.foreign_compiled import function_around, user_frames
from minijax_lab.explain.levels import levels_of
from minijax_lab.explain.lowering import lowering_of
from minijax_lab.explain.recording import Recording
from tests.views import compiled_programs

X = np.linspace(0.1, 2.0, 1024, dtype=np.float32)


def softmax(x):
    e = jnp.exp(x - jnp.max(x))
    return e / jnp.sum(e)


def looped(x):
    def step(carry, row):
        return jnp.tanh(carry + row), carry

    return jax.lax.scan(step, jnp.float32(0), x)[1]


@pytest.fixture(autouse=True)
def optimised(monkeypatch):
    """As a user's process compiles, not as the tests do."""
    with jax.disable_jit(False):
        jax.config.update("jax_disable_most_optimizations", False)
        yield
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.mark.parametrize(
    "function", [softmax, looped, jax.grad(lambda x: softmax(x)[0])]
)
def test_lines_of_jax_reach_their_instructions_and_back(function):
    recording = record_compiled(jax.jit(function), (X,), {})
    instructions = recording.program.module.instructions
    assert recording.lines()
    for place, operations in recording.lines().items():
        for operation in operations:
            found = recording.instructions_of(operation)
            assert found
            for number in found:
                assert place in recording.lines_of(number)
        line = recording.sources[place[0]].lines
        assert place[1] - recording.sources[place[0]].first_line < len(line)
    for number in recording.unmapped:
        assert instructions[number].equation is None


def test_a_lowered_program_is_compared_with_itself_unfused():
    recording = record_compiled(jax.jit(softmax).lower(X), (), {})
    assert recording.call == "softmax(f32[1024])"
    assert len(recording.unfused.kernels) > len(recording.program.kernels)
    assert recording.unfused.bytes > recording.program.bytes
    known = {i.equation for i in recording.unfused.module.instructions}
    assert known >= {equation.id for equation in recording.jaxpr.equations}
    names = [equation.primitive for equation in recording.jaxpr.equations]
    assert {"exp", "sub", "div", "reduce_max", "reduce_sum"} <= set(names)
    again = Recording.from_dict(json.loads(json.dumps(recording.to_dict())))
    assert again.to_dict() == recording.to_dict()


def test_a_compiled_program_has_no_other_half():
    recording = record_compiled(jax.jit(softmax).lower(X).compile(), (), {})
    assert recording.unfused is None and "give its Lowered" in recording.unfused_because
    assert recording.program.cost["flops"] > 0
    with pytest.raises(ValueError, match="JAX compiled the program for cpu"):
        record_compiled(jax.jit(softmax).lower(X), (), {}, "h100")


def test_see_fusion_takes_them():
    view = see.fusion(jax.jit(softmax), X)
    text = view.text()
    assert text.startswith("fusion of softmax: ")
    assert "e / jnp.sum(e)" in text or "kernels" in text
    assert "softmax" in view.to_html()


def test_the_functions_around_lines():
    lines, first = function_around(__file__, softmax.__code__.co_firstlineno + 1)
    assert first == softmax.__code__.co_firstlineno and len(lines) == 3
    assert function_around("nowhere.py", 3) == ([], 0)


def test_frames_of_jax_itself_are_left_out():
    text = jax.jit(lambda x: jnp.median(x)).lower(X).compile().as_text()
    files = {frame[0] for frame in user_frames(text).values()}
    assert files
    assert not any("site-packages/jax" in file for file in files)


# ---- other forms of a program --------------------------------------------------------


def programs_of_jax():
    """The thirty programs, written for real JAX."""
    text = Path(compiled_programs.__file__).read_text()
    for ours, theirs in (
        ("import minijax.numpy as jnp", "import jax.numpy as jnp"),
        ("from minijax import lax", "from jax import lax"),
        ("import minijax\n", "import jax as minijax\n"),
    ):
        text = text.replace(ours, theirs)
    module = types.ModuleType("programs_of_jax")
    exec(compile(text, "programs_of_jax.py", "exec"), module.__dict__)
    return module.PROGRAMS


JAX_PROGRAMS = programs_of_jax()


@pytest.mark.parametrize("name", JAX_PROGRAMS)
def test_what_jax_traced_is_lowered_by_our_rules(name):
    function, args = JAX_PROGRAMS[name]
    by_jaxpr = levels_of(jax.make_jaxpr(function)(*args), (), {})
    by_jit = levels_of(jax.jit(function), args, {})
    by_stage = levels_of(jax.jit(function).trace(*args), (), {})
    texts = set()
    for levels in (by_jaxpr, by_jit, by_stage):
        recording = lowering_of(levels, "cpu")
        for line in recording.lines:
            assert line.equation is not None or line.operation in ("", "constant")
        texts.add(recording.text.partition("\n")[2])
    assert len(texts) == 1


def test_stages_of_ours_serve_too():
    jitted = minijax.jit(lambda x: minijax.numpy.sin(x) * 2.0)
    traced = jitted.trace(X)
    lowered = traced.lower()
    texts = {
        lowering_of(levels_of(stage, (), {}), "cpu").text
        for stage in (traced, lowered, lowered.compile())
    }
    assert texts == {lowered.as_text().rstrip("\n")}
    view = see.stages(lowered.compile())
    assert view.text().startswith("stages of ")


def test_a_program_of_jax_without_a_jaxpr_is_refused():
    for stage in (jax.jit(softmax).lower(X), jax.jit(softmax).lower(X).compile()):
        with pytest.raises(TypeError, match="of JAX has no jaxpr.*Pass the jitted"):
            levels_of(stage, (), {})
