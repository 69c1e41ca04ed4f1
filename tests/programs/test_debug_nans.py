"""debug_nans and debug_infs: the operation that JAX blames, and the user's line."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from tests.programs.sides import LIBRARIES

MINUS = np.float32(-1.0)
ZERO = np.float32(0.0)
VECTOR = np.array([1.0, -1.0], np.float32)


def line_of_log(library):
    def f(x):
        y = x * 2
        z = library.numpy.log(y)  # here
        return z + 1

    return f


def masked_root(library):
    where, sqrt = library.numpy.where, library.numpy.sqrt
    return lambda x: where(x > 0, sqrt(x), 0.0)


def divided(library):
    return lambda x: x / x


def nested(library):
    inner = library.jit(line_of_log(library))
    return library.jit(lambda x: inner(x - 1) * 2)


def custom(library):
    f = library.custom_jvp(lambda x: library.numpy.log(x))
    f.defjvp(lambda p, t: (f(*p), t[0] / p[0]))
    return library.jit(lambda x: f(x) + 1)


def rematted(library):
    return library.jit(library.grad(library.checkpoint(line_of_log(library))))


def into_nothing(library):
    return library.jit(lambda x: library.numpy.nan)


PROGRAMS = {
    "eager": (line_of_log, (MINUS,)),
    "jit": (lambda library: library.jit(line_of_log(library)), (MINUS,)),
    "fine": (lambda library: library.jit(line_of_log(library)), (-MINUS,)),
    "inf_is_fine": (lambda library: library.jit(line_of_log(library)), (ZERO,)),
    "hidden": (lambda library: library.jit(masked_root(library)), (MINUS,)),
    "eager_not_hidden": (masked_root, (MINUS,)),
    "nested": (nested, (ZERO,)),
    "division": (divided, (ZERO,)),
    "division_jit": (lambda library: library.jit(divided(library)), (ZERO,)),
    "grad": (lambda library: library.grad(line_of_log(library)), (MINUS,)),
    "grad_jit": (
        lambda library: library.grad(library.jit(line_of_log(library))),
        (MINUS,),
    ),
    "jit_grad_of_masked": (
        lambda library: library.jit(library.grad(masked_root(library))),
        (ZERO,),
    ),
    "vmap": (lambda library: library.vmap(line_of_log(library)), (VECTOR,)),
    "jit_vmap": (
        lambda library: library.jit(library.vmap(line_of_log(library))),
        (VECTOR,),
    ),
    "custom": (custom, (MINUS,)),
    "remat": (rematted, (ZERO * np.float32(np.nan),)),
    "constant": (into_nothing, (MINUS,)),
    "variance": (
        lambda library: library.jit(lambda x: library.numpy.var(x, ddof=1)),
        (VECTOR[:1],),
    ),
}


def outcome(library, name, flag):
    make, args = PROGRAMS[name]
    arrays = [library.numpy.asarray(arg) for arg in args]
    program = make(library)
    with getattr(library, flag)(True):
        try:
            program(*arrays)
        except FloatingPointError as error:
            return error
    return None


@pytest.mark.parametrize("flag", ["debug_nans", "debug_infs"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_operation_is_blamed(name, flag):
    ours, theirs = (outcome(library, name, flag) for library in LIBRARIES)
    assert (ours is None) == (theirs is None)
    if ours is not None and "encountered" in str(theirs):
        blamed = str(theirs).splitlines()[0]
        assert str(ours).splitlines()[0] == f"{blamed}."
    elif ours is not None:
        assert "did not produce invalid values" in str(ours)
        assert "did not produce invalid values" in str(theirs)


@pytest.mark.parametrize("name", ["eager", "jit", "nested", "grad_jit", "jit_vmap"])
def test_line_of_the_user(name):
    error = outcome(minijax, name, "debug_nans")
    frame = error.facts["used_at"]
    assert frame.file_name == __file__
    assert error.facts["line"] == "z = library.numpy.log(y)  # here"
    assert "z = library.numpy.log(y)" in str(error)
    assert error.facts["primitive"] == "log"
    assert not getattr(error, "__notes__", [])


def scanned(x):
    def step(carry, row):
        carry = carry - row
        return jnp.sqrt(carry), row  # in the loop

    return minijax.lax.scan(step, x, jnp.arange(3.0))[0] + 1


def branched(x):
    return minijax.lax.cond(x > 0, lambda x: x, lambda x: jnp.sqrt(x), x)  # in the loop


def looped(x):
    body = lambda x: jnp.sqrt(x - 2)  # in the loop
    return minijax.lax.while_loop(lambda x: x > 1, body, x)


CONTROL_FLOW = {
    "scan": (scanned, 2.0),
    "cond": (branched, -1.0),
    "while": (looped, 1.5),
    "vmap of scan": (lambda x: minijax.vmap(scanned)(jnp.stack([x, x])), 2.0),
    "grad of scan": (minijax.grad(scanned), 2.0),
}


@pytest.mark.parametrize("wrap", [minijax.jit, lambda f: f])
@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_in_bodies_of_loops_and_branches(name, wrap):
    f, x = CONTROL_FLOW[name]
    with minijax.debug_nans(True), pytest.raises(FloatingPointError) as info:
        wrap(f)(jnp.float32(x))
    assert str(info.value).startswith("invalid value (nan) encountered in sqrt.")
    assert info.value.facts["line"].endswith("# in the loop")


def test_loops_without_nans_pass():
    with minijax.debug_nans(True), minijax.debug_infs(True):
        assert minijax.jit(scanned)(jnp.float32(100.0)) == 2
        assert looped(jnp.float32(0.5)) == 0.5


def test_a_library_function_is_blamed_where_it_was_called():
    first = minijax.jit(lambda x: jnp.var(x, ddof=1))
    first(jnp.ones(2))
    with minijax.debug_nans(True), pytest.raises(FloatingPointError) as info:
        minijax.jit(lambda x: 2 * jnp.var(x, ddof=1))(jnp.ones(1))
    assert "2 * jnp.var(x, ddof=1)" in str(info.value)


def test_config_update():
    f = minijax.jit(lambda x: jnp.log(x))
    assert np.isnan(f(-1.0))
    minijax.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            f(-1.0)
        with minijax.debug_nans(False):
            assert np.isnan(f(-1.0))
    finally:
        minijax.config.update("jax_debug_nans", False)
    assert np.isnan(f(-1.0))


def test_donated_arguments_are_there_for_the_second_run():
    f = minijax.jit(lambda x: jnp.log(x) + 1, donate_argnums=0)
    with minijax.debug_nans(True), pytest.raises(FloatingPointError, match="in log"):
        f(jnp.asarray(VECTOR))


def test_refs():
    ref = minijax.new_ref(jnp.asarray(VECTOR))

    @minijax.jit
    def f(ref):
        ref[...] = jnp.log(ref[...])

    with minijax.debug_nans(True), pytest.raises(FloatingPointError, match="in log"):
        f(ref)


def test_compiled_ahead_of_time():
    compiled = minijax.jit(lambda x: jnp.sqrt(x)).lower(jnp.ones(2)).compile()
    with minijax.debug_nans(True), pytest.raises(FloatingPointError, match="in sqrt"):
        compiled(jnp.asarray(VECTOR))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_other_dtypes(dtype):
    for library in LIBRARIES:
        x = library.numpy.zeros(2, dtype)
        with library.debug_nans(True), pytest.raises(FloatingPointError):
            x / x


def test_integers_and_keys_pass():
    with minijax.debug_nans(True), minijax.debug_infs(True):
        key = minijax.jit(minijax.random.key)(0)
        bits = minijax.jit(lambda key: minijax.random.bits(key) // 2)(key)
    assert int(bits) == int(jax.random.bits(jax.random.key(0)) // 2)
