"""Rules around functions: custom_gradient, custom_vmap, linear solves and roots."""

import functools

from tests.golden.programs.registry import f32, program


def _product(jax):
    @jax.custom_gradient
    def product(x, y):
        s = jax.lax.sin(x)
        return s * y, lambda ct: (2.0 * ct * y, ct * s)

    return product


@program("a")
def custom_gradient_alone(jax):
    return _product(jax), (f32(3), f32(3))


@program("a")
def custom_gradient_grad(jax):
    product = _product(jax)
    return jax.grad(lambda x, y: product(x, y).sum(), argnums=(0, 1)), (f32(3), f32(3))


@program("a")
def custom_gradient_vmap_of_grad(jax):
    return jax.vmap(jax.grad(_product(jax))), (f32(3), f32(3))


@program("a")
def closure_converted(jax):
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def scaled(f, x, *consts):
        return f(x, *consts)

    def forward(f, x, *consts):
        return scaled(f, x, *consts), (x, consts)

    def backward(f, res, ct):
        x, consts = res
        return jax.vjp(f, x, *consts)[1](ct * 10.0)

    scaled.defvjp(forward, backward)

    def loss(a, x):
        converted, consts = jax.closure_convert(lambda y: y * a, x)
        return scaled(converted, x, *consts).sum()

    return jax.grad(loss), (f32(3), f32(3))


def _with_rule(jax):
    @jax.custom_batching.custom_vmap
    def f(x, y):
        return jax.lax.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, xs, ys):
        return jax.lax.cos(xs) * ys, in_batched[0]

    return f


@program("a")
def custom_vmap_alone(jax):
    return _with_rule(jax), (f32(3), f32(3))


@program("a")
def custom_vmap_mapped(jax):
    return jax.vmap(_with_rule(jax)), (f32(2, 3), f32(2, 3))


@program("a")
def custom_vmap_jvp(jax):
    f = _with_rule(jax)
    return lambda x, t: jax.jvp(f, (x, x), (t, t)), (f32(3), f32(3))


@program("a")
def custom_vmap_jvp_mapped(jax):
    f = _with_rule(jax)
    forward = jax.vmap(lambda x, t: jax.jvp(f, (x, x), (t, t)))
    return forward, (f32(2, 3), f32(2, 3))


@program("a")
def linear_call_grad(jax):
    def loss(x, r):
        linear_call = jax.custom_derivatives.linear_call
        out = linear_call(lambda r, x: x / r, lambda r, ct: ct / r, r, x)
        return out.sum()

    return jax.grad(loss), (f32(3), f32(3))


@program("a")
def composite(jax):
    @functools.partial(jax.lax.composite, name="my.scaled", version=2)
    def scaled(x, /, *, by, shape, note=None):
        return x * by, jax.numpy.sum(x)

    return lambda x: scaled(x, by=2.0, shape=(3, 1))[0] + 1, (f32(3),)


def _solve(jax, symmetric):
    def by_division(matvec, b):
        return b / matvec(jax.numpy.ones(3))

    def solve(scale, b):
        return jax.lax.custom_linear_solve(
            lambda x: scale * x,
            b,
            by_division,
            None if symmetric else by_division,
            symmetric=symmetric,
        )

    return solve


@program("a")
def linear_solve(jax):
    return _solve(jax, False), (f32(3), f32(3))


@program("a")
def linear_solve_symmetric(jax):
    return _solve(jax, True), (f32(3), f32(3))


@program("a")
def linear_solve_jvp(jax):
    solve = _solve(jax, True)
    forward = lambda a, b: jax.jvp(solve, (a, b), (b, a))
    return forward, (f32(3), f32(3))


@program("a")
def linear_solve_grad(jax):
    solve = _solve(jax, False)
    return jax.grad(lambda a, b: solve(a, b).sum(), argnums=(0, 1)), (f32(3), f32(3))


@program("a")
def linear_solve_vmap(jax):
    return jax.vmap(_solve(jax, True), in_axes=(None, 0)), (f32(3), f32(2, 3))


def _root(jax):
    def newton(f, x):
        value, slope = jax.jvp(f, (x,), (1.0,))
        return x - value / slope

    def root(a):
        return jax.lax.custom_root(
            lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0)
        )

    return root


@program("a")
def root(jax):
    return _root(jax), (2.0,)


@program("a")
def root_grad(jax):
    return jax.grad(_root(jax)), (2.0,)


@program("a")
def root_vmap_of_grad(jax):
    return jax.vmap(jax.grad(_root(jax))), (f32(3),)
