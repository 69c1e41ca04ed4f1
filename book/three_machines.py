"""Twelve functions as compiled for three machines: a CPU, an H100, TPUs.

    python book/three_machines.py

compiles them again and writes `book/machines/`: a recording for each function and
machine, which `see.open` opens, `index.json` with what they were made by, and the
overview as SVG. It needs the extras `minijax[h100]` and `minijax[tpu]`, and neither
machine. The book's pages are made of these files alone.
"""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxlib.version
import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.scene import Scene

HERE = Path(__file__).resolve().parent
MACHINES = HERE / "machines"
# The course shows some of the recordings; learners have no book beside them.
COURSE = HERE.parent / "notebooks" / "recordings"
IN_COURSE = ("softmax",)
STATIC = HERE / "_static"
TARGETS = ("cpu", "h100", "tpu-v5e:2x2")
ROW, LEFT, GAP = 30.0, 212.0, 22.0


def softmax(x):
    x_max = jnp.max(x, axis=-1, keepdims=True)
    e = jnp.exp(x - x_max)
    return e / jnp.sum(e, axis=-1, keepdims=True)


def layer_norm(x, gain, shift):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * lax.rsqrt(variance + 1e-6) * gain + shift


def gelu_mlp(x, up, down):
    hidden = minijax.nn.gelu(x @ up)
    return hidden @ down


def attention(q, k, v):
    scores = q @ k.T / 8.0
    weights = softmax(scores)
    return weights @ v


def convolution(images, filters):
    y = lax.conv(images, filters, (1, 1), "SAME")
    return jnp.maximum(y, 0.0)


def recurrent(w, u, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, h

    return lax.scan(step, jnp.zeros(w.shape[0]), xs)[1]


def digits_loss(params, x, y):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    logits = minijax.nn.log_softmax(x @ w + b)
    return -jnp.mean(jnp.sum(logits * y, axis=-1))


def recurrent_loss(w, u, xs):
    return jnp.sum(recurrent(w, u, xs) ** 2)


def one_loss(w, x):
    return jnp.sum(jnp.tanh(w @ x) ** 2)


def ordered(x):
    return jnp.sort(x)


def running_sum(x):
    return jnp.cumsum(x)


def sines(x):
    for _ in range(5):
        x = jnp.sin(x) * 2.0
    return x


def f32(*shape: int) -> Any:
    """The type of an array of this shape."""
    return minijax.ShapeDtypeStruct(shape, np.float32)


DIGITS = [(f32(64, 128), f32(128)), (f32(128, 10), f32(10))]
# name: what it is called, the function, its arguments.
FUNCTIONS: dict[str, tuple[str, Callable[..., Any], tuple]] = {
    "sines": ("sin(x) * 2, five times", sines, (f32(1 << 20),)),
    "softmax": ("softmax", softmax, (f32(512, 1024),)),
    "layer_norm": ("layer norm", layer_norm, (f32(512, 1024), f32(1024), f32(1024))),
    "gelu_mlp": ("GELU MLP", gelu_mlp, (f32(256, 256), f32(256, 1024), f32(1024, 256))),
    "attention": ("attention", attention, (f32(512, 64), f32(512, 64), f32(512, 64))),
    "convolution": (
        "convolution",
        convolution,
        (f32(8, 16, 32, 32), f32(32, 16, 3, 3)),
    ),
    "recurrent": ("RNN by scan", recurrent, (f32(64, 64), f32(64, 32), f32(50, 32))),
    "gradient": (
        "gradient of the digits' loss",
        minijax.grad(digits_loss),
        (DIGITS, f32(64, 64), f32(64, 10)),
    ),
    "gradient_of_scan": (
        "gradient of the RNN",
        minijax.grad(recurrent_loss),
        (f32(64, 64), f32(64, 32), f32(50, 32)),
    ),
    "gradient_of_each": (
        "a gradient for each example",
        minijax.vmap(minijax.grad(one_loss), in_axes=(None, 0)),
        (f32(32, 64), f32(128, 64)),
    ),
    "sort": ("sort", ordered, (f32(1 << 16),)),
    "cumsum": ("cumsum", running_sum, (f32(1 << 16),)),
}


def path_of(name: str, target: str) -> Path:
    """The file of a recording."""
    return MACHINES / f"{name}-{target.partition(':')[0]}.json.gz"


def record() -> dict[str, Any]:
    """Compiles all functions for all machines, writes the recordings, returns sums."""
    rows: dict[str, dict[str, Any]] = {}
    for name, (_, function, args) in FUNCTIONS.items():
        rows[name] = {}
        for target in TARGETS:
            view = see.fusion(function, *args, target=target)
            view.save(path_of(name, target))
            rows[name][target] = summary(view)
    return {
        "command": "python book/three_machines.py",
        "date": datetime.date.today().isoformat(),
        "jaxlib": jaxlib.version.__version__,
        "functions": rows,
    }


def summary(view: see.FusionView) -> dict[str, Any]:
    """Kernels and bytes of a recording, as compiled and without fusion."""
    record = view.recording
    found: dict[str, Any] = {}
    for word, program in (("after", record.program), ("before", record.unfused)):
        if program is not None:
            found[word] = {"kernels": len(program.kernels), "bytes": program.bytes}
            # A loop whose length XLA did not write down is counted once: no total.
            if any(kernel.times is None for kernel in program.kernels):
                found[word]["bytes"] = None
    return found


def picture(index: dict[str, Any], width: float = 980) -> Scene:
    """The overview: for each function and machine the bytes before and after."""
    rows = index["functions"]
    scene = Scene(width, 74 + ROW * len(rows), "twelve functions on three machines")
    room = (width - LEFT - GAP * len(TARGETS)) / len(TARGETS)
    for column, target in enumerate(TARGETS):
        x = LEFT + column * (room + GAP)
        scene.text(x, 22, target, size=15, weight=700)
    said = (
        "bytes read and written: without fusion (open), as compiled (filled); k kernels"
    )
    scene.text(LEFT, 42, said, role="constant", size=12)
    for row, (name, found) in enumerate(rows.items()):
        y = 56 + row * ROW
        title = FUNCTIONS[name][0]
        scene.text(LEFT - 12, y + 14, title, size=13, anchor="end")
        most = max(
            sums["bytes"] or 1
            for machine in found.values()
            for sums in machine.values()
        )
        for column, target in enumerate(TARGETS):
            x = LEFT + column * (room + GAP)
            after = found[target]["after"]
            before = found[target].get("before", after)
            scale = (room - 118) / most
            if after["bytes"] is None or before["bytes"] is None:
                text = f"{after['kernels']} k, a loop of unknown length"
                scene.text(x, y + 14, text, role="constant", size=12)
                continue
            told = (
                f"{title} on {target}: {before['kernels']} kernels became "
                f"{after['kernels']}, {size_in_words(before['bytes'])} became "
                f"{size_in_words(after['bytes'])}"
            )
            long = max(3.0, before["bytes"] * scale)
            scene.box(x, y, long, 18, role="value", filled=False, tell=told)
            short = max(3.0, after["bytes"] * scale)
            scene.box(x, y, short, 18, role="value", label=told)
            text = f"{size_in_words(after['bytes'])}, {after['kernels']} k"
            scene.text(x + long + 6, y + 14, text, role="constant", size=12)
    return scene


def pictures(index: dict[str, Any]) -> dict[str, str]:
    """The overview's files by name: for a light page, and for a dark one."""
    scene = picture(index)
    return {
        "machines_light.svg": scene.svg(title=scene.label),
        "machines_dark.svg": scene.svg(dark=True, title=scene.label),
    }


def read_index() -> dict[str, Any]:
    """What `book/machines/index.json` says."""
    return json.loads((MACHINES / "index.json").read_text(encoding="utf-8"))


# ---- the book's pages ---------------------------------------------------------------

OVERVIEW = """\
<picture>
<source media="(prefers-color-scheme: dark)" srcset="{0}_static/machines_dark.svg">
<img src="{0}_static/machines_light.svg" alt="Twelve functions on three machines">
</picture>
"""


def overview_page() -> str:
    """All functions on all machines, with links to their pages."""
    index = read_index()
    lines = [
        "# Three machines",
        "",
        "Twelve functions, compiled by XLA for this book's CPU, for an NVIDIA H100 and "
        "for a slice of four TPUs (v5e). The last two were compiled on a laptop that "
        'has neither: `see.fusion(f, x, target="h100")`.',
        "",
        OVERVIEW.format(""),
        f"Made on {index['date']} with jaxlib {index['jaxlib']} by "
        f"`{index['command']}`. Bytes are computed from shapes: what each kernel reads "
        "and writes. Another version of XLA, or another CPU, gives other kernels.",
        "",
        "| function | " + " | ".join(TARGETS) + " |",
        "|---|" + "---|" * len(TARGETS),
    ]
    for name, found in index["functions"].items():
        cells = [
            f"[{kernels(found[target])}, {moved(found[target]['after'])}]"
            f"(machines/{page_of(name, target)})"
            for target in TARGETS
        ]
        lines.append(f"| {FUNCTIONS[name][0]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def moved(sums: dict[str, Any]) -> str:
    """The bytes of a program, or why there is no sum."""
    if sums["bytes"] is None:
        return "a loop of unknown length"
    return size_in_words(sums["bytes"])


def kernels(found: dict[str, Any]) -> str:
    """How many kernels there were without fusion, and are."""
    after = found["after"]["kernels"]
    if "before" not in found:
        return f"{after} kernels"
    return f"{found['before']['kernels']} kernels → {after}"


def function_pages(
    raw: Callable[[Any], str], functions: set[str] | None = None
) -> dict[str, str]:
    """A page for each function, or some of them, and machine: its kernels, drawn."""
    pages = {}
    shown = [name for name in FUNCTIONS if functions is None or name in functions]
    every = [(name, target) for name in shown for target in TARGETS]
    following = dict(zip(every, every[1:]))
    for name in shown:
        title = FUNCTIONS[name][0]
        for target in TARGETS:
            others = " ".join(
                f"**{other}**"
                if other == target
                else f"[{other}]({page_of(name, other)})"
                for other in TARGETS
            )
            parts = ["---", "orphan: true", "html_theme.sidebar_secondary.remove: true"]
            parts += ["---", "", f"# {title[0].upper()}{title[1:]} on {target}", ""]
            parts += [f"[All functions](../machines.md) {others}", ""]
            parts += [raw(see.open(path_of(name, target))), ""]
            if (name, target) in following:
                after, machine = following[name, target]
                link = (
                    f"[{FUNCTIONS[after][0]} on {machine}]({page_of(after, machine)})"
                )
            else:
                link = "[Scale, on paper](../scale.md)"
            parts += [f"Next: {link}", ""]
            stem = page_of(name, target).removesuffix(".md")
            pages[f"machines/{stem}"] = "\n".join(parts)
    return pages


def page_of(name: str, target: str) -> str:
    """The page of a function on a machine."""
    return path_of(name, target).name.removesuffix(".json.gz") + ".md"


def copy_to_course() -> None:
    """Puts the recordings that chapters open beside the notebooks."""
    COURSE.mkdir(exist_ok=True)
    for name in IN_COURSE:
        for target in TARGETS:
            path = path_of(name, target)
            shutil.copyfile(path, COURSE / path.name)


if __name__ == "__main__":
    MACHINES.mkdir(exist_ok=True)
    made = record()
    copy_to_course()
    text = json.dumps(made, indent=1) + "\n"
    (MACHINES / "index.json").write_text(text, encoding="utf-8")
    for name, svg in pictures(made).items():
        (STATIC / name).write_text(svg, encoding="utf-8")
