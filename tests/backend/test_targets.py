"""Programs compiled for machines that are not there."""

import importlib.util
import os

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.backend import cuda, targets

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
X = np.ones(1024, np.float32)


def softmax(x):
    e = jnp.exp(x - jnp.max(x))
    return e / jnp.sum(e)


@pytest.mark.parametrize("target", [H100, TPU])
def test_a_program_for_another_machine(target):
    environment = dict(os.environ)
    compiled = minijax.jit(softmax).lower(X).compile(target=target)
    assert compiled.target == target
    assert "fusion(" in compiled.as_text()
    assert compiled.memory_analysis().argument_size_in_bytes == 4096
    assert compiled.out_info.shape == (1024,)
    if target.startswith("tpu"):
        assert compiled.cost_analysis()["optimal_seconds"] > 0
    else:
        assert compiled.cost_analysis() == {}
    with pytest.raises(RuntimeError, match="no such device"):
        compiled(X)
    with pytest.raises(ValueError, match="can be shown as 'hlo'"):
        compiled.as_text("llvm")
    assert dict(os.environ) == environment


@pytest.mark.parametrize("target", [H100])
def test_kernels_of_the_h100(target):
    text = minijax.jit(softmax).lower(X).compile(target=target).as_text("ptx")
    assert ".target sm_90" in text and ".entry" in text


@pytest.mark.parametrize("target", [H100, TPU])
def test_options_of_the_compiler(target):
    lowered = minijax.jit(softmax).lower(X)
    unfused = {"xla_disable_hlo_passes": "fusion,priority-fusion,multi_output_fusion"}
    lowered.compile(unfused, target=target)
    with pytest.raises(minijax.errors.JaxRuntimeError, match="xla_no_such"):
        lowered.compile({"xla_no_such": 1}, target=target)


@pytest.mark.parametrize("target", [H100, TPU])
def test_what_calls_python_is_refused(target):
    @minijax.jit
    def noisy(x):
        minijax.debug.print("{}", x)
        return x + 1

    kinds = (NotImplementedError, ValueError)
    with pytest.raises(kinds, match=r"debug.print|callback"):
        noisy.lower(X).compile(target=target)


@pytest.mark.parametrize("target", [H100, TPU])
def test_the_platform_that_was_asked_for_stays(target):
    lowered = minijax.jit(softmax).trace(X).lower(lowering_platforms=("cpu",))
    with pytest.raises(ValueError, match="lowering_platforms"):
        lowered.compile(target=target)


@pytest.mark.parametrize("target", [H100, TPU])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sum(minijax.random.normal(minijax.random.key(0), (8,)) * x[:8]),
        lambda x: minijax.lax.scan(lambda c, r: (c + r, c * r), 0.0, x)[0],
        lambda x: minijax.grad(lambda y: jnp.sum(softmax(y) ** 2))(x),
        lambda x: jnp.sort(x)[jnp.argmax(x)] + jnp.cumsum(x),
        lambda x: minijax.lax.erf_inv(x) + minijax.scipy.special.gammaln(x),
        lambda x: (x.reshape(32, 32) @ x.reshape(32, 32)).at[0].add(x[:32]),
        lambda x: jnp.convolve(x, x[:7]),
        lambda x: minijax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    ],
    ids=["random", "scan", "grad", "sort", "special", "matmul", "convolve", "cond"],
)
def test_programs_of_each_kind(target, function):
    compiled = minijax.jit(function).lower(X).compile(target=target)
    assert "ENTRY" in compiled.as_text()


def test_the_cpu_of_this_machine_runs_it():
    compiled = minijax.jit(softmax).lower(X).compile(target="cpu")
    np.testing.assert_allclose(np.asarray(compiled(X)).sum(), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["h200", "", "tpu-v5e", "tpu-v9:2x2", "tpu-v5e:2xb"])
def test_an_unknown_target(name, monkeypatch):
    monkeypatch.setattr(targets.importlib.util, "find_spec", lambda name: NoSpec)
    with pytest.raises(ValueError, match="Targets are 'cpu', 'h100', several"):
        minijax.jit(softmax).lower(X).compile(target=name)


class NoSpec:
    origin = "libtpu/__init__.py"


def test_a_target_is_a_text():
    with pytest.raises(TypeError, match="target is a text"):
        minijax.jit(softmax).lower(X).compile(target=3)


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr(targets.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(targets.cuda, "find_plugin", lambda: None)
    targets.find.cache_clear()
    lowered = minijax.jit(softmax).lower(X)
    for target, extra in {"h100": "h100", "tpu-v5e:2x2": "tpu"}.items():
        with pytest.raises(ImportError, match=rf"pip install 'minijax\[{extra}\]'"):
            lowered.compile(target=target)


@pytest.mark.parametrize("target", [TPU])
def test_a_slice_that_cannot_be(target):
    with pytest.raises(ValueError, match="libtpu says"):
        minijax.jit(softmax).lower(X).compile(target="tpu-v5e:3x9")
    assert targets.find("tpu-v5e:1x1").num_devices == 1
