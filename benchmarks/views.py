"""How long views take: first paint and steps in a browser, and what recording costs.

    python benchmarks/views.py [--write] [--costs] [--transformations | --others]

Needs chromium and the playwright wheel. In the browser, times are wall-clock medians;
what recording costs is in seconds of the CPU. On one machine.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import nn
from minijax.core import events
from minijax.experimental import pallas as pl
from minijax_lab.explain import causes
from minijax_lab.explain.backward import record_grad
from minijax_lab.explain.batching import record_vmap
from minijax_lab.explain.jaxpr import record_jaxpr
from minijax_lab.explain.keys import record_keys
from minijax_lab.explain.memory import record_memory
from minijax_lab.explain.trace import record_trace

HERE = Path(__file__).parent
X = np.ones(4, np.float32)
REPEATS = 25


def program(equations: int) -> Any:
    """A function that leaves so many equations."""

    def f(x):
        for _ in range(equations // 2):
            x = jnp.sin(x) * 1.5
        return x

    return f


PAINT = """
<!doctype html><meta charset="utf-8"><body><script>
window.began = performance.now();
new MutationObserver((_, watching) => {
  if (!document.querySelector(".mj-live .mj-where")) return;
  watching.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(
    () => console.log("painted", performance.now() - window.began)));
}).observe(document.body, { childList: true, subtree: true });
</script>%s</body>
"""
STEP = """
async () => {
  const root = document.querySelector(".mj-live"), times = [];
  root.focus();
  for (let i = 0; i < 30; i++) {
    const key = i % 2 ? "ArrowRight" : "ArrowLeft";
    const start = performance.now();
    root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    root.getBoundingClientRect();
    times.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
  }
  return times;
}
"""


def is_painted(message: Any) -> bool:
    """Whether a line of the page's console says when the view was painted."""
    return message.text.startswith("painted ")


def in_browser(view: Any, browser: Any) -> tuple[float, float]:
    """Milliseconds to the first paint, and of a step with its layout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "view.html"
        path.write_text(PAINT % view.to_html(), encoding="utf-8")
        paints, steps = [], []
        for _ in range(3):
            page = browser.new_page()
            # The page tells: to ask it would run the asker's script while it opens.
            with page.expect_console_message(is_painted, timeout=60_000) as told:
                page.goto(path.as_uri(), wait_until="commit")
            paints.append(float(told.value.text.split()[1]))
            steps += page.evaluate(STEP)
            page.close()
    return statistics.median(paints), statistics.median(steps)


def network(layers: int) -> Any:
    """A function of the kind that people trace: layers with a norm."""

    def layer(x, w, b):
        h = nn.gelu(x @ w + b)
        mean = jnp.mean(h, axis=-1, keepdims=True)
        scale = jnp.sqrt(jnp.var(h, axis=-1, keepdims=True) + 1e-5)
        return jnp.where(x > 0, (h - mean) / scale, x)

    def f(x):
        w, b = jnp.ones((4, 4)), jnp.zeros(4)
        for _ in range(layers):
            x = layer(x, w, b)
        return nn.softmax(x)

    return f


def gradient(layers: int) -> Any:
    """The derivative of that function: most of its equations are written by rules."""
    function = network(layers)
    return minijax.grad(lambda x: jnp.sum(function(x)))


def small_functions(equations: int) -> Any:
    """A function that calls another one for every two equations."""

    def layer(x):
        y = jnp.sin(x)
        return y * 1.5

    def f(x):
        for _ in range(equations // 2):
            x = layer(x)
        return x

    return f


def jitted_functions(equations: int) -> Any:
    """The same with a function that is jitted."""
    layer = minijax.jit(lambda x: jnp.sin(x) * 1.5)

    def f(x):
        for _ in range(equations // 2):
            x = layer(x)
        return x

    return f


def guarded(equations: int) -> Any:
    """A function whose operations stand in a `try`."""

    def f(x):
        try:
            for _ in range(equations // 2):
                x = jnp.sin(x) * 1.5
        except TypeError:
            pass
        return x

    return f


def with_causes(function: Any) -> None:
    """Traces, and keeps the cause of each equation."""
    with causes.recording():
        minijax.make_jaxpr(function)(X)
    causes.forget()


def traced(function: Any) -> Any:
    return minijax.make_jaxpr(function)(X)


def ratio(
    make: Any, size: int, record: Any, alone: Any = traced, repeats: int = REPEATS
) -> float:
    """The time of a recorded trace, over that of the plain one: the best of each.

    In turns, so that a machine that others use is as slow for one as for the other.
    """
    plain = recorded = float("inf")
    for _ in range(repeats):
        # Functions of their own: a program that was traced is kept.
        first, second = make(size), make(size)
        start = time.process_time()
        alone(first)
        between = time.process_time()
        record(second)
        recorded = min(recorded, time.process_time() - between)
        plain = min(plain, between - start)
    return recorded / plain


def truth_test() -> float:
    """Nanoseconds that an event costs when nobody listens."""
    times = 1_000_000
    empty = min(timeit.repeat("pass", number=times))
    test = min(
        timeit.repeat(
            "if events.subscribers: pass", globals={"events": events}, number=times
        )
    )
    return (test - empty) / times * 1e9


RECORDED = {
    "`see.trace`, recorded": lambda f: record_trace(f, X),
    "causes of equations, recorded": with_causes,
    "`see.keys`, recorded": lambda f: record_keys(f, X),
    "`see.trace`, recorded and put into words": lambda f: record_trace(f, X).steps,
    "`see.jaxpr`, put into words": lambda f: record_jaxpr(minijax.make_jaxpr(f)(X)),
    "JAX's text: `str(make_jaxpr(f)(x))`": lambda f: str(minijax.make_jaxpr(f)(X)),
}
PROGRAMS = (("500 cheap", program, 500), ("2,000 cheap", program, 2_000))
PROGRAMS += (("network of 20 layers", network, 20), ("its gradient", gradient, 20))


def recording_costs() -> list[str]:
    """A table of what recording costs, in plain traces of the same function."""
    rows = [
        "| times a plain trace | " + " | ".join(name for name, _, _ in PROGRAMS) + " |",
        "|---|" + "---:|" * len(PROGRAMS),
    ]
    for name, record in RECORDED.items():
        costs = [f"{ratio(make, size, record):.1f}" for _, make, size in PROGRAMS]
        rows.append(f"| {name} | " + " | ".join(costs) + " |")
    return rows


def total(make: Any) -> Any:
    """The same functions with one number as their result."""
    return lambda size: functools.partial(summed, make(size))


def summed(function: Any, x: Any) -> Any:
    return jnp.sum(function(x))


BATCH = np.ones((3, 4), np.float32)
# What a view records, and the transformation alone.
TRANSFORMATIONS = {
    "`see.grad`, over `grad`": (
        lambda f: record_grad(f, X),
        lambda f: minijax.make_jaxpr(minijax.grad(f))(X),
    ),
    "`see.vmap`, over `vmap`": (
        lambda f: record_vmap(f, BATCH),
        lambda f: minijax.make_jaxpr(minijax.vmap(f))(BATCH),
    ),
    "`see.memory` of a gradient, over `grad`": (
        lambda f: record_memory(minijax.grad(f), (X,), {}, compiled=False),
        lambda f: minijax.make_jaxpr(minijax.grad(f))(X),
    ),
    "`see.grad`, put into words": (
        lambda f: record_grad(f, X).headline,
        lambda f: minijax.make_jaxpr(minijax.grad(f))(X),
    ),
    "`see.vmap`, put into words": (
        lambda f: record_vmap(f, BATCH).headline,
        lambda f: minijax.make_jaxpr(minijax.vmap(f))(BATCH),
    ),
}


def transformation_costs() -> list[str]:
    """A table of what recording a transformation costs, in plain ones."""
    programs = PROGRAMS[:3]
    rows = [
        "| times the plain one | " + " | ".join(name for name, _, _ in programs) + " |",
        "|---|" + "---:|" * len(programs),
    ]
    for name, (record, plain) in TRANSFORMATIONS.items():
        costs = []
        for _, make, size in programs:
            cost = ratio(total(make), size, record, plain, 9)
            costs.append(f"{cost:.1f}")
        rows.append(f"| {name} | " + " | ".join(costs) + " |")
    return rows


HARD = {
    "a function called for every two equations": small_functions,
    "a jitted one": jitted_functions,
    "a loop inside of `try`": guarded,
}


def hard_cases() -> str:
    """What `see.trace` costs where the user's own functions do little each."""
    costs = []
    for name, make in HARD.items():
        cost = ratio(make, 500, RECORDED["`see.trace`, recorded"])
        costs.append(f"{name}, {cost:.1f}")
    return "; ".join(costs)


def watched_call() -> float:
    """The time of a call that `see.cache` watches, over that of one it does not."""
    function = minijax.jit(lambda x, n: x * n)
    function(X, 2.0)

    def seconds() -> float:
        start = time.process_time()
        for _ in range(2_000):
            function(X, 2.0)
        return time.process_time() - start

    ratios = []
    for _ in range(9):
        plain = seconds()
        with see.cache(function):
            ratios.append(seconds() / plain)
    return statistics.median(ratios)


def listings() -> list[tuple[str, Any, int, int]]:
    """Views made of text: (what, how it is made, aims of paint and step)."""
    return [
        (f"see.{show.__name__}, {count:,} equations", (show, program(count), X), *aims)
        for count, aims in ((2_000, (300, 16)), (10_000, (1_000, 50)))
        for show in (see.jaxpr, see.trace)
    ]


def drawings() -> list[tuple[str, Any, int, int]]:
    """Views that are pictures; the timeline of 10,000 equations has as many bars."""
    function = functools.partial(summed, program(2_000))
    gradient = minijax.grad(functools.partial(summed, program(500)))
    long = minijax.grad(functools.partial(summed, program(4_000)))
    return [
        ("see.memory, 10,000 equations", (see.memory, long, X), 1_000, 50),
        ("see.grad, 2,000 equations", (see.grad, function, X), 300, 16),
        ("see.vmap, 2,000 equations", (see.vmap, program(2_000), BATCH), 300, 16),
        ("see.memory, 2,000 equations", (see.memory, gradient, X), 300, 16),
    ]


def called_often(calls: int) -> Any:
    """A jitted function watched by `see.cache`: calls with 40 shapes."""
    function = minijax.jit(lambda x: x * 2)
    with see.cache(function) as view:
        for number in range(calls):
            function(np.ones(number % 40 + 1, np.float32))
    return view


def split_often(splits: int) -> Any:
    """A function that splits a key so many times."""

    def f(key):
        for _ in range(splits):
            key, used = minijax.random.split(key)
        return minijax.random.normal(used)

    return f


def last_equation(equations: int) -> Any:
    """The story of a program's last equation."""
    return see.why(minijax.make_jaxpr(program(equations))(X).eqns[-1])


def tree_of(arrays: int) -> Any:
    """A tree of so many arrays, forty of them in each layer."""
    layers = range(arrays // 40)
    return {f"layer {i}": {f"w{j}": X for j in range(40)} for i in layers}


def matmul_kernel() -> Any:
    """A matmul on a grid of 16 x 16 x 16: 4,096 programs."""

    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...] @ y_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(16, 16, 16),
        in_specs=[
            pl.BlockSpec((4, 4), lambda i, j, k: (i, k)),
            pl.BlockSpec((4, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        out_shape=minijax.ShapeDtypeStruct((64, 64), jnp.float32),
    )


# Each is made in a process of its own, which may take so many seconds.
LONGEST = 240
OTHERS = {
    "stages": lambda n: see.stages(program(n), X),
    "tree": lambda n: see.tree(tree_of(n)),
    "cache": called_often,
    "fusion": lambda n: see.fusion(program(n), X),
    "keys": lambda n: see.keys(split_often(n // 2), minijax.random.key(0)),
    "passes": lambda n: see.passes(program(n), X),
    "why": last_equation,
    "kernel": lambda n: see.kernel(
        matmul_kernel(), *[np.ones((64, 64), np.float32)] * 2
    ),
}


def others() -> list[str]:
    """The table of the other views; `see.kernel` has 4,096 programs."""
    rows = [
        "| view | recorded, s | first paint, ms | aim | step, ms | aim | HTML, KiB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for count, aims in ((2_000, (300, 16)), (10_000, (1_000, 50))):
        for name in OTHERS:
            size = 4_096 if name == "kernel" else count
            if name == "kernel" and count > size:
                continue
            command = [
                sys.executable,
                __file__,
                "--one",
                name,
                str(size),
                *map(str, aims),
            ]
            told = f"see.{name}, {size:,}"
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=LONGEST
                )
            except subprocess.TimeoutExpired:
                rows.append(f"| {told} | not done in {LONGEST} s | | {aims[0]} | | | |")
                continue
            rows.append(done.stdout.strip() or f"| {told} | {done.stderr[-200:]!r} |")
            print(rows[-1], file=sys.stderr)
    return rows


def one(name: str, size: int, paint_aim: int, step_aim: int) -> str:
    """A row of that table."""
    start = time.process_time()
    view = OTHERS[name](size)
    seconds = time.process_time() - start
    shown = (f"see.{name}, {size:,}", (lambda: view,), paint_aim, step_aim)
    told, rest = in_browsers([shown])[-1].split(" | ", 1)
    return f"{told} | {seconds:.1f} | {rest}"


def elementwise_kernel() -> Any:
    """`x * 2 + 1` on a grid of 4,096."""
    block = pl.BlockSpec((8,), lambda i: i)

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + 1

    return pl.pallas_call(
        kernel,
        grid=(4_096,),
        in_specs=[block],
        out_specs=block,
        out_shape=minijax.ShapeDtypeStruct((4_096 * 8,), jnp.float32),
    )


# What has an aim in seconds: how it is recorded, and the aims of that and of its page.
LARGE = {
    "see.memory of a gradient of 3,902 equations": (
        lambda: see.memory(minijax.grad(total(program)(1_560)), X),
        (2, 1),
    ),
    "see.kernel of `x * 2 + 1`, 4,096 programs": (
        lambda: see.kernel(elementwise_kernel(), np.ones(4_096 * 8, np.float32)),
        (1, 1),
    ),
    "see.kernel of a matmul, 4,096 programs": (lambda: OTHERS["kernel"](4_096), (1, 1)),
}


def large() -> list[str]:
    """The table of what is recorded and saved once: in seconds of the CPU."""
    rows = [
        "| view | recorded, s | aim | saved as a page, s | aim |",
        "|---|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for told, (show, aims) in LARGE.items():
            start = time.process_time()
            view = show()
            between = time.process_time()
            view.save(Path(folder) / "view.html")
            seconds = between - start, time.process_time() - between
            cells = [f"{took:.1f} | {aim}" for took, aim in zip(seconds, aims)]
            rows.append(f"| {told} | " + " | ".join(cells) + " |")
    return rows


def answers() -> str:
    """How long `see.live` takes from the move of a slider to the new picture."""
    import ipywidgets

    slider = ipywidgets.IntSlider(1, 1, 10)
    live = see.live(see.jaxpr, lambda n: network(n)(np.ones((4, 4))), n=slider)
    times = []
    for layers in range(2, 11):
        start = time.process_time()
        slider.value = layers
        times.append(time.process_time() - start)
    assert len(live.view.frame().steps) > 100
    return (
        "`see.live` of `see.jaxpr` of a network of 2 to 10 layers answers in "
        f"{statistics.median(times):.2f} s of the CPU, the slowest in "
        f"{max(times):.2f}; the aim is 0.15."
    )


def in_browsers(shown: list[tuple[str, Any, int, int]]) -> list[str]:
    """The table of first paints and steps."""
    from playwright.sync_api import sync_playwright

    rows = [
        "| view | first paint, ms | aim | step, ms | aim | HTML, KiB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        for name, (show, *call), paint_aim, step_aim in shown:
            view = show(*call)
            paint, step = in_browser(view, browser)
            size = len(view.to_html()) / 1024
            rows.append(
                f"| {name} | {paint:.0f} | {paint_aim} | {step:.1f} | {step_aim} | "
                f"{size:.0f} |"
            )
        browser.close()
    return rows


def written(title: str, lines: list[str]) -> None:
    """Puts a section into VIEWS.md in the place of the one of that title."""
    path = HERE / "VIEWS.md"
    sections = path.read_text(encoding="utf-8").split("\n## ")
    section = "\n".join([title, "", *lines, ""])
    kept = [part for part in sections[1:] if not part.startswith(f"{title}\n")]
    text = "\n## ".join([sections[0], *sorted([*kept, section])])
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Measures, prints tables, and writes them on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--costs", action="store_true", help="no browser")
    parser.add_argument(
        "--transformations",
        action="store_true",
        help="see.grad, see.vmap and see.memory alone",
    )
    parser.add_argument("--others", action="store_true", help="the other views")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, *numbers = options.one
        print(one(name, *map(int, numbers)))
        return
    python = ".".join(platform.python_version_tuple()[:2])
    load = f"{os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    sections: dict[str, list[str]] = {}
    if options.others:
        sections["Views that had not been measured"] = [
            f"{date.today()}, load {load}; recorded in seconds of the CPU, compiling "
            "by XLA included. A tree of n arrays; `random.split` n / 2 times; n calls "
            "of a function with 40 shapes; a matmul kernel of 4,096 programs.",
            "",
            *others(),
        ]
        sections["Recorded and saved"] = [
            f"{date.today()}, load {load}, in seconds of the CPU, compiling by XLA "
            "included.",
            "",
            *large(),
            "",
            answers(),
        ]
    elif options.transformations:
        sections[f"What recording a transformation costs, Python {python}"] = [
            f"{date.today()}, load {load}. Aim: 2. Best of 9 each, in turns, in "
            "seconds of the CPU. Texts are made when a view first reads them.",
            "",
            *transformation_costs(),
        ]
        if not options.costs:
            sections["First paint and steps of pictures"] = [
                f"{date.today()}, load {load}.",
                "",
                *in_browsers(drawings()),
            ]
    else:
        sections = of_listings(python, load, options.costs)
    for title, lines in sections.items():
        print("\n".join([f"## {title}", "", *lines, ""]))
        if options.write:
            written(title, lines)


def of_listings(python: str, load: str, costs: bool) -> dict[str, list[str]]:
    """What views made of text cost, and how fast they are."""
    call = watched_call()
    sections = {
        f"What recording costs, Python {python}": [
            f"{date.today()}, load {load}. Aim: 2. Best of {REPEATS} each, in turns, "
            "in seconds of the CPU. Cheap equations are `sin` and `mul`, 5 us each; "
            "texts are made when a view first reads them.",
            "",
            *recording_costs(),
            "",
            f"While `see.cache` watches, a call that hits takes {call:.1f} times as "
            f"long. When nobody listens, an event costs {truth_test():.0f} ns: one "
            "truth test.",
            "",
            "`see.trace`, recorded, where it costs most: " + hard_cases() + ".",
        ]
    }
    if not costs:
        table = in_browsers(listings())
        sections["First paint and steps"] = [f"{date.today()}.", "", *table]
    return sections


if __name__ == "__main__":
    main()
