"""The gallery: every view in every state on one page, to be looked at.

    python widgets/gallery.py gallery.html      writes the page
    python widgets/gallery.py --accept          renews the reference pictures

A test opens the page in light and dark and in several widths; another compares pictures
of some states with `tests/views/pictures/` (see `widgets/pictures.py`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import grad, jit, make_jaxpr, random, vmap
from minijax.explain import causes
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


def a_function_whose_name_goes_on_for_much_longer_than_anybody_would_like_to_read_it(
    the_first_argument_which_also_has_a_long_name,
):
    """One wide line."""
    return jnp.sum(jnp.reshape(jnp.transpose(jnp.reshape(the_first_argument_which_also_has_a_long_name, (2, 1, 2, 1)), (3, 1, 2, 0)), (2, 2)), axis=(0, 1))  # noqa: E501


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
    with see.cache(jit(softmax)) as view:
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
STATES: dict[str, Callable[[], View]] = {
    "jaxpr": lambda: see.jaxpr(softmax, X),
    "jaxpr, empty": lambda: see.jaxpr(lambda x: x, X),
    "jaxpr, one step": lambda: see.jaxpr(lambda x: jnp.sin(x), X),
    "jaxpr, programs inside": lambda: see.jaxpr(
        lambda x: jit(softmax)(x) + jit(jit(softmax))(x), X
    ),
    "jaxpr, huge": lambda: see.jaxpr(long, X),
    "jaxpr, long names": lambda: see.jaxpr(
        a_function_whose_name_goes_on_for_much_longer_than_anybody_would_like_to_read_it,
        X,
    ),
    "jaxpr, hostile names": lambda: see.jaxpr(hostile(), X),
    "difference": lambda: see.jaxpr(*sides()),
    "difference, of vmap": lambda: see.jaxpr(*batched()),
    "difference, none": lambda: see.jaxpr(sides()[0], sides()[0]),
    "difference, huge": lambda: see.jaxpr(
        make_jaxpr(long)(X), make_jaxpr(lambda x: long(x) + 1.0)(X)
    ),
    "graph": lambda: see.jaxpr(softmax, X).graph(),
    "graph, empty": lambda: see.jaxpr(lambda x: x, X).graph(),
    "graph, one step": lambda: see.jaxpr(lambda x: jnp.sin(x), X).graph(),
    "graph, huge": lambda: see.jaxpr(long, X).graph(),
    "trace": lambda: see.trace(puzzle, X),
    "trace, empty": lambda: see.trace(lambda x: x, X),
    "trace, one step": lambda: see.trace(lambda x: jnp.sin(x), X),
    "trace, calls": lambda: see.trace(network, [np.eye(4, dtype=np.float32)] * 2, X),
    "trace, error": lambda: see.trace(relu, 1.0),
    "trace, huge": lambda: see.trace(long, X),
    "trace, hostile names": lambda: see.trace(hostile(), X),
    "cache": cached,
    "cache, empty": cached_never,
    "cache, not watched": cached_unseen,
    "cache, one step": cached_once,
    "cache, huge": cached_much,
    "cache, hostile names": cached_hostile,
    "tree": lambda: see.tree(TREE),
    "tree, empty": lambda: see.tree({}),
    "tree, one step": lambda: see.tree(X),
    "tree, two": lambda: see.tree({"a": 1, "b": X}, {"a": 1.0, "c": (1, 2)}),
    "tree, two alike": lambda: see.tree({"a": X}, {"a": X}),
    "tree, huge": lambda: see.tree(BIG_TREE),
    "tree, hostile names": lambda: see.tree({EVIL: X, HEBREW: [X], "k" * 120: X}),
    "keys": lambda: see.keys(careless, random.key(0), X),
    "keys, well used": lambda: see.keys(careful, random.key(0)),
    "keys, none": lambda: see.keys(lambda x: x, X),
    "keys, huge": lambda: see.keys(many_keys, random.key(0)),
    "why, exception": lambda: failed(jit(relu), 1.0),
    "why, after much": lambda: failed(jit(too_wide), X),
    "why, nothing traced": lambda: failed(int, EVIL),
    "why, equation": caused,
    "source": lambda: see.source(minijax.interpreters.ad.JVPTrace),
    "source, one line": lambda: see.source(minijax.interpreters.ad.JVPTrace.to_pair),
    "source, primitive": lambda: see.source(minijax.lax.sin_p),
    "source, huge": lambda: see.source(minijax.interpreters.ad),
    "source, hostile names": lambda: see.source(hostile()),
    "card": lambda: see.card("sin"),
    "card, long": lambda: see.card("dot_general"),
    "card, of a program": lambda: see.card("scan"),
    "primitives": see.primitives,
}
# The same picture as a widget: the player gets its frame from a model.
AS_WIDGETS = ("trace", "jaxpr, hostile names")
WIDGET = """<div class="as-widget"></div><script>(function(){
var values={frame:%s,step:-1,selection:""};
var model={get:function(name){return values[name]},
set:function(name,value){values[name]=value},
save_changes:function(){},on:function(){},off:function(){}};
var el=document.currentScript.previousSibling;
Object.values(globalThis.minijaxPlayers)[0].then(function(player){
player.render({model:model,el:el})})})()</script>"""


def views() -> dict[str, View]:
    """Each view in each state, by a name."""
    return {name: make() for name, make in STATES.items()}


def as_widget(view: View) -> str:
    """A view as anywidget draws it; the model lives in the page."""
    frame = json.dumps(view.frame().to_json())
    return WIDGET % frame.replace("<", "\\u003c")


def page() -> str:
    """The gallery as one page."""
    parts = []
    made = views()
    shown = [(name, view.to_html()) for name, view in made.items()]
    shown += [(f"widget: {name}", as_widget(made[name])) for name in AS_WIDGETS]
    for name, html in shown:
        parts.append(f"<h2>{escape(name)}</h2><section>{html}</section>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>Gallery</title><style>body{font:15px system-ui,sans-serif;"
        "margin:16px;color-scheme:light dark}</style></head><body><main>"
        f"<h1>The views of minijax</h1>{''.join(parts)}</main></body></html>"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
