"""cond, switch, while_loop, fori_loop, scan, map: the same as in JAX."""

import gc
import weakref

import jax
import numpy as np
import pytest

import minijax
from tests.programs.sides import LIBRARIES, same_error, same_text, same_values

XS = np.arange(1, 6, dtype=np.float32) / 3
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 7


def step(lib):
    return lambda c, x: (c + lib.numpy.sin(x) * c, c * x)


def scanned(lib, **options):
    return lambda x: lib.lax.scan(step(lib), x[0], x, **options)


def branches(lib):
    return lambda x: lib.lax.cond(x > 0, lib.numpy.sin, lambda x: x * x, x)


def newton(lib):
    """The square root by a `while` that stops when it is good enough."""

    def body(state):
        i, y, x = state
        return i + 1, (y + x / y) / 2, x

    def goes_on(state):
        i, y, x = state
        return (abs(y * y - x) > 1e-6) & (i < 30)

    return lambda x: lib.lax.while_loop(goes_on, body, (0, x, x))[1]


def counted(lib):
    return lambda n, x: lib.lax.fori_loop(0, n, lambda i, c: c * x + i, 1.0)


def fixed(lib):
    return lambda x: lib.lax.fori_loop(0, 4, lambda i, c: c * x + i, 1.0)


def layers(lib):
    """A network whose layers are the rows of its weights."""

    def loss(w):
        def layer(c, wl):
            h = lib.numpy.tanh(wl @ c)
            return h + c * lib.numpy.cos(h), None

        return (lib.lax.scan(layer, w[0, 0], w)[0] ** 2).sum()

    return loss


def one_after_the_other(lib):
    def loss(x):
        _, ys = lib.lax.scan(lambda c, r: (c * r, lib.numpy.cos(c)), 1.0, x)
        return lib.lax.scan(lambda c, r: (c * lib.numpy.sin(r), c), 1.0, ys)[0]

    return loss


UNROLLS = [1, 2, 3, 5, True, 0]
SQUARES = np.arange(27, dtype=np.float32).reshape(3, 3, 3) / 30


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", UNROLLS)
def test_scan_in_every_unrolling(reverse, unroll):
    options = {"reverse": reverse, "unroll": unroll}
    same_values(lambda lib: scanned(lib, **options), XS)
    same_values(
        lambda lib: lib.jit(lib.grad(lambda x: scanned(lib, **options)(x)[0])), XS
    )


def last(lib, **options):
    return lambda x: scanned(lib, **options)(x)[0]


TRANSFORMED = {
    "scan": (lambda lib: scanned(lib), XS),
    "scan under jvp": (lambda lib: lambda x: lib.jvp(scanned(lib), (x,), (x,)), XS),
    "scan under grad": (lambda lib: lib.grad(last(lib)), XS),
    "scan under grad, reversed": (lambda lib: lib.grad(last(lib, reverse=True)), XS),
    "hessian of scan": (lambda lib: lib.hessian(last(lib)), XS),
    "scan under vmap": (lambda lib: lib.vmap(scanned(lib), in_axes=1), ROWS),
    "vmap of grad of scan": (lambda lib: lib.vmap(lib.grad(last(lib))), ROWS),
    "grad of vmap of scan": (
        lambda lib: lib.grad(lambda x: lib.vmap(last(lib))(x).sum()),
        ROWS,
    ),
    "checkpointed scan": (lambda lib: lib.grad(lib.checkpoint(last(lib))), XS),
    "checkpointed layers": (lambda lib: lib.grad(lib.checkpoint(layers(lib))), SQUARES),
    "checkpointed layers, products saved": (
        lambda lib: lib.grad(
            lib.checkpoint(layers(lib), policy=lib.checkpoint_policies.dots_saveable)
        ),
        SQUARES,
    ),
    "two checkpointed scans": (
        lambda lib: lib.grad(lib.checkpoint(one_after_the_other(lib))),
        XS,
    ),
    "cond": (branches, 0.5),
    "cond under jvp": (
        lambda lib: lambda x: lib.jvp(branches(lib), (x,), (x,)),
        0.5,
    ),
    "cond under grad": (lambda lib: lib.grad(branches(lib)), 0.5),
    "cond under grad, other branch": (lambda lib: lib.grad(branches(lib)), -0.5),
    "cond under grad twice": (lambda lib: lib.grad(lib.grad(branches(lib))), 0.5),
    "cond under vmap": (lambda lib: lib.vmap(branches(lib)), XS - 1),
    "vmap of grad of cond": (lambda lib: lib.vmap(lib.grad(branches(lib))), XS - 1),
    "checkpointed cond": (lambda lib: lib.grad(lib.checkpoint(branches(lib))), 0.5),
    "while": (newton, 2.0),
    "while under jvp": (lambda lib: lambda x: lib.jvp(newton(lib), (x,), (1.0,)), 2.0),
    "while linearized": (
        lambda lib: lambda x: lib.linearize(newton(lib), x)[1](x),
        2.0,
    ),
    "while under vmap": (lambda lib: lib.vmap(newton(lib)), XS),
    "fori_loop": (fixed, 1.5),
    "fori_loop under grad": (lambda lib: lib.grad(fixed(lib)), 1.5),
    "fori_loop with unknown bounds": (
        lambda lib: lambda x: lib.jit(counted(lib))(4, x),
        1.5,
    ),
    "map": (lambda lib: lambda x: lib.lax.map(lambda r: r * 2, x), XS),
    "map in batches": (
        lambda lib: lambda x: lib.lax.map(lambda r: r * 2, x, batch_size=2),
        XS,
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_texts(name):
    same_text(*TRANSFORMED[name])


@pytest.mark.parametrize("name", TRANSFORMED)
def test_values(name):
    make, x = TRANSFORMED[name]
    same_values(make, x)
    same_values(lambda lib: lib.jit(make(lib)), x)


def test_a_branch_that_stands_twice_is_one_program():
    def make(lib):
        def double(x):
            return x * 2

        def more(x):
            return x + 1

        def program(p, i, x):
            x = lib.lax.cond(p, double, more, lib.lax.cond(p, double, more, x))
            return lib.lax.switch(i, [double, more, double], x)

        return program

    same_text(make, True, 1, 2.0)


def test_a_loop_used_twice_is_one_program():
    def make(lib):
        def body(i, c):
            return c * 2 + i

        return lambda x: lib.lax.fori_loop(0, 3, body, lib.lax.fori_loop(0, 3, body, x))

    same_text(make, 2.0)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch_clamps(index):
    same_values(
        lambda lib: (
            lambda i: lib.lax.switch(
                i, [lambda x: x, lambda x: x * 2, lambda x: x**3], 5.0
            )
        ),
        index,
    )


@pytest.mark.parametrize("pred", [True, False, 1, 0, 0.0, 2.5, np.bool_(True)])
def test_predicates(pred):
    same_values(
        lambda lib: lambda: lib.lax.cond(pred, lambda x: x * 2, lambda x: x + 1, 3.0)
    )


def test_closures_become_constants():
    def make(lib):
        def program(w, x):
            def body(c, r):
                return lib.numpy.tanh(w @ c) + r, lib.lax.cond(
                    r.sum() > 1, lambda: w[0, 0], lambda: c[0]
                )

            return lib.lax.scan(body, x[0], x)

        return program

    w = np.eye(3, dtype=np.float32) / 2
    same_text(make, w, ROWS)
    same_values(make, w, ROWS)

    def loss(lib):
        return lib.grad(lambda w, x: sum(y.sum() for y in make(lib)(w, x)), (0, 1))

    same_text(loss, w, ROWS)
    same_values(loss, w, ROWS)


def test_residuals_of_every_step_alike_are_not_stacked():
    """cos(w) is computed once before the loop, and read where it is."""

    def make(lib):
        def loss(w, x):
            sine = lib.numpy.sin
            return lib.lax.scan(lambda c, r: (c * sine(w) + r, None), 1.0, x)[0]

        return lib.grad(loss)

    same_text(make, 0.5, XS)
    program = str(minijax.make_jaxpr(make(minijax))(0.5, XS))
    assert program.count("f32[5]") == 2  # the argument, and the carry of each step


def test_the_longest_loop_is_traced_once():
    calls = []

    def body(c, x):
        calls.append(1)
        return minijax.numpy.float32(0.5) * c + x, c

    xs = np.ones(10_000, np.float32)
    carry, ys = minijax.lax.scan(body, np.float32(0), xs)
    assert len(calls) == 1
    assert abs(float(carry) - 2.0) < 1e-5
    assert ys.shape == (10_000,)


def test_while_vmapped_over_the_bound_stops_each_example_by_itself():
    def make(lib):
        def one(n, x):
            return lib.lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0)
            )

        return lib.vmap(one)

    args = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.float32)
    same_text(make, *args)
    same_values(make, *args)


def test_while_has_no_reverse_mode_and_says_what_has():
    same_error(
        lambda lib: lib.grad(newton(lib)), 2.0, match="using fori_loop with static"
    )


# ----------------------------------------------------------------------------------
# Refs
# ----------------------------------------------------------------------------------


def in_scan(lib):
    def program(x):
        ref = lib.new_ref(lib.numpy.zeros(()))

        def body(c, _):
            ref[...] += c
            return c * x, None

        lib.lax.scan(body, 1.0, None, length=4)
        return ref[...]

    return program


def in_while(lib):
    def program(x):
        ref = lib.new_ref(lib.numpy.zeros(3))

        def body(i):
            ref[i] = x * i
            return i + 1

        lib.lax.while_loop(lambda i: i < 3, body, 0)
        return ref[...]

    return program


def in_cond(lib):
    def program(x):
        ref = lib.new_ref(lib.numpy.zeros(3))

        def positive():
            ref[0] = x

        def negative():
            ref[1] += x

        lib.lax.cond(x > 0, positive, negative)
        return ref[...]

    return program


@pytest.mark.parametrize("make", [in_scan, in_while, in_cond])
def test_refs(make):
    same_text(make, 2.0)
    same_values(make, 2.0)
    same_values(make, -2.0)
    same_values(lambda lib: lib.jit(make(lib)), 2.0)


def test_refs_in_a_scan_have_derivatives():
    same_text(lambda lib: lib.grad(in_scan(lib)), 2.0)
    same_values(lambda lib: lib.grad(in_scan(lib)), 2.0)


def test_a_ref_cannot_be_returned_or_given_twice():
    def returned(lib):
        def program(x):
            ref = lib.new_ref(x)
            return lib.lax.cond(True, lambda: ref, lambda: ref)

        return program

    same_error(returned, XS, match="Cannot return")


# ----------------------------------------------------------------------------------
# Errors
# ----------------------------------------------------------------------------------

ERRORS = {
    "carry of another dtype": (
        lambda lib: lib.lax.scan(lambda c, x: (c.astype(int), x), 1.0, XS),
        "has type float32[] but the corresponding output carry component has type",
    ),
    "carry of another shape": (
        lambda lib: lib.lax.while_loop(lambda c: True, lambda c: c[None], np.ones(2)),
        "so the shapes do not match",
    ),
    "leaf of a carry": (
        lambda lib: lib.lax.scan(
            lambda c, x: ({"a": c["a"], "b": c["b"].sum()}, x), {"a": XS, "b": XS}, XS
        ),
        "component c['b']",
    ),
    "carry of another tree": (
        lambda lib: lib.lax.while_loop(lambda c: c < 3, lambda c: (c, c), 1.0),
        "must have the same pytree structure",
    ),
    "branches of other trees": (
        lambda lib: lib.lax.cond(True, lambda x: x, lambda x: (x, x), 1.0),
        "true_fun output is a",
    ),
    "branches of other types": (
        lambda lib: lib.lax.cond(True, lambda x: x, lambda x: x > 0, 1.0),
        "output of true_fun has type float32[]",
    ),
    "branches of switch": (
        lambda lib: lib.lax.switch(0, [lambda x: x, lambda x: x[None]], 1.0),
        "branch1",
    ),
    "predicate no scalar": (
        lambda lib: lib.lax.cond(np.ones(3) > 0, lambda: 1, lambda: 2),
        "Pred must be a scalar",
    ),
    "predicate None": (lambda lib: lib.lax.cond(None, int, int), "is None"),
    "predicate text": (lambda lib: lib.lax.cond("x", int, int), "boolean or number"),
    "no function": (lambda lib: lib.lax.cond(True, 1, 2), "must be a function"),
    "index no integer": (
        lambda lib: lib.lax.switch(0.5, [int, int]),
        "must be an integer",
    ),
    "no branches": (lambda lib: lib.lax.switch(0, []), "empty"),
    "condition no boolean": (
        lambda lib: lib.lax.while_loop(lambda c: c, lambda c: c, 1.0),
        "boolean scalar",
    ),
    "condition a pair": (
        lambda lib: lib.lax.while_loop(lambda c: (c, c), lambda c: c, True),
        "boolean scalar",
    ),
    "no pair": (lambda lib: lib.lax.scan(lambda c, x: c, 1.0, XS), "must be a pair"),
    "no length": (lambda lib: lib.lax.scan(lambda c, x: (c, x), 1.0), "no values"),
    "lengths differ": (
        lambda lib: lib.lax.scan(lambda c, x: (c, c), 1.0, (XS, np.ones(3))),
        "different leading axis sizes: 5, 3",
    ),
    "length disagrees": (
        lambda lib: lib.lax.scan(lambda c, x: (c, c), 1.0, XS, length=3),
        "disagrees",
    ),
    "rows of a scalar": (
        lambda lib: lib.lax.scan(lambda c, x: (c, c), 1.0, 2.0),
        "no leading axis",
    ),
    "negative unroll": (
        lambda lib: lib.lax.scan(lambda c, x: (c, c), 1.0, XS, unroll=-1),
        "non-negative",
    ),
    "bounds of other dtypes": (
        lambda lib: lib.lax.fori_loop(0, np.float32(3), lambda i, c: c, 1.0),
        "equal types",
    ),
    "unroll of unknown bounds": (
        lambda lib: lib.jit(
            lambda n: lib.lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=2)
        )(3),
        "statically known",
    ),
    "traced length": (
        lambda lib: lib.jit(lambda n: lib.lax.scan(lambda c, x: (c, c), 1.0, length=n))(
            3
        ),
        "concrete",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    run, phrase = ERRORS[name]
    kinds = []
    for lib in LIBRARIES:
        with pytest.raises(Exception) as info:
            run(lib)
        kinds.append(info.type.__name__)
        if lib is minijax:
            assert phrase in str(info.value)
    assert kinds[0] == kinds[1]


# ----------------------------------------------------------------------------------
# Other ways to run
# ----------------------------------------------------------------------------------


def test_without_jit():
    for lib in LIBRARIES:
        with lib.disable_jit():
            carry, ys = scanned(lib)(lib.numpy.asarray(XS))
            assert ys.shape == (5,)
            assert lib.lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1) == 16
            assert lib.lax.cond(True, lambda: 1, lambda: 2) == 1
            assert lib.lax.fori_loop(0, 3, lambda i, c: c + i, 0) == 3
            assert lib.lax.switch(1, [lambda: 1, lambda: 2]) == 2


def test_platform_dependent():
    def make(lib):
        return lambda x: lib.lax.platform_dependent(
            x, cpu=lambda x: x + 1, tpu=lambda x: x * 2, default=lambda x: x
        )

    same_text(make, 1.0)
    same_values(make, 1.0, compiled=False)
    same_values(lambda lib: lib.jit(lib.grad(make(lib))), 1.0)


def test_keys_can_be_carried_and_stacked():
    def make(lib):
        def body(key, _):
            key, own = lib.random.split(key)
            return key, own

        return lambda: lib.random.key_data(
            lib.lax.scan(body, lib.random.key(0), None, length=3)[1]
        )

    same_values(make)


def test_a_body_is_not_kept_alive():
    class Held:
        pass

    def run():
        held = Held()

        def body(c, _):
            held  # noqa: B018
            return c + 1.0, None

        minijax.lax.scan(body, 0.0, None, length=2)
        minijax.lax.cond(True, lambda: (held, 1)[1], lambda: 2)
        minijax.lax.fori_loop(0, 2, lambda i, c: (held, c + 1)[1], 0.0)
        return weakref.ref(held)

    held = run()
    gc.collect()
    assert held() is None


def test_a_tracer_of_an_ended_transformation_is_not_used_again():
    def body(c, _):
        return c * factor, None

    results = []
    for value in (2.0, 3.0):

        @minijax.jit
        def program(x):
            nonlocal factor
            factor = x * 2
            return minijax.lax.scan(body, 1.0, None, length=2)[0]

        factor = None
        results.append(float(program(value)))
    assert results == [16.0, 36.0]


def test_linear_transpose_through_a_counted_loop():
    same_values(
        lambda lib: (
            lambda x: lib.linear_transpose(
                lambda x: lib.lax.fori_loop(0, 3, lambda i, c: 2 * c, x), x
            )(x)
        ),
        1.0,
    )


def test_branches_in_a_list_that_one_can_call():
    class Layers(list):
        def __call__(self, x):
            return x

    same_values(
        lambda lib: lambda: lib.lax.switch(1, Layers([abs, lambda x: x + 1]), 2)
    )


def test_linear_transpose_of_integers():
    def program(lib):
        def call(wrap):
            fun = wrap(lambda x, y: (2 * x + y, lib.lax.convert_element_type(y, int)))
            return lib.linear_transpose(fun, x, x)((x, x))

        x = np.arange(3, dtype=np.int32)
        return lambda: [
            call(lib.jit),
            call(lambda f: lambda *a: lib.lax.cond(True, f, lambda x, y: (y, x), *a)),
        ]

    same_values(program)


def test_jax_is_what_it_is_compared_with():
    assert LIBRARIES == (minijax, jax)


# ----------------------------------------------------------------------------------
# Checkpoints of functions that write refs: jax 0.10.2 falls over its own split there
# ----------------------------------------------------------------------------------


def written_from_zero(lib):
    def program(x):
        ref = lib.new_ref(lib.numpy.zeros(()))
        ref[...] = lib.numpy.sin(x)
        return ref[...] * x

    return program


def in_two_loops(lib):
    def program(x):
        ref = lib.new_ref(lib.numpy.zeros(()))

        def outer(c, _):
            def inner(d, _):
                ref[...] += d * x
                return d * x, None

            d, _ = lib.lax.scan(inner, c, None, length=2)
            return lib.lax.cond(d > 1, lambda d: d * 0.5, lambda d: d, d), None

        lib.lax.scan(outer, 1.0, None, length=3)
        return ref[...]

    return program


def row_by_row(lib):
    def program(x):
        ref = lib.new_ref(lib.numpy.zeros(4))

        def body(c, i):
            ref[i] = c
            return c * x, ref[i] * 2

        _, ys = lib.lax.scan(body, 1.0, lib.numpy.arange(4))
        return (ref[...] * lib.numpy.arange(4.0)).sum() + ys.sum()

    return program


@pytest.mark.parametrize(
    "make",
    [written_from_zero, in_scan, in_two_loops, row_by_row],
    ids=lambda make: make.__name__,
)
def test_a_checkpoint_differentiates_what_goes_through_refs(make):
    """The gradient is that of the same function without a checkpoint."""
    program = make(minijax)
    expected = minijax.grad(program)(2.0)
    np.testing.assert_allclose(expected, jax.grad(make(jax))(2.0), rtol=1e-5)
    for policy in (None, minijax.checkpoint_policies.everything_saveable):
        checkpointed = minijax.checkpoint(program, policy=policy)
        np.testing.assert_allclose(minijax.grad(checkpointed)(2.0), expected, rtol=1e-5)
        _, pushed = minijax.jvp(checkpointed, (2.0,), (1.0,))
        np.testing.assert_allclose(pushed, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "make", [in_scan, in_two_loops, row_by_row], ids=lambda make: make.__name__
)
def test_second_derivatives_through_refs(make):
    """JAX 0.10.2 raises here; differences of first derivatives are the reference."""
    first = minijax.grad(make(minijax))
    second = minijax.grad(first)(2.0)
    estimate = (first(2.01) - first(1.99)) / 0.02
    np.testing.assert_allclose(second, estimate, rtol=1e-2)
