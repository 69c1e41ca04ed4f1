"""`see.grad`, `see.vmap` and `see.memory` of jaxprs that real JAX traced."""

import functools

import jax
import jax.extend
import jax.numpy
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

import minijax
import minijax_widgets as see
from minijax_lab.explain.foreign_programs import ForeignProgram

X = np.linspace(0.1, 0.9, 4, dtype=np.float32)
M = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
ORDER = np.array([2, 0, 1, 3], np.int32)
B, K = np.ones((2, 8, 8, 3), np.float32), np.ones((3, 3, 3, 5), np.float32)
jnp = jax.numpy


def network(w, x):
    for _ in range(3):
        x = jnp.tanh(w @ x)
    return jnp.sum(jax.nn.relu(x))


def loop(x):
    return jax.lax.scan(lambda c, a: (jnp.sin(c) * a, c), np.float32(1), x)[0]


def branch(x):
    return jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x).sum()


@functools.partial(
    jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names("kept")
)
def named(x):
    return jnp.sum(jnp.sin(checkpoint_name(jnp.sin(x), "kept")))


def sampled(x):
    return jnp.sum(jax.random.normal(jax.random.key(3), (4,)) * x)


def convolved(b, k):
    return jax.lax.conv_general_dilated(
        b, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    ).mean()


PROGRAMS = [
    (network, (M, X)),
    (loop, (X,)),
    (branch, (X,)),
    (named, (X,)),
    (sampled, (X,)),
    (convolved, (B, K)),
    (lambda x: jnp.sum(x[ORDER] ** 2), (X,)),
    (lambda x: jnp.zeros(4).at[ORDER].add(x).max(), (X,)),
    (lambda x: jax.nn.logsumexp(jnp.sort(x) * 2.0), (X,)),
    (lambda m: jnp.einsum("ij,jk->", m, m), (M,)),
    (lambda x: jnp.sum(jax.nn.softmax(jax.nn.gelu(x)) * x), (X,)),
    (lambda x: jnp.sum(jnp.round(x * 9.0) * x), (X,)),
    (lambda m: jnp.matmul(m, m, precision="highest").mean(), (M,)),
    (lambda x: jnp.var(jnp.cumsum(jnp.pad(x, 1))), (X,)),
]


@pytest.mark.parametrize("function, args", PROGRAMS)
def test_the_program_computes_what_jax_computes(function, args):
    """So do its derivative and its batched program: nothing was read wrongly."""
    program = ForeignProgram(jax.make_jaxpr(function)(*args), "test")
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    close(program(*args), function(*args))
    close(minijax.grad(program)(*args), jax.grad(function)(*args), rtol=1e-4)
    axes = (0, *[None] * (len(args) - 1))
    many = (np.stack([args[0], args[0] * 0.5, -args[0]]), *args[1:])
    close(minijax.vmap(program, axes)(*many), jax.vmap(function, axes)(*many))


@pytest.mark.parametrize("function, args", PROGRAMS)
def test_the_way_back_has_the_equations_of_jax(function, args):
    closed = jax.make_jaxpr(function)(*args)
    program = see.grad(closed).recording.program
    every = program.forward + program.extra + program.unused + program.backward
    calls = {"remat2", "jit"} & {eqn.primitive.name for eqn in closed.eqns}
    theirs = jax.make_jaxpr(jax.grad(function))(*args).eqns
    if function is not named and not calls:
        assert every == len(theirs)
    assert program.arguments[0].name == closed.jaxpr.debug_info.arg_names[0]


@pytest.mark.parametrize("function, args", PROGRAMS)
def test_the_batch_has_the_equations_of_jax(function, args):
    def count(jaxpr):
        return sum(
            1
            + sum(
                count(inner) for inner in jax.extend.core.jaxprs_in_params(eqn.params)
            )
            for eqn in jaxpr.eqns
        )

    axes = (0, *[None] * (len(args) - 1))
    many = (np.stack([args[0]] * 3), *args[1:])
    closed = jax.make_jaxpr(function)(*args)
    record = see.vmap(closed, *many, in_axes=axes).recording
    assert record.size == 3
    batched = jax.make_jaxpr(jax.vmap(function, axes))(*many)
    assert record.after == count(batched.jaxpr)
    without = see.vmap(closed, in_axes=axes, axis_size=3).recording
    assert (without.before, without.after) == (record.before, record.after)


def test_what_a_policy_keeps_is_what_jax_keeps():
    """The policy is JAX's own, asked by minijax."""
    from jax._src.ad_checkpoint import saved_residuals

    kept = see.grad(jax.make_jaxpr(named)(X)).recording.program.residuals
    theirs = [
        aval for aval, said in saved_residuals(named, X) if "argument" not in said
    ]
    own = [r for r in kept if r.origin != "argument"]
    assert len(own) == len(theirs)
    assert sum(r.bytes for r in own) == sum(a.size * 4 for a in theirs)


@jax.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * 2.0,))


def test_what_is_not_carried_is_said():
    closed = jax.make_jaxpr(lambda x: clipped(x) * 2.0)(1.0)
    view = see.grad(closed)
    said = " ".join(view.text().split())
    assert "minijax's rules transformed it" in said
    assert "The backward rule of clipped (custom_vjp)" in said
    assert "what it does not carry" in view.static_html()
    batched = see.vmap(closed, axis_size=5)
    assert "not carried: JAX traced this program" in batched.text()
    assert "not carried" not in see.grad(lambda x: x * x, 1.0).text()
    memory = see.memory(jax.make_jaxpr(jax.grad(network))(M, X)).text()
    assert "not carried: what autodiff keeps" in memory


def test_source_lines_are_those_that_jax_recorded():
    row = see.grad(jax.make_jaxpr(network)(M, X)).recording.program.rows[0]
    assert row.source == "w @ x"


@pytest.mark.parametrize(
    "run, message",
    [
        (lambda: see.vmap(jax.make_jaxpr(jnp.fft.fft)(X), axis_size=2), "'fft'"),
        (lambda: see.vmap(jax.make_jaxpr(jnp.sin)(X)), "axis_size="),
        (lambda: see.grad(jax.make_jaxpr(network)(M, X), M), "got 1 arguments"),
        (lambda: see.grad(jax.make_jaxpr(loop)(X), X[:2]), r"f32\[2\] for x"),
        (
            lambda: see.grad(jax.jit(network), M, X),
            r"\(jax.jit\(network\)\)\(M, X\), M, X",
        ),
        (
            lambda: see.vmap(jax.jit(network), M, X),
            r"\(jax.jit\(network\)\)\(M, X\), M, X",
        ),
        (
            lambda: see.memory(jax.jit(network), M, X),
            r"\(jax.jit\(network\)\)\(M, X\), M, X",
        ),
        (lambda: see.grad(network, M, X), r"make_jaxpr\(network\)\(M, X\), M, X"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(run, message):
    with pytest.raises(TypeError, match=message):
        run()


@pytest.mark.skipif(
    not hasattr(jax.make_jaxpr(jax.numpy.sin)(1.0), "with_consts"),
    reason="this jax's jaxprs are read",
)
def test_jaxprs_of_a_later_jax_are_refused():
    for view in (see.grad, see.vmap):
        with pytest.raises(TypeError, match="of a later JAX"):
            view(jax.make_jaxpr(jnp.sin)(X), X)


TREE = {"w": M, "b": X}


def loss(p, x):
    return jnp.sum(jnp.tanh(x @ p["w"] + p["b"]) ** 2)


def test_trees_of_jax_arrays_are_arguments_of_a_jaxpr():
    """`argnums` counts the trees then, and nothing is flattened by hand."""
    tree = jax.tree.map(jnp.asarray, TREE)
    program = jax.make_jaxpr(loss)(tree, X)
    whole = see.grad(program, tree, jnp.asarray(X))
    flat = see.grad(program, X, M, X, argnums=(0, 1))
    assert whole.text(full=True) == flat.text(full=True)
    second = see.grad(program, tree, X, argnums=1)
    assert second.text() == see.grad(program, X, M, X, argnums=2).text()
    with pytest.raises(TypeError, match="got 2 arguments for a jaxpr of JAX with 3"):
        see.grad(program, {"w": M}, X)


@pytest.mark.parametrize("jitted", [False, True])
def test_functions_of_jax_are_traced_by_jax_where_that_is_enough(jitted):
    function = jax.jit(loss) if jitted else loss
    assert see.jaxpr(function, TREE, X).recording.text == str(
        jax.make_jaxpr(function)(TREE, X)
    )
    labels = [v.label for v in see.jaxpr(loss, TREE, X).recording.variables[:3]]
    assert labels == ["p['b']", "p['w']", "x"]
    assert "fusion of loss" in see.fusion(function, TREE, X).text()
    assert "stages of loss" in see.stages(function, TREE, X).text()


class Layer:
    """Calls JAX in a method, as a module of Flax does."""

    def __init__(self):
        self.kept = loss

    def apply(self, p, x):
        return loss(p, x)

    def ours(self, p, x):
        return minijax.numpy.sum(x)


LAYER = Layer()
LOSSES = [loss]


def through_a_layer(p, x):
    return LAYER.apply(p, x)


def by_an_attribute(p, x):
    return LAYER.kept(p, x)


def by_a_list(p, x):
    return LOSSES[0](p, x)


def by_an_import(p, x):
    import jax.numpy as theirs

    return theirs.sum(x)


def in_a_layer(p, x):
    return LAYER.ours(p, x)


def test_functions_that_close_over_what_calls_jax():
    def closed(p, x):
        return 2 * functools.partial(through_a_layer, p)(x)

    for function in (through_a_layer, closed, LAYER.apply):
        theirs = str(jax.make_jaxpr(function)(TREE, X))
        assert see.jaxpr(function, TREE, X).recording.text == theirs
        for view in (see.fusion, see.stages, see.collectives, see.placement):
            assert function.__name__ in view(function, TREE, X).text()
        with pytest.raises(TypeError, match=r"see\.grad\(jax\.make_jaxpr\("):
            see.grad(function, TREE, X)
    for function in (by_an_attribute, by_a_list, by_an_import):
        assert see.jaxpr(function, TREE, X).recording.text == str(
            jax.make_jaxpr(function)(TREE, X)
        )
    # What only has such a method, and calls another, is minijax's.
    assert see.grad(in_a_layer, TREE, X, argnums=1).text()


@pytest.mark.parametrize("view", ["grad", "vmap", "memory", "trace", "keys"])
def test_functions_of_jax_are_refused_with_the_line_to_write(view):
    """Plain, jitted, or known by their arguments: and the line that is told works."""
    args = jax.tree.map(jnp.asarray, (TREE, X))
    for function in (loss, jax.jit(loss), lambda p, x: x):
        with pytest.raises(TypeError) as told:
            getattr(see, view)(function, *args)
        name = function.__name__.replace("<lambda>", "f")
        line = f"see.jaxpr({name}, p, x)."
        if view in ("grad", "vmap", "memory"):
            line = f"see.{view}(jax.make_jaxpr({name})(p, x), p, x)"
            line += ", where make_jaxpr gets one example." * (view == "vmap")
            line += "." * (view != "vmap")
        assert str(told.value).endswith(line)
    if view in ("grad", "memory"):
        assert getattr(see, view)(jax.make_jaxpr(loss)(*args), *args).text()


def test_the_line_that_is_told_has_the_users_own_expressions():
    """And it runs, put in the place of the call; of vmap with one example."""
    p, x = jax.tree.map(jnp.asarray, (TREE, X))
    rows = jnp.stack([x, x])
    double = jax.jit(lambda p, x: 2 * loss(p, x))
    calls = {
        "see.grad": lambda: see.grad(jax.jit(loss), p, x),
        "see.memory": lambda: see.memory(jax.grad(double), p, 2 * x),
        "see.trace": lambda: see.trace(double, p, x),
        "see.scale": lambda: see.scale(double, p, x),
        "see.vmap": lambda: see.vmap(jax.vmap(jnp.sin), rows),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError) as told:
            call()
        text = str(told.value).rpartition(": see.")[2]
        line = f"see.{text}".removesuffix(", where make_jaxpr gets one example.")
        if name == "see.vmap":
            line = line.replace("(rows), rows", "(rows), jnp.stack([rows, rows])")
        assert eval(line.removesuffix("."), globals() | locals()).text()


def test_compiled_programs_of_jax_have_no_jaxpr():
    lowered = jax.jit(loss).lower(TREE, X)
    for stage in (lowered, lowered.compile()):
        with pytest.raises(TypeError, match="of JAX has none") as told:
            see.memory(stage)
    assert "see.memory(jitted.lower(x), compiled=True)" in str(told.value)
    assert see.memory(lowered, compiled=True).text()
