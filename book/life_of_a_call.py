"""Writes the page "The life of jit(grad(f))(x)", out of what is there.

    python book/life_of_a_call.py

writes `book/life_of_a_call.md`. The functions are cut from the files of the core by
their names; the outputs are those of one call, which is run and watched here. A test
makes the page again and compares.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import jaxlib
import numpy as np

from minijax import grad, jit, lax
from minijax.core import autodiff, dispatch, events, language, lowering, partial_eval
from minijax.core import jit as core_jit
from minijax.core.state import state

HERE = Path(__file__).resolve().parent
CORE = HERE.parent / "minijax" / "core"

# The twelve functions, in the order in which one call reaches them.
FUNCTIONS = {
    "JitFunction.__call__": core_jit.JitFunction.__call__,
    "JitFunction._compile": core_jit.JitFunction._compile,
    "trace_to_jaxpr": partial_eval.trace_to_jaxpr,
    "linearize": autodiff.linearize,
    "Primitive.bind": language.Primitive.bind,
    "LinearizeTrace.process_primitive": autodiff.LinearizeTrace.process_primitive,
    "JaxprTrace.process_primitive": partial_eval.JaxprTrace.process_primitive,
    "DynamicJaxprTrace.process_primitive": (
        partial_eval.DynamicJaxprTrace.process_primitive
    ),
    "type_of_application": language.type_of_application,
    "backward_pass": autodiff.backward_pass,
    "lower_eqns": lowering.lower_eqns,
    "Program.run": dispatch.Program.run,
}


def source(name: str) -> str:
    """A function or method as its file has it, docstring and comments included."""
    path = Path(FUNCTIONS[name].__code__.co_filename)
    text = path.read_text(encoding="utf-8")
    body: list[Any] = ast.parse(text).body
    for part in name.split("."):
        node = next(one for one in body if getattr(one, "name", None) == part)
        body = node.body
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    code = "\n".join(line[node.col_offset :] for line in lines)
    return f"```python\n# minijax/core/{path.name}\n{code}\n```"


class Life:
    """One call of `jit(grad(f))`, watched, and a second one."""

    def __init__(self) -> None:
        self.x = np.float32(0.5)
        self.tracers: list[str] = []
        self.happened: list[tuple[str, dict[str, Any]]] = []
        self.letters: dict[Any, str] = {}

        def f(x):
            self.current = state.trace
            sine = lax.sin(x)
            self.tracers = [repr(x), repr(x.primal), repr(sine)]
            return sine * x

        self.function = jit(grad(f))
        events.subscribers.append(self.see)
        try:
            self.result = self.function(self.x)
            self.first = list(self.happened)
            self.happened.clear()
            self.again = self.function(self.x)
        finally:
            events.subscribers.remove(self.see)
        self.second = [name for name, _ in self.happened]
        self.outer = self.data("trace.begin")["trace"]
        self.lowered = self.function.lower(self.x)

    def see(self, name: str, data: dict[str, Any]) -> None:
        self.happened.append((name, data))

    def data(self, name: str) -> dict[str, Any]:
        """What the first event of this name in the first call says."""
        return next(data for other, data in self.first if other == name)

    def outputs(self) -> dict[str, str]:
        """The output to show after each of the functions."""
        miss = self.data("jit.miss")
        tree, avals, _, statics = miss["key"]
        at = [name for name, _ in self.first].index("linearize.end")
        begin = [name for name, _ in self.first].index("linearize")
        end = self.data("linearize.end")
        mul = language.all_primitives["mul"]
        scalar = language.get_aval(self.x)
        type_, effects = language.type_of_application(mul, (scalar, scalar), {})
        text = self.lowered.compile().as_text()
        entry = text[text.index("ENTRY") :]
        operations = re.findall(r"= \S+ ([\w-]+)\(", entry)
        transposed = [d["primitive"].name for n, d in self.first if n == "transpose"]
        went = [line.split() for line in self.written(0, begin).splitlines()]
        forward = self.written(0, at)
        read = " ".join(self.letter(r.atom, r._trace) for r in end["residuals"])
        return {
            "key": f"tree     {tree}\ntypes    {avals}\nstatics  {statics}",
            "miss": f"entries of the cache before the call: {len(miss['known'])}",
            "tracer": self.tracers[1],
            "pair": self.tracers[0],
            "current": f"current trace: {self.current}",
            "sine_pair": self.tracers[2],
            "split": "\n".join(f"{name}: {to} program" for to, _, _, name, *_ in went),
            "sine": self.written(0, begin),
            "forward": forward,
            "type": f"mul of {scalar} and {scalar}: {type_}, effects {set(effects)}",
            "linear": f"{end['jaxpr']}\n\nresiduals, of the outer program: {read}",
            "transposed": "transposed: " + ", ".join(transposed),
            "backward": self.written(at, len(self.first)),
            "jaxpr": str(self.function.trace(self.x).jaxpr),
            "stablehlo": self.lowered.as_text().strip(),
            "compiled": "operations of the compiled program: " + ", ".join(operations),
            "result": f"{self.result!r}\n{np.cos(self.x) * self.x + np.sin(self.x)}",
            "second": f"{self.again!r}\nevents: {', '.join(self.second)}",
            "jaxlib": jaxlib.__version__,
        }

    def written(self, start: int, stop: int) -> str:
        """The equations that were written between two events, and to which program."""
        lines = []
        for name, data in self.first[start:stop]:
            if name == "bind":
                which = "outer " if data["trace"] is self.outer else "linear"
                eqn = data["eqn"]
                inputs = " ".join(self.letter(v, data["trace"]) for v in eqn.invars)
                (out,) = (self.letter(v, data["trace"]) for v in eqn.outvars)
                lines.append(f"{which}  {out} = {eqn.primitive} {inputs}")
        return "\n".join(lines)

    def letter(self, atom: Any, trace: Any) -> str:
        """The letter of a variable; a residual has that of the outer variable."""
        if isinstance(atom, language.Literal):
            return str(atom.val)
        for own, value in trace.constants.by_id.values():
            if own is atom and isinstance(value, partial_eval.DynamicJaxprTracer):
                return self.letter(value.atom, value._trace)
        if atom in trace.invars:
            return "x" if trace is self.outer else "t"
        return self.letters.setdefault(atom, "abcdefghijklmnop"[len(self.letters)])


def page() -> str:
    """The page: the template with the functions and outputs in their places."""
    made = Life().outputs()
    text = (HERE / "life_of_a_call.txt").read_text(encoding="utf-8")
    text = re.sub(r"^<source (.+)>$", lambda m: source(m[1]), text, flags=re.M)
    fill = "```text\n{}\n```".format
    text = re.sub(r"^<output (\w+)>$", lambda m: fill(made[m[1]]), text, flags=re.M)
    return text.replace("<jaxlib>", made["jaxlib"])


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else HERE / "life_of_a_call.md"
    target.write_text(page(), encoding="utf-8")
