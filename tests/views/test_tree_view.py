"""`see.tree`: nodes, leaves, what is no array, and two trees compared."""

import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax import random
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
    # Rows far from the lit one come after the first paint.
    page.wait_for_function("document.querySelectorAll('.mj-live .mj-r').length >= 200")
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
    heads.nth(9).wait_for(state="attached")  # some come after the first paint
    assert heads.count() == 10 and rows.count() < 130
    page.locator(".mj-live").focus()
    page.keyboard.press("/")
    page.keyboard.type("w0777")
    lit = page.locator(".mj-live tr.mj-on")
    assert "w0777" in lit.inner_text() and heads.count() == 10
    assert heads.nth(7).inner_text() == "701 to 800 of 950"
    assert rows.count() < 230
    page.close()


def cells_of(page):
    """Arrays that the page draws: what the pointer is told of each, by its name."""
    made = page.locator(".mj-live table svg [data-v]")
    return {
        cell.get_attribute("data-n"): cell.get_attribute("data-v")
        for cell in made.all()
    }


def held_of(value, **how):
    nodes = see.tree(value, **how).recording.nodes
    return {node.path: node.held for node in nodes if node.held and node.held.rows}


def test_arrays_are_drawn_in_place(show):
    page = show(see.tree({"b": jnp.array([1.5, -2.0, 0.25]), "n": 3, "s": "name"}))
    assert cells_of(page) == {"['b']": "1.5 -2 0.25", "['n']": "3"}
    box = page.locator("[data-n=\"['b']\"]").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".mj-detail").inner_text() == "['b'][1] = -2"
    assert "-2 to 1.5, mean -0.08333" in page.locator("main, body").first.inner_text()


@pytest.mark.parametrize("shape", [(33, 1), (1, 100), (40, 70), (3, 5, 7), (2000,)])
@pytest.mark.parametrize("values", [None, True])
def test_cells_of_large_arrays_are_means_of_blocks(shape, values):
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    held = held_of(array, values=values)[""]
    table = array.reshape(-1, shape[-1])
    exact = table.shape[0] <= 32 and table.shape[1] <= 32
    most = 32 if values or array.size <= 1024 else 16
    down, across = (-(-size // most) for size in table.shape)
    expected = [
        [
            table[i : i + down, j : j + across].mean()
            for j in range(0, shape[-1], across)
        ]
        for i in range(0, len(table), down)
    ]
    np.testing.assert_allclose(held.rows, expected, rtol=1e-3, atol=1e-3)
    assert ("the mean of" in held.told) == (not exact)
    assert held.exact == (exact and array.ndim < 3)
    low, _, high = held.told.partition(",")[0].split()
    np.testing.assert_allclose(
        [float(low), float(high)], [array.min(), array.max()], rtol=1e-3
    )


def test_very_large_numbers_are_drawn():
    tree = [10**400, 10**300, np.array([1.7e308, -1.6e308]), np.full((40, 40), 1e308)]
    held = held_of(tree, values=True)
    assert list(held) == ["[1]", "[2]", "[3]"]
    np.testing.assert_allclose(held["[3]"].rows, 1e308)
    assert held["[2]"].told == "-1.6e+308 to 1.7e+308, mean 5e+306"
    assert see.tree(tree).to_html()


def test_values_are_asked_for_by_a_boolean():
    with pytest.raises(TypeError, match="values is True, False or None, got 'yes'"):
        see.tree({}, values="yes")


@pytest.mark.parametrize("shape", [(4, 30), (500, 1), (1, 500), (2, 2), (32, 32), (7,)])
def test_an_array_in_its_row_has_a_size_that_is_seen(shape):
    frame = see.tree(jnp.ones(shape), values=True).frame()
    (drawn,) = frame.glyphs.values()
    assert 8 <= drawn["w"] - 2 <= 200 and 8 <= drawn["h"] - 2 <= 80


def test_what_is_not_finite_is_no_number():
    held = held_of(jnp.array([1.0, jnp.nan, jnp.inf, 3.0]))[""]
    assert held.told == "1 to 3, mean 2, 2 not finite"
    assert held_of(np.full(2, np.nan))[""].told == "no number is finite"
    told = held_of(np.array([1.0, np.nan, -np.inf]))[""].told
    assert told == "1 where finite, 2 not finite"


def test_arrays_without_numbers_here_are_not_drawn():
    gone = jnp.ones(3)
    gone.delete()
    odd = [gone, random.key(0), np.array(["a"]), jnp.zeros((0, 2)), 1j * jnp.ones(2)]
    assert held_of(odd) == {}
    seen = []
    minijax.jit(lambda x: seen.append(held_of({"x": x})))(1.0)
    assert seen == [{}]


def test_many_numbers_wait_until_they_are_asked_for():
    tree = [jnp.ones((32, 32)) for _ in range(30)]
    assert len(held_of(tree)) == 19
    assert len(held_of(tree, values=True)) == 30
    assert held_of(tree, values=False) == {}
    last = see.tree(tree).frame().steps[-1].detail
    assert last.endswith("too many numbers to draw: values=True draws all")


ON_EIGHT = """
import minijax
minijax.config.update("jax_num_cpu_devices", 8)
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.sharding import NamedSharding, PartitionSpec as P
mesh = minijax.make_mesh((4, 2), ("x", "y"))
for spec in (P("x", "y"), P(None, "x")):
    x = minijax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, spec))
    held = see.tree(x).recording.nodes[0].held
    places = x.sharding.devices_indices_map(x.shape).values()
    ends = [sorted({index[d].start or 0 for index in places} - {0}) for d in (0, 1)]
    print(held.cuts == ends, held.cuts, held.told)
"""


def test_lines_stand_where_the_pieces_of_devices_end():
    ran = [sys.executable, "-c", ON_EIGHT]
    told = subprocess.run(ran, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [
        "True [[4.0, 8.0, 12.0], [4.0]] 1 everywhere; "
        "P('x', 'y'): 8 pieces on 8 devices",
        "True [[], [2.0, 4.0, 6.0]] 1 everywhere; "
        "P(None, 'x'): 4 pieces x 2 copies on 8 devices",
    ]


def test_arrays_of_jax_are_drawn_alike():
    import jax

    mine, theirs = ({"w": lib.arange(6.0).reshape(2, 3)} for lib in (jnp, jax.numpy))
    assert held_of(theirs) == held_of(mine)
    x = jax.device_put(theirs["w"].T, jax.devices()[0])
    assert held_of(x)[""].rows == [[0, 3], [1, 4], [2, 5]]
