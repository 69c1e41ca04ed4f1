"""The flight recorder: a script that uses real JAX, run as it is, and its page."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = """
import sys
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np
from jax import jit

@jit
def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)

@partial(jax.jit, static_argnames="rate")
def step(w, x, rate):
    return w - rate * jax.grad(loss)(w, x)

@jax.jit(donate_argnums=0)
def twice(x):
    return x * 2

w = np.ones((4, 4), np.float32)
for number in range(int(sys.argv[1])):
    size = 5 if number == 3 else 8
    w = step(w, np.ones((size, 4), np.float32), rate=0.1)
print("loss", float(loss(w, np.ones((2, 4), np.float32))), __name__, len(sys.argv))
print("twice", np.asarray(twice(jnp.ones(3))).tolist())
"""


def recorded(folder: Path, script: str, *arguments: str):
    path = folder / "train.py"
    path.write_text(textwrap.dedent(script))
    page = folder / "page.html"
    command = [sys.executable, "-m", "minijax_widgets.record", "-o", str(page)]
    done = subprocess.run(
        [*command, str(path), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    return done, page.read_text() if page.is_file() else ""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("recorded"), SCRIPT, "6")


def test_the_script_runs_as_it_would(run, tmp_path) -> None:
    done, _ = run
    assert done.returncode == 0, done.stderr
    (tmp_path / "train.py").write_text(SCRIPT)
    plain = subprocess.run(
        [sys.executable, "train.py", "6"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == plain.stdout
    assert "__main__ 2" in done.stdout


def test_the_page_counts_calls_and_misses(run) -> None:
    _, page = run
    rows = re.findall(
        r"<tr><td>(?:<a[^>]*>)?(\w+)(?:</a>)?</td><td>(\d+)</td><td>(\d+)", page
    )
    assert {name: (int(c), int(m)) for name, c, m in rows} == {
        "step": (6, 2),
        "loss": (1, 1),
        "twice": (1, 1),
    }
    for kind in ("cache of step", "stages of step", "fusion of step", "cache of loss"):
        assert kind in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_the_page_opens_without_a_network(run, browser, tmp_path) -> None:
    _, html = run
    path = tmp_path / "page.html"
    path.write_text(html)
    page = browser.new_page(offline=True)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('.mj-live').length >= 9")
    assert errors == []
    page.close()


def test_a_script_that_fails_still_gives_a_page(tmp_path) -> None:
    done, page = recorded(
        tmp_path,
        """
        import jax
        f = jax.jit(lambda x: x + 1)
        f(1.0)
        raise ValueError("the data are gone")
        """,
    )
    assert done.returncode == 1
    assert "the data are gone" in done.stderr and "the data are gone" in page
    assert "<td>1</td><td>1</td>" in page


def test_exit_status_and_wrong_arguments(tmp_path) -> None:
    done, page = recorded(tmp_path, "import sys\nsys.exit(3)\n")
    assert done.returncode == 3
    assert "0 functions jitted" in page
    command = [sys.executable, "-m", "minijax_widgets.record", "nobody.py"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 2 and "there is no file nobody.py" in done.stderr
