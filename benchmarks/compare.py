"""minijax beside jax: fresh processes in turn, ratios with their spread.

    python benchmarks/compare.py [--rounds 5] [--write]

Each round starts one process for either library, in an order that alternates, and
divides minijax's time by jax's. The table shows the median of the rounds' ratios, the
smallest and the largest, and the aim of DESIGN.md. With `--write` it is put into
benchmarks/RESULTS.md. jax must be installed at jaxlib's version.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The aims of DESIGN.md: minijax's time over jax's.
AIMS = {
    "import": 0.4,
    "trace: operator x + x": 0.25,
    "trace: operator x * 2.": 0.25,
    "trace: lax.sin": 0.3,
    "trace: nested jit, seen before": 0.3,
    "trace: jnp.where": 0.3,
    "trace: grad of a 20-layer network": 0.2,
    "trace: vmap(grad) of a 20-layer network": 0.2,
    "trace: grad of a 1,000-layer network": 0.2,
    "trace: grad of a 6-layer transformer": 0.2,
    "trace: vmap(grad) of a 6-layer transformer": 0.2,
    "trace: scan of 10,000 steps": 0.3,
    "trace: grad of a scan of 10,000 steps": 0.3,
    "trace: grad of a cond": 0.3,
    "trace: while_loop": 0.3,
    "scan of 10,000 steps, compiled": 1.0,
    "trace + lower: that gradient": 0.28,
    "first call: that gradient, compiled": 0.9,
    "first call: from the disk cache": 0.2,
    "call: one argument": 1.25,
    "call: twenty leaves": 0.9,
    "eager: operator x + x": 0.9,
    "eager: operator x * 2.": 0.9,
    "eager: jnp.sum": 1.2,
    "eager: jnp.sin": 1.2,
    "eager: jnp.add": 1.2,
    "eager: jnp.where": 1.2,
    "eager: grad of sum(sin(x) * x)": 0.25,
    "training step, compiled": 1.0,
    "training step, 512 wide": 1.0,
}


def run(library: str, *more: str, environment: dict[str, str]) -> dict[str, float]:
    """The times of one fresh process."""
    command = [sys.executable, str(HERE / "workloads.py"), library, *more]
    answer = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )
    if answer.returncode:
        raise SystemExit(f"{library} failed:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


def collect(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """For each workload the rounds' pairs (minijax, jax), in microseconds."""
    environment = {k: v for k, v in os.environ.items() if "FAST_COMPILE" not in k}
    pairs: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as cache:
        environment["BENCHMARK_CACHE"] = cache
        # Both libraries start from compiled bytecode, as installed packages do.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = os.path.join(cache, "bytecode")
        run("jax", environment=environment)
        run("minijax", environment=environment)
        run("minijax", "disk", environment=environment)  # fills the cache
        for number in range(rounds):
            order = ["jax", "minijax"] if number % 2 else ["minijax", "jax"]
            times: dict[str, dict[str, float]] = {"jax": {}, "minijax": {}}
            for library in order:
                times[library] |= run(library, environment=environment)
                times[library] |= run(library, "disk", environment=environment)
            for name, theirs in times["jax"].items():
                pairs.setdefault(name, []).append((times["minijax"][name], theirs))
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return pairs


def table(pairs: dict[str, list[tuple[float, float]]]) -> str:
    """The table in Markdown, in the order of the aims."""
    lines = [
        "| what | minijax, us | jax, us | ratio | spread | aim | |",
        "|---|---:|---:|---:|---|---:|---|",
    ]
    for name, aim in AIMS.items():
        ours = statistics.median(a for a, _ in pairs[name])
        theirs = statistics.median(b for _, b in pairs[name])
        ratios = sorted(a / b for a, b in pairs[name])
        ratio = statistics.median(ratios)
        mark = "" if ratio <= aim else "misses"
        lines.append(
            f"| {name} | {ours:,.1f} | {theirs:,.1f} | **{ratio:.2f}** "
            f"| {ratios[0]:.2f} to {ratios[-1]:.2f} | {aim} | {mark} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = table(collect(arguments.rounds))
    print(text)
    if arguments.write:
        head = (
            "# minijax beside jax\n\n"
            f"{datetime.date.today()}, Python {platform.python_version()}, jaxlib "
            f"{version('jaxlib')}, jax {version('jax')}, {os.cpu_count()} cores, CPU, "
            f"{arguments.rounds} rounds. Made by `python benchmarks/compare.py "
            "--write`; how to read it stands in README.md.\n\n"
        )
        page = HERE / "RESULTS.md"
        # Other measurements stand after this one, each under its heading.
        _, _, others = page.read_text().partition("\n## ")
        page.write_text(head + text + "\n" + (others and "\n## " + others))


if __name__ == "__main__":
    main()
