"""jax.api_util and jax.util: how writers of transformations flatten calls."""

import jax
import jax.api_util
import jax.extend.linear_util
import pytest

import minijax
import minijax.extend.linear_util
import minijax.util

LIBRARIES = (minijax, jax)


def call(p, x, n=3):
    return {"a": p["w"] * x}


def wrapped(lib, function):
    info = lib.api_util.debug_info("mine", function, ({"w": 1.0}, 2.0), {})
    return lib.extend.linear_util.wrap_init(function, debug_info=info)


def debug_info(lib):
    util = lib.api_util
    info = util.debug_info("mine", call, ({"w": 1.0}, 2.0), {"n": 3})
    static = util.debug_info(
        "mine", call, ({"w": 1.0}, 2.0), {"n": 3}, static_argnames=("n",)
    )
    return info.traced_for, info.func_name, info.arg_names, static.arg_names


def flatten_fun(lib):
    leaves, tree = lib.tree.flatten((({"w": 1.0}, 2.0), {}))
    function, out_tree = lib.api_util.flatten_fun(wrapped(lib, call), tree)
    return function.call_wrapped(*leaves), str(out_tree())


def flatten_fun_nokwargs(lib):
    leaves, tree = lib.tree.flatten(({"w": 1.0}, 2.0))
    function, out_tree = lib.api_util.flatten_fun_nokwargs(wrapped(lib, call), tree)
    return function.call_wrapped(*leaves), str(out_tree())


def argnums_partial(lib):
    function = wrapped(lib, lambda a, b, c=0: (a, b, c))
    partial, dynamic = lib.api_util.argnums_partial(function, (0, -1), (1, 2, 3))
    loose = lib.api_util.argnums_partial(function, 0, (1, [2]), False)[0]
    return dynamic, partial.call_wrapped(10, 30), loose.call_wrapped(5)


def donation_vector(lib):
    tree = lib.tree.structure((({"w": 1, "v": 2}, 3), {"k": 1}))
    return lib.api_util.donation_vector((0,), ("k",), tree)


def rebase_donate_argnums(lib):
    return lib.api_util.rebase_donate_argnums((3,), (1,))


def flatten_axes(lib):
    tree = lib.tree.structure(({"w": 1, "v": 2}, 3))
    return lib.api_util.flatten_axes("axes", tree, (0, None))


def safe_map(lib):
    return lib.api_util.safe_map(lambda a, b: a + b, [1, 2], (3, 4))


@pytest.mark.parametrize(
    "program",
    [
        *(debug_info, flatten_fun, flatten_fun_nokwargs, argnums_partial),
        *(donation_vector, rebase_donate_argnums, flatten_axes, safe_map),
    ],
)
def test_as_jax(program):
    ours, theirs = map(program, LIBRARIES)
    assert ours == theirs


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.api_util.safe_map(max, [1, 2], [3]),
        lambda lib: lib.api_util.argnums_partial(wrapped(lib, call), 0, (1, [2])),
        lambda lib: lib.api_util.flatten_axes("a", lib.tree.structure((1, 2)), (0,)),
        lambda lib: lib.api_util.rebase_donate_argnums((1,), (1,)),
    ],
)
def test_errors_as_jax(wrong):
    for lib in LIBRARIES:
        with pytest.raises(ValueError):
            wrong(lib)


def test_safe_zip():
    assert minijax.util.safe_zip([1, 2], "ab") == [(1, "a"), (2, "b")]
    assert minijax.util.safe_zip() == []
    with pytest.raises(ValueError, match="lengths 2, 1"):
        minijax.util.safe_zip([1, 2], "a")
