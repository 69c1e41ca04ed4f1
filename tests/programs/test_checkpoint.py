"""checkpoint: the same values, JAX's programs, and what is saved."""

import functools
import re

import numpy as np
import pytest

import minijax
from minijax.core import language
from minijax.programs import checkpointing as ad_checkpoint
from tests.programs.sides import LIBRARIES, same_error, same_text, same_values

X = np.array([0.5, -1.0, 2.0], np.float32)
W = np.arange(9, dtype=np.float32).reshape(3, 3) / 10
BATCH = np.arange(6, dtype=np.float32).reshape(2, 3) / 4

POLICIES = {
    "none": lambda lib: None,
    "everything": lambda lib: lib.checkpoint_policies.everything_saveable,
    "nothing": lambda lib: lib.checkpoint_policies.nothing_saveable,
    "dots": lambda lib: lib.checkpoint_policies.dots_saveable,
    "dots without batch": lambda lib: (
        lib.checkpoint_policies.dots_with_no_batch_dims_saveable
    ),
    "names": lambda lib: lib.checkpoint_policies.save_only_these_names("a"),
    "other names": lambda lib: lib.checkpoint_policies.save_any_names_but_these("a"),
    "all but names": lambda lib: (
        lib.checkpoint_policies.save_anything_except_these_names("a")
    ),
    "both": lambda lib: lib.checkpoint_policies.save_from_both_policies(
        lib.checkpoint_policies.dots_saveable,
        lib.checkpoint_policies.save_only_these_names("b"),
    ),
}


def name_of(lib):
    if lib is minijax:
        return ad_checkpoint.checkpoint_name
    from jax.ad_checkpoint import checkpoint_name

    return checkpoint_name


def layer(lib, activation="relu"):
    """A product, names, a custom rule (relu) and an inner jit."""
    name = name_of(lib)
    activate = lib.nn.relu if activation == "relu" else lib.numpy.exp

    def layer(w, x):
        y = name(lib.numpy.sin(w @ x), "a")
        z = lib.jit(lambda y: name(lib.numpy.cos(y), "b") * y)(y)
        return activate(z) + lib.numpy.tanh(w @ z)

    return layer


def network(lib, policy=None, activation="relu"):
    checkpointed = lib.checkpoint(layer(lib, activation), policy=policy)
    return lambda w, x: checkpointed(w, checkpointed(w, x)).sum()


TRANSFORMS = {
    "alone": lambda lib, f: f,
    "grad": lambda lib, f: lib.grad(f, argnums=(0, 1)),
    "grad of jit": lambda lib, f: lib.grad(lib.jit(f), argnums=(0, 1)),
    "jit of grad": lambda lib, f: lib.jit(lib.grad(f, argnums=(0, 1))),
    "jvp": lambda lib, f: lambda w, x: lib.jvp(f, (w, x), (w, x)),
    "vmap": lambda lib, f: lambda w, x: lib.vmap(f, (None, 0))(w, BATCH),
    "vmap of grad": lambda lib, f: (
        lambda w, x: lib.vmap(lib.grad(f, argnums=(0, 1)), (None, 0))(w, BATCH)
    ),
    "grad of vmap": lambda lib, f: lib.grad(
        lambda w, x: lib.vmap(f, (None, 0))(w, BATCH * x).sum(), argnums=(0, 1)
    ),
    "second": lambda lib, f: (
        lambda w, x: lib.jvp(lambda x: lib.grad(f, argnums=1)(w, x), (x,), (x,))
    ),
    "reverse over reverse": lambda lib, f: lib.grad(
        lambda w, x: (lib.grad(f, argnums=1)(w, x) ** 2).sum()
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("transform", ["grad", "jit of grad", "vmap of grad"])
def test_policies(policy, transform):
    def make(lib, activation="relu"):
        f = network(lib, POLICIES[policy](lib), activation)
        return TRANSFORMS[transform](lib, f)

    same_values(make, W, X)
    if transform == "grad":
        # Of a custom rule that is called twice JAX prints two equal programs.
        same_text(lambda lib: make(lib, "exp"), W, X)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transformations(transform):
    def make(lib):
        return TRANSFORMS[transform](lib, network(lib))

    same_values(make, W, X)


@pytest.mark.parametrize("transform", ["alone", "jvp", "vmap", "grad of jit"])
def test_texts(transform):
    same_text(
        lambda lib: TRANSFORMS[transform](lib, network(lib, activation="exp")), W, X
    )


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_values_are_those_without_checkpoint(transform):
    policy = minijax.checkpoint_policies.dots_saveable
    plain = layer(minijax)
    results = [
        TRANSFORMS[transform](minijax, f)(W, X)
        for f in (
            network(minijax, policy),
            lambda w, x: plain(w, plain(w, x)).sum(),
        )
    ]
    leaves = minijax.tree_util.tree_leaves
    for ours, expected in zip(*map(leaves, results), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def nested(lib):
    @lib.checkpoint
    def inner(x):
        return lib.numpy.sin(lib.numpy.sin(x))

    @lib.checkpoint
    def outer(x):
        return inner(lib.numpy.cos(inner(x)))

    return lambda x: outer(x).sum()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_nested(order):
    def make(lib):
        f = nested(lib)
        for _ in range(order):
            f = lib.grad(lambda x, f=f: f(x).sum())
        return f

    same_values(make, X)
    if order < 2:
        same_text(make, X)


def test_closed_over_values():
    def make(lib):
        fixed = lib.numpy.ones(3)

        def f(x):
            g = lib.checkpoint(lambda y: lib.numpy.sin(y * fixed * x))
            return g(x * 2.0).sum()

        return lib.grad(f)

    same_values(make, X)
    same_values(lambda lib: lib.jit(make(lib)), X)
    same_text(make, X)


@pytest.mark.parametrize("prevent_cse", [True, False, (True, False), (False, True)])
def test_prevent_cse(prevent_cse):
    def make(lib):
        f = lib.checkpoint(
            lambda x, y: lib.numpy.sin(x * y["a"]), prevent_cse=prevent_cse
        )
        return lib.grad(lambda x: f(x, {"a": x}).sum())

    same_values(make, X)
    same_text(make, X)


def barriers(lib, f, *args):
    text = lib.jit(f).lower(*args).as_text()
    return [
        line.count("tensor<") for line in re.findall(r".*optimization_barrier.*", text)
    ]


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_barriers(prevent_cse):
    counts = []
    for lib in LIBRARIES:
        f = lib.checkpoint(lambda x: lib.numpy.sin(x) * x, prevent_cse=prevent_cse)
        assert barriers(lib, f, X) == []
        counts.append(barriers(lib, lib.grad(lambda x: f(x).sum()), X))
    assert counts[0] == counts[1] == ([2] if prevent_cse else [])


def test_the_forward_pass_runs_again():
    """The program of the gradient computes the sines of the forward pass twice."""

    def count(f):
        text = minijax.jit(minijax.value_and_grad(f)).lower(X).as_text()
        return text.count("stablehlo.sine")

    def f(x):
        for _ in range(4):
            x = minijax.numpy.sin(x)
        return x.sum()

    # Plainly there are four; checkpointed, all but the last are computed twice.
    assert (count(f), count(minijax.checkpoint(f))) == (4, 7)


# ---- static arguments and options ----------------------------------------------------


def test_static_arguments():
    def make(lib):
        @functools.partial(lib.checkpoint, static_argnums=(1, -1))
        def f(x, negate, *, scale=1.0, table=None):
            return (-x if negate else x) * scale

        @functools.partial(lib.remat, static_argnums=1)
        def g(x, table):
            return x * table["a"] if table else x

        return lambda x: (f(x, True), f(x, False, scale=2.0), g(x, {"a": 3.0}))

    same_values(make, X)


def test_trees():
    def make(lib):
        f = lib.checkpoint(lambda p, *, q: {"out": [p["a"] * q, lib.numpy.sin(p["b"])]})
        return lib.grad(lambda x: f({"a": x, "b": x * 2.0}, q=x)["out"][1].sum())

    same_values(make, X)


ERRORS = {
    "static argument out of range": lambda lib: lib.checkpoint(
        lambda x: x, static_argnums=(5,)
    ),
    "static argument no number": lambda lib: lib.checkpoint(
        lambda x: x, static_argnums="a"
    ),
    "prevent_cse": lambda lib: lambda x: lib.checkpoint(lambda x: x, prevent_cse=3)(x),
    "concrete": lambda lib: lambda x: lib.checkpoint(lambda x: x, concrete=True)(x),
    "truth of a tracer": lambda lib: lib.checkpoint(lambda x: x if x.sum() else -x),
    "policy's answer": lambda lib: lib.grad(
        lambda x: lib.checkpoint(
            lambda x: lib.numpy.sin(lib.numpy.sin(x)), policy=lambda *_, **__: "yes"
        )(x).sum()
    ),
    "names in both lists": lambda lib: (
        lambda x: lib.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a", "b"],
            offload_src="device",
            offload_dst="pinned_host",
        )
    ),
    "both policies": lambda lib: lib.grad(
        lambda x: lib.checkpoint(
            lambda x: lib.numpy.sin(lib.numpy.sin(x)),
            policy=lib.checkpoint_policies.save_from_both_policies(
                lambda *_, **__: 1, lambda *_, **__: True
            ),
        )(x).sum()
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    same_error(ERRORS[name], X)


# ---- residuals in another memory -----------------------------------------------------

OFFLOADING = {
    "dots": lambda lib: lib.checkpoint_policies.offload_dot_with_no_batch_dims(
        "device", "pinned_host"
    ),
    "names": lambda lib: lib.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"],
        names_which_can_be_offloaded=["b"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
}


@pytest.mark.parametrize("policy", OFFLOADING)
def test_offloaded_residuals(policy):
    def make(lib):
        return lib.grad(network(lib, OFFLOADING[policy](lib)))

    same_text(make, W, X)
    assert "<host>" in str(minijax.make_jaxpr(make(minijax))(W, X))
    same_values(make, W, X)
    same_values(lambda lib: lib.jit(make(lib)), W, X)


def test_offloaded_residuals_of_a_loop():
    def make(lib):
        body = lib.checkpoint(
            lambda c, _: (name_of(lib)(lib.numpy.sin(c), "b") * c, None),
            policy=OFFLOADING["names"](lib),
        )
        return lib.grad(lambda x: lib.lax.scan(body, x, None, length=3)[0].sum())

    same_text(make, X)
    same_values(make, X)
    same_values(lambda lib: lib.jit(make(lib)), X)


def test_offloaded_residual_lies_with_the_host():
    def f(x):
        return minijax.numpy.sin(name_of(minijax)(minijax.numpy.sin(x), "b")).sum()

    g = minijax.checkpoint(f, policy=OFFLOADING["names"](minijax))
    _, pullback = minijax.vjp(g, X)
    kinds = {
        leaf.sharding.memory_kind
        for leaf in minijax.tree_util.tree_leaves(pullback)
        if isinstance(leaf, minijax.Array)
    }
    assert "pinned_host" in kinds


def test_memory_that_does_not_exist():
    policy = minijax.checkpoint_policies.offload_dot_with_no_batch_dims(
        "device", "moon"
    )
    with pytest.raises(ValueError, match="'device', 'pinned_host'; got 'moon'"):
        minijax.grad(network(minijax, policy))(W, X)


# ---- refs and custom rules inside ----------------------------------------------------


def test_refs_inside():
    def make(lib):
        @lib.checkpoint
        def f(x):
            ref = lib.new_ref(x)
            ref[0] = lib.numpy.sin(x[1])
            return ref[...] * x

        return lib.grad(lambda x: f(x).sum())

    same_values(make, X)
    same_values(lambda lib: lib.jit(make(lib)), X)
    same_text(make, X)


def test_custom_rules_inside():
    def make(lib):
        @lib.custom_vjp
        def f(x):
            return lib.numpy.sin(x)

        f.defvjp(lambda x: (f(x), lib.numpy.cos(x)), lambda res, ct: (ct * res * 5.0,))

        @lib.custom_jvp
        def g(x):
            return lib.numpy.exp(x)

        g.defjvp(lambda p, t: (g(*p), t[0] * 3.0))
        return lib.grad(lambda x: lib.checkpoint(lambda x: g(f(x)))(x).sum())

    same_values(make, X)
    same_text(make, X)


# ---- names and saved residuals -------------------------------------------------------


def test_checkpoint_name():
    same_values(lambda lib: lambda x: name_of(lib)({"a": x}, "n"), X)
    same_text(lambda lib: lib.grad(lambda x: name_of(lib)(x * x, "n").sum()), X)
    same_text(lambda lib: lib.vmap(lambda x: name_of(lib)(x, "n")), BATCH)


def residual_functions(lib):
    f = layer(lib)
    named = lib.checkpoint_policies.save_only_these_names("a")
    return {
        "plain": (lambda x: lib.numpy.sin(x) * lib.numpy.cos(x), (X,)),
        "layer": (f, (W, X)),
        "checkpointed": (lib.checkpoint(f), (W, X)),
        "named": (lib.checkpoint(f, policy=named), (W, X)),
        "mixed": (lambda w, x: lib.checkpoint(f)(w, x) * lib.numpy.sin(x), (W, X)),
        "constant": (lambda x: lib.numpy.ones(3) * lib.numpy.sin(x), (X,)),
    }


@pytest.mark.parametrize("name", residual_functions(minijax))
def test_saved_residuals(name, capsys):
    texts = []
    for lib in LIBRARIES:
        f, args = residual_functions(lib)[name]
        module = ad_checkpoint if lib is minijax else lib.ad_checkpoint
        module.print_saved_residuals(f, *args)
        # The functions of one library stand on other lines than those of the other.
        printed = capsys.readouterr().out
        text = re.sub(r" from \S+\.py:\S+ \(.*\)", " from LINE", printed)
        texts.append(sorted(text.splitlines()))
    assert texts[0] == texts[1]


def test_saved_residuals_name_the_line():
    (aval, source), *_ = ad_checkpoint.saved_residuals(minijax.numpy.sin, X)
    assert isinstance(aval, language.ShapedArray)

    def f(x):
        return minijax.numpy.exp(minijax.numpy.sin(x))

    sources = [source for _, source in ad_checkpoint.saved_residuals(f, X)]
    assert any("output of cos" in s and "test_checkpoint.py" in s for s in sources)
