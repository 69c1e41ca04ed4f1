"""`see.cache`: what decided each call, against the nearest key that was kept."""

from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import grad, jit
from minijax.support.config import override
from minijax_lab.explain.recording import Recording
from minijax_widgets import cache_view
from minijax_widgets.view import short_name


def watched():
    @jit
    def f(x, n):
        return x * n

    with see.cache(f) as view:
        f(jnp.ones(3), 2.0)
        f(jnp.ones(3), 3.0)
        f(jnp.ones(4), 2.0)
        f(jnp.ones(4), 2)
        f(jnp.ones(4), np.float32(2))
        for _ in range(10):
            f(jnp.ones(4), np.float32(2))
    return f, view


def rows_of(view):
    """The twin without what differs between machines."""
    return view.text().partition("\n-- differs")[0].splitlines()


def test_the_twin():
    _, view = watched()
    assert rows_of(view) == [
        "cache of f: 15 calls, 11 hits, 4 misses; 2 avoidable",
        "  1 o first call",
        "  2 + hit",
        "  3 x x: f32[3] -> f32[4]",
        "> 4 x n: float32 -> int32               pass 2.0, not 2",
        "  5 x n: weak float32 -> float32        pass 2.0, not np.float32(2.0)",
        "  6-15 + hit",
    ]


def test_it_counts_what_the_cache_does():
    """The rows are real: as many misses as programs were kept."""
    f, view = watched()
    misses = [call for call in view.recording.calls if not call.hit]
    assert len(misses) == f._cache_size() == view.recording.kept == 4
    assert Recording.from_dict(view.recording.to_dict()) == view.recording


def test_statics_trees_and_settings():
    @partial(jit, static_argnames="n")
    def g(p, n):
        return p["a"] * n

    with see.cache(g) as view:
        g({"a": 1.0}, n=2)
        g({"a": 1.0, "b": 2}, n=2)
        g({"a": 1.0}, n=2.5)
        with minijax.enable_x64(True):
            g({"a": 1.0}, n=2)
        g({"a": 1.0}, n=2.5)
    rows = rows_of(view)[2:]
    assert rows[0].startswith("  2 x new leaves: p['b']")
    assert rows[1].startswith("> 3 x n: 2 -> 2.5")
    assert rows[1].endswith("make n an argument, not static")
    assert "enable_x64 changed" in rows[2]
    assert rows[3] == "  5 + hit"


def test_other_functions_and_transformations_do_not_count():
    f, other = jit(lambda x: x * 2), jit(lambda x: x * 3)
    with see.cache(f) as view:
        other(1.0)
        f(1.0)
        grad(f)(1.0)
    assert view.recording.headline.endswith("1 call, 0 hits, 1 miss")


def test_keys_without_watching():
    f, _ = watched()
    view = see.cache(f)
    assert "4 keys kept" in view.text() and "x: f32[3], n: ~f32[]" in view.text()
    with pytest.raises(TypeError, match="watches a jitted function"):
        see.cache(lambda x: x)


def test_calls_are_watched_from_the_first_view_on():
    f = jit(lambda x: x + 1)
    f(jnp.ones(3))
    view = see.cache(f)
    assert "1 key kept; no call since it is watched" in view.text()
    f(jnp.ones(3))
    f(jnp.ones(3, jnp.int32))
    first = view.text().splitlines()[0]
    assert first == "cache of lambda: 2 calls, 1 hit, 1 miss; 1 avoidable"
    early = view.recording
    f(jnp.ones(3, jnp.int32))
    f(jnp.ones(3, jnp.int32))
    assert rows_of(view)[-1] == "  3-4 + hit"
    assert len(early.calls) == 2, "what was shown does not change"
    assert "3-4" in view.frame().to_json()
    view.close()
    f(jnp.ones(5))
    view.close()
    assert "4 calls" in view.text() and "f32[5]" not in view.text()


def test_a_view_that_nobody_holds_watches_no_more():
    from minijax.core import events

    f = jit(lambda x: x + 1)
    before = list(events.subscribers)
    view, other = see.cache(f), see.cache(f)
    assert len(events.subscribers) == len(before) + 2
    f(1.0)
    assert "1 call" in view.text() and "1 call" in other.text()
    del view
    f(2.0)
    assert "2 calls" in other.text()
    del other
    assert events.subscribers == before


def test_many_calls_are_counted(monkeypatch):
    monkeypatch.setattr("minijax_lab.explain.cache.MOST_ROWS", 3)
    f = jit(lambda x: x + 1)
    view = see.cache(f)
    for size in (1, 2, 2, 4, 2, 2):
        f(np.ones(size, np.float32))
    assert len(view.recording.calls) == 3
    assert (
        view.text()
        .splitlines()[0]
        .endswith("6 calls, 3 hits, 3 misses; the last 3 are only counted")
    )
    assert [call.count for call in view.recording.calls] == [1, 1, 1]


def test_earlier_keys_are_compared_with():
    f = jit(lambda x: x + 1)
    f(jnp.ones(3))
    with see.cache(f) as view:
        f(jnp.ones(3))
        f(jnp.ones(3, jnp.int32))
    assert rows_of(view)[1:] == [
        "  1 + hit",
        "> 2 x x: float32 -> int32               pass x as float32 each time",
    ]


def test_watching_ends_with_the_block():
    f = jit(lambda x: x + 1)
    with see.cache(f) as view:
        f(1.0)
    f(2.0)
    assert view.recording.calls[-1].number == 1
    with pytest.raises(ZeroDivisionError):
        with see.cache(f):
            f(1.0 / 0)
    from minijax.core import events

    assert events.subscribers == []


def test_the_picture(show):
    page = show(watched()[1])
    assert page.inner_text(".mj-where") == "step 4 of 6: call 4"
    lit = page.locator("tr:is(.mj-on, .mj-rel) td:first-child").all_inner_texts()
    assert [text.split()[-1] for text in lit] == ["3", "4"]
    assert page.inner_text("mark") == "f(jnp.ones(4), 2)"


def test_advice_fits_the_change():
    """Padding only where one axis has many sizes; none for a rank or a scalar."""
    f = jit(lambda x: x + 1)
    with see.cache(f) as view:
        for shape in ((3,), (4,), (5,), (4, 4), (2, 3, 4)):
            f(np.ones(shape, np.float32))
        f(2.0)
    told = [call.advice for call in view.recording.calls]
    assert told == ["", "", "pad x to one size", "", "", ""]
    assert "; 1 avoidable" in view.recording.headline
    g = jit(lambda x: x + 1)
    with see.cache(g) as view:
        for shape in ((3, 2), (3, 5), (3, 7), (4, 8)):
            g(np.ones(shape, np.float32))
    told = [call.advice for call in view.recording.calls]
    assert told == ["", "", "pad axis 1 of x to one size", ""]


def test_names_and_labels_tell_leaves_apart_in_little_room():
    """Long names are cut where they are alike; programs are named by what differs."""
    long = "a_parameter_whose_name_is_sixty_letters_long_and_more_than_that"
    f = jit(lambda p, x: p[0][long] * p[1][long] * x)
    x = np.ones(3, np.float32)
    with see.cache(f) as view:
        f([{long: 2.0}, {long: 2.0}], x)
        f([{long: 2}, {long: 2.0}], x)
        f([{long: 2.0}, {long: 2}], x)
        f([{long: x}, {long: 2.0}], x)  # a scalar before, with no axis to pad
    record = view.recording
    assert len(record.calls) == 4
    rows = [cache_view.said(call) for call in record.calls[1:]]
    assert len(set(rows)) == 3 and max(map(len, rows)) < 70
    assert all(long in view.detail(call) for call in record.calls[1:])
    names = {n: cache_view.name_of(record, n) for n in (1, 2, 3, 4)}
    for room in (22, 44):
        found = cache_view.labels(names, room).values()
        assert len(set(found)) == 4 and max(map(len, found)) <= room
    leaves = [f"params['layers'][{n}]['{end}']" for n in (0, 1) for end in ("w", "b")]
    assert len({short_name(f"ct_{leaf}", 14) for leaf in leaves}) == 4
    assert all(len(short_name(f"ct_{leaves[0]}", n)) <= n for n in range(4, 20))
    # Of a key with other signs the end is as it is written.
    assert short_name("tree['<img src=x onerror=alert(1)>']", 16) == "..rror=alert(1)>"


def test_programs_of_other_trees_have_labels_of_their_own():
    usual = "p['b']: f32[3], p['w']: f32[3,3], batch: f32[32,3], lr: ~f32[]"
    names = {
        1: usual,
        2: usual.replace("[32", "[17"),
        3: usual.replace("~", ""),
        4: usual.partition(", ")[2],
        5: usual.replace("b']: f32", "b']: bf16"),
    }
    found = cache_view.labels(names, 22)
    assert len(set(found.values())) == 5
    assert [found[n] for n in (2, 3)] == ["batch: f32[17,3]", "lr: f32[]"]
    assert found[4] == "no p['b']" and found[5].startswith("p['b']: bf16")


def test_the_headline_counts_the_rows_with_advice():
    f = jit(lambda x, n=0: x)
    with see.cache(f) as view:
        f([1.0, 2.0])
        f((1.0, 2.0))
        f([1.0, 2.0], n=1)
        f([1.0, 2.0, 3.0])
        f([1, 2, 3])
    record = view.recording
    advised = sum(bool(call.advice) for call in record.calls)
    assert advised and record.headline.endswith(f"; {advised} avoidable")
    assert "structure: ([*, *],) -> ((*, *),)" in view.text()
    assert all(call.changes for call in record.calls[1:])


def test_arguments_by_name_and_by_position_are_told_apart():
    f = jit(lambda x, mask, *rest, **others: x)
    x, mask = jnp.ones(3), jnp.ones(3) > 0
    with see.cache(f) as view:
        f(x, mask)
        f(x, mask, 1, 2)
        f(x, mask, scale=2.0)
        f(x, mask=mask, scale=2.0)
        f(x, scale=2.0, mask=mask)  # a hit: names have no order
        f(mask=mask, x=x, scale=2.0)
    record = view.recording
    changes = [[(c.name, c.was, c.now) for c in call.changes] for call in record.calls]
    assert changes == [
        [],
        [("leaves", "-", "rest[0], rest[1]")],
        [("leaves", "-", "scale")],  # nearest is the first call
        [("mask", "by position", "by name")],
        [],
        [("x", "by position", "by name")],
    ]
    assert record.calls[3].advice == "pass mask by position each time"
    told = "mask was passed by position and is passed by name"
    assert any(told in step.detail for step in view.frame().steps)


def test_a_shape_is_compared_with_one_of_its_dtype():
    f = jit(lambda x: x)
    with see.cache(f) as view:
        f(jnp.ones(3, np.float32))
        f(jnp.ones(3, np.int32))
        f(jnp.ones(5, np.float32))
    ((change,),) = [call.changes for call in view.recording.calls[2:]]
    assert (change.was, change.now) == ("f32[3]", "f32[5]")


def test_a_setting_that_changed_is_told_in_a_sentence():
    f = jit(lambda x: x)
    with see.cache(f) as view:
        f(jnp.ones(3))
        with minijax.enable_x64(True):
            f(np.ones(3, np.float32))
    headline = see.why(f).recording.headline
    assert headline == "why lambda was compiled again: enable_x64 changed"
    assert any("enable_x64 changed, compared" in s.detail for s in view.frame().steps)


@pytest.mark.parametrize("other", [bool, np.complex64])
def test_no_advice_to_pass_masks_or_complex_numbers_as_floats(other):
    f = jit(lambda x: x)
    with see.cache(f) as view:
        f(jnp.ones(3, other))
        f(jnp.ones(3, np.float32))
        f(jnp.ones(3, other).astype(other))
    assert [call.advice for call in view.recording.calls] == ["", "", ""]


def test_a_call_on_another_device_says_so():
    f = jit(lambda x: x + 1)
    with see.cache(f) as view:
        f(jnp.ones(3))
        f(minijax.device_put(jnp.ones(3), minijax.devices()[0]))
    assert rows_of(view)[-1].startswith("> 2 x device: default -> ")


def test_the_first_call_is_no_failure():
    _, view = watched()
    row = view.frame().panes[1].rows[0]
    assert row.look == "" and row.pieces()[0][0].text == "o"


def test_ten_thousand_calls_are_one_picture():
    f = jit(lambda x: x + 1)
    sizes = [np.ones(1 + i % 3, np.float32) for i in range(10_000)]
    with see.cache(f) as view:
        for x in sizes:
            f(x)
    record = view.recording
    assert sum(run.count for run in record.runs) == record.calls[-1].number + 9_996
    by_program = [0, 0, 0]
    for run in record.runs:
        by_program[run.program - 1] += run.count
    assert by_program == [3334, 3333, 3333]
    scene = view.frame().panes[0].scene
    assert len(scene.marks) < 100


def test_times_stand_below_the_line():
    _, view = watched()
    above, _, below = view.text().partition("-- differs between machines --")
    assert " ms" not in above and "trace" in below
    assert "compile" in below or "read from disk" in below
    assert all(seconds > 0 for seconds in view.recording.seconds.values())


def test_programs_read_from_disk_are_told(tmp_path):
    number = float(np.random.default_rng().uniform())
    x, y = np.ones(3, np.float32), np.ones(4, np.float32)

    def watch(*arguments):
        f = jit(lambda x: x * number)
        with see.cache(f) as view:
            for argument in arguments:
                f(argument)
        return view

    with override("compilation_cache_dir", str(tmp_path)):
        first, again = watch(x), watch(x, y, x)
    assert [call.from_disk for call in first.recording.calls] == [False]
    assert [call.from_disk for call in again.recording.calls] == [True, False, None]
    assert "from disk" not in first.text()
    assert "1 of 2 compiled programs were read from disk: call 1" in again.text()
    details = [again.detail(call) for call in again.recording.calls]
    assert "read from disk, kept." in details[0]
    assert "Traced anew and compiled: x was f32[3] and is f32[4]" in details[1]


def test_every_part_of_a_key_is_told():
    f = jit(lambda x, n, t: (x * n, t), static_argnames="n")
    x = np.ones(3, np.float32)
    with see.cache(f) as view:
        f(x, n=2, t=x)
        f(np.ones(4, np.float32), n=2, t=x)
        f(np.ones(3, np.int32), n=2, t=x)
        f(x, n=3, t=x)
        f(x, n=2, t=[x])
        f(x, n=2, t=1.0)
        f(x, n=2, t=np.float32(1.0))
        with minijax.default_matmul_precision("highest"):
            f(x, n=2, t=x)
        f(minijax.device_put(x, minijax.devices()[0]), n=2, t=x)
    kinds = [{change.kind for change in call.changes} for call in view.recording.calls]
    assert kinds == [
        set(),
        {"shape"},
        {"type"},
        {"static"},
        {"tree"},
        {"shape"},
        {"type"},
        {"setting"},
        {"device"},
    ]


def test_a_program_that_was_forgotten_is_told():
    f = jit(lambda x: x * 2.0)
    with see.cache(f) as view:
        f(1.0)
        minijax.clear_caches()
        f(1.0)
    assert "2 x same key, kept no longer" in view.text()
    told = view.detail(view.recording.calls[1])
    assert told.startswith("Call 1 had the same key, but its program is kept no longer")


def test_a_function_that_closes_over_another_value_is_another_one():
    def make(n):
        return minijax.jit(lambda x: x * n)

    watched, other, again = make(2), make(3), make(2)
    with see.cache(watched) as view:
        watched(1.0), other(1.0), other(1.0), again(1.0)
    assert view.text().startswith("cache of lambda: 2 calls, 0 hits, 2 misses; 1 avoid")


def test_a_cache_is_called_by_the_whole_name_of_its_function():
    def named(x):
        return x

    for name, told in (("<lambda>", "lambda"), ("</b>", "</b>")):
        named.__name__ = name
        assert f"cache of {told}: " in see.cache(minijax.jit(named)).text()
