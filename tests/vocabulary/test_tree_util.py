"""Pytrees, against jax on many trees."""

import collections
import copy
import dataclasses
import functools
import pickle
import subprocess
import sys

import jax
import pytest
from jax import tree_util as theirs
from jax._src import tree_util as theirs_private

import minijax.tree as tree
import minijax.tree_util
from minijax.core import trees
from minijax.support import tree_prefix, tree_util

pytestmark = pytest.mark.whole

Point = collections.namedtuple("Point", ["x", "y"])


class Pair:
    def __init__(self, first, second, name):
        self.first, self.second, self.name = first, second, name

    def tree_flatten(self):
        return (self.first, self.second), self.name

    @classmethod
    def tree_unflatten(cls, name, items):
        return cls(*items, name)

    def __eq__(self, other):
        return type(other) is Pair and vars(self) == vars(other)

    __hash__ = None


class Keyed(Pair):
    def tree_flatten_with_keys(self):
        keys = tree_util.GetAttrKey("first"), tree_util.GetAttrKey("second")
        return tuple(zip(keys, (self.first, self.second))), self.name

    def __eq__(self, other):
        return type(other) is Keyed and vars(self) == vars(other)

    __hash__ = None


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object = None
    name: str = dataclasses.field(default="layer", metadata={"static": True})


class Fixed(str):
    pass


for module in (tree_util, theirs):
    module.register_pytree_node_class(Pair)
    module.register_pytree_with_keys_class(Keyed)
    module.register_dataclass(Layer)
    module.register_static(Fixed)


def add(x, y):
    return x + y


TREES = [
    1,
    None,
    "leaf",
    (),
    [],
    {},
    (1,),
    [1, 2],
    (1, (2, 3)),
    [1, [2, [3, [4]]]],
    {"b": 1, "a": 2},
    {"a": {"b": {"c": 1}}, "d": [2, (3,)]},
    {2: "two", 1: "one"},
    (None, 1, None),
    {"none": None, "some": 1},
    [(), {}, [], None],
    Point(1, 2),
    Point((1, 2), {"k": 3}),
    [Point(None, 1)],
    collections.OrderedDict([("z", 1), ("a", 2)]),
    collections.OrderedDict(),
    collections.OrderedDict([("z", (1, 2)), ("a", {"x": None})]),
    collections.defaultdict(list, {"b": 1, "a": [2, 3]}),
    collections.defaultdict(int),
    Pair(1, 2, "p"),
    Pair((1, None), [2, {"a": 3}], "q"),
    Keyed(1, 2, "k"),
    Keyed({"a": 1}, Pair(2, 3, "in"), "k"),
    Layer(1, 2),
    Layer((1, 2), {"a": 3}, "named"),
    Layer(None),
    Fixed("static"),
    (Fixed("a"), 1, Fixed("b")),
    {"l": [Layer(1), Layer(2, name="x")], "p": Point(Pair(3, 4, ""), 5)},
    frozenset((1,)),
    {1, 2},
    [b"bytes", 1.5, 2j, object],
    (1, [2, {"three": (3, 3), "four": {"five": 5}}], Point(6, [7])),
    [[[]], ((),), {"e": {}}],
    {("tuple", "key"): 1, ("a", "key"): 2},
    tuple(range(50)),
]


def text(treedef):
    return str(treedef)


@pytest.mark.parametrize("example", TREES, ids=range(len(TREES)))
def test_flatten_and_back(example):
    leaves, treedef = trees.tree_flatten(example)
    expected_leaves, expected_treedef = theirs.tree_flatten(example)
    assert leaves == expected_leaves == trees.tree_leaves(example)
    assert text(treedef) == text(expected_treedef)
    assert treedef == trees.tree_structure(example)
    assert hash(treedef) == hash(trees.tree_structure(example))
    rebuilt = trees.tree_unflatten(treedef, leaves)
    assert rebuilt == example
    assert type(rebuilt) is type(example)
    assert tree_util.all_leaves([example]) == theirs.all_leaves([example])
    assert tree_util.treedef_is_leaf(treedef) == theirs.treedef_is_leaf(
        expected_treedef
    )
    children = tree_util.treedef_children(treedef)
    assert list(map(text, children)) == list(
        map(text, theirs.treedef_children(expected_treedef))
    )
    assert text(tree_util.treedef_tuple([treedef])) == text(
        theirs.treedef_tuple([expected_treedef])
    )
    assert tree_util.is_tree_node(type(example)) == theirs.is_tree_node(type(example))


@pytest.mark.parametrize("example", TREES, ids=range(len(TREES)))
def test_paths(example):
    found, treedef = tree_util.tree_flatten_with_path(example)
    expected, _ = theirs.tree_flatten_with_path(example)
    assert found == expected == tree_util.tree_leaves_with_path(example)
    assert repr(found) == repr(expected)
    assert treedef == trees.tree_structure(example)
    for path, _ in found:
        assert tree_util.keystr(path) == theirs.keystr(path)
        for separator in ("", "/", "."):
            mine = tree_util.keystr(path, simple=True, separator=separator)
            assert mine == theirs.keystr(path, simple=True, separator=separator)
    mapped = tree_util.tree_map_with_path(
        lambda path, x, y: (path, x, y), example, example
    )
    reference = theirs.tree_map_with_path(
        lambda path, x, y: (path, x, y), example, example
    )
    assert mapped == reference


@pytest.mark.parametrize("example", TREES, ids=range(len(TREES)))
def test_maps_and_reductions(example):
    assert tree_util.tree_map(repr, example) == theirs.tree_map(repr, example)
    pairs = tree_util.tree_map(lambda x, y: (x, y), example, example)
    assert pairs == theirs.tree_map(lambda x, y: (x, y), example, example)
    counted = tree_util.tree_map(lambda x: 3, example)
    for name, args, kwargs in (
        ("tree_reduce", (add,), {}),
        ("tree_reduce", (add,), {"initializer": 10}),
        ("tree_reduce_associative", (lambda a, b: f"({a} {b})",), {}),
        ("tree_reduce_associative", (lambda a, b: f"({a} {b})",), {"identity": "e"}),
    ):
        try:
            expected = getattr(theirs, name)(*args, counted, **kwargs)
        except TypeError:
            with pytest.raises(TypeError):
                getattr(tree_util, name)(*args, counted, **kwargs)
        else:
            assert getattr(tree_util, name)(*args, counted, **kwargs) == expected
    assert tree_util.tree_all(example) == theirs.tree_all(example)
    assert tree_util.tree_broadcast(7, example) == theirs.tree_broadcast(7, example)
    for is_leaf in (lambda x: x is None, lambda x: isinstance(x, (tuple, dict))):
        ours = trees.tree_flatten(example, is_leaf)
        reference = theirs.tree_flatten(example, is_leaf)
        assert ours[0] == reference[0]
        assert text(ours[1]) == text(reference[1])
        ours = tree_util.tree_leaves_with_path(example, is_leaf)
        assert ours == theirs.tree_leaves_with_path(example, is_leaf)


@pytest.mark.parametrize("example", TREES, ids=range(len(TREES)))
def test_treedefs_pickle_and_copy(example):
    treedef = trees.tree_structure(example)
    loaded = pickle.loads(pickle.dumps(treedef))
    assert loaded == treedef == copy.copy(treedef)
    assert text(loaded) == text(treedef)


def test_is_leaf_may_take_the_path():
    def deep(path, x):
        return len(path) == 1

    example = {"a": (1, 2), "b": [3]}
    found = tree_util.tree_leaves_with_path(example, deep, is_leaf_takes_path=True)
    assert found == theirs.tree_leaves_with_path(example, deep, is_leaf_takes_path=True)
    mapped = tree_util.tree_map_with_path(
        lambda path, x, y: (x, y),
        example,
        example,
        is_leaf=deep,
        is_leaf_takes_path=True,
    )
    assert mapped == {"a": ((1, 2), (1, 2)), "b": ([3], [3])}


MISFITS = [
    ((1, 2), (1,)),
    ((1, 2), [1, 2]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": (1, 2)}, {"a": 1}),
    ([1, {"k": [1, 2, 3]}], [1, {"k": [1, 2]}]),
    (Pair(1, 2, "p"), Pair(1, 2, "q")),
    (Layer(1, 2, "a"), Layer(1, 2, "b")),
    (Point(1, 2), (1, 2)),
    (None, 1),
    ((None, 1), (1, 1)),
    (Fixed("a"), Fixed("b")),
    (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=1, a=2)),
    ({1: 1}, {"a": 1}),
    ({"{brace}": (1, 2)}, {"{brace}": (1,)}),
]


@pytest.mark.parametrize(("first", "second"), MISFITS, ids=range(len(MISFITS)))
def test_trees_that_do_not_fit(first, second):
    for name in ("tree_map", "tree_map_with_path"):
        with pytest.raises(Exception) as expected:
            getattr(theirs, name)(lambda *args: 0, first, second)
        with pytest.raises(type(expected.value)) as found:
            getattr(tree_util, name)(lambda *args: 0, first, second)
        # The first line says what is wrong, the second where.
        assert str(found.value).splitlines()[:2] == str(expected.value).splitlines()[
            :2
        ] or "pytree structure error" not in str(expected.value)
    with pytest.raises(ValueError, match="broadcast_prefix prefix_tree"):
        tree_util.tree_broadcast(first, second)
    explained = tree_prefix.prefix_errors(first, second)
    reference = theirs_private.prefix_errors(first, second)
    assert len(explained) == len(reference)
    for ours, jaxs in zip(explained, reference):
        assert str(ours("x")).splitlines()[:2] == str(jaxs("x")).splitlines()[:2]
    differences = list(tree_prefix.equality_errors(first, second))
    expected = list(theirs_private.equality_errors(first, second))
    assert [d[0] for d in differences] == [d[0] for d in expected]
    assert [d[1:3] for d in differences] == [d[1:3] for d in expected]


def test_two_misfits_are_both_explained():
    first, second = {"a": (1, 2), "b": [1]}, {"a": (1,), "b": [1, 2]}
    texts = [str(e("in_axes")) for e in tree_prefix.prefix_errors(first, second)]
    assert ["in_axes['a']" in texts[0], "in_axes['b']" in texts[1]] == [True, True]


def test_differences_of_structures():
    one = trees.tree_structure({"a": 1, "b": (1, 2)})
    two = trees.tree_structure({"a": (1,), "b": (1, 2, 3)})
    found = list(tree_prefix.equality_errors_pytreedef(one, two))
    assert [tree_util.keystr(path) for path, *_ in found] == ["['a']", "['b']"]
    assert found[0][1:3] == ("pytree leaf", "<class 'tuple'>")
    assert not list(tree_prefix.equality_errors_pytreedef(one, one))


@pytest.mark.parametrize(
    ("prefix", "full", "expected"),
    [
        (None, (1, 2), [None, None]),
        (0, {"a": 1, "b": (2, 3)}, [0, 0, 0]),
        ((0, None), ((1, 2), {"a": 3}), [0, 0, None]),
        ((0, {"a": None, "b": 1}), (5, {"a": (1, 2), "b": 3}), [0, None, None, 1]),
        ((0, 1), ((), 5), [1]),
        ([None], [None], []),
        ((0, 1), (5, 6, 7), ValueError),
        ({"a": 0}, {"b": 0}, ValueError),
        ((0, (1, 2)), (5, 6), ValueError),
    ],
)
def test_prefixes_in_which_none_is_a_leaf(prefix, full, expected):
    treedef = trees.tree_structure(full)
    if expected is ValueError:
        with pytest.raises(ValueError, match="not a prefix"):
            trees.broadcast_prefix_to_treedef(prefix, treedef)
    else:
        assert trees.broadcast_prefix_to_treedef(prefix, treedef) == expected


def test_transpose():
    nested = [{"a": 1, "b": (2, 3)}, {"a": 4, "b": (5, 6)}]
    outer, inner = tree.structure([0, 0]), tree.structure(nested[0])
    turned = {"a": [1, 4], "b": ([2, 5], [3, 6])}
    assert tree.transpose(outer, inner, nested) == turned
    assert tree.transpose(outer, None, nested) == turned
    with pytest.raises(TypeError, match="tree_transpose"):
        tree.transpose(outer, inner, [1, 2, 3])


def test_unflatten_checks_the_number_of_leaves():
    treedef = tree.structure((1, 2))
    for wrong in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match="leaves"):
            tree.unflatten(treedef, wrong)
    assert tree.unflatten(treedef, iter([3, 4])) == (3, 4)


def test_one_level():
    assert tree_util.flatten_one_level({"b": [1], "a": 2}) == theirs.flatten_one_level(
        {"b": [1], "a": 2}
    )
    pairs, name = tree_util.flatten_one_level_with_keys(Keyed(1, (2,), "n"))
    assert [str(key) for key, _ in pairs] == [".first", ".second"]
    assert name == "n"
    for function in (
        tree_util.flatten_one_level,
        tree_util.flatten_one_level_with_keys,
    ):
        with pytest.raises(ValueError, match="leaf"):
            function(3)


def test_partial_as_jax():
    inner = functools.partial(add, 1)
    for made, reference in (
        (tree_util.Partial(add, 1), theirs.Partial(add, 1)),
        (tree_util.Partial(inner, 2), theirs.Partial(inner, 2)),
        (tree_util.Partial(add, x=1, y=2), theirs.Partial(add, x=1, y=2)),
    ):
        args = () if made.keywords or len(made.args) == 2 or made.func != add else (5,)
        assert made(*args) == reference(*args)
        leaves, treedef = tree.flatten(made)
        assert leaves == theirs.tree_leaves(reference)
        again = tree.unflatten(treedef, leaves)
        assert type(again) is tree_util.Partial
        assert again(*args) == made(*args)
        assert made.args == reference.args
    assert tree.structure(tree_util.Partial(inner, 2)) == tree.structure(
        tree_util.Partial(inner, 3)
    )
    assert tree.structure(tree_util.Partial(add, 2)) != tree.structure(
        tree_util.Partial(pow, 2)
    )


def define(module, fields, **kwargs):
    cls = dataclasses.make_dataclass("Made", fields)
    return module.register_dataclass(cls, **kwargs)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"data_fields": ["a"], "meta_fields": ["b"]},
        {"data_fields": ["a"]},
        {"meta_fields": ["a"]},
        {"data_fields": ["a"], "meta_fields": []},
        {"data_fields": ["a", "b", "c"], "meta_fields": []},
        {"data_fields": ["a", "b"], "meta_fields": ["b"]},
        {"data_fields": ["a"], "meta_fields": [], "drop_fields": ["b"]},
    ],
)
def test_dataclass_registration_refuses_what_jax_refuses(kwargs):
    fields = [("a", object), ("b", object)]
    try:
        define(theirs, fields, **kwargs)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error), match="register_dataclass"):
            define(tree_util, fields, **kwargs)
        return
    made = define(tree_util, fields, **kwargs)(1, 2)
    assert tree.leaves(made) in ([1, 2], [1])


def test_registration_twice_and_of_plain_classes():
    with pytest.raises(ValueError, match="[Dd]uplicate"):
        tree_util.register_pytree_node_class(Pair)
    with pytest.raises(TypeError, match="not a dataclass"):
        tree_util.register_dataclass(int)

    class Unregistered(Pair):
        pass

    assert tree.leaves([Unregistered(1, 2, "")])[0].first == 1


def test_static_fields_and_static_values():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Model:
        weight: object
        depth: int = tree.static(default=3)
        note: str = tree.static(metadata={"doc": "x"}, default="")

    leaves, treedef = tree.flatten(Model(1))
    assert leaves == [1]
    assert treedef != tree.structure(Model(1, depth=4))
    assert dataclasses.fields(Model)[2].metadata == {"static": True, "doc": "x"}
    wrapped = [tree_util.Static(v) for v in (1, 1.0, True)]
    assert len({tree.structure(w) for w in wrapped}) == 3
    assert tree.structure(tree_util.Static(1)) == tree.structure(tree_util.Static(1))


def test_registries_are_apart():
    class Here:
        pass

    class There:
        pass

    def unflatten(metadata, items):
        raise AssertionError("not put together in this test")

    tree_util.register_pytree_node(Here, lambda x: ((1, 2), None), unflatten)
    theirs.register_pytree_node(There, lambda x: ((1, 2), None), unflatten)
    assert len(tree.leaves(Here())) == 2
    assert len(jax.tree.leaves(Here())) == 1
    assert len(tree.leaves(There())) == 1
    assert len(jax.tree.leaves(There())) == 2


@pytest.mark.parametrize("first", ["jax", "minijax.tree_util"])
def test_both_import_orders(first):
    second = {"jax": "minijax.tree_util", "minijax.tree_util": "jax"}[first]
    code = (
        f"import {first}, {second}, jax, minijax.tree_util as m, collections\n"
        "t = {'a': collections.OrderedDict(z=1), 'b': m.Partial(print, 1)}\n"
        "assert len(m.tree_leaves(t)) == 2\n"
        "assert len(jax.tree.leaves(t)) == 2\n"
        "assert m.tree_structure((1, 2)) != jax.tree.structure((1, 3, 4))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_those_of_jax():
    import inspect

    for name in (n for n in dir(theirs) if not n.startswith("_")):
        if name == "KeyEntry" or not callable(getattr(theirs, name)):
            continue
        ours = getattr(minijax.tree_util, name)
        if inspect.isfunction(ours):
            expected = list(inspect.signature(getattr(theirs, name)).parameters)
            assert list(inspect.signature(ours).parameters) == expected, name
    for name in (n for n in dir(jax.tree) if not n.startswith("_")):
        expected = list(inspect.signature(getattr(jax.tree, name)).parameters)
        assert list(inspect.signature(getattr(tree, name)).parameters) == expected, name
