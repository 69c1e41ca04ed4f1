"""The compiled program as data: instructions, kernels, bytes, and the way back."""

import importlib.util
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.backend import cuda
from minijax.compile.cross_compiling import find
from minijax_lab.explain import hlo_text, long_programs
from minijax_lab.explain.compiled import compile_now, record_compiled
from minijax_lab.explain.kernels import kernels_of
from minijax_lab.explain.recording import Recording
from tests.views.compiled_programs import PROGRAMS, A, B, X, layer

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


@pytest.fixture(scope="module")
def recordings():
    made = {}

    def of(name, target="cpu"):
        if (name, target) not in made:
            function, args = PROGRAMS[name]
            made[name, target] = record_compiled(function, args, {}, target)
        return made[name, target]

    return of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_line_reaches_its_instructions_and_back(name, target, recordings):
    recording = recordings(name, target)
    instructions = recording.program.module.instructions
    gone = set(recording.without_instructions())
    reached = 0
    for place, equations in recording.lines().items():
        found = [i for e in equations for i in recording.instructions_of(e)]
        # A line without instructions is one whose equations the compiler did away with.
        assert found or gone.issuperset(equations), place
        reached += bool(found)
        for instruction in found:
            own = instructions[instruction].equation
            behind = {own, *instructions[instruction].around}
            assert any(behind & recording.within(equation) for equation in equations)
            assert own in recording.equations_of(instruction)
        for instruction in set(found):
            back = recording.lines_of(instruction)
            span = recording.jaxpr.equations[instructions[instruction].equation].span
            assert span is None or (span.source, span.line) in back
    assert reached
    # What has no equation is listed, and nothing else is.
    for instruction in recording.unmapped:
        assert instructions[instruction].equation is None
    for kernel in recording.program.kernels:
        known = bool(recording.equations_of(kernel.instruction))
        assert known != (kernel.instruction in recording.unmapped)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_marks_change_nothing(name, recordings):
    """The program of the recording is the one that a call of the function runs."""
    function, args = PROGRAMS[name]
    lowered = minijax.jit(function).lower(*args)._lowered
    text = compile_now(find("cpu"), lowered, {}).hlo_text()
    ours = [
        (i.opcode, i.type, i.layout, i.name)
        for i in recordings(name).program.module.instructions
    ]
    theirs = [
        (i.opcode, i.type, i.layout, i.name) for i in hlo_text.parse(text).instructions
    ]
    assert ours == theirs


def by_name(program):
    """A program without the names and places of the elements of tuples, which the
    files that XLA writes leave out since jaxlib 0.12."""
    instructions = program.module.instructions

    def name(number):
        found = instructions[number]
        if found.opcode != "get-tuple-element":
            return found.name
        return f"{name(found.operands[0])}, {found.attributes}"

    def named(instruction):
        fields = vars(instruction) | {"name": name(instruction.id), "id": 0}
        operands = [name(operand) for operand in instruction.operands]
        return repr(sorted({**fields, "operands": operands}.items()))

    def kernel(found):
        members = sorted(name(member) for member in found.members)
        fields = {"instruction": name(found.instruction), "members": members}
        return repr(sorted({**vars(found), **fields}.items()))

    whole = sorted(set(map(named, instructions)))
    return [*whole, *map(kernel, program.kernels)]


@pytest.mark.parametrize("name", ["chain", "scan"])
def test_a_long_program_is_compiled_without_fusion_elsewhere(
    name, recordings, monkeypatch
):
    here = recordings(name)
    monkeypatch.setattr(long_programs, "LONG", 0)
    function, args = PROGRAMS[name]
    made = record_compiled(function, args, {})
    assert made.unfused_because == "" and made.unfused.cost == {} != here.unfused.cost
    assert by_name(made.unfused) == by_name(here.unfused)
    assert made.headline == here.headline


def test_what_is_not_compiled_elsewhere_says_why():
    module = minijax.jit(jnp.sin).lower(X).as_text().encode()
    text, because = long_programs.text_of(module, {"xla_no_such_flag": 1})
    assert text == "" and "xla_no_such_flag" in because
    assert long_programs.text_of(b"no program", {})[0] == ""


@pytest.mark.parametrize("target", TARGETS)
def test_ten_operations_become_one_kernel(target):
    def ten(x):
        for _ in range(5):
            x = jnp.sin(x) * 2.0
        return x

    x = minijax.ShapeDtypeStruct((1 << 20,), np.float32)
    recording = record_compiled(ten, (x,), {}, target)
    mebibyte = 1 << 20
    assert len(recording.program.kernels) == 1
    assert recording.program.bytes == 8 * mebibyte
    assert 10 <= len(recording.unfused.kernels) <= 12
    assert 90 * mebibyte <= recording.unfused.bytes <= 110 * mebibyte
    assert not any(kernel.fused for kernel in recording.unfused.kernels)
    (kernel,) = recording.program.kernels
    assert kernel.fused and kernel.equations == list(range(10))
    assert kernel.flops == kernel.transcendentals == 5 * mebibyte


def test_flops_and_bytes_are_those_of_xla(recordings):
    """XLA's estimate of the whole program is the sum of ours over the kernels."""
    for name in ("chain", "layer", "loss", "softmax", "einsum", "vmap of softmax"):
        program = recordings(name).program
        cost = program.cost
        flops = sum(kernel.flops for kernel in program.kernels)
        hard = sum(kernel.transcendentals for kernel in program.kernels)
        assert flops == pytest.approx(cost["flops"], rel=0.02), name
        assert hard == pytest.approx(cost.get("transcendentals", 0), rel=0.02), name
        assert program.bytes == pytest.approx(cost["bytes accessed"], rel=0.05), name


def test_a_loop_runs_its_kernels_often(recordings):
    times = {kernel.times for kernel in recordings("scan").program.kernels}
    assert 64 in times
    assert None in {kernel.times for kernel in recordings("while_loop").program.kernels}


def test_a_wrapped_operation_is_not_fused(recordings):
    program = recordings("layer").unfused
    wrapped = [k for k in program.kernels if program.instruction(k).opcode == "fusion"]
    assert wrapped and not any(kernel.fused for kernel in wrapped)


def test_a_slice_reads_what_it_takes():
    def function(x):
        return jnp.sin(x[:8]) * 2.0

    x = minijax.ShapeDtypeStruct((1 << 20,), np.float32)
    program = record_compiled(function, (x,), {}).program
    assert program.bytes < 1000


def test_the_recording_is_plain_data(recordings):
    recording = recordings("loss")
    again = Recording.from_dict(json.loads(json.dumps(recording.to_dict())))
    assert again.to_dict() == recording.to_dict()
    assert again.headline.startswith("fusion of loss on cpu: ")
    assert again.program.kernels[again.telling].bytes > 0


def test_a_program_that_calls_python():
    def function(x):
        minijax.debug.print("{}", x)
        return x * 2.0

    recording = record_compiled(function, (X,), {})
    assert "custom-call" in {i.opcode for i in recording.program.module.instructions}


@pytest.mark.parametrize("target", TARGETS[1:])
def test_memory_and_cost_of_a_machine_that_is_not_there(target):
    recording = record_compiled(layer, (B, A), {}, target)
    assert recording.program.memory["arguments"] >= A.nbytes + B.nbytes
    assert ("optimal_seconds" in recording.program.cost) == target.startswith("tpu")


def test_real_jax_programs_are_read_too():
    import jax

    text = jax.jit(lambda x: jax.numpy.sin(x) * 2).lower(X).compile().as_text()
    module = hlo_text.parse(text)
    assert {"sine", "multiply"} <= {i.opcode for i in module.instructions}
    assert kernels_of(module)


def test_a_text_that_is_no_program():
    with pytest.raises(ValueError, match="not a text of an HLO module"):
        hlo_text.parse("hello")


@pytest.mark.parametrize(
    "text, size",
    [
        ("f32[8,4]{1,0}", 128),
        ("(f32[2]{0}, /*index=1*/ pred[3], token[])", 11),
        ("bf16[]", 2),
        ("s4[3]", 2),
        ("f8e4m3fn[5]", 5),
        ("c64[2]", 16),
        ("f32[<=4]", 16),
    ],
)
def test_bytes_of_a_type(text, size):
    assert hlo_text.size_of(text) == size


@pytest.mark.parametrize("target", TARGETS)
def test_the_length_of_a_scan_is_known_everywhere(target, recordings):
    times = {kernel.times for kernel in recordings("scan", target).program.kernels}
    assert None not in times and max(times) >= 32  # XLA may take two turns at once


LONG_PROGRAM = """
import numpy as np, minijax
from minijax_lab.explain import long_programs

def f(x):
    for _ in range(6000):
        x = minijax.lax.sin(x) * 1.01
    return x

text = minijax.jit(f).lower(np.ones(64, np.float32)).as_text()
long_programs.text_of(text.encode(), {})
"""


def test_the_process_that_compiles_ends_with_the_one_that_waits(tmp_path):
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    parent = subprocess.Popen([sys.executable, "-c", LONG_PROGRAM], env=environment)
    end = time.monotonic() + 60
    while not list(tmp_path.glob("minijax-*/*before_optimizations*")):
        assert parent.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    end = time.monotonic() + 8
    while list(tmp_path.glob("minijax-*")) and time.monotonic() < end:
        time.sleep(0.05)
    assert not list(tmp_path.glob("minijax-*"))


def test_elements_of_tuples_that_are_written_with_their_number():
    """Since jaxlib 0.12 XLA writes element 1 of a tuple into its files as `%pair#1`."""
    module = hlo_text.parse("""HloModule m

%head (pair: (s32[], f32[8])) -> f32[8] {
  %pair = (s32[], /*index=1*/f32[8]{0}) parameter(0), metadata={op_name="a#3"}
  %one = f32[8]{0} add(%pair#1, %pair#1), metadata={op_name="%pair#0"}
  ROOT %both = (f32[8]{0}, s32[]) tuple(%one, %pair#0)
}
""")
    assert [(i.opcode, i.operands, i.type) for i in module.instructions] == [
        ("parameter", [], "(s32[], f32[8])"),
        ("get-tuple-element", [0], "f32[8]"),
        ("add", [1, 1], "f32[8]"),
        ("get-tuple-element", [0], "s32[]"),
        ("tuple", [2, 3], "(f32[8], s32[])"),
    ]
    elements = [module.instructions[i] for i in (1, 3)]
    assert [i.attributes for i in elements] == ["index=1", "index=0"]
    assert [i.layout for i in elements] == ["{0}", ""]
    assert {i.op_name for i in elements} == {"a#3"}
