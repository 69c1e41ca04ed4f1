"""The views in Firefox: no error, and what a step lights is seen."""

import functools
import itertools
import json
import os
import re
import shutil
import subprocess
import time

import pytest

import gallery as states
from tests.views.test_gallery import STEPS
from tests.views.test_visible_marks import CUT

PARTS = 4
# One state of each kind of picture; the whole gallery is left to `make test-all`.
FEW = ("trace", "grad", "memory, huge", "kernel", "placement, array")
# Firefox counts to a mark the tips that corners of its thick, unseen halo might have.
HEAD = "<style>.mj-halo{stroke-linejoin:round}</style>"
LIVE = """new Promise((tell) => {
  const wait = () => document.querySelectorAll(".mj-live").length === %d
    ? requestAnimationFrame(() => setTimeout(tell, 100)) : setTimeout(wait, 50);
  wait();
})"""
SIZES = "[innerWidth, document.documentElement.scrollWidth]"


class Firefox:
    """Firefox without a window, driven by its own protocol, WebDriver BiDi."""

    def __init__(self, path, profile):
        websocket = pytest.importorskip(
            "websocket", reason="websocket-client is needed"
        )
        options = ["--headless", "--no-remote", "--remote-debugging-port", "0"]
        said = profile / "said.txt"
        with said.open("w") as file:
            self.process = subprocess.Popen(
                [path, *options, "--profile", str(profile), "about:blank"],
                stderr=file,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"HOME": str(profile)},  # no other user's folder
            )
        end = time.monotonic() + 120
        while not (found := re.search(r"BiDi listening on (\S+)", said.read_text())):
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                pytest.skip(f"Firefox does not start here: {said.read_text()[-500:]}")
            time.sleep(0.1)
        address = found[1]
        self.socket = websocket.create_connection(
            f"{address}/session", timeout=120, suppress_origin=True
        )
        self.numbers = itertools.count(1)
        self.errors = []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.page = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method, **params):
        """What a command answers; errors of the page's console are kept."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self.socket.recv())
            if told.get("id") == number:
                assert told["type"] == "success", told
                return told["result"]
            if told.get("params", {}).get("level") == "error":
                self.errors.append(told["params"]["text"])

    def open(self, path, count, width):
        """Shows a page with so many views, at a width."""
        viewport = {"width": width, "height": 900}
        self.call("browsingContext.setViewport", context=self.page, viewport=viewport)
        url = path.as_uri()
        self.call(
            "browsingContext.navigate", context=self.page, url=url, wait="complete"
        )
        self.run(f"{LIVE % count}.then(() => 0)")

    def run(self, expression):
        """The value of an expression in the page."""
        told = self.call(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then(JSON.stringify)",
            target={"context": self.page},
            awaitPromise=True,
        )
        assert told["type"] == "success", told
        return json.loads(told["result"]["value"])

    def close(self):
        """Ends the browser."""
        self.call("browser.close")
        self.process.wait(60)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip("Firefox is not here: `apt-get install firefox-esr`")
    profile = tmp_path_factory.mktemp("profile")
    # A step is there at once, as in the tests with Chromium.
    settings = 'user_pref("ui.prefersReducedMotion", 1);\n'
    (profile / "user.js").write_text(settings, encoding="utf-8")
    shown = Firefox(path, profile)
    yield shown
    shown.close()


@functools.cache
def names_of(part):
    """The states of the gallery on a page."""
    return FEW if part is None else [*states.STATES][part::PARTS]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of a page."""

    @functools.cache
    def of_part(part):
        path = tmp_path_factory.mktemp("firefox") / f"{part}.html"
        path.write_text(states.page(names_of(part), HEAD), encoding="utf-8")
        return path

    return of_part


@pytest.mark.whole
@pytest.mark.parametrize("width", [1200, 800, 480])
@pytest.mark.parametrize(
    "part",
    [None, *(pytest.param(n, marks=pytest.mark.slow) for n in range(PARTS))],
)
def test_firefox_draws_steps_and_cuts_nothing(firefox, written, part, width):
    firefox.errors.clear()
    count = len(names_of(part))
    firefox.open(written(part), count, width)
    inner, scrolled = firefox.run(SIZES)
    assert inner == width and scrolled <= width
    for view in firefox.run(f"({STEPS})()"):
        assert view["height"] > 60 and all(view["seen"])
    views = firefox.run(f"({CUT})()")
    assert len(views) == count and sum(view["marks"] for view in views) > 20
    assert {view["told"]: view["cut"][:3] for view in views if view["cut"]} == {}
    assert firefox.errors == []
