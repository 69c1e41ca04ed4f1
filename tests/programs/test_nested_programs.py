"""Programs in programs in programs: the work grows with the depth, not as a power.

Work is counted in calls of Python functions. From depth to depth it may grow a little
more each time (what a derivative saves is returned by every level around it), but a
walk that visits the inner program twice at each level doubles with each level.
"""

import sys

import pytest

minijax = pytest.importorskip("minijax")
jnp = minijax.numpy
lax = minijax.lax
checkify = pytest.importorskip("minijax.experimental.checkify")

DEPTHS = (3, 7, 11)


def in_cond(f):
    return lambda x: lax.cond(x > 0, f, lambda x: x * 2.0, x)


def in_switch(f):
    return lambda x: lax.switch((x > 0).astype(int), [lambda x: x, f], x)


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0]


def in_scan_whose_flags_grow(f):
    """Only after two turns is it known that the whole carry has tangents."""

    def body(carry, _):
        a, b, c = carry
        return (f(b) + a, c * 2.0, c), a

    return lambda x: lax.scan(body, (0.0 * x, 1.0 + 0.0 * x, x), length=2)[0][0]


def in_while(f):
    return lambda x: lax.while_loop(lambda c: c[1] < 2, lambda c: (f(c[0]), 3), (x, 0))[
        0
    ]


def in_fori(f):
    return lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x)


def in_jit(f):
    return minijax.jit(lambda x: f(x) * 1.5)


def in_checkpoint(f):
    return minijax.checkpoint(lambda x: f(x) * 1.5)


def in_checkpointed_cond(f):
    policy = minijax.checkpoint_policies.dots_saveable
    return minijax.checkpoint(in_cond(f), policy=policy)


def in_custom_jvp(f):
    call = minijax.custom_jvp(lambda x: f(x) * 1.5)
    call.defjvp(lambda primals, tangents: (call(primals[0]), tangents[0] * 2.0))
    return call


def in_custom_vjp(f):
    call = minijax.custom_vjp(lambda x: f(x) * 1.5)
    call.defvjp(lambda x: (call(x), x), lambda x, ct: (ct * x,))
    return call


def in_cond_with_ref(f):
    def write(x):
        ref = minijax.new_ref(x)

        def branch(y):
            ref[...] = f(y)
            return y

        return lax.cond(x > 0, branch, lambda y: y, x) + ref[...]

    return write


MAKERS = (
    [in_cond, in_switch, in_scan, in_scan_whose_flags_grow, in_while, in_fori, in_jit]
    + [in_checkpoint, in_checkpointed_cond, in_custom_jvp, in_custom_vjp]
    + [in_cond_with_ref]
)


WALKS = {
    "print": lambda f: str(minijax.make_jaxpr(f)(1.0)),
    "lower": lambda f: minijax.jit(f).lower(1.0),
    "grad": lambda f: minijax.jit(minijax.grad(f)).lower(1.0),
    "jvp": lambda f: minijax.jit(lambda x: minijax.jvp(f, (x,), (x,))).lower(1.0),
    "vmap": lambda f: minijax.jit(minijax.vmap(f)).lower(jnp.ones(3)),
    "checkify": lambda f: minijax.make_jaxpr(checkify.checkify(f))(1.0),
    "linearize": lambda f: minijax.linearize(f, 1.0),
}
ABSENT = {
    (in_while, "grad"),
    (in_custom_vjp, "jvp"),
    (in_cond_with_ref, "vmap"),
}


def nested(maker, depth):
    f = jnp.sin
    for _ in range(depth):
        f = maker(f)
    return f


def calls_of(function, *args):
    """How many Python functions a call calls."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


CASES = [(m, w) for m in MAKERS for w in WALKS if (m, w) not in ABSENT]


@pytest.mark.parametrize(("maker", "walk"), CASES)
def test_work_does_not_double_with_the_depth(maker, walk):
    WALKS[walk](nested(maker, 1))  # what is imported and cached once
    shallow, middle, deep = (calls_of(WALKS[walk], nested(maker, d)) for d in DEPTHS)
    # Linear: 1; quadratic: less than 2; doubling at each level: 16.
    assert deep - middle < 2.5 * (middle - shallow), (shallow, middle, deep)


@pytest.mark.parametrize("maker", [in_cond, in_switch])
def test_forty_branches_deep(maker):
    """Twice as deep, twice as many branches, also in the gradient."""

    def text_of(depth):
        f = minijax.grad(nested(maker, depth))
        return minijax.jit(f).lower(0.5).as_text()

    assert text_of(40).count("stablehlo.case") == 2 * text_of(20).count(
        "stablehlo.case"
    )


def test_dead_code_in_branches_keeps_the_constants():
    """Constants of a branch go with the equations that read them."""
    many = jnp.arange(400.0)

    def branch(x):
        return jnp.sin(x) * many.sum(), x + many[0]

    def f(x):
        return lax.cond(x > 0, branch, lambda x: (x, x), x)[1]

    batched = minijax.jit(minijax.vmap(minijax.grad(f)))
    assert batched(jnp.array([1.0, -1.0])).tolist() == [1.0, 1.0]
