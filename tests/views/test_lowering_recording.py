"""Which rule wrote which StableHLO: exact, for each equation of thirty programs."""

import json
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core import lowering
from minijax.core.language import ClosedJaxpr, DropVar, Jaxpr, Literal, jaxprs_in_params
from minijax_lab.explain.equation_marks import equation_in, unmarked
from minijax_lab.explain.levels import levels_of
from minijax_lab.explain.lowering import lowering_of, operation_of, record_lowering
from minijax_lab.explain.recording import Recording
from tests.views.compiled_programs import PROGRAMS, X, chain, softmax


def test_a_name_says_its_equation():
    assert equation_in("jit(f)/equation.3/sort/equation.12/lt") == 12
    assert equation_in("jit(f)/sort") is None
    assert unmarked("jit(f)/equation.3/sort/equation.12/lt") == "jit(f)/sort/lt"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_operation_has_its_equation(name):
    function, args = PROGRAMS[name]
    recording = record_lowering(function, args, {})
    # The text is that of the program without marks.
    assert recording.text == minijax.jit(function).lower(*args).as_text().rstrip("\n")
    for line in recording.lines:
        # Constants that were closed over belong to no equation.
        assert line.equation is not None or line.operation in ("", "constant"), line
    for lowered in recording.lowered:
        for number in lowered.lines:
            assert recording.lines[number].equation == lowered.equation
        assert lowered.rule.path.startswith("minijax/") and lowered.rule.line > 0
        source = Path(minijax.__file__).parent.parent / lowered.rule.path
        name = lowered.rule.name.rpartition(".")[2]
        text = source.read_text().split("\n")
        assert name == "<lambda>" or any(
            f"def {name}" in line
            for line in text[lowered.rule.line - 1 : lowered.rule.line + 3]
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_equation_alone_becomes_the_same_operations(name):
    function, args = PROGRAMS[name]
    levels = levels_of(function, args, {})
    recording = lowering_of(levels, "cpu")
    compared = 0
    for number, eqn in enumerate(levels.equations):
        if list(jaxprs_in_params(eqn.params)) or eqn.effects:
            continue  # its program's operations have equations of their own
        written = [
            recording.lines[i].operation for i in recording.lowered[number].lines
        ]
        if not written or any(isinstance(v, DropVar) for v in eqn.outvars):
            continue  # dead code, or a result that only this program leaves out
        inputs = list(
            dict.fromkeys(v for v in eqn.invars if not isinstance(v, Literal))
        )
        alone = ClosedJaxpr(Jaxpr([], inputs, eqn.outvars, [eqn]), [])
        text = lowering.lower_to_module(alone, "alone", "cpu").text().split("\n")
        operations = [line.strip() for line in text]
        names = [operation_of(line) for line in operations]
        # A literal that several equations use is written once, for the first.
        expected = sorted(n for n in names if n and n != "constant")
        assert sorted(n for n in written if n and n != "constant") == expected, eqn
        compared += 1
    assert compared or all(list(jaxprs_in_params(e.params)) for e in levels.equations)


def test_a_program_that_is_called_twice_is_written_once():
    inner = minijax.jit(softmax)
    recording = record_lowering(lambda x: inner(x) + inner(x), (X,), {})
    calls = [line for line in recording.lines if line.operation == "call"]
    assert len({line.equation for line in calls}) == 2
    assert sum(line.operation == "exponential" for line in recording.lines) == 1


def test_the_headline_counts():
    recording = record_lowering(chain, (X,), {})
    assert recording.headline == (
        "lowering of chain(f32[64]): 10 equations became 16 StableHLO operations"
    )
    made = [len(one.lines) for one in recording.lowered]
    assert made[recording.telling] == max(made)


def test_it_is_plain_data_without_paths_of_the_machine():
    recording = record_lowering(minijax.jit(softmax), (X,), {})
    text = json.dumps(recording.to_dict())
    assert str(Path(minijax.__file__).parent) not in text
    again = Recording.from_dict(json.loads(text))
    assert again.to_dict() == recording.to_dict()
    assert again.lowered[0].rule.path.startswith("minijax/")


def test_static_arguments_and_refs():
    def function(x, kind):
        return getattr(jnp, kind)(x)

    recording = record_lowering(function, (X, "sin"), {})
    assert recording.lines[2].operation == "sine"

    def with_ref(x):
        ref = minijax.ref.new_ref(jnp.zeros(3))
        ref[1] = x
        return ref[...]

    recording = record_lowering(with_ref, (np.float32(1),), {})
    assert {line.operation for line in recording.lines} >= {"scatter"} or any(
        "update" in line.operation for line in recording.lines
    )


def test_for_another_platform():
    """Rules differ by platform: random bits are a loop on the CPU only."""
    function, args = PROGRAMS["random"]
    levels = levels_of(function, args, {})
    ours, theirs = (lowering_of(levels, platform) for platform in ("cpu", "tpu"))
    assert ours.text != theirs.text
