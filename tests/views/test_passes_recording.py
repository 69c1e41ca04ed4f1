"""XLA's passes as differences, and its decisions to fuse, replayed."""

import gzip
import importlib.util
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.backend import cuda
from minijax_lab.explain import passes
from minijax_lab.explain.fusion_steps import record_fusion_steps
from minijax_lab.explain.passes import record_passes
from minijax_lab.explain.recording import Recording
from tests.views.compiled_programs import PROGRAMS, X, chain

SQUARE = np.ones((64, 64), np.float32)
H100 = pytest.param(
    "h100",
    marks=pytest.mark.skipif(
        not cuda.is_installed(), reason="jax-cuda13-pjrt (minijax[h100]) is missing"
    ),
)
TPU = pytest.param(
    "tpu-v5e:2x2",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None,
        reason="libtpu (minijax[tpu]) is missing",
    ),
)
TARGETS = ["cpu", H100, TPU]


def found(recording, name):
    """What the passes whose name contains `name` changed."""
    return [
        difference
        for number, each in enumerate(recording.passes)
        if name in each.name
        for difference in recording.differences(number)
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_common_subexpressions(target):
    def function(x):
        return jnp.sin(x) * jnp.cos(x) + jnp.sin(x)

    changed = found(record_passes(function, (X,), {}, target), "cse")
    assert any("sine" in each.before and not each.after for each in changed)


@pytest.mark.parametrize("target", ["cpu", TPU])  # XLA for GPUs leaves it there
def test_what_a_loop_computes_alike_moves_out(target):
    def function(x, a):
        return lax.fori_loop(0, 100, lambda i, c: c + jnp.dot(a, a) @ c, x)

    recording = record_passes(function, (X, SQUARE), {}, target)
    changed = found(recording, "invariant-code-motion")
    (product,) = (
        each
        for each in changed
        if "dot(" in each.before and each.was_in.startswith("region")
        if each.is_in.startswith("main")
    )
    assert recording.jaxpr.equations[product.equation].primitive == "dot_general"


@pytest.mark.parametrize("target", TARGETS)
def test_algebraic_simplification(target):
    """The transpose of a product is the product of transposes."""

    def function(a, b):
        return (a.T @ b).T + 1.0

    changed = found(
        record_passes(function, (SQUARE[:, :32], SQUARE), {}, target), "alg"
    )
    assert any("transpose(" in each.before and not each.after for each in changed)


def test_layouts():
    def function(a, b):
        return (a.T @ b).T + 1.0

    changed = found(
        record_passes(function, (SQUARE[:, :32], SQUARE), {}), "layout-assi"
    )
    assert any("{0,1}" in each.before and "{1,0}" in each.after for each in changed)


def test_constants_are_folded():
    def function(x):
        return x[jnp.arange(4) * 2] * jnp.sum(jnp.arange(5))

    changed = found(record_passes(function, (X,), {}), "constant_folding")
    assert any("constant(10)" in each.after for each in changed)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["scan", "grad of loss", "attention"])
def test_the_differences_add_up(name, target, monkeypatch):
    """All of them, one after another, give the program that XLA wrote at the end."""
    seen = []
    original = passes.program_lines

    def watched(text):
        seen.append(original(text))
        return seen[-1]

    monkeypatch.setattr(passes, "program_lines", watched)
    function, args = PROGRAMS[name]
    recording = record_passes(function, args, {}, target)
    for number, written in ((0, seen[0]), (len(recording.passes), seen[-1])):
        together = recording.after(number)
        assert together.keys() == written.keys()
        for name, line in written.items():
            assert together[name].text == line.text
            assert together[name].computation == line.computation
    for number, each in enumerate(recording.passes):
        assert each.changes or each.reordered
        assert len(recording.after(number + 1)) == each.instructions
        differences = recording.differences(number)
        assert all(each.before or each.after for each in differences)


@pytest.mark.turns(3)
def test_a_large_program_is_small():
    def layer(p, x):
        centred = x - jnp.mean(x, -1, keepdims=True)
        y = centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)
        q, k, v = y @ p["q"], y @ p["k"], y @ p["v"]
        x = x + minijax.nn.softmax(q @ k.T / 8.0) @ v @ p["o"]
        return x + minijax.nn.gelu(x @ p["w"]) @ p["u"]

    def loss(layers, x):
        for p in layers:
            x = layer(p, x)
        return jnp.sum(x**2)

    n = 32
    p = {name: np.ones((n, n), np.float32) for name in "qkvo"}
    p |= {"w": np.ones((n, 4 * n), np.float32), "u": np.ones((4 * n, n), np.float32)}
    x = np.ones((16, n), np.float32)
    recording = record_passes(minijax.grad(loss), ([p] * 12, x), {})
    data = json.dumps(recording.to_dict()).encode()
    assert recording.bytes > 10_000_000  # what XLA wrote
    assert len(gzip.compress(data)) < 500_000
    assert Recording.from_dict(json.loads(data)).after(5) == recording.after(5)


def test_no_folder_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    record_passes(chain, (X,), {})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(OSError, match="no temporary folder can be written to.*TMPDIR"):
        record_passes(chain, (X,), {})


def test_no_path_of_the_machine_is_in_it():
    text = json.dumps(record_passes(chain, (X,), {}).to_dict())
    assert str(Path(minijax.__file__).parent) not in text
    assert "equation." not in text  # nor a mark


# ---- fusion, step by step ------------------------------------------------------------

SHORT = [name for name in PROGRAMS if name not in ("random", "special")]


@pytest.mark.parametrize("target", [H100])
@pytest.mark.parametrize("name", SHORT)
def test_the_decisions_of_the_gpu_are_replayed(name, target):
    function, args = PROGRAMS[name]
    recording = record_fusion_steps(function, args, {}, target)
    assert recording.decided
    fusions = [step for step in recording.steps if step.kind == "fusion"]
    assert len(fusions) == recording.dumped
    for step in recording.steps:
        if step.kind == "fusion":
            assert (step.us_fused is None) == (step.us_unfused is None)
            assert step.us_fused is None or 0 < step.us_fused and 0 < step.us_unfused
        else:
            assert step.kind == "ineligible" and step.reason
    # The replay ends with as many kernels as XLA's own pass.
    assert len(recording.kernels_after(len(recording.steps))) == len(recording.after)
    first = recording.kernels_after(0)
    assert all(members == [name] for name, members in first.items())


@pytest.mark.parametrize("target", [H100])
def test_each_decision_knows_its_equations(target):
    recording = record_fusion_steps(chain, (X,), {}, target)
    last = [step for step in recording.steps if step.kind == "fusion"][-1]
    behind = {number for step in recording.steps for number in step.equations}
    assert behind == set(range(10))
    assert set(last.equations) <= behind
    assert recording.steps[recording.telling].kind == "fusion"
    assert "step by step: " in recording.headline
    again = Recording.from_dict(json.loads(json.dumps(recording.to_dict())))
    assert again.kernels_after(3) == recording.kernels_after(3)


@pytest.mark.parametrize("target", ["cpu", TPU])
@pytest.mark.parametrize("name", ["chain", "loss", "scan", "cond", "vmap of grad"])
def test_elsewhere_the_steps_are_containment(name, target):
    function, args = PROGRAMS[name]
    recording = record_fusion_steps(function, args, {}, target)
    assert not recording.decided and not recording.dumped
    assert "does not say in which order" in recording.note
    assert "containment only" in recording.headline
    assert all(step.us_fused is None for step in recording.steps)
    replayed = recording.kernels_after(len(recording.steps))
    assert sorted(replayed) == sorted(recording.after)
    for step in recording.steps:
        assert replayed[step.name] == step.consumers and len(step.consumers) > 1
