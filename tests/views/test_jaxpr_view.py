"""`see.jaxpr`: the recording, the text twin, the HTML, and the HTML in a browser."""

import html
import inspect
import json
import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import jit, make_jaxpr
from minijax_lab.explain.jaxpr import record_jaxpr
from minijax_lab.explain.recording import Recording, span_text

X = np.ones(1024, np.float32)
PRESSED = "aria-pressed"


def softmax(x):
    largest = jnp.max(x)
    e = jnp.exp(x - largest)
    return e / jnp.sum(e)


def nested(x):
    inner = jit(lambda y: jnp.sin(y) * 2.0)
    return inner(x) + inner(x)


PROGRAMS = [softmax, nested, lambda x: x, lambda x: 2.0, lambda x: (x, jnp.cos(x))]


def words(text):
    """The text without its line breaks, which a short program does not have."""
    return re.sub(r"[;\s]+", " ", text)


@pytest.mark.parametrize("function", PROGRAMS)
def test_the_text_is_the_printers(function):
    closed = make_jaxpr(function)(X)
    assert words(record_jaxpr(closed).text) == words(str(closed))


def test_the_layout_is_the_printers():
    closed = make_jaxpr(softmax)(X)
    assert record_jaxpr(closed).text == str(closed)


def test_each_equation_has_a_line():
    record = see.jaxpr(lambda x: jit(jnp.sin)(x) * 2.0, X).recording
    assert len(str(make_jaxpr(lambda x: jnp.sin(x))(X)).splitlines()) == 1
    shown = [line.equation for line in record.lines if line.equation is not None]
    assert set(shown) == {equation.id for equation in record.equations}


def test_the_recording_is_plain_data():
    record = see.jaxpr(nested, X).recording
    data = json.loads(json.dumps(record.to_dict()))
    assert data["schema"] == 1 and data["kind"] == "jaxpr"
    assert len(data["equations"]) == len(record.equations)
    for variable in record.variables:
        for use in variable.uses:
            assert variable.id in record.equations[use].operands
        if variable.definition is not None:
            assert variable.id in record.equations[variable.definition].results


def test_inner_programs_know_their_parent():
    record = see.jaxpr(nested, X).recording
    outer = [e for e in record.equations if e.parent is None]
    inner = [e for e in record.equations if e.parent is not None]
    assert [e.primitive for e in outer][-1] == "add"
    assert {e.primitive for e in inner} >= {"sin", "mul"}
    assert all(record.equations[e.parent].programs == 1 for e in inner)


def test_spans_name_the_expression():
    record = see.jaxpr(softmax, X).recording
    spans = {e.primitive: e.span for e in record.equations}
    texts = {e.primitive: record.span_text(e) for e in record.equations}
    assert texts["exp"] == "jnp.exp(x - largest)"
    assert texts["sub"] == "x - largest"
    assert record.sources[spans["exp"].source].file == "test_jaxpr_view.py"
    assert spans["div"].line == spans["exp"].line + 1


def test_headline_and_twin():
    view = see.jaxpr(softmax, X)
    headline, *rows = view.text().splitlines()
    assert headline == (
        "jaxpr of softmax(f32[1024]): 5 equations; one intermediate, d, is used twice"
    )
    assert repr(view) == view.text()
    assert [row[0] for row in rows] == [" ", " ", ">", " ", " "]
    assert rows[2].startswith("> d:f32[1024] = exp c ")
    assert rows[2].endswith("used by e, f")
    assert "reduce_sum[axes=(0,) ...] d" in rows[3]
    assert rows[4].endswith("returned")
    assert all(row.isascii() and len(row) <= 100 for row in rows)


def test_a_long_twin_is_folded():
    def long(x):
        for _ in range(40):
            x = jnp.sin(x)
        return x

    view = see.jaxpr(long, X)
    assert len(view.text().splitlines()) == 19
    assert "23 more: print(v.text(full=True))" in view.text()
    assert len(view.text(full=True).splitlines()) == 41


def test_a_jaxpr_is_taken_as_it_is():
    closed = make_jaxpr(softmax)(X)
    assert see.jaxpr(closed).text() == see.jaxpr(softmax, X).text()
    assert see.jaxpr(closed.jaxpr).recording.text == str(closed)
    with pytest.raises(TypeError, match="pass it alone"):
        see.jaxpr(closed, X)


def test_shapes_are_enough():
    described = minijax.ShapeDtypeStruct((1024,), np.float32)
    assert see.jaxpr(softmax, described).text() == see.jaxpr(softmax, X).text()


def text_of(view) -> str:
    """Returns what a reader sees of the program's column without any script."""
    frame = view.frame()
    page = re.sub(r"</?(span|b)\b[^>]*>", "", frame.static_html())
    rows = re.findall(r"<tr[^>]*><td[^>]*>(.*?)</td>", page, re.DOTALL)
    return "\n".join(html.unescape(row) for row in rows[: len(frame.panes[0].rows)])


@pytest.mark.parametrize("function", PROGRAMS)
def test_html_shows_the_text(function):
    view = see.jaxpr(function, X)
    assert text_of(view) == view.recording.text


def test_a_long_program_is_grouped():
    def long(x):
        for _ in range(2500):
            x = jnp.sin(x)
        return jnp.cos(x)

    view = see.jaxpr(long, X)
    assert len(view.recording.equations) == 2501
    frame = view.frame()
    groups = [row for row in frame.panes[0].rows if row.look == "group"]
    assert [row.cells[0].partition(": ")[2] for row in groups if not row.depth] == [
        "2,500 equations",
        "1 equation",
    ]
    parts = [row.cells[0] for row in groups if row.depth]
    assert parts[0] == "1 to 200" and parts[-1] == "2,401 to 2,500"
    assert all(row.folded for row in groups)
    page = view.to_html()
    assert "more rows" in page and len(page) < 300_000
    assert len(view.text(full=True).splitlines()) == 2502


def test_a_difference():
    def loss(x):
        return jnp.sum(jnp.sin(x) * x)

    before, after = make_jaxpr(loss)(X), make_jaxpr(minijax.grad(loss))(X)
    view = see.jaxpr(before, after)
    assert view.text().splitlines()[0].endswith("0 gone, 6 new, 3 the same")
    assert sum(line[1:2] == "+" for line in view.text().splitlines()[1:]) == 6
    renamed = make_jaxpr(lambda y: jnp.sum(jnp.sin(y) * y))(X)
    assert "no difference in 3 equations" in see.jaxpr(before, renamed).text()
    other = make_jaxpr(lambda y: jnp.sum(jnp.sin(y) * jnp.sin(y)))(X)
    assert "no difference" not in see.jaxpr(before, other).text()


def test_a_difference_aligns_what_vmap_changed():
    def predict(w, b, x):
        return jnp.tanh(w @ x + b)

    w, b = jnp.ones((4, 3)), jnp.ones(4)
    before = make_jaxpr(predict)(w, b, jnp.ones(3))
    many = minijax.vmap(predict, in_axes=(None, None, 0))
    view = see.jaxpr(before, make_jaxpr(many)(w, b, jnp.ones((16, 3))))
    headline, *rows = view.text().splitlines()
    assert headline.endswith(": 0 gone, 2 new, 3 changed")
    primitives = ["dot_general", "transpose", "broadcast_in_dim", "add", "tanh"]
    assert [view.newest(pair)[1].primitive for pair in view.recording.pairs] == (
        primitives
    )
    assert [row[:2] for row in rows] == [" ~", ">+", " +", " ~", " ~"]
    assert rows[-1].endswith("f32[4] -> f32[16,4]")
    # What stands in both stands in one row, with the axis that came marked.
    row = view.frame().panes[0].rows[-1]
    marked = [[p.text for p in cell if p.role == "changed"] for cell in row.cells[1:]]
    assert marked == [[], ["16"]]


def test_a_difference_finds_branches_that_now_always_run():
    """What stood inside of a `cond` goes together with what stands outside."""

    def root_or_half(x):
        return minijax.lax.cond(x > 0, jnp.sqrt, lambda x: 0.5 * x, x)

    one = make_jaxpr(root_or_half)(1.0)
    two = make_jaxpr(minijax.vmap(root_or_half))(X)
    record = see.jaxpr(one, two).recording
    pairs = [
        (record.first.equations[p.first].primitive, p.second is not None)
        for p in record.pairs
        if p.first is not None
    ]
    assert pairs == [
        ("gt", True),
        ("convert_element_type", True),
        ("cond", False),
        ("mul", True),
        ("sqrt", True),
    ]
    # A loop stays closed: its equations run many times.
    step = lambda x, _: (jnp.sin(x), None)  # noqa: E731
    scanned = make_jaxpr(lambda x: minijax.lax.scan(step, x, None, length=3)[0])(X)
    record = see.jaxpr(make_jaxpr(jnp.sin)(X), scanned).recording
    assert [pair.change for pair in record.pairs] == ["del", "add", "add"]


def test_a_view_may_open_at_another_step():
    view = see.jaxpr(make_jaxpr(lambda x: jnp.sin(x) * x)(X))
    assert view.at(1).frame().telling == 0 and view.at(2).frame().telling == 1
    assert [line[0] for line in view.at(1).text().splitlines()[1:]] == [">", " "]
    with pytest.raises(ValueError, match="step 3 of 2"):
        view.at(3)


def test_a_difference_goes_into_called_programs():
    def run(body):
        return lambda h: minijax.lax.fori_loop(0, 3, body, h)

    one = make_jaxpr(run(lambda i, h: jnp.sin(h) * 2.0))(X)
    two = make_jaxpr(run(lambda i, h: jnp.cos(jnp.sin(h)) * 2.0))(X)
    view = see.jaxpr(one, two)
    changed = {
        view.newest(pair)[1].primitive: pair.change
        for pair in view.recording.pairs
        if pair.change != "same"
    }
    assert changed == {"cos": "add", "mul": "changed"}
    assert Recording.from_dict(view.recording.to_dict()) == view.recording


def test_a_difference_says_that_other_values_are_returned():
    one = make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(x)))(X)
    two = make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(x))[::-1])(X)
    assert "no difference" in see.jaxpr(one, one).text()
    assert "but other values are returned" in see.jaxpr(one, two).text()


def test_a_jaxpr_of_jax():
    jax = pytest.importorskip("jax")

    def program(library):
        return lambda x: library.jit(library.numpy.sin)(x) * library.numpy.std(x)

    theirs = see.jaxpr(jax.make_jaxpr(program(jax))(X))
    ours = see.jaxpr(make_jaxpr(program(minijax))(X))
    assert theirs.recording.text == ours.recording.text
    assert "library.numpy.std(x)" in theirs.to_html()


def test_html_escapes_the_users_text():
    def evil(x):
        return jnp.sin(x) if "<script>alert(1)</script>" else x

    evil.__name__ = "<img src=x onerror=alert(1)>"
    page = see.jaxpr(evil, X).to_html()
    assert "<img" not in page
    assert page.count("<script>") == 2  # the one that hides the frame, and the player


def test_html_stands_alone(tmp_path):
    """No address of a network or a machine, and readable without its style sheet."""
    view = see.jaxpr(softmax, X)
    view.save(tmp_path / "softmax.html")
    page = (tmp_path / "softmax.html").read_text()
    assert not re.search(r"https?://|src=|@import", page)
    bare = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "var(" not in bare and "color:#246CCC" in bare
    assert "/test_jaxpr_view.py" not in page


def test_a_notebook_gets_both_forms():
    bundle = see.jaxpr(softmax, X)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}


def test_every_primitive_has_words():
    from minijax.core.language import primitive_named
    from minijax_lab.explain.words import PHRASES, meaning

    assert meaning("reduce_sum", {"axes": (0, 1)}) == "sum along axes 0, 1"
    assert meaning("unheard_of", {}) == ""
    for name in ("sin", "add", "dot_general", "reduce_sum", "select_n"):
        assert primitive_named(name).name in PHRASES


def test_source():
    twin = see.source(minijax.make_jaxpr).text()
    assert twin == "source of make_jaxpr, minijax/compile/jit_api.py"
    page = see.source(minijax.make_jaxpr).to_html()
    assert "def make_jaxpr" in html.unescape(page)
    with pytest.raises(TypeError, match="found no source"):
        see.source(X)


def test_a_source_is_called_by_its_whole_name():
    def named(x):
        return x

    for name, told in (("<lambda>", "lambda"), ("</b>", "</b>"), ("a>", "a>")):
        named.__name__ = named.__qualname__ = name
        assert see.source(named).frame().panes[0].title.startswith(f"{told}, ")


def test_source_of_a_primitive():
    from minijax.core.arithmetic import mul_p, sin_p

    view = see.source(sin_p)
    assert view.text() == "source of primitive sin, minijax/core/arithmetic.py"
    assert "sin_p.def_jvp(lambda t, x, accuracy: mul(t, cos(x" in view.text(full=True)
    assert "def _mul_lowering" in see.source(mul_p).text(full=True)
    assert "`JVPTrace`" in see.source(minijax.core.autodiff.JVPTrace).to_html()


def test_the_names_in_a_source_lead_further():
    JVPTrace = minijax.core.autodiff.JVPTrace
    record = see.source(JVPTrace).recording
    names = {name.name: name for name in record.names}
    trace = names["Trace"]
    assert (trace.kind, trace.shown) == ("class", "minijax.core.language.Trace")
    assert (
        trace.path == "minijax/core/language.py"
        and trace.counterpart == "`core.py`, `Trace`"
    )
    assert inspect.getsourcelines(minijax.core.language.Trace)[1] == trace.line
    assert names["self.to_pair"].shown.endswith("autodiff.JVPTrace.to_pair")
    assert names["self.to_pair"].kind == "function"
    for name in record.names:
        assert {span_text(record.sources, span) for span in name.spans}
        own = record.sources[name.source]
        assert own.first_line == name.line and len(own.lines) <= 41
    texts = [span_text(record.sources, span) for span in trace.spans]
    assert set(texts) == {"Trace"}
    # What the code binds itself is no name of the module.
    assert "value" not in names and "primal" not in names
    assert Recording.from_dict(record.to_dict()) == record
    full = see.source(JVPTrace).text(full=True)
    assert "Trace: class, core/language.py:" in full
    assert "see.source(minijax.core.language.Trace)" in full


def test_a_primitives_source_leads_to_its_rules():
    names = see.source(minijax.lax.sin_p).recording.names
    assert "minijax.core.arithmetic.cos" in [name.shown for name in names]
    names = see.source(minijax.lax.sin).recording.names
    (primitive,) = [name for name in names if name.kind == "primitive"]
    assert primitive.shown == "minijax.core.arithmetic.sin_p"
    lines = inspect.getsource(minijax.core.arithmetic).splitlines()
    assert lines[primitive.line - 1].startswith("sin_p")


def test_a_source_without_a_counterpart_of_its_own_names_its_modules():
    record = see.source(minijax.core.autodiff.JVPTrace.to_pair).recording
    assert record.counterpart == "`interpreters/ad.py` (the module)"
    assert see.source(test_source).recording.names == []
    assert see.source(test_source).recording.counterpart == ""


def test_names_in_a_source_are_clicked(show):
    page = show(see.source(minijax.core.autodiff.JVPTrace))
    assert page.inner_text(".mj-where") == "step 1 of 13: JVPTrace"
    assert "in JAX: `interpreters/ad.py`, `JVPTrace`" in page.inner_text(".mj-detail")
    name = page.locator(".mj-code .mj-jump", has_text="TraceTag").first
    name.hover()
    assert "class, core/language.py:" in page.inner_text(".mj-detail")
    name.click()
    assert page.inner_text(".mj-where").endswith("TraceTag")
    assert "see.source(minijax.core.language.TraceTag)" in page.inner_text(".mj-detail")
    row = page.locator(".mj-listing tr.mj-on")
    fold = row.locator(".mj-fold")
    assert row.count() == 1 and fold.get_attribute("aria-expanded") == "false"
    assert fold.locator("svg").count() == 1
    rows = page.locator(".mj-listing tr").count()
    fold.click()
    assert page.locator(".mj-listing tr").count() > rows
    assert "class TraceTag" in page.inner_text(".mj-listing")


def net(x):
    y = jnp.sin(x) * 2.0
    return jnp.sin(y) + y


def listing(page):
    return page.locator(".mj-listing tr td:first-child").all_inner_texts()


def test_types_on_demand(show):
    page = show(see.jaxpr(net, X))
    whole = str(minijax.make_jaxpr(net)(X))
    assert "\n".join(listing(page)) == whole
    page.click(".mj-head")
    page.keyboard.press("y")
    shown = [text.strip() for text in listing(page)]
    assert shown[1:4] == ["b = sin a", "c = mul b 2.0", "d = sin c"]
    assert page.get_attribute("button[aria-label='show or hide types']", PRESSED) == (
        "false"
    )
    page.click("button[aria-label='show or hide types']")
    assert "\n".join(listing(page)) == whole
    page.keyboard.press("t")
    assert page.text_content(".mj-text") == whole


def test_only_some_equations(show):
    page = show(see.jaxpr(net, X))
    box = "select[aria-label='show only']"
    page.wait_for_selector(f"{box} optgroup", state="attached")
    offered = page.locator(f"{box} option").all_inner_texts()
    assert offered[:3] == ["all equations", "those found by search", "sin (2)"]
    assert any("return jnp.sin(y) + y (2)" in text for text in offered)
    page.select_option(box, label="sin (2)")
    assert [text.split(" = ")[1] for text in listing(page)] == ["sin a", "sin c"]
    assert page.inner_text(".mj-where") == "2 of 4 shown"
    page.click("button[aria-label='first step']")
    page.click("button[aria-label='one step on']")
    assert page.inner_text(".mj-where") == "step 3 of 4: sin", "mul is passed over"
    page.focus(".mj-live")
    page.keyboard.press("o")
    assert [text.split(" = ")[1][:3] for text in listing(page)] == ["sin", "add"]
    page.keyboard.press("o")
    assert len(listing(page)) == 6 and page.input_value(box) == ""
    page.select_option(box, value="found")
    page.fill(".mj-bar input[type=search]", "MUL")
    (left,) = listing(page)
    assert left.strip() == "c:f32[1024] = mul b 2.0:f32[]"
    page.fill(".mj-bar input[type=search]", "")
    assert len(listing(page)) == 6


def test_only_some_equations_of_a_long_program(show):
    def long(x):
        for _ in range(200):
            x = jnp.cos(jnp.sin(x)) * 2.0
        return x

    page = show(see.jaxpr(long, X))
    page.focus(".mj-live")
    page.keyboard.press("o")
    assert len(listing(page)) == 200
    assert len({text.split(" = ")[1].split()[0] for text in listing(page)}) == 1


def test_a_difference_says_which_axis_vmap_added():
    def f(x):
        return jnp.sin(x) / jnp.sum(x)

    x = jnp.ones(8)
    frame = see.jaxpr(
        make_jaxpr(f)(x), make_jaxpr(minijax.vmap(f))(jnp.ones((8, 8)))
    ).frame()
    texts = ["".join(p.text for p in row.pieces()[2]) for row in frame.panes[0].rows]
    assert texts[0] == "vmap added axis 0, 8 long"
    changed = [
        piece.text
        for row in frame.panes[0].rows
        for piece in row.pieces()[2]
        if piece.role == "changed" and piece.text[0].isdigit()
    ]
    assert set(changed) == {"8"}


def test_a_difference_folds_what_is_the_same():
    def f(x):
        for _ in range(6):
            x = jnp.sin(x)
        return x

    x = jnp.ones(8)
    frame = see.jaxpr(make_jaxpr(f)(x), make_jaxpr(lambda x: -f(x))(x)).frame()
    group, *rows = frame.panes[0].rows
    assert group.folded and group.cells[1] == "6 equations are the same in both"
    assert [row.depth for row in rows] == [1] * 6 + [0]


def test_the_backward_pass_and_what_it_reads_are_told_apart():
    def f(x):
        return jnp.sum(jnp.sin(x) * x)

    view = see.jaxpr(minijax.grad(f), jnp.ones(4))
    parts = [(e.primitive, e.part) for e in view.recording.equations]
    assert parts == [
        ("sin", "kept"),
        ("cos", "kept"),
        ("mul", ""),
        ("reduce_sum", ""),
        *[(name, "backward") for name in ("broadcast_in_dim", *["mul"] * 3, "add_any")],
    ]
    looks = [row.look for row in view.frame().panes[0].rows]
    assert looks == ["", *[part for _, part in parts], ""]
    assert not any(e.part for e in see.jaxpr(f, jnp.ones(4)).recording.equations)
