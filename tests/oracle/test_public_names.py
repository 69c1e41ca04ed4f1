"""The table of public names says what is true today, and why each absent one is."""

import fnmatch
import functools

import jax
import pytest

from tests.oracle import make_api_table as table

pytest.importorskip("minijax")

pytestmark = pytest.mark.skipif(
    jax.__version__ != table.EXPECTED_JAX,
    reason=f"the table belongs to jax {table.EXPECTED_JAX}",
)


@pytest.fixture(scope="module")
def rows():
    return table.build_rows()


def test_table_is_current(rows):
    assert table.TABLE.read_text() == table.render(rows), (
        "book/api_table.md is old: python tests/oracle/make_api_table.py"
    )


def test_each_name_that_falls_short_has_a_reason(rows):
    silent = [
        f"{r.module}.{r.name}" for r in rows if r.note.endswith("no reason given")
    ]
    assert silent == []


@pytest.mark.parametrize(("kind", "status"), [("group", "not"), ("partly", "partly")])
def test_each_reason_is_about_something_that_falls_short(rows, kind, status):
    absent = [f"{row.module}.{row.name}" for row in rows if row.status == status]
    idle = [
        pattern
        for pattern, _ in table.load_reasons(kind=kind)
        if not any(fnmatch.fnmatchcase(name, pattern) for name in absent)
    ]
    assert idle == []


def plain(x, y=1, *, z=None):
    return x


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (plain, ""),
        (lambda x, y=1, *, z=None, w=2: x, "lacks `w`"),
        (lambda x, *, z=None: x, "adds `y`"),
        (lambda y=1, x=2, *, z=None: x, "another order"),
        (lambda x, y=2, *, z=None: x, "`y` is 1 by default, in JAX 2"),
        (lambda x, y=1, z=None: x, "`z` is keyword-only"),
    ],
)
def test_differences_of_signatures_are_seen(theirs, words):
    note = table.compare(plain, theirs)
    assert words in note if words else note == ""


def test_a_jitted_function_shows_its_signature():
    jitted = functools.wraps(plain)(lambda *args: None)
    assert table.compare(jitted, plain) == ""
