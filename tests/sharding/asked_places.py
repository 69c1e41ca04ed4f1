"""Places that are asked for: `out_sharding=`, structs with a sharding, trees: cases.

Most are run with an Explicit and with an Auto mesh in use, over which jax refuses
`out_sharding`.
"""

from __future__ import annotations

import contextlib
import functools

import numpy as np

CASES = {}


def _in_use(program, kind, lib):
    mesh = lib.make_mesh((4, 2), "xy", getattr(lib, kind))
    with lib.mj.set_mesh(mesh):
        return program(lib, lib.mj.device_put(lib.numbers(8, 8), lib.P("x")))


def _both(**programs):
    for name, program in programs.items():
        for kind in ("explicit", "auto"):
            CASES[f"{name}_{kind}"] = functools.partial(_in_use, program, kind)


def _struct(lib, **words):
    words = {"sharding": lib.on("x"), **words}
    return lib.mj.ShapeDtypeStruct((8, 8), np.float32, **words)


def _explicit(lib):
    mesh = lib.make_mesh((4, 2), "xy", lib.explicit)
    return _struct(lib, sharding=lib.on("x", mesh=mesh))


_both(
    ones=lambda lib, x: lib.jnp.ones((8, 8), out_sharding=lib.P("x")),
    zeros_of_two=lambda lib, x: lib.jnp.zeros((8, 8), out_sharding=lib.P("x", "y")),
    normal=lambda lib, x: lib.random.normal(
        lib.random.key(0), (8, 8), out_sharding=lib.P("x")
    ),
    uniform_in_jit=lambda lib, x: lib.mj.jit(
        lambda k: lib.random.uniform(k, (8, 8), out_sharding=lib.P("x", "y"))
    )(lib.random.key(0)),
    repeat=lambda lib, x: lib.jnp.repeat(x, 2, axis=0, out_sharding=lib.P("x")),
    repeat_unlike=lambda lib, x: lib.jnp.repeat(
        x[:, 0],
        lib.jnp.array([1, 2, 3, 2, 0, 0, 0, 0]),
        total_repeat_length=8,
        out_sharding=lib.P("x"),
    ),
    repeat_in_jit=lambda lib, x: lib.mj.jit(
        lambda x: lib.jnp.repeat(x, 2, axis=1, out_sharding=lib.P("x", "y"))
    )(x),
    repeat_cut=lambda lib, x: lib.jnp.repeat(x, 2, axis=0),
    rows=lambda lib, x: x.at[lib.jnp.array([0, 3, 1, 2])].get(out_sharding=lib.P("x")),
    rows_set=lambda lib, x: x.at[lib.jnp.array([0, 3])].set(
        1.0, out_sharding=lib.P("x")
    ),
    reshape=lambda lib, x: lib.jnp.reshape(x, (64,), out_sharding=lib.P("x")),
    split=lambda lib, x: lib.jnp.split(x, 2, axis=1),
    switch=lambda lib, x: lib.lax.switch(1, [lambda x: x + 1, lambda x: x * 2], x),
    scan=lambda lib, x: lib.lax.scan(lambda c, r: (c + r, c.sum()), x[:, 0], x.T),
    scan_of_another_carry=lambda lib, x: lib.lax.scan(
        lambda c, r: (c + r, c.sum()), lib.jnp.zeros(8), x.T
    ),
    convolution=lambda lib, x: lib.lax.conv(
        x.reshape(8, 2, 2, 2), lib.numbers(4, 2, 2, 2), (1, 1), "SAME"
    ),
    convolution_gradient=lambda lib, x: lib.mj.jit(
        lib.mj.grad(
            lambda w, x: (lib.lax.conv(x, w, (1, 1), "SAME") ** 2).sum(), (0, 1)
        )
    )(lib.mj.device_put(lib.numbers(4, 2, 2, 2), lib.P()), x.reshape(8, 2, 2, 2)),
    jacobian=lambda lib, x: lib.mj.jit(
        lib.mj.jacrev(lambda x: (lib.jnp.sin(x), x.sum(), x[:, None] * np.ones(2)))
    )(x[:, 0]),
    smap_without_in_axes=lambda lib, x: lib.mj.smap(
        lambda x: x * 2, out_axes=0, axis_name="x"
    )(x),
    constraint_of_own_type=lambda lib, x: lib.mj.jit(
        lambda x: lib.lax.with_sharding_constraint(x, lib.mj.typeof(x).sharding)
    )(x),
    closed_over=lambda lib, x: lib.mj.jit(lambda y: y + x)(lib.numbers(8, 8)),
    tree=lambda lib, x: lib.mj.jit(
        lambda d, y: {"s": y * 2, "t": (d["b"], d["a"])},
        in_shardings=({"a": lib.P("x"), "b": None}, lib.P("y")),
        out_shardings={"s": lib.P("x"), "t": None},
    )({"a": lib.numbers(8, 8), "b": lib.numbers(8)}, lib.numbers(8, 8)),
    struct_of_a_spec=lambda lib, x: str(_struct(lib, sharding=lib.P("x")).sharding),
    explicit_then_used=lambda lib, x: (
        lib.sharding.explicit_axes(lambda x: x * 2, in_sharding=lib.P("x"))(
            lib.numbers(8, 8)
        )
        @ x
    ),
    explicit_in_auto=lambda lib, x: lib.sharding.auto_axes(
        lambda x: (
            lib.sharding.explicit_axes(lambda y: y * 2, in_sharding=lib.P("x"))(x) @ x
        ),
        out_sharding=lib.P("x"),
    )(x),
)


def _abstract(lib, *spec):
    """A sharding over the mesh in use, which names no devices."""
    return lib.Named(lib.sharding.get_abstract_mesh(), lib.P(*spec))


def _auto(lib):
    """A sharding that no type shows."""
    axes = (lib.sharding.AxisType.Auto,) * 2
    return lib.Named(lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=axes), lib.P("x"))


def _used(lib):
    return lib.sharding.get_mesh()


def _refused(function, *args):
    """Whether it raises; jax has a class of its own at times."""
    try:
        return f"{function(*args)} is accepted"
    except (AttributeError, TypeError, ValueError):
        return "refused"


_both(
    full_of_types=lambda lib, x: lib.jnp.full((8,), 2.0, device=_abstract(lib, "x")),
    arange_of_types=lambda lib, x: lib.jnp.arange(8, device=_abstract(lib, "x")),
    lax_full_of_types=lambda lib, x: lib.lax.full(
        (8,), 2, sharding=_abstract(lib, "x")
    ),
    full_like_of_types=lambda lib, x: lib.mj.jit(
        lambda x: lib.lax.full_like(x, 2, sharding=_abstract(lib, "y", "x"))
    )(x),
    zeros_over_another_mesh=lambda lib, x: lib.mj.jit(
        lambda: lib.jnp.zeros(8, out_sharding=lib.on("i", mesh=lib.line))
    )(),
    array_fill=lambda lib, x: _refused(
        lib.mj.jit(lambda: lib.jnp.full((8,), np.ones(8), device=_auto(lib))),
    ),
    array_fill_over_another_mesh=lambda lib, x: _refused(
        lib.mj.jit(
            lambda: lib.jnp.full_like(x, np.ones(8), device=lib.on("i", mesh=lib.line))
        ),
    ),
    number_fill=lambda lib, x: lib.mj.jit(
        lambda: lib.jnp.full((8,), 2.0, device=_auto(lib)) * lib.jnp.bfloat16(1)
    )(),
    rows_over_auto_axes=lambda lib, x: _refused(
        lib.mj.jit(lambda x: x.at[np.arange(8)].get(out_sharding=_auto(lib))),
        lib.numbers(8, 8),
    ),
    drawn_over_auto_axes=lambda lib, x: _refused(
        lib.mj.jit(lambda k: lib.random.uniform(k, (8,), out_sharding=_auto(lib))),
        lib.random.key(0),
    ),
    drawn_and_not_cut=lambda lib, x: lib.mj.jit(
        lambda k: lib.random.uniform(k, (8,), out_sharding=lib.P())
    )(lib.random.key(0)),
    uneven_put=lambda lib, x: _refused(
        lib.mj.jit(lambda y: lib.mj.device_put(y, lib.P("x"))), lib.numbers(7)
    ),
    uneven_arange=lambda lib, x: _refused(
        lib.mj.jit(lambda: lib.jnp.arange(7, device=lib.on("x", mesh=_used(lib))))
    ),
    uneven_struct=lambda lib, x: _refused(
        lib.mj.jit(lambda y: y).lower,
        lib.mj.ShapeDtypeStruct((7, 8), np.float32, sharding=x.sharding),
    ),
)
CASES.update(
    struct_of_a_word=lambda lib: str(_struct(lib, sharding="x")),
    struct_of_a_spec=lambda lib: str(_struct(lib, sharding=lib.P("x"))),
    zeros_like=lambda lib: lib.jnp.zeros_like(_struct(lib)),
    zeros_like_explicit=lambda lib: lib.jnp.zeros_like(_explicit(lib)),
    zeros_like_of_a_shape=lambda lib: lib.jnp.zeros_like(_struct(lib), shape=(4,)),
    full_like=lambda lib: lib.jnp.full_like(_struct(lib), 3, dtype=int),
    zeros_like_in_jit=lambda lib: lib.mj.jit(
        lambda: lib.jnp.zeros_like(_struct(lib))
    )(),
    eval_shape=lambda lib: str(lib.mj.eval_shape(lambda x: x.T, _explicit(lib))),
    lowered=lambda lib: (
        lib.mj.jit(lambda x: x * 2)
        .lower(_struct(lib))
        .compile()(lib.put(lib.numbers(8, 8), "x"))
    ),
)


# ----------------------------------------------------------------------------------
# `device=`, in a program and outside of one
# ----------------------------------------------------------------------------------


_MADE = dict(
    array=lambda lib, place, x: lib.jnp.array(x, device=place),
    asarray=lambda lib, place, x: lib.jnp.asarray(x, device=place),
    astype=lambda lib, place, x: lib.jnp.astype(x, int, device=place),
    linspace=lambda lib, place, x: lib.jnp.linspace(0, 1, 8, device=place),
    arange=lambda lib, place, x: lib.jnp.arange(8, device=place),
    device_put=lambda lib, place, x: lib.mj.device_put(x, place),
    constrained=lambda lib, place, x: lib.lax.with_sharding_constraint(x, place),
)
_MESHES = dict(explicit=("Explicit",) * 2, auto=("Auto",) * 2)
_MESHES["mixed"] = ("Explicit", "Auto")


def _mesh(lib, kind):
    types = tuple(lib.sharding.AxisType[name] for name in _MESHES[kind])
    return lib.mj.make_mesh((4, 2), ("x", "y"), axis_types=types)


def _places(lib):
    return dict(
        device=lib.mj.devices()[3],
        one_device=lib.sharding.SingleDeviceSharding(lib.mj.devices()[1]),
        spec=lib.P("x"),
        word="x",
        explicit=lib.on("x", mesh=_mesh(lib, "explicit")),
        auto=lib.on("x", mesh=_mesh(lib, "auto")),
        line=lib.on("i", mesh=lib.make_mesh((8,), "i", lib.explicit)),
    )


def _made(how, traced, used, place, cut, lib):
    x, place = lib.jnp.asarray(lib.numbers(8, 8)), _places(lib)[place]
    x = lib.put(x, "y") if cut else x
    with contextlib.ExitStack() as stack:
        if used:
            stack.enter_context(lib.mj.set_mesh(_mesh(lib, used)))
        program = functools.partial(_MADE[how], lib, place)
        made = (lib.mj.jit(program) if traced else program)(x)
        return made, str(lib.mj.typeof(made))


for _how in ("array", "asarray"):
    for _used in (None, *_MESHES):
        for _place in ("device", "spec", "word", "explicit", "auto", "line"):
            for _traced in (False, True):
                _name = f"{_how} traced={_traced} in {_used} at {_place}"
                _case = functools.partial(_made, _how, _traced, _used, _place, False)
                CASES[_name] = _case
for _how in _MADE:
    for _place in ("device", "one_device", "auto"):
        for _cut in (False, True):
            _name = f"{_how} in jit at {_place} cut={_cut}"
            CASES[_name] = functools.partial(_made, _how, True, None, _place, _cut)


# ----------------------------------------------------------------------------------
# `out_sharding=` in a program: a type says it, or it is refused
# ----------------------------------------------------------------------------------


_OUT = dict(
    normal=lambda lib, x, place: lib.random.normal(
        lib.random.key(0), (8,), out_sharding=place
    ),
    categorical=lambda lib, x, place: lib.random.categorical(
        lib.random.key(0), x, out_sharding=place
    ),
    segment_sum=lambda lib, x, place: lib.mj.ops.segment_sum(
        x[:, 0], np.arange(8) % 4, 4, out_sharding=place
    ),
    percentile=lambda lib, x, place: lib.jnp.percentile(
        x, 50, axis=1, out_sharding=place
    ),
    einsum_of_one=lambda lib, x, place: lib.jnp.einsum("ij->i", x, out_sharding=place),
    einsum_of_three=lambda lib, x, place: lib.jnp.einsum(
        "ij,j,j->i", x, x[:, 0], x[:, 1], out_sharding=place
    ),
    constant=lambda lib, x, place: lib.mj.nn.initializers.constant(2.0)(
        None, (8,), out_sharding=place
    ),
    rows=lambda lib, x, place: x[:, 0].at[np.arange(8)].get(out_sharding=place),
)


def _out(how, lib, x):
    """The type of the result for each place; "refused" where none is made."""
    told = []
    for place in ("device", "one_device", "word", "auto", "explicit", "spec"):
        program = functools.partial(_OUT[how], lib, place=_places(lib)[place])
        try:
            made = lib.mj.eval_shape(program, x).sharding.spec
        except (AssertionError, AttributeError, TypeError, ValueError):
            made = "refused"
        told.append(f"{place}: {made}")
    return told


for _how in _OUT:
    _case = functools.partial(_out, _how)
    CASES[f"{_how} out"] = functools.partial(_in_use, _case, "explicit")
# ----------------------------------------------------------------------------------
# Host values where a mesh is in use, and arrays that lie elsewhere
# ----------------------------------------------------------------------------------


def _elsewhere(lib, spec="i", first=4):
    """An array over four devices in a row."""
    devices = np.array(lib.mj.devices()[first : first + 4])
    return lib.put(lib.numbers(8), spec, mesh=lib.sharding.Mesh(devices, ("i",)))


def _doubled(lib, spec, mesh=None):
    return lib.mj.shard_map(lambda x: x * 2, in_specs=spec, out_specs=spec, mesh=mesh)


_both(
    array_of_numpy=lambda lib, x: lib.jnp.array(lib.numbers(8), dtype=int),
    asarray_of_a_number=lambda lib, x: [lib.jnp.asarray(3.0), lib.jnp.float32(3)],
    rows=lambda lib, x: [*lib.jnp.asarray(lib.numbers(3, 2))],
    rows_of_a_cut_array=lambda lib, x: [*x],
    rows_on_one_device=lambda lib, x: [
        *lib.mj.device_put(lib.numbers(3, 2), lib.mj.devices()[0])
    ],
    callback_on_other_devices=lambda lib, x: lib.mj.pure_callback(
        lambda v: np.asarray(v) * 2,
        lib.mj.ShapeDtypeStruct((8,), np.float32),
        lib.mj.device_put(lib.numbers(8), lib.mj.devices()[5]),
    ),
    mapped_from_another_mesh=lambda lib, x: _doubled(lib, lib.P("x"))(
        lib.put(lib.numbers(8), "i", mesh=lib.line)
    ),
)
CASES.update(
    mapped_over_its_own_mesh=lambda lib: _doubled(lib, lib.P("x"), lib.mesh)(
        lib.put(lib.numbers(8), "i", mesh=lib.line)
    ),
    moved_to_in_shardings=lambda lib: lib.mj.jit(
        lambda x: x * 2, in_shardings=_elsewhere(lib, first=0).sharding
    )(_elsewhere(lib)),
    not_moved_where_cut_otherwise=lambda lib: lib.mj.jit(
        lambda x: x * 2, in_shardings=_elsewhere(lib, None, 0).sharding
    )(_elsewhere(lib)),
)
CASES.update(
    full_on_a_device=lambda lib: _refused(
        lib.mj.jit(lambda: lib.lax.full((8,), 2.0, sharding=lib.mj.devices()[3]))
    ),
    ones_of_an_empty_spec_auto=functools.partial(
        _in_use,
        lambda lib, x: lib.mj.jit(lambda: lib.jnp.ones(8, out_sharding=lib.P()))(),
        "auto",
    ),
)


# ----------------------------------------------------------------------------------
# `out_sharding=` with devices, where no mesh is in use
# ----------------------------------------------------------------------------------

_OF_NUMPY = dict(
    matmul=lambda lib, x, place: lib.jnp.matmul(x, x, out_sharding=place),
    einsum=lambda lib, x, place: lib.jnp.einsum("ij,jk->ik", x, x, out_sharding=place),
    ravel=lambda lib, x, place: lib.jnp.ravel(x, out_sharding=place),
    reshape=lambda lib, x, place: lib.jnp.reshape(x, (16, 4), out_sharding=place),
    lax_dot=lambda lib, x, place: lib.lax.dot(x, x, out_sharding=place),
    ones=lambda lib, x, place: lib.jnp.ones((8, 8), out_sharding=place),
)


def _of_numpy(how, used, lib):
    mesh = _mesh(lib, "explicit")
    with lib.mj.set_mesh(mesh) if used else contextlib.nullcontext():
        made = _OF_NUMPY[how](lib, lib.numbers(8, 8), lib.on("x", mesh=mesh))
        return made, str(lib.mj.typeof(made))


# jax ignores the place there, or refuses; it lies as in jax where the mesh is in use.
OUTSIDE = {f"{how} outside": f"{how} within" for how in _OF_NUMPY}
for _how in _OF_NUMPY:
    CASES[f"{_how} outside"] = functools.partial(_of_numpy, _how, False)
    CASES[f"{_how} within"] = functools.partial(_of_numpy, _how, True)
