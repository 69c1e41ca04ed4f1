"""`custom_jvp` and `custom_vjp`, alone and under the other transformations."""

import functools

import numpy as np

from tests.golden.programs.registry import f32, program


def _custom_sine(jax):
    @jax.custom_jvp
    def sine(x):
        return jax.lax.sin(x)

    @sine.defjvp
    def sine_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        return sine(x), 2.0 * jax.lax.cos(x) * t

    return sine


def _custom_square(jax):
    @jax.custom_vjp
    def square(x):
        return x * x

    def forward(x):
        return x * x, x

    def backward(x, ct):
        return (3.0 * x * ct,)

    square.defvjp(forward, backward)
    return square


@program("a")
def jvp_not_differentiated(jax):
    return _custom_sine(jax), (f32(3),)


@program("a")
def jvp_differentiated(jax):
    sine = _custom_sine(jax)
    return lambda x, t: jax.jvp(sine, (x,), (t,)), (f32(3), f32(3))


@program("a")
def jvp_under_grad(jax):
    return jax.grad(_custom_sine(jax)), (1.0,)


@program("a")
def jvp_under_grad_twice(jax):
    return jax.grad(jax.grad(_custom_sine(jax))), (1.0,)


@program("a")
def jvp_under_vmap(jax):
    return jax.vmap(_custom_sine(jax)), (f32(2, 3),)


@program("a")
def jvp_under_jit(jax):
    return jax.jit(_custom_sine(jax)), (f32(3),)


@program("a")
def jvp_under_grad_of_jit(jax):
    return jax.grad(jax.jit(_custom_sine(jax))), (1.0,)


@program("a")
def jvp_under_vmap_of_grad(jax):
    return jax.vmap(jax.grad(_custom_sine(jax))), (f32(3),)


@program("a")
def jvp_by_argument(jax):
    @jax.custom_jvp
    def product(x, y):
        return x * y

    product.defjvps(lambda t, ans, x, y: t * y, lambda t, ans, x, y: x * t)
    return jax.grad(product, (0, 1)), (1.0, 2.0)


@program("a")
def jvp_with_nondiff_argument(jax):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def apply(fun, x):
        return fun(x)

    @apply.defjvp
    def apply_jvp(fun, primals, tangents):
        (x,), (t,) = primals, tangents
        return fun(x), 5.0 * t

    return jax.grad(lambda x: apply(jax.lax.cos, x)), (1.0,)


@program("a")
def jvp_of_a_tree(jax):
    @jax.custom_jvp
    def combine(params):
        return params["a"] * params["b"]

    @combine.defjvp
    def combine_jvp(primals, tangents):
        (params,), (dots,) = primals, tangents
        return combine(params), dots["a"] * params["b"]

    return jax.grad(combine), ({"a": 1.0, "b": 2.0},)


@program("a")
def jvp_with_two_outputs(jax):
    @jax.custom_jvp
    def both(x):
        return jax.lax.sin(x), jax.lax.cos(x)

    @both.defjvp
    def both_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        sine, cosine = both(x)
        return (sine, cosine), (cosine * t, -sine * t)

    return jax.grad(lambda x: both(x)[0] * both(x)[1]), (1.0,)


@program("a")
def jvp_closing_over_array(jax):
    constant = jax.numpy.arange(3.0)

    @jax.custom_jvp
    def scale(x):
        return x * constant

    @scale.defjvp
    def scale_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        return scale(x), t * constant

    return scale, (f32(3),)


@program("a")
def vjp_not_differentiated(jax):
    return _custom_square(jax), (f32(3),)


@program("a")
def vjp_under_grad(jax):
    return jax.grad(_custom_square(jax)), (1.0,)


@program("a")
def vjp_under_value_and_grad(jax):
    square = _custom_square(jax)
    return jax.value_and_grad(lambda x: square(jax.lax.sin(x)).sum()), (f32(3),)


@program("a")
def vjp_under_vmap(jax):
    return jax.vmap(_custom_square(jax)), (f32(2, 3),)


@program("a")
def vjp_under_jit(jax):
    return jax.jit(_custom_square(jax)), (f32(3),)


@program("a")
def vjp_under_grad_of_jit(jax):
    return jax.grad(jax.jit(_custom_square(jax))), (1.0,)


@program("a")
def vjp_under_vmap_of_grad(jax):
    return jax.vmap(jax.grad(_custom_square(jax))), (f32(3),)


@program("a")
def vjp_under_grad_of_vmap(jax):
    square = _custom_square(jax)
    return jax.grad(lambda x: jax.vmap(square)(x).sum()), (f32(3),)


@program("a")
def vjp_of_two_arguments_one_integer(jax):
    @jax.custom_vjp
    def power(x, n):
        return x**n

    def forward(x, n):
        return power(x, n), (x, n)

    def backward(residuals, ct):
        x, n = residuals
        return (n * x ** (n - 1) * ct, None)

    power.defvjp(forward, backward)
    return jax.grad(power), (2.0, np.int32(3))


@program("a")
def vjp_with_nondiff_argument(jax):
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def clip_gradient(bound, x):
        return x

    def forward(bound, x):
        return x, None

    def backward(bound, residuals, ct):
        return (jax.lax.clamp(-bound, ct, bound),)

    clip_gradient.defvjp(forward, backward)
    return jax.grad(lambda x: (clip_gradient(1.0, x) * 5.0).sum()), (f32(3),)


@program("a")
def vjp_of_a_tree(jax):
    @jax.custom_vjp
    def total(params):
        return params["a"].sum() + params["b"]

    def forward(params):
        return total(params), params["a"]

    def backward(a, ct):
        return ({"a": ct * a, "b": ct},)

    total.defvjp(forward, backward)
    return jax.grad(total), ({"a": f32(3), "b": 1.0},)


@program("a")
def vjp_applied_by_hand(jax):
    def vjp_applied_by_hand(x):
        out, pullback = jax.vjp(_custom_square(jax), x)
        return pullback(out)

    return vjp_applied_by_hand, (f32(3),)


@program("a")
def gradient_by_custom_gradient(jax):
    @jax.custom_gradient
    def softplus(x):
        e = jax.lax.exp(x)
        return jax.lax.log(1.0 + e), lambda ct: ct * (1.0 - 1.0 / (1.0 + e))

    return jax.grad(softplus), (1.0,)
