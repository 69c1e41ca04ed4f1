"""Trees of containers: flatten, map, register. In JAX: `jax.tree_util`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.core.trees import (
    KeyPath, PyTreeDef, default_registry, tree_flatten, tree_leaves, tree_structure,
    tree_unflatten,
)
from minijax.support.tree_util import (
    DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, Partial, SequenceKey, all_leaves,
    build_tree, flatten_one_level, flatten_one_level_with_keys, is_tree_node, keystr,
    register_dataclass, register_pytree_node, register_pytree_node_class,
    register_pytree_with_keys, register_pytree_with_keys_class, register_static,
    tree_all, tree_broadcast, tree_flatten_with_path, tree_leaves_with_path, tree_map,
    tree_map_with_path, tree_reduce, tree_reduce_associative, tree_transpose,
    treedef_children, treedef_is_leaf, treedef_tuple,
)
