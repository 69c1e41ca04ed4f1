"""The flight recorder: a script that uses real JAX, run as it is, and its page."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import minijax_widgets as see

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
STEP, LOSS, TWICE = (
    next(n for n, text in enumerate(SCRIPT.splitlines(), 1) if start in text)
    for start in ("= step(", 'print("loss"', 'print("twice"')
)


def recorded(folder: Path, script: str, *arguments: str, **variables: str):
    path = folder / "train.py"
    path.write_text(textwrap.dedent(script))
    page = folder / "page.html"
    command = [sys.executable, "-m", "minijax_widgets.record", "-o", str(page)]
    done = subprocess.run(
        [*command, str(path), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        | variables,
    )
    return done, page.read_text() if page.is_file() else ""


def rows_of(page: str) -> dict[int, str]:
    """The counts of each line that the page shows, by its number."""
    found = re.findall(
        r'data-at="line (\d+)".*?</code><small>(.*?)</small>', page, re.DOTALL
    )
    return {int(line): told for line, told in found}


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


def test_the_page_counts_by_the_users_line(run) -> None:
    done, page = run
    rows = rows_of(page)
    assert rows[STEP].startswith("6 calls, 2 traced, lowered, compiled")
    assert rows[LOSS].startswith("1 call, 1 traced, lowered, compiled, 1 wait")
    assert "`x` has (8, 4) and sometimes (5, 4)" in page
    assert "if len(np.ones((size, 4), np.float32)) == 8:" in page
    assert "http://" not in page and "https://" not in page
    assert len(page) < 100_000
    # The terminal has the finding in one line, and where the page is.
    (told,) = [row for row in done.stderr.splitlines() if "sometimes (5, 4)" in row]
    assert told.strip().startswith(f"line {STEP}") and "avoidable" in told
    assert "recorded: " in done.stderr


def test_programs_have_bytes_and_owners(run) -> None:
    _, page = run
    assert f"step, line {STEP}: kernels by bytes" in page
    # w: 4 x 4 floats, x: 8 x 4 floats.
    for owner, size in (("w", "64 B"), ("x", "128 B")):
        assert re.search(rf"<span>{owner}</span>.*?<small>{size}</small>", page)


def opened(browser, html, folder, **options):
    path = folder / "page.html"
    path.write_text(html)
    page = browser.new_page(offline=True, **options)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    return page, errors


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("width", (1280, 480))
def test_the_page_in_a_browser(run, browser, tmp_path, width, scheme) -> None:
    _, html = run
    size = {"width": width, "height": 900}
    page, errors = opened(browser, html, tmp_path, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    now = "[...document.querySelectorAll('.row')].findIndex(r => r.ariaCurrent)"
    assert page.evaluate(now) == 0
    # The dearest line and its advice stand on the first screen, the lanes below.
    box = "document.querySelector('%s').getBoundingClientRect()"
    assert page.evaluate(box % ".row .why" + ".bottom") < 900
    below = page.evaluate(box % "#lanes" + ".top")
    assert page.evaluate(box % ".rows" + ".bottom") <= below
    page.keyboard.press("ArrowDown")
    assert page.evaluate(now) == 1
    assert "2 of" in page.inner_text("#at")
    page.keyboard.press("Enter")
    assert page.locator(".row[aria-current] details").get_attribute("open") is not None
    page.keyboard.press("Home")
    assert page.evaluate(now) == 0
    page.keyboard.press("t")
    assert "sometimes (5, 4)" in page.inner_text("#plain")
    page.keyboard.press("+")
    assert page.locator("#lanes svg").first.get_attribute("viewBox") != "0 0 1000 16"
    page.keyboard.press("0")
    assert page.locator("#lanes svg").first.get_attribute("viewBox") == "0 0 1000 16"
    # Nothing that is told is cut: text wraps, or ends in dots with its source below.
    cut = "[...document.querySelectorAll('.why *')].filter(e => e.scrollWidth > "
    assert page.evaluate(cut + "e.clientWidth + 1 && e.clientWidth).length") == 0
    small = "[...document.querySelectorAll('main *')].filter(e => e.innerText && "
    assert (
        page.evaluate(small + "parseFloat(getComputedStyle(e).fontSize) < 11).length")
        == 0
    )
    assert errors == []
    page.close()


def test_lines_without_a_fault_are_folded_after_the_sixth(browser, tmp_path) -> None:
    head = "import jax, numpy\nf, x = jax.jit(lambda x: x * 2), numpy.ones(3)\n"
    calls = "".join(f"y{n} = f(x)\n" for n in range(8))
    _, html = recorded(tmp_path, head + calls)
    page, errors = opened(browser, html, tmp_path)
    assert page.locator(".row:visible").count() == 6
    assert page.locator(".lane:visible").count() == 6
    page.keyboard.press("End")
    assert page.locator(".row[aria-current]:visible").count() == 1
    assert page.locator(".row:visible").count() == page.locator(".row").count() > 6
    assert errors == []
    page.close()


def test_a_page_that_is_written_over_is_compared(run, tmp_path) -> None:
    _, page = run
    kept = json.loads(re.search(r'id="record">(.*?)</script>', page)[1])
    assert kept["w = step(w, np.ones((size, 4), np.float32), rate=0.1)"] > 0
    (tmp_path / "page.html").write_text(page)
    done, after = recorded(
        tmp_path, SCRIPT.replace("5 if number == 3 else 8", "8"), "6"
    )
    assert "sometimes" not in after
    assert 'class="before"' in after and "The page before this one" in after


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
    assert rows_of(page)[4].startswith("1 call, 1 traced, lowered, compiled")


def test_a_repair_in_another_file_names_it(tmp_path) -> None:
    (tmp_path / "model.py").write_text(
        "import jax\n\n"
        "def make():\n"
        "    return jax.jit(lambda x, n: x * n, static_argnums=1)\n"
    )
    done, page = recorded(
        tmp_path,
        """
        import jax
        import model
        f = model.make()
        for n in range(4):
            f(1.0, n)
        """,
    )
    assert re.search(r"line 6 .*static argument `n` took 4 values", done.stderr)
    assert "<b>model.py:4</b><code>return jax.jit(lambda x, n: x * n)</code>" in page
    assert '<span class="old">' not in page  # the source shown is of train.py


def test_exit_status_and_wrong_arguments(tmp_path) -> None:
    done, page = recorded(tmp_path, "import sys\nsys.exit(3)\n")
    assert done.returncode == 3
    assert "nothing of JAX ran at a line of yours" in page
    command = [sys.executable, "-m", "minijax_widgets.record"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for arguments, told in (
        (["nobody.py"], "there is no file nobody.py"),
        (["-o", "page.txt", "train.py"], "ends in .html"),
    ):
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
        )
        assert done.returncode == 2 and told in done.stderr


DEVICES = """
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

first, second = jax.devices()[:2]
mesh = jax.make_mesh((4,), ("d",))
x = jax.device_put(jnp.ones((64, 64)), first)
double = jax.jit(lambda x: x * 2)
for i in range(5):
    y = jax.device_put(x, second)
    double(y)
rows = NamedSharding(mesh, P("d", None))
w = jax.device_put(jnp.ones((256, 256)), rows)
v = jax.device_put(jnp.ones((256, 256)), rows)

@jax.jit
def product(w, v):
    return w @ v

for i in range(3):
    z = product(w, v)
print(float(y.sum()), float(z.sum()))
"""


def test_copies_between_devices_and_collectives(tmp_path) -> None:
    flags = "--xla_force_host_platform_device_count=4"
    done, page = recorded(tmp_path, DEVICES, XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    assert "copied an array 5 times from cpu:0 to cpu:1, 81,920 bytes" in done.stderr
    told = "nobody wrote, at each of 3 calls: all-gather of 262,144 bytes for line 19"
    assert told in done.stderr and "all-gather, 256.0 KiB, line 19" in page
    # As advised: copied above the loop, and v whole on each device.
    line = "    y = jax.device_put(x, second)\n"
    mended = DEVICES.replace(line, "").replace(
        "for i in range(5)", "y = x\nfor i in range(5)"
    )
    mended = mended.replace("y = x", line.strip())
    mended = mended.replace(
        "v = jax.device_put(jnp.ones((256, 256)), rows)",
        "v = jax.device_put(jnp.ones((256, 256)), NamedSharding(mesh, P()))",
    )
    after, page = recorded(tmp_path, mended, XLA_FLAGS=flags)
    assert after.stdout == done.stdout
    assert "copied" not in after.stderr and "nobody wrote" not in after.stderr
    assert "all-gather" not in page


# ---- in a notebook -------------------------------------------------------------------


def test_what_was_jitted_before_has_its_misses_told() -> None:
    import jax
    import numpy as np

    jax_jit = jax.jit
    before = jax.jit(lambda x: x * 3)
    before(np.ones(2, np.float32))
    with see.recording() as record:
        for size in (3, 4, 5, 6):
            before(np.ones(size, np.float32))
        with pytest.raises(RuntimeError, match="leave its `with` block"):
            record.text()
    assert jax.jit is jax_jit
    (fault,) = record.finished().told
    assert fault.kind == "shape" and fault.count == 3
    assert "`x` came in 4 shapes: (3,), (4,), (5,), ..." in record.text()
    assert "<iframe" in record._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match="saved as .html"):
        record.save("page.txt")


def test_hooks_are_gone_afterwards() -> None:
    import warnings

    import jax
    import numpy as np

    array = type(jax.numpy.zeros(()))
    names = ("_value", "item", "tolist", "block_until_ready")
    held = [array.__dict__.get(name) for name in names]
    rest = np.asarray, np.array, jax.device_get, warnings.showwarning
    filters = list(warnings.filters)
    with see.recording():
        jax.jit(lambda x: x + 1)(1.0)
    assert [array.__dict__.get(name) for name in names] == held
    assert (np.asarray, np.array, jax.device_get, warnings.showwarning) == rest
    assert list(warnings.filters) == filters


def test_jit_keeps_its_ways() -> None:
    import jax
    import jax.numpy as jnp

    with see.recording():

        class Scale:
            def __init__(self, by):
                self.by = by

            @jax.jit(static_argnums=0)
            def __call__(self, x):
                "Scales."
                return x * self.by

        double = Scale(2.0)
        assert float(double(jnp.ones(()))) == 2.0
        f = jax.jit(lambda x: x**2)
        assert float(jax.grad(f)(3.0)) == 6.0
        assert jax.vmap(f)(jnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]
        assert f.lower(1.0).compile()(2.0) == 4.0
        assert type(f.__wrapped__) is type(lambda: 0)
        assert float(jax.jit(lambda x: f(x) + f(x))(1.0)) == 2.0
        assert jax.eval_shape(f, 1.0).shape == ()
    assert Scale.__call__.__doc__ == "Scales."
    assert float(f(4.0)) == 16.0


def test_what_is_added_up_later_is_exact() -> None:
    import threading

    import jax
    import jax.numpy as jnp
    import numpy as np

    arrays = [jnp.ones(n, jnp.float32) for n in (1, 2, 3)]
    table = jnp.ones((512, 513), jnp.float32)
    with see.recording() as record:
        f = jax.jit(lambda x: x.sum() + table[0, 0])

        def work() -> None:
            for _ in range(1500):
                value = f(arrays[0])
                assert float(value) + float(value) == 4.0

        threads = [threading.Thread(target=work) for _ in range(3)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        for array in arrays:
            np.asarray(array)
        fresh = [jnp.ones(n, jnp.float32) for n in (1, 2, 3)]
        jax.device_get({"device": fresh, "host": np.ones(1000)})
        jax.device_get((arrays, np.ones(1000)))  # the host has all of it
        for n in (2, 2, 2, 2, 7):  # the last is the 4505th call
            f(np.ones(n, np.float32))
    f(arrays[0])  # not recorded any more
    told = {line: site for (_, line), site in record.ears[0].sites.items()}
    first = work.__code__.co_firstlineno
    call, read = told[first + 2], told[first + 3]
    assert (call.calls, call.missed) == (4500, 1)
    # The second `float` of an array has the values of the first one.
    assert (read.waits, read.copied) == ({"copy": 4500}, 4500 * 4)
    assert 256 <= len(read.times) <= 512
    assert 0 <= read.waits_of_host <= read.waited < record.took * 2
    by_how = {tuple(site.waits): site for site in told.values() if site.waits}
    assert sum(site.waits.get("device_get", 0) for site in told.values()) == 1
    assert by_how["np.asarray",].copied == by_how["device_get",].copied == 24
    (made,) = (m for m in record.ears[0].made.values() if m.objects and m.calls > 9)
    assert made.calls == 4505
    (constant,) = record.ears[0].constants.values()
    assert (constant.name, constant.programs) == ("table", 3)


def test_a_failed_call_leaves_no_trace_open() -> None:
    import jax
    import jax.numpy as jnp

    with see.recording() as record:
        f = jax.jit(lambda x: x.reshape(5))
        for n in (3, 5, 5):
            try:
                value = f(jnp.ones(n))
            except TypeError:
                continue
            float(value[0])
    calls = [site.calls for site in record.ears[0].sites.values() if site.misses]
    assert 2 in calls


def test_a_line_that_threads_share_has_exact_counts() -> None:
    import threading

    from minijax_lab.explain.flight_facts import Site

    def work(site: Site) -> None:
        for n in range(3000):
            site.called.append(n)
            site.waited_for.append((n, n + 1, 4, "copy"))
            if n % 8 == 0:
                site.count()
                site.spend("trace", 1.0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(4):
            site = Site("train.py", 1)
            threads = [threading.Thread(target=work, args=(site,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            site.count()
            assert (site.calls, site.waits) == (9000, {"copy": 9000})
            assert (site.copied, site.waited) == (36000, 9000.0)
            assert (site.counts, site.seconds) == ({"trace": 1125}, {"trace": 1125.0})
    finally:
        sys.setswitchinterval(interval)
