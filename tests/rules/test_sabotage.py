"""The sabotage lab: each fault is felt, is undone, and turns the test-suite red."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax_lab.sabotage import FAULTS, sabotage

ROOT = Path(__file__).resolve().parents[2]


def slope_at_zero():
    return float(minijax.jit(minijax.grad(jnp.sin))(0.0))


def test_a_fault_is_felt_inside_of_the_block_only():
    assert slope_at_zero() == 1
    with sabotage(4) as fault:
        assert slope_at_zero() == 0
        assert "sin" in fault.answer
    assert slope_at_zero() == 1


def test_one_function_keeps_its_right_and_its_wrong_program_apart():
    slope = minijax.jit(minijax.grad(jnp.tanh))
    right = float(slope(0.5))
    with sabotage(5):
        wrong = float(slope(0.5))
    assert np.isclose(right, 1 - np.tanh(0.5) ** 2)
    assert np.isclose(wrong, 1 - np.tanh(0.5))
    assert float(slope(0.5)) == right


def test_each_fault_is_there_in_a_new_process():
    """Also before anything has used what it makes wrong."""
    script = "from minijax_lab.sabotage import FAULTS, sabotage\n"
    script += "for number in FAULTS:\n    with sabotage(number): pass"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_exception_undoes_the_fault():
    with pytest.raises(KeyError), sabotage(4):
        raise KeyError
    assert slope_at_zero() == 1


@pytest.mark.parametrize("number", FAULTS)
def test_every_rule_is_put_back(number):
    fault = FAULTS[number]
    owner = fault.place()
    before = dict(vars(owner))
    with sabotage(number):
        assert dict(vars(owner)) != before
    assert dict(vars(owner)) == before


@pytest.mark.parametrize("number", [0, 21, "7", None])
def test_an_unknown_number_is_refused(number):
    with pytest.raises(ValueError, match="1 to 20"):
        sabotage(number)


def test_one_fault_at_a_time():
    with sabotage(1), pytest.raises(RuntimeError, match="fault 1 is at work"):
        with sabotage(2):
            pass


@pytest.mark.parametrize("number", FAULTS)
def test_each_fault_has_a_function_that_shows_it(number):
    function, args = sabotage(number).shown

    def seen():
        program = str(minijax.make_jaxpr(function)(*args))
        result = function(*args)
        return program, np.asarray(result.astype("float32")).tolist(), result.dtype

    right = seen()
    with sabotage(number):
        assert seen() != right
    assert seen() == right


@pytest.mark.turns(3)
def test_each_fault_turns_the_tests_red():
    command = [sys.executable, "-m", "tests.rules.sabotaged"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    counts = json.loads(ran.stdout)
    green = [number for number, count in counts.items() if not count["failed"]]
    assert len(counts) == len(FAULTS) == 20
    assert not green, f"faults that no test notices: {green}"
