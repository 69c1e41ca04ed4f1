"""A training step of chapter 15's writer, in turns on minijax and on jax.

    python benchmarks/writer.py [rounds]

Each library runs in a process of its own, for a while at a time, so that both meet the
same load. Prints the median of the rounds' best steps, and their ratio.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEP = '''
import contextlib, io, json, sys, time
from pathlib import Path
parts = "modules", "optimizers"
texts = {name: Path(f"tiny/{name}.py").read_text() for name in parts}
cells = json.loads(Path("15_a_network_end_to_end.ipynb").read_text())["cells"]
cells = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
texts["writer"] = "\\n".join(
    next(text for text in cells if begin in text)
    for begin in ("import codecs", "class Norm(", "def surprise(")
).partition("state, picks, losses")[0]
texts["imports"] = """
import numpy as np
from minijax import jit, random, value_and_grad, vmap
"""
library, names = sys.argv[1], {"__name__": "writer"}
sys.modules["writer"] = sys.modules["__main__"]
for name in ("imports", "modules", "optimizers", "writer"):
    text = texts[name].replace("minijax", library)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, name, "exec"), names)
step, weights, texts = names["write_step"], names["weights"], names["windows"][:16]
state = names["optimizer"].init(weights)
for line in sys.stdin:
    best = 1e9
    for _ in range(60):
        start = time.perf_counter()
        weights, state, value = step(weights, state, texts)
        value.block_until_ready()
        best = min(best, time.perf_counter() - start)
    print(best, flush=True)
'''


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    libraries = ("minijax", "jax")
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", STEP, name],
            cwd=ROOT / "notebooks",
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in libraries
    }
    found: dict[str, list[float]] = {name: [] for name in libraries}
    for turn in range(rounds + 1):
        for name in libraries if turn % 2 else reversed(libraries):
            process = running[name]
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            seconds = float(process.stdout.readline())
            if turn:  # the first turn compiles
                found[name].append(seconds)
    for process in running.values():
        process.communicate("")
    middle = {name: statistics.median(times) for name, times in found.items()}
    ratio = middle["minijax"] / middle["jax"]
    shown = {name: round(time * 1e3, 3) for name, time in middle.items()}
    print(json.dumps({"milliseconds of a step": shown, "ratio": round(ratio, 3)}))


if __name__ == "__main__":
    main()
