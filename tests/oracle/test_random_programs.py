"""Random programs behave as in JAX.

`MINIJAX_RANDOM_PROGRAMS=2000` sets the number of programs (150 by default). The
programs are the same in each run. A failure prints a script that runs alone; when it
is understood it goes to `test_found.py`.
"""

import os

import jax
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.oracle.oracle import difference, run
from tests.oracle.random_programs import RandomProgram, random_programs

minijax = pytest.importorskip("minijax")

COUNT = int(os.environ.get("MINIJAX_RANDOM_PROGRAMS", "150"))


@settings(
    max_examples=COUNT,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
    print_blob=False,
)
@given(random_programs())
def test_random_programs(program: RandomProgram):
    def call(library):
        function, arguments = program.load(library)
        return function(*arguments)

    message = difference(run(call, minijax), run(call, jax))
    assert message is None, f"{message}\n\n{program.script}"
