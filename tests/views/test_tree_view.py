"""`see.tree`: nodes, leaves, what is no array, and two trees compared."""

from collections import namedtuple
from dataclasses import dataclass, field

import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.core import trees
from minijax.support import tree_util
from minijax_lab.explain.recording import Recording

Pair = namedtuple("Pair", "x y")


@tree_util.register_dataclass
@dataclass
class Dense:
    w: object
    name: str = field(metadata={"static": True})


PARAMS = [
    {"w": jnp.ones((64, 32)), "b": jnp.zeros(32)},
    {"w": jnp.ones((32, 10)), "b": None, "name": "tanh"},
]


def test_the_twin():
    assert see.tree(PARAMS).text().splitlines() == [
        "tree of list: 4 leaves, 9.4 KiB; [1]['name'] is a leaf that is no array (str)",
        "  tree                     list                        9.4 KiB",
        "    [0]                    dict                        8.1 KiB",
        "      ['b']                f32[32]                       128 B",
        "      ['w']                f32[64,32]                  8.0 KiB",
        "    [1]                    dict                        1.2 KiB",
        "      ['b']                None",
        ">     ['name']             str"
        "                                  a leaf that is no array (str)",
        "      ['w']                f32[32,10]                  1.2 KiB",
    ]


@pytest.mark.parametrize(
    "value",
    [3.0, None, {}, (), Pair(1, {"k": 2}), Dense(1.0, "a"), [object()], PARAMS]
    + [{"a": minijax.ShapeDtypeStruct((2,), jnp.float32)}],
    ids=lambda value: type(value).__name__,
)
def test_leaves_are_those_of_tree_flatten(value):
    record = see.tree(value).recording
    leaves = [node for node in record.nodes if node.leaf is not None]
    paths = tree_util.tree_leaves_with_path(value)
    assert [node.path for node in leaves] == [trees.keystr(p) for p, _ in paths]
    assert [node.leaf for node in leaves] == list(range(len(paths)))
    assert Recording.from_dict(record.to_dict()) == record
    assert see.tree(value).to_html()


def test_static_fields_and_unregistered_classes():
    text = see.tree({"d": Dense(1.0, "first"), "o": object()}).text()
    assert "Dense(name='first')" in text
    assert "object is not registered" in text.splitlines()[0]


def test_two_trees():
    one, two = {"a": 1, "b": jnp.ones(2)}, {"a": 1.0, "c": (1, 2)}
    view = see.tree(one, two)
    assert view.text().splitlines()[0] == (
        "two trees: 1 only in the first, 3 only in the second, 1 not the same"
    )
    changes = {node.path: node.change for node in view.recording.nodes}
    assert changes == {
        "": "",
        "['a']": "changed",
        "['b']": "del",
        "['c']": "add",
        "['c'][0]": "add",
        "['c'][1]": "add",
    }
    assert "no difference in 1 leaf" in see.tree({"a": 1}, {"a": 2}).text()
    assert "1 not the same" in see.tree(Dense(1, "x"), Dense(1, "y")).text()


def test_the_picture(show):
    page = show(see.tree(PARAMS))
    assert page.inner_text(".mj-where").endswith("[1]['name']")
    page.click("tr.mj-r:has-text('[0]') .mj-fold >> nth=0")
    assert page.locator("tr.mj-r").count() == 6


def test_the_telling_row_says_on_which_side_it_is():
    twin = see.tree({"w": 1.0}, {"w": 1.0, "b": 1.0}).text()
    assert next(r for r in twin.split("\n") if r[0] == ">").endswith(
        "only in the second tree"
    )


def test_bytes_are_bars_on_one_scale():
    frame = see.tree({"a": jnp.ones(30), "b": jnp.ones(10)}).frame()
    bars = [row.pieces()[3][0] for row in frame.panes[0].rows]
    assert [bar.role for bar in bars] == ["bytes"] * 3
    whole, a, b = (int(bar.text) for bar in bars)
    assert abs(a - 0.75 * whole) <= 1 and abs(b - 0.25 * whole) <= 1


def test_a_large_tree_opens_where_it_differs(browser, tmp_path) -> None:
    def tree(odd: int):
        return {n: [jnp.ones(2 if n == odd else 3)] for n in range(200)}

    page = browser.new_page()
    (tmp_path / "tree.html").write_text(see.tree(tree(-1), tree(123)).to_html())
    page.goto((tmp_path / "tree.html").as_uri())
    page.wait_for_selector(".mj-live .mj-where")
    told = page.locator(".mj-live .mj-r.mj-on")
    assert told.count() == 1 and "f32[3]" in told.inner_text()
    assert told.is_visible()
    shown = page.locator(".mj-live .mj-r:visible").count()
    assert 200 <= shown < 210  # of 401: the other containers are folded
    page.close()


def test_a_flat_tree_of_many_leaves_opens_in_parts(browser, tmp_path) -> None:
    # A part that holds what a step lights opens; each of the other leaves can be found.
    path = tmp_path / "tree.html"
    leaves = {f"w{number:04}": jnp.ones(2) for number in range(950)}
    see.tree({"one": leaves, "other": 1.0}).save(path)
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live")
    rows = page.locator(".mj-live tr")
    heads = rows.filter(has_text=" of 950")
    assert heads.count() in (0, 10) and rows.count() < 130
    page.locator(".mj-live").focus()
    page.keyboard.press("/")
    page.keyboard.type("w0777")
    lit = page.locator(".mj-live tr.mj-on")
    assert "w0777" in lit.inner_text() and heads.count() == 10
    assert heads.nth(7).inner_text() == "701 to 800 of 950"
    assert rows.count() < 230
    page.close()
