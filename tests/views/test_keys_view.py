"""`see.keys`: the tree of keys, and keys that are used twice."""

import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import jit, random, vmap
from minijax_lab.explain.keys import use_text
from minijax_lab.explain.recording import Recording

KEY = random.key(0)


def noisy(key, x):
    for_mask, for_noise = random.split(key)
    keep = random.bernoulli(for_mask, 0.5, x.shape)
    return jnp.where(keep, x, 0.0) + random.normal(for_noise, x.shape)


def careless(key, x):
    keep = random.bernoulli(key, 0.5, x.shape)
    return jnp.where(keep, x, 0.0) + random.normal(key, x.shape)


def walk(key, steps=3):
    place = 0.0
    for _ in range(steps):
        key, now = random.split(key)
        place = place + random.normal(now)
    return place


def folded(key):
    total = 0.0
    for i in range(2):
        k = random.fold_in(key, i)
        total += random.normal(k) * random.uniform(k)
    return total


def reused(function, *args):
    record = see.keys(function, *args).recording
    return [node.how for node in record.keys if node.reused]


def test_the_twin():
    first = noisy.__code__.co_firstlineno
    assert see.keys(noisy, KEY, jnp.ones(4)).text().splitlines() == [
        "keys of noisy(key<fry>[], f32[4]): 4 keys, 2 draws; each key is used once",
        f"  argument key                     split (line {first + 1})",
        "    split (2,)",
        f"      [0]                          bernoulli (line {first + 2})",
        f">     [1]                          normal (line {first + 3})",
    ]


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda key: noisy(key, jnp.ones(2)), []),
        (lambda key: careless(key, jnp.ones(2)), ["argument key"]),
        (walk, []),
        (folded, ["fold_in 0", "fold_in 1"]),
        (lambda key: random.permutation(key, 5), []),
        (lambda key: vmap(random.normal)(random.split(key, 3)), []),
        (lambda key: random.normal(key) + random.normal(random.split(key)[0]),)
        + (["argument key"],),
        (lambda key: jit(random.normal)(key) + jit(random.uniform)(key),)
        + (["argument key"],),
        (lambda key: random.normal(random.split(key)[0]), []),
    ],
)
@pytest.mark.parametrize("typed", [True, False])
def test_reuse(function, expected, typed):
    key = KEY if typed else random.PRNGKey(0)
    found = reused(function, key)
    assert found == expected


def test_tree_of_a_loop():
    keys = see.keys(walk, KEY).recording.keys
    draws = [node for node in keys if any(use.what == "normal" for use in node.uses)]
    assert [node.how for node in draws] == ["[1]"] * 3
    assert sorted(node.depth for node in draws) == [2, 4, 6]
    for node in keys:
        assert node.parent is None or keys[node.parent].depth == node.depth - 1


def test_seeds_and_no_keys():
    text = see.keys(lambda: random.normal(random.key(3))).text()
    assert "seed" in text and "each key is used once" in text
    assert "no random keys" in see.keys(lambda x: x, 1.0).text()
    with pytest.raises(TypeError, match="takes a function"):
        see.keys(KEY)


def test_a_key_that_a_jitted_function_makes():
    def draws(x):
        key = random.key(0)
        return x * random.normal(key) + random.uniform(key)

    by_hand = see.keys(draws, 1.0).recording
    jitted = see.keys(lambda x: jit(jit(draws))(x), 1.0).recording
    assert [node.how for node in jitted.keys] == ["seed"]
    for record in (by_hand, jitted):
        uses = [(use.what, use_text(record, use)) for use in record.keys[0].uses]
        assert uses[0] == ("normal", "random.normal(key)")
        assert uses[1] == ("uniform", "random.uniform(key)")
        assert record.keys[0].reused


def test_the_picture(show):
    view = see.keys(careless, KEY, jnp.ones(4))
    assert Recording.from_dict(view.recording.to_dict()) == view.recording
    page = show(view)
    assert "used twice" in page.inner_text("tr.mj-on")
    assert page.locator("mark").all_inner_texts() == [
        "random.bernoulli(key, 0.5, x.shape)",
        "random.normal(key, x.shape)",
    ]


def test_keys_at_traced_indices_are_kept_apart():
    def apart(key, i):
        keys = random.split(key, 4)
        return random.normal(keys[i]) + random.normal(keys[i + 1])

    def same(key, i):
        taken = random.split(key, 4)[i]
        return random.normal(taken) + random.uniform(taken)

    assert "each key is used once" in see.keys(apart, KEY, 1).text()
    assert "[...] is used twice" in see.keys(same, KEY, 1).text()
