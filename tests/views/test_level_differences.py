"""What an edit changes at each of four levels, and the machine code of kernels."""

import importlib.util
import json

import pytest

import minijax.numpy as jnp
from minijax.backend import cuda
from minijax_lab.explain.level_differences import differences
from minijax_lab.explain.machine_code import MOST_LINES, record_machine_code
from minijax_lab.explain.recording import Recording
from minijax_lab.explain.stages import record_stages
from tests.views.compiled_programs import A, B, X, chain, loss

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


def changed(before, after, args=(X,)):
    told = differences(record_stages(before, args, {}), record_stages(after, args, {}))
    return {
        each.level: [line for line in each.lines if line[0] != " "] for each in told
    }


def test_an_edit_is_seen_at_every_level():
    def before(x):
        y = jnp.sin(x)
        return jnp.cos(y) + x

    def after(x):
        y = jnp.sin(x)
        y = jnp.exp(y)
        return jnp.cos(y) + x

    told = changed(before, after)
    assert "+        y = jnp.exp(y)" in told["source"]
    # The cosine reads the new value; the sum has other names only, and is not told.
    assert told["jaxpr"] == [
        "+    c:f32[64] = exp b",
        "-    c:f32[64] = cos b",
        "+    d:f32[64] = cos c",
    ]
    operations = [line for line in told["stablehlo"] if "module @" not in line]
    assert operations[0] == "+    %1 = stablehlo.exponential %0 : tensor<64xf32>"
    assert not any("stablehlo.add" in line for line in operations)
    assert any("exponential(" in line for line in told["hlo"])
    assert not any(" add(" in line for line in told["hlo"])


def test_swapped_operands_are_a_change():
    def before(x, y):
        a = jnp.sin(x)
        b = jnp.cos(y)
        return a - b

    def after(x, y):
        a = jnp.sin(x)
        b = jnp.cos(y)
        return b - a

    told = changed(before, after, (X, X))
    assert told["jaxpr"] == ["-    e:f32[64] = sub c d", "+    e:f32[64] = sub d c"]
    assert len([line for line in told["stablehlo"] if "subtract" in line]) == 2


def test_nothing_changes_without_an_edit():
    told = changed(loss, loss, (B, A))
    assert not any(told.values())


@pytest.mark.parametrize("target, language", [("cpu", "llvm"), (*H100.values, "ptx")])
def test_machine_code_of_each_kernel(target, language):
    if target == "h100" and not cuda.is_installed():
        pytest.skip("jax-cuda13-pjrt (minijax[h100]) is missing")
    recording = record_machine_code(chain, (X,), {}, target)
    (code,) = recording.codes
    assert code.language == language and not recording.without
    assert code.equations == list(range(10))
    if language == "llvm":
        assert "define" in code.written and "define" in code.optimised
    else:
        assert code.optimised.startswith(".visible .entry") and not code.written
    assert len(code.optimised.split("\n")) <= MOST_LINES
    again = Recording.from_dict(json.loads(json.dumps(recording.to_dict())))
    assert again.codes == recording.codes


@pytest.mark.parametrize("target", [TPU])
def test_libtpu_shows_no_code(target):
    recording = record_machine_code(chain, (X,), {}, target)
    assert recording.note and not recording.codes and recording.without
