"""Random programs behave as in JAX.

`MINIJAX_RANDOM_PROGRAMS=2000` sets the number of programs, by default 60 in `make test`
and 200 in `make test-all`. They are the same in each run. A failure prints a script
that runs alone; when it is understood it goes to `test_found.py`.
"""

import os

import jax
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.golden.make import EXPECTED_JAX
from tests.oracle.oracle import TOLERANCE, difference, run
from tests.oracle.random_programs import RandomProgram, random_programs

minijax = pytest.importorskip("minijax")

BY_DEFAULT = "200" if os.environ.get("MINIJAX_TEST_ALL") else "60"
COUNT = int(os.environ.get("MINIJAX_RANDOM_PROGRAMS", BY_DEFAULT))
pytestmark = [pytest.mark.long, pytest.mark.timeout(600 + 2 * COUNT)]


COMMON = settings(
    max_examples=COUNT,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


@settings(COMMON, phases=(Phase.generate, Phase.shrink))
@given(random_programs())
def test_random_programs(program: RandomProgram):
    ours, theirs = run(program.run, minijax), run(program.run, jax)
    if _is_mistake_of_jax(theirs.error):
        assert ours.error is None, program.script
        return
    message = difference(ours, theirs, coarsest(program.source))
    assert message is None, f"{message}\n\n{program.script}"


def coarsest(source: str) -> float:
    """The tolerance of the half-precision floats that a program names, or 0."""
    halves = [name for name in ("float16", "bfloat16") if name in source]
    return max([TOLERANCE[name] for name in halves], default=0.0)


def _is_mistake_of_jax(error: Exception | None) -> bool:
    """Whether JAX fell over its own rules for refs.

    Its transpose of a write of a constant asks the constant to accumulate a cotangent.
    Its checkpoint calls a ref of tangents known that is written later with unknown
    ones, and then looks for these among the known values.
    """
    if isinstance(error, AttributeError):
        return "accum" in str(error)
    return isinstance(error, KeyError) and "Var(id=" in str(error)


@pytest.mark.slow
@pytest.mark.skipif(jax.__version__ != EXPECTED_JAX, reason="text is that of one jax")
def test_random_jaxprs():
    """Of the same programs, 99 in 100 print as JAX's do.

    The rest differ where JAX's text shows how its rules are layered: in constants that
    it computes and never reads.
    """
    different = []

    @settings(COMMON, phases=(Phase.generate,))
    @given(random_programs())
    def compare(program: RandomProgram):
        if program.jaxpr_text(minijax) != program.jaxpr_text(jax):
            different.append(program)

    compare()
    scripts = "\n\n".join(program.script for program in different[:3])
    assert len(different) <= COUNT / 100, f"{len(different)} differ, as\n{scripts}"
