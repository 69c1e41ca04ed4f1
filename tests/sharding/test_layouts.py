"""Layouts in memory: of arrays, of programs, in caches; beside jax on eight devices."""

import numpy as np
import pytest

import minijax as mj
import minijax.numpy as jnp
from minijax.experimental.layout import Format, Layout
from tests.sharding import layouts
from tests.sharding.test_automatic import compare

HERE = mj.sharding.SingleDeviceSharding(mj.devices()[0])
COLUMNS = Format(Layout((1, 0)), HERE)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("name", layouts.CASES)
def test_as_in_jax(results, name):
    compare(results[name]["minijax"], results[name]["jax"])


def columns():
    return mj.device_put(X, COLUMNS)


def order(x):
    return x.format.layout.major_to_minor


def test_every_launch_sees_the_layout():
    """XLA reads a buffer of another layout without a word, as other numbers."""
    y = columns()
    with mj.debug_nans(True):
        double = mj.jit(lambda x: x * 2, donate_argnums=0)
        np.testing.assert_array_equal(double(columns()), X * 2)
        with pytest.raises(FloatingPointError, match="in log"):
            mj.jit(lambda x: jnp.log(x - 5), donate_argnums=0)(columns())
    shown = []
    callback = mj.jit(lambda x: mj.debug.callback(shown.append, x, ordered=True))
    callback(y)
    mj.effects_barrier()
    np.testing.assert_array_equal(shown[0], X)
    for function in (jnp.array, jnp.copy, mj.checkpoint(lambda x: x), jnp.from_dlpack):
        np.testing.assert_array_equal(function(y) + 1, X + 1)
    foreign = jnp.from_dlpack(np.asfortranarray(X))
    np.testing.assert_array_equal(foreign + 1, X + 1)
    np.testing.assert_array_equal(mj.lax.fori_loop(0, 3, lambda _, c: c + y, y), X * 4)


def test_ordered_effects():
    """XLA does not tell the layouts of such a program, and drops those of results."""

    def loud(x):
        mj.debug.callback(lambda _: None, x, ordered=True)
        return x.T + 1

    found = mj.jit(loud, in_shardings=COLUMNS)(X)
    np.testing.assert_array_equal(found, X.T + 1)
    np.testing.assert_array_equal(found * 2, X.T * 2 + 2)
    for place in (COLUMNS, Format(Layout.AUTO)):
        with pytest.raises(NotImplementedError, match="ordered effects.*Layout.AUTO"):
            mj.jit(loud, out_shardings=place)(X)


def test_two_layouts_are_two_programs(tmp_path):
    """In the caches of the function, of its jaxpr, and on disk."""
    rows = Format(Layout((0, 1)), HERE)

    def turned(x):
        return x.T * 3

    flags = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    before = {name: getattr(mj.config, name) for name in flags}
    for name, value in flags.items():
        mj.config.update(name, value)
    try:
        for count in (3, 3):  # the second time from disk
            for place in (COLUMNS, rows, None):
                found = mj.jit(turned, out_shardings=place)(X)
                np.testing.assert_array_equal(found, X.T * 3)
                assert order(found) == ((1, 0) if place is COLUMNS else (0, 1))
            kept = [one for one in tmp_path.iterdir() if "turned" in one.name]
            assert len(kept) >= count or len(list(tmp_path.iterdir())) >= count
            mj.clear_caches()
    finally:
        for name, value in before.items():
            mj.config.update(name, value)


def test_tiles_are_the_compilers():
    tiled = Format(Layout((1, 0), ((2, 2),)), HERE)
    for program in (
        lambda: mj.device_put(X, tiled),
        lambda: mj.jit(jnp.sin, in_shardings=tiled)(X),
        lambda: mj.jit(jnp.sin, out_shardings=tiled)(X),
    ):
        with pytest.raises(ValueError, match="Leave `tiling` out"):
            program()


def test_keys_have_the_layout_of_their_words():
    with pytest.raises(ValueError, match="each of the 2 axes of shape"):
        mj.device_put(mj.random.split(mj.random.key(0), 3), Format(Layout((0,)), HERE))


def test_an_automatic_layout_stands_beside_one_that_is_given():
    """XLA drops the one that is given then, and jax fails; here AUTO is row-major."""
    both = (COLUMNS, Format(Layout.AUTO))
    found = mj.jit(lambda x: (x + 1, x.T), out_shardings=both)(X)
    assert [order(x) for x in found] == [(1, 0), (0, 1)]


def test_what_is_automatic_is_not_committed():
    found = mj.jit(lambda x: (x.T, x + 1), out_shardings=Format(Layout.AUTO))(X)
    assert [order(x) for x in found] == [(1, 0), (0, 1)]
    assert not any(x.committed for x in found)
    again = mj.jit(jnp.sin, in_shardings=Format(Layout((0, 1)), HERE))(found[0])
    np.testing.assert_array_equal(again, jnp.sin(X.T))


def test_functions_that_make_arrays_name_the_way_to_a_layout():
    parts = [mj.device_put(X, HERE)]
    for make in (
        lambda: mj.make_array_from_callback((3, 4), COLUMNS, lambda index: X[index]),
        lambda: mj.make_array_from_single_device_arrays((3, 4), COLUMNS, parts),
        lambda: mj.make_array_from_process_local_data(COLUMNS, X),
    ):
        with pytest.raises(TypeError, match=r"device_put\(result, format\)"):
            make()


def test_derivatives_refuse_layouts():
    """JAX keeps them; a batch of such a derivative is refused by both."""
    jitted = mj.jit(lambda x: x * x, in_shardings=COLUMNS, out_shardings=COLUMNS)
    for program in (
        lambda: mj.jvp(jitted, (X,), (X,)),
        lambda: mj.vjp(jitted, X),
        lambda: mj.linearize(jitted, X),
        lambda: mj.vmap(mj.grad(lambda x: jitted(x).sum()))(X[None]),
    ):
        with pytest.raises(NotImplementedError, match=r"device_put\(result, format\)"):
            program()
    found = mj.jvp(mj.jit(jnp.sin, out_shardings=Format(None, HERE)), (X,), (X,))
    np.testing.assert_allclose(found[1], X * np.cos(X), rtol=1e-6)


def test_a_jit_in_a_program_keeps_its_layouts():
    """As constraints; jax writes a word that XLA reads of whole programs only."""
    inner = mj.jit(lambda x: (x * x, x), in_shardings=COLUMNS, out_shardings=COLUMNS)
    outer = mj.jit(lambda x: inner(x)[0] + 1)
    slope = mj.jit(mj.grad(lambda x: inner(x)[0].sum()))
    for program, kept, value in ((outer, 2, X * X + 1), (slope, 3, 2 * X)):
        lowered = program.lower(X)
        assert lowered.as_text().count("@LayoutConstraint") >= kept
        assert "{0,1}" in lowered.compile().as_text()
        np.testing.assert_array_equal(program(X), value)
        assert order(program(X)) == (0, 1)


def test_a_constraint_names_the_way_to_a_layout():
    with pytest.raises(TypeError, match=r"with_layout_constraint\(x, layout\)"):
        mj.lax.with_sharding_constraint(X, COLUMNS)
