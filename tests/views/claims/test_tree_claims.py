"""What `see.tree` claims, held against jax's own tree functions and NumPy's bytes."""

import dataclasses
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
    with jax.enable_x64(True):  # leaves are told as they lie in memory
        types = [jax.typeof(value) for _, value in theirs]
    for leaf, aval in zip(leaves, types):
        assert leaf.type == aval.str_short(short_dtypes=True)
        assert leaf.bytes == aval.size * aval.dtype.itemsize
    count = int(re.search(r"([\d,]+) lea", record.headline).group(1).replace(",", ""))
    assert count == len(theirs)
    total = sum(aval.size * aval.dtype.itemsize for aval in types)
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


# ---- leaves as they lie in memory, and trees of real JAX -----------------------------


def test_numpy_leaves_have_their_own_dtype_and_bytes():
    leaves = {
        "x": np.ones(6, np.float64),
        "n": np.arange(5, dtype=np.int64),
        "s": np.float64(1.0),
        "h": np.ones((2, 3), np.float16),
        "b": np.ones(4, bool),
    }
    record = see.tree(leaves).recording
    told = {node.key: (node.type, node.bytes) for node in record.nodes if node.key}
    short = {"float64": "f64", "int64": "i64", "float16": "f16", "bool": "bool"}
    for name, leaf in leaves.items():
        sizes = ",".join(map(str, leaf.shape))
        kind = f"{short[leaf.dtype.name]}[{sizes}]"
        assert told[f"['{name}']"] == (kind, leaf.nbytes)
    assert record.nodes[0].bytes == sum(leaf.nbytes for leaf in leaves.values())


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Moments:
    mean: jax.Array
    spread: jax.Array


def test_trees_of_real_jax():
    tree = {
        "w": jax.numpy.ones((3, 4)),
        "moments": Moments(jax.numpy.ones(5), jax.numpy.ones(5, "bfloat16")),
        "shape": jax.ShapeDtypeStruct((7,), "int8"),
    }
    record = see.tree(tree).recording
    leaves = [node for node in record.nodes if node.leaf is not None]
    theirs = jax.tree_util.tree_leaves_with_path(tree)
    paths = [jax.tree_util.keystr(path) for path, _ in theirs]
    assert [node.path for node in leaves] == paths
    assert [node.type for node in leaves] == ["f32[5]", "bf16[5]", "i8[7]", "f32[3,4]"]
    sizes = [x.size * x.dtype.itemsize for _, x in theirs]
    assert [node.bytes for node in leaves] == sizes
    assert not any(node.note for node in leaves)
    assert "Moments" in {node.kind for node in record.nodes}
