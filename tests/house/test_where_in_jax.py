"""The book's table of names here and in JAX: each name is in the file that it names."""

import re
from pathlib import Path

import jax
import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| [^|]+ \| `(\w+)` in `([\w/.]+)` \| `(\w+)` in `([\w/.]+)` \|$",
    (ROOT / "book" / "where_in_jax.md").read_text(encoding="utf-8"),
    re.M,
)


def test_the_table_is_read():
    assert len(ROWS) >= 36


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_names_are_where_the_table_says(row):
    for name, file, root in (
        (*row[:2], ROOT),
        (*row[2:], Path(jax.__file__).resolve().parents[1]),
    ):
        text = (root / file).read_text(encoding="utf-8")
        defined = rf"^(?:class|def) {name}\b|^{name} *[=:]"
        assert re.search(defined, text, re.M), f"{name} is not in {file}"
