"""`tiny`, one system: its numbers and its programs are JAX's."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from minijax_lab import tiny_score
from minijax_lab.tiny_programs import Real, Tiny
from tiny import loops, operations, trace
from tiny.batching import vmap
from tiny.cache import Jitted
from tiny.custom import custom_vjp
from tiny.linearize import linearize, outside
from tiny.tangents import jvp
from tiny.trace import Type
from tiny.transposes import grad

X = np.array([0.5, 1.5, 2.0], np.float32)


@pytest.fixture(scope="module")
def answers():
    """The answers kept and those that the jax of now gives, as leaves by path."""
    path = Path(__file__).with_name("record_tiny_answers.py")
    # In a process of its own, which can have eight devices.
    shown = subprocess.run(
        [sys.executable, str(path), "--show"], stdout=subprocess.PIPE, check=True
    )
    found = tiny_score.ANSWERS.read_text(), shown.stdout
    return [dict(jax.tree.leaves_with_path(json.loads(text))) for text in found]


@pytest.mark.turns(3)
def test_the_recorded_numbers_are_jax(answers):
    kept, fresh = answers
    assert kept.keys() == fresh.keys()
    numbers = [path for path in kept if not isinstance(kept[path], str)]
    assert len(numbers) > 100
    for path in numbers:
        assert kept[path] == pytest.approx(fresh[path], 1e-5), path


@pytest.mark.turns(3)
def test_the_recorded_programs_are_jax(answers):
    """jax 0.12 has a primitive for 1 - tanh(x)**2, and adds cotangents otherwise."""
    kept, fresh = answers
    texts = [path for path in kept if isinstance(kept[path], str)]
    assert len(texts) > 20
    for path in texts:
        assert kept[path] == fresh[path], path


@pytest.mark.parametrize("chapter", tiny_score.TITLES)
def test_each_chapter_gives_jax_numbers_and_texts(chapter):
    score = tiny_score.score_chapter(chapter)
    assert score.failed == [] and score.right == score.count > 0
    assert score.same_texts == score.texts


# A vector goes in and a vector of the same length comes out.
PARTS = {
    "sin": lambda m, x: m.sin(x),
    "tanh": lambda m, x: m.tanh(x) + x,
    "soft": lambda m, x: m.exp(x) / m.sum(m.exp(x)),
    "norm": lambda m, x: x / (1.0 + m.sum(x * x)),
    "turn": lambda m, x: m.dot(MIX, m.cos(x)),
    "last": lambda m, x: m.where(m.gt(x, 0.1), x * x, -x) + x[1],
    "cube": lambda m, x: 0.1 * x**3 - 2.0 * x,
}
MIX = np.array([[0.2, -0.3, 0.5], [0.1, 0.9, -0.4], [-0.7, 0.3, 0.6]], np.float32)
TRANSFORMS = {
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (m.cos(x),))[1],
    "grad": lambda m, f: m.grad(lambda x: m.sum(f(x) * f(x))),
    "vmap": lambda m, f: lambda x: m.sum(m.vmap(f)(MIX * x), 0),
}
CHAINS = list(itertools.permutations(PARTS, 2))[::4][:10]
ORDERS = list(itertools.product(TRANSFORMS, TRANSFORMS))
CASES = [(c, *ORDERS[(3 * i + j) % 9]) for i, c in enumerate(CHAINS) for j in range(3)]


def composed(m, chain, first, second):
    def function(x):
        for part in chain:
            x = PARTS[part](m, x)
        return x

    return TRANSFORMS[second](m, TRANSFORMS[first](m, function))


@pytest.mark.parametrize("chain, first, second", CASES)
def test_compositions_of_jvp_grad_and_vmap(chain, first, second):
    tiny, real = Tiny(), Real(jax)
    right = jax.jit(composed(real, chain, first, second))(X * 0.3)
    found = composed(tiny, chain, first, second)
    np.testing.assert_allclose(found(X * 0.3), right, rtol=2e-4, atol=2e-5)
    program = tiny.trace(found, X)
    np.testing.assert_allclose(program(X * 0.3), right, rtol=2e-4, atol=2e-5)


def test_a_tracer_refuses_to_be_a_condition():
    with pytest.raises(TypeError, match="has a type and no value"):
        trace.trace(lambda x: x * 2.0 if x else x * 3.0, 0.0)
    with pytest.raises(TypeError, match="has a type and no value"):
        trace.trace(lambda x: x if x > 1.0 else -x, 0.0)


def test_a_tracer_of_a_finished_program_is_refused():
    leaked = []
    trace.trace(lambda x: leaked.append(x) or x, X)
    with pytest.raises(TypeError, match="a program that is finished"):
        leaked[0] * 2.0


def test_a_branch_and_a_loop_use_outer_tracers():
    def both(x, y):
        x = loops.cond(y > 0.0, lambda x: x * y, lambda x: x - y, x)
        return loops.scan(lambda c, row: (c * y + row, None), x, X)[0]

    program = trace.trace(both, 2.0, 3.0)
    names = [equation.primitive for equation in program.equations]
    assert names == ["gt", "cond", "scan"]
    y = 3.0
    right = ((2.0 * y * y + X[0]) * y + X[1]) * y + X[2]
    assert program(2.0, 3.0) == pytest.approx(right)


def test_shapes_are_jax():
    w, x = Type((4, 3), "f32"), Type((3,), "f32")
    program = trace.trace(operations.dot, w, x)
    text = str(jax.make_jaxpr(jnp.dot)(np.ones((4, 3), np.float32), X))
    assert program.outputs[0].type == Type((4,), "f32") and "c:f32[4]" in text
    with pytest.raises(ValueError, match="broadcast"):
        trace.trace(lambda x, y: x + y, x, Type((4,), "f32"))


def test_residuals_of_sin_times_x():
    """cos(x) and sin(x), and x itself, which is an argument."""
    _, linear = linearize(lambda x: operations.sin(x) * x, X)
    kept = sorted(tuple(np.round(value, 4)) for value in outside(linear))
    right = sorted(tuple(np.round(v, 4)) for v in (np.cos(X), np.sin(X), X))
    assert kept == right


def test_a_cache_of_trees():
    jitted = Jitted(lambda p: p["a"] * p["b"])
    assert jitted({"a": 2.0, "b": 3.0}) == 6.0 and jitted({"b": 5.0, "a": 2.0}) == 10.0
    assert (jitted.hits, jitted.misses) == (1, 1)


def test_jit_inside_of_grad():
    jitted = Jitted(lambda x: operations.sin(x) * x)
    assert grad(jitted)(1.0) == pytest.approx(np.sin(1) + np.cos(1))
    assert grad(grad(jitted))(1.0) == pytest.approx(2 * np.cos(1) - np.sin(1))


def test_random_numbers_under_vmap_and_trace():
    from tiny.threefry import make_key, split

    keys = split(make_key(0), 3)

    def draw(key):
        return trace.bind("random_uniform", key, shape=(2,))

    right = [draw(key) for key in keys]
    assert np.array_equal(vmap(draw)(keys), right)
    program = trace.trace(vmap(draw), keys)
    assert program.outputs[0].type == Type((3, 2), "f32")
    assert np.array_equal(program(keys), right)


def test_bad_input_is_a_sentence():
    with pytest.raises(TypeError, match="grad needs one number"):
        grad(lambda x: x * x)(X)
    with pytest.raises(ValueError, match="one number of examples"):
        vmap(lambda x, y: x * y)(X, np.ones(4))
    with pytest.raises(TypeError, match="the carry is"):
        loops.scan(lambda c, x: (c * X, None), 1.0, X)
    with pytest.raises(TypeError, match="one branch gives"):
        trace.trace(lambda x: loops.cond(x > 0.0, lambda x: x, lambda x: x * X, x), 1.0)
    f = custom_vjp(lambda x: x, lambda x: (x, None), lambda _, c: (c,))
    with pytest.raises(TypeError, match="no forward mode"):
        jvp(f, (1.0,), (1.0,))


def test_every_table_has_its_rules():
    """What an equation means, its type, its tangent and its batching: all are there."""
    linear = {"custom_change"}
    # In a fresh `tiny`: exercises add primitives of their own to the one in use.
    with tiny_score.read_anew():
        tiny = Tiny()
    assert set(tiny.MEANING) == set(tiny.SHAPES)
    assert set(tiny.MEANING) - set(tiny.TANGENTS) == linear
    assert set(tiny.MEANING) - set(tiny.BATCHING) == linear
    assert set(tiny.TRANSPOSES) <= set(tiny.MEANING)


def test_what_tiny_saves_is_stablehlo_that_xla_computes():
    """XLA reads the text of the course's programs and finds tiny's numbers."""
    from jaxlib import _jax

    from tiny.export import exported

    def network(params, x):
        for w, b in params:
            x = operations.tanh(operations.dot(x, w) + b) ** 2 / 3.0
        shifted = x - operations.max(x)
        return operations.sum(operations.exp(-shifted) - shifted), shifted

    params = [(MIX, X), (2 * MIX, np.array([0.1, -1e-7, 3e8], np.float32))]
    kept = exported(network, params, X)
    device = jax.devices()[0]
    program = device.client.compile_and_load(
        kept.text, _jax.DeviceList((device,)), _jax.CompileOptions()
    )
    leaves = [w for pair in params for w in pair] + [X]
    found = program.execute([jax.device_put(leaf) for leaf in leaves])
    for one, right in zip(found, network(params, X), strict=True):
        np.testing.assert_allclose(np.asarray(one), right, rtol=1e-5)
