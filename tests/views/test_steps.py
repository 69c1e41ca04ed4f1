"""What a step makes a browser do, counted: styles compared, layouts; and what the first
picture leaves for later."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see


def program(x):
    for _ in range(100):
        x = jnp.sin(x) * 1.5
    return x


X = np.ones(4, np.float32)
SHOWN = {
    "jaxpr": lambda: see.jaxpr(program, X),
    "memory": lambda: see.memory(minijax.grad(lambda x: jnp.sum(program(x))), X),
}
# Where a rule of the style sheet asks what elements hold (`:has`), each step compares
# all elements with the rules again: 42,000 comparisons for these 200 equations.
MOST = 8_000
STEPS = """async (count) => {
  const root = document.querySelector(".mj-live");
  for (let i = 0; i < count; i++) {
    const key = i % 2 ? "ArrowRight" : "ArrowLeft";
    root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    root.getBoundingClientRect();
    await new Promise(requestAnimationFrame);
  }
}"""
TRACED = ["devtools.timeline", "disabled-by-default-blink.debug"]


def traced(page, run):
    """What the browser notes of itself while something runs."""
    events, ended = [], []
    browser = page.context.new_cdp_session(page)
    browser.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    browser.on("Tracing.tracingComplete", lambda _: ended.append(True))
    config = {"includedCategories": TRACED}
    browser.send("Tracing.start", {"traceConfig": config})
    run()
    browser.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(10)
    return events


@pytest.mark.parametrize("name", SHOWN)
def test_a_step_computes_few_styles_and_lays_out_once(show, name):
    page = show(SHOWN[name](), width=1200)
    page.evaluate(STEPS, 2)
    events = traced(page, lambda: page.evaluate(STEPS, 4))
    rules = [
        rule
        for event in events
        if event["name"] == "SelectorStats" and "selector_stats" in event["args"]
        for rule in event["args"]["selector_stats"]["selector_timings"]
    ]
    compared = sum(rule["match_attempts"] for rule in rules)
    layouts = sum(event["name"] == "Layout" for event in events)
    assert 0 < compared <= 4 * MOST
    assert layouts == 4


# What stands there before the browser has painted, and a while later.
FIRST = """
const told = () => {
  const rows = [...document.querySelectorAll(".mj-listing tr")];
  const { top } = document.querySelector("tr.mj-on").getBoundingClientRect();
  return [rows.filter((row) => row.cells.length).length, rows.length, top];
};
new MutationObserver((_, watching) => {
  if (!document.querySelector(".mj-live tr.mj-on")) return;
  watching.disconnect();
  window.first = told();
}).observe(document, { childList: true, subtree: true });
"""


@pytest.mark.parametrize("step", [1, 70, 200])
def test_the_first_picture_has_the_rows_around_its_step(browser, tmp_path, step):
    path = tmp_path / "view.html"
    see.jaxpr(program, X).at(step).save(path)
    page = browser.new_page(viewport={"width": 1200, "height": 700})
    page.add_init_script(FIRST)
    page.goto(path.as_uri())
    rows = "document.querySelectorAll('.mj-listing tr').length"
    page.wait_for_function(f"{rows} > 200")
    drawn, _, top = page.evaluate("first")
    assert 32 < drawn < 80
    # The other rows come without moving those that are there.
    all_drawn, all_rows, now = page.evaluate(f"(() => {{{FIRST}; return told()}})()")
    assert all_drawn == all_rows > 200
    assert 0 < top < 700 and abs(now - top) < 1
    numbers = "[...document.querySelectorAll('.mj-listing tr')].map(r => r.dataset.row)"
    order = list(map(int, page.evaluate(numbers)))
    assert order == sorted(order)
    page.close()


def test_a_frame_that_cannot_be_unpacked_leaves_the_still_picture(browser, tmp_path):
    path = tmp_path / "view.html"
    page = see.jaxpr(program, X).to_html()
    broken = re.sub(r'frame="[^"]{40}', lambda _: 'frame="', page)
    path.write_text(broken, encoding="utf-8")
    shown = browser.new_page()
    errors = []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto(path.as_uri())
    shown.wait_for_function("document.querySelector('.minijax-view').clientHeight > 0")
    assert not shown.query_selector(".mj-live")
    assert "sin" in shown.inner_text(".minijax-view")
    shown.wait_for_timeout(50)
    assert errors
    shown.close()
