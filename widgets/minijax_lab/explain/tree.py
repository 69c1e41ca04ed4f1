"""The recording behind `see.tree`: a pytree, node by node, and two of them compared."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core.avals import valid_jaxtype
from minijax.core.dtypes import short_dtype_name
from minijax.core.language import get_aval
from minijax.core.trees import keystr, tree_structure
from minijax.support.tree_util import tree_flatten_with_path
from minijax.values.ref_avals import ShapeDtypeStruct
from minijax_lab.explain.leaf_values import Held, Reader
from minijax_lab.explain.recording import Recording, count_in_words


@dataclass
class Node:
    """A container or a leaf, in the order in which the tree is walked."""

    depth: int
    key: str  # what the parent calls it: "['w']", "[0]", ".name"
    path: str
    kind: str  # "leaf", "dict", "list", ..., "None"
    type: str  # "f32[64,32]", or the class of a leaf that is no array
    bytes: int
    leaf: int | None  # its position among the leaves
    static: str  # static fields of a container, as text
    note: str  # what the reader may not have meant
    change: str  # "", or against the other tree: "add", "del", "changed"
    held: Held | None = None  # the numbers of an array


@dataclass(kw_only=True)
class TreeRecording(Recording):
    """The nodes of a tree; with two trees, of both, aligned by path."""

    kind = "tree"

    nodes: list[Node]
    compared: bool = False


def record_tree(
    tree: Any, other: Any = None, compare: bool = False, values: bool | None = None
) -> TreeRecording:
    """Records a pytree, or how `other` differs from it, with the numbers of all arrays
    if `values` is true, of none if it is false, else of small and few ones."""
    reader = Reader(values)
    nodes = nodes_of(tree, reader)
    if not compare:
        return summary(nodes)
    second = nodes_of(other, reader)
    mine = {node.path: node for node in nodes}
    theirs = {node.path: node for node in second}
    merged: list[Node] = []
    for node in nodes:
        against = theirs.get(node.path)
        if against is None:
            node.change = "del"
        elif different(node, against):
            node.change = "changed"
            node.note = f"in the second: {in_words(against)}"
        merged.append(node)
    for position, node in enumerate(second):
        if node.path in mine:
            continue
        node.change = "add"
        merged.insert(place_of(merged, second, position), node)
    changed = [i for i, node in enumerate(merged) if node.change]
    gone = sum(node.change == "del" for node in merged)
    new = sum(node.change == "add" for node in merged)
    other_way = sum(node.change == "changed" for node in merged)
    if changed:
        finding = (
            f"{gone} only in the first, {new} only in the second, "
            f"{other_way} not the same"
        )
    elif tree_structure(tree) != tree_structure(other):
        finding = "same nodes, but the structures differ"
    else:
        finding = f"no difference in {count_in_words(leaves_in(merged), 'leaf')}"
    return TreeRecording(
        call="two trees",
        headline=f"two trees: {finding}".replace("leafs", "leaves"),
        telling=changed[0] if changed else 0,
        nodes=merged,
        compared=True,
    )


def place_of(merged: list[Node], second: list[Node], position: int) -> int:
    """Where a node of the second tree goes: after the one before it there."""
    paths = {node.path: i for i, node in enumerate(merged)}
    for earlier in reversed(second[:position]):
        if earlier.path in paths:
            return paths[earlier.path] + 1
    return 0


def different(a: Node, b: Node) -> bool:
    """Whether two nodes at the same path differ in more than their numbers."""
    return (a.kind, a.type, a.static) != (b.kind, b.type, b.static)


def in_words(node: Node) -> str:
    """A node's type, or its kind with its static fields."""
    return node.type or f"{node.kind}{node.static}"


def leaves_in(nodes: list[Node]) -> int:
    """How many of the nodes are leaves."""
    return sum(node.leaf is not None for node in nodes)


def summary(nodes: list[Node]) -> TreeRecording:
    """The recording of one tree, with its sums."""
    count = leaves_in(nodes)
    total = sum(node.bytes for node in nodes if node.leaf is not None)
    leaves = count_in_words(count, "leaf").replace("leafs", "leaves")
    finding = f"{leaves}, {size_in_words(total)}"
    odd = [i for i, node in enumerate(nodes) if node.note]
    if odd:
        finding += f"; {nodes[odd[0]].path or 'the root'} is {nodes[odd[0]].note}"
    root = nodes[0]
    name = root.kind if root.leaf is None else root.type
    sizes = [node.bytes if node.leaf is not None else -1 for node in nodes]
    biggest = sizes.index(max(sizes))
    return TreeRecording(
        call=name,
        headline=f"tree of {name}: {finding}",
        telling=odd[0] if odd else biggest,
        nodes=nodes,
    )


def size_in_words(number: float) -> str:
    """A number of bytes, as people write it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1024
    raise AssertionError


def nodes_of(tree: Any, reader: Reader) -> list[Node]:
    """All nodes of a tree, containers before what is in them."""
    nodes: list[Node] = []
    counter = iter(range(10**9))

    def visit(value: Any, depth: int, key: str, path: str) -> int:
        pairs, _ = tree_flatten_with_path(value, is_leaf=lambda x: x is not value)
        structure = tree_structure(value)
        name_of: Any = keystr
        if is_leaf(pairs, value) and "jax" in sys.modules:
            # What JAX has registered, minijax has not.
            of_jax = sys.modules["jax"].tree_util
            pairs, _ = of_jax.tree_flatten_with_path(
                value, is_leaf=lambda x: x is not value
            )
            name_of = of_jax.keystr
        if is_leaf(pairs, value):
            nodes.append(leaf_node(value, depth, key, path, next(counter)))
            nodes[-1].held = reader.held(value)
            return nodes[-1].bytes
        node = Node(depth, key, path, kind_of(value), "", 0, None, "", "", "")
        node.static = static_of(structure, value)
        nodes.append(node)
        for child_path, child in [] if value is None else pairs:
            name = name_of(child_path)
            node.bytes += visit(child, depth + 1, name, path + name)
        return node.bytes

    visit(tree, 0, "", "")
    return nodes


def is_leaf(pairs: Any, value: Any) -> bool:
    """Whether a tree that was flattened is one leaf."""
    return len(pairs) == 1 and pairs[0][1] is value and not pairs[0][0]


def kind_of(value: Any) -> str:
    """What a container is called."""
    return "None" if value is None else type(value).__name__


def static_of(structure: Any, value: Any) -> str:
    """The static fields of a registered class, as its structure holds them."""
    data = structure.node_data()
    if data is None or isinstance(value, (dict, list, tuple)) or value is None:
        return ""
    kept = data[1]
    if kept in (None, (), []):
        return ""
    names = getattr(type(value), "__dataclass_fields__", {})
    flat = kept if isinstance(kept, tuple) else (kept,)
    static = [n for n, f in names.items() if f.metadata.get("static")]
    if len(static) == len(flat):
        return "(" + ", ".join(f"{n}={v!r}" for n, v in zip(static, flat)) + ")"
    return f"({', '.join(repr(item) for item in flat)})"


def leaf_node(value: Any, depth: int, key: str, path: str, number: int) -> Node:
    """The node of a leaf; one that no transformation takes says so."""
    if isinstance(value, ShapeDtypeStruct):
        size = math.prod(value.shape) * getattr(value.dtype, "itemsize", 0)
        aval_text = f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
        return Node(depth, key, path, "leaf", aval_text, size, number, "", "", "")
    if isinstance(value, (np.ndarray, np.generic)) or is_array_of_jax(value):
        # As it lies in memory: without x64 a trace takes half of a float64.
        kind: Any = value.dtype
        shape = tuple(value.shape)
        text = f"{short_dtype_name(kind)}[{','.join(map(str, shape))}]"
        size = math.prod(shape) * getattr(kind, "itemsize", 0)
        weak = "~" if getattr(value, "weak_type", False) else ""
        return Node(depth, key, path, "leaf", weak + text, size, number, "", "", "")
    if valid_jaxtype(value):
        aval = get_aval(value)
        text = aval.str_short(short_dtypes=True)
        weak = "~" if getattr(aval, "weak_type", False) else ""
        size = getattr(aval, "size", 0) * getattr(aval.dtype, "itemsize", 0)
        return Node(depth, key, path, "leaf", weak + text, size, number, "", "", "")
    name = type(value).__name__
    note = f"a leaf that is no array ({name})"
    if not isinstance(value, (str, bytes)) and not callable(value):
        note = f"a leaf: {name} is not registered"
    return Node(depth, key, path, "leaf", name, 0, number, "", note, "")


def is_array_of_jax(value: Any) -> bool:
    """Whether a leaf is an array, a key or a `ShapeDtypeStruct` of real JAX."""
    module = type(value).__module__.partition(".")[0]
    return module in ("jax", "jaxlib") and hasattr(value, "dtype")
