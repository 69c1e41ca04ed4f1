"""`see.vmap`: its equations and moves, held against the jaxprs of real JAX."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np
import pytest

import minijax
import minijax.numpy
import minijax_widgets as see
from minijax.core.batching import BatchTrace
from minijax_lab.explain.batching import record_vmap
from minijax_lab.explain.recording import Recording

F = np.float32


def library(module):
    return SimpleNamespace(
        np=module.numpy,
        lax=module.lax,
        nn=module.nn,
        vmap=module.vmap,
        jit=module.jit,
        grad=module.grad,
        checkpoint=module.checkpoint,
        custom_jvp=module.custom_jvp,
    )


OURS, THEIRS = library(minijax), library(jax)


def ones(*shape):
    return np.ones(shape, F)


def predict(m):
    def predict(w, b, x):
        return m.np.tanh(w @ x + b)

    return predict


def row_times_matrix(m):
    return lambda x, w: x @ w


def mlp(m):
    def mlp(params, x):
        for w, b in params:
            x = m.np.tanh(w @ x + b)
        return x

    return mlp


def attention(m):
    def attention(wq, wk, wv, x):
        q, k, v = x @ wq, x @ wk, x @ wv
        return m.nn.softmax(q @ k.T / 2.0) @ v

    return attention


def layer_norm(m):
    def norm(gain, shift, x):
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * m.lax.rsqrt(var + 1e-5) * gain + shift

    return norm


def rnn(m):
    def rnn(w, xs):
        def step(h, x):
            h = m.np.tanh(w @ h + x)
            return h, h.sum()

        return m.lax.scan(step, m.np.zeros(4), xs)

    return rnn


def branches(m):
    def branches(x):
        return m.lax.cond(x.sum() > 0, lambda y: m.np.sin(y), lambda y: y * 2.0, x)

    return branches


def one_branch(m):
    def one_branch(flag, x):
        return m.lax.cond(flag, lambda y: m.np.sin(y), lambda y: y * 2.0, x)

    return one_branch


def doubling(m):
    def doubling(x):
        return m.lax.while_loop(lambda y: y.sum() < 10.0, lambda y: y * 2.0, x)

    return doubling


def counted(m):
    def counted(x):
        return m.lax.fori_loop(0, 3, lambda i, y: m.np.sin(y) * i, x)

    return counted


def pick(m):
    return lambda table, i: table[i]


def ordered(m):
    return lambda x: m.np.sort(x)[::-1]


def filtered(m):
    def filtered(kernel, image):
        return m.lax.conv_general_dilated(image, kernel, (1, 1), "SAME")

    return filtered


def running(m):
    return lambda x: m.np.cumsum(x, axis=0)


def chosen(m):
    return lambda x: m.np.where(x > 0.5, x, 0.0)


def outer(m):
    return lambda x, y: m.np.outer(x, y).T + 1.0


def nested(m):
    return m.vmap(predict(m), in_axes=(None, None, 0))


def slope(m):
    return m.grad(lambda x, w: m.np.sin(w @ x).sum())


def replayed(m):
    return m.checkpoint(lambda x: m.np.sin(m.np.cos(x)))


def joined(m):
    return lambda x, y: m.np.concatenate([x, y * 2.0])


def sliced(m):
    return lambda x, i: m.lax.dynamic_slice(x, (i,), (3,))


def own_rule(m):
    @m.custom_jvp
    def f(x):
        return m.np.log(1.0 + m.np.exp(x))

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return lambda x: f(x) * 2.0


def added_up(m):
    return lambda x: x / m.lax.psum(x, "batch")


def shared(m):
    return lambda x, y: m.np.sin(y) * 2.0


PARAMS = [(ones(5, 8), ones(5)), (ones(5, 5), ones(5)), (ones(3, 5), ones(3))]
CASES = {
    "predict": (predict, (ones(4, 8), ones(4), ones(16, 8)), (None, None, 0)),
    "row times matrix": (row_times_matrix, (ones(16, 8), ones(8, 4)), (0, None)),
    "mlp": (mlp, (PARAMS, ones(16, 8)), (None, 0)),
    "mlp, weights batched": (
        mlp,
        ([(ones(16, 5, 8), ones(16, 5))], ones(8)),
        (0, None),
    ),
    "attention": (attention, (*[ones(8, 8)] * 3, ones(16, 6, 8)), (None,) * 3 + (0,)),
    "layer norm": (layer_norm, (ones(8), ones(8), ones(16, 6, 8)), (None, None, 0)),
    "rnn": (rnn, (ones(4, 4), ones(16, 7, 4)), (None, 0)),
    "cond": (branches, (ones(16, 3),), 0),
    "cond, one predicate": (one_branch, (np.array(True), ones(16, 3)), (None, 0)),
    "while": (doubling, (ones(16, 3),), 0),
    "fori_loop": (counted, (ones(3, 16),), 1),
    "gather": (pick, (ones(10, 4), np.arange(16)), (None, 0)),
    "sort": (ordered, (ones(5, 16),), 1),
    "conv": (filtered, (ones(4, 3, 3, 3), ones(16, 2, 3, 9, 9)), (None, 0)),
    "conv, kernels batched": (
        filtered,
        (ones(16, 4, 3, 3, 3), ones(2, 3, 9, 9)),
        (0, None),
    ),
    "cumsum": (running, (ones(5, 16),), 1),
    "where": (chosen, (ones(16, 5),), 0),
    "outer": (outer, (ones(16, 3), ones(4)), (0, None)),
    "outer, the other": (outer, (ones(3), ones(4, 16)), (None, 1)),
    "nested": (nested, (ones(4, 8), ones(4), ones(16, 5, 8)), (None, None, 0)),
    "grad": (slope, (ones(16, 8), ones(4, 8)), (0, None)),
    "checkpoint": (replayed, (ones(16, 3),), 0),
    "concatenate": (joined, (ones(16, 3), ones(4)), (0, None)),
    "dynamic_slice": (sliced, (ones(16, 9), np.arange(16)), 0),
    "custom_jvp": (own_rule, (ones(16, 3),), 0),
    "psum": (added_up, (ones(16, 3),), 0),
    "partly shared": (shared, (ones(16), ones(3)), (0, None)),
}
OPTIONS = {"psum": {"axis_name": "batch"}, "sort": {"out_axes": 1}}


@functools.cache
def recorded(name):
    make, args, in_axes = CASES[name]
    return record_vmap(make(OURS), *args, in_axes=in_axes, **OPTIONS.get(name, {}))


def of_one(x, axis):
    """The first example of an argument."""
    if axis is None:
        return x
    return jax.tree.map(lambda leaf: np.take(leaf, 0, axis), x)


def jax_jaxprs(name):
    """JAX's jaxpr for one example, and that for the batch."""
    make, args, in_axes = CASES[name]
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    options = OPTIONS.get(name, {})
    function = make(THEIRS)
    env = [(options["axis_name"], 16)] if "axis_name" in options else None
    one = [of_one(arg, axis) for arg, axis in zip(args, axes)]
    batched = jax.vmap(function, in_axes=in_axes, **options)
    return (
        jax.make_jaxpr(function, axis_env=env)(*one).jaxpr,
        jax.make_jaxpr(batched)(*args).jaxpr,
    )


def inner(eqn):
    """The programs in an equation of JAX."""
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else [value]:
            item = getattr(item, "jaxpr", item)
            if hasattr(item, "eqns"):
                yield item


def count(jaxpr, primitive=None):
    """The equations of a jaxpr of JAX, with those inside: all, or of one primitive."""
    return sum(
        (primitive is None or eqn.primitive.name == primitive)
        + sum(count(program, primitive) for program in inner(eqn))
        for eqn in jaxpr.eqns
    )


@pytest.mark.parametrize("name", CASES)
def test_equations_are_those_of_jax(name):
    record = recorded(name)
    one, many = jax_jaxprs(name)
    # Of a function that is only a call of a jitted one, the program itself is shown.
    call = [eqn.primitive.name for eqn in one.eqns] == ["jit"]
    assert (record.before, record.after) == (count(one) - call, count(many) - call)


@pytest.mark.parametrize("name", CASES)
def test_moves_are_the_transposes_that_jax_adds(name):
    """A move is a transpose in the batched program that no example asked for.

    Counted in JAX's jaxprs: the transposes of the batched one, with those in programs
    inside, less those of the one for one example.
    """
    one, many = jax_jaxprs(name)
    added = count(many, "transpose") - count(one, "transpose")
    assert recorded(name).moves == added


@pytest.mark.parametrize("name", CASES)
def test_rows_hold_every_batched_equation_once(name):
    record = recorded(name)
    shown = [eqn.id for row in record.rows for eqn in row.batched]
    assert len(shown) == len({*shown})
    hidden = [row for row in record.rows if row.note]
    if not hidden:
        assert len(shown) == record.after
    equations = [row for row in record.rows if row.kind == "equation"]
    if not hidden and not any(row.grid for row in record.rows):
        assert len(equations) == record.before
    assert all(row.why for row in record.rows)
    assert all(eqn.why for row in record.rows for eqn in row.batched)


@pytest.mark.parametrize("name", CASES)
def test_the_batch_axis_has_the_size_of_the_batch(name):
    record = recorded(name)
    for row in record.rows:
        for eqn in row.batched:
            for value in [*eqn.operands, *eqn.results]:
                if value.batch is not None:
                    assert value.shape[value.batch] == record.size
    for value in record.results:
        assert value.batch is not None


@pytest.mark.parametrize("name", CASES)
def test_without_the_batch_axis_the_shape_is_that_of_one_example(name):
    """The equation that does the work returns one example's shape, and the axis."""
    for row in recorded(name).rows:
        work = [eqn for eqn in row.batched if not eqn.inserted]
        if len(work) != 1 or row.kind != "equation" or row.grid:
            continue
        for value, one in zip(work[0].results, row.results):
            shape = [s for axis, s in enumerate(value.shape) if axis != value.batch]
            if value.followed and value.batch is not None:
                assert shape == one.shape


def test_predict_is_what_the_picture_shows():
    record = recorded("predict")
    assert record.headline == (
        "vmap of predict, 16: 3 equations became 5; the batch axis moved once"
    )
    assert record.call == "vmap(predict, in_axes=(None, None, 0))"
    product, total, tanh = record.rows
    assert record.telling == total.id
    assert product.text == "d:f32[4] = dot_general W x".replace("W", "w")
    assert product.batched[0].text == "d:f32[4,{16}] = dot_general w x"
    assert [eqn.text for eqn in total.batched] == [
        "e:f32[{16},4] = transpose d",
        "f:f32[1,4] = broadcast_in_dim b",
        "g:f32[{16},4] = add e f",
    ]
    assert [eqn.inserted for eqn in total.batched] == [True, True, False]
    assert total.rule == "broadcasting_batch"
    assert tanh.why == "entry by entry: the axis stays where it is, axis 0"


def test_a_recording_is_plain_data():
    record = recorded("rnn")
    again = Recording.from_dict(record.to_dict())
    assert again.to_dict() == record.to_dict()
    assert [row.text for row in again.rows] == [row.text for row in record.rows]


def test_two_vmaps_have_two_axes():
    record = recorded("nested")
    (out,) = record.results
    assert out.type == "f32[{16},{5}',4]"
    assert record.rows[1].results[0].type == "f32[{5}',4]"


def test_a_batched_predicate_is_a_grid():
    x = np.array([[1.0], [-1.0], [2.0]], F)
    record = record_vmap(branches(OURS), x, values=True)
    (row,) = [row for row in record.rows if row.grid]
    assert row.grid.examples == 3
    assert row.grid.branches == ["branch 0", "branch 1"]
    assert row.grid.chosen == [1, 0, 1]
    assert "all branches run" in row.why
    (alone,) = [row for row in recorded("cond").rows if row.grid]
    assert alone.grid.chosen is None
    assert not any(row.grid for row in recorded("cond, one predicate").rows)


def test_a_batched_predicate_of_a_loop_says_what_is_done():
    (loop,) = [row for row in recorded("while").rows if row.primitive == "while"]
    assert "until the last one is finished" in loop.why
    loops = [row for row in recorded("rnn").rows if "scan" in row.primitive]
    assert [row.program for row in recorded("rnn").rows].count("each turn") == 4
    assert "one loop for all examples" in loops[0].why


def test_static_and_keyword_arguments_of_a_jitted_function():
    @functools.partial(minijax.jit, static_argnums=1)
    def power(x, n, *, scale):
        return x**n * scale

    record = record_vmap(power, ones(16, 3), 3, scale=ones(16), in_axes=(0, None))
    assert record.before == 2
    assert record.call == "vmap(power, in_axes=(0, None))"
    assert [value.name for value in record.inputs] == ["x", "scale"]


@pytest.mark.parametrize(
    ("args", "options", "told"),
    [
        ((ones(3, 2), ones(4, 2)), {}, "inconsistent sizes"),
        ((ones(3, 2), ones(3, 2)), {"in_axes": (0, 0, 0)}, "in_axes"),
        ((ones(3, 2), ones(3, 2)), {"in_axes": 5}, "axis 5"),
        ((ones(3, 2), ones(3, 2)), {"in_axes": None}, "at least one non-None"),
        ((ones(3, 2), ones(3, 2)), {"in_axes": "first"}, "in_axes must be"),
        ((ones(3, 2), ones(3, 2)), {"out_axes": None}, "out_axes"),
    ],
)
def test_wrong_axes_are_told_as_vmap_tells_them(args, options, told):
    with pytest.raises((ValueError, TypeError), match=told):
        record_vmap(lambda x, y: x + y, *args, **options)


def test_nothing_batched_with_a_size_is_shown_as_repeated():
    record = record_vmap(lambda x: x + 1.0, ones(3), in_axes=None, axis_size=4)
    assert "nothing is batched" in record.headline
    assert record.rows[0].why == "the same for all examples: computed once"
    assert "4 times" in record.rows[-1].batched[0].why


def test_what_has_no_values_or_is_of_jax_is_refused():
    with pytest.raises(TypeError, match="pass an array, or leave out values=True"):
        struct = minijax.ShapeDtypeStruct((3, 2), F)
        record_vmap(lambda x: x, struct, values=True)
    with pytest.raises(TypeError, match="takes a function of JAX as its jaxpr"):
        record_vmap(jax.jit(lambda x: x), ones(3))
    with pytest.raises(TypeError, match="function of JAX|functions of JAX"):
        record_vmap(calls_jax, ones(3))
    with pytest.raises(TypeError, match="got int first"):
        record_vmap(3, ones(3))


def calls_jax(x):
    return jax.numpy.sin(x)


def test_the_recording_can_be_made_of_shapes_alone():
    struct = minijax.ShapeDtypeStruct((16, 8), F)
    record = record_vmap(
        predict(OURS), ones(4, 8), ones(4), struct, in_axes=(None, None, 0)
    )
    assert record.headline == recorded("predict").headline


# ---- the picture ---------------------------------------------------------------------


def view(name):
    make, args, in_axes = CASES[name]
    options = OPTIONS.get(name, {})
    return see.vmap(make(OURS), *args, in_axes=in_axes, **options)


def test_the_text_twin_is_that_of_the_views_guide():
    assert view("predict").text().split("\n") == [
        "vmap of predict, 16: 3 equations became 5; the batch axis moved once",
        "  d:f32[4] = dot_general w x      d:f32[4,{16}] = dot_general w x         "
        "axis 1: put there",
        "> e:f32[4] = add d b              e:f32[{16},4] = transpose d             "
        "axis 0: inserted by add",
        "                                  f:f32[1,4] = broadcast_in_dim b         "
        "unbatched: inserted by add",
        "                                  g:f32[{16},4] = add e f                 "
        "axis 0",
        "  f:f32[4] = tanh e               h:f32[{16},4] = tanh g                  "
        "axis 0",
    ]


@pytest.mark.parametrize("name", CASES)
def test_twin_and_picture_of_every_case(name):
    shown = view(name)
    rows = shown.text(full=True).split("\n")
    assert rows[0] == recorded(name).headline
    assert all(len(row) <= 100 and row.isascii() for row in rows[1:])
    frame = shown.frame()
    assert frame.panes[0].title.startswith("vmap(")
    assert 0 <= frame.telling < max(len(frame.steps), 1)
    lit = set(frame.steps[frame.telling].on)
    scenes = [frame.panes[0].scene, frame.panes[0].narrow]
    for scene in scenes:
        assert len(scene.marks) <= 2000
        assert any(lit.intersection(mark.keys) for mark in scene.marks)
    assert scenes[1].width < 560
    assert any(lit.intersection(row.keys) for row in frame.panes[1].rows)
    assert shown.to_svg().startswith("<svg")


@pytest.mark.parametrize("name", CASES)
def test_each_batched_equation_stands_in_one_line_of_the_picture(name):
    shown = view(name)
    drawn = [eqn for line in shown.lines for eqn in line.equations]
    every = [eqn.id for row in shown.recording.rows for eqn in row.batched]
    assert sorted(drawn) == sorted(every)
    assert sum(line.moves for line in shown.lines) == shown.recording.moves


def test_the_batch_axis_slides_in_the_step_that_moves_it():
    frame = view("predict").frame()
    moving = [mark for mark in frame.panes[0].scene.marks if mark.turns]
    (mark,) = moving
    step = frame.telling
    assert [turn[0] for turn in mark.turns] == [step, step + 1]
    assert mark.place(step) != mark.place(step - 1) == mark.place(step + 1)
    assert frame.steps[step].label == "transpose"


def test_no_example_is_drawn_more_than_once():
    few = see.vmap(predict(OURS), ones(4, 8), ones(4), ones(16, 8), in_axes=AXES)
    many = see.vmap(predict(OURS), ones(4, 8), ones(4), ones(512, 8), in_axes=AXES)
    scenes = [shown.frame().panes[0].scene for shown in (few, many)]
    assert len(scenes[0].marks) == len(scenes[1].marks)


AXES = (None, None, 0)


def test_layers_that_repeat_are_drawn_once():
    params = [(ones(32, 32), ones(32))] * 12
    shown = see.vmap(mlp(OURS), params, ones(16, 32), in_axes=(None, 0))
    assert shown.recording.headline.endswith("36 equations became 60; the batch axis "
                                             "moved 12 times")  # fmt: skip
    last = shown.lines[-1]
    assert last.text == "the same 11 times more: 33 equations, 55 batched"
    assert last.why == "the axis moves 11 times"
    assert len(shown.lines) == 6


@pytest.mark.turns(3)
def test_ten_thousand_equations_fold():
    def long(x):
        for number in range(5000):
            x = OURS.np.sin(x) * (1.0 + number % 3)
        return x

    shown = see.vmap(long, ones(4, 2))
    assert shown.recording.headline.startswith(
        "vmap of long, 4: 10,000 equations stayed 10,000"
    )
    assert len(shown.lines) <= 70
    assert len(shown.text().split("\n")) == 19
    assert any(row.look == "group" for row in shown.frame().panes[1].rows)


def test_the_grid_is_in_twin_and_picture():
    x = np.array([[1.0], [-1.0], [2.0]], F)
    shown = see.vmap(branches(OURS), x, values=True)
    text = shown.text(full=True)
    assert "branch 0   .#." in text
    assert "branch 1   #.#" in text
    labels = [mark.label for mark in shown.frame().panes[0].scene.marks]
    assert "example 1, branch 0: kept" in labels
    assert "example 1, branch 1: computed and discarded" in labels


def test_a_title_says_which_transformations_a_function_went_through():
    assert view("nested").recording.call.startswith("vmap(vmap(predict), in_axes")
    assert view("grad").recording.call.startswith("vmap(grad(lambda)")


def test_a_learners_own_trace_is_shown():
    class Mine(BatchTrace):
        seen = 0

        def process_primitive(self, primitive, args, params):
            Mine.seen += 1
            return super().process_primitive(primitive, args, params)

    with minijax.replace(BatchTrace=Mine):
        record = record_vmap(predict(OURS), *CASES["predict"][1], in_axes=AXES)
    assert record.headline == recorded("predict").headline
    assert Mine.seen == 3


def test_the_twin_says_where_each_result_of_a_loop_has_the_axis():
    def counted(x):
        def turn(i, x):
            return x + i

        return minijax.lax.fori_loop(0, 3, turn, x)

    (line,) = [
        line
        for line in see.vmap(counted, ones(4, 2)).text().split("\n")
        if "{4},2] = scan" in line
    ]
    assert line.endswith(" unbatched, axis 0")


def test_examples_merged_with_channels_are_not_called_unbatched():
    """A convolution's rule puts the examples into the channels by a reshape."""

    def both(x, k):
        return minijax.lax.conv(x, k, (1, 1), "SAME")

    x, k = np.ones((16, 1, 2, 5, 5), "f"), np.ones((16, 3, 2, 3, 3), "f")
    twin = see.vmap(both, x, k).text()
    assert "unbatched" not in twin
    assert twin.count("merged with an axis") == 3


def test_b_goes_to_the_equations_that_were_inserted():
    def f(w, b, x):
        return minijax.numpy.tanh(w @ x + b)

    view = see.vmap(f, ones(4, 8), ones(4), ones(16, 8), in_axes=(None, None, 0))
    (jump,) = view.frame().jumps
    assert jump.key == "b"
    assert [view.lines[step].eqn.inserted for step in jump.steps] == [True] * 2
    assert len(jump.steps) == view.recording.inserted
