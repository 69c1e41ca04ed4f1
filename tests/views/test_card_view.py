"""`see.card` and `see.primitives`: made by running things."""

import numpy as np
import pytest

import minijax_widgets as see
from minijax.language.core import all_primitives
from minijax_lab.explain import cards
from minijax_lab.explain.words import PHRASES
from minijax_widgets.card_view import PrimitivesView


def test_checks_are_run():
    checks = {c.name: c for c in see.card("sin").recording.checks}
    assert {c.result for c in checks.values()} == {"holds"} and len(checks) == 4
    assert 0 < checks["jvp against differences"].difference < 1e-3


def test_a_wrong_rule_fails_its_check(monkeypatch):
    from minijax.primitives.elementwise.arithmetic import cos, mul, sin_p

    wrong = (lambda t, x, accuracy: mul(t, mul(cos(x), cos(x))),)
    monkeypatch.setattr(sin_p, "jvp_terms", wrong)
    checks = {c.name: c for c in see.card("sin").recording.checks}
    assert checks["jvp against differences"].result == "fails"
    monkeypatch.setattr(sin_p, "meaning", lambda x, accuracy=None: np.cos(x))
    checks = {c.name: c for c in see.card("sin").recording.checks}
    assert checks["XLA against NumPy"].result == "fails"


def test_twin_and_block():
    text = see.card("sin").text()
    head, machine = text.split("-- differs between machines --")
    assert "sine of each entry; 4 of 4 checks hold" in head
    assert "stablehlo.sine" in head and "largest difference" in machine
    assert "sin_p.def_jvp" in see.card("sin").text(full=True)


def test_most_primitives_run_an_example():
    ran = [name for name in all_primitives if cards.example_of(name) is not None]
    assert len(ran) >= 150


def test_unknown_names():
    with pytest.raises(KeyError, match="Did you mean"):
        see.card("sine")


@pytest.fixture(scope="module")
def recorded():
    """The recording of all primitives, for which an example of each is traced."""
    return see.primitives().recording


@pytest.fixture
def table(recorded):
    return PrimitivesView(recorded)


def test_the_table(table):
    names = [name for group in table.recording.groups.values() for name in group]
    assert sorted(names) == sorted(all_primitives)
    assert "elementwise" in table.text() and len(table.recording.groups) > 10


def test_pictures(show, table):
    page = show(see.card("sin"))
    assert "4 of 4 checks hold" in page.inner_text(".mj-head")
    page = show(table)
    page.click(".mj-tile >> text=/^tanh$/")
    assert page.inner_text(".mj-detail").startswith("tanh: ")
    assert page.locator("a.mj-tile").count() == 0
    page.hover(".mj-tile >> text=/^dot_general$/")
    assert "backward mode transposes it" in page.inner_text(".mj-detail")


def test_tiles_link_to_cards_beside_the_page(show, table):
    table.links = "cards/{}.html"
    page = show(table)
    tile = page.locator("a.mj-tile >> text=/^scatter-add$/")
    assert tile.get_attribute("href") == "cards/scatter-add.html"
    table.links = "javascript:alert({})"
    page = show(table)
    assert page.locator(".mj-live [href]").count() == 0


def test_how_primitives_are_differentiated(recorded):
    kinds = recorded.derivatives
    found = [kinds[name] for name in ("reduce_sum", "mul", "sin", "floor", "iota")]
    assert found == ["linear", "linear", "curved", "flat", "flat"]


def test_every_primitive_is_told_in_a_few_words():
    missing = sorted(set(all_primitives) - set(PHRASES))
    assert missing == []
    assert [name for name, phrase in PHRASES.items() if len(phrase) > 48] == []
