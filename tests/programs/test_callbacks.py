"""Calling out to Python: pure_callback and io_callback; values, text, errors."""

import gc
import threading
import traceback
import weakref

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compile.tokens import runtime_tokens
from minijax.core.language import all_primitives
from minijax.core.state import state
from minijax.support.settings import override
from tests.backend.processes import FORBID_JAX, run
from tests.programs.sides import LIBRARIES, same_error, same_text, same_values

X = np.array([0.5, -1.0, 2.0], np.float32)
BATCH = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
METHODS = ("expand_dims", "broadcast_all", "legacy_vectorized")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """What a failed program leaves is not met by the next test."""
    yield
    runtime_tokens.clear()
    jax._src.dispatch.runtime_tokens.clear()


def array_that_comes_late():
    """Ones that are still being computed: what takes them runs in the background."""

    @minijax.jit
    def slow(x):
        for _ in range(8):
            x = x @ x / 600.0
        return x

    return slow(jnp.ones((600, 600)))


def kind(lib, x):
    return lib.ShapeDtypeStruct(x.shape, x.dtype)


def sine(lib):
    return lambda x: lib.pure_callback(
        lambda v: np.sin(np.asarray(v)), kind(lib, x), x, vmap_method="expand_dims"
    )


def with_keywords(lib):
    def f(x):
        out = {"total": kind(lib, x[0]), "both": [kind(lib, x), kind(lib, x)]}
        return lib.pure_callback(
            lambda tree, shift: {
                "total": np.asarray(tree["x"]).sum() + np.asarray(shift),
                "both": [np.asarray(tree["x"]), -np.asarray(tree["x"])],
            },
            out,
            {"x": x},
            shift=x[0],
        )

    return f


def in_jit(lib):
    @lib.jit
    def inner(x):
        return sine(lib)(x) * 2.0

    return lib.jit(lambda x: inner(x) + inner(x + 1.0))


def by_custom_jvp(lib):
    @lib.custom_jvp
    def f(x):
        return sine(lib)(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        slope = lib.pure_callback(
            lambda v: np.cos(np.asarray(v)), kind(lib, x), x, vmap_method="expand_dims"
        )
        return f(x), t * slope

    return f


def io_sum(lib, ordered=False):
    def f(x):
        return lib.experimental.io_callback(
            lambda v: np.asarray(v).sum(), kind(lib, x[0]), x, ordered=ordered
        )

    return f


@pytest.mark.parametrize("program", [sine, with_keywords, in_jit, by_custom_jvp])
def test_values_and_text(program):
    same_values(program, X)
    same_text(program, X)


@pytest.mark.parametrize("ordered", [False, True])
def test_io_values_and_text(ordered):
    same_values(lambda lib: io_sum(lib, ordered), X)
    same_values(lambda lib: lib.jit(io_sum(lib, ordered)), X)
    same_text(lambda lib: lib.jit(io_sum(lib, ordered)), X)


def test_derivatives_come_from_custom_rules():
    for transform in (
        lambda lib: lib.grad(lambda x: by_custom_jvp(lib)(x).sum()),
        lambda lib: lib.jit(lib.grad(lambda x: by_custom_jvp(lib)(x).sum())),
        lambda lib: lib.vmap(lib.grad(by_custom_jvp(lib))),
        lambda lib: lambda x: lib.jvp(by_custom_jvp(lib), (x,), (x,)),
    ):
        same_values(transform, X)
        same_text(transform, X)


@pytest.mark.parametrize("method", [*METHODS, "sequential", "sequential_unrolled"])
@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (1, 0), (0, 0)])
def test_batched_values(method, in_axes):
    """For a function that broadcasts, every method gives what a loop gives."""
    shapes = {0: (2, 3), 1: (3, 2), None: (3,)}
    x = np.arange(6, dtype=np.float32)[: np.prod(shapes[in_axes[0]])]
    y = np.arange(6, dtype=np.float32)[: np.prod(shapes[in_axes[1]])] * 10
    if method == "legacy_vectorized" and None in in_axes and in_axes[0] is None:
        pytest.skip("the function itself must then find the batch axis")

    def program(lib):
        def f(x, y):
            return lib.pure_callback(
                lambda x, y: np.asarray(x) + np.asarray(y),
                kind(lib, x),
                x,
                y,
                vmap_method=method,
            )

        return lib.vmap(f, in_axes=in_axes)

    same_values(program, x.reshape(shapes[in_axes[0]]), y.reshape(shapes[in_axes[1]]))


@pytest.mark.parametrize("method", [*METHODS, "sequential", "sequential_unrolled"])
def test_batched_text(method):
    def program(lib):
        def f(x, y):
            return lib.pure_callback(
                lambda x, y: np.asarray(x) + np.asarray(y),
                kind(lib, x),
                x,
                y,
                vmap_method=method,
            )

        return lib.vmap(f, in_axes=(1, None))

    same_text(program, BATCH, X[:2])


def test_what_the_methods_call():
    """How often the function is called, and with which shapes."""

    def program(method):
        def run(lib):
            seen = []

            def function(x, y):
                seen.append((np.shape(x), np.shape(y)))
                return np.asarray(x) + np.asarray(y)

            def f(x, y):
                return lib.pure_callback(
                    function, kind(lib, x), x, y, vmap_method=method
                )

            np.asarray(lib.vmap(f, in_axes=(0, None))(BATCH, X))
            return seen

        return run

    for method in (*METHODS, "sequential", "sequential_unrolled"):
        ours, theirs = (program(method)(lib) for lib in LIBRARIES)
        assert ours == theirs, method


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "sequential"])
def test_vmap_of_vmap(method):
    """Two batch axes, of which each argument has one: shapes seen, values, text."""
    seen = {}

    def program(lib):
        calls = seen.setdefault(lib.__name__, [])

        def function(x, y):
            calls.append((np.shape(x), np.shape(y)))
            total = np.asarray(x) + np.asarray(y)
            return {"sum": total, "double": 2.0 * total}

        def f(x, y):
            out = {"sum": kind(lib, x), "double": kind(lib, x)}
            return lib.pure_callback(function, out, x, y, vmap_method=method)

        inner = lib.vmap(f, in_axes=(None, 0), out_axes={"sum": 0, "double": 1})
        return lib.vmap(inner, in_axes=(1, None))

    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), BATCH
    same_values(program, x, y)
    assert seen["minijax"] == seen["jax"]
    same_text(program, x, y)


def test_io_under_vmap_calls_for_each_example():
    same_values(lambda lib: lib.vmap(io_sum(lib)), BATCH)


def test_text_of_io_under_vmap():
    same_text(lambda lib: lib.vmap(io_sum(lib)), BATCH)


@pytest.mark.parametrize("jitted", [False, True])
def test_arguments_outlive_what_they_were_made_of(jitted):
    """A kept argument does not change when the array's memory is given away."""
    kept = []

    def look(x):
        minijax.experimental.io_callback(kept.append, None, x)

    over = minijax.jit(lambda x: x * 0.0 - 7.0, donate_argnums=0)
    for shift in range(5):
        x = jnp.asarray(X) + shift
        (minijax.jit(look) if jitted else look)(x)
        minijax.effects_barrier()
        over(x).block_until_ready()
    for shift, argument in enumerate(kept):
        np.testing.assert_array_equal(argument, X + shift)


def test_arguments_are_arrays_of_the_callback_itself():
    kept = []

    def keep(x):
        kept.append(x)
        assert isinstance(x, minijax.Array)
        with pytest.raises(ValueError):
            np.asarray(x)[0] = 7.0
        return np.asarray(x) * 2.0

    f = minijax.jit(lambda x: minijax.pure_callback(keep, kind(minijax, x), x) + 1.0)
    for shift in range(20):
        f(jnp.asarray(X + shift))
    gc.collect()
    for shift, argument in enumerate(kept):
        np.testing.assert_array_equal(argument, X + shift)


@pytest.mark.parametrize(
    "returned",
    [
        lambda x: np.asfortranarray(np.asarray(x)),
        lambda x: np.asarray(x)[::-1][::-1],
        lambda x: jnp.asarray(x) + 0.0,
        lambda x: np.asarray(x).astype(np.float64),
        lambda x: np.asarray(x).astype(">f4"),
    ],
)
def test_results_of_any_layout(returned):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    f = minijax.jit(lambda x: minijax.pure_callback(returned, kind(minijax, x), x.T))
    with pytest.raises(minijax.errors.JaxRuntimeError):
        f(x)
    g = minijax.jit(lambda x: minijax.pure_callback(returned, kind(minijax, x.T), x.T))
    np.testing.assert_array_equal(g(x), x.T)


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "complex64"])
def test_dtypes(name):
    x = np.arange(4).astype(name)
    f = minijax.jit(lambda x: minijax.pure_callback(lambda v: v, kind(minijax, x), x))
    np.testing.assert_array_equal(f(x), x)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "int4"])
def test_small_dtypes(name):
    def program(lib):
        def f(x):
            small = x.astype(getattr(lib.numpy, name))
            out = lib.pure_callback(lambda v: v, kind(lib, small), small)
            return out.astype("float32")

        return lib.jit(f)

    same_values(program, np.arange(4, dtype=np.float32))


def test_64_bits():
    with minijax.enable_x64(True):
        x = np.arange(3.0)
        f = minijax.jit(
            lambda x: minijax.pure_callback(np.asarray, kind(minijax, x), x)
        )
        assert f(x).dtype == np.float64
        with pytest.raises(minijax.errors.JaxRuntimeError, match="float32"):
            minijax.pure_callback(
                lambda: 1.0, minijax.ShapeDtypeStruct((), "float32")
            ).block_until_ready()


def test_empty_and_none():
    nothing = np.zeros((0, 3), np.float32)
    same_values(
        lambda lib: lambda x: lib.pure_callback(lambda v: v, kind(lib, x), x), nothing
    )
    assert minijax.pure_callback(lambda v: None, None, 1.0) is None


# ----------------------------------------------------------------------------------
# Order and time
# ----------------------------------------------------------------------------------


def test_ordered_calls_keep_the_program_order():
    seen = []

    def note(value):
        seen.append(int(value))

    @minijax.jit
    def inner(x):
        minijax.experimental.io_callback(note, None, x * 2, ordered=True)
        return x + 1

    @minijax.jit
    def outer(x):
        minijax.experimental.io_callback(note, None, x, ordered=True)
        y = inner(x)
        minijax.experimental.io_callback(note, None, y, ordered=True)
        return inner(y)

    for start in range(10):
        outer(start * 10)
    minijax.effects_barrier()
    expected = []
    for start in range(0, 100, 10):
        expected += [start, 2 * start, start + 1, 2 * (start + 1)]
    assert seen == expected


def test_ordered_across_slow_programs():
    """A program without work of its own waits for the slow one before it."""
    seen = []

    @minijax.jit
    def first(x):
        minijax.experimental.io_callback(
            lambda v: seen.append("first"), None, x[0, 0], ordered=True
        )

    @minijax.jit
    def second():
        minijax.experimental.io_callback(
            lambda: seen.append("second"), None, ordered=True
        )

    for _ in range(4):
        first(array_that_comes_late())
        second()
    minijax.effects_barrier()
    assert seen == ["first", "second"] * 4


def test_barrier_waits_for_unordered_calls():
    import time

    seen = []

    def late(v):
        time.sleep(0.05)
        seen.append(float(v))

    minijax.jit(lambda x: minijax.experimental.io_callback(late, None, x))(3.0)
    minijax.effects_barrier()
    assert seen == [3.0]


def test_donated_arguments_and_tokens():
    seen = []

    def f(x, y):
        minijax.experimental.io_callback(
            lambda v: seen.append(np.asarray(v).copy()), None, x, ordered=True
        )
        return x + 1.0, x * y

    donating = minijax.jit(f, donate_argnums=0)
    x = jnp.arange(3.0)
    first, second = donating(x, jnp.ones(3))
    assert x.is_deleted()
    np.testing.assert_array_equal(first, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(second, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(seen[0], [0.0, 1.0, 2.0])


def test_large_closed_over_constants():
    """The executable's constants come after its tokens."""
    table = jnp.arange(1000.0)
    seen = []

    @minijax.jit
    def f(index):
        minijax.experimental.io_callback(
            lambda v: seen.append(float(v)), None, table[index], ordered=True
        )
        return table[index] * 2.0

    assert float(f(7)) == 14.0
    assert float(f(500)) == 1000.0
    minijax.effects_barrier()
    assert seen == [7.0, 500.0]


def test_refs_and_order_in_one_program():
    seen = []
    ref = minijax.new_ref(jnp.zeros(3))

    @minijax.jit
    def f(ref, x):
        ref[0] = x
        minijax.experimental.io_callback(
            lambda v: seen.append(float(v)), None, ref[0], ordered=True
        )
        ref[1] = x * 2.0
        return x

    f(ref, 5.0)
    f(ref, 6.0)
    minijax.effects_barrier()
    assert seen == [5.0, 6.0]
    np.testing.assert_array_equal(ref[...], [6.0, 12.0, 0.0])


def test_compiled_ahead_of_time():
    f = minijax.jit(lambda x: sine(minijax)(x) + io_sum(minijax, ordered=True)(x))
    compiled = f.lower(X).compile()
    np.testing.assert_allclose(compiled(X), np.sin(X) + X.sum(), rtol=1e-6)


def test_bessel_functions_by_their_recurrence():
    """J_v is called by scipy; its derivative is (J_(v-1) - J_(v+1)) / 2."""
    special = pytest.importorskip("scipy.special")

    def bessel(lib):
        def call(v, z):
            kind = lib.ShapeDtypeStruct(z.shape, z.dtype)
            return lib.pure_callback(
                lambda v, z: special.jv(v, z).astype(np.asarray(z).dtype),
                kind,
                v,
                z,
                vmap_method="broadcast_all",
            )

        jv = lib.custom_jvp(call, nondiff_argnums=(0,))

        @jv.defjvp
        def rule(v, primals, tangents):
            (z,), (t,) = primals, tangents
            return jv(v, z), t * (jv(v - 1, z) - jv(v + 1, z)) / 2.0

        return lambda z: jv(2, lib.numpy.asarray(z))

    z = np.linspace(0.5, 4.0, 5).astype(np.float32)
    for transform in (
        lambda lib: lib.jit(bessel(lib)),
        lambda lib: lib.vmap(lib.grad(bessel(lib))),
        lambda lib: lib.jit(lib.vmap(lib.hessian(bessel(lib)))),
        lambda lib: lib.vmap(lib.grad(lib.grad(lib.grad(bessel(lib))))),
    ):
        same_values(transform, z)
        same_text(transform, z)
    np.testing.assert_allclose(bessel(minijax)(z), special.jv(2, z), rtol=1e-5)


def test_callbacks_compute_with_minijax():
    def inside(x):
        return minijax.jit(lambda v: jnp.sin(v) @ v)(x)

    f = minijax.jit(
        lambda x: minijax.pure_callback(
            inside, minijax.ShapeDtypeStruct((), "float32"), x
        )
    )
    x = jnp.linspace(0.0, 1.0, 200)
    for _ in range(5):
        np.testing.assert_allclose(f(x), np.sin(x) @ np.asarray(x), rtol=1e-5)


def test_threads():
    """Eight threads call one program; each sees its own calls in order."""
    seen = {}

    def note(thread, step):
        seen.setdefault(int(thread), []).append(int(step))
        return np.float32(step)

    @minijax.jit
    def f(thread, step):
        return minijax.experimental.io_callback(
            note, minijax.ShapeDtypeStruct((), "float32"), thread, step, ordered=True
        )

    failures = []

    def work(number):
        try:
            for step in range(25):
                assert float(f(number, step)) == step
            minijax.effects_barrier()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert seen == {k: list(range(25)) for k in range(8)}


# ----------------------------------------------------------------------------------
# Life of callbacks
# ----------------------------------------------------------------------------------


class _Doubles:
    def __call__(self, x):
        return np.asarray(x) * 2.0


def test_the_executable_keeps_the_callback_alive():
    callback = _Doubles()
    alive = weakref.ref(callback)
    f = minijax.jit(lambda x, c=callback: minijax.pure_callback(c, kind(minijax, x), x))
    compiled = f.lower(X).compile()
    del callback, f
    gc.collect()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X), X * 2.0)
    assert alive() is not None
    del compiled
    gc.collect()
    assert alive() is None


def test_programs_with_callbacks_are_not_kept_on_disk(tmp_path):
    """A file cannot hold a function of this process."""
    keep_all = override("persistent_cache_min_compile_time_secs", 0.0)
    with override("compilation_cache_dir", str(tmp_path)), keep_all:
        for number in (1.0, 2.0):
            f = minijax.jit(
                lambda x, n=number: minijax.pure_callback(
                    lambda v: np.asarray(v) + np.float32(n), kind(minijax, x), x
                )
            )
            np.testing.assert_array_equal(f(X), X + number)
        assert list(tmp_path.iterdir()) == []
        minijax.jit(lambda x: x * 3.0)(X).block_until_ready()
        assert len(list(tmp_path.iterdir())) == 1


def test_nothing_is_compiled_outside_of_programs():
    seen = []
    before = {k: len(p.executables) for k, p in all_primitives.items()}
    for number in range(5):
        out = minijax.pure_callback(
            lambda x, n=number: (seen.append(n), np.asarray(x) + n)[1],
            kind(minijax, X),
            X,
        )
        np.testing.assert_array_equal(out, X + number)
    assert seen == [0, 1, 2, 3, 4]
    assert {k: len(p.executables) for k, p in all_primitives.items()} == before


def test_order_between_programs_and_calls_outside():
    seen = []

    @minijax.jit
    def program(x):
        minijax.experimental.io_callback(
            lambda v: seen.append("program"), None, x[0, 0], ordered=True
        )

    for _ in range(3):
        program(array_that_comes_late())
        minijax.experimental.io_callback(
            lambda: seen.append("outside"), None, ordered=True
        )
    assert seen == ["program", "outside"] * 3


# ----------------------------------------------------------------------------------
# Errors
# ----------------------------------------------------------------------------------


def scalar(lib):
    return lib.ShapeDtypeStruct((), np.float32)


BAD_CALLS = {
    "raises": lambda lib: lib.pure_callback(lambda: 1 / 0, scalar(lib)),
    "shape": lambda lib: lib.pure_callback(lambda: np.zeros(3), scalar(lib)),
    "rank": lambda lib: lib.pure_callback(lambda: np.zeros(1), scalar(lib)),
    "dtype": lambda lib: lib.pure_callback(lambda: np.int32(1), scalar(lib)),
    "too few": lambda lib: lib.pure_callback(lambda: None, scalar(lib)),
    "too many": lambda lib: lib.pure_callback(lambda: (1.0, 2.0), scalar(lib)),
    "text": lambda lib: lib.pure_callback(lambda: "a", scalar(lib)),
    "object": lambda lib: lib.pure_callback(lambda: object(), scalar(lib)),
    "io raises": lambda lib: lib.experimental.io_callback(
        lambda: 1 / 0, scalar(lib), ordered=True
    ),
    "64 bits": lambda lib: lib.pure_callback(
        lambda: 1.0, lib.ShapeDtypeStruct((), np.float64)
    ),
    "no type": lambda lib: lib.pure_callback(lambda: 1.0, 1.0),
    "sharding": lambda lib: lib.pure_callback(lambda: 1.0, scalar(lib), sharding="cpu"),
    "io sharding": lambda lib: lib.experimental.io_callback(
        lambda: 1.0, scalar(lib), sharding=7
    ),
    "argument": lambda lib: lib.pure_callback(lambda a: 1.0, scalar(lib), "a"),
    "method": lambda lib: lib.pure_callback(
        lambda: 1.0, scalar(lib), vmap_method="fast"
    ),
    "vmap": lambda lib: lib.vmap(
        lambda x: lib.pure_callback(lambda v: v, scalar(lib), x)
    )(X),
    "grad": lambda lib: lib.grad(
        lambda x: lib.pure_callback(lambda v: v, scalar(lib), x)
    )(1.0),
    "jit grad": lambda lib: lib.grad(
        lib.jit(lambda x: lib.pure_callback(lambda v: v, scalar(lib), x))
    )(1.0),
    "io grad": lambda lib: lib.grad(
        lambda x: lib.experimental.io_callback(lambda v: v, scalar(lib), x)
    )(1.0),
    "ordered vmap": lambda lib: lib.vmap(
        lambda x: lib.experimental.io_callback(
            lambda v: v, scalar(lib), x, ordered=True
        )
    )(X),
    "linear": lambda lib: lib.linear_transpose(
        lambda x: lib.pure_callback(lambda v: v, scalar(lib), x), 1.0
    )(1.0),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_error_classes(name):
    def program(lib):
        return lambda: lib.block_until_ready(BAD_CALLS[name](lib))

    same_error(program)


def _adds_by_python(a, b):
    kind = minijax.ShapeDtypeStruct((), np.float32)
    return minijax.pure_callback(lambda a, b: np.add(a, b), kind, a, b)


def _adds_and_prints(a, b):
    minijax.debug.print("{}", a)
    return a + b


@pytest.mark.parametrize(
    "add", [_adds_by_python, _adds_and_prints, minijax.jit(_adds_by_python)]
)
def test_functions_inside_of_operations_cannot_call(add):
    """XLA would end the process while it compiles them."""
    programs = (
        lambda x: minijax.lax.reduce(x, np.float32(0), add, (0,)),
        lambda x: minijax.lax.reduce_window(x, np.float32(0), add, (2,), (1,), "VALID"),
        lambda x: jnp.asarray(x).at[0].apply(lambda v: add(v, v)),
    )
    for program in programs:
        with pytest.raises(NotImplementedError, match="Cannot lower effectful"):
            program(X)
        with pytest.raises(NotImplementedError, match="Cannot lower effectful"):
            minijax.jit(program)(X)


@pytest.mark.parametrize("jitted", [False, True])
def test_debug_nans_looks_at_results(jitted):
    def program(lib):
        def f(x):
            return lib.pure_callback(lambda v: np.float32(np.nan), scalar(lib), x)

        def run():
            with lib.debug_nans(True):
                return (lib.jit(f) if jitted else f)(1.0)

        return run

    same_error(program, match="pure_callback")


@pytest.mark.parametrize("jitted", [False, True])
def test_the_cause_is_what_the_callback_raised(jitted):
    def users_function(x):
        raise LookupError(f"nothing at {float(x)}")

    def f(x):
        return minijax.pure_callback(users_function, scalar(minijax), x)

    with pytest.raises(minijax.errors.JaxRuntimeError, match="nothing at 3.0") as info:
        np.asarray((minijax.jit(f) if jitted else f)(3.0))
    cause = info.value.__cause__
    assert type(cause) is LookupError
    (frame,) = traceback.extract_tb(cause.__traceback__)
    assert (frame.name, frame.filename) == ("users_function", __file__)
    (note,) = cause.__notes__
    assert "return minijax.pure_callback(users_function, scalar(minijax), x)" in note


@pytest.mark.parametrize("wait", [np.asarray, minijax.block_until_ready, float])
def test_the_cause_when_the_program_runs_in_the_background(wait):
    @minijax.jit
    def f(x):
        kind = minijax.ShapeDtypeStruct((), np.float32)
        return minijax.pure_callback(lambda v: [7.0][int(v)], kind, x[0, 0])

    assert float(f(jnp.zeros((600, 600)))) == 7.0
    with pytest.raises(minijax.errors.JaxRuntimeError) as info:
        wait(f(array_that_comes_late()))
    assert type(info.value.__cause__) is IndexError


# jax puts `__array__` on jaxlib's arrays: without jax, NumPy does not see the failure.
_READ_AFTER_A_FAILURE = (
    FORBID_JAX
    + """
import copy, operator, pickle, time
import numpy as np
import minijax, minijax.numpy as jnp
from minijax.sharding import AxisType, NamedSharding, PartitionSpec as P

DEVICES = minijax.devices()
mesh = minijax.make_mesh((len(DEVICES),), ("i",), axis_types=(AxisType.Auto,))

def place(x, spec):
    return minijax.device_put(x, NamedSharding(mesh, spec)) if DEVICES[1:] else x

def fail(x):
    time.sleep(0.03)
    raise LookupError("nothing there")

@minijax.jit
def failing(late, x):
    out = minijax.pure_callback(fail, minijax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return out + (late[0, 0] * 0).astype(x.dtype)

big = place(jnp.ones((900, 900)), P())
number, row = np.int32(3), np.arange(4, dtype=np.int32)
ways = {
    "asarray": (np.asarray, row),
    "array": (np.array, row),
    "asarray_float": (lambda y: np.asarray(y, np.float32), row),
    "float": (float, number),
    "int": (int, number),
    "bool": (bool, number),
    "complex": (complex, number),
    "index": (operator.index, number),
    "round": (lambda y: int(round(y)), number),
    "hex": (hex, number),
    "tolist": (lambda y: y.tolist(), row),
    "item": (lambda y: y.item(), number),
    "tobytes": (lambda y: y.tobytes(), row),
    "repr": (repr, row),
    "str": (str, row),
    "format": (format, row),
    "device_get": (minijax.device_get, row),
    "block": (lambda y: y.block_until_ready(), row),
    "blocks": (minijax.block_until_ready, row),
    "host_copy": (lambda y: (y.copy_to_host_async(), np.asarray(y)), row),
    "indexing": (lambda y: int(y[0]), row),
    "iteration": (lambda y: [int(one) for one in y], row),
    "contains": (lambda y: 3 in y, row),
    "truth": (lambda y: bool((y == 0).all()), row),
    "dlpack": (lambda y: y.__dlpack__(), row),
    "from_dlpack": (np.from_dlpack, row),
    "numpy_ufunc": (lambda y: np.asarray(np.add(y, 1)), row),
    "pickle": (pickle.dumps, row),
    "deepcopy": (copy.deepcopy, row),
    "shard": (lambda y: np.asarray(y.addressable_shards[0].data), row),
    "part": (lambda y: np.asarray(y.addressable_data(0)), row),
    "moved": (lambda y: np.asarray(minijax.device_put(y, DEVICES[-1])), row),
    "closed_over": (lambda y: minijax.jit(lambda: y + 1)(), row),
    "of_two_bytes": (np.asarray, row.astype(jnp.bfloat16)),
    "key": (lambda y: repr(minijax.random.wrap_key_data(y)), np.zeros(2, np.uint32)),
    "got_key": (
        lambda y: minijax.device_get(minijax.random.wrap_key_data(y)),
        np.zeros(2, np.uint32),
    ),
}
for name, (read, content) in ways.items():
    spec = P("i") if content.shape and content.dtype != np.uint32 else P()
    x = place(jnp.array(content), spec)
    # Once, the program may be launched so late that the launch itself raises.
    for attempt in range(3):
        try:
            y = failing(big @ big, x)
        except minijax.errors.JaxRuntimeError:
            continue
        try:
            found = read(y)
        except minijax.errors.JaxRuntimeError as error:
            found = type(error.__cause__).__name__
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        print(name, found)
        break
    else:
        print(name, "raised by the launch")
print("end", len(ways))
"""
)


@pytest.mark.parametrize("devices", [1, 2])
def test_every_way_of_reading_raises_what_the_program_did(devices):
    *lines, end = run(_READ_AFTER_A_FAILURE, devices=devices).splitlines()
    assert end == f"end {len(lines)}"
    assert [line for line in lines if line.split(" ", 1)[1] != "LookupError"] == []


def test_barrier_raises_what_nobody_read_and_then_forgets():
    @minijax.jit
    def f(x):
        minijax.experimental.io_callback(
            lambda v: [None][int(v)], None, x[0, 0], ordered=True
        )

    f(jnp.zeros((600, 600)))
    with pytest.raises(minijax.errors.JaxRuntimeError) as info:
        f(array_that_comes_late())
        minijax.effects_barrier()
    assert type(info.value.__cause__) is IndexError
    minijax.effects_barrier()
    seen = []
    minijax.experimental.io_callback(lambda: seen.append(1), None, ordered=True)
    minijax.effects_barrier()
    assert seen == [1]


_LAST_PRINT = """
    import minijax, minijax.numpy as jnp
    from minijax.experimental import io_callback

    @minijax.jit
    def slow(x):
        for _ in range(8):
            x = x @ x / 600.0
        return x

    show = minijax.jit(lambda x: minijax.debug.print("x is {}", x[0, 0]))
    show(slow(jnp.ones((600, 600))))
    print("the program ends", flush=True)
"""


_TWO_DEVICES = """
    import numpy as np
    import minijax, minijax.numpy as jnp
    from minijax.experimental import io_callback

    seen = []
    slow = minijax.jit(lambda x: x @ x @ x @ x @ x / 300.0**4)
    note = minijax.jit(
        lambda x: (io_callback(lambda v: seen.append(round(float(v))), None, x[0, 0],
                               ordered=True), x)[1]
    )
    for step in range(4):
        for device in minijax.devices()[:2]:
            x = minijax.device_put(jnp.ones((300, 300)), device)
            assert note(slow(x) * step).devices() == {device}
            assert note(x * -step).devices() == {device}
    kind = minijax.ShapeDtypeStruct((3,), "float32")
    x = minijax.device_put(jnp.arange(3.0), minijax.devices()[1])
    out = minijax.pure_callback(np.sin, kind, x)
    assert out.devices() == {minijax.devices()[1]} and out.committed
    minijax.effects_barrier()
    print(seen)
"""


def test_order_from_device_to_device():
    expected = [v for step in range(4) for _ in range(2) for v in (step, -step)]
    assert run(_TWO_DEVICES, devices=2).strip() == str(expected)


def test_the_interpreter_waits_for_the_last_print():
    lines = run(_LAST_PRINT).splitlines()
    assert sorted(lines) == ["the program ends", "x is 1.0"]


@pytest.mark.parametrize("name", ["shape", "dtype", "too few", "too many"])
def test_wrong_results_name_both_types(name):
    with pytest.raises(minijax.errors.JaxRuntimeError) as info:
        np.asarray(BAD_CALLS[name](minijax))
    message = str(info.value.__cause__)
    assert "Expected" in message
    assert "float32[]" in message
    assert "test_callbacks.py" in message


def test_wrong_results_never_reach_memory():
    """A result a million times too large, many times over: an error each time."""
    sizes = iter([1, 10**6, 0, 3, 10**6] * 8)

    def function():
        return np.ones(next(sizes), np.float32)

    f = minijax.jit(
        lambda: minijax.pure_callback(
            function, minijax.ShapeDtypeStruct((1,), "float32")
        )
    )
    neighbours = [jnp.arange(8.0) for _ in range(50)]
    outcomes = []
    for _ in range(40):
        try:
            outcomes.append(f().shape)
        except minijax.errors.JaxRuntimeError:
            outcomes.append("error")
    assert outcomes == [(1,), "error", "error", "error", "error"] * 8
    for neighbour in neighbours:
        np.testing.assert_array_equal(neighbour, np.arange(8.0))


# ----------------------------------------------------------------------------------
# Other platforms
# ----------------------------------------------------------------------------------


def test_lowered_for_a_gpu():
    f = minijax.jit(lambda x: sine(minijax)(x) + io_sum(minijax, ordered=True)(x))
    text = f.trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("@xla_ffi_python_gpu_callback") == 2
    assert "!stablehlo.token" in text


def test_tpu_says_that_it_cannot():
    f = minijax.jit(sine(minijax))
    with pytest.raises(ValueError, match="cannot be compiled for tpu"):
        f.trace(X).lower(lowering_platforms=("tpu",))


@pytest.mark.parametrize("jitted", [False, True])
def test_a_callback_leaves_no_flag_behind(jitted):
    """Nothing stays in the thread that it ran in, and tracing is keyed as before."""
    before = dict(state.__dict__), state.trace_key
    shape = minijax.ShapeDtypeStruct((), np.float32)

    def program(x):
        return minijax.pure_callback(lambda x: np.float32(x) + 1, shape, x)

    assert float((minijax.jit(program) if jitted else program)(1.0)) == 2.0
    assert (dict(state.__dict__), state.trace_key) == before
