"""`see.trace`: which expression wrote which equation, and what ran in Python only."""

import functools
import io
import re
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import jit, make_jaxpr, vmap
from minijax_lab.explain import small_values
from minijax_lab.explain import trace as recorded
from minijax_lab.explain.recording import Recording, span_text
from minijax_widgets.values_strip import reduced

X = np.ones(2, np.float32)
W = jnp.ones((2, 2))


def log2(x):
    print("tracing", x)
    return jnp.log(x) / jnp.log(2.0)


def scaled(y, k):
    """A docstring is no line that runs."""
    z = y * k
    return z


def puzzle(x):
    total = 0.0
    for i in range(3):
        total = scaled(x, float(i)) + total
    if x.shape[0] > 1:
        total = total / 4.0
    sizes = [
        x.shape,
    ]
    return W @ total, sizes[0][0] * 1.0


def steps(view, kind):
    return [step for step in view.recording.steps if step.kind == kind]


def expressions(view, kind="equation"):
    record = view.recording
    return [span_text(record.sources, step.span) for step in steps(view, kind)]


def test_the_twin():
    view = see.trace(log2, X)
    first = view.recording.sources[0].first_line
    lines = view.text().splitlines()
    assert lines[0] == (
        "trace of log2(f32[2]): 4 equations; 1 line ran in Python only and will not "
        "run again"
    )
    assert lines[1] == f"{first:>3}      def log2(x):".ljust(42) + " x = a:f32[2]"
    assert lines[2] == f'{first + 1:>3} py       print("tracing", x)'
    assert lines[3] == f"{first + 2:>3}          return jnp.log(x) / jnp.log(2.0)"
    assert "prints" in lines[4] and "tracing JitTracer(float32[2])" in lines[4]
    assert lines[5].endswith("b:f32[2] = log a") and ":11-21 jnp.log(x)" in lines[5]
    assert lines[8].startswith(f"> {first + 2}:11-36 / ")
    assert lines[8].endswith("e:f32[2] = div b d")
    assert len(lines) == 9


def test_expressions_and_python_lines():
    view = see.trace(puzzle, X)
    assert expressions(view) == [
        "y * k",
        "scaled(x, float(i)) + total",
        "y * k",
        "scaled(x, float(i)) + total",
        "y * k",
        "scaled(x, float(i)) + total",
        "total / 4.0",
        "W @ total",
    ]
    assert expressions(view, "py") == [
        "total = 0.0",
        "for i in range(3):",
        "if x.shape[0] > 1:",
        "sizes = [",
    ]
    assert [step.label for step in steps(view, "call")] == ["scaled"] * 3
    assert {s.depth for s in view.recording.steps if s.function == "scaled"} == {1}
    text = view.text()
    assert " x3           total = scaled(x" in text and " py       sizes = [" in text
    assert "constant a:f32[2,2] is W, a global" in text


class Layer:
    def __init__(self):
        self.w = {"left": np.ones(2, np.float32)}

    def __call__(self, x):
        return x * self.w["left"]


BIAS = {"b": [np.ones(2, np.float32)]}


def test_constants_have_the_names_of_the_code_that_reads_them():
    layer = Layer()

    def inside(x):
        def deeper(x):
            return W @ x + BIAS["b"][0]

        return layer(deeper(x)) + np.arange(2, dtype=np.float32)

    text = see.trace(inside, X).text()
    for name in (
        "W, a global",
        "BIAS['b'][0], a global",
        "layer.w['left'], an attribute",
        "closed over, or made while tracing",
    ):
        assert f":f32[2] is {name}\n" in text or f":f32[2,2] is {name}\n" in text
    text = see.trace(layer.__call__, X).text()
    assert "is self.w['left'], an attribute\n" in text


def test_the_jaxpr_is_the_one_of_make_jaxpr():
    view = see.trace(puzzle, X)
    assert view.recording.jaxpr.text == str(make_jaxpr(puzzle)(X))
    equations = [step.equation for step in steps(view, "equation")]
    assert equations == list(range(len(equations)))


def test_names_hold_tracers_and_python_values():
    view = see.trace(puzzle, X)
    names = {n.name: n for step in view.recording.steps for n in step.names}
    assert names["z"].traced and names["z"].text == "f32[2]" and names["z"].variable
    assert not names["k"].traced and names["k"].text == "2.0"
    assert [n.variable for n in view.recording.arguments] == ["b"]


def chips(view, step=-1):
    """The names below the picture at a step, with what they hold."""
    return {name: value for name, value, _ in view.frame().steps[step].live}


def test_what_a_call_returns_has_the_callers_name():
    def layer(x):
        x = jnp.sin(x)
        return x

    def network(x):
        h = layer(x)
        x = layer(h)
        return jnp.sum(x * h)

    # The caller's `x` is what the callee's `x` was: the name was given twice.
    assert chips(see.trace(network, X)) == {"x": "c:f32[2]", "h": "b:f32[2]"}


def test_lambdas_and_comprehensions_are_parts_of_their_lines():
    def network(xs):
        norm = lambda v: v / jnp.sum(v)  # noqa: E731
        ys = [norm(x) for x in xs]
        total = sum(y[0] for y in ys)
        return total * 2.0

    view = see.trace(network, [X, X, X])
    assert not steps(view, "py")
    source = view.text().splitlines()[1:6]
    assert not any(" x3 " in line or " x4 " in line for line in source)
    assert set(chips(view)) == {"xs", "ys", "total"}
    # Inside of the lambda its own name is there, and those around it.
    kept = view.recording.steps
    inside = next(i for i, step in enumerate(kept) if step.function == "<lambda>")
    assert set(chips(view, inside + 2)) >= {"v", "xs"}
    assert " object at 0x" not in view.to_html() and ".0" not in chips(view, inside)


def test_printing_is_recorded_where_it_happened():
    shown = io.StringIO()
    with redirect_stdout(shown):
        view = see.trace(log2, X)
    assert shown.getvalue() == ""
    (step,) = steps(view, "print")
    assert step.text == "tracing JitTracer(float32[2])\n"
    assert view.recording.steps.index(step) < 3


def test_an_error_is_the_last_step():
    def relu(x):
        y = jnp.sin(x)
        if y > 0:
            return y
        return 0.0

    view = see.trace(relu, 1.0)
    last = view.recording.steps[-1]
    assert last.kind == "error" and last.label == "TracerBoolConversionError"
    assert expressions(view, "error") == ["y > 0"]
    assert view.recording.telling == len(view.recording.steps) - 1
    assert "stopped by TracerBoolConversionError" in view.text()
    assert "b:f32[] = sin a" in view.text()
    assert "/test_trace_view.py" not in view.to_html() + last.text


def test_results_before_an_error_have_names():
    def function(x):
        y = jnp.sin(x)
        return y + jnp.ones(7)

    view = see.trace(function, X)
    assert chips(view)["y"] == "b:f32[2]"
    last = view.frame().panes[-1].rows[-1]
    assert [piece.text for piece in last.cells[0]] == ["    ..."]
    assert not any(variable.returned for variable in view.recording.jaxpr.variables)


def test_errors_before_the_first_equation():
    def early(x):
        return undefined_name + x  # noqa: F821

    assert "NameError" in see.trace(early, 1.0).text()
    assert "TypeError" in see.trace(early).text()
    with pytest.raises(TypeError, match="takes a function"):
        see.trace(3.0)


def test_nested_jit_vmap_and_grad():
    inner = jit(lambda y: jnp.sin(y) * 2.0)
    view = see.trace(lambda x: inner(x) + 1.0, X)
    assert expressions(view)[:2] == ["jnp.sin(y)", "jnp.sin(y) * 2.0"]
    assert view.recording.jaxpr.text.count("sin") == 1
    view = see.trace(vmap(lambda x: jnp.cos(x)), X)
    assert expressions(view) == ["jnp.cos(x)"]
    view = see.trace(minijax.grad(lambda x: jnp.sin(x) * x), 1.0)
    assert "of programs in between" in view.text().splitlines()[0]


def test_a_kept_program_is_traced_again_for_the_view():
    f = jit(lambda x: x * 2.0)
    f(1.0)
    assert len(steps(see.trace(f, 1.0), "equation")) == 1
    assert len(steps(see.trace(f, 1.0), "equation")) == 1


def test_without_source():
    namespace = {}
    exec("def hidden(x):\n    return x * 2.0", namespace)
    view = see.trace(namespace["hidden"], 1.0)
    assert "1 equation" in view.text() and view.recording.sources == []


def test_pythons_own_tracing_comes_back():
    def other(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        see.trace(log2, X)
        assert sys.gettrace() is other
    finally:
        sys.settrace(before)


def test_there_and_back():
    record = see.trace(puzzle, X).recording
    assert Recording.from_dict(record.to_dict()) == record


def test_size_is_linear():
    def long(n):
        def f(x):
            for _ in range(n):
                x = jnp.sin(x)
            return x

        return see.trace(f, 1.0)

    assert len(long(40).recording.steps) == 41
    assert len(long(2000).to_html()) < 20 * len(long(100).to_html())


def test_the_picture(show):
    page = show(see.trace(log2, X))
    assert page.inner_text(".mj-where") == "step 6 of 6: div"
    assert page.inner_text("mark") == "jnp.log(x) / jnp.log(2.0)"
    assert page.locator("tr.mj-later").count() == 0
    assert page.inner_text(".mj-strip .mj-chip") == "a:f32[2]"
    page.click("button[aria-label='first step']")
    assert page.inner_text(".mj-where") == "step 1 of 6: print"
    assert page.locator("tr.mj-later").count() == 5
    assert "prints, once" in page.inner_text(".mj-detail")
    page.click("button[aria-label='one step on']")
    assert page.locator("tr.mj-py").count() == 1


@minijax.custom_vjp
def clip_gradient(value):
    return value


def clip_forward(value):
    return value, None


def clip_backward(saved_in_forward, cotangent_in):
    clipped = jnp.clip(cotangent_in, -1.0, 1.0)
    return (clipped,)


clip_gradient.defvjp(clip_forward, clip_backward)


def uses_clip(point):
    inner = jnp.sin(point)
    return jnp.sum(clip_gradient(inner) * 2.0)


def test_names_are_those_of_the_frame_that_is_shown():
    """The backward pass writes equations at lines of a function that has ended."""
    minijax.clear_caches()  # of a `clip` that was traced before, only the call is seen
    view = see.trace(minijax.grad(uses_clip), np.ones(3, np.float32))
    own = {
        "uses_clip": {"point", "inner"},
        "clip_forward": {"value"},
        "clip_backward": {"saved_in_forward", "cotangent_in", "clipped"},
    }
    sources = {source.id: source.name for source in view.recording.sources}
    seen = set()
    for step, frame in zip(view.recording.steps, view.frame().steps, strict=True):
        if step.kind == "equation" and step.span is not None:
            name = sources[step.span.source]
            seen.add(name)
            assert {shown[0] for shown in frame.live} <= own.get(name, {"value"})
    assert {"uses_clip", "clip_backward"} <= seen


def test_small_arrays_show_what_they_hold_when_the_program_runs(show):
    def layer(w, x):
        scores = w @ x
        return jnp.tanh(scores)

    w, x = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    view = see.trace(layer, w, x)
    values = view.recording.values
    assert values["c"] == [[3.0, 12.0]] and values["a"] == w.tolist()
    page = show(view)
    box = page.locator('.mj-strip [data-n="c"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 3)
    assert page.locator(".mj-detail").inner_text() == "c[1] = 12"
    plain = see.trace(layer, w, x, values=False)
    assert plain.recording.values == {} and plain.text() == view.text()


def test_a_program_with_effects_is_not_run_for_its_values():
    happened = []

    def noted(x):
        minijax.debug.callback(happened.append, x)
        return x * 2

    record = see.trace(noted, 2.0).recording
    assert record.unasked == "debug_callback is not run unasked"
    assert record.values["b"] == [[4.0]]
    minijax.effects_barrier()
    assert happened == []
    view = see.trace(noted, 2.0, values=True)
    assert view.recording.values["b"] == [[4.0]]
    minijax.effects_barrier()
    assert happened == [2.0]


def test_a_program_of_many_numbers_is_run_where_that_is_asked_for():
    def doubled(x):
        return x * 2

    x = np.ones((2**12, 2**11), np.float32)
    assert see.trace(doubled, x).recording.values == {}
    assert "values=True" in see.trace(doubled, x).static_html()
    assert see.trace(doubled, x, values=False).recording.values == {}
    assert see.trace(doubled, x, values=True).recording.values["b"] == [[2.0] * 16] * 16
    assert see.trace(doubled, x[:9]).recording.values["b"] == [[2.0] * 16] * 9
    with pytest.raises(TypeError, match=r"args\[0\]\['w'\] is a ShapeDtypeStruct"):
        tree = {"w": minijax.ShapeDtypeStruct((3,), np.float32)}
        see.trace(lambda tree: tree["w"] * 2, tree, values=True)


@pytest.mark.parametrize("view", [see.trace, see.grad])
def test_what_takes_long_is_not_run_unasked(view):
    def product(x):
        return jnp.sum(x @ x)

    def factored(x):
        return jnp.sum(jnp.linalg.cholesky(x, symmetrize_input=False))

    def convolved(x):
        x = x[None, None]
        filters = jnp.ones((8, 1, 65, 65))
        return jnp.sum(minijax.lax.conv_general_dilated(x, filters, (1, 1), "SAME"))

    for f, size in ((product, 400), (factored, 250)):
        shown = view(f, np.ones((size, size), np.float32))
        # The argument is known, and what does not come from the long operation.
        assert shown.recording.values and not shown.recording.no_values
        assert "steps of arithmetic; values=True shows" in shown.static_html()
        # Where no step makes a known value, no strip of values is drawn.
        kinds = [pane.kind for pane in shown.frame().panes]
        assert ("strip" in kinds) == (view is see.grad)
    assert "steps" in view(convolved, np.ones((64, 64), "f")).recording.unasked
    sorted_sum = view(lambda x: jnp.sort(x).sum(), np.ones(10**6, "f"))
    assert "jit" in sorted_sum.recording.unasked
    small = view(product, np.ones((200, 200), np.float32))
    assert small.recording.values and not small.recording.unasked
    assert not view(product, np.ones((400, 400), "f"), values=False).recording.unasked


@pytest.mark.parametrize("view", [see.trace, see.grad])
def test_small_arrays_beside_a_large_one_have_values(view):
    """What is not read, or takes long, leaves the rest."""

    def scaled(x, w, table):
        y = jnp.sin(x) * w
        return jnp.sum(y) + jnp.sum(table)

    x, table = np.arange(3, dtype=np.float32), np.ones((3000, 2000), np.float32)
    record = view(scaled, x, 2 * x, table).recording
    assert record.unasked == "an array of 6,000,000 numbers is not read unasked"
    shown = list(record.values.values())
    for wanted in (x, 2 * x, np.sin(x), np.sin(x) * 2 * x):
        rows = [[float(f"{float(v):.4g}") for v in wanted]]
        assert rows in shown, (rows, record.values.keys())
    if view is see.grad:
        assert [[float(f"{float(v):.4g}") for v in np.cos(x) * 2 * x]] in shown


@pytest.mark.parametrize("view", [see.trace, see.grad])
def test_many_different_programs_are_not_compiled_unasked(view):
    def layers(x):
        for n in range(24):
            x = minijax.jit(lambda x, n=n: x * float(n + 1))(x)
        return x.sum()

    record = view(layers, np.ones(3, np.float32)).recording
    assert "compile more than 20" in record.unasked and len(record.values) > 20

    def alike(x):
        # NumPy computes these.
        for _ in range(24):
            x = jnp.concatenate([x, x[:1]]) * 0.5
        return x.sum()

    for size in (3, 2000):
        record = view(alike, np.ones(size, np.float32)).recording
        assert len(record.values) > 48 and not record.unasked


@pytest.mark.parametrize("values", [None, True])
def test_arguments_that_change_later_are_shown_as_they_were(values):
    x, w = np.ones(3, np.float32), np.ones(3, np.float32)
    view = see.trace(lambda x: x * 2 + w, x, values=values)
    x[:], w[:] = 7, 7
    record = view.recording
    assert [[3.0] * 3] in record.values.values()
    assert all(7 not in row for rows in record.values.values() for row in rows)
    grad = see.grad(lambda x: jnp.sum(x * w * w), x, values=values)
    x[:], w[:] = 9, 9
    assert all(9 not in row for rows in grad.recording.values.values() for row in rows)


@pytest.mark.parametrize("values", ["no", 0, 1, np.array([True, False])])
def test_a_choice_that_is_no_bool_is_refused(values):
    for view in (see.trace, see.grad, see.vmap):
        with pytest.raises(TypeError, match="values is True, False"):
            view(lambda x: x * 2, np.ones(1, np.float32), values=values)
    with pytest.raises(TypeError, match="see.tree: values is True, False or None"):
        see.tree({}, values=values)


def test_a_program_that_may_run_long_or_raise_is_drawn_without_values():
    def refused(x):
        raise ValueError("not here")

    def called(x):
        return minijax.pure_callback(
            refused, minijax.ShapeDtypeStruct((), "float32"), x
        )

    for f in (
        lambda x: minijax.lax.while_loop(lambda c: c < 9, lambda c: c * 0.5, x),
        minijax.jit(lambda x: minijax.lax.while_loop(lambda c: c < 9, jnp.sin, x)),
        called,
    ):
        record = see.trace(f, np.float32(1)).recording
        assert list(record.values) == ["a"]
        assert record.unasked.endswith("is not run unasked")
    kept = jnp.ones(3) + 1
    view = see.trace(lambda: kept * 2, values=True)
    kept.delete()
    assert view.recording.values == {}
    assert view.recording.no_values.startswith("RuntimeError: ")
    assert "no values: running the program raised RuntimeError" in view.static_html()


def test_a_defect_of_ours_is_no_missing_value(monkeypatch):
    def broken(value):
        raise KeyError(value)

    broken.__code__ = broken.__code__.replace(co_filename=small_values.__file__)
    monkeypatch.setattr(recorded, "rows_or_means", broken)
    with pytest.raises(KeyError):
        see.trace(lambda x: x * 2, np.float32(1)).frame()


STRIP = """() => [
  ...document.querySelectorAll(".mj-strip-pane svg:not([hidden]) [data-n]")]
  .map(made => [made.dataset.n, made.getBoundingClientRect().height])"""


@pytest.mark.parametrize("width", [1200, 800, 480])
def test_what_a_step_reads_and_makes_is_large(show, width):
    def layer(w, x):
        return jnp.tanh(w @ x)

    w, x = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    page = show(see.trace(layer, w, x).at(1), width=width)
    found = dict(page.evaluate(STRIP))
    assert list(found) == ["a", "b", "c"] and min(found.values()) > 60
    strip = page.locator(".mj-strip-pane svg:not([hidden])")
    assert {"12", "3"} <= set(strip.locator("text").all_text_contents())
    box = strip.locator('[data-n="c"]').bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] - 3)
    detail = page.locator(".mj-detail").inner_text()
    assert detail == "c[1, 0] = 12 = 3 * 1 + 4 * 1 + 5 * 1"
    page.locator(".mj-live").press("ArrowRight")
    assert [name for name, _ in page.evaluate(STRIP)] == ["c", "d"]


@pytest.mark.parametrize("view", [see.trace, see.grad])
def test_a_name_that_view_and_function_have_is_refused(view):
    def scaled(x, values):
        return jnp.sum(x * values)

    with pytest.raises(TypeError, match="an option of the view, and the function has"):
        view(scaled, np.float32(1), values=np.float32(2))
    view(scaled, np.float32(1), np.float32(2)).text()
    bound = functools.partial(scaled, values=np.float32(2))
    view(bound, np.float32(1), values=True).text()


def test_an_array_with_a_long_side_is_drawn_reduced(show):
    """The strip says what a cell is; its numbers are means, and no product's sums."""
    a, b = np.ones((2, 64), np.float32), np.ones((64, 3), np.float32)
    a[:, ::2] = 3.0
    view = see.trace(lambda a, b: jnp.tanh(a @ b), a, b)
    values = view.recording.values
    assert values["a"] == [[2.0] * 32] * 2 and values["c"] == [[128.0] * 3] * 2
    page = show(view)
    page.locator(".mj-live").press("Home")
    strip = page.locator(".mj-strip-pane")
    assert "reduced: means of 1 x 2" in strip.inner_text()
    assert "reduced: means of 2 x 1" in strip.inner_text()
    box = strip.locator('[data-n^="a, reduced"]').bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    told = page.locator(".mj-detail").inner_text()
    assert told == "a, reduced: means of 1 x 2, at [0, 0] = 2"
    box = strip.locator('[data-n="c"]').bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    assert page.locator(".mj-detail").inner_text() == "c[0, 0] = 128"
    for kind in ("f32[64@x,4]", "f32[64@(x,y),4]", "f32[64,4]{V:x}"):
        assert reduced(kind, [[0.0] * 4] * 32) == "reduced: means of 2 x 1"
        assert reduced(kind, [[0.0] * 4] * 64) == ""
    deep = see.trace(lambda x: x * 2.0, np.ones((2, 3, 4)))
    assert np.shape(deep.recording.values["a"]) == (6, 4)
    none = see.trace(lambda x: x * 2.0 + 1.0, np.ones((64, 64)), values=False)
    assert not [pane for pane in none.frame().panes if pane.kind == "strip"]


@pytest.mark.parametrize("view", [see.trace, see.grad])
def test_means_of_a_large_array_and_numbers_of_a_small_one(show, view):
    """Of an MLP on images: the pointer asks for a mean, and for a number."""

    def loss(w, b, x):
        scores = x @ w
        h = jnp.tanh(scores)
        sums = h @ b
        return (sums**2).sum()

    rng = np.random.default_rng(3)
    w, b, x = (rng.normal(size=s).astype("f") for s in ((784, 10), 10, (64, 784)))
    shown = view(loss, w, b, x)
    assert len(shown.to_html()) < 200_000
    page = show(shown)
    page.locator(".mj-live").press("Home")
    strip = page.locator(".mj-strip-pane svg:not([hidden])")
    means = x.reshape(16, 4, 16, 49).mean((1, 3))
    box = strip.locator('[data-n*="means of 4 x 49"]').bounding_box()
    at = box["x"] + box["width"] * 3.5 / 16, box["y"] + box["height"] * 5.5 / 16
    page.mouse.move(*at)
    told = page.locator(".mj-detail").inner_text()
    assert told.endswith(f", reduced: means of 4 x 49, at [5, 3] = {means[5, 3]:.4g}")
    while not strip.locator("text", has_text="f32[10]").count():
        page.locator(".mj-live").press("ArrowRight")
    box = strip.locator('[data-n="b"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 3)
    assert page.locator(".mj-detail").inner_text() == f"b[7] = {b[7]:.4g}"


def test_the_number_of_an_empty_line_is_in_its_column_where_no_script_runs():
    def spaced(x):
        y = x + 1.0

        return y * 2.0

    page = see.trace(spaced, 1.0).static_html()
    numbers = re.findall(r"<td([^>]*)text-align:right[^>]*>([^<]*)", page)
    assert len(numbers) == 4 and not any("colspan" in look for look, _ in numbers)
