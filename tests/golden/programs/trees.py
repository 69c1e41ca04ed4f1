"""Pytrees as arguments, results and states of transformed functions."""

import collections
import dataclasses

from tests.golden.programs.registry import f32, program

Pair = collections.namedtuple("Pair", ["left", "right"])


@program("a")
def nested_containers(jax):
    def nested_containers(tree):
        return [tree["b"][0] + tree["a"], (tree["b"][1],), {"none": None}]

    return nested_containers, ({"b": (f32(3), f32(2)), "a": f32(3)},)


@program("a")
def named_tuple(jax):
    return lambda p: Pair(p.right, p.left * 2.0), (Pair(f32(3), f32(2)),)


@program("a")
def ordered_and_default_dicts(jax):
    ordered = collections.OrderedDict([("z", f32(3)), ("a", f32(2))])
    return lambda d: (d["z"], d["a"] + 1.0), (ordered,)


@program("a")
def registered_dataclass(jax):
    @dataclasses.dataclass
    class State:
        position: object
        velocity: object
        name: str

    jax.tree_util.register_dataclass(
        State, data_fields=["position", "velocity"], meta_fields=["name"]
    )

    def step(state):
        return State(state.position + state.velocity, state.velocity, state.name)

    return jax.jit(step), (State(f32(3), f32(3), "body"),)


@program("a")
def registered_class(jax):
    class Box:
        def __init__(self, value):
            self.value = value

    jax.tree_util.register_pytree_node(
        Box, lambda box: ((box.value,), None), lambda _, children: Box(*children)
    )
    return jax.grad(lambda box: (box.value**2).sum()), (Box(f32(3)),)


@program("a")
def map_over_two_trees(jax):
    def map_over_two_trees(x, y):
        return jax.tree_util.tree_map(lambda a, b: a - 0.5 * b, x, y)

    tree = {"w": [f32(3), f32(2)], "b": f32(2)}
    return map_over_two_trees, (tree, tree)


@program("a")
def leaves_and_reduce(jax):
    def leaves_and_reduce(tree):
        squares = [jax.numpy.sum(leaf**2) for leaf in jax.tree_util.tree_leaves(tree)]
        return jax.tree_util.tree_reduce(lambda a, b: a + b, squares)

    return leaves_and_reduce, ({"w": f32(2, 3), "b": f32(3)},)


@program("a")
def empty_tree(jax):
    return lambda tree, x: (tree, x), ({"a": None, "b": ()}, f32(3))
