"""Chapter 21 outside of the notebook: with JAX's imports, and wrong rules.

The cells that make the chapter's primitive run with jax, their imports changed. And
`check.primitive` finds a wrong rule of each kind, and says which.
"""

import contextlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.extend.core import Primitive
from minijax.interpreters import ad, batching, mlir
from minijax_lab import check, primitive_check

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "21_capstone.ipynb"
IMPORT = re.compile(r"^(from|import) minijax\b(?!_)", re.MULTILINE)


def cells_of_the_port() -> str:
    """The imports of the chapter and the cells that make `recur`, as one program."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    first = "".join(code[0]["source"]).splitlines()
    kept = [
        line
        for line in first
        if not re.search("minijax_(widgets|lab)|ipywidgets", line)
    ]
    ported = [c for c in code if "port" in c["metadata"].get("tags", [])]
    return "\n\n".join(["\n".join(kept), *("".join(c["source"]) for c in ported)])


def run(text: str) -> tuple[dict, str]:
    """The names that a program leaves, and what it prints."""
    names: dict = {"__name__": "capstone"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(text, names)
    return names, printed.getvalue()


def test_the_primitive_runs_with_jax_and_other_imports():
    pytest.importorskip("jax")
    text = cells_of_the_port()
    ours, ours_printed = run(text)
    changed = IMPORT.sub(r"\1 jax", text).replace("minijax.", "jax.")
    assert "minijax" not in changed
    theirs, theirs_printed = run(changed)
    assert theirs_printed == ours_printed and "recur[reverse=True]" in ours_printed
    a, x = np.float32([[0.5, -0.8, 0.9]] * 2), np.float32([[1, 2, 3], [4, 5, 6]])
    for name in ("jit", "grad", "vmap", "jvp"):
        found = []
        for names in (ours, theirs):
            recur, loss = names["recur"], names["loss"]
            use = {
                "jit": lambda a, x, n=names: n["jit"](n["recur"], static_argnums=2)(
                    a, x, True
                ),
                "grad": names["grad"](loss, (0, 1)),
                "vmap": names["vmap"](recur, (0, None)),
                "jvp": lambda a, x, n=names: n["jvp"](n["recur"], (a, x), (x, a)),
            }[name]
            found.append(use(a, x[0] if name == "vmap" else x))
        np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6, err_msg=name)


def plain(a, x):
    """y[t] = x[t] + a[t] * x[t-1]."""
    before = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :-1]], -1)
    return x + a * before


def made(**other):
    """A primitive that means `plain`, with some of its rules replaced, or left out."""
    p = Primitive("winds")

    def after(x):
        return jnp.concatenate([x[..., 1:], jnp.zeros_like(x[..., :1])], -1)

    def types(a, x):
        if a.shape != x.shape:
            raise TypeError("two shapes")
        return x

    def jvp(values, changes):
        (a, x), (da, dx) = values, map(ad.instantiate_zeros, changes)
        return p.bind(a, x), p.bind(a, dx) + (plain(da, x) - x)

    def batch(args, axes):
        size = next(v.shape[i] for v, i in zip(args, axes) if i is not None)
        front = [batching.bdim_at_front(v, i, size) for v, i in zip(args, axes)]
        return p.bind(*front), 0

    rules = {
        "type": types,
        "meaning": lambda a, x: np.asarray(plain(np.asarray(a), np.asarray(x))),
        "lowering": plain,
        "jvp": jvp,
        "transpose": lambda c, a, x: (None, c + after(a * c)),
        "batch": batch,
        **{name: rule and rule(p) for name, rule in other.items()},
    }
    if rules["meaning"]:
        p.def_impl(rules["meaning"])
    if rules["type"]:
        p.def_abstract_eval(rules["type"])
    if rules["lowering"]:
        lowered = mlir.lower_fun(rules["lowering"], multiple_results=False)
        mlir.register_lowering(p, lowered)
    for name, table in (
        ("jvp", ad.primitive_jvps),
        ("transpose", ad.primitive_transposes),
        ("batch", batching.primitive_batchers),
    ):
        if rules[name]:
            table[p] = rules[name]
    return lambda a, x: p.bind(a, x)


def unrolled(p):
    def batch(args, axes):
        size = next(v.shape[i] for v, i in zip(args, axes) if i is not None)
        front = [batching.bdim_at_front(v, i, size) for v, i in zip(args, axes)]
        return jnp.stack([p.bind(*(v[i] for v in front)) for i in range(size)]), 0

    return batch


def jvp_in_jnp(p):
    return lambda values, changes: minijax.jvp(
        plain, tuple(values), tuple(map(ad.instantiate_zeros, changes))
    )


WRONG = {
    "a type that takes all shapes": (
        {"type": lambda p: lambda a, x: x},
        "Operands of shapes (3,) and (4,) are taken",
    ),
    "a type that is always float32[3]": (
        {"type": lambda p: lambda a, x: x.update(shape=(3,))},
        "Operands of shapes (3,) and (4,) are taken",
    ),
    "no meaning": ({"meaning": None}, "no rule for: meaning"),
    "no lowering": ({"lowering": None}, "no rule for: lowering"),
    "no transpose": ({"transpose": None}, "no rule for: transpose"),
    "no batch": ({"batch": None}, "no rule for: batch"),
    "a meaning with another sign": (
        {"meaning": lambda p: lambda a, x: np.asarray(plain(-np.asarray(a), x))},
        "The function of ([0.5, -0.8, 0.9], [0.3, -0.7, 1.1]). At index 2: expected",
    ),
    "a lowering of the first axis": (
        {"lowering": lambda p: lambda a, x: plain(a.T, x.T).T},
        "in jit. At index (",
    ),
    "a jvp that forgets a": (
        {"jvp": lambda p: lambda v, t: (p.bind(*v), p.bind(v[0], t[1]))},
        "how it changes if",
    ),
    "a jvp that never binds the primitive": (
        {"jvp": jvp_in_jnp},
        "expected 2 of its equations",
    ),
    "a transpose without the neighbour": (
        {"transpose": lambda p: lambda c, a, x: (None, c)},
        "its gradient for x. At index",
    ),
    "a batch rule for axis 0 alone": (
        {"batch": lambda p: lambda args, axes: (p.bind(*args), 0)},
        "under vmap, in_axes (1, 1). At index (",
    ),
    "a batch rule that unrolls": (
        {"batch": unrolled},
        "Under vmap of 4 examples there are 4",
    ),
}


def test_a_right_primitive_is_taken(capsys):
    check.primitive(made(), plain)
    assert "24 of 24 random programs agree" in capsys.readouterr().out


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_found_and_named(name, capsys):
    rules, said = WRONG[name]
    check.primitive(made(**rules), plain)
    out = capsys.readouterr().out
    assert "not yet. " in out and said in out, out


def test_a_function_in_jnp_is_no_primitive():
    assert "one equation" in str(primitive_check.complaint(plain, plain))
    assert "one equation" in str(primitive_check.complaint(lax.mul, jnp.multiply))
