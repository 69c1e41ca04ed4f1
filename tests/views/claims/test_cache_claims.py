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
