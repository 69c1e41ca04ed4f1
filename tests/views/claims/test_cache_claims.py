"""What `see.cache` claims, held against how often jax runs and keeps a function."""

import jax
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from tests.views.claims.forty import CASES, title

CLAIMS = [
    "So many calls were hits, and so many misses.",
    "A call is a miss if JAX traced for it.",
    "What changed at a miss is what differs from the nearest key.",
]


def shorter(value):
    """An array of floats in half the precision; other arrays as they are."""
    array = np.asarray(value)
    return array.astype(np.float16) if array.dtype == np.float32 else array


def counting(function):
    runs = []

    def counted(*args):
        runs.append(1)
        return function(*args)

    return counted, runs


@pytest.mark.parametrize("case", CASES, ids=title)
def test_claims(case):
    changed = jax.tree.map(shorter, case.args)
    differs = any(
        a.dtype != np.asarray(b).dtype
        for a, b in zip(jax.tree.leaves(changed), jax.tree.leaves(case.args))
    )
    theirs, runs = counting(case.make(jax))
    jitted = jax.jit(theirs)
    ours = minijax.jit(case.make(minijax))
    misses = []
    with see.cache(ours) as view:
        for args in (case.args, case.args, changed, case.args, changed, changed):
            before = len(runs)
            try:
                jitted.eval_shape(*args)
            except TypeError:
                with pytest.raises(TypeError):  # half precision does not fit everywhere
                    ours(*args)
                return
            misses.append(len(runs) > before)
            ours(*args)
    record = view.recording
    seen = [not call.hit for call in record.calls for _ in range(call.count)]
    assert seen == misses
    count = sum(misses)
    assert f"6 calls, {6 - count} hit" in record.headline
    assert f"{count} miss" in record.headline
    if differs:
        kinds = {change.kind for change in record.calls[2].changes}
        assert kinds == {"type"}
        assert {c.was for c in record.calls[2].changes} == {"float32"}


# ---- who obeys gets the same answer, and a hit ---------------------------------------

NUMBERS = [1.0, 2, 2.5, True, np.float32(2.0), np.float32(0.5), np.int32(3), 3]


@pytest.mark.parametrize("now", NUMBERS, ids=repr)
@pytest.mark.parametrize("kept", NUMBERS, ids=repr)
def test_advice_for_a_number_changes_no_answer(kept, now):
    f = minijax.jit(lambda x, n: x * n + n)
    x = np.float32([1.0, 3.0])
    with see.cache(f) as view:
        f(x, kept)
        answer = f(x, now)
    if len(view.recording.calls) < 2 or view.recording.calls[1].hit:
        return
    advice = view.recording.calls[1].advice
    instead, _, not_this = advice.removeprefix("pass ").partition(", not ")
    if not_this:
        assert eval(not_this) == now
        with see.cache(f) as again:
            obeyed = f(x, eval(instead))
        assert again.recording.calls[0].hit
        np.testing.assert_array_equal(obeyed, answer)
    elif advice:
        name = advice.removeprefix("pass n as ").removesuffix(" each time")
        kind = {"float": float, "int": int, "bool": bool}.get(name) or np.dtype(name)
        kind = getattr(kind, "type", kind)
        assert kind(kept) == kept and kind(now) == now
        np.testing.assert_array_equal(f(x, kind(kept)), f(x, kept))
        with see.cache(f) as again:
            np.testing.assert_array_equal(f(x, kind(now)), answer)
        assert again.recording.calls[0].hit


def test_a_ragged_last_batch_is_padded():
    f = minijax.jit(lambda w, x, y: ((x @ w - y) ** 2).sum(-1))
    w, x = np.ones((3, 2), np.float32), np.ones((64, 3), np.float32)
    y = np.zeros((64, 2), np.float32)
    with see.cache(f) as view:
        for _ in range(4):
            f(w, x, y)
        last = f(w, x[:36], y[:36])
    advice = view.recording.calls[-1].advice
    assert advice == "pad x, y to 64, or drop the last batch"
    with see.cache(f) as again:
        padded = f(w, *(np.pad(a[:36], ((0, 64 - 36), (0, 0))) for a in (x, y)))
    assert again.recording.calls[0].hit
    np.testing.assert_array_equal(np.asarray(padded)[:36], last)


def test_two_sizes_alone_are_no_ragged_batch():
    f = minijax.jit(lambda x: x * 2)
    with see.cache(f) as view:
        f(np.ones(64))
        f(np.ones(36))
    assert not view.recording.calls[-1].advice


def test_a_static_argument_that_changes_each_call():
    f = minijax.jit(lambda x, step: x * step, static_argnums=1)
    with see.cache(f) as view:
        answers = [f(2.0, step) for step in range(5)]
    advised = [call.advice for call in view.recording.calls]
    assert advised[:2] == ["", ""]
    assert set(advised[2:]) == {
        "make step an argument, unless a shape or a branch needs it"
    }
    g = minijax.jit(lambda x, step: x * step)
    with see.cache(g) as again:
        assert [g(2.0, step) for step in range(5)] == answers
    assert sum(not call.hit for call in again.recording.calls) == 1


def test_integers_are_not_asked_of_floats():
    f = minijax.jit(lambda x: x * 2)
    with see.cache(f) as view:
        f(np.arange(3, dtype=np.int32))
        f(np.float32([0.5, 1.5, 2.5]))
    assert view.recording.calls[1].advice == "pass x as float32 each time"


def test_a_changed_tree_is_shown_where_it_differs():
    def params(last):
        return {f"layer{n}": {"bias": 1.0, "weights": 2.0} for n in range(9)} | {
            "layer9": last
        }

    f = minijax.jit(lambda p: p["layer0"]["bias"])
    with see.cache(f) as view:
        f(params((1.0,)))
        f(params([1.0]))
    (change,) = view.recording.calls[1].changes
    assert "(*,)" in change.was[:40] and "[*]" in change.now[:40]


def test_a_function_jitted_in_a_loop_is_to_be_jitted_once():
    x, view = np.ones(3, np.float32), None
    for _ in range(4):
        double = minijax.jit(lambda x: x * 2)
        view = view or see.cache(double)
        answer = double(x)
        double(x)
    record = view.recording
    calls = [call for call in record.calls if not call.hit]
    assert len(calls) == 4 and sum(call.hit for call in record.calls) == 4
    assert {call.advice for call in calls[1:]} == {
        "jit it once, above the loop, and call that"
    }
    assert len({call.program for call in calls}) == 4
    minijax.jit(lambda x: x * 3)(x)  # of another line
    assert view.recording.headline == record.headline
    double = minijax.jit(lambda x: x * 2)
    with see.cache(double) as again:
        for _ in range(4):
            np.testing.assert_array_equal(double(x), answer)
    assert sum(not call.hit for call in again.recording.calls) == 1
