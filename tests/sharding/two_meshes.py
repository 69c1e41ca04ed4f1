"""Arrays on meshes of other axis types, or other sizes, than the one in use: cases.

Each case is a program of one or two arrays, run with no mesh in use, or with one that
is Explicit, Auto, or of other sizes. It returns the result and its type, or raises.
"""

from __future__ import annotations

import contextlib
import functools

CASES = {}


class Bench:
    """A library and arrays: on Explicit, Auto and other meshes, and on one device."""

    def __init__(self, lib):
        self.mj, self.jnp, self.lax = lib.mj, lib.jnp, lib.lax
        sizes = {"E": (4, 2), "A": (4, 2), "O": (2, 4), "A2": (2, 4)}
        kinds = {"E": lib.explicit, "A": lib.auto, "O": lib.explicit, "A2": lib.auto}
        self.meshes = {k: lib.make_mesh(sizes[k], "xy", kinds[k]) for k in sizes}
        self.host = lib.numbers(8, 8)
        self.arrays = {"d": lib.jnp.asarray(self.host), "h": self.host}
        self.arrays["committed"] = lib.mj.device_put(self.host, lib.mj.devices()[0])
        for name, mesh in self.meshes.items():
            self.arrays[name] = lib.put(self.host, "x", mesh=mesh)
            self.arrays[f"{name}whole"] = lib.put(self.host, mesh=mesh)


def _run(program, used, names, lib):
    t = Bench(lib)
    mesh = t.meshes.get(used)
    with lib.mj.set_mesh(mesh) if mesh else contextlib.nullcontext():
        result = program(t, *(t.arrays[name] for name in names))
        return result if isinstance(result, str) else [result, str(t.mj.typeof(result))]


PAIRS = {
    "add": lambda t, a, b: a + b,
    "jit_add": lambda t, a, b: t.mj.jit(lambda a, b: a + b)(a, b),
    "first": lambda t, a, b: t.mj.jit(lambda a, b: a)(a, b),
    "second": lambda t, a, b: t.mj.jit(lambda a, b: b)(a, b),
    "closed": lambda t, a, b: t.mj.jit(lambda b: a + b)(b),
    "where": lambda t, a, b: t.jnp.where(a > 0, a, b),
    "in_two_functions": lambda t, a, b: t.mj.jit(
        lambda a, b: t.mj.jit(t.jnp.sum)(a * 2) + t.mj.jit(t.jnp.sum)(b)
    )(a, b),
    "grad": lambda t, a, b: t.mj.grad(lambda a: (a + b).sum())(a),
    "vmap": lambda t, a, b: t.mj.vmap(lambda a, b: a + b)(a, b),
    "scan": lambda t, a, b: t.lax.scan(lambda c, x: (c, x + c), b[0], a)[1],
}


def _while(t, a, b):
    """Constants of the condition are on one mesh, those of the body on another."""
    return t.lax.while_loop(
        lambda c: (c[0] * a).sum() < -1e9, lambda c: (c[0] * 2, c[1] * b), (a, b)
    )[0]


SINGLE = {
    "same": lambda t, a: t.mj.jit(lambda a: a)(a),
    "negative": lambda t, a: t.jnp.negative(a),
    "closed": lambda t, a: t.mj.jit(lambda: t.jnp.negative(a))(),
    "make_jaxpr": lambda t, a: str(t.mj.make_jaxpr(lambda a: -a)(a)),
    "make_jaxpr_closed": lambda t, a: str(t.mj.make_jaxpr(lambda: t.jnp.sin(a))()),
    "eval_shape": lambda t, a: str(t.mj.eval_shape(lambda a: -a, a)),
    "lower": lambda t, a: str(len(t.mj.jit(lambda a: -a).lower(a).as_text()) > 0),
    "cond": lambda t, a: t.lax.cond(True, lambda a: a * 2, lambda a: a, a),
    "sum": lambda t, a: t.jnp.sum(a, 1),
}
TOGETHER = ["E A", "A E", "E Awhole", "Ewhole A", "E O", "Ewhole Owhole", "E d", "A h"]
TOGETHER += ["E committed"]
_count = 0
for _used in ("none", "E", "A", "O"):
    for _name, _program in PAIRS.items():
        for _both in TOGETHER:
            _count += 1
            # All programs with no mesh in use, and every fifth of the others.
            if _used == "none" or _count % 5 == 0:
                CASES[f"{_name} {_used} {_both}"] = functools.partial(
                    _run, _program, _used, _both.split()
                )
    for _name, _program in SINGLE.items():
        for _one in ("E", "Ewhole", "A", "d", "committed"):
            _count += 1
            if _count % 2 or _one == "A":
                CASES[f"{_name} {_used} {_one}"] = functools.partial(
                    _run, _program, _used, [_one]
                )
for _both in ("E O", "Ewhole Owhole", "O Ewhole", "E d", "A Awhole"):
    CASES[f"while none {_both}"] = functools.partial(
        _run,
        lambda t, a, b: t.mj.jit(_while, static_argnums=0)(t, a, b),
        "none",
        _both.split(),
    )

_TOGETHER = {  # types on two meshes of Auto axes, or on none, go together
    "vjp": lambda t, a, b: t.mj.vjp(lambda a: a * 2, a)[1](b)[0],
    "carry": lambda t, a, b: t.lax.fori_loop(0, 2, lambda i, c: c * b, a),
    "carry_in_jit": lambda t, a, b: t.mj.jit(
        lambda a, b: t.lax.fori_loop(0, 2, lambda i, c: c * b, a)
    )(a, b),
}
for _name, _both in (
    *(("vjp", "d A"), ("vjp", "A Awhole"), ("vjp", "E Ewhole")),
    *(("carry", "d A"), ("carry", "A d"), ("carry_in_jit", "d E")),
    *(("carry", "A A2"), ("carry_in_jit", "A A2"), ("vjp", "A A2")),
):
    CASES[f"{_name} none {_both}"] = functools.partial(
        _run, _TOGETHER[_name], "none", _both.split()
    )
