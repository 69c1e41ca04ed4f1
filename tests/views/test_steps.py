"""What a step makes a browser do, counted: styles compared, layouts."""

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
