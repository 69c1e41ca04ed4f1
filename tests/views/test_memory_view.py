"""`see.memory`: live bytes, held against a count over real JAX's own jaxprs."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax._src.ad_checkpoint import saved_residuals as jax_residuals

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_lab.explain.memory import record_memory
from minijax_lab.explain.tree import size_in_words
from minijax_widgets import memory_scene

from .test_residuals import FUNCTIONS, library

OPENED = {"jit", "custom_jvp_call", "custom_vjp_call", "remat2", "checkpoint"}
OPENED |= {"closed_call", "core_call"}


def flat(jaxpr, names, counter):
    """(reads, writes) of each equation, calls opened; names stand for arrays."""
    rows = []
    for eqn in jaxpr.eqns:
        reads = [v for v in eqn.invars if not hasattr(v, "val")]
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if eqn.primitive.name in OPENED:
            inner = getattr(inner, "jaxpr", inner)
            for outer, variable in zip(eqn.invars, inner.invars, strict=True):
                literal = hasattr(outer, "val")
                names[variable] = ("outside", 0) if literal else names[outer]
            for variable in inner.constvars:
                names[variable] = ("outside", 0)
            rows += flat(inner, names, counter)
            for outer, variable in zip(eqn.outvars, inner.outvars, strict=True):
                literal = hasattr(variable, "val")
                names[outer] = ("outside", 0) if literal else names[variable]
            continue
        for variable in eqn.outvars:
            size = getattr(variable.aval, "size", 0)
            counter[0] += 1
            dropped = type(variable).__name__ == "DropVar"
            itemsize = variable.aval.dtype.itemsize
            names[variable] = (counter[0], 0 if dropped else size * itemsize)
        inside = max((peak(body) for body in bodies(eqn)), default=0)
        rows.append(
            ([names[v] for v in reads], [names[v] for v in eqn.outvars], inside)
        )
    return rows


def bodies(eqn):
    found = []
    if eqn.primitive.name not in ("scan", "while", "cond"):
        return found
    for value in eqn.params.values():
        for part in value if isinstance(value, (tuple, list)) else [value]:
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                found.append(part)
    return found


def peak(jaxpr):
    """The most bytes alive at once, by brute force: every array at every equation."""
    names = {v: ("outside", 0) for v in (*jaxpr.invars, *jaxpr.constvars)}
    rows = flat(jaxpr, names, [0])
    out = {names[v] for v in jaxpr.outvars if not hasattr(v, "val")}
    most = 0
    for point in range(len(rows)):
        made = {value for _, writes, _ in rows[: point + 1] for value in writes}
        later = {value for reads, _, _ in rows[point:] for value in reads}
        now = set(rows[point][1])
        alive = {v for v in made if v in later or v in out or v in now}
        most = max(most, sum(size for _, size in alive) + rows[point][2])
    return most


@pytest.mark.parametrize(
    "make, args", FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_peak_is_that_of_jax(make, args):
    mine = make(library(minijax))
    theirs = make(library(jax))
    recording = record_memory(minijax.grad(mine), args, {}, compiled=False)
    (account,) = recording.accounts
    closed = jax.make_jaxpr(jax.grad(theirs))(*args)
    assert account.most == peak(closed.jaxpr)
    assert len(account.points) == len(
        flat(closed.jaxpr, {v: ("outside", 0) for v in closed.jaxpr.invars}, [0])
    )


@pytest.mark.parametrize(
    "make, args", FUNCTIONS, ids=lambda x: getattr(x, "__name__", "")
)
def test_kept_bytes_are_those_of_jax(make, args):
    """JAX's list is for all arguments and counts those that are kept."""
    everything = tuple(range(len(args)))
    gradient = minijax.grad(make(library(minijax)), argnums=everything)
    (account,) = record_memory(gradient, args, {}, compiled=False).accounts
    theirs = [
        aval
        for aval, source in jax_residuals(make(library(jax)), *args)
        if "from the argument" not in source and "literal" not in source
    ]
    assert account.kept == sum(aval.size * aval.dtype.itemsize for aval in theirs)


def layers(function):
    def net(w, x):
        return minijax.lax.scan(lambda h, w: (function(w, h), None), x, w)[0].sum()

    return net


def test_two_truths_with_and_without_checkpoint():
    """In a scan, checkpoint keeps a third, and the compiler allocates less, too."""
    step = lambda w, h: minijax.numpy.tanh(h @ w)  # noqa: E731
    w, x = np.ones((16, 8, 8), np.float32), np.ones((4, 8), np.float32)
    gradient = minijax.grad(layers(step))
    checkpointed = minijax.grad(layers(minijax.checkpoint(step)))
    view = see.memory(gradient, w, x, beside=checkpointed)
    first, second = view.recording.accounts
    # Each turn: the input, and tanh's result and slope; then the input alone.
    assert (first.kept, second.kept) == (3 * 16 * 4 * 8 * 4, 16 * 4 * 8 * 4)
    assert first.most > second.most
    assert first.compiled["temporaries"] > second.compiled["temporaries"]
    twin = view.text()
    above, _, below = twin.partition("-- differs between machines --")
    assert "autodiff asks to keep 6.0 KiB, beside 2.0 KiB" in above
    assert "allocates" in below and "and, beside," in below
    assert all(len(line) <= 100 for line in twin.splitlines())


def test_the_picture_has_every_array_of_the_peak():
    view = see.memory(minijax.grad(lambda x: (x * x * x).sum()), np.ones(100, "f"))
    account = view.recording.accounts[0]
    frame = view.frame()
    assert frame.telling == account.peak
    scene = frame.panes[0].scene
    keys = {key for mark in scene.marks for key in mark.keys}
    assert {f"v{value.id}" for value in account.alive(account.peak)} <= keys
    on = set(frame.steps[account.peak].on)
    assert on == {f"p{account.peak}"} | {
        f"v{value.id}" for value in account.alive(account.peak)
    }
    assert view.to_svg().startswith("<svg") and "<img" in view.static_html()


def test_what_a_body_needs_is_drawn_in_its_column():
    def turns(x):
        def body(c, _):
            return jnp.sin(jnp.outer(c, c)).sum(0), None

        return minijax.lax.scan(body, x, length=3)[0].sum()

    view = see.memory(turns, np.ones(32, "f"))
    point = view.first.points[view.first.peak]
    scene = view.frame().panes[0].scene
    named = {p.text: mark for mark in scene.marks for p in mark.drawn if p.text}
    said = f"{size_in_words(point.inside)} inside of scan"
    outline = named[said].drawn[0].has
    columns = [m for m in scene.marks if f"p{view.first.peak}" in m.keys]
    part = outline["height"] / columns[0].drawn[0].has["height"]
    assert part == pytest.approx(point.inside / point.live, rel=0.01)


def test_arrays_of_many_lines_stand_in_the_window_with_the_curve(monkeypatch):
    def layers(x):
        a = jnp.sin(x) * 2
        b = jnp.cos(a * a) - a
        c = jnp.tanh(b * a) + b
        d = jnp.exp(c - b * c)
        e = jnp.sin(d * a) * d
        return jnp.sum(a * b * c * d * e)

    view = see.memory(minijax.grad(layers), np.ones((16, 16), "f"))
    assert view.scene(1100).height <= memory_scene.TALLEST
    monkeypatch.setattr(memory_scene, "TALL", memory_scene.TALL[:1])
    assert view.scene(1100).height > memory_scene.TALLEST


def test_a_program_of_real_jax():
    """It carries no account of autodiff, and cannot be compiled here: both are said."""
    closed = jax.make_jaxpr(jax.grad(lambda x: (x * x).sum()))(np.ones(4, "f"))
    view = see.memory(closed)
    (account,) = view.recording.accounts
    assert account.most == peak(closed.jaxpr)
    assert account.kept is None and account.compiled is None
    assert "autodiff asks to keep" not in view.static_html()


def test_a_function_that_makes_nothing():
    view = see.memory(lambda x: x, np.ones(3, "f"))
    assert "no equations" in view.text()
    assert "give a function that computes something" in view.static_html()


@pytest.mark.turns(3)
def test_a_long_program_has_all_of_its_arrays_in_bands():
    """Their bytes are those of the curve above, equation by equation, and no step
    leaves out what is alive."""

    def loss(ws, x):
        for w in ws:
            x = x + 0.5 * minijax.numpy.tanh(x @ w)
        return (x * x).sum()

    weights = [np.ones((4, 4), np.float32)] * 80
    view = see.memory(minijax.grad(loss), weights, np.ones((2, 4), np.float32))
    points = view.first.points
    assert len(points) > 700
    for number, point in enumerate(points):
        drawn = sum(band.live[number] for band in view.line_bands)
        assert drawn == point.live - point.inside
        alive = sum(value.bytes for value in view.first.alive(number))
        assert drawn == alive
    frame = view.frame()
    marks = {key for mark in frame.panes[0].scene.marks for key in mark.keys}
    assert {band.key for band in view.line_bands} <= marks
    for step, point in zip(frame.steps, points, strict=True):
        lit = {key for key in step.on if key.startswith("l")}
        assert bool(lit) == (point.live > point.inside)
    roles = {band.role for band in view.line_bands}
    assert roles == {"value", "residual", "cotangent"}


@pytest.mark.turns(3)
def test_ten_thousand_equations_are_drawn_within_the_limit():
    def long(x):
        for _ in range(5000):
            x = minijax.lax.sin(x) * x
        return x

    closed = minijax.make_jaxpr(long)(np.ones(4, "f"))
    view = see.memory(closed)
    assert len(view.recording.accounts[0].points) == 10_000
    assert len(view.frame().panes[0].scene.marks) <= 2000


def test_what_is_kept_of_a_closed_over_array_is_what_grad_says():
    scale = jnp.sin(jnp.arange(1000.0))

    def loss(x):
        return jnp.sum(jnp.sin(x) * scale)

    x = np.ones(1000, np.float32)
    account = see.memory(minijax.grad(loss), x).recording.accounts[0]
    assert account.kept == see.grad(loss, x).recording.bytes == 8000


def chain(x):
    for _ in range(150):
        x = minijax.numpy.sin(x) * 1.5
    return x


def test_a_timeline_has_a_bar_for_each_array_of_a_long_program():
    """In a row no two are there at once, and each is there as long as it is alive."""
    view = see.memory(minijax.grad(lambda x: chain(x).sum()), np.ones(4, "f"))
    pane = view.frame().panes[1]
    assert pane.title.startswith(f"each of {len(view.made()):,} arrays")
    bars = pane.scene.bars
    lives = sorted((value.born, value.dies + 1) for value in view.made())
    assert sorted((bar.start, bar.end) for bar in bars) == lives
    rows = {}
    for bar in sorted(bars, key=lambda bar: bar.start):
        assert rows.get(bar.top, 0) <= bar.start
        rows[bar.top] = bar.end
    page = pane.to_json()["scene"]["bars"]
    assert [len(column) for column in page["columns"]] == [len(bars)] * 7
    short = see.memory(lambda x: x + 1.0, np.ones(4, "f"))
    assert not any(pane.title.startswith("each of") for pane in short.frame().panes)


def test_a_timeline_zooms_steps_and_names_what_is_there(show):
    view = see.memory(minijax.grad(lambda x: chain(x).sum()), np.ones(4, "f"))
    page = show(view)
    page.wait_for_timeout(200)
    canvas = page.locator(".mj-bars canvas")
    points = len(view.first.points)
    said = page.locator(".mj-seen").inner_text()
    assert said == f"equations 0 to {points - 1:,} of {points:,}"
    inked = """canvas => {
      const {width, height} = canvas;
      const all = canvas.getContext("2d").getImageData(0, 0, width, height).data;
      let sum = 0;
      for (let at = 3; at < all.length; at += 4) sum += all[at] > 0;
      return sum / (width * height);
    }"""
    first = canvas.evaluate(inked)
    assert 0.1 < first < 1
    alive = len(view.first.alive(view.first.peak))
    named = page.locator(".mj-bars li")
    assert named.count() == 9
    assert named.last.inner_text() == f"and {alive - 8:,} more at this step"
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    page.locator(".mj-bars").get_by_label("larger", exact=True).click()
    zoomed = canvas.evaluate("canvas => canvas.toDataURL()")
    assert zoomed != before
    page.keyboard.press("0")
    assert canvas.evaluate("canvas => canvas.toDataURL()") == before
    page.locator(".mj-bars li button").nth(3).click()
    made = page.locator(".mj-bars li button").first.inner_text()
    step = page.locator(".mj-where").inner_text()
    assert f"from equation {int(step.split()[1]) - 1} to" in made


def test_what_helpers_close_over_is_counted_once_and_literals_are_not():
    shared = jnp.ones(100, jnp.float32)

    @minijax.jit
    def scaled(x, bias):
        return x * shared + bias

    def calls(x):
        return scaled(scaled(x, 1.0), -1.0)

    def loops(x):
        return minijax.lax.fori_loop(0, 3, lambda i, x: scaled(x, 2.0), x) + shared

    for function in (calls, loops):
        (account,) = record_memory(function, (shared,), {}).accounts
        assert account.arguments == 2 * 400, function
