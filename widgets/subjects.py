"""What the gallery shows: functions, trees and calls for every view.

Their lines stand in the reference pictures: add new ones at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import (
    ShapeDtypeStruct,
    checkpoint,
    grad,
    jit,
    lax,
    make_jaxpr,
    random,
    vmap,
)
from minijax_lab.explain import causes
from minijax_lab.explain.cards import CardRecording, Check, PrimitivesRecording
from minijax_widgets.card_view import CardView, PrimitivesView
from minijax_widgets.view import View

X = np.ones(4, np.float32)
EVIL = "</script><img src=x onerror=alert(1)>\u202eabc"
HEBREW = "\u05e9\u05dc\u05d5\u05dd"


def softmax(x):
    """The course's second function."""
    largest = jnp.max(x)
    e = jnp.exp(x - largest)
    return e / jnp.sum(e)


def puzzle(x):
    """Prints, loops, branches on a shape."""
    print("x is", x)
    total = 0.0
    for i in range(3):
        total = x * float(i) + total
    if x.shape[0] > 2:
        total = total / 4.0
    return total


def relu(x):
    """Asks for a value that is not there."""
    if x > 0:
        return x
    return 0.0


def long(x):
    """Many equations from one line."""
    for _ in range(500):
        x = jnp.sin(x) * 1.5
    return x


def layer(w, x):
    """One layer, called by `network`."""
    return jnp.tanh(x @ w)


def network(weights, x):
    """Calls a function of its own for each layer."""
    for w in weights:
        x = layer(w, x)
    return x


def careless(key, x):
    """Uses a key twice."""
    keep = random.bernoulli(key, 0.5, x.shape)
    return jnp.where(keep, x, 0.0) + random.normal(key, x.shape)


def careful(key):
    """Splits a key, and uses each part once."""
    first, second = random.split(key)
    return random.normal(first) + random.uniform(second)


def many_keys(key):
    """Uses each of many keys once."""
    return sum(random.normal(k) for k in random.split(key, 60))


def a_function_whose_name_goes_on_for_longer_than_anybody_would_read(
    the_first_argument_which_also_has_a_long_name,
):
    """One wide line."""
    return jnp.sum(jnp.reshape(jnp.transpose(jnp.reshape(the_first_argument_which_also_has_a_long_name, (2, 1, 2, 1)), (3, 1, 2, 0)), (2, 2)), axis=(0, 1))  # noqa: E501  # fmt: skip


def hostile() -> Callable[..., Any]:
    """A function whose name and text try to be HTML, or to turn the text around."""

    def evil(x):
        y = {"שלום": jnp.sin(x)}  # </script><script>alert(1)</script>
        return y["שלום"]  # <b>&amp;

    evil.__name__ = evil.__qualname__ = EVIL
    return evil


def sides() -> tuple[Any, Any]:
    """A program before and after `grad`."""

    def f(x):
        return jnp.sum(jnp.sin(x) * x)

    return make_jaxpr(f)(X), make_jaxpr(grad(f))(X)


def batched() -> tuple[Any, Any]:
    """A program before and after `vmap`."""
    return make_jaxpr(softmax)(X), make_jaxpr(vmap(softmax))(jnp.ones((16, 4)))


def cached() -> View:
    """Calls that hit and miss."""
    f = jit(lambda x, n: x * n)
    with see.cache(f) as view:
        for n in (2.0, 3.0, 2, np.float32(2)):
            f(X, n)
        f(X[:2], 2.0)
    return view


def cached_much() -> View:
    """Thousands of hits, and a miss for each of many shapes."""
    f = jit(lambda tree: tree["w"] * 2.0)
    with see.cache(f) as view:
        for size in range(1, 20):
            for _ in range(100):
                f({"w": np.ones(size, np.float32)})
    return view


def cached_once() -> View:
    """One call."""
    f = jit(jnp.sin)
    with see.cache(f) as view:
        f(X)
    return view


def cached_never() -> View:
    """No call."""
    jitted = jit(softmax)
    jitted.clear_cache()  # somebody else in this process may have called it
    with see.cache(jitted) as view:
        pass
    return view


def cached_unseen() -> View:
    """Calls that nobody watched."""
    f = jit(softmax)
    f(X)
    f(X[:2])
    return see.cache(f)


def cached_hostile() -> View:
    """Arguments with hostile names."""
    f = jit(lambda tree: jnp.sin(tree[EVIL]))
    with see.cache(f) as view:
        f({EVIL: X})
        f({EVIL: X[:2]})
    return view


def failed(function: Callable[..., Any], *args: Any) -> View:
    """The story of an exception."""
    try:
        function(*args)
    except Exception as error:
        return see.why(error)
    raise AssertionError(f"{function} did not fail")


def too_wide(x):
    """Adds what does not fit, after a long program."""
    for _ in range(30):
        x = jnp.sin(x)
    return x + jnp.ones(3)


def caused() -> View:
    """The story of an equation of a derivative."""
    with causes.recording():
        closed = make_jaxpr(grad(lambda x: jnp.sum(jnp.sin(x) * x)))(X)
    return see.why(next(e for e in closed.eqns if e.primitive.name == "cos"))


TREE = [{"w": jnp.ones((64, 32)), "b": jnp.zeros(32)}, {"w": X, "name": "tanh"}]
BIG_TREE = {f"layer{i}": {"w": X, "b": (X, None)} for i in range(150)}


def one(x):
    """One operation."""
    return jnp.sin(x)


def same(x):
    """Nothing at all."""
    return x


def inside(x):
    """Programs in programs."""
    return jit(softmax)(x) + jit(jit(softmax))(x)


def small_card() -> View:
    """A card that does not follow the primitives: one check fails."""
    rules = [["type", "there"], ["jvp", "there"], ["transpose", "none"]]
    checks = [
        Check("XLA against NumPy", "holds", 0.0),
        Check("jvp against differences", "holds", 3.9e-06),
        Check("batch against loop", "fails", 1.5),
    ]
    return CardView(
        CardRecording(
            call="card of sin",
            headline="primitive sin: sine of each entry; 2 of 3 checks hold",
            name="sin",
            meaning="sine of each entry",
            family="elementwise",
            block=['sin_p = unary("sin", np.sin)', "", "sin_p.def_jvp(sin_jvp)"],
            path="minijax/core/arithmetic.py",
            rules=rules,
            example="{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }",
            checks=checks,
            stablehlo=["%0 = stablehlo.sine %arg0 : tensor<3xf32>"],
            compiled=["sine"],
            derivative=["d sin(x) = dx * cos(x)", "ct_x = ct * cos(x)"],
        )
    )


def small_table() -> View:
    """A table of primitives that does not grow."""
    groups = {
        "elementwise": ["add", "cos", "sin", "sub"],
        "reduce": ["cumsum", "reduce_max", "sort"],
        "random": ["random_bits", "random_split"],
    }
    kinds = {name: "derived" for names in groups.values() for name in names}
    kinds |= {name: "linear" for name in ("add", "sub", "cumsum")}
    kinds |= {name: "none" for name in groups["random"]}
    return PrimitivesView(
        PrimitivesRecording(
            call="primitives",
            headline="9 primitives in 3 families",
            groups=groups,
            derivatives=kinds,
        )
    )


def deep(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.sum(x * x)


def remembered() -> View:
    """The memory of a gradient, with `checkpoint` beside it."""
    layers = [np.eye(16, dtype=np.float32)] * 6
    x = np.ones((32, 16), np.float32)
    return see.memory(grad(deep), layers, x, beside=grad(checkpoint(deep)))


def squared_error(weights, x, y):
    """The loss of `network`, whose layers have the same width."""
    return ((network(weights, x) - y) ** 2).mean()


def divided(x):
    """A layer norm that divides by a root."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    scale = jnp.sqrt(variance + 1e-5)
    return centred / scale


def multiplied(x):
    """A layer norm that multiplies."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    scale = lax.rsqrt(variance + 1e-5)
    return jnp.tanh(centred * scale)


def recurrent(w, u, xs):
    """A loop whose carry goes through a layer."""

    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, h

    _, hs = lax.scan(step, jnp.zeros(w.shape[0]), xs)
    return (hs**2).mean()


def twice(x):
    """Uses its argument twice."""
    return jnp.sin(x) * x


def unsafe(x):
    """Has a derivative that is not finite at 0."""
    return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()


def summed(x):
    """The sum of `long`."""
    return long(x).sum()


def floats(*shape):
    """An array of a shape, without its values."""
    return ShapeDtypeStruct(shape, np.float32)


def predict(w, b, x):
    """One layer on one example."""
    return jnp.tanh(w @ x + b)


def rolled(w, xs):
    """A loop over the rows of a series."""

    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(4), xs)


def either(x):
    """One of two branches, by the example's own sum."""
    return lax.cond(x.sum() > 0, lambda y: jnp.sin(y), lambda y: y * 2.0, x)


BATCH = (
    np.ones((4, 8), np.float32),
    np.ones(4, np.float32),
    np.ones((16, 8), np.float32),
)
SERIES = np.ones((16, 7, 4), np.float32)
SIGNS = np.array([[(-1.0) ** (i * i // 3)] * 4 for i in range(12)], np.float32)


def lstm(w, xs, start):
    """An LSTM over a sequence."""

    def cell(carry, x):
        h, c = carry
        gates = x @ w["x"] + h @ w["h"] + w["b"]
        i, f, g, o = jnp.split(gates, 4)
        c = lax.logistic(f) * c + lax.logistic(i) * jnp.tanh(g)
        h = lax.logistic(o) * jnp.tanh(c)
        return (h, c), h

    _, hs = lax.scan(cell, (start, start), xs)
    loss = jnp.mean(hs**2)
    return loss


LSTM = (
    {
        name: np.ones(shape, np.float32)
        for name, shape in (("x", (8, 64)), ("h", (16, 64)), ("b", 64))
    },
    np.ones((24, 8), np.float32),
    np.ones(16, np.float32),
)


class Nothing:
    """Nothing at all."""


def unused(x):
    """Has a result that is not made from its argument."""
    return 3.0
