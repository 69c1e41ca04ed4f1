"""What `see.keys` claims, held against the keys that JAX really computes.

Random programs split keys, fold numbers into them, take rows, loop, map and draw. JAX
runs each as plain Python: a loop is a loop, a `vmap` goes through its rows, and a log
says which words each key had when it was used. The view sees the same program with
`scan`, `vmap` and `jit` in it, and runs nothing.
"""

import random as chance
import re
from collections import Counter

import jax
import numpy as np
import pytest

import minijax
import minijax_widgets as see
from minijax import lax
from tests.views.claims.forty import CASES, title

CLAIMS = [
    "The headline says how many different keys there are.",
    "The headline says how many draws happen: rounds and examples count.",
    "A key that is drawn from or split more than once is marked as used again.",
    "A key that is both drawn from and folded into is marked, too.",
    "'each key is used once' is said only if all draws are from different keys.",
    "A key is as deep as it was derived: its parent is the key it came from.",
    "A function without random keys is said to have none.",
]


class Traced:
    """The program as minijax sees it: loops and maps are primitives."""

    split = staticmethod(minijax.random.split)
    fold = staticmethod(minijax.random.fold_in)

    @staticmethod
    def draw(key):
        return minijax.random.bits(key)

    jitted = staticmethod(minijax.jit(lambda key: minijax.random.bits(key)))

    def rounds(self, body, key, count):
        """Draws of a loop that carries a key."""
        return lax.scan(lambda k, _: body(self, k), key, None, length=count)

    def along(self, body, keys):
        """Draws of a loop that goes along keys."""
        return lax.scan(lambda c, k: (c, body(self, k)), 0, keys)[1]

    def mapped(self, body, keys):
        return minijax.vmap(lambda k: body(self, k))(keys)

    def numbered(self, key, numbers):
        """A draw for each number, folded into one key, in a loop that counts."""

        def step(total, number):
            return total, self.draw(self.fold(key, number))

        return lax.scan(step, 0, np.array(numbers, np.int32))[1]


class Logged:
    """The program as plain Python, with JAX's keys; each use is written down."""

    def __init__(self):
        self.made: dict[bytes, bytes | None] = {}
        self.uses: list[tuple[str, bytes]] = []

    def words(self, key) -> bytes:
        return np.asarray(jax.random.key_data(key)).tobytes()

    def new(self, key, parent):
        self.made.setdefault(self.words(key), parent)

    def split(self, key, count=2):
        self.uses.append(("split", self.words(key)))
        keys = jax.random.split(key, count)
        for one in keys:
            self.new(one, self.words(key))
        return keys

    def fold(self, key, number):
        self.uses.append(("fold", self.words(key)))
        folded = jax.random.fold_in(key, number)
        self.new(folded, self.words(key))
        return folded

    def draw(self, key):
        self.uses.append(("draw", self.words(key)))
        return jax.random.bits(key)

    jitted = draw

    def rounds(self, body, key, count):
        drawn = []
        for _ in range(count):
            key, one = body(self, key)
            drawn.append(one)
        return key, drawn

    def along(self, body, keys):
        return [body(self, key) for key in keys]

    mapped = along

    def numbered(self, key, numbers):
        return [self.draw(self.fold(key, number)) for number in numbers]


def draws(m, key):
    return m.draw(key)


def splits_and_draws(m, key):
    parts = m.split(key)
    return m.draw(parts[1])


def folds_and_draws(m, key):
    return m.draw(m.fold(key, 1))


def goes_on(m, key):
    parts = m.split(key)
    return parts[0], m.draw(parts[1])


def stays(m, key):
    return key, m.draw(key)


def folds_on(m, key):
    return m.fold(key, 3), m.draw(m.fold(key, 4))


BODIES = [draws, splits_and_draws, folds_and_draws]
STEPS = [goes_on, stays, folds_on]
KINDS = ["split", "rows", "fold", "draw", "draw", "jitted", "rounds", "along"]
KINDS += ["mapped", "numbered"]


def program(seed):
    """A random function of a library and a key; mostly it uses each key once."""
    rng = chance.Random(seed)
    plan = []
    count = 1  # of keys at hand
    fresh = [0]
    for _ in range(rng.randint(3, 8)):
        kind = rng.choice(KINDS)
        careless = rng.random() < 0.2 or not fresh
        number = rng.randrange(count) if careless else fresh[-1]
        plan.append((kind, number, rng.randrange(3), rng.randint(2, 4)))
        if kind != "fold" and number in fresh:
            fresh.remove(number)
        made = {"split": 2, "rows": 2, "fold": 1, "rounds": 1}.get(kind, 0)
        fresh += range(count, count + made)
        count += made

    def run(m, key):
        keys, drawn = [key], []
        for kind, number, which, size in plan:
            key = keys[number]
            if kind == "split":
                keys += list(m.split(key))
            elif kind == "rows":
                parts = m.split(key, size)
                keys += [parts[which % size], parts[-1]]
            elif kind == "fold":
                keys.append(m.fold(key, which))
            elif kind == "draw":
                drawn.append(m.draw(key))
            elif kind == "jitted":
                drawn.append(m.jitted(key))
            elif kind == "rounds":
                key, more = m.rounds(STEPS[which], key, size)
                keys.append(key)
                drawn += list(more)
            elif kind == "numbered":
                drawn += list(m.numbered(key, [n % (which + 1) for n in range(size)]))
            else:
                parts = m.split(key, size + 1)[which % 2 :]
                drawn += list(getattr(m, kind)(BODIES[which], parts))
        return drawn

    return run


@pytest.mark.parametrize("seed", range(52))
def test_claims(seed):
    run, log = program(seed), Logged()
    start = jax.random.key(seed)
    log.new(start, None)
    drawn = [int(number) for number in run(log, start)]
    record = see.keys(
        lambda key: run(Traced(), key), minijax.random.key(seed)
    ).recording
    assert record.unsure == []
    counts = Counter(log.uses)
    counted = re.search(r"([\d,]+) keys?, ([\d,]+) draws?", record.headline)
    assert int(counted[1]) == len(log.made) == len(record.keys)
    assert int(counted[2]) == len(drawn)
    again = 0
    for words in log.made:
        consumed = counts["draw", words] + counts["split", words]
        again += consumed > 1 or bool(counts["draw", words] and counts["fold", words])
    assert sum(node.reused for node in record.keys) == again
    assert ("each key is used once" in record.headline) == (not again)
    if len(set(drawn)) < len(drawn):
        assert "each key is used once" not in record.headline
    children = Counter(log.made.values())
    shown = Counter(node.parent for node in record.keys)
    assert sorted(children.values()) == sorted(shown.values())


@pytest.mark.parametrize("case", CASES, ids=title)
def test_no_keys(case):
    view = see.keys(case.make(minijax), *case.args)
    assert view.recording.headline.endswith(": no random keys")


def test_a_key_of_a_split_is_one_that_fold_in_makes():
    def careless(key):
        first, _ = minijax.random.split(key)
        folded = minijax.random.fold_in(key, 0)
        return minijax.random.normal(first) + minijax.random.normal(folded)

    start = jax.random.key(3)
    words = [jax.random.split(start)[0], jax.random.fold_in(start, 0)]
    assert np.array_equal(*map(jax.random.key_data, words))
    view = see.keys(careless, minijax.random.key(3))
    assert "first is used twice: normal, normal" in view.recording.headline
    details = [step.detail for step in view.frame().steps]
    assert any("once more: folded, by fold_in 0" in detail for detail in details)


def test_a_number_of_the_run_may_be_that_of_a_split():
    def careless(key, step):
        first, _ = minijax.random.split(key)
        folded = minijax.random.fold_in(key, step)
        return minijax.random.normal(first) + minijax.random.normal(folded)

    view = see.keys(careless, minijax.random.key(3), 0)
    assert "or count a key of its split" in view.recording.headline


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_kinds_of_keys_differ_in_what_fold_in_makes(kind):
    start = minijax.random.key(3, impl=kind)
    parts = minijax.random.split(start, 3)
    two = minijax.random.split(start)
    folded = minijax.random.fold_in(start, 1)
    same = [
        np.array_equal(*map(minijax.random.key_data, (parts[1], other)))
        for other in (two[1], folded)
    ]

    def draws(key):
        one = minijax.random.split(key, 3)[1]
        two = minijax.random.split(key)[1]
        three = minijax.random.fold_in(key, 1)
        return [minijax.random.bits(k) for k in (one, two, three)]

    record = see.keys(draws, start).recording
    drawn = [len([u for u in k.uses if u.kind == "draw"]) for k in record.keys]
    assert sorted(n for n in drawn if n) == ([3] if all(same) else [1, 2])


def test_a_clone_draws_the_same_numbers():
    def both(k):
        return m.normal(k, (3,)), m.normal(m.clone(k), (3,))

    def alone(k):
        return m.normal(m.clone(k), (3,))

    def others(k):
        k, now = m.split(k)
        return m.normal(k, (3,)), m.normal(m.clone(now), (3,))

    m = minijax.random
    for function in (both, alone, others):
        drawn = function(m.key(3))
        same = function is both and np.array_equal(*drawn)
        told = see.keys(function, m.key(3)).recording.headline
        assert ("the same numbers" in told) == same
