"""Wrong kernels raise errors with names and words, of JAX's classes where JAX has one.

More about what happens while a kernel runs is in `test_interpreter.py`.
"""

import pytest

from tests.pallas import wrong_options, wrong_programs
from tests.pallas.kernels import Library
from tests.pallas.wrong_kernels import TABLE

OURS = Library("minijax", interpret=False)
JAX = Library("jax", interpret=True)

FILES = (wrong_options, wrong_programs)  # which enter more in the table


def test_there_are_more_than_a_hundred():
    assert len(TABLE) == len({wrong.name for wrong in TABLE}) > 100


@pytest.mark.parametrize("wrong", TABLE, ids=lambda wrong: wrong.name)
def test_error(wrong):
    with pytest.raises(Exception) as ours:
        wrong.run(OURS)
    assert ours.type.__name__ == wrong.error
    assert wrong.phrase in str(ours.value)
    if wrong.in_jax:
        with pytest.raises(Exception) as theirs:
            wrong.run(JAX)
        assert theirs.type.__name__ == wrong.error
