"""Trees of containers: flatten, map, register. In JAX: `jax.tree_util`."""

from minijax.core.trees import KeyPath as KeyPath
from minijax.core.trees import PyTreeDef as PyTreeDef
from minijax.core.trees import default_registry as default_registry
from minijax.core.trees import tree_flatten as tree_flatten
from minijax.core.trees import tree_leaves as tree_leaves
from minijax.core.trees import tree_structure as tree_structure
from minijax.core.trees import tree_unflatten as tree_unflatten
from minijax.support.tree_util import DictKey as DictKey
from minijax.support.tree_util import FlattenedIndexKey as FlattenedIndexKey
from minijax.support.tree_util import GetAttrKey as GetAttrKey
from minijax.support.tree_util import KeyEntry as KeyEntry
from minijax.support.tree_util import Partial as Partial
from minijax.support.tree_util import SequenceKey as SequenceKey
from minijax.support.tree_util import all_leaves as all_leaves
from minijax.support.tree_util import build_tree as build_tree
from minijax.support.tree_util import flatten_one_level as flatten_one_level
from minijax.support.tree_util import (
    flatten_one_level_with_keys as flatten_one_level_with_keys,
)
from minijax.support.tree_util import is_tree_node as is_tree_node
from minijax.support.tree_util import keystr as keystr
from minijax.support.tree_util import register_dataclass as register_dataclass
from minijax.support.tree_util import register_pytree_node as register_pytree_node
from minijax.support.tree_util import (
    register_pytree_node_class as register_pytree_node_class,
)
from minijax.support.tree_util import (
    register_pytree_with_keys as register_pytree_with_keys,
)
from minijax.support.tree_util import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from minijax.support.tree_util import register_static as register_static
from minijax.support.tree_util import tree_all as tree_all
from minijax.support.tree_util import tree_broadcast as tree_broadcast
from minijax.support.tree_util import tree_flatten_with_path as tree_flatten_with_path
from minijax.support.tree_util import tree_leaves_with_path as tree_leaves_with_path
from minijax.support.tree_util import tree_map as tree_map
from minijax.support.tree_util import tree_map_with_path as tree_map_with_path
from minijax.support.tree_util import tree_reduce as tree_reduce
from minijax.support.tree_util import tree_reduce_associative as tree_reduce_associative
from minijax.support.tree_util import tree_transpose as tree_transpose
from minijax.support.tree_util import treedef_children as treedef_children
from minijax.support.tree_util import treedef_is_leaf as treedef_is_leaf
from minijax.support.tree_util import treedef_tuple as treedef_tuple
