"""What views are given: static arguments, transformed functions, trees of inputs."""

import functools

import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import checkpoint, grad, jit, make_jaxpr, random, vmap
from minijax.compile.titles import title_of
from minijax_lab.explain.calls import inputs_in_words, tree_in_words

X = jnp.ones(3)


@functools.partial(jit, static_argnames="kind", donate_argnames="x")
def activation(x, kind="sin", *, scale=2.0):
    out = jnp.tanh(x) if kind == "tanh" else jnp.sin(x)
    return out * scale


@functools.partial(jit, static_argnums=(1,))
def noise(key, shape):
    return random.normal(key, shape)


@pytest.mark.parametrize("view", [see.trace, see.jaxpr, see.keys])
@pytest.mark.parametrize(
    "args, kwargs",
    [((X,), {"kind": "tanh"}), ((X, "tanh"), {}), ((X, "tanh"), {"scale": 3.0})],
)
def test_views_take_static_and_keyword_arguments(view, args, kwargs):
    shown = view(activation, *args, **kwargs)
    assert "activation(f32[3]" in shown.recording.headline
    assert "kind='tanh'" in shown.recording.headline
    if view is not see.keys:
        assert "tanh" in shown.text() and " = sin" not in shown.text()


def test_other_static_values_are_other_programs():
    text = see.jaxpr(activation, X).text()
    assert " = sin" in text and "tanh" not in text
    assert "normal" in see.keys(noise, random.key(0), (2, 3)).text()
    assert see.keys(noise, random.key(0), (2, 3)).recording.headline.startswith(
        "keys of noise(key<fry>[], shape=(2, 3)): 1 key, 1 draw"
    )


def test_a_text_or_a_function_need_not_be_declared_static():
    def apply(x, how, name):
        return how(x) if name == "apply" else x

    text = see.jaxpr(apply, X, jnp.cos, name="apply").text()
    assert "apply(f32[3], how=cos, name='apply')" in text and "cos" in text


def test_static_arguments_go_through_transformations():
    def total(x, kind):
        return jnp.sum(activation(x, kind))

    summed = jit(total, static_argnums=1)
    headline = see.jaxpr(grad(summed), X, "tanh").recording.headline
    assert headline.startswith("jaxpr of grad(total)(f32[3], kind='tanh')")
    headline = see.memory(grad(summed), X, "tanh").recording.headline
    assert headline.startswith("memory of grad(total)")


# ---- titles --------------------------------------------------------------------------


def loss(w, x):
    return jnp.sum(jnp.tanh(w * x))


@pytest.mark.parametrize(
    "function, title",
    [
        (loss, "loss"),
        (jit(loss), "loss"),
        (grad(loss), "grad(loss)"),
        (grad(loss, argnums=(0, 1)), "grad(loss, argnums=(0, 1))"),
        (vmap(loss, in_axes=(None, 0)), "vmap(loss, in_axes=(None, 0))"),
        (jit(vmap(grad(jit(loss)))), "vmap(grad(loss))"),
        (grad(checkpoint(loss)), "grad(checkpoint(loss))"),
        (grad(lambda x: x), "grad(lambda)"),
        (functools.partial(loss, 1.0), "loss"),
    ],
)
def test_titles_tell_the_transformations(function, title):
    assert title_of(function) == title


def test_views_say_what_the_function_was_made_from():
    headline = see.jaxpr(grad(loss), X, X).recording.headline
    assert headline.startswith("jaxpr of grad(loss)(f32[3], f32[3])")
    headline = see.trace(grad(loss), X, X).recording.headline
    assert headline.startswith("trace of grad(loss)(f32[3], f32[3])")
    closed = make_jaxpr(vmap(grad(loss), in_axes=(None, 0)))(X, jnp.ones((2, 3)))
    assert "vmap(grad(loss), in_axes=(None, 0))(" in see.jaxpr(closed).text()
    # What is printed stays as JAX prints it.
    inner = make_jaxpr(jit(grad(loss)))(X, X)
    assert "name=loss" in str(inner) and "grad" not in str(inner)


def test_a_difference_names_both_sides():
    first = make_jaxpr(grad(loss))(X, X)
    second = make_jaxpr(vmap(grad(loss)))(jnp.ones((2, 3)), jnp.ones((2, 3)))
    view = see.jaxpr(first, second)
    assert view.recording.headline.startswith(
        "from grad(loss)(f32[3], f32[3]) to vmap(grad(loss))(f32[2,3], f32[2,3]): "
    )
    columns = view.frame().panes[0].columns
    assert [column.partition(")(")[0] for column in columns[1:]] == [
        "grad(loss",
        "vmap(grad(loss)",
    ]


# ---- inputs --------------------------------------------------------------------------


def network(params, x):
    for layer in params.values():
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x


PARAMS = {f"layer{i}": {"w": jnp.ones((4, 4)), "b": jnp.ones(4)} for i in range(12)}


def test_inputs_are_named_by_argument_and_path():
    view = see.jaxpr(network, PARAMS, jnp.ones((8, 4)))
    record = view.recording
    assert record.call == "network(params: dict of 12 layers (24 arrays), x: f32[8,4])"
    labels = [variable.label for variable in record.variables if variable.label]
    assert labels[0] == "params['layer0']['b']" and labels[-1] == "x"
    first = next(e for e in record.equations if e.primitive == "dot_general")
    name = record.variables[first.operands[1]].name
    assert f"{name} is params['layer0']['w']" in view.detail(first)
    assert "reads params['layer0']['w']" in view.uses_in_words(first)
    pane = view.frame().panes[-1]
    assert pane.title == "inputs" and len(pane.rows) == 25
    # Every equation that reads an input lights its row.
    assert f"e{first.id}" in pane.rows[1].keys


def test_labels_are_those_of_the_leaves_in_order():
    record = see.jaxpr(network, PARAMS, jnp.ones((8, 4))).recording
    for variable in record.variables:
        if variable.label.endswith("['w']"):
            assert variable.type == "f32[4,4]"
        elif variable.label.endswith("['b']"):
            assert variable.type == "f32[4]"


def test_plain_inputs_are_told_by_their_types():
    view = see.jaxpr(loss, X, X)
    assert view.recording.call == "loss(f32[3], f32[3])"
    assert [pane.title for pane in view.frame().panes][-1] != "inputs"


@pytest.mark.parametrize(
    "paths, told",
    [
        (["['w']", "['b']"], "dict of 2 entries"),
        (["['layer0']['w']", "['layer0']['b']"], "dict of 1 entry (2 arrays)"),
        (["[0]", "[1]", "[2]"], "sequence of 3 entries"),
        (["[0]['w']", "[0]['b']", "[1]['w']"], "sequence of 2 entries (3 arrays)"),
        ([".w", ".b"], "tree of 2 entries"),
    ],
)
def test_trees_in_words(paths, told):
    assert tree_in_words(paths) == told


def test_many_plain_inputs_are_named():
    names = ["a", "b", "c", "d", "e"]
    assert inputs_in_words(names, ["f32[]"] * 5)[0] == "a: f32[]"


def test_the_status_line_names_the_input(show):
    page = show(see.jaxpr(network, PARAMS, jnp.ones((8, 4))))
    # Rows far from the last step come after the first paint.
    page.click("tr:has-text('z:f32[8,4] = dot_general')")
    assert "is params['layer0']['w']" in page.inner_text(".mj-detail")
