"""`see.grad`: its numbers held against jaxprs of both libraries, and its picture."""

from __future__ import annotations

import functools
import itertools
import re

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.core.language import Literal, jaxprs_in_params
from minijax_lab.explain.backward import bytes_in_words, record_grad
from minijax_lab.explain.backward_rows import Transposed
from minijax_lab.explain.recording import Recording
from minijax_lab.explain.residuals import Call, Linearized
from minijax_widgets.grad_view import GradView
from minijax_widgets.values_strip import WIDE, Flow, Strip
from subjects import unsafe
from tests.views import test_residuals as of

# `jit` alone is opened, and `checkpoint` is written twice by the engine: their
# equations are counted by a test of their own.
CALLS = (of.checkpointed, of.keeping_dots, of.keeping_everything, of.jitted)
COUNTED = [
    (make, args)
    for make, args in of.FUNCTIONS
    if make not in (*CALLS, of.own_backward, of.own_forward)
]


def helper(a):
    e = jnp.exp(a)
    return e * 2


def named_by_hand(x):
    b = jnp.sin(x)
    c = helper(b) * b
    return jnp.sum(c)


@pytest.mark.parametrize(
    "make, args", COUNTED, ids=lambda x: getattr(x, "__name__", "")
)
def test_equations_are_those_of_the_jaxprs(make, args):
    """What runs forward and backward is what `grad` writes, here and in JAX."""
    own = make(of.library(minijax))
    program = record_grad(own, *args).program
    assert program.forward == len(minijax.make_jaxpr(own)(*args).eqns)
    every = program.forward + program.extra + program.unused + program.backward
    assert every == len(minijax.make_jaxpr(minijax.grad(own))(*args).eqns)
    theirs = make(of.library(jax))
    assert every == len(jax.make_jaxpr(jax.grad(theirs))(*args).eqns)


def product(x):
    return jnp.sin(x) * x


def network(params, x, y):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return ((x - y) ** 2).mean()


def shape(*sizes):
    return minijax.ShapeDtypeStruct(sizes, np.float32)


LAYERS = [(shape(64, 64), shape(64))] * 12


@pytest.mark.parametrize(
    "make, args", of.FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_the_recorded_way_back_computes_the_gradient(make, args):
    """The equations that the picture shows, run, give what JAX's `grad` gives."""
    call = Call(make(of.library(minijax)), args, {}, 0, False, "test")
    linearized = Linearized(call.closed, call.differentiated)
    way_back = Transposed(linearized)
    values = dict(zip(linearized.inputs, call.leaves))
    values.update(linearized.constants)

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    def run(eqns):
        for eqn in eqns:
            out = eqn.primitive.rebind([read(v) for v in eqn.invars], eqn.params)
            values.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out])
            )

    run(linearized.forward_eqns)
    values.update((var, read(atom)) for var, atom in way_back.inputs)
    run(way_back.eqns)
    theirs = jax.tree.leaves(jax.grad(make(of.library(jax)))(*args))
    own = [
        read(answer)
        for answer, flag in zip(way_back.answers, call.differentiated)
        if flag
    ]
    assert len(own) == len(theirs)
    for mine, other in zip(own, theirs):
        np.testing.assert_allclose(np.asarray(mine), other, rtol=2e-5, atol=1e-6)


def test_text_of_the_first_example():
    view = see.grad(product, 2.0)
    assert view.text().split("\n") == [
        "grad of product(f32[]): 2 forward, 1 more for the derivative, 4 backward; "
        "keeps 8 B beside x (4 B);",
        "  x is used twice, so two cotangents add",
        "  down                                 kept                     up",
        "  a = sin x                            * b                      "
        "ct_x += ct_a * b",
        "  c = mul a x                          * x (argument); a        "
        "ct_x += a * 1 ; ct_a = 1 * x",
        " " * 64 + "ct = 1.0, the way back begins",
        "> sum: ct_x = add_any of 2, from c = mul a x and a = sin x",
    ]


def test_first_frame_is_the_finished_picture_with_the_sum():
    frame = see.grad(product, 2.0).frame()
    step = frame.steps[frame.telling]
    assert step.label == "sum: ct_x"
    scene = pictured(frame).scene
    assert all(mark.there(frame.telling) for mark in scene.marks)
    lit = {key for mark in scene.marks for key in mark.keys} & set(step.on)
    assert {"s/x", "g/x", "b0", "b1"} <= lit


def test_without_a_sum_the_largest_residual_is_shown():
    frame = see.grad(network, LAYERS, shape(8, 64), shape(8, 64)).frame()
    assert frame.telling == len(frame.steps) - 1
    assert frame.steps[-1].label == "largest residual: e"
    assert (
        "e = tanh d: mul's transpose needs its other factor" in frame.steps[-1].detail
    )


def test_values_have_no_name_that_the_users_code_gives_to_others():
    """Of the function, and of one that it calls: `b` would be taken for theirs."""
    view = see.grad(named_by_hand, np.ones(3, np.float32))
    program = view.recording.program
    names = {name for row in program.rows for name in row.results}
    assert names and not names & {"a", "b", "c", "e"} and "d" in names
    assert "d is used twice" in view.recording.headline


def test_where_nothing_is_kept_the_last_cotangent_is_shown_first():
    frame = see.grad(jnp.sum, np.ones(5, np.float32)).frame()
    labels = [step.label for step in frame.steps]
    assert [label.partition(":")[0] for label in labels] == ["down", "ct = 1.0", "up"]
    assert frame.telling == len(labels) - 1


def pictured(frame):
    """The pane of the U."""
    return next(pane for pane in frame.panes if pane.kind == "scene")


@pytest.mark.parametrize(
    "make, args", of.FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_every_function_is_drawn(make, args):
    """All boxes and rows are there, nothing stands outside, the twin is narrow."""
    view = see.grad(make(of.library(minijax)), *args)
    frame = view.frame()
    kept = [r for r in view.recording.program.residuals if r.origin != "argument"]
    pane = pictured(frame)
    several = len(view.recording.program.arguments) > 1
    for scene, width in [(pane.scene, 1040), (pane.narrow, 288)]:
        if several and scene.width != width:
            # The gradients of the arguments need more room, and get no more: they are
            # equally wide, 22 apart, and the last one ends the picture.
            places = [m.x for m in scene.marks if m.keys[1:2] and m.keys[1][:2] == "g/"]
            *_, before, last = sorted(places)
            assert scene.width == pytest.approx(last + (last - before - 22) / 2)
            width = min(scene.width, 1.6 * width)
        assert scene.width == width
        keys = {key for mark in scene.marks for key in mark.keys}
        first = [f"r/{r.id}" for r in sorted(kept, key=lambda r: -r.bytes)[:3]]
        assert set(first) <= keys
        lit = {key for step in frame.steps for key in step.on}
        assert {key for key in keys if key[0] in "fb"} <= lit
    assert max(map(len, view.text(full=True).split("\n"))) <= 100
    assert view.text().isascii()
    again = Recording.from_dict(view.recording.to_dict())
    assert GradView(again).text() == view.text()


def test_twelve_layers_are_a_band_each():
    view = see.grad(network, LAYERS, shape(8, 64), shape(8, 64))
    labels = [band.label for band in view.bands]
    assert labels[:12] == ["x = jnp.tanh(x @ w + b)"] * 12
    assert view.bands[2].source == "3 of 12: 4 equations"
    assert [a.name for a in view.bands[2].gradients] == ["params[2][0]", "params[2][1]"]


def test_loops_and_branches_open_into_rows_of_their_own():
    args = of.FUNCTIONS[4][1]
    view = see.grad(of.rnn(of.library(minijax)), *args, argnums=(0, 1))
    inner = [band for band in view.bands if band.depth]
    assert inner[0].title == "body of scan, 6 turns"
    assert [r.name for r in inner[-1].kept]
    assert all(band.times == 6 for band in inner)
    # The carry, too: it is gone when the loop is over. A row of `xs` is not.
    kept = [r for band in inner for r in band.kept]
    stacked = [r for r in view.recording.program.residuals if r.shape[:1] == [6]]
    stacked = [r for r in stacked if "scan" in r.made_by]
    assert sorted(r.origin for r in kept) == ["carry", "value", "value"]
    assert sum(r.bytes * 6 for r in kept) == sum(r.bytes for r in stacked)
    assert any(r.name == "xs[i]" for band in inner for r in band.opened)
    view = see.grad(of.branches(of.library(minijax)), np.ones(4, np.float32))
    titles = {band.title for band in view.bands if band.title}
    assert titles == {"branch 0", "branch 1"}
    inside = [r.origin for band in view.bands if band.depth for r in band.kept]
    assert sorted(inside) == ["copy", "value"]  # x itself, and cos x


def test_custom_rules_are_shown_as_what_they_are():
    text = see.grad(of.own_backward(of.library(minijax)), of.ones(4)).text()
    assert "clipped has a custom_vjp: its own fwd (forward)" in text
    text = see.grad(of.own_forward(of.library(minijax)), of.ones(4)).text()
    assert "log1pexp has a custom_jvp: its own rule (rule)" in text


@pytest.mark.parametrize(
    "make, args, name",
    [
        (of.rnn, of.FUNCTIONS[4][1], "scan"),
        (of.branches, (of.ones(4),), "cond"),
        (of.inner_jit, (of.ones(4),), "jit"),
        (of.choice, (of.ones(4), of.ones(4)), "jit"),
        (of.checkpointed, (of.ones(3, 4), of.ones(4, 4)), "remat2"),
        (of.keeping_dots, (of.ones(3, 4), of.ones(4, 4)), "remat2"),
    ],
)
def test_programs_inside_have_the_equations_of_the_jaxpr(make, args, name):
    """The bodies of loops, branches and calls that `grad` writes are those shown."""
    f = make(of.library(minijax))
    numbers = tuple(range(len(args)))
    rows = see.grad(f, *args, argnums=numbers).recording.program.rows
    inner = [program for row in rows for program in row.programs]
    written = [
        len(body.eqns)
        for eqn in minijax.make_jaxpr(minijax.grad(f, numbers))(*args).eqns
        if eqn.primitive.name == name
        for body in jaxprs_in_params(eqn.params)
    ]
    backward = [program.backward + program.again for program in inner]
    assert sorted(written[-len(inner) :]) == sorted(backward)


def test_a_checkpoint_beside():
    layers = LAYERS[:3]
    plain = see.grad(network, layers, shape(8, 64), shape(8, 64))
    both = see.grad(
        network, layers, shape(8, 64), shape(8, 64), beside=minijax.checkpoint(network)
    )
    mine = plain.recording.bytes
    assert both.headline().startswith(
        f"grad of network keeps {bytes_in_words(mine)}, of the function beside it 0 B"
    )
    again = both.recording.beside.program.again
    assert f"{again} equations more run again" in both.headline()
    scenes = [pane for pane in both.frame().panes if pane.kind == "scene"]
    assert len(scenes) == 2


def test_jit_with_static_and_keyword_arguments():
    @functools.partial(minijax.jit, static_argnames=("power", "mode"))
    def f(x, power, *, scale, mode="sum"):
        y = scale * x**power
        return y.sum() if mode == "sum" else y.mean()

    view = see.grad(f, jnp.ones(3), 2, scale=jnp.ones(3), mode="mean")
    assert view.recording.headline.startswith("grad of f(f32[3], f32[3]): 4 forward")
    view = see.grad(f, jnp.ones(3), power=3, scale=2.0)
    assert view.recording.program.arguments[0].name == "x"


def test_aux_and_several_arguments():
    def f(a, b):
        return (a * b).sum(), {"a": a}

    view = see.grad(f, shape(3), shape(3), argnums=(0, 1), has_aux=True)
    assert [a.name for a in view.recording.program.arguments] == ["a", "b"]


def test_an_unused_argument_is_said():
    view = see.grad(lambda x, y: x * x, 1.0, 2.0, argnums=(0, 1))
    assert view.recording.headline.endswith("y is not used, its gradient is zero")
    assert "  y is not used: its gradient is zero" in view.text()
    view.frame()


@pytest.mark.parametrize(
    "function, args, options, message",
    [
        (lambda n: n * 2.0, (3,), {}, r"respect to n, which is i32\[\]"),
        (lambda x: x * 2.0, (np.ones(3),), {}, "a gradient is of a scalar"),
        (lambda x: (x, x), (1.0,), {}, "returns 2 arrays"),
        (lambda x: x > 0, (1.0,), {}, "has no derivative"),
        (lambda x: x, (1.0,), {"argnums": 2}, "argnums=2, and 1 positional"),
        (lambda x: x, ("text",), {}, "which is str and not an array"),
        (lambda x: x, (shape(),), {"values": True}, "a type without a value"),
        (lambda x: x, (1.0,), {"has_aux": True}, "must return a pair"),
        (lambda x: x, (1.0,), {"beside": 3}, "beside=, which takes a function"),
        (3, (), {}, "takes a function and its arguments, and got int"),
    ],
)
def test_bad_input_is_a_sentence(function, args, options, message):
    with pytest.raises(TypeError, match=message):
        see.grad(function, *args, **options)


def test_the_first_value_that_is_not_finite():
    def f(x):
        y = jnp.log(x)
        return (y * x).sum()

    view = see.grad(f, np.array([1.0, 0.0], np.float32), values=True)
    first = view.recording.first
    assert [(b.what, b.place, b.row) for b in first] == [
        ("infinity", "forward", 0),
        ("NaN", "forward", 1),
    ]
    frame = view.frame()
    assert any(step.look == "error" for step in frame.steps)
    told = "the first infinity is in the forward pass: a = log x"
    assert told in view.recording.headline

    def g(x):
        return jnp.sqrt(x).sum()

    view = see.grad(g, np.zeros(2, np.float32), values=True)
    assert view.recording.first[0].what == "infinity"
    view.frame()
    before = see.grad(g, np.array([np.nan], np.float32), values=True)
    assert "in the argument x, before the first equation" in before.recording.headline
    before.frame()
    backward = see.grad(
        lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum(),
        np.array([0.0, 1.0], np.float32),
        values=True,
    )
    assert "NaN" in {bad.what for bad in backward.recording.first}
    assert backward.recording.result == "1"
    # The last step has the numbers that made it: of the slope, not of the root.
    frame = backward.frame()
    assert frame.steps[-1].label == "first infinity: c = div 0.5 b"
    strip = frame.panes[0].scene.parts(len(frame.steps) - 1)
    assert re.search(r">b:f32\[2\]<.*>c:f32\[2\]<.*>inf<", strip)


@pytest.mark.turns(3)
def test_ten_thousand_equations():
    def long(x):
        for _ in range(5000):
            x = jnp.sin(x) * x
        return x

    view = see.grad(long, 1.0)
    assert "10,000 forward" in view.recording.headline
    frame = view.frame()
    assert len(view.bands) <= 130
    assert len(pictured(frame).scene.marks) < 2000
    assert len(view.text().split("\n")) < 40


def test_what_a_checkpoint_runs_again_is_counted_in_its_program():
    """Those equations of the way back that no cotangent comes to."""
    view = see.grad(minijax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), 1.0)
    assert view.recording.program.again == 3  # sin, and cos twice
    assert "3 equations run again" in view.recording.headline
    for make in (of.checkpointed, of.keeping_dots, of.keeping_everything):
        f, args = make(of.library(minijax)), (of.ones(3, 4), of.ones(4, 4))
        program = minijax.make_jaxpr(minijax.grad(f))(*args)
        inner = [
            e for e in program.eqns if e.primitive.name in ("remat2", "checkpoint")
        ]
        fed = set(inner[-1].params["jaxpr"].invars[-1:])  # the cotangent comes last
        alone = 0
        for eqn in inner[-1].params["jaxpr"].eqns:
            if any(v in fed for v in eqn.invars if not isinstance(v, Literal)):
                fed.update(eqn.outvars)
            else:
                alone += 1
        assert see.grad(f, *args).recording.program.again == alone, make


def test_a_value_that_python_asks_for_is_refused_with_the_reason():
    with pytest.raises(minijax.errors.TracerBoolConversionError) as caught:
        see.grad(lambda x: x if x > 0 else -x, 1.0)
    assert any("see.grad traces the function" in n for n in caught.value.__notes__)


def test_r_goes_through_what_is_kept_by_its_bytes():
    """The frame says which steps, the largest residual first."""

    def f(w, x):
        return jnp.sum(jnp.sin(w @ jnp.tanh(x)))

    view = see.grad(f, shape(64, 32), shape(32))
    (jump,) = view.frame().jumps
    assert (jump.key, len(jump.steps)) == ("r", 2)
    sizes = []
    for step in jump.steps:
        lit = {key for key in view.frame().steps[step].on if key.startswith("r/")}
        residuals = view.recording.program.residuals
        sizes.append(sum(residuals[int(key[2:])].bytes for key in lit))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 64 * 4


@pytest.mark.parametrize("lines", [1, 2])
def test_equal_layers_are_one_band(lines):
    """The first and the last layer stand there, and between them one for all others."""

    def one(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x * x).mean()

    def two(ws, x):
        for w in ws:
            y = jnp.sin(x @ w)
            x = y * 2.0 + x
        return (x * x).mean()

    layers = 90
    function = one if lines == 1 else two
    ws = [np.full((3, 3), 0.1, np.float32)] * layers
    view = see.grad(function, ws, np.ones((2, 3), np.float32))
    bands = view.bands
    # With two lines the first layer differs: it adds x, which has no gradient.
    assert len(bands) == (4 if lines == 1 else 8)
    (joined,) = [band for band in bands if band.alike]
    assert joined.alike == layers - 1 - lines
    assert joined.source == f"the same {joined.alike} times more"
    rows = [row.id for band in bands for row in band.rows]
    assert sorted(rows) == [row.id for row in view.recording.program.rows]
    kept = [r for band in bands for r in band.kept]
    assert sum(r.bytes for r in kept) == view.recording.bytes
    assert joined.alike * len(joined.shown) == len(joined.kept)
    if lines == 1:
        sources = [band.source for band in bands if not band.alike]
        assert sources[:2] == ["1 of 90: 2 equations", "90 of 90: 2 equations"]
    texts = [
        part.text
        for pane in view.frame().panes
        if pane.scene
        for mark in pane.scene.marks
        for part in mark.drawn
        if part.tag == "text"
    ]
    assert f"x {joined.alike}" in texts  # of the gradients
    assert f"e  24 B x {joined.alike}" in texts or lines == 2


def test_layers_that_differ_are_not_joined():
    def wide_and_narrow(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x * x).mean()

    sizes = [2 + n for n in range(70)]
    ws = [np.ones(pair, np.float32) for pair in zip(sizes, sizes[1:])]
    view = see.grad(wide_and_narrow, ws, np.ones((1, 2), np.float32))
    assert not any(band.alike for band in view.bands)


@pytest.mark.parametrize(
    "make, args", of.FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_what_arrays_hold_is_what_jax_computes(make, args):
    record = record_grad(make(of.library(minijax)), *args, values=None)
    leaves = jax.tree.leaves(jax.grad(make(of.library(jax)))(*args))
    for argument, expected in zip(record.program.arguments, leaves, strict=True):
        if not argument.zero and expected.ndim < 3:
            found = record.values[argument.cotangent]
            expected = np.atleast_2d(np.asarray(expected))
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-6)
    assert record.values
    assert not record_grad(make(of.library(minijax)), *args, values=False).values


def test_a_sum_shows_what_it_adds():
    def used_twice(x):
        e = jnp.tanh(x)
        return (jnp.sin(e) * e).sum()

    view = see.grad(used_twice, np.array([0.5, -1.0], np.float32))
    values = view.recording.values
    met = view.recording.program.sums[0]
    parts = [values[f"{met.cotangent}, part {n}"] for n in (1, 2)]
    assert f"{met.cotangent}, part 3" not in values
    np.testing.assert_allclose(np.sum(parts, 0), values[met.cotangent], rtol=1e-3)
    strip = view.frame().panes[0].scene
    assert any(f"part {n}" in str(mark.turns) for n in (1, 2) for mark in strip.marks)


def test_equal_numbers_of_a_sum_have_equal_inks():
    """Also beside an array whose cells have no room for their numbers."""
    values = {"a": [[8.0, 1.0]], "b": [[-8.0, -1.234] * 16], "c": [[2.0, 1.0]]}
    types = {name: f"f32[{len(rows[0])}]" for name, rows in values.items()}
    flows = [Flow(["a", "b"], "sum", ["c"]), Flow(["a", "b"], "dot", ["c"])]

    def inks(step):
        scene = Strip(flows, values, types).scene(WIDE)
        parts = [p for mark in scene.marks for p in mark.parts(step)]
        depths = [p.has["stroke-opacity"] for p in parts if "stroke-opacity" in p.has]
        return sorted(map(float, depths), reverse=True)

    added, multiplied = inks(0), inks(1)
    assert added[:2] == [0.45, 0.45]  # 8 and -8
    assert added[2] == pytest.approx(0.45 * 3 / 12, abs=0.01)  # 2, a quarter of 8
    assert multiplied[:3] == [0.45] * 3  # of each array the largest


def test_a_step_inside_of_a_loop_says_why_it_shows_no_values():
    def turns(x):
        end, _ = minijax.lax.scan(lambda c, _: (jnp.sin(c) * c, None), x, length=4)
        return end

    view = see.grad(turns, np.float32(1))
    (strip,) = [pane for pane in view.frame().panes if pane.kind == "strip"]
    texts = [p.text for mark in strip.scene.marks for _, on in mark.turns for p in on]
    assert "values inside of body of scan, 4 turns are not recorded" in texts


def test_random_numbers_have_values_and_keys_are_boxes():
    def noisy(w, key):
        return jnp.sum(w * minijax.random.normal(minijax.random.split(key)[0], (3,)))

    key, w = minijax.random.key(1), np.ones(3, np.float32)
    record = see.grad(noisy, w, key).recording
    assert not record.unasked and not record.no_values
    np.testing.assert_allclose(
        record.values["ct_w"], [minijax.grad(noisy)(w, key)], rtol=1e-3
    )
    strip = see.trace(noisy, w, key).frame().panes[-1].scene
    told = [p.text for mark in strip.marks for _, on in mark.turns for p in on]
    assert "keys" in told and "no values" not in told


def test_types_alone_hold_nothing():
    assert not see.grad(product, shape()).recording.values


def test_the_number_under_the_pointer(show):
    w = np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4)
    x = np.ones(4, np.float32)

    def loss(w, x):
        return jnp.sum(jnp.tanh(w @ x))

    page = show(see.grad(loss, w, x))
    for name, expected in {"w": w, "ct_w": minijax.grad(loss)(w, x)}.items():
        box = page.locator(f'.mj-scene-pane [data-n="{name}"]').bounding_box()
        at = box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5
        page.mouse.move(*at)
        said = page.locator(".mj-detail").inner_text()
        assert said == f"{name}[1, 2] = {float(expected[1, 2]):.4g}"
    dot = page.locator('.mj-scene-pane [data-n="d"]').bounding_box()
    page.mouse.move(dot["x"] + 3, dot["y"] + 3)
    said = page.locator(".mj-detail").inner_text()
    assert said == f"d = {float(loss(w, x)):.4g}"


def test_the_finished_picture_shows_the_values_of_the_step_that_it_repeats():
    def used_twice(w, x):
        e = jnp.tanh(x @ w)
        return (e * e).sum()

    frame = see.grad(used_twice, np.ones((4, 6), "f"), np.ones((5, 4), "f")).frame()
    strip, labels = frame.panes[0], [step.label for step in frame.steps]
    assert strip.kind == "strip" and labels[-1] == "sum: ct_b"
    first, last = labels.index(labels[-1]), len(labels) - 1
    assert first < last and strip.scene.marks
    for mark in strip.scene.marks:
        assert mark.parts(first) == mark.parts(last)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_arguments_on_top_stand_apart_or_not_at_all(count):
    """On every page: where a line has no room for them, the bands have them."""

    def product(tree):
        return sum((w @ w.T).sum() for w in tree.values())

    view = see.grad(product, {f"layer{n}": np.ones((8, 64)) for n in range(count)})
    (pane,) = [pane for pane in view.frame().panes if pane.kind == "scene"]
    for scene in filter(None, (pane.scene, pane.middle, pane.narrow)):
        places = sorted(
            (mark.x + mark.halo.has["x"], mark.halo.has["width"])
            for mark in scene.marks
            if mark.halo and any(key.startswith("atree") for key in mark.keys)
        )
        for (x, wide), (after, _) in itertools.pairwise(places):
            assert x + wide <= after + 1


def test_a_literal_among_the_parts_is_counted_once():
    """The cotangent 1.0 of a result that reads `x` itself is one part of five."""

    def newton(a):
        x = a - 1.0
        return x - (x * x - a) / (2.0 * x)

    view = see.grad(newton, 4.0)
    assert "a is used 5 times, so 5 cotangents add" in " ".join(view.text().split())
    assert view.text(full=True).count("ct_a += 1") == 1


def test_the_sign_of_a_sum_stands_beside_its_glyph():
    def f(x):
        y = jnp.exp(x)
        return jnp.sin(y) + jnp.cos(y) + jnp.tanh(y) + y * 3.0

    pane = next(p for p in see.grad(f, 2.0).frame().panes if p.kind == "scene")
    for scene in filter(None, (pane.scene, pane.narrow)):
        (plus,) = [
            (mark.x, mark.y)
            for mark in scene.marks
            for part in mark.drawn
            if part.tag == "text" and part.text == "+5"
        ]
        dots = [
            mark.x
            for mark in scene.marks
            if abs(mark.y - plus[1]) < 20 and mark.label == "[], cotangent"
        ]
        assert plus[0] + 26 <= min(dots) - 5, (plus, dots)


def test_dashed_arrows_pass_behind_the_words_of_others():
    panes = see.grad(unsafe, np.float32([0, 0])).frame().panes
    (pane,) = (p for p in panes if p.scene and "backward" in p.scene.label)
    for scene in (pane.scene, pane.middle):
        grounds = [m for m in scene.marks if [p.tag for p in m.drawn] == ["rect"]]
        dashed = [
            number
            for number, mark in enumerate(scene.marks)
            if mark.label == "arrow" and "stroke-dasharray" in mark.drawn[0].has
        ]
        opened = [
            (number, part)
            for number, mark in enumerate(scene.marks)
            for part in mark.drawn
            if part.text == "open"
        ]
        assert dashed and len(opened) > 1
        for number, word in opened:
            assert number > max(dashed)
            y = word.has["y"]
            within = [m for m in grounds if m.y < y < m.y + m.drawn[0].has["height"]]
            ground = within[0].drawn[0].has["fill"] if within else "base"
            assert word.has.get("stroke") == ground
