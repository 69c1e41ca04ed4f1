"""Small training programs for jax run on minijax, and print the same numbers.

`programs/` has twelve of the kinds that people write, and six after JAX's own examples
(`jax_*`), with data that they make themselves. Each runs as it is in two processes, by
`python program.py` and by `python -m minijax.as_jax program.py`. `make test` takes
two of them, other ones at another commit; `make test-all` all.
"""

import os
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.as_jax import wheels
from tests.conftest import commit

pytestmark = pytest.mark.whole

pytest.importorskip("jax")

FOLDER = Path(__file__).resolve().parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
NUMBER = re.compile(r"-?[0-9]+(?:[.][0-9]+)?|-?(?:nan|inf)")
# Of what is printed: rounding grows in a training, and the last digit may turn.
RELATIVE, ABSOLUTE = 2e-3, 2e-3


def of_this_commit() -> list[str]:
    order = sorted(PROGRAMS, key=lambda name: zlib.crc32(f"{commit()} {name}".encode()))
    return order[:2]


def printed(name: str, minijax: bool) -> str:
    done = wheels.run(FOLDER / f"{name}.py", minijax)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_there_are_twelve_and_six() -> None:
    examples = [name for name in PROGRAMS if name.startswith("jax_")]
    assert (len(PROGRAMS) - len(examples), len(examples)) == (12, 6)
    for name in PROGRAMS:
        assert 30 < len((FOLDER / f"{name}.py").read_text().splitlines()) <= 130
        assert "minijax" not in (FOLDER / f"{name}.py").read_text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_the_same_numbers(name) -> None:
    if name not in of_this_commit() and not os.environ.get("MINIJAX_TEST_ALL"):
        pytest.skip(f"two of {len(PROGRAMS)} at each commit; make test-all runs all")
    theirs, ours = printed(name, False), printed(name, True)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    numbers = [[*map(float, NUMBER.findall(text))] for text in (theirs, ours)]
    assert len(numbers[0]) > 3 and np.isfinite(numbers[0]).all()
    np.testing.assert_allclose(numbers[1], numbers[0], RELATIVE, ABSOLUTE)
