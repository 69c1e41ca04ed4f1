"""Writes the book's cheat sheet, out of what is there.

What a mistake gives, and what to write instead, is found by running both; sentences
come from the chapters, descriptions from docstrings, keys from the player's source. A
line that no longer holds stops the build.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax, random

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Mistake:
    """A belief, a line written in it, and the line to write. Both are run."""

    believed: str
    so: str
    wrong: str
    gives: str
    right: str
    chapter: str


MISTAKES = [
    Mistake(
        "An array is changed in place",
        "It is a value. An update is a function: old array in, new array out.",
        "x[0] = 9.0",
        "TypeError",
        "x.at[0].set(9.0)",
        "01",
    ),
    Mistake(
        "An index that does not exist raises",
        "A compiled program cannot stop: reading gives the last entry.",
        "x[10]",
        "2.0",
        'x.at[10].get(mode="fill")',
        "01",
    ),
    Mistake(
        "A list is as good as an array",
        "Each of its entries would be an input of the program.",
        "jnp.sum([0.0, 1.0, 2.0])",
        "TypeError",
        "jnp.sum(jnp.array([0.0, 1.0, 2.0]))",
        "01",
    ),
    Mistake(
        "A tracer has a value",
        "While Python runs your function there is only a type.",
        "jit(lambda x: x if x > 0 else 0.0)(2.0)",
        "TracerBoolConversionError",
        "jit(lambda x: jnp.where(x > 0, x, 0.0))(2.0)",
        "02",
    ),
    Mistake(
        "NumPy's functions take tracers",
        "They need numbers; the functions of `jnp` write equations.",
        "jit(lambda x: np.sin(x))(x)",
        "TracerArrayConversionError",
        "jit(lambda x: jnp.sin(x))(x)",
        "02",
    ),
    Mistake(
        "A shape may depend on a value",
        "Shapes are part of the program; a static argument chooses the program.",
        "jit(lambda n: jnp.zeros(n))(3)",
        "TypeError",
        "jit(lambda n: jnp.zeros(n), static_argnums=0)(3)",
        "03",
    ),
    Mistake(
        "A compiled function sees that a global has changed",
        "It was read once, while tracing. What changes is an argument.",
        's = {"by": 2.0}; f = jit(lambda x: x * s["by"]); f(x); s["by"] = 5.0; f(x)[1]',
        "2.0",
        "f = jit(lambda x, by: x * by); f(x, 2.0); f(x, 5.0)[1]",
        "03",
    ),
    Mistake(
        "`jit` compiles once",
        "Once for each new shape, type, static value and structure.",
        "f = jit(lambda x, n: x * n); f(x, 2.0); f(x, 2); f._cache_size()",
        "2",
        "f = jit(lambda x, n: x * n); f(x, 2.0); f(x, 3.0); f._cache_size()",
        "03",
    ),
    Mistake(
        "My own class goes through",
        "Only what is registered is taken apart; say which fields are data.",
        "jit(lambda layer: layer.w)(Layer(1.0))",
        "TypeError",
        'register_dataclass(Layer, ["w"], []); jit(lambda layer: layer.w)(Layer(1.0))',
        "04",
    ),
    Mistake(
        "A key is a generator with a state",
        "A random number is a function of its key. Split it, and use each once.",
        "random.normal(key) == random.normal(key)",
        "True",
        "k1, k2 = random.split(key); random.normal(k1) == random.normal(k2)",
        "05",
    ),
    Mistake(
        "Anything has a gradient",
        "A gradient belongs to one number. Many have a Jacobian.",
        "grad(lambda x: x * x)(x)",
        "TypeError",
        "jacrev(lambda x: x * x)(x)",
        "07",
    ),
    Mistake(
        "An integer has a gradient",
        "It cannot change a little.",
        "grad(lambda x: x * x)(3)",
        "TypeError",
        "grad(lambda x: x * x)(3.0)",
        "07",
    ),
    Mistake(
        "`where` keeps a bad branch out of the gradient",
        "Both branches are computed and differentiated: zero times infinity is nan.",
        "f = lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0); grad(f)(0.0)",
        "nan",
        "safe = lambda x: jnp.where(x > 0, x, 1.0); "
        "f = lambda x: jnp.where(x > 0, jnp.sqrt(safe(x)), 0.0); grad(f)(0.0)",
        "07",
    ),
    Mistake(
        "`vmap` maps what has the right size",
        "Every argument is mapped unless `in_axes` says None.",
        "vmap(lambda x, w: x * w)(x, jnp.ones(2))",
        "ValueError",
        "vmap(lambda x, w: x * w, in_axes=(0, None))(x, jnp.ones(2))",
        "08",
    ),
    Mistake(
        "`cond` under `vmap` runs one branch",
        "Each example has a condition of its own: all branches run, `select_n` picks. "
        "With one condition for all, one runs.",
        "f = lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x); "
        '"cond" in str(make_jaxpr(vmap(f))(x > 0, x))',
        "False",
        "f = lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x); "
        '"cond" in str(make_jaxpr(vmap(f, (None, 0)))(True, x))',
        "10",
    ),
    Mistake(
        "A Python loop is free",
        "Each round is written down, and compiled. A `scan` is written down once.",
        "f = lambda x: sum(x * i for i in range(100)); len(make_jaxpr(f)(1.0).eqns)",
        "200",
        "f = lambda x: lax.fori_loop(0, 100, lambda i, s: s + x * i, 0.0); "
        "len(make_jaxpr(f)(1.0).eqns)",
        "10",
    ),
    Mistake(
        "A carry may change its type",
        "One program for all rounds: what comes out must fit into the next one.",
        "lax.scan(lambda c, x: (c + x, None), jnp.int32(0), x)[0]",
        "TypeError",
        "lax.scan(lambda c, x: (c + x, None), jnp.float32(0), x)[0]",
        "10",
    ),
]

# A transformation, what it computes, and what for.
TRANSFORMATIONS = [
    ("make_jaxpr(f)(x)", "", "the program of `f`, printed"),
    ("eval_shape(f, x)", "", "shapes and types of the result; nothing is computed"),
    ("jit(f)(x)", "$f(x)$", "compiled, once for each kind of argument"),
    ("grad(f)(x)", r"$\nabla f(x)$", "of one number, in the structure of `x`"),
    ("value_and_grad(f)(x)", r"$f(x),\ \nabla f(x)$", "both for the price of one"),
    ("jvp(f, (x,), (v,))", r"$f(x),\ \partial f(x)\,v$", "forward mode"),
    ("linearize(f, x)", r"$f(x),\ v \mapsto \partial f(x)\,v$", "forward, kept"),
    ("vjp(f, x)", r"$f(x),\ w \mapsto w^\top \partial f(x)$", "reverse mode"),
    ("jacfwd(f)(x)", r"$\partial f(x)$", "by columns: few inputs"),
    ("jacrev(f)(x)", r"$\partial f(x)$", "by rows: few outputs"),
    ("hessian(f)(x)", r"$\partial^2 f(x)$", "forward over reverse"),
    ("vmap(f)(xs)", r"$f(x_1), \dots, f(x_n)$", "one more axis, no loop"),
    ("checkpoint(f)", "$f(x)$", "keeps less for the way back, computes it again"),
]


def outcome(lines: str) -> str:
    """What a line gives: its value, or the name of its exception."""
    from minijax.support.tree_util import register_dataclass

    @dataclass
    class Layer:
        w: Any

    names: dict[str, Any] = {
        **{name: getattr(minijax, name) for name in ("jit", "grad", "vmap", "jacrev")},
        "make_jaxpr": minijax.make_jaxpr,
        "jnp": jnp,
        "lax": lax,
        "np": np,
        "random": random,
        "register_dataclass": register_dataclass,
        "Layer": Layer,
        "x": jnp.arange(3.0),
        "key": random.key(0),
    }
    *before, last = lines.split("; ")
    try:
        exec("\n".join(before), names)
        try:
            code = compile(last, "<cheat sheet>", "eval")
        except SyntaxError:
            exec(last, names)
            return "done"
        return str(eval(code, names)).replace("\n", "")
    except Exception as error:
        return type(error).__name__


def show(mistake: Mistake, chapters: dict[str, str]) -> list[str]:
    """A mistake as it stands on the page, both of its lines run."""
    gives, instead = outcome(mistake.wrong), outcome(mistake.right)
    if gives != mistake.gives:
        raise AssertionError(
            f"the cheat sheet says that {mistake.wrong} gives {mistake.gives}; "
            f"it gives {gives}."
        )
    if instead.endswith("Error"):
        raise AssertionError(f"the line to write, {mistake.right}, raises {instead}.")
    link = ""
    if mistake.chapter in chapters:
        link = f" [Chapter {mistake.chapter}](notebooks/{chapters[mistake.chapter]})"
    return [
        ":::{container} mj-mistake",
        f"**{mistake.believed}?** {mistake.so}{link}",
        "",
        "```python",
        *(f"{line}" for line in mistake.wrong.split("; ")),
        f"# {gives}. Write:",
        *(f"{line}" for line in mistake.right.split("; ")),
        f"# {instead}",
        "```",
        ":::",
        "",
    ]


def sentences(path: Path) -> tuple[str, list[str]]:
    """A chapter's title, and the sentences that it asks to remember."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    title = texts[0].splitlines()[0].removeprefix("# ")
    found = [text for text in texts if "## Three sentences to remember" in text]
    if not found:
        return title, []
    part = found[0].partition("## Three sentences to remember")[2]
    lines = re.findall(r"^- .*(?:\n  .*)*", part, re.M)
    return title, [" ".join(line.split()) for line in lines]


def lines_to_write(path: Path) -> list[str]:
    """The rows that a chapter adds to the cheat sheet, as rows of a table."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    part = text.partition("## For the cheat sheet")[2].partition("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| `")]
    return ["| write | and get |", "|---|---|", *rows] if rows else []


def first_sentence(made: Any) -> str:
    """The first sentence of a docstring, without the function's name before it."""
    text = " ".join((made.__doc__ or "").split())
    sentence = re.split(r"(?<=[a-z)`])\. ", text + " ")[0].strip().rstrip(".")
    sentence = re.sub(r"^`see\.\w+`: ", "", sentence)
    return sentence[:1].upper() + sentence[1:] + "."


def keys() -> list[tuple[str, str]]:
    """The keys of a view and what they do, as the player lists them."""
    text = (ROOT / "widgets/src/player/player.ts").read_text(encoding="utf-8")
    table = text.partition("const keys: Keys[] = [")[2].partition("];")[0]
    return re.findall(r'\[\s*"([^"]+)",\s*"([^"]+)"', table)


def view_names() -> list[str]:
    """The functions of `see` that make a view, in the alphabet's order."""
    return [name for name in see.__all__ if name[0].islower()]


def page(notebooks: list[Path]) -> str:
    """The cheat sheet as a page of the book."""
    chapters = {path.name[:2]: path.name for path in notebooks}
    lines = ["---", "html_theme.sidebar_secondary.remove: true", "---", ""]
    lines += ["# Cheat sheet", ""]
    lines += ["Made at each build, and checked by running what it says.", ""]
    lines += ["## You may think", ""]
    lines += ["`x` is `jnp.arange(3.0)`, `key` is `random.key(0)`.", ""]
    lines += ["::::{container} mj-mistakes"]
    for mistake in MISTAKES:
        lines += show(mistake, chapters)
    lines += ["::::", ""]
    lines += ["## Transformations", ""]
    lines += ["| write | to get | what for |", "|---|---|---|"]
    for call, gets, what in TRANSFORMATIONS:
        getattr(minijax, call.partition("(")[0])
        lines.append(f"| `{call}` | {gets} | {what} |")
    lines += ["", "## Views", "", "`import minijax_widgets as see`", ""]
    lines += ["| view | what it shows |", "|---|---|"]
    for name in view_names():
        lines.append(f"| `see.{name}` | {first_sentence(getattr(see, name))} |")
    lines += ["", "Inside a view:", "", "| keys | what they do |", "|---|---|"]
    lines += [f"| `{pressed}` | {does} |" for pressed, does in keys()]
    lines += ["", "## Chapter by chapter", ""]
    for path in notebooks:
        title, told = sentences(path)
        if told:
            lines += [f"**[{title}](notebooks/{path.name})**", ""]
            lines += [*lines_to_write(path), "", *told, ""]
    return "\n".join(lines)
