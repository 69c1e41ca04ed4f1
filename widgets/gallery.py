"""The gallery: every view in every state on one page, to be looked at.

    python widgets/gallery.py gallery.html

A test opens it in light and dark and in several widths.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import grad, jit, make_jaxpr, random
from minijax.explain import causes

X = np.ones(4, np.float32)


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


def careless(key, x):
    """Uses a key twice."""
    keep = random.bernoulli(key, 0.5, x.shape)
    return jnp.where(keep, x, 0.0) + random.normal(key, x.shape)


def hostile():
    """A function whose name and text try to be HTML."""

    def evil(x):
        return jnp.sin(x)  # </script><script>alert(1)</script>

    evil.__name__ = "</script><img src=x onerror=alert(1)>\u202eabc"
    return evil


def cached() -> Any:
    """Calls that hit and miss."""
    f = jit(lambda x, n: x * n)
    with see.cache(f) as view:
        for n in (2.0, 3.0, 2, np.float32(2)):
            f(X, n)
        f(X[:2], 2.0)
    return view


def failed() -> Any:
    """The story of an exception."""
    try:
        jit(relu)(1.0)
    except Exception as error:
        return see.why(error)
    raise AssertionError


def caused() -> Any:
    """The story of an equation of a derivative."""
    with causes.recording():
        closed = make_jaxpr(grad(lambda x: jnp.sum(jnp.sin(x) * x)))(X)
    return see.why(next(e for e in closed.eqns if e.primitive.name == "cos"))


def views() -> dict[str, Any]:
    """Each view in each state, by a name."""
    before = make_jaxpr(lambda x: jnp.sum(jnp.sin(x) * x))(X)
    after = make_jaxpr(grad(lambda x: jnp.sum(jnp.sin(x) * x)))(X)
    tree = [{"w": jnp.ones((64, 32)), "b": jnp.zeros(32)}, {"w": X, "name": "tanh"}]
    return {
        "jaxpr": see.jaxpr(softmax, X),
        "jaxpr, empty": see.jaxpr(lambda x: x, X),
        "jaxpr, one step": see.jaxpr(lambda x: jnp.sin(x), X),
        "jaxpr, huge": see.jaxpr(long, X),
        "jaxpr, hostile names": see.jaxpr(hostile(), X),
        "jaxpr, difference": see.jaxpr(before, after),
        "trace": see.trace(puzzle, X),
        "trace, error": see.trace(relu, 1.0),
        "trace, huge": see.trace(long, X),
        "cache": cached(),
        "tree": see.tree(tree),
        "tree, empty": see.tree({}),
        "tree, two": see.tree({"a": 1, "b": X}, {"a": 1.0, "c": (1, 2)}),
        "keys": see.keys(careless, random.key(0), X),
        "keys, none": see.keys(lambda x: x, X),
        "why, exception": failed(),
        "why, equation": caused(),
        "source": see.source(minijax.interpreters.ad.JVPTrace),
        "card": see.card("sin"),
        "primitives": see.primitives(),
    }


def page() -> str:
    """The gallery as one page."""
    parts = []
    for name, view in views().items():
        parts.append(f"<h2>{escape(name)}</h2><section>{view.to_html()}</section>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>Gallery</title><style>body{font:15px system-ui,sans-serif;"
        "margin:16px;color-scheme:light dark}</style></head><body><main>"
        f"<h1>The views of minijax</h1>{''.join(parts)}</main></body></html>"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
