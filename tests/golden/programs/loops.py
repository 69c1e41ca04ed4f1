"""Loops and branches, alone and under every transformation."""

import numpy as np

from tests.golden.programs.registry import f32, family, program

BODIES = {
    "scan": lambda jax: (
        lambda x: jax.lax.scan(lambda c, a: (c * jax.lax.sin(a), c + a), x[0], x)
    ),
    "scan_reversed": lambda jax: (
        lambda x: jax.lax.scan(
            lambda c, a: (c + a * x[0], a), x[1], x, reverse=True, unroll=2
        )
    ),
    "scan_of_tree": lambda jax: (
        lambda x: jax.lax.scan(
            lambda c, a: ({"s": c["s"] * a, "n": c["n"] + 1}, None),
            {"s": x[0], "n": 0},
            x,
        )[0]["s"]
    ),
    "scan_without_inputs": lambda jax: (
        lambda x: jax.lax.scan(lambda c, _: (jax.lax.cos(c), None), x, None, length=3)[
            0
        ]
    ),
    "fori_loop": lambda jax: (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * x[i] + 1.0, x)
    ),
    "while_loop": lambda jax: (
        lambda x: jax.lax.while_loop(lambda y: y[0] < 5.0, lambda y: y * 2.0, x)
    ),
    "cond": lambda jax: (
        lambda x: jax.lax.cond(
            x[0] > 0.0, lambda y: jax.lax.sin(y), lambda y: y * x[1], x
        )
    ),
    "switch": lambda jax: (
        lambda x: jax.lax.switch(
            x[0].astype("int32"), [jax.lax.sin, jax.lax.neg, lambda y: y * 2.0], x
        )
    ),
    "map": lambda jax: lambda x: jax.lax.map(lambda a: jax.lax.exp(a) * x[0], x),
    "associative_scan": lambda jax: (
        lambda x: jax.lax.associative_scan(lambda a, b: a * b, x)
    ),
    "cond_in_scan": lambda jax: (
        lambda x: jax.lax.scan(
            lambda c, a: (jax.lax.cond(a > 0.0, lambda: c * a, lambda: c), c), x[0], x
        )
    ),
    "scan_in_scan": lambda jax: (
        lambda x: jax.lax.scan(
            lambda c, a: (jax.lax.fori_loop(0, 2, lambda i, y: y * a, c), None), x[0], x
        )[0]
    ),
}


def total(jax, body):
    """The body with its outputs added up: something to take the gradient of."""

    def scalar(x):
        leaves = jax.tree_util.tree_leaves(body(x))
        return sum(jax.numpy.sum(leaf) for leaf in leaves)

    return scalar


ALL = " ".join(BODIES)
REVERSIBLE = " ".join(name for name in BODIES if name != "while_loop")


@family("a", ALL)
def alone(jax, name):
    return BODIES[name](jax), (f32(3),)


@family("a", ALL)
def jvp_of(jax, name):
    body = BODIES[name](jax)
    return lambda x, t: jax.jvp(body, (x,), (t,)), (f32(3), f32(3))


@family("a", REVERSIBLE)
def grad_of(jax, name):
    return jax.grad(total(jax, BODIES[name](jax))), (f32(3),)


@family("a", ALL)
def vmap_of(jax, name):
    return jax.vmap(BODIES[name](jax)), (f32(2, 3),)


@family("a", "scan fori_loop cond map cond_in_scan")
def vmap_of_grad_of(jax, name):
    return jax.vmap(jax.grad(total(jax, BODIES[name](jax)))), (f32(2, 3),)


@family("a", "cond switch")
def grad_of_checkpoint_of(jax, name):
    return jax.grad(jax.checkpoint(total(jax, BODIES[name](jax)))), (f32(3),)


@family("a", "scan fori_loop cond")
def linearize_of(jax, name):
    body = total(jax, BODIES[name](jax))
    return lambda x: jax.linearize(body, x)[1](x), (f32(3),)


@family("a", "scan fori_loop cond")
def forward_over_reverse_of(jax, name):
    inner = jax.grad(total(jax, BODIES[name](jax)))
    return lambda x, t: jax.jvp(inner, (x,), (t,)), (f32(3), f32(3))


@family("a", "scan while_loop cond switch")
def jit_of(jax, name):
    return jax.jit(BODIES[name](jax)), (f32(3),)


@program("a")
def while_with_constants(jax):
    def function(x, limit):
        return jax.lax.while_loop(lambda y: y < limit, lambda y: y + x, 0.0)

    return function, (np.float32(1.0), np.float32(5.0))


@program("a")
def vmap_of_while_over_limits(jax):
    def function(limit):
        return jax.lax.while_loop(lambda y: y < limit, lambda y: y * 2.0, 1.0)

    return jax.vmap(function), (f32(3),)


@program("a")
def bounds_that_are_traced(jax):
    def function(n, x):
        return jax.lax.fori_loop(0, n, lambda i, y: y + x, x)

    return function, (3, f32(2))


@program("a")
def operands_of_cond(jax):
    def function(p, x, y):
        return jax.lax.cond(p, lambda a, b: a + b, lambda a, b: a - b, x, y)

    return function, (True, f32(2), f32(2))


@program("a")
def batched_predicate(jax):
    def function(p, x):
        return jax.lax.cond(p, jax.lax.sin, jax.lax.cos, x)

    return jax.vmap(function), (np.array([True, False]), f32(2))
