"""Callbacks and prints in loops and branches: values, order, text, transformations."""

import jax
import numpy as np
import pytest

import minijax
from minijax.compile.tokens import runtime_tokens
from tests.programs.sides import LIBRARIES, same_error, same_text, same_values

X = np.array([0.5, -1.0, 2.0], np.float32)
BATCH = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """What a failed program leaves is not met by the next test."""
    yield
    runtime_tokens.clear()
    jax._src.dispatch.runtime_tokens.clear()


def in_scan(lib, unroll=1, reverse=False):
    def f(x):
        def step(carry, row):
            lib.debug.print("step {} {}", carry, row, ordered=True)
            carry = carry + lib.numpy.sin(row)
            return carry, carry * row

        carry, rows = lib.lax.scan(
            step, np.float32(0.0), x, unroll=unroll, reverse=reverse
        )
        lib.debug.print("end {}", carry, ordered=True)
        return carry + rows.sum()

    return f


def in_while(lib):
    def f(x):
        def body(state):
            i, y = state
            lib.debug.print("body {} {}", i, y, ordered=True)
            return i + 1, y * 1.5

        return lib.lax.while_loop(lambda s: s[0] < 3, body, (0, x[0]))[1]

    return f


def in_condition(lib):
    def f(x):
        def going_on(state):
            lib.debug.print("test {}", state[0], ordered=True)
            return state[0] < 3

        def body(state):
            lib.debug.print("body {}", state[0], ordered=True)
            return state[0] + 1, state[1] * 1.5

        return lib.lax.while_loop(going_on, body, (0, x[0]))[1]

    return f


def in_fori(lib):
    def f(x):
        def body(i, y):
            lib.debug.callback(
                lambda i, y: print(f"fori {i} {y:.3f}"), i, y, ordered=True
            )
            return y * lib.numpy.asarray(x)[i]

        return lib.lax.fori_loop(0, 3, body, np.float32(1.0))

    return f


def in_branches(lib):
    def f(x):
        def yes(v):
            lib.debug.print("yes {}", v, ordered=True)
            return v * 2.0

        def no(v):
            lib.debug.print("no {}", v, ordered=True)
            return lib.numpy.sin(v)

        y = lib.lax.cond(x[0] > 0.0, yes, no, x)
        z = lib.lax.switch(1, [yes, no, lambda v: v], y)
        lib.debug.print("after {}", z, ordered=True)
        return z.sum()

    return f


def nested(lib):
    def f(x):
        def step(carry, row):
            carry = lib.lax.cond(
                row > 0.0,
                lambda c: in_while(lib)(c[None] + row),
                lambda c: c - 1.0,
                carry,
            )
            lib.debug.print("carry {}", carry, ordered=True)
            return carry, None

        return lib.lax.scan(step, 0.0, x)[0]

    return f


PROGRAMS = {
    "scan": in_scan,
    "unrolled": lambda lib: in_scan(lib, unroll=2),
    "reverse": lambda lib: in_scan(lib, reverse=True),
    "while": in_while,
    "condition": in_condition,
    "fori": in_fori,
    "branches": in_branches,
    "nested": nested,
}
DIFFERENTIABLE = ("scan", "unrolled", "reverse", "fori", "branches")


def printed(lib, capsys, fun, *args):
    """The lines that a call prints, and its values."""
    capsys.readouterr()
    out = lib.block_until_ready(fun(*args))
    lib.effects_barrier()
    leaves = [np.asarray(leaf) for leaf in lib.tree_util.tree_leaves(out)]
    return capsys.readouterr().out.splitlines(), leaves


def same_prints(make, capsys, *args, least=3):
    ours, theirs = (printed(lib, capsys, make(lib), *args) for lib in LIBRARIES)
    assert ours[0] == theirs[0]
    assert len(ours[0]) >= least
    for our_leaf, their_leaf in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(our_leaf, their_leaf, rtol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("jitted", [False, True])
def test_order_in_control_flow(name, jitted, capsys):
    def make(lib):
        return lib.jit(PROGRAMS[name](lib)) if jitted else PROGRAMS[name](lib)

    same_prints(make, capsys, X)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_mode(name, capsys):
    def make(lib):
        return lib.jit(lambda x: lib.jvp(PROGRAMS[name](lib), (x,), (x,)))

    same_prints(make, capsys, X)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name, capsys):
    same_prints(lambda lib: lib.jit(lib.grad(PROGRAMS[name](lib))), capsys, X)
    same_prints(lambda lib: lib.grad(PROGRAMS[name](lib)), capsys, X)


def checkpointed_scan(lib):
    def f(x):
        @lib.checkpoint
        def step(carry, row):
            lib.debug.print("step {}", carry)
            return lib.numpy.sin(carry * row), None

        return lib.lax.scan(step, 1.0, x)[0]

    return lib.jit(lib.grad(f))


def test_gradient_of_a_checkpointed_scan(capsys):
    ours, theirs = (
        printed(lib, capsys, checkpointed_scan(lib), X) for lib in LIBRARIES
    )
    assert sorted(ours[0]) == sorted(theirs[0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts(name):
    program = PROGRAMS[name]
    same_text(program, X)
    same_text(lambda lib: lambda x: lib.jvp(program(lib), (x,), (x,)), X)
    same_text(lambda lib: lib.vmap(program(lib)), BATCH)
    if name in DIFFERENTIABLE:
        same_text(lambda lib: lib.grad(program(lib)), X)


def test_text_of_a_checkpointed_scan():
    same_text(checkpointed_scan, X)


@pytest.mark.parametrize("name", ["scan", "fori", "branches", "while"])
def test_batched(name, capsys):
    def make(lib):
        return lib.jit(lib.vmap(PROGRAMS[name](lib)))

    same_prints(make, capsys, BATCH)


def io_in_loop(lib, ordered):
    def f(x):
        def step(carry, row):
            out = lib.experimental.io_callback(
                lambda c, r: np.asarray(c) + np.asarray(r),
                lib.ShapeDtypeStruct((), np.float32),
                carry,
                row,
                ordered=ordered,
            )
            return out, out * 2.0

        return lib.lax.scan(step, np.float32(0.0), x)

    return f


def pure_in_loops(lib):
    def f(x):
        kind = lib.ShapeDtypeStruct((), np.float32)
        double = lambda v: lib.pure_callback(
            lambda v: np.asarray(v) * 2.0, kind, v, vmap_method="sequential"
        )
        ys = lib.lax.map(double, x)
        z = lib.lax.while_loop(lambda v: v < 100.0, double, x[0])
        return ys, lib.lax.cond(z > 0, double, lambda v: v, z)

    return f


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: io_in_loop(lib, False),
        lambda lib: io_in_loop(lib, True),
        pure_in_loops,
        lambda lib: lib.vmap(io_in_loop(lib, False)),
        lambda lib: lib.vmap(lambda x: pure_in_loops(lib)(x)),
    ],
)
def test_values_in_loops(make):
    x = BATCH[1] if "vmap" not in make.__code__.co_names else BATCH + 1.0
    same_values(make, x)
    same_values(lambda lib: lib.jit(make(lib)), x)


@pytest.mark.parametrize("make", [lambda lib: io_in_loop(lib, True), pure_in_loops])
def test_texts_of_values(make):
    same_text(make, BATCH[1])
    same_text(lambda lib: lib.jit(make(lib)), BATCH[1])


def test_texts_of_batches():
    same_text(lambda lib: lib.vmap(io_in_loop(lib, False)), BATCH)
    same_text(lambda lib: lib.vmap(pure_in_loops(lib)), BATCH)


# What JAX 0.10.2 does otherwise, by accident.


def test_io_callbacks_in_differentiated_scans_are_not_lost():
    """JAX leaves them out of the forward pass of a scan, and of nothing else."""

    def calls(lib):
        seen = []

        def step(carry, row):
            lib.experimental.io_callback(
                lambda v: seen.append(float(v)), None, lib.lax.stop_gradient(row)
            )
            return carry * lib.numpy.sin(row), None

        f = lambda x: lib.lax.scan(step, np.float32(1.0), x)[0]
        lib.block_until_ready(lib.grad(f)(X))
        lib.effects_barrier()
        return sorted(seen)

    assert calls(minijax) == sorted(X.tolist())
    assert calls(jax) in ([], sorted(X.tolist()))


def test_examples_stop_where_their_ordered_condition_says():
    """With a print in the condition, JAX goes on for examples that have stopped."""

    def run(lib):
        def going_on(x):
            lib.debug.print("{}", x, ordered=True)
            return x < 3.0

        f = lambda x: lib.lax.while_loop(going_on, lambda v: v + 1.0, x)
        return np.asarray(lib.vmap(f)(X))

    np.testing.assert_array_equal(run(minijax), [3.5, 3.0, 3.0])


def io_under_cond(lib):
    return lambda p, x: lib.lax.cond(
        p > 0,
        lambda v: lib.experimental.io_callback(
            np.asarray, lib.ShapeDtypeStruct((), np.float32), v
        ),
        lambda v: v,
        x,
    )


def io_in_while(lib, ordered):
    def body(state):
        lib.experimental.io_callback(lambda v: None, None, state, ordered=ordered)
        return state + 1.0

    return lambda x: lib.lax.while_loop(lambda s: s < 3.0, body, x)


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lambda: lib.vmap(io_under_cond(lib))(X, X),
        lambda lib: lambda: lib.vmap(io_under_cond(lib), in_axes=(None, 0))(1.0, X),
        lambda lib: lambda: lib.vmap(io_in_while(lib, False))(X),
        lambda lib: lambda: lib.vmap(io_in_while(lib, True))(X),
        lambda lib: lambda: lib.vmap(io_in_loop(lib, True))(BATCH),
        lambda lib: lambda: lib.grad(lambda x: io_in_loop(lib, False)(x)[0])(X),
    ],
)
def test_errors(make):
    same_error(make)


def test_a_failing_step_ends_the_loop():
    seen = []

    def note(value):
        seen.append(int(value))
        if value == 3:
            raise LookupError("three")

    @minijax.jit
    def f():
        def body(i, x):
            minijax.experimental.io_callback(note, None, i, ordered=True)
            return x + 1

        return minijax.lax.fori_loop(0, 10, body, 0)

    with pytest.raises(minijax.errors.JaxRuntimeError) as info:
        f().block_until_ready()
    assert type(info.value.__cause__) is LookupError
    assert seen == [0, 1, 2, 3]
