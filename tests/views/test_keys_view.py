"""`see.keys`: the tree of keys, and keys that are used twice."""

import numpy as np
import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import jit, lax, random, vmap
from minijax_lab.explain.key_values import count_of
from minijax_lab.explain.keys import use_text
from minijax_lab.explain.recording import Recording
from minijax_widgets.keys_scene import branches_of
from minijax_widgets.keys_view import fate

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
    return [node.name for node in record.keys if node.reused]


def test_the_twin():
    first = noisy.__code__.co_firstlineno
    assert see.keys(noisy, KEY, jnp.ones(4)).text().splitlines() == [
        "keys of noisy(key<fry>[], f32[4]): 3 keys, 2 draws; each key is used once",
        f"  key                          argument    split (line {first + 1})",
        f"  + for_mask                   split       bernoulli (line {first + 2})",
        f"> + for_noise                  split       normal (line {first + 3})",
    ]


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda key: noisy(key, jnp.ones(2)), []),
        (lambda key: careless(key, jnp.ones(2)), ["key"]),
        (walk, []),
        (folded, ["k", "k"]),
        (lambda key: random.permutation(key, 5), []),
        (lambda key: vmap(random.normal)(random.split(key, 3)), []),
        (lambda key: random.normal(key) + random.normal(random.split(key)[0]), ["key"]),
        (lambda key: jit(random.normal)(key) + jit(random.uniform)(key), ["key"]),
        (lambda key: random.normal(random.split(key)[0]), []),
    ],
)
@pytest.mark.parametrize("typed", [True, False])
def test_reuse(function, expected, typed):
    key = KEY if typed else random.PRNGKey(0)
    found = reused(function, key)
    assert found == expected


# ---- what is counted, held against the numbers that really come out -----------------


def of_a_closed_over_key(key):
    def step(total, _):
        drawn = random.uniform(key)
        return total + drawn, drawn

    return lax.scan(step, 0.0, None, length=3)[1]


def of_keys_by_round(key):
    keys = random.split(key, 3)
    return lax.scan(lambda c, k: (c, random.uniform(k)), 0.0, keys)[1]


def of_a_carried_key(key):
    def step(key, _):
        key, sub = random.split(key)
        return key, random.uniform(sub)

    return lax.scan(step, key, None, length=4)[1]


def of_a_key_that_is_not_split(key):
    def step(key, _):
        return key, random.uniform(key)

    return lax.scan(step, key, None, length=4)[1]


def of_rows_and_the_first(key):
    ks = random.split(key, 4)
    return jnp.append(vmap(random.uniform)(ks), random.uniform(ks[0]))


def of_two_slices_that_meet(key):
    ks = random.split(key, 5)
    draw = vmap(random.uniform)
    return jnp.append(draw(ks[:3]), draw(ks[2:]))


def of_two_slices_apart(key):
    ks = random.split(key, 5)
    draw = vmap(random.uniform)
    return jnp.append(draw(ks[:3]), draw(ks[3:]))


def of_a_key_for_all_examples(key):
    return vmap(lambda x: x + random.uniform(key))(jnp.zeros(3))


def of_a_key_for_all_examples_jitted(key):
    return jit(vmap(jit(lambda x: x + random.uniform(key))))(jnp.zeros(3))


def of_rounds_folded_in(key):
    def body(i, drawn):
        return drawn.at[i].set(random.uniform(random.fold_in(key, i)))

    return lax.fori_loop(0, 3, body, jnp.zeros(3))


def of_halves_of_rounds_folded_in(key):
    def body(i, drawn):
        return drawn.at[i].set(random.uniform(random.fold_in(key, i // 2)))

    return lax.fori_loop(0, 4, body, jnp.zeros(4))


def of_examples_folded_in(key):
    return vmap(lambda i: random.uniform(random.fold_in(key, i)))(jnp.arange(3))


def of_examples_and_keys_folded_in(key):
    def draw(key, i):
        return random.uniform(random.fold_in(key, i))

    return vmap(draw)(random.split(key, 3), jnp.zeros(3, int))


def of_keys_folded_with_one_number(key):
    return vmap(lambda k: random.uniform(random.fold_in(k, 5)))(random.split(key, 3))


def of_a_grid_of_keys_and_numbers(key):
    def draw(k, i):
        return random.uniform(random.fold_in(k, i))

    rows = vmap(draw, in_axes=(None, 0))
    return vmap(rows, in_axes=(0, None))(random.split(key, 2), jnp.arange(3) % 2)


def of_one_number_folded_in_twice(key):
    a, b = random.fold_in(key, 7), random.fold_in(key, 7)
    return jnp.stack([random.uniform(a), random.uniform(b)])


def of_rows_by_a_counter(key):
    ks = random.split(key, 3)

    def body(i, drawn):
        return drawn.at[i].set(random.uniform(ks[i]))

    return lax.fori_loop(0, 3, body, jnp.zeros(3))


def of_the_same_row_by_a_counter(key):
    ks = random.split(key, 3)

    def body(i, drawn):
        return drawn.at[i].set(random.uniform(ks[i % 2]))

    return lax.fori_loop(0, 3, body, jnp.zeros(3))


def of_rows_turned_round(key):
    ks = random.split(key, (2, 2))
    first = vmap(random.uniform)(ks[0])
    return jnp.append(first, random.uniform(jnp.swapaxes(ks, 0, 1)[1, 0]))


def of_one_seed_twice(key):
    made = [random.uniform(random.key(3)), random.uniform(random.key(3))]
    return jnp.stack(made)


def of_other_branches(key):
    def one(k):
        return random.uniform(k)

    picked = lax.cond(jnp.float32(1.0) > 0, one, one, key)
    return jnp.stack([picked])


def of_a_branch_and_after(key):
    taken = lax.cond(True, random.uniform, lambda k: 0.5, key)
    return jnp.stack([taken, random.uniform(key)])


DRAWING = [value for name, value in list(globals().items()) if name.startswith("of_")]


@pytest.mark.parametrize("function", DRAWING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("typed", [True, False])
def test_a_key_is_reused_if_equal_numbers_come_out(function, typed):
    key = KEY if typed else random.PRNGKey(0)
    drawn = np.asarray(function(key)).ravel().tolist()
    record = see.keys(function, key).recording
    by_key = [
        count_of([use for use in node.uses if use.kind == "draw"])
        for node in record.keys
    ]
    same = sorted(drawn.count(number) for number in set(drawn))
    assert record.unsure == []
    assert sorted(count for count in by_key if count) == same
    assert any(node.reused for node in record.keys) == (len(set(drawn)) < len(drawn))


def test_what_it_cannot_tell():
    def asked(function, *args):
        view = see.keys(function, *args)
        assert "used once" not in view.text()
        return view.recording.headline.partition("; ")[2]

    def by_index(key, i):
        ks = random.split(key, 4)
        return random.normal(ks[i]) + random.normal(ks[i + 1])

    def by_number(key, i, j):
        one, two = random.fold_in(key, i), random.fold_in(key, j)
        return random.normal(one) + random.normal(two)

    def until(key, x):
        def step(state):
            key, x = state
            key, sub = random.split(key)
            return key, x + random.uniform(sub)

        return lax.while_loop(lambda state: state[1] < 1.0, step, (key, x))[1]

    def very_long(key):
        keys = random.split(key, 3000)
        return lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, keys)[0]

    assert asked(by_index, KEY, 1) == "cannot tell: ks[i] and ks[i + 1] may be one key"
    assert "are known only when it runs" in asked(by_number, KEY, 1, 2)
    assert "how often the while loop" in asked(until, KEY, 0.0)
    assert "1024 of the 3,000 rounds" in asked(very_long, KEY)


def test_a_closed_over_key_in_a_while_loop_is_a_reuse():
    def until(key, x):
        step = lambda x: x + random.uniform(key)  # noqa: E731
        return lax.while_loop(lambda x: x < 1.0, step, x)

    assert reused(until, KEY, 0.0) == ["key"]
    # How often it is used is not known; where it is, it is told.
    view = see.keys(until, KEY, 0.0)
    assert "uniform in each round" in view.text()
    assert "used in each round" in view.text() and "twice" not in view.text()
    assert "two rounds are counted" in view.recording.headline
    text = see.keys(lambda key, x: lax.fori_loop(0, 5, turn(key), x), KEY, 0.0).text()
    assert "uniform in each of 5 rounds" in text and "two rounds" not in text


def turn(key):
    return lambda i, x: x + random.uniform(key)


def test_a_function_called_normal_is_not_the_sampler():
    @jit
    def normal(key):
        a, b = random.split(key)
        return random.uniform(a) + random.uniform(a)

    assert reused(lambda key: normal(key), KEY) == ["a"]


def test_tree_of_a_loop():
    view = see.keys(walk, KEY)
    keys = view.recording.keys
    draws = [node for node in keys if any(use.what == "normal" for use in node.uses)]
    assert [node.name for node in draws] == ["now"] * 3
    # The key that goes on stands below the one it came from; draws are twigs.
    assert [node.depth for node in keys] == [0, 1, 0, 1, 0, 1, 0]
    assert "+ now" in view.text() and "|" not in view.text()


def test_rounds_that_are_alike_fold():
    text = see.keys(lambda key: walk(key, 12), KEY).text()
    assert "25 keys, 12 draws" in text and "... 9 more rounds" in text
    assert len(text.splitlines()) == 9


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
    assert [(node.name, node.how) for node in jitted.keys] == [("key", "seed 0")]
    for record in (by_hand, jitted):
        uses = [(use.what, use_text(record, use)) for use in record.keys[0].uses]
        assert uses[0] == ("normal", "random.normal(key)")
        assert uses[1] == ("uniform", "random.uniform(key)")
        assert record.keys[0].reused


def test_the_picture(show):
    view = see.keys(careless, KEY, jnp.ones(4))
    assert Recording.from_dict(view.recording.to_dict()) == view.recording
    page = show(view)
    lit = page.locator("g.mj-mark.mj-on").all_text_contents()
    assert lit[0] == "keyused twice"
    assert [text.partition(" (")[0] for text in lit[1:]] == ["bernoulli", "normal"]
    assert page.locator("mark").all_inner_texts() == [
        "random.bernoulli(key, 0.5, x.shape)",
        "random.normal(key, x.shape)",
    ]


def branching(key):
    first, second = random.split(key)
    extra = random.fold_in(second, 3)
    return random.normal(first, (2, 8)).sum() + random.uniform(extra)


@pytest.mark.parametrize("width", [480, 1200])
def test_the_tree_is_drawn(show, width):
    page = show(see.keys(branching, KEY), width=width)
    said = page.locator("svg.mj-scene g.mj-mark").all_text_contents()
    for text in ("keyargument", "first", "second", "extra", "fold_in 3", "82"):
        assert text in said, text
    assert said.count("split") == 2
    places = {
        name: page.locator(f"svg.mj-scene text:text-is('{name}')").bounding_box()
        for name in ("key", "first", "second", "extra")
    }
    assert places["key"]["x"] < places["first"]["x"]
    assert places["first"]["y"] < places["second"]["y"]
    assert places["second"]["x"] < places["extra"]["x"]
    page.locator("svg.mj-scene text:text-is('second')").click()
    assert "second, split: fold_in at" in page.inner_text(".mj-detail")


def test_what_is_drawn_for_one_key():
    def draws(key):
        keys = random.split(key, 5)
        return vmap(lambda k: random.normal(k, (2, 3)))(keys)

    record = see.keys(draws, KEY).recording
    shapes = [use.shape for node in record.keys for use in node.uses]
    assert shapes == [None, *[[2, 3]] * 5]


def hundred(key):
    ks = random.split(key, 100)
    total = random.normal(ks[0]) + random.uniform(ks[1])
    for k in ks[2:]:
        a, b = random.split(k)
        total = total + random.normal(a) * random.uniform(b)
    return total


def test_a_hundred_keys_are_drawn_once_where_they_are_alike():
    view = see.keys(hundred, KEY)
    branches = branches_of(view.recording.keys, fate)
    assert [(b.node.name, b.alike) for b in branches] == [
        ("key", 1),
        ("ks[0]", 1),
        ("ks[1]", 1),
        ("ks[2]", 98),
        ("a", 1),
        ("b", 1),
    ]
    # Every key belongs to what is drawn.
    drawn = sorted(i for branch in branches for i in branch.ids)
    assert drawn == list(range(297))
    scene = view.frame().panes[0].scene
    assert scene.height < 400 and any("x 98 alike" in m.label for m in scene.marks)


def test_a_reuse_is_not_hidden_behind_keys_that_are_used_well():
    def draws(key):
        ks = random.split(key, 6)
        total = sum(random.normal(k) for k in ks)
        return total + random.normal(ks[3])

    branches = branches_of(see.keys(draws, KEY).recording.keys, fate)
    assert [(b.below, len(b.ids)) for b in branches if b.parent] == [
        ("x 5 alike", 5),
        ("used twice", 1),
    ]


def test_a_key_taken_at_a_traced_index():
    def same(key, i):
        taken = random.split(key, 4)[i]
        return random.normal(taken) + random.uniform(taken)

    assert "is used twice: normal, uniform" in see.keys(same, KEY, 1).recording.headline


@pytest.mark.parametrize("width", [500, 1200])
def test_twelve_chained_splits_stay_readable(show, width):
    page = show(see.keys(twelve, KEY), width=width)
    draws = page.locator("svg.mj-scene text", has_text="normal (line")
    assert draws.count() == 12
    boxes = [draws.nth(i).bounding_box() for i in range(12)]
    for high, low in zip(boxes, boxes[1:]):
        assert low["y"] >= high["y"] + high["height"]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def twelve(key):
    key, a = random.split(key)
    key, b = random.split(key)
    key, c = random.split(key)
    key, d = random.split(key)
    key, e = random.split(key)
    key, f = random.split(key)
    key, g = random.split(key)
    key, h = random.split(key)
    key, i = random.split(key)
    key, j = random.split(key)
    key, k = random.split(key)
    key, m = random.split(key)
    subs = (a, b, c, d, e, f, g, h, i, j, k, m)
    return sum(random.normal(sub) for sub in subs)
