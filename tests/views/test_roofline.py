"""What bounds each kernel, on machines described by two numbers."""

import numpy as np
import pytest

import minijax
from minijax_lab.explain.compiled import record_compiled
from minijax_lab.explain.roofline import Machine, h100, machine_named, roofline_of
from tests.views.compiled_programs import PROGRAMS, chain


def array(*shape):
    return minijax.ShapeDtypeStruct(shape, np.float32)


def test_the_numbers_of_the_h100_are_those_of_its_description():
    machine = h100()
    assert machine.bandwidth == 3352320000000
    assert machine.operations == pytest.approx(66.9e12, rel=0.01)
    assert machine.ridge == pytest.approx(20, rel=0.01)


def test_sums_wait_for_memory_and_products_for_arithmetic():
    small = record_compiled(chain, (array(1 << 20),), {}).program
    large = record_compiled(
        lambda a, b: a @ b, (array(1024, 1024), array(1024, 1024)), {}
    ).program
    roof = roofline_of(small, h100())
    (dot,) = roof.dots
    assert dot.bound == "memory" and roof.waiting == 1
    assert dot.seconds == pytest.approx(2**23 / 3352320000000)
    (dot,) = roofline_of(large, h100()).dots
    assert dot.bound == "arithmetic"
    assert dot.intensity == pytest.approx(2 * 1024**3 / (3 * 4 * 1024**2), rel=0.01)


def test_loops_count_as_often_as_they_run():
    function, args = PROGRAMS["scan"]
    program = record_compiled(function, args, {}).program
    roof = roofline_of(program, Machine("one", 1.0, 1.0, "made up"))
    assert roof.seconds > sum(dot.seconds for dot in roof.dots) and not roof.unknown
    function, args = PROGRAMS["while_loop"]
    program = record_compiled(function, args, {}).program
    assert roofline_of(program, machine_named("tpu-v5e:2x2")).unknown


def test_a_machine_that_is_not_described():
    with pytest.raises(ValueError, match="no numbers of 'cpu' are known. Give them"):
        machine_named("cpu")
