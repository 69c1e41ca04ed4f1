"""`see.card` and `see.primitives`: made by running things."""

import subprocess
import sys

import numpy as np
import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import dtypes, jvp, linear_transpose, make_jaxpr, tree, vjp
from minijax.core.language import Literal, ShapedArray, all_primitives
from minijax.support.event_watching import subscribe
from minijax_lab.explain import cards
from minijax_lab.explain.words import PHRASES
from minijax_widgets.card_view import SIGNS_OF_FAMILIES, PrimitivesView


def test_checks_are_run():
    checks = {c.name: c for c in see.card("sin").recording.checks}
    assert {c.result for c in checks.values()} == {"holds"} and len(checks) == 4
    assert 0 < checks["jvp against differences"].difference < 1e-3


def test_a_wrong_rule_fails_its_check(monkeypatch):
    from minijax.core.arithmetic import cos, mul, sin_p

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


def test_the_card_of_a_primitive_whose_module_is_not_yet_imported():
    names = "custom_partitioning fft check layout_constraint pallas_call".split()
    program = f"""
import minijax_widgets as see
from minijax.core.language import all_primitives
names = {names}
print(*[name for name in names if name not in all_primitives])
print(*[see.card(name).recording.name for name in names])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    missing, found = done.stdout.splitlines()
    assert "custom_partitioning" in missing.split() and found.split() == names


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
    assert list(table.recording.groups) == list(cards.FAMILIES)
    # Behind the legend, a row for each family with a sign of what it does.
    rows = table.frame().panes[0].rows[1:]
    assert [row.cells[0][0].text for row in rows] == list(cards.FAMILIES)
    assert set(SIGNS_OF_FAMILIES) == set(cards.FAMILIES)


def test_pictures(show, table):
    page = show(see.card("sin"))
    assert "4 of 4 checks hold" in page.inner_text(".mj-head")
    page = show(table)
    page.click(".mj-tile >> text=/^tanh$/")
    assert page.inner_text(".mj-detail").startswith("tanh: ")
    assert page.locator("a.mj-tile").count() == 0
    # All of it is on one screen.
    page.set_viewport_size({"width": 1280, "height": 720})
    box = page.locator(".mj-live").bounding_box()
    assert box["height"] < 700
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


def test_the_table_traces_and_compiles_nothing():
    told = []
    with subscribe(lambda name, data: told.append(name)):
        see.primitives().text()
        assert told == []
        make_jaxpr(lambda x: x + 1)(1.0)
    assert told


# ---- classes, held against what transposing and differentiating really does ----------


def alone(name):
    """The primitive as a function of its own operands, and arguments; None without."""
    used = cards.example_of(name)
    if used is None:
        return None
    closed = make_jaxpr(lambda *xs: used[0](*xs))(*used[1])
    eqn = cards.equation_of(closed.jaxpr, all_primitives[name])
    avals = [v.aval for v in eqn.invars]
    avals += [v.aval for v in eqn.outvars]
    if not all(
        isinstance(a, ShapedArray) and isinstance(a.dtype, np.dtype) for a in avals
    ):
        return None  # keys, refs, tokens
    rng = np.random.default_rng(0)

    def number(aval):
        drawn = rng.uniform(0.2, 0.8, aval.shape)
        return np.asarray(drawn if aval.dtype.kind in "fc" else 0 * drawn, aval.dtype)

    values = [
        np.asarray(v.val) if isinstance(v, Literal) else number(v.aval)
        for v in eqn.invars
    ]

    def bound(*operands):
        return eqn.primitive.rebind(operands, eqn.params)

    return bound, tuple(values)


def of_one(bound, values, position):
    def function(x):
        return bound(*values[:position], x, *values[position + 1 :])

    return function


def floats(values):
    return [i for i, value in enumerate(values) if value.dtype.kind in "fc"]


def transposes(bound, values):
    """Whether `linear_transpose` goes through the primitive in one of its operands."""
    for position in floats(values):
        function = of_one(bound, values, position)
        try:
            out = function(values[position])
            linear_transpose(function, values[position])(out)
        except (NotImplementedError, TypeError, ValueError, AssertionError):
            continue
        return True
    return False


def has_derivative(bound, values):
    """Whether some operand has a derivative that is there and not zero."""
    for position in floats(values):
        function = of_one(bound, values, position)
        try:
            out, pullback = vjp(function, values[position])
            seeds = tree.map(
                lambda x: (
                    jnp.ones_like(x)
                    if x.dtype.kind in "fc"
                    else np.zeros(x.shape, dtypes.float0)
                ),
                out,
            )
            (cotangent,) = pullback(seeds)
        except (NotImplementedError, TypeError, ValueError):
            continue
        if np.any(np.asarray(cotangent) != 0):
            return True
    return False


@pytest.mark.parametrize("name", sorted(all_primitives))
def test_a_primitive_is_of_the_class_that_its_rules_make_it(name, recorded):
    said = recorded.derivatives[name]
    used = alone(name)
    if said == "program" or used is None:
        # Held by what the example as a whole does.
        example = cards.example_of(name)
        if example is None or not example[1] or said == "program":
            return
        dtype = getattr(example[0](*example[1]), "dtype", None)
        if dtype != np.float32 or said == "none":
            return
        vjp(example[0], *example[1])
        return
    bound, values = used
    if said == "linear":
        assert transposes(bound, values)
    elif said == "derived":
        assert not transposes(bound, values) and has_derivative(bound, values)
    elif said == "forward":
        assert not transposes(bound, values) and not has_derivative(bound, values)
        out, tangent = jvp(bound, values, values)
        assert np.any(np.asarray(tangent) != 0)
    else:
        assert not transposes(bound, values) and not has_derivative(bound, values)


def test_callbacks_have_no_derivative(recorded):
    for name in ("io_callback", "pure_callback"):
        assert recorded.derivatives[name] == "none"


def test_a_card_tells_what_its_rules_make():
    rules = dict(see.card("sin").recording.rules)
    assert rules["jvp"] == "makes sin, cos, mul"
    assert rules["transpose"].startswith(
        "none needed: its derivative is made of linear"
    )
    assert rules["lowering"] == "to sine"
    assert dict(see.card("mul").recording.rules)["type"] == "f32[3], f32[3] -> f32[3]"
    assert dict(see.card("pure_callback").recording.rules)["jvp"].startswith("refuses")
    assert "has a rule" not in {told for _, told in see.card("scan").recording.rules}


def test_every_primitive_is_told_in_a_few_words():
    missing = sorted(set(all_primitives) - set(PHRASES))
    assert missing == []
    assert [name for name, phrase in PHRASES.items() if len(phrase) > 48] == []


def test_a_card_draws_what_the_primitive_does():
    record = cards.record_card("reduce_sum")
    numbers = [[float(x) for x in row] for row in record.inputs[0].rows]
    total = sum(map(sum, numbers))
    assert float(record.outputs[0].rows[0][0]) == pytest.approx(total, abs=0.02)
    frame = see.card("reduce_sum").frame()
    assert [pane.title for pane in frame.panes if pane.scene] == ["what it does"]
