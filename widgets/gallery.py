"""The gallery: every view in every state on one page, to be looked at.

    python widgets/gallery.py gallery.html      writes the page
    python widgets/gallery.py --accept          renews the reference pictures

A test opens the page in light and dark and in several widths; another compares pictures
of some states with `tests/views/pictures/` (see `widgets/pictures.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

import numpy as np

import kernel_subjects as blocks
import minijax
import minijax.numpy as jnp
import minijax_widgets as see
import placed_subjects as placed
import subjects as of
from minijax import jit, make_jaxpr, random
from minijax.support.config import enable_compilation_cache
from minijax_widgets.view import View
from subjects import X

LONG_NAME = of.a_function_whose_name_goes_on_for_longer_than_anybody_would_read
LAYERS = [np.eye(4, dtype=np.float32)] * 2
KEY = random.key(0)
WAVES = np.sin(np.arange(64 * 64, dtype=np.float32)).reshape(64, 64)
STATES: dict[str, Callable[[], View]] = {
    "jaxpr": lambda: see.jaxpr(of.softmax, X),
    "jaxpr, empty": lambda: see.jaxpr(of.same, X),
    "jaxpr, one step": lambda: see.jaxpr(of.one, X),
    "jaxpr, of a lambda": lambda: see.jaxpr(lambda x: jnp.sin(x), X),
    "jaxpr, programs inside": lambda: see.jaxpr(of.inside, X),
    "jaxpr, huge": lambda: see.jaxpr(of.long, X),
    "jaxpr, long names": lambda: see.jaxpr(LONG_NAME, X),
    "jaxpr, hostile names": lambda: see.jaxpr(of.hostile(), X),
    "difference": lambda: see.jaxpr(*of.sides()),
    "difference, of vmap": lambda: see.jaxpr(*of.batched()),
    "difference, none": lambda: see.jaxpr(of.sides()[0], of.sides()[0]),
    "difference, huge": lambda: see.jaxpr(
        make_jaxpr(of.long)(X), make_jaxpr(lambda x: of.long(x) + 1.0)(X)
    ),
    "graph": lambda: see.jaxpr(of.softmax, X).graph(),
    "graph, loop": lambda: see.jaxpr(of.lstm, *of.LSTM).graph(),
    "graph, empty": lambda: see.jaxpr(of.same, X).graph(),
    "graph, one step": lambda: see.jaxpr(of.one, X).graph(),
    "graph, huge": lambda: see.jaxpr(of.long, X).graph(),
    "trace": lambda: see.trace(of.puzzle, X),
    "trace, empty": lambda: see.trace(of.same, X),
    "trace, one step": lambda: see.trace(of.one, X),
    "trace, calls": lambda: see.trace(of.network, LAYERS, X),
    "trace, error": lambda: see.trace(of.relu, 1.0),
    "trace, huge": lambda: see.trace(of.long, X),
    "trace, long names": lambda: see.trace(LONG_NAME, X),
    "trace, hostile names": lambda: see.trace(of.hostile(), X),
    "memory": of.remembered,
    "memory, empty": lambda: see.memory(of.same, X),
    "memory, huge": lambda: see.memory(make_jaxpr(of.long)(X)),
    "memory, compiled": lambda: see.memory(
        minijax.grad(of.squared_error),
        [of.floats(64, 64)] * 4,
        of.floats(256, 64),
        of.floats(256, 64),
        compiled=True,
    ),
    "memory, roofline": lambda: see.memory(
        of.softmax,
        of.floats(1 << 20),
        roofline=see.Machine("a small machine", 1e12, 1e11),
    ),
    "memory, compiled, empty": lambda: see.memory(of.same, X, compiled=True),
    "memory, compiled, huge": lambda: see.memory(
        minijax.grad(of.squared_error),
        [of.floats(16, 16)] * 16,
        of.floats(8, 16),
        of.floats(8, 16),
        compiled=True,
    ),
    "stages": lambda: see.stages(of.softmax, of.floats(64)),
    "stages, code and passes": lambda: see.stages(
        of.softmax, of.floats(64), code=True, passes=True
    ),
    "stages, beside": lambda: see.stages(
        of.divided, of.floats(256, 512), beside=of.multiplied
    ),
    "stages, beside itself": lambda: see.stages(of.softmax, X, beside=of.softmax),
    "stages, one step": lambda: see.stages(lambda x: x + 1.0, of.floats(8)),
    "stages, empty": lambda: see.stages(of.same, X),
    "stages, huge": lambda: see.stages(
        minijax.grad(of.squared_error),
        [of.floats(16, 16)] * 16,
        of.floats(8, 16),
        of.floats(8, 16),
    ),
    "passes": lambda: see.passes(of.softmax, of.floats(64)),
    "passes, empty": lambda: see.passes(of.same, X),
    "passes, huge": lambda: see.passes(
        minijax.grad(of.squared_error),
        [of.floats(16, 16)] * 16,
        of.floats(8, 16),
        of.floats(8, 16),
    ),
    "fusion": lambda: see.fusion(of.softmax, of.floats(64)),
    "fusion, one step": lambda: see.fusion(lambda x: x + 1.0, of.floats(8)),
    "fusion, roofline": lambda: see.fusion(
        minijax.grad(of.squared_error),
        [of.floats(512, 512)] * 3,
        of.floats(256, 512),
        of.floats(256, 512),
        roofline=see.Machine("a small machine", 1e12, 1e11),
    ),
    "fusion, empty": lambda: see.fusion(of.same, X),
    "fusion, huge": lambda: see.fusion(
        minijax.grad(of.squared_error),
        [of.floats(16, 16)] * 16,
        of.floats(8, 16),
        of.floats(8, 16),
    ),
    "cache": of.cached,
    "cache, empty": of.cached_never,
    "cache, not watched": of.cached_unseen,
    "cache, one step": of.cached_once,
    "cache, huge": of.cached_much,
    "cache, hostile names": of.cached_hostile,
    "tree": lambda: see.tree(of.TREE),
    "tree, empty": lambda: see.tree({}),
    "tree, one step": lambda: see.tree(X),
    "tree, two": lambda: see.tree({"a": 1, "b": X}, {"a": 1.0, "c": (1, 2)}),
    "tree, two alike": lambda: see.tree({"a": X}, {"a": X}),
    "tree, huge": lambda: see.tree(of.BIG_TREE),
    "tree, hostile names": lambda: see.tree({of.EVIL: X, of.HEBREW: [X], "k" * 99: X}),
    "keys": lambda: see.keys(of.careless, KEY, X),
    "keys, well used": lambda: see.keys(of.careful, KEY),
    "keys, none": lambda: see.keys(of.same, X),
    "keys, huge": lambda: see.keys(of.many_keys, KEY),
    "vmap": lambda: see.vmap(of.predict, *of.BATCH, in_axes=(None, None, 0)),
    "vmap, loop": lambda: see.vmap(of.rolled, LAYERS[0], of.SERIES, in_axes=(None, 0)),
    "vmap, branches": lambda: see.vmap(of.either, of.SIGNS, values=True),
    "vmap, two axes": lambda: see.vmap(jnp.outer, of.SIGNS, X, in_axes=(0, None)),
    "vmap, empty": lambda: see.vmap(of.same, of.SIGNS),
    "vmap, one step": lambda: see.vmap(of.one, of.SIGNS),
    "vmap, layers": lambda: see.vmap(
        of.network, [np.eye(4, dtype=np.float32)] * 12, of.SIGNS, in_axes=(None, 0)
    ),
    "vmap, huge": lambda: see.vmap(of.long, of.SIGNS),
    "vmap, long names": lambda: see.vmap(LONG_NAME, of.SIGNS),
    "vmap, hostile names": lambda: see.vmap(of.hostile(), of.SIGNS),
    "why, exception": lambda: of.failed(jit(of.relu), 1.0),
    "why, after much": lambda: of.failed(jit(of.too_wide), X),
    "why, nothing traced": lambda: of.failed(int, of.EVIL),
    "why, equation": of.caused,
    "source": lambda: see.source(minijax.core.autodiff.JVPTrace),
    "source, empty": lambda: see.source(of.Nothing),
    "source, small": lambda: see.source(of.relu),
    "source, primitive": lambda: see.source(minijax.lax.sin_p),
    "source, huge": lambda: see.source(minijax.core.autodiff),
    "source, hostile names": lambda: see.source(of.hostile()),
    "card": lambda: see.card("sin"),
    "card, small": of.small_card,
    "card, long": lambda: see.card("dot_general"),
    "card, of a program": lambda: see.card("scan"),
    "primitives": see.primitives,
    "primitives, few": of.small_table,
    "grad": lambda: see.grad(of.twice, 2.0),
    "grad, empty": lambda: see.grad(of.unused, 2.0),
    "grad, one step": lambda: see.grad(lambda x: x, 2.0),
    "grad, network": lambda: see.grad(
        of.squared_error,
        [of.floats(256, 256)] * 12,
        of.floats(128, 256),
        of.floats(128, 256),
    ),
    "grad, loop": lambda: see.grad(
        of.recurrent,
        of.floats(64, 64),
        of.floats(64, 32),
        of.floats(20, 32),
        argnums=(0, 1),
    ),
    "grad, beside": lambda: see.grad(
        of.squared_error,
        [of.floats(64, 64)] * 2,
        of.floats(8, 64),
        of.floats(8, 64),
        beside=minijax.checkpoint(of.squared_error),
    ),
    "grad, not finite": lambda: see.grad(of.unsafe, X - 1.0, values=True),
    "grad, huge": lambda: see.grad(of.summed, X),
    "grad, hostile names": lambda: see.grad(
        lambda tree: sum(x.sum() for x in tree.values()) ** 2,
        {of.EVIL: X, of.HEBREW: X, "k" * 99: X},
    ),
    "kernel": lambda: see.kernel(blocks.matmul, WAVES[:64, :48], WAVES[:48, :64]),
    "kernel, rows": lambda: see.kernel(blocks.softmax_rows, WAVES[:18, :64]),
    "kernel, race": lambda: see.kernel(
        blocks.column_sums, WAVES[:16, :24], values=False
    ),
    "kernel, out of bounds": lambda: see.kernel(blocks.shifted, WAVES[:16, :24]),
    "kernel, cards": lambda: see.kernel(blocks.many_heads, np.stack([WAVES] * 6)),
    "kernel, values": lambda: see.kernel(
        blocks.softmax_rows, WAVES[:8, :4], values=True
    ),
    "kernel, one step": lambda: see.kernel(blocks.whole, X),
    "kernel, empty": lambda: see.kernel(blocks.no_programs, X),
    "kernel, huge": lambda: see.kernel(
        blocks.matmul, of.floats(512, 128), of.floats(128, 512)
    ),
    "kernel, hostile names": lambda: see.kernel(blocks.hostile, {of.EVIL: X}),
    "placement, array": lambda: placed.view("array"),
    "placement, tree": lambda: placed.view("tree"),
    "placement, program": lambda: placed.view("program"),
    "placement, copies": lambda: placed.view("copies"),
    "placement, empty": lambda: placed.view("nothing"),
    "placement, huge": lambda: placed.view("deep"),
    "collectives": lambda: placed.view("collectives"),
    "collectives, loop": lambda: placed.view("loop"),
    "collectives, none": lambda: placed.view("no collectives"),
    "collectives, huge": lambda: placed.view("deep collectives"),
    "scale": lambda: placed.view("scale"),
    "scale, empty": lambda: placed.view("scale of nothing"),
    "scale, huge": lambda: placed.view("scale of many"),
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


def as_widget(view: View) -> str:
    """A view as anywidget draws it; the model lives in the page."""
    frame = json.dumps(view.frame().to_json())
    return WIDGET % frame.replace("<", "\\u003c")


def page(names: Iterable[str] | None = None, head: str = "") -> str:
    """The gallery as one page, or the states `names` of it; `head` is HTML for it."""
    parts = []
    # The same picture every time, wherever compiled programs come from.
    with enable_compilation_cache(False):
        made = {name: STATES[name]() for name in names or STATES}
    shown = [(name, view.to_html()) for name, view in made.items()]
    if names is None:
        shown += [(f"widget: {name}", as_widget(made[name])) for name in AS_WIDGETS]
    for name, html in shown:
        state = f'<section data-state="{escape(name)}">{html}</section>'
        parts.append(f"<h2>{escape(name)}</h2>{state}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>Gallery</title><style>body{font:15px system-ui,sans-serif;"
        f"margin:16px;color-scheme:light dark}}</style>{head}</head><body><main>"
        f"<h1>The views of minijax</h1>{''.join(parts)}</main></body></html>"
    )


def main(arguments: list[str]) -> None:
    """Writes the page, or renews the reference pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path, help="where to write the page")
    parser.add_argument(
        "--accept", action="store_true", help="renew the reference pictures"
    )
    options = parser.parse_args(arguments)
    if options.accept:
        import pictures

        pictures.accept()
    elif options.page is None:
        parser.error("say where to write the page, or --accept")
    else:
        options.page.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
