"""`see.why`: exceptions and equations, told with their places and rules."""

import re
import sys

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import (
    ShapeDtypeStruct,
    checkpoint,
    custom_vjp,
    grad,
    jit,
    lax,
    make_jaxpr,
    vmap,
)
from minijax.core import source_info
from minijax.experimental.pallas import pallas_call
from minijax_lab.explain import causes
from minijax_lab.explain.cache import latest
from minijax_lab.explain.recording import Recording, span_text

KEPT = []


def relu(x):
    y = jnp.sin(x)
    if y > 0:
        return y
    return 0.0


def assign():
    x = jnp.ones(3)
    x[0] = 1.0


def donated_again():
    step = jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    step(x)
    return x + 1


def leak():
    jit(lambda x: KEPT.append(x * 2.0))(1.0)
    return KEPT.pop() + 1.0


SITUATIONS = [
    (lambda: jit(relu)(1.0), "TracerBoolConversionError", "jnp.where"),
    (lambda: jit(lambda x: jnp.zeros(x))(3), "TypeError", "static_argnums"),
    (lambda: jit(lambda x: np.sin(x))(1.0), "TracerArrayConversionError", "jnp"),
    (lambda: jit(lambda x: [1, 2][x])(1), "TracerIntegerConversionError", "index"),
    (leak, "UnexpectedTracerError", "return the value"),
    (lambda: jnp.ones(3) + jnp.ones(4), "TypeError", "incompatible shapes"),
    (lambda: jnp.ones((3, 2)) @ jnp.ones(3), "TypeError", "dot_general"),
    (lambda: jnp.concatenate([jnp.ones((2, 2)), jnp.ones((3, 3))]), "TypeError", "3"),
    (lambda: grad(lambda x: x * jnp.ones(2))(1.0), "TypeError", "x.sum()"),
    (lambda: grad(lambda x: x)(1), "TypeError", "astype(float)"),
    (lambda: vmap(jnp.add)(jnp.ones(2), jnp.ones(3)), "ValueError", "one size"),
    (lambda: jit(lambda x, n: x, static_argnums=1)(1.0, [2]), "ValueError", "hashable"),
    (assign, "TypeError", ".at[idx].set"),
    (donated_again, "RuntimeError", "donated"),
]


def caught(function):
    with pytest.raises(Exception) as caught_error:
        function()
    return caught_error.value


@pytest.mark.parametrize("function, name, key", SITUATIONS)
def test_exceptions(function, name, key):
    view = see.why(caught(function))
    text = view.text()
    assert text.startswith(f"why: {name} in ")
    assert key in text and "rule: " in text
    used = view.recording.moments[-1]
    assert used.label == "used" and used.span is not None
    assert all(len(line) <= 100 for line in text.splitlines())
    assert Recording.from_dict(view.recording.to_dict()) == view.recording
    assert "/test_why_view.py" not in view.to_html() + text


def test_birth_use_and_program():
    view = see.why(caught(lambda: jit(relu)(1.0)))
    record = view.recording
    born, used = record.moments
    assert (born.label, used.label) == ("born", "used")
    assert span_text(record.sources, used.span) == "y > 0"
    assert born.text == "result of gt in relu"
    assert [e.primitive for e in record.program.equations] == ["sin", "gt"]


def test_only_the_last_equations_are_kept():
    def long(x):
        for _ in range(30):
            x = jnp.sin(x)
        return bool(x > 0)

    view = see.why(caught(lambda: jit(long)(1.0)))
    assert len(view.recording.program.equations) == 10
    assert "... 21 earlier equations" in view.text()


def test_the_last_exception(monkeypatch):
    error = caught(assign)
    name = "last_exc" if sys.version_info >= (3, 12) else "last_value"
    monkeypatch.setattr(sys, name, error, raising=False)
    assert see.why().recording.call == "TypeError"
    monkeypatch.delattr(sys, name)
    monkeypatch.delattr(sys, "last_value", raising=False)
    latest.clear()
    with pytest.raises(LookupError, match="there was neither. Pass"):
        see.why()
    # A function of its own: programs of jnp.sin may be there from other tests.
    with see.cache(jit(lambda x: jnp.sin(x))) as watched:
        watched(jnp.ones(3))
        with pytest.raises(LookupError, match="there was neither. Pass"):
            see.why()  # a first call is none that was compiled again
        watched(jnp.ones(4))
        assert see.why().text() == see.why(watched).text()
        assert "f32[3] and is f32[4]" in see.why().text()
    with pytest.raises(TypeError, match="an exception or an equation"):
        see.why(3)


def test_the_exception_that_is_being_handled(monkeypatch):
    monkeypatch.setattr(sys, "last_exc", ValueError("an older one"), raising=False)
    try:
        jit(lambda x: 1 if x > 0 else 2)(1.0)
    except minijax.errors.TracerBoolConversionError:
        view = see.why()
    assert view.recording.call == "TracerBoolConversionError"


def test_an_exception_of_another_library():
    def divide():
        return 1 / 0

    assert see.why(caught(divide)).text().startswith("why: ZeroDivisionError in divide")


def loss(x):
    return jnp.sum(jnp.sin(x) * x)


def test_causes_of_equations():
    causes.forget()
    with causes.recording():
        closed = make_jaxpr(grad(loss))(np.ones(3, np.float32))
    told = {e.primitive.name: see.why(e).recording for e in closed.eqns}
    assert told["sin"].rule == "written as your function ran, by no rule"
    assert "the jvp of sin (minijax/core/arithmetic.py:" in told["cos"].rule
    assert "sum of cotangents" in told["add_any"].rule
    assert "the transpose of reduce_sum" in told["broadcast_in_dim"].rule
    line = loss.__code__.co_firstlineno + 1
    assert told["cos"].moments[0].span.line == line


def test_the_chain_of_transformations():
    with causes.recording():
        closed = make_jaxpr(vmap(grad(loss)))(np.ones((2, 3), np.float32))
    cos = next(e for e in closed.eqns if e.primitive.name == "cos")
    cause = causes.cause_of(cos)
    assert [(r.kind, r.primitive) for r in cause.rules] == [
        ("batch", "cos"),
        ("jvp", "sin"),
    ]
    assert cause.transformations == ["jvp", "vmap"]
    for rule in cause.rules:
        path = causes.Path(causes.__file__).parents[3] / rule.file
        source = path.read_text().splitlines()[rule.line - 1]
        assert "lambda" in source or "def " in source or "sin_p" in source


def test_a_view_records_causes_by_itself():
    causes.forget()
    view = see.jaxpr(grad(loss), np.ones(3, np.float32))
    names = [equation.primitive for equation in view.recording.equations]
    told = view.why(names.index("cos") + 1).recording
    assert told.headline.endswith("written by the jvp of sin")
    labels = ["line", "order", "rule", "result"]
    assert [moment.label for moment in told.moments] == labels
    assert told.moments[1].text.startswith("jvp, which is also grad's way forward")
    assert "sin_p.def_jvp(" in span_text(told.sources, told.moments[2].span)
    assert "written by the jvp of sin" in view.frame().steps[names.index("cos")].detail
    again = see.jaxpr(grad(loss), np.ones(3, np.float32)).recording
    assert [e.story for e in again.equations] == [
        e.story for e in view.recording.equations
    ]
    with pytest.raises(IndexError, match="equation 99 of"):
        view.why(99)


@custom_vjp
def own(x):
    return jnp.sin(x)


def own_forwards(x):
    return own(x), x


def own_backwards(x, ct):
    return (ct * jnp.cos(x),)


own.defvjp(own_forwards, own_backwards)


def doubled(ref, out):
    out[...] = ref[...] * 2.0


def kernel(x):
    return pallas_call(doubled, out_shape=ShapeDtypeStruct((3,), np.float32))(x)


def looped(x):
    return lax.scan(lambda c, a: (jnp.sin(c) * a, c), x[0], x)[0]


def chosen(x):
    return lax.cond(x > 0, jnp.sin, lambda x: x * 2.0, x)


ROWS = np.ones((2, 3), np.float32)
BACK = "grad, on the way back: jvp first, then transpose"


@pytest.mark.parametrize(
    "function, x, primitive, rules, order",
    [
        # A copy of an inner program's equation keeps the rule that wrote it.
        (grad(looped), ROWS[0], "cos", ["jvp of sin", "linearize of scan"], None),
        (grad(looped), ROWS[0], "mul", ["transpose of mul", "transpose of scan"], BACK),
        (vmap(chosen), ROWS[0], "mul", ["batch of mul", "batch of cond"], "vmap"),
        (vmap(vmap(chosen)), ROWS, "mul", None, "vmap of vmap: vmap first, then vmap"),
        (vmap(kernel), ROWS, "pallas_call", ["batch of pallas_call", "batch of jit"],
         "vmap"),
        # What vmap writes for its results, and what the user's own rule writes.
        (vmap(grad(lambda x: jnp.sum(x * x)), 1, 1), ROWS, "transpose",
         ["out_axes of vmap"], "vmap"),
        (grad(lambda x: own(x).sum()), ROWS[0], "cos", ["transpose of custom_lin"],
         BACK),
        (grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)))), 1.0, "cos",
         ["jvp of sin", "jvp of remat2", "transpose of remat2"],
         "jvp, run again on grad's way back"),
    ],
)  # fmt: skip
def test_rules_and_order(function, x, primitive, rules, order):
    view = see.jaxpr(function, x)
    eqns = view.recording.equations
    at = max(n for n, one in enumerate(eqns) if one.primitive == primitive)
    told = view.why(at + 1).recording
    said = re.findall(r"the ([\w ]+?) \(minijax", told.rule)
    assert rules is None or said == rules
    assert order is None or order in [moment.text for moment in told.moments]
    if primitive == "cos" and "custom_lin" in told.rule:
        last = told.moments[-2]
        assert last.text.startswith("your backward rule, test_why_view.py:")
        assert span_text(told.sources, last.span) == "return (ct * jnp.cos(x),)"


def test_the_function_that_keeps_a_tracer_may_be_another():
    def inner(x):
        return jnp.sin(x)

    def outer(x):
        y = inner(x)
        KEPT.append(y)
        return y

    def argument(x):
        KEPT.append(x)
        return x

    for function in (outer, argument):
        jit(function)(1.0)
        record = see.why(caught(lambda: KEPT[-1] + 1.0)).recording
        KEPT.clear()
        kept = [moment for moment in record.moments if moment.label == "kept"]
        said = [span_text(record.sources, moment.span) for moment in kept]
        assert said[0].startswith("KEPT.append(")


def test_the_traceback_tells_what_was_not_recorded():
    """Rules on the way forward are those that recording finds, without it."""
    x = np.ones((2, 3), np.float32)

    def traced():
        # A new function each time: one that was traced before is not traced again.
        inner = grad(lambda x: jnp.sum(jnp.tanh(x) * jnp.exp(x)))
        return make_jaxpr(lambda x: vmap(inner)(x))(x).eqns

    causes.forget()
    plain = traced()
    assert all(causes.cause_of(eqn) is None for eqn in plain)
    with causes.recording():
        recorded = traced()
    compared = 0
    for one, other in zip(plain, recorded, strict=True):
        text = see.why(one).text()
        back = "transpose(" in str(one.source_info.name_stack)
        assert ("transposed from" in text) == back
        assert ("on the way back: jvp first, then transpose" in text) == back
        if not back:
            mine, known = causes.cause_of_traceback(one), causes.cause_of(other)
            if known is None:
                continue  # several had this place
            places = [(rule.kind, rule.file, rule.line) for rule in mine.rules]
            assert places == [(rule.kind, rule.file, rule.line) for rule in known.rules]
            compared += bool(places)
    assert compared >= 3
    causes.forget()
    nothing = make_jaxpr(loss)(x).eqns[0]
    assert "written as your function ran, by no rule" in see.why(nothing).text()
    bare = nothing.replace(source_info=source_info.SourceInfo(None, ""))
    assert "its cause was not recorded" in see.why(bare).text()


@pytest.mark.parametrize(
    "stack, told",
    [
        ("", ""),
        ("jit(f)", ""),
        ("vmap()", "vmap"),
        ("vmap(vmap())", "vmap of vmap: vmap first, then vmap"),
        ("transpose(jvp(f))", "grad, on the way back: jvp first, then transpose"),
        (
            "vmap(transpose(vmap(jvp())))",
            "vmap of grad, on the way back: jvp first, then transpose, then vmap",
        ),
        (
            "jvp(vmap())",
            "jvp of vmap, which is also grad's way forward: vmap first, then jvp",
        ),
    ],
)
def test_the_order_of_transformations(stack, told):
    assert causes.order_in_words(stack) == told


def step(c, x):
    if x is None:
        return c
    return c.astype(jnp.int32), x


def narrow(c):
    return (c > 1.0).astype(jnp.float32).astype(jnp.int32)


def wide(c):
    def inner(d):
        return d + 1

    return inner(c) * 2.0


FAULTS = [
    (lambda: lax.scan(step, 1.0, jnp.ones(3)), ["c.astype(jnp.int32), x"]),
    (lambda: lax.scan(init=1.0, f=step, xs=jnp.ones(3)), ["c.astype(jnp.int32), x"]),
    (
        lambda: lax.while_loop(lambda c: c < 3, narrow, 1.0),
        ["(c > 1.0).astype(jnp.float32).astype(jnp.int32)"],
    ),
    (
        lambda: jit(lambda x: lax.cond(x > 0, narrow, wide, x))(1.0),
        ["(c > 1.0).astype(jnp.float32).astype(jnp.int32)", "inner(c) * 2.0"],
    ),
    (lambda: grad(wide)(jnp.ones(3)), ["inner(c) * 2.0"]),
]


@pytest.mark.parametrize("function, returned", FAULTS)
def test_the_line_at_fault_is_marked(function, returned):
    """Not the one that calls the loop, but what its step returns."""
    view = see.why(caught(function))
    record = view.recording
    gives = [m for m in record.moments if m.label == "gives"]
    assert [span_text(record.sources, m.span) for m in gives] == returned
    assert record.moments[record.telling] is gives[-1]
    assert record.headline.endswith(f"line {gives[-1].span.line}")
    frame = view.frame()
    pane, row, start, end = frame.steps[record.telling].marks[0]
    assert frame.panes[pane].rows[row].cells[1][start:end] == returned[-1]


def test_the_picture(show):
    page = show(see.why(caught(lambda: jit(relu)(1.0))))
    assert page.inner_text("mark") == "y > 0"
    assert "jnp.where" in page.inner_text(".mj-panes")
    page.click("button[aria-label='one step back']")
    assert page.inner_text(".mj-where") == "step 1 of 2: born"


class Model:
    last = None
    other = None


def test_a_leak_names_the_line_that_keeps_the_tracer():
    def loss(x):
        y = jnp.sin(x)
        Model.other = 3
        Model.last = y
        return y * 2.0

    jit(loss)(1.0)
    record = see.why(caught(lambda: Model.last + 1.0)).recording
    kept = [moment for moment in record.moments if moment.label == "kept"]
    assert [span_text(record.sources, m.span) for m in kept] == ["Model.last = y"]
    assert "kept in Model.last" in kept[0].text
    assert record.instead == "Write `return ..., y` instead of `Model.last = y`."
    Model.last = None


def test_a_leak_into_a_list_names_the_call():
    def loss(x):
        y = jnp.sin(x)
        KEPT.append(y)
        return y

    jit(loss)(1.0)
    record = see.why(caught(lambda: KEPT[-1] + 1.0)).recording
    KEPT.clear()
    kept = [moment for moment in record.moments if moment.label == "kept"]
    assert [span_text(record.sources, m.span) for m in kept] == ["KEPT.append(y)"]


WEIGHTS = {"w": jnp.ones((4, 8))}
SQUARE = jnp.ones((4, 4))


@pytest.mark.parametrize(
    "function, shapes, key",
    [
        (
            lambda: jnp.ones((4, 8)) @ jnp.ones(16),
            ["(4,8) @ (16,)", "   ^     ^^"],
            "axis 1 of the first (8) and axis 0 of the second (16)",
        ),
        (
            lambda: jnp.ones((4, 8)) @ jnp.ones((4, 3)),
            ["(4,8) @ (4,3)", "   ^     ^"],
            "transpose the first, `jnp.ones((4, 8)).T`.",
        ),
        (
            lambda: jnp.matmul(WEIGHTS["w"] * 2, jnp.ones((4, 3))),
            ["(4,8) @ (4,3)", "   ^     ^"],
            "transpose the first, `(WEIGHTS['w'] * 2).T`.",
        ),
        (
            lambda: SQUARE @ SQUARE[:3].T @ jnp.ones((4, 2)),
            ["(4,3) @ (4,2)", "   ^     ^"],
            "transpose the first, `(SQUARE @ SQUARE[:3].T).T`.",
        ),
        (
            lambda: SQUARE[:3].T @ jnp.ones((4, 2)),
            ["(4,3) @ (4,2)", "   ^     ^"],
            "transpose the first, `SQUARE[:3]`.",
        ),
        (
            lambda: jnp.inner(jnp.ones((4, 8)), jnp.ones((3, 4))),
            ["(4,8) @ (3,4)", "   ^       ^"],
            "have one size: transpose the first.",
        ),
        (
            lambda: jnp.ones((2, 3)) + jnp.ones((5, 1, 4)),
            ["(2,3) with (5,1,4)", "   ^            ^"],
            "equal or 1",
        ),
        (
            lambda: jnp.ones(3) + jnp.ones(4),
            ["(3,) with (4,)", " ^         ^"],
            "pairs of entries, `jnp.ones(3)[:, None]` as the first",
        ),
    ],
)
def test_shapes_that_clash_are_drawn(function, shapes, key):
    view = see.why(caught(function))
    assert view.recording.shapes == shapes
    assert key in view.recording.instead
    lines = view.text().splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("shapes: "))
    assert [line[8:] for line in lines[first : first + 2]] == shapes


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "local", [{int: 1, float: 2}, {1: 2, "b": 3}, {jnp.sin: 1, jnp.cos: 2}, CYCLE]
)
def test_a_local_that_is_no_tree_is_no_matter(local):
    def half(value):
        return float(value) / 2

    def f(x):
        held = local
        return x * half(x) * len(held)

    record = see.why(caught(lambda: jit(f)(1.0))).recording
    assert record.repaired == "return value.astype(float) / 2"


def test_the_picture_marks_the_sizes_that_clash(show):
    page = show(see.why(caught(lambda: jnp.ones((4, 8)) @ jnp.ones(16))))
    assert page.locator(".mj-changed").all_inner_texts() == ["8", "16"]


def test_an_equation_of_jax_is_told_by_its_number():
    jax = pytest.importorskip("jax")
    closed = jax.make_jaxpr(lambda x: jax.numpy.sin(x) * 2)(1.0)
    with pytest.raises(TypeError, match=r"JAX's JaxprEqn. Write `see.jaxpr\("):
        see.why(closed.eqns[0])
    assert "sine of each entry" in see.jaxpr(closed).why(1).text()


def test_an_equation_of_a_function_without_source_has_a_picture():
    made = {"jnp": jnp}
    exec("def square(x): return jnp.sin(x) * x", made)
    closed = minijax.make_jaxpr(minijax.grad(made["square"]))(1.0)
    for eqn in closed.jaxpr.eqns:
        assert see.why(eqn).frame().steps


def test_why_a_function_was_compiled_again():
    """By the leaf's path, with and without a watch."""

    @jit
    def step(state, n):
        return state["w"] * n if isinstance(state, dict) else n

    with pytest.raises(LookupError, match="step keeps no program"):
        see.why(step)
    with see.cache(step) as watched:
        with pytest.raises(LookupError, match="no call of step"):
            see.why(watched)
        step({"w": jnp.ones(3)}, 2.0)
        assert "the first call of its kind" in see.why(step).text()
        assert "the first call of its kind" in see.why(watched).text()
        step({"w": jnp.ones(3)}, 3.0)  # a hit
        step({"w": jnp.ones(4)}, 2.0)
        told = "why step was compiled again: state['w'] was f32[3] and is f32[4]"
        assert see.why(step).text().startswith(told)
        step({"w": jnp.ones(4)}, 2)
        step({"w": jnp.ones(3)}, 2.0)  # a hit
    told = "why step was compiled again: n was float32 and is int32"
    for subject, write in ((step, "pass n as float32"), (watched, "pass 2.0, not 2")):
        view = see.why(subject)
        assert view.text().startswith(told) and write in view.recording.instead
        before, now = view.recording.moments
        assert "f32[4], n: ~f32[]" in before.text and "f32[4], n: ~i32[]" in now.text
    code = span_text(view.recording.sources, now.span)
    assert code == 'step({"w": jnp.ones(4)}, 2)'
    step([jnp.ones(4)], 2)
    assert "the tree changed: " in see.why(step).recording.headline


def test_why_a_function_of_jax_was_compiled_again():
    jitted = jax.jit(lambda x: x * 2)
    with pytest.raises(TypeError, match="f = see.cache"):
        see.why(jitted)
    watched = see.cache(jitted)
    watched(1.0), watched(2)
    assert see.why(watched).recording.instead == "pass 2.0, not 2"


@pytest.mark.parametrize("dtype", ["int32", "float16"])
def test_a_carry_of_another_dtype_is_told_the_dtype_that_it_becomes(dtype):
    def count(x):
        return lax.fori_loop(0, 3, lambda i, c: c.astype(dtype), x)

    with pytest.raises(TypeError) as caught:
        count(jnp.float32(1))
    assert f"as in `jnp.{dtype}(0)`, or convert" in see.why(caught.value).text()
