"""What `see.tree` claims, held against jax's own tree functions and NumPy's bytes."""

import re

import jax
import numpy as np
import pytest

import minijax_widgets as see
from tests.views.claims.forty import CASES, title

CLAIMS = [
    "The headline says how many leaves there are, and how many bytes.",
    "Each leaf has its way, its type and its bytes.",
    "In a comparison the marked leaf is the one that changed.",
]


@pytest.mark.parametrize("case", CASES, ids=title)
def test_claims(case):
    record = see.tree(case.args).recording
    theirs = jax.tree_util.tree_leaves_with_path(case.args)
    leaves = [node for node in record.nodes if node.leaf is not None]
    assert [leaf.path for leaf in leaves] == [
        jax.tree_util.keystr(path) for path, _ in theirs
    ]
    for leaf, (_, value) in zip(leaves, theirs):
        assert leaf.type == jax.typeof(value).str_short(short_dtypes=True)
        assert leaf.bytes == jax.typeof(value).size * jax.typeof(value).dtype.itemsize
    count = int(re.search(r"([\d,]+) lea", record.headline).group(1).replace(",", ""))
    assert count == len(theirs)
    total = sum(
        jax.typeof(value).size * jax.typeof(value).dtype.itemsize for _, value in theirs
    )
    number, unit = re.search(r"([\d.,]+) (B|KiB|MiB)$", record.headline).groups()
    scale = {"B": 1, "KiB": 1024, "MiB": 2**20}[unit]
    assert float(number.replace(",", "")) * scale == pytest.approx(total, rel=0.06)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_changed_leaf_is_the_one_that_is_marked(case):
    leaves, tree = jax.tree.flatten(case.args)
    place = len(leaves) // 2
    changed = list(leaves)
    changed[place] = np.zeros((7, 7), np.float32)
    view = see.tree(case.args, jax.tree.unflatten(tree, changed))
    marked = [n for n in view.recording.nodes if n.leaf is not None and n.change]
    paths = jax.tree_util.tree_leaves_with_path(case.args)
    assert {node.path for node in marked} == {jax.tree_util.keystr(paths[place][0])}
