"""How long views take: first paint and steps in a browser, and what recording costs.

    python benchmarks/views.py [--write]

Needs chromium and the playwright wheel. Times are wall-clock medians on one machine.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.explain.trace import record_trace

HERE = Path(__file__).parent
X = np.ones(4, np.float32)


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
    () => { window.painted = performance.now() - window.began; }));
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


def in_browser(view: Any, browser: Any) -> tuple[float, float]:
    """Milliseconds to the first paint, and of a step with its layout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "view.html"
        path.write_text(PAINT % view.to_html(), encoding="utf-8")
        paints, steps = [], []
        for _ in range(3):
            page = browser.new_page()
            page.goto(path.as_uri())
            page.wait_for_function("window.painted !== undefined", timeout=60_000)
            paints.append(page.evaluate("window.painted"))
            steps += page.evaluate(STEP)
            page.close()
    return statistics.median(paints), statistics.median(steps)


def recording_cost(equations: int) -> float:
    """The time of a recorded trace, over that of the plain one."""
    ratios = []
    for _ in range(5):
        # Functions of their own: a program that was traced is kept.
        start = time.perf_counter()
        minijax.make_jaxpr(program(equations))(X)
        between = time.perf_counter()
        record_trace(program(equations), X)
        ratios.append((time.perf_counter() - between) / (between - start))
    return statistics.median(ratios)


def main() -> None:
    """Measures, prints a table, and writes it on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    from playwright.sync_api import sync_playwright

    rows = []
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        for count, paint_aim, step_aim in ((2_000, 300, 16), (10_000, 1_000, 50)):
            for name, show in (("jaxpr", see.jaxpr), ("trace", see.trace)):
                view = show(program(count), X)
                paint, step = in_browser(view, browser)
                size = len(view.to_html()) / 1024
                rows.append(
                    f"| see.{name}, {count:,} equations | {paint:.0f} | {paint_aim} | "
                    f"{step:.1f} | {step_aim} | {size:.0f} |"
                )
        browser.close()
    cost = recording_cost(2_000)
    text = "\n".join(
        [
            "# How long views take",
            "",
            f"{date.today()}, Python {platform.python_version()}, Chromium, 2 cores. "
            "Made by `python benchmarks/views.py --write`; medians.",
            "",
            "| view | first paint, ms | aim | step, ms | aim | HTML, KiB |",
            "|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
            f"A trace recorded by `see.trace`, with its jaxpr printed, takes {cost:.1f}"
            " times the plain one (aim: 2).",
            "",
        ]
    )
    print(text)
    if write:
        (HERE / "VIEWS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
