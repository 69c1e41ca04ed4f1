"""checkify: the same programs, the same errors and the same messages as JAX's."""

import itertools

import jax
import jax._src.checkify
import jax.experimental.checkify
import numpy as np
import pytest

import minijax
import minijax.experimental.checkify
from minijax.experimental import checkify as _same_room  # noqa: F401
from tests.golden.normalise import normalise, plain_numpy_scalars

SIDES = {
    "ours": (minijax, minijax.experimental.checkify),
    "theirs": (jax, jax.experimental.checkify),
}
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
VECTOR = np.array([1.0, 0.0, -1.0], np.float32)
MINUS = np.float32(-2.0)
ZERO = np.float32(0.0)


@pytest.fixture(autouse=True)
def same_codes(monkeypatch):
    """Both libraries number their checks from 1."""
    from minijax.experimental.checkify import error_values

    monkeypatch.setattr(error_values, "next_code", itertools.count(1).__next__)
    monkeypatch.setattr(
        jax._src.checkify, "next_code", itertools.count(1).__next__, raising=False
    )


def positive_log(library, checkify):
    def f(x):
        checkify.check(x > 0, "{x} must be positive", x=x)
        return library.numpy.log(x) / x

    return f


def two_checks(library, checkify):
    def f(x):
        checkify.check(library.numpy.all(x < 1), "too large")
        y = library.numpy.sin(x)
        checkify.check(library.numpy.sum(y) > 5, "sum is {}", library.numpy.sum(y))
        return y

    return f


def custom_forward(library, checkify):
    @library.custom_jvp
    def f(x):
        checkify.check(x > 0, "in a custom_jvp: {x}", x=x)
        return library.numpy.log(x)

    f.defjvp(lambda p, t: (f(*p), t[0] / p[0]))
    return lambda x: f(x) * 2


def custom_forward_of_log(library, checkify):
    @library.custom_jvp
    def f(x):
        return library.numpy.log(x)

    f.defjvp(lambda p, t: (f(*p), t[0] / p[0]))
    return lambda x: f(x) * 2


def custom_backward(library, checkify):
    @library.custom_vjp
    def f(x):
        return library.numpy.log(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct / x,))
    return lambda x: f(x) * 2


def debug_checked(library, checkify):
    def f(x):
        checkify.debug_check(x > 0, "debug {x}", x=x)
        return x * 2

    return f


def indexed(index):
    return lambda library, checkify: lambda x: x[index]


def gathered(library, checkify):
    return lambda x, i: x[i]


def scattered(library, checkify):
    return lambda x, i: x.at[i].set(7.0)


def added(library, checkify):
    return lambda x, i: x.at[i].add(library.numpy.nan)


def sliced(library, checkify):
    return lambda x, i: library.lax.dynamic_slice(x, (i,), (2,))


def updated(library, checkify):
    two = np.ones(2, np.float32)
    return lambda x, i: library.lax.dynamic_update_slice(x, two, (i,))


def rows_gathered(library, checkify):
    return lambda x, i: x[:, i]


def jitted(make):
    return lambda library, checkify: library.jit(make(library, checkify))


def rematted(make):
    return lambda library, checkify: library.checkpoint(make(library, checkify))


def batched(make):
    return lambda library, checkify: library.vmap(make(library, checkify))


def differentiated(make):
    return lambda library, checkify: library.grad(make(library, checkify))


def divided(library, checkify):
    return lambda x, y: x / y


def sum_of_logs(library, checkify):
    return lambda x: library.numpy.sum(library.numpy.log(x))


def integers_divided(library, checkify):
    return lambda x: 1 // x


def branching(library, checkify):
    def positive(x):
        checkify.check(x < 5, "too large: {x}", x=x)
        return library.numpy.log(x)

    return lambda x: library.lax.cond(x > 0, positive, lambda x: 1 / x, x) + 1


def switching(library, checkify):
    def branch(number):
        def f(x):
            checkify.check(x > number, f"branch {number}")
            return x * number

        return f

    return lambda i, x: library.lax.switch(i, [branch(0), branch(1), branch(2)], x)


def scanning(library, checkify):
    def step(carry, x):
        checkify.check(x < 2, "row {x}", x=x)
        carry = library.numpy.log(carry - x)
        return carry, carry / x

    return lambda x, xs: library.lax.scan(step, x, xs)[1]


def scanning_with_consts(library, checkify):
    def f(x, xs):
        def step(carry, i):
            return carry + xs[i] * x, xs[i] / x

        return library.lax.scan(step, x, library.numpy.arange(5))[0]

    return f


def looping(library, checkify):
    def f(x):
        def condition(x):
            checkify.check(x > -3, "in the condition: {x}", x=x)
            return x > -4

        return library.lax.while_loop(condition, lambda x: x - 1, x)

    return f


def looping_body(library, checkify):
    def f(x, y):
        def body(carry):
            i, z = carry
            checkify.check(z < 100, "in the body: {z}", z=z)
            return i + 1, z * y / x

        return library.lax.while_loop(lambda c: c[0] < 4, body, (0, y))[1]

    return f


def counting(library, checkify):
    def f(xs, n):
        body = lambda i, total: total + xs[i]
        return library.lax.fori_loop(0, n, body, library.numpy.float32(0))

    return f


CASES = {
    "cond": (branching, "all_checks", (np.float32(7.0),)),
    "cond_other": (branching, "all_checks", (ZERO,)),
    "cond_user": (branching, "user_checks", (np.float32(7.0),)),
    "cond_fine": (branching, "all_checks", (MINUS,)),
    "cond_jit": (jitted(branching), "all_checks", (np.float32(7.0),)),
    "cond_vmap": (batched(branching), "all_checks", (VECTOR,)),
    "cond_grad": (differentiated(branching), "all_checks", (ZERO,)),
    "switch": (switching, "user_checks", (np.int32(2), np.float32(1.0))),
    "scan": (scanning, "all_checks", (np.float32(5.0), VECTOR)),
    "scan_user": (scanning, "user_checks", (np.float32(5.0), VECTOR + 2)),
    "scan_jit": (jitted(scanning), "all_checks", (np.float32(5.0), VECTOR)),
    "scan_index": (
        scanning_with_consts,
        "automatic_checks",
        (np.float32(5.0), VECTOR),
    ),
    "while_condition": (looping, "user_checks", (MINUS,)),
    "while_fine": (looping, "all_checks", (MINUS * 5,)),
    "while_body": (looping_body, "all_checks", (ZERO, -MINUS)),
    "while_body_jit": (jitted(looping_body), "all_checks", (ZERO + 0.1, -MINUS)),
    "fori": (counting, "index_checks", (VECTOR, np.int32(5))),
    "fori_fine": (counting, "index_checks", (VECTOR, np.int32(3))),
    "user": (positive_log, "user_checks", (MINUS,)),
    "user_fine": (positive_log, "all_checks", (np.float32(2.0),)),
    "user_all": (positive_log, "all_checks", (MINUS,)),
    "user_jit": (jitted(positive_log), "all_checks", (MINUS,)),
    "user_jit_jit": (jitted(jitted(positive_log)), "user_checks", (MINUS,)),
    "user_remat": (rematted(positive_log), "all_checks", (MINUS,)),
    "user_vmap": (batched(positive_log), "user_checks", (VECTOR,)),
    "user_jit_vmap": (jitted(batched(positive_log)), "user_checks", (VECTOR,)),
    "user_grad": (differentiated(positive_log), "user_checks", (MINUS,)),
    "user_jit_grad": (jitted(differentiated(positive_log)), "all_checks", (MINUS,)),
    "user_grad_jit": (differentiated(jitted(positive_log)), "user_checks", (MINUS,)),
    "two": (two_checks, "user_checks", (VECTOR,)),
    "two_jit": (jitted(two_checks), "all_checks", (VECTOR - 3,)),
    "debug": (debug_checked, "user_checks", (MINUS,)),
    "custom_jvp": (custom_forward, "all_checks", (MINUS,)),
    "custom_jvp_jit": (jitted(custom_forward), "all_checks", (MINUS,)),
    "custom_jvp_grad": (differentiated(custom_forward), "all_checks", (MINUS,)),
    "custom_vjp": (custom_backward, "float_checks", (MINUS,)),
    "custom_vjp_jit": (jitted(custom_backward), "float_checks", (MINUS,)),
    "custom_vjp_grad": (differentiated(custom_backward), "div_checks", (MINUS * 0,)),
    "nan": (sum_of_logs, "nan_checks", (VECTOR,)),
    "nan_none": (sum_of_logs, "nan_checks", (VECTOR + 2,)),
    "nan_grad": (differentiated(sum_of_logs), "float_checks", (VECTOR,)),
    "nan_only_division": (sum_of_logs, "div_checks", (VECTOR,)),
    "div": (divided, "float_checks", (MINUS, np.float32(0.0))),
    "div_nan": (divided, "nan_checks", (np.float32(0.0), np.float32(0.0))),
    "div_vector": (divided, "div_checks", (VECTOR, VECTOR)),
    "div_integers": (integers_divided, "div_checks", (np.int32(0),)),
    "static_index": (indexed(2), "index_checks", (VECTOR,)),
    "gather": (gathered, "index_checks", (VECTOR, np.array([0, 7, 9]))),
    "gather_scalar": (gathered, "index_checks", (VECTOR, np.int32(5))),
    "gather_fine": (gathered, "index_checks", (VECTOR, np.array([0, -1]))),
    "gather_negative": (gathered, "index_checks", (VECTOR, np.array([-9]))),
    "gather_rows": (rows_gathered, "index_checks", (ROWS, np.array([1, 4]))),
    "gather_vmap": (batched(gathered), "index_checks", (ROWS, np.array([1, 4]))),
    "scatter": (scattered, "index_checks", (VECTOR, np.array([0, 4]))),
    "scatter_add": (added, "automatic_checks", (VECTOR, np.array([0]))),
    "scatter_jit": (jitted(scattered), "index_checks", (VECTOR, np.int32(4))),
    "slice": (sliced, "index_checks", (VECTOR, np.int32(2))),
    "slice_fine": (sliced, "index_checks", (VECTOR, np.int32(1))),
    "slice_negative": (sliced, "index_checks", (VECTOR, np.int32(-3))),
    "update_slice": (updated, "index_checks", (VECTOR, np.int32(2))),
    "update_slice_jit": (jitted(updated), "index_checks", (VECTOR, np.int32(2))),
}


def on_each_side(case, wrap=lambda library, f: f):
    make, errors, args = CASES[case]
    for library, checkify in SIDES.values():
        checked = checkify.checkify(make(library, checkify), getattr(checkify, errors))
        arrays = [library.numpy.asarray(arg) for arg in args]
        yield library, wrap(library, checked), arrays


@pytest.mark.parametrize("case", CASES)
def test_message_and_value(case):
    (ours, value), (theirs, expected) = (f(*args) for _, f, args in on_each_side(case))
    assert ours.get() == theirs.get()
    np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_message_in_jit(case):
    sides = on_each_side(case, lambda library, f: library.jit(f))
    (ours, value), (theirs, expected) = (f(*args) for _, f, args in sides)
    assert ours.get() == theirs.get()
    np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_text(case):
    with plain_numpy_scalars():
        ours, theirs = (
            normalise(str(library.make_jaxpr(f)(*args)))
            for library, f, args in on_each_side(case)
        )
    assert ours == theirs


@pytest.mark.parametrize("case", ["user_all", "nan", "custom_jvp", "gather_scalar"])
def test_batch_of_a_checked_function(case):
    make, errors, args = CASES[case]
    messages = []
    for library, checkify in SIDES.values():
        checked = checkify.checkify(make(library, checkify), getattr(checkify, errors))
        stacked = [
            library.numpy.stack([library.numpy.asarray(x), 0 * x + 1, x]) for x in args
        ]
        err, _ = library.jit(library.vmap(checked))(*stacked)
        messages.append(err.get())
        with pytest.raises(ValueError):
            err.throw()
    assert messages[0] == messages[1]
    assert messages[0].startswith("at mapped index 0: ")


@pytest.mark.parametrize("make", [custom_forward_of_log, custom_backward])
@pytest.mark.parametrize("inner", [False, True])
def test_derivative_through_a_checked_custom_rule(make, inner):
    """The derivative is that of the rule; what the rule does is not checked."""
    checkify = minijax.experimental.checkify
    checked = checkify.checkify(make(minijax, checkify), checkify.all_checks)
    checked = minijax.jit(checked) if inner else checked

    def loss(x):
        err, y = checked(x)
        return y, err

    (y, err), slope = minijax.value_and_grad(loss, has_aux=True)(MINUS + 1)
    assert slope == pytest.approx(-2.0)
    assert err.get() == "nan generated by primitive: mul."
    slopes = minijax.vmap(minijax.grad(lambda x: checked(x)[1]))(ROWS[1])
    np.testing.assert_allclose(slopes, 2 / ROWS[1], rtol=1e-6)


def outcome(run):
    try:
        return run()
    except Exception as error:
        return type(error).__name__, str(error)


def eager_check(library, checkify):
    checkify.check(library.numpy.float32(1) > 2, "value {}", library.numpy.ones(2))


def eager_check_that_holds(library, checkify):
    checkify.check(True, "fine")
    checkify.debug_check(False, "not under checkify")


def rethrown(library, checkify):
    def inner(x):
        err, y = library.jit(checkify.checkify(positive_log(library, checkify)))(x)
        checkify.check_error(err)
        return y

    err, _ = checkify.checkify(inner)(library.numpy.float32(-1))
    assert err.get() == "-1.0 must be positive (`check` failed)"
    inner(library.numpy.float32(-1))


def in_vmap(library, checkify):
    library.vmap(positive_log(library, checkify))(library.numpy.asarray(VECTOR))


RAISING = {
    "eager": eager_check,
    "holds": eager_check_that_holds,
    "check_error": rethrown,
    "vmap": in_vmap,
}


@pytest.mark.parametrize("name", RAISING)
def test_what_is_raised(name):
    ours, theirs = (
        outcome(lambda library=library, room=room: RAISING[name](library, room))
        for library, room in SIDES.values()
    )
    assert ours == theirs


MISUSES = {
    "vector": lambda library, checkify: checkify.check(library.numpy.ones(2) > 0, "a"),
    "float": lambda library, checkify: checkify.check(1.0, "a"),
    "message": lambda library, checkify: checkify.check(True, "{}", 3),
    "no_error": lambda library, checkify: checkify.check_error(3),
    "jit": lambda library, checkify: library.jit(positive_log(library, checkify))(1.0),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name):
    ours, theirs = (
        outcome(lambda library=library, room=room: MISUSES[name](library, room))
        for library, room in SIDES.values()
    )
    assert ours[0] == theirs[0]
    assert ours[1][:40] == theirs[1][:40]


def test_traceback_of_the_cause_is_the_users():
    err, _ = minijax.experimental.checkify.checkify(
        positive_log(minijax, minijax.experimental.checkify)
    )(minijax.numpy.float32(-1))
    with pytest.raises(minijax.experimental.checkify.JaxRuntimeError) as info:
        err.throw()
    frames = info.value.__cause__.__traceback__
    files = set()
    while frames is not None:
        files.add(frames.tb_frame.f_code.co_filename)
        frames = frames.tb_next
    assert __file__ in files
    assert not any("/minijax/" in file for file in files)


def test_every_rule_is_a_primitives():
    names = {primitive.name for primitive in minijax.experimental.checkify.error_checks}
    assert {"div", "gather", "scatter", "check", "jit", "remat2"} <= names
    known = minijax.core.language.all_primitives
    unknown = [name for name in names if name not in known]
    assert unknown == []
