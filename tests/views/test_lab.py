"""Views in a real JupyterLab: live, keys stay inside, reopened trusted and not."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from minijax_lab.command import quiet_environment

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
CODE = """import numpy as np
import minijax.numpy as jnp
import minijax_widgets as see
see.jaxpr(lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x)), np.ones(4, np.float32))"""
WIDGET = """view = see.jaxpr(lambda x: jnp.sin(x) * x, np.ones(2, np.float32))
view.widget"""
LIVE = """from ipywidgets import IntSlider
def row(n):
    return jnp.ones(n) + jnp.ones(n if n != 5 else 2)
see.live(see.jaxpr, row, n=IntSlider(3, 1, 8))"""
TOKEN = "for-the-tests"


def notebook(cells):
    nbformat = pytest.importorskip("nbformat")
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    made.metadata.kernelspec = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    return made


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on a folder of its own: (folder, address)."""
    pytest.importorskip("jupyterlab")
    nbformat = pytest.importorskip("nbformat")
    folder = tmp_path_factory.mktemp("lab")
    nbformat.write(notebook([CODE, WIDGET, "1 + 1"]), folder / "views.ipynb")
    nbformat.write(notebook([CODE, LIVE]), folder / "live.ipynb")
    port = free_port()
    environment = {
        **quiet_environment(str(folder / ".lab")),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "JUPYTER_DATA_DIR": str(folder / ".data"),
        "JUPYTER_RUNTIME_DIR": str(folder / ".runtime"),
        "JUPYTER_CONFIG_DIR": str(folder / ".config"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", f"--notebook-dir={folder}"]
    command += [f"--IdentityProvider.token={TOKEN}", "--log-level=ERROR"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=2).read()
            break
        except OSError:
            time.sleep(0.5)
    else:
        process.kill()
        pytest.fail("JupyterLab did not start in two minutes")
    yield folder, address
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()


def opened(browser, lab, name, dark=False):
    page = browser.new_page(
        viewport={"width": 1300, "height": 900},
        color_scheme="dark" if dark else "light",
    )
    page.goto(f"{lab[1]}/lab/tree/{name}?token={TOKEN}&reset")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
    return page


def wait_for_kernel(page):
    page.wait_for_function("document.body.innerText.includes('| Idle')", timeout=60_000)


def run_all(page):
    wait_for_kernel(page)
    page.click("li.lm-MenuBar-item:has-text('Run')")
    page.click(".lm-Menu-item:has-text('Run All Cells')")
    page.wait_for_selector(".mj-live", timeout=90_000)
    page.wait_for_function(
        "document.querySelectorAll('.mj-live').length >= 2", timeout=60_000
    )


@pytest.fixture(scope="module")
def page(browser, lab):
    """The notebook, run from top to bottom."""
    shown = opened(browser, lab, "views.ipynb")
    run_all(shown)
    yield shown
    shown.close()


def cells(page):
    return page.locator(".jp-Notebook .jp-Cell").count()


def test_views_are_live(page):
    assert page.locator(".jp-OutputArea .mj-live").count() == 2
    assert page.locator(".mj-where").first.inner_text().startswith("step ")


def test_keys_stay_inside(page):
    before = cells(page)
    page.locator(".mj-live").first.focus()
    where = page.locator(".mj-where").first
    page.keyboard.press("Home")
    assert where.inner_text().startswith("step 1 of ")
    page.keyboard.press("ArrowRight")
    assert where.inner_text().startswith("step 2 of ")
    for key in ("b", "d", "d", "a", "x", "ArrowDown", "m"):
        page.keyboard.press(key)
    time.sleep(0.5)
    assert cells(page) == before


def test_shift_enter_and_saving_pass(page, lab):
    page.locator(".mj-live").first.focus()
    page.keyboard.press("Control+s")
    text = (lab[0] / "views.ipynb").read_text()
    for _ in range(40):
        if "minijax-view" in text:
            break
        time.sleep(0.25)
        text = (lab[0] / "views.ipynb").read_text()
    assert "minijax-view" in text
    page.locator(".mj-live").first.focus()
    count = page.locator(".jp-InputPrompt").first.inner_text()
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(
        "before => { const now = document.querySelector('.jp-InputPrompt').innerText;"
        " return now !== before && /\\d/.test(now); }",
        arg=count,
        timeout=90_000,
    )


def test_escape_gives_the_focus_back(page):
    page.wait_for_selector(".mj-live")
    page.locator(".mj-live").first.focus()
    page.keyboard.press("Escape")
    inside = page.evaluate("!!document.activeElement.closest('.minijax-view')")
    assert not inside


def trust(folder, name):
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(folder / ".data")}
    command = [sys.executable, "-m", "jupyter", "trust", str(folder / name)]
    subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.mark.turns(3)
def test_reopened_without_a_kernel(browser, lab, page):
    """Trusted: live again. Not trusted: the static frame, with the whole program."""
    nbformat = pytest.importorskip("nbformat")
    saved = nbformat.read(lab[0] / "views.ipynb", as_version=4)
    saved.cells = saved.cells[:1]
    saved.metadata.kernelspec = {
        "display_name": "none",
        "language": "python",
        "name": "no-such-kernel",
    }
    nbformat.write(saved, lab[0] / "untrusted.ipynb")
    second = opened(browser, lab, "untrusted.ipynb")
    second.wait_for_selector(".minijax-view, .jp-OutputArea table", timeout=90_000)
    time.sleep(2)
    assert second.locator(".mj-live").count() == 0
    shown = second.locator(".jp-OutputArea").first.inner_text()
    assert "jaxpr of lambda(f32[4])" in shown and "reduce_sum" in shown
    assert "function(" not in shown and "minijaxPlayer" not in shown
    second.close()
    nbformat.write(saved, lab[0] / "trusted.ipynb")
    trust(lab[0], "trusted.ipynb")
    third = opened(browser, lab, "trusted.ipynb")
    third.wait_for_selector(".mj-live", timeout=90_000)
    third.close()


@pytest.mark.turns(3)
def test_a_slider_makes_the_view_again_and_is_saved(browser, lab):
    """`see.live` in Lab: it moves, tells an error, and is there when opened again."""
    nbformat = pytest.importorskip("nbformat")
    page = opened(browser, lab, "live.ipynb")
    run_all(page)
    output = page.locator(".jp-OutputArea").nth(1)
    assert "f32[3]" in output.inner_text()
    page.locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.body.innerText.includes('f32[4]')")
    page.locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.body.innerText.includes('incompatible shapes')")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.body.innerText.includes('f32[6]')")
    assert "incompatible shapes" not in output.inner_text()
    page.keyboard.press("Control+s")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        # Lab may be writing the file just now.
        with contextlib.suppress(ValueError):
            saved = nbformat.read(lab[0] / "live.ipynb", as_version=4)
            if saved.metadata.get("widgets"):
                break
        time.sleep(0.5)
    page.close()
    assert saved.cells[1].outputs[0].data["text/plain"].startswith("live: n = 3")
    saved.metadata.kernelspec = {
        "display_name": "none",
        "language": "python",
        "name": "no-such-kernel",
    }
    nbformat.write(saved, lab[0] / "live_again.ipynb")
    trust(lab[0], "live_again.ipynb")
    again = opened(browser, lab, "live_again.ipynb")
    again.wait_for_selector(".noUi-handle", timeout=90_000)
    again.wait_for_function("document.body.innerText.includes('f32[6]')")
    assert "model not found" not in again.inner_text("body")
    again.close()
