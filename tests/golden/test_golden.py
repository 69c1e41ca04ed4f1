"""minijax prints each program of the corpus as JAX 0.10.2 does."""

import difflib

import numpy as np
import pytest

from tests.golden.differences import DIFFERENCES
from tests.golden.make import EXPECTED, EXPECTED_JAX, read_expected
from tests.golden.normalise import normalise, plain_numpy_scalars
from tests.golden.programs.registry import all_programs, jaxpr_text, program_source

pytestmark = pytest.mark.whole

minijax = pytest.importorskip("minijax")

PROGRAMS = all_programs()
TEXTS = read_expected()


@pytest.mark.parametrize("entry", PROGRAMS, ids=lambda entry: entry.id)
def test_prints_as_jax(entry):
    expected = TEXTS[entry.id]
    reason = DIFFERENCES.get(entry.id)
    if reason is not None:
        _expect_difference(entry, expected, reason)
        return
    actual = normalise(jaxpr_text(entry, minijax))
    if actual != expected:
        diff = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), "jax", "minijax", lineterm=""
        )
        lines = "\n".join(diff)
        pytest.fail(f"{lines}\n\n{program_source(entry)}", pytrace=False)


def _expect_difference(entry, expected: str, reason: str) -> None:
    try:
        actual = normalise(jaxpr_text(entry, minijax))
    except Exception:  # a listed program may also fail to trace
        return
    assert actual != expected, (
        f"{entry.id} prints as JAX: take it out of differences.py ({reason})"
    )


def test_every_text_has_a_program():
    assert set(TEXTS) == {entry.id for entry in PROGRAMS}


def test_every_difference_has_a_program():
    assert set(DIFFERENCES) <= set(TEXTS)


def test_corpus_is_of_one_jax():
    paths = list(EXPECTED.glob("*.txt"))
    assert paths
    for path in paths:
        assert path.read_text().startswith(f"jax {EXPECTED_JAX};"), path.name


def test_corpus_is_large_enough():
    assert len(PROGRAMS) >= 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jvp=<function f.<locals>.g at 0x7f00aa> ] -> b", "jvp=<callable> ] -> b"),
        ("tree=PyTreeDef((*, {'a': (*)})) b", "tree=PyTreeDef b"),
        ("call=<lambda> a:f32[3] -> b", "call=<lambda> a:f32[3] -> b"),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected


def test_numpy_scalars_print_plainly():
    values = (np.int64(1), np.float32(-0.5), np.True_)
    with plain_numpy_scalars():
        assert str(values) == "(1, -0.5, True)"
    assert str(values) != "(1, -0.5, True)"
