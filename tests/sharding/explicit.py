"""Programs on a mesh whose axes are Explicit, where types say how values are cut.

Each case is a function of `(lib, x)`, with `x` of type `f32[8@x,8@y]`, run with the
mesh in use. Its results are compared, and their types.
"""

from __future__ import annotations

import functools
import re

import numpy as np

CASES = {}


def _run(function, lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    x = lib.put(lib.numbers(8, 8), "x", "y", mesh=mesh)
    with lib.mj.set_mesh(mesh):
        found = function(lib, x)
        leaves = lib.mj.tree_util.tree_leaves(found)
        types = [str(lib.mj.typeof(one)) for one in leaves if not isinstance(one, str)]
    return (found, types)


def case(function):
    """Adds a case under its name."""
    CASES[function.__name__.strip("_")] = functools.partial(_run, function)
    return function


def _several(**functions):
    for name, function in functions.items():
        CASES[name] = functools.partial(_run, function)


def _reshard(lib, x, *spec):
    return lib.sharding.reshard(x, lib.P(*spec))


# ----------------------------------------------------------------------------------
# The types of results
# ----------------------------------------------------------------------------------

_several(
    sine=lambda lib, x: lib.jnp.sin(x) * 2 + 1,
    where=lambda lib, x: lib.jnp.where(x > 0.3, x, 0.0),
    clip=lambda lib, x: lib.jnp.clip(x, 0, 3),
    add_whole=lambda lib, x: x + lib.jnp.ones((8, 8)),
    add_row=lambda lib, x: x + lib.jnp.ones((8,)),
    add_column=lambda lib, x: x + _reshard(lib, lib.jnp.ones((8, 1)), "x", None),
    integers=lambda lib, x: x.astype(int) // 3,
    transpose=lambda lib, x: x.T,
    new_axis=lambda lib, x: x[:, None],
    broadcast=lambda lib, x: lib.jnp.broadcast_to(x, (3, 8, 8)),
    squeeze=lambda lib, x: lib.jnp.squeeze(x[:, None], 1),
    split_axis=lambda lib, x: x.reshape(4, 2, 8),
    merge_axes=lambda lib, x: x.reshape(64),
    add_one=lambda lib, x: x.reshape(8, 1, 8),
    reshape_to=lambda lib, x: lib.jnp.reshape(x, (64,), out_sharding=lib.P("x")),
    concatenate=lambda lib, x: lib.jnp.concatenate([x, x], 0),
    stack=lambda lib, x: lib.jnp.stack([x, x]),
    split=lambda lib, x: lib.jnp.split(x, 2),
    pad=lambda lib, x: lib.jnp.pad(x, ((0, 0), (0, 8))),
    triangle=lambda lib, x: lib.jnp.tril(x),
    total=lambda lib, x: x.sum(),
    mean=lambda lib, x: x.mean(0),
    variance=lambda lib, x: x.var(1),
    largest=lambda lib, x: lib.jnp.argmax(x, 1),
    any_positive=lambda lib, x: (x > 0).any(0),
    softmax=lambda lib, x: lib.mj.nn.softmax(x),
    gelu=lambda lib, x: lib.mj.nn.gelu(x),
    cumsum=lambda lib, x: lib.jnp.cumsum(_reshard(lib, x, "x", None), 1),
    sort=lambda lib, x: lib.jnp.sort(_reshard(lib, x, "x", None)),
    one_hot=lambda lib, x: lib.mj.nn.one_hot(
        lib.jnp.arange(8, out_sharding=lib.P("x")), 8
    ),
    zeros=lambda lib, x: lib.jnp.zeros((8, 2), out_sharding=lib.P("x")),
    zeros_like=lambda lib, x: lib.jnp.zeros_like(x),
    arange=lambda lib, x: lib.jnp.arange(8, out_sharding=lib.P("y")),
    normal=lambda lib, x: lib.random.normal(
        lib.random.key(0), (8, 8), out_sharding=lib.P("x")
    ),
    put=lambda lib, x: lib.mj.device_put(x, lib.P("y")),
    put_inside=lambda lib, x: lib.mj.jit(lambda x: lib.mj.device_put(x, lib.P("y")))(x),
    take=lambda lib, x: x.at[lib.jnp.arange(8)].get(out_sharding=lib.P("x")),
    take_rows=lambda lib, x: x.at[:4].get(out_sharding=lib.P("x")),
    take_with_new_axis=lambda lib, x: x.at[..., None].get(
        out_sharding=lib.P("x", "y", None)
    ),
    take_of_both=lambda lib, x: x.at[lib.jnp.arange(4), 1:].get(
        out_sharding=lib.P("x", None)
    ),
    constraint=lambda lib, x: lib.lax.with_sharding_constraint(x, lib.P("x", "y")),
    reshard_all=lambda lib, x: _reshard(lib, x, None, None),
    reshard_both=lambda lib, x: _reshard(lib, x, ("x", "y"), None),
    reshard_tree=lambda lib, x: lib.sharding.reshard(
        {"a": x, "b": x[0:8]}, {"a": lib.P("y"), "b": lib.P(None, "x")}
    ),
)

# ----------------------------------------------------------------------------------
# Products
# ----------------------------------------------------------------------------------


def _dot(lib, x, one, two, out=None):
    keywords = {} if out is None else {"out_sharding": lib.P(*out)}
    return lib.jnp.dot(_reshard(lib, x, *one), _reshard(lib, x, *two), **keywords)


_several(
    dot_rows=lambda lib, x: _dot(lib, x, ("x", None), (None, "y")),
    dot_one_side=lambda lib, x: _dot(lib, x, ("x", "y"), (None, None)),
    dot_other_side=lambda lib, x: _dot(lib, x, (None, None), ("x", "y")),
    dot_reduced=lambda lib, x: _dot(lib, x, ("x", "y"), ("y", None), ("x", None)),
    dot_scattered=lambda lib, x: _dot(lib, x, (None, "y"), ("y", None), ("y", None)),
    einsum=lambda lib, x: lib.jnp.einsum("ij,kj->ik", x, x, out_sharding=lib.P("x")),
    batched=lambda lib, x: lib.jnp.einsum("bi,bi->b", x, _reshard(lib, x, "x", None)),
)

# ----------------------------------------------------------------------------------
# Transformations
# ----------------------------------------------------------------------------------


@case
def gradient(lib, x):
    return lib.mj.grad(lambda x: (lib.jnp.sin(x) ** 2).sum())(x)


@case
def gradient_of_product(lib, x):
    w = _reshard(lib, x, "y", None)

    def loss(x, w):
        return lib.jnp.dot(x, w, out_sharding=lib.P("x")).sum()

    return lib.mj.grad(loss, (0, 1))(x, w)


@case
def gradient_of_replicated_weights(lib, x):
    """Data parallel: the batch is cut, the weights are on every device."""
    w = lib.numbers(8, 4)
    x = _reshard(lib, x, "x", None)

    def loss(w, x):
        return ((lib.jnp.sin(x @ w / 100) @ w.T) ** 2).mean()

    return lib.mj.grad(loss, (0, 1))(w, x)


@case
def gradient_of_a_replicated_left_operand(lib, x):
    x = _reshard(lib, x, None, "y")
    a = lib.jnp.ones((3, 8))

    def loss(a, x):
        return (lib.jnp.dot(a, x) ** 2).sum()

    return lib.mj.grad(loss, (0, 1))(a, x)


@case
def jacobian_and_mapped_gradient_of_replicated_weights(lib, x):
    w = lib.numbers(2, 8)
    x = _reshard(lib, x, "x", None)

    def loss(w, x):
        return (lib.jnp.sin(x @ w) ** 2).sum()

    return lib.mj.vmap(lib.mj.grad(loss), (0, None))(w, x)


@case
def gradient_of_cross_entropy(lib, x):
    """The logits and the labels are cut along the batch."""
    labels = _reshard(lib, lib.jnp.arange(8) % 5, "x")
    x = _reshard(lib, x, "x", None)

    def loss(w):
        logs = lib.mj.nn.log_softmax(x @ w)
        return -lib.jnp.take_along_axis(logs, labels[:, None], axis=-1).mean()

    return lib.mj.jit(lib.mj.value_and_grad(loss))(lib.numbers(8, 5))


@case
def gradient_of_take_along_axis(lib, x):
    indices = lib.jnp.zeros((8, 2), int)
    x = _reshard(lib, x, "x", None)

    def loss(x):
        return (lib.jnp.take_along_axis(x, indices, axis=-1) ** 2).sum()

    return lib.mj.value_and_grad(loss)(x)


@case
def gradient_of_tile(lib, x):
    x = _reshard(lib, x, "x", None)
    return lib.mj.value_and_grad(lambda x: (lib.jnp.tile(x, (1, 2)) ** 2).sum())(x)


@case
def gradient_of_attention(lib, x):
    """One head, cut along the batch; the weights are on every device."""
    x = _reshard(lib, x, "x", None).reshape(8, 4, 2)
    weights = [lib.numbers(2, 3) + i for i in range(3)]

    def loss(weights):
        q, k, v = (lib.jnp.einsum("btd,dk->btk", x, w) for w in weights)
        scores = lib.jnp.einsum("bqk,bsk->bqs", q, k)
        mask = lib.jnp.tril(lib.jnp.ones((4, 4), bool))
        scores = lib.mj.nn.softmax(lib.jnp.where(mask, scores, -1e9))
        return (lib.jnp.einsum("bqs,bsk->bqk", scores, v) ** 2).mean()

    return lib.mj.jit(lib.mj.value_and_grad(loss))(weights)


@case
def gradient_of_tensor_parallel_layers(lib, x):
    """Both weights are cut along the hidden dimension, the batch along the other."""
    x = _reshard(lib, x, "x", None)
    first = _reshard(lib, lib.numbers(8, 4), None, "y")
    second = _reshard(lib, lib.numbers(4, 6), "y", None)

    def loss(first, second):
        hidden = lib.mj.nn.gelu(x @ first)
        return (lib.jnp.dot(hidden, second, out_sharding=lib.P("x")) ** 2).mean()

    return lib.mj.jit(lib.mj.value_and_grad(loss, (0, 1)))(first, second)


@case
def gradient_of_layer_norm(lib, x):
    def loss(x, scale):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return ((x - mean) * lib.lax.rsqrt(variance + 1e-5) * scale).sum()

    x = _reshard(lib, x, "x", None)
    return lib.mj.grad(loss, (0, 1))(x, lib.numbers(8))


@case
def gradient_of_log_softmax(lib, x):
    def loss(x):
        return (lib.mj.nn.log_softmax(x, -1) ** 2).mean()

    return lib.mj.value_and_grad(loss)(x)


@case
def gradient_of_relu(lib, x):
    return lib.mj.grad(lambda x: lib.mj.nn.relu(x).sum())(x)


@case
def gradient_of_reshape(lib, x):
    return lib.mj.grad(lambda x: (x.reshape(4, 2, 8) ** 2).sum())(x)


@case
def gradient_of_reshard(lib, x):
    return lib.mj.grad(lambda x: (_reshard(lib, x, "y", None) ** 3).sum())(x)


@case
def rematerialised(lib, x):
    function = lib.mj.checkpoint(lambda x: lib.jnp.sin(lib.jnp.sin(x)).sum())
    return lib.mj.grad(function)(x)


@case
def mapped(lib, x):
    return lib.mj.vmap(lambda row: lib.jnp.sin(row).sum())(x)


@case
def mapped_over_columns(lib, x):
    return lib.mj.vmap(lambda column: column * 2, in_axes=1)(x)


@case
def mapped_jit(lib, x):
    return lib.mj.vmap(lib.mj.jit(lambda row: lib.jnp.sin(row) * 2))(x)


@case
def mapped_product(lib, x):
    w = _reshard(lib, x, "y", None)
    return lib.mj.vmap(lambda row: lib.jnp.dot(row, w, out_sharding=lib.P(None)))(x)


@case
def mapped_gradient(lib, x):
    x = _reshard(lib, x, "x", None)
    return lib.mj.vmap(lib.mj.grad(lambda row: (row**2).sum()))(x)


@case
def scanned(lib, x):
    rows = _reshard(lib, x, None, "y")
    start = lib.jnp.zeros((8,), out_sharding=lib.P("y"))
    return lib.lax.scan(lambda c, row: (c + row, c * row), start, rows)


@case
def looped(lib, x):
    return lib.lax.fori_loop(0, 3, lambda i, c: c * 2, x)


@case
def chosen(lib, x):
    return lib.lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)


@case
def nested_jit(lib, x):
    inner = lib.mj.jit(lambda x: lib.jnp.tanh(x) @ _reshard(lib, x, None, None))
    return lib.mj.jit(lambda x: inner(x) + 1)(x)


@case
def automatic(lib, x):
    function = lib.sharding.auto_axes(lambda x: x @ x.T, out_sharding=lib.P("x"))
    return function(x)


def _automatic_axes(axes):
    """Over some axes of a mesh of both kinds, which may be Auto already."""

    def function(lib, x):
        kinds = (lib.explicit, lib.sharding.AxisType.Auto)
        mesh = lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
        with lib.mj.set_mesh(mesh):
            double = lib.sharding.auto_axes(
                lambda x: x * 2, axes=axes, out_sharding=lib.P("x")
            )
            found = lib.mj.jit(double)(np.arange(16.0, dtype=np.float32))
            return [str(lib.mj.typeof(found)), found]

    return function


_several(
    **{
        f"automatic over {axes}": _automatic_axes(axes)
        for axes in ("y", ("y",), ("y", "x"), "x", None)
    }
)


@case
def operands_of_other_cuts(lib, x):
    """Each is brought to the cut of the result, beside an axis that is Auto."""
    kinds = (lib.sharding.AxisType.Auto, lib.explicit)
    mesh = lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
    x = lib.put(lib.numbers(8, 8), "x", mesh=mesh)
    w = lib.put(lib.numbers(8, 8), ("x", "y"), mesh=mesh)
    with lib.mj.set_mesh(mesh):
        found = lib.mj.jit(lambda x, w: lib.jnp.sin(x.T) + w)(x, w)
    return [str(found.sharding.spec), found]


@case
def composite(lib, x):
    double = lib.lax.composite(lambda y: y * 2, "my.double")
    return lib.mj.jit(double)(x)


@case
def automatic_inside(lib, x):
    @lib.sharding.auto_axes
    def function(x):
        return lib.jnp.flip(lib.jnp.sort(x), 0)

    return lib.mj.jit(lambda x: function(x, out_sharding=lib.P("x", "y")) * 2)(x)


def _mapped(lib, **options):
    return lib.mj.shard_map(lambda part: part * part, out_specs=lib.P("x"), **options)


def _summed_gradient(lib, function, x):
    return lib.mj.grad(lambda x: (function(x) ** 2).sum())(x)


_several(
    gradient_of_automatic=lambda lib, x: _summed_gradient(
        lib, lib.sharding.auto_axes(lambda x: x @ x.T, out_sharding=lib.P("x")), x
    ),
    gradient_of_automatic_one=lambda lib, x: _summed_gradient(
        lib,
        lib.sharding.auto_axes(
            lambda x: x @ x.T, axes="x", out_sharding=lib.P("x", "y")
        ),
        x,
    ),
    gradient_of_automatic_in_jit=lambda lib, x: lib.mj.jit(
        lambda x: _summed_gradient(
            lib, lib.sharding.auto_axes(lambda x: x @ x, out_sharding=lib.P("x")), x
        )
    )(x),
    gradient_of_automatic_loop=lambda lib, x: _summed_gradient(
        lib,
        lib.sharding.auto_axes(
            lambda x: lib.lax.scan(lambda c, _: (c @ x, None), x, None, length=2)[0],
            out_sharding=lib.P("x"),
        ),
        x,
    ),
    gradient_of_explicit_in_automatic=lambda lib, x: _summed_gradient(
        lib,
        lib.sharding.auto_axes(
            lambda x: (
                lib.sharding.explicit_axes(lambda y: y * 2, in_sharding=lib.P("x"))(x)
                @ x
            ),
            out_sharding=lib.P("x"),
        ),
        x,
    ),
    batch_of_automatic=lambda lib, x: lib.mj.vmap(
        lib.sharding.auto_axes(lambda v: v * v[0], out_sharding=lib.P(None))
    )(x),
    mapped_in_automatic=lambda lib, x: _summed_gradient(
        lib,
        lib.sharding.auto_axes(
            _mapped(lib, in_specs=lib.P("x")), out_sharding=lib.P("x")
        ),
        x,
    ),
    mapped_in_explicit=lambda lib, x: lib.sharding.explicit_axes(
        _mapped(lib), in_sharding=lib.P("x")
    )(x),
    stray_in_automatic=lambda lib, x: lib.sharding.auto_axes(
        lambda y: y * x, out_sharding=lib.P("x")
    )(x),
)


@case
def explicit_inside(lib, x):
    @lib.sharding.auto_axes(out_sharding=lib.P("x", "y"))
    def function(x):
        inner = lib.sharding.explicit_axes(
            lambda y: y * 2, in_sharding=(lib.P("y", None),)
        )
        return inner(x) + 1

    return function(x)


@case
def two_kinds_of_axes(lib, x):
    kinds = (lib.explicit, lib.auto)
    mesh = lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
    y = lib.put(lib.numbers(8, 8), "x", "y", mesh=mesh)
    with lib.mj.set_mesh(mesh):
        made = lib.mj.make_jaxpr(lambda y: lib.jnp.sin(y) + y.sum(1)[:, None])(y)
    return str(made)


@case
def in_shardings(lib, x):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    function = lib.mj.jit(lambda x: x * 2, out_shardings=lib.on("x", mesh=mesh))
    return function(_reshard(lib, x, "x", None))


# ----------------------------------------------------------------------------------
# shard_map
# ----------------------------------------------------------------------------------


@case
def inferred_specs(lib, x):
    return lib.mj.shard_map(lambda part: part * 2, out_specs=lib.P("x", "y"))(x)


@case
def given_specs(lib, x):
    specs = lib.P("x", "y")
    return lib.mj.shard_map(
        lambda part: lib.lax.psum(part, "y"), in_specs=specs, out_specs=lib.P("x")
    )(x)


@case
def partly_manual(lib, x):
    return lib.mj.shard_map(
        lambda part: part * 2,
        in_specs=lib.P("x", None),
        out_specs=lib.P("x"),
        axis_names={"x"},
    )(x)


@case
def gradient_of_shard_map(lib, x):
    def total(x):
        specs = lib.P("x", "y")
        return lib.mj.shard_map(
            lambda part: lib.lax.psum((part**2).sum(), ("x", "y")),
            in_specs=specs,
            out_specs=lib.P(),
        )(x)

    return lib.mj.grad(total)(x)


# ----------------------------------------------------------------------------------
# Printed programs
# ----------------------------------------------------------------------------------


@case
def printed(lib, x):
    def function(x):
        y = lib.jnp.dot(x, _reshard(lib, x, "y", None), out_sharding=lib.P("x"))
        y = _reshard(lib, lib.jnp.sin(y), None, "y")
        zeros = lib.jnp.zeros((8,), out_sharding=lib.P("x"))
        return y.sum(0), y.reshape(2, 4, 8), zeros

    return str(lib.mj.make_jaxpr(function)(x))


@case
def printed_inner(lib, x):
    function = lib.mj.jit(lambda x: lib.jnp.exp(x).T)
    text = str(lib.mj.make_jaxpr(function)(x))
    # jax prints the mesh in use with every jit.
    return re.sub(r"\n *ctx_mesh=.*", "", text)


@case
def printed_automatic(lib, x):
    function = lib.sharding.auto_axes(lambda x: x * 2, out_sharding=lib.P("x"))
    return str(lib.mj.make_jaxpr(function)(x))


@case
def collectives(lib, x):
    def function(x):
        return lib.jnp.dot(x, _reshard(lib, x, "y", None), out_sharding=lib.P("x"))

    return str(lib.collectives(function, x))


# ----------------------------------------------------------------------------------
# Errors
# ----------------------------------------------------------------------------------

_several(
    wrong_add=lambda lib, x: x + _reshard(lib, x, "y", "x"),
    wrong_row=lambda lib, x: x + lib.jnp.zeros((8,), out_sharding=lib.P("x")),
    wrong_product=lambda lib, x: x @ x.T,
    wrong_contraction=lambda lib, x: x @ x,
    twice_one_axis=lambda lib, x: _dot(lib, x, ("x", None), (None, "x")),
    wrong_reshape=lambda lib, x: x.T.reshape(16, 4),
    wrong_sort=lambda lib, x: lib.jnp.sort(x),
    wrong_cumsum=lambda lib, x: lib.jnp.cumsum(x, 0),
    wrong_take=lambda lib, x: x[lib.jnp.arange(8)],
    wrong_embedding=lambda lib, x: lib.numbers(5, 3)[
        _reshard(lib, lib.jnp.arange(8) % 5, "x")
    ],
    wrong_tile=lambda lib, x: lib.jnp.tile(x, (2, 1)),
    wrong_update=lambda lib, x: x.at[0].set(1.0),
    wrong_roll=lambda lib, x: lib.jnp.roll(x, 1, 0),
    wrong_concatenate=lambda lib, x: lib.jnp.concatenate([x, x.T], 0),
    concatenate_whole=lambda lib, x: lib.jnp.concatenate([x, lib.jnp.ones((8, 8))], 0),
    wrong_constraint=lambda lib, x: lib.lax.with_sharding_constraint(x, lib.P("y")),
    reshard_to_none=lambda lib, x: lib.sharding.reshard(x, None),
    reshard_indivisible=lambda lib, x: _reshard(lib, lib.jnp.ones((6,)), "x"),
    unknown_axis=lambda lib, x: _reshard(lib, x, "z"),
    wrong_specs=lambda lib, x: lib.mj.shard_map(
        lambda part: part, in_specs=lib.P("y", "x"), out_specs=lib.P("y", "x")
    )(x),
    specs_of_whole=lambda lib, x: lib.mj.shard_map(
        lambda part: part, in_specs=lib.P("x"), out_specs=lib.P("x")
    )(lib.jnp.ones((8,))),
    scan_over_cut_axis=lambda lib, x: lib.lax.scan(
        lambda c, row: (c + row, None), lib.jnp.zeros((8,), out_sharding=lib.P("y")), x
    ),
    changing_carry=lambda lib, x: lib.lax.scan(
        lambda c, row: (c + row, None), lib.jnp.zeros((8,)), _reshard(lib, x, None, "y")
    ),
    branches_differ=lambda lib, x: lib.lax.cond(
        True, lambda: x, lambda: _reshard(lib, x, "y", "x")
    ),
    automatic_without_sharding=lambda lib, x: lib.sharding.auto_axes(lambda x: x)(x),
)


@case
def two_meshes(lib, x):
    other = lib.make_mesh((2, 4), "xy", lib.explicit)
    return x + lib.put(lib.numbers(8, 8), "x", "y", mesh=other)


def _outside(lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    x = lib.put(lib.numbers(8, 8), "x", "y", mesh=mesh)
    return lib.jnp.dot(x, x.T, out_sharding=lib.P("x"))


CASES["spec_without_mesh"] = _outside


@case
def where_on_a_whole_condition(lib, x):
    """The condition is as every device holds it, and is brought to the others."""
    jnp = lib.jnp

    def f(x):
        kept = jnp.where(jnp.arange(8) < 5, x, 0.0)
        return lib.mj.nn.softmax(kept, where=jnp.arange(8) < 5)

    return lib.mj.jit(f)(x), lib.mj.jit(lib.mj.grad(lambda x: jnp.sum(f(x) * x)))(x)


@case
def zeros_like_a_traced_array(lib, x):
    return lib.mj.jit(lambda x: (lib.jnp.zeros_like(x), lib.jnp.full_like(x, 2)))(x)


@case
def full_like_a_cut_array(lib, x):
    """Also with another dtype, from an array as a value, and of another shape."""
    full_like = lib.mj.lax.full_like

    def both(x):
        return full_like(x, 1, int), full_like(x, lib.jnp.float32(2)), full_like(x, 3)

    return both(x), lib.mj.jit(both)(x), full_like(x, 1, shape=(4,))


@case
def where_on_a_whole_condition_of_equal_shape(lib, x):
    whole = _reshard(lib, x)
    return lib.mj.jit(lambda x, whole: lib.jnp.where(whole > 0, x, -x))(x, whole)


@case
def mapped_beside_unmapped(lib, x):
    """An operand without the batch axis is repeated along it, and is cut there."""
    jnp, row = lib.jnp, _reshard(lib, x[:, 0], None)
    x = _reshard(lib, x, "x", None)
    return (
        lib.mj.vmap(lambda one: jnp.concatenate([one, row]))(x),
        lib.mj.vmap(lambda one: jnp.where(row > 0, one, -one))(x),
        lib.mj.vmap(lambda one: jnp.where(one[0] > 0, one, row))(x),
        lib.mj.vmap(lambda one, bit: jnp.where(bit, one, row), (0, 0))(x, x[:, 0] > 0),
    )


@case
def mapped_beside_unmapped_in_branches_and_loops(lib, x):
    """Whatever becomes an operand of the batch is cut as the batch axis is."""
    lax, vmap, axes = lib.mj.lax, lib.mj.vmap, (0, None)
    row, x = _reshard(lib, x[0], None), _reshard(lib, x[:, 0], "x")
    by_one = lambda one, row: lax.cond(  # noqa: E731
        one > 3, lambda row: row + 1, lambda row: row * 2, row
    )
    turns = lambda one, row: lax.fori_loop(0, 3, lambda _, c: c * one, row)  # noqa: E731
    until = lambda one, row: lax.while_loop(  # noqa: E731
        lambda c: c.sum() < 100, lambda c: c * 2 + one, row
    )
    passed = lambda one, row: (row * 2, one)  # noqa: E731
    written = lambda one, row: row.at[1].set(one)  # noqa: E731
    return [vmap(f, axes)(x, row) for f in (by_one, turns, until, passed, written)]


@case
def full_like_on_one_device(lib, x):
    device = lib.mj.devices()[3]
    return lib.jnp.full_like(x, 2, device=device), lib.jnp.zeros_like(x, device=device)


@case
def parts_of_a_traced_array(lib, x):
    """Slices whose size the mesh still divides; outside of a trace jax refuses them."""
    parts = lib.mj.jit(lambda x: (x[4:], x[::2], x[1:5, 2:4], x[None, :4]))(x)
    return parts, [str(lib.mj.make_jaxpr(lambda x: x[4:])(x))]


@case
def part_of_an_array(lib, x):
    return x[4:]


@case
def gradients_of_whole_operands(lib, x):
    """A cotangent is brought to the cut of its operand."""

    def f(x, whole, column, row):
        return (x * whole + (whole - x) / 3 + column * x + lib.jnp.tanh(row) * x).sum()

    whole = _reshard(lib, x)
    return lib.mj.jit(lib.mj.grad(f, (0, 1, 2, 3)))(x, whole, whole[:, :1], whole[0])


@case
def whole_results(lib, x):
    """Each device has all of them, as their types say."""
    f = lib.mj.jit(lambda x: (x.sum(), _reshard(lib, x), lib.jnp.arange(8)))
    text = f.lower(x).as_text()
    return f(x), text.count("[{}, {}]>}"), text.count("[{}]>}")


@case
def sharding_texts(lib, x):
    """The attributes of StableHLO that say how values are cut."""
    texts = [
        lib.mj.jit(f).lower(x).as_text()
        for f in (
            lambda x: x * 2,
            lambda x: (x * 2, x.sum(0)),
            lambda x: lib.mj.jit(lambda y: y * 2)(x) + 1,
            lambda x: lib.mj.vmap(lambda row: row + 2)(x),
        )
    ]
    lines = [line for text in texts for line in text.splitlines() if "sdy." in line]
    return [re.sub(r"%\w+|tensor<[^>]*>", "", line).strip() for line in lines]


def _beside_a_cut_one(function, kind):
    """Gradient of an operand on no mesh, or whole on the mesh, beside a cut one."""

    def run(lib, x):
        operand = lib.numbers(8, 8)
        if kind == "whole":
            operand = _reshard(lib, x)
        gradient = lib.mj.grad(lambda a: (function(lib, a, x) ** 2).sum())
        return lib.mj.jit(gradient)(operand)

    return run


_operations = dict(
    add=lambda lib, a, x: a + x,
    mul=lambda lib, a, x: a * x,
    dot=lambda lib, a, x: lib.jnp.dot(a, _reshard(lib, x, None, "y")),
    transposed=lambda lib, a, x: a.T * x,
    repeated=lambda lib, a, x: a[None] * x,
    summed=lambda lib, a, x: a.sum(0) * x,
)
for _kind in ("on_no_mesh", "whole"):
    for _name, _function in _operations.items():
        _several(
            **{f"gradient_of_{_kind}_{_name}": _beside_a_cut_one(_function, _kind)}
        )

_several(
    chosen_by_a_whole_mask=lambda lib, x: lib.jnp.where(
        lib.lax.broadcasted_iota(int, (8, 8), 0) > 2, x, x
    ),
    chosen_of_several=lambda lib, x: lib.jnp.select([x > 0, x > 1], [x, x * 2], 0.0),
    repeated_whole_to_cut=lambda lib, x: lib.jnp.broadcast_to(
        _reshard(lib, x)[0], (8, 8), out_sharding=lib.P("x")
    ),
    bits_as_integers=lambda lib, x: lib.lax.bitcast_convert_type(x, int),
    bits_of_halves=lambda lib, x: lib.lax.bitcast_convert_type(x, lib.jnp.uint16),
    bits_together=lambda lib, x: lib.lax.bitcast_convert_type(
        _reshard(lib, x, "x")[:, :2].astype(lib.jnp.bfloat16), lib.jnp.float32
    ),
    numbers_of_keys_on_a_mesh=lambda lib, x: lib.mj.vmap(
        lambda key: lib.mj.random.normal(key, (3,))
    )(lib.put(lib.mj.random.split(lib.mj.random.key(0), 8), "x")),
    carry_on_no_mesh=lambda lib, x: lib.lax.scan(
        lambda c, row: (c + row, row), lib.jnp.zeros(8), _reshard(lib, x)
    )[0],
)


def _largest(lib, x):
    return lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 2, 2), (1, 2, 2), "VALID")


def _blocks(lib, x):
    return lib.put(lib.numbers(8, 8, 4), "x", mesh=x.sharding.mesh)


_several(
    gradient_of_largest=lambda lib, x: _summed_gradient(
        lib, functools.partial(_largest, lib), _blocks(lib, x)
    ),
    gradient_of_largest_of_a_batch=lambda lib, x: lib.mj.vmap(
        lib.mj.grad(lambda row: _largest(lib, row[None]).sum())
    )(_blocks(lib, x)),
    tangent_of_largest=lambda lib, x: lib.mj.jvp(
        functools.partial(_largest, lib), (_blocks(lib, x),), (_blocks(lib, x),)
    ),
    ragged_product=lambda lib, x: lib.lax.ragged_dot(
        _reshard(lib, x, "x"), _reshard(lib, lib.numbers(3, 8, 5)), np.array([2, 3, 3])
    ),
    gradient_through_reshard=lambda lib, x: lib.mj.grad(
        lambda y: lib.sharding.reshard(y, lib.P("x")).sum()
    )(lib.numbers(8, 8)),
    sums_of_a_batch=lambda lib, x: lib.mj.vmap(
        lambda row: lib.jnp.sum(row, axis=0, out_sharding=lib.P("y"))
    )(_blocks(lib, x)),
)

_several(
    automatic_axes_of_an_automatic_mesh=lambda lib, x: lib.sharding.auto_axes(
        lambda x: lib.sharding.auto_axes(
            lambda x: x * 2, axes="x", out_sharding=lib.P("x")
        )(x),
        out_sharding=lib.P("x"),
    )(x),
    branches_one_on_no_mesh=lambda lib, x: lib.mj.jit(
        lambda a, b: lib.lax.cond(True, lambda a, b: a, lambda a, b: b, a, b)
    )(x, lib.numbers(8, 8)),
    branches_now=lambda lib, x: lib.lax.switch(
        2, [lambda a, b: b, lambda a, b: b, lambda a, b: a], x, lib.numbers(8, 8)
    ),
    loop_that_leaves_the_mesh=lambda lib, x: lib.lax.scan(
        lambda c, _: (lib.numbers(8, 8) * 1, None), x, None, length=2
    )[0],
)


def _rows(lib, x):
    return lib.put(np.arange(8, dtype=np.int32), "x", mesh=x.sharding.mesh)


_several(
    updated_as_cut=lambda lib, x: x.at[:].set(x * 2),
    updated_by_a_number=lambda lib, x: x.at[:].set(0.0),
    updates_cut_by_themselves=lambda lib, x: (
        lib.lax.slice_in_dim(_reshard(lib, x), 0, 8)
        .at[1:3]
        .set(_reshard(lib, x, None, "y")[1:3], out_sharding=lib.P("x"))
    ),
    updated_at_cut_rows=lambda lib, x: _reshard(lib, x).at[_rows(lib, x)].set(1.0),
    updated_as_asked=lambda lib, x: x.at[_rows(lib, x)].set(
        x, out_sharding=lib.on("x", mesh=x.sharding.mesh)
    ),
    gradient_of_rows=lambda lib, x: _summed_gradient(
        lib, lambda x: x[:, np.array([1, 1, 2])], _reshard(lib, x, "x")
    ),
    clone_of_keys=lambda lib, x: lib.mj.random.key_data(
        lib.mj.random.clone(
            lib.put(lib.mj.random.split(lib.mj.random.key(0), 8), "x", mesh=None)
        )
    ).sum(),
    tangent_of_another_cut=lambda lib, x: lib.mj.linearize(lambda v: v * v, x)[1](
        _reshard(lib, x, "y")
    ),
    cotangent_of_another_cut=lambda lib, x: lib.mj.linear_transpose(lambda v: v * 2, x)(
        _reshard(lib, x, "y")
    ),
)
