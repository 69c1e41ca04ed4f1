"""Transformations inside of transformations, with custom rules and refs among them."""

import numpy as np

from tests.golden.programs.registry import f32, family, program


def polynomial(jax):
    return lambda x: jax.lax.sin(x) * x**3


def with_custom_jvp(jax):
    @jax.custom_jvp
    def log1pexp(x):
        return jax.numpy.log(1.0 + jax.numpy.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1.0 - 1.0 / (1.0 + jax.numpy.exp(x))) * t

    return lambda x: log1pexp(x) * x


def with_custom_vjp(jax):
    @jax.custom_vjp
    def clipped(x):
        return x * 1.0

    def backward(x, ct):
        return (jax.numpy.clip(ct, -x, x),)

    clipped.defvjp(lambda x: (clipped(x), x), backward)
    return lambda x: clipped(x) ** 2


def with_checkpoint(jax):
    return jax.checkpoint(lambda x: jax.lax.cos(jax.lax.sin(x)))


def with_ref(jax):
    def function(x):
        ref = jax.new_ref(x)
        ref[...] = ref[...] * jax.lax.sin(x)
        return jax.freeze(ref)

    return function


def with_jit(jax):
    inner = jax.jit(lambda x: jax.lax.sin(x) * x)
    return lambda x: inner(inner(x))


FUNCTIONS = {
    "polynomial": polynomial,
    "custom_jvp": with_custom_jvp,
    "custom_vjp": with_custom_vjp,
    "checkpoint": with_checkpoint,
    "ref": with_ref,
    "jit": with_jit,
}
ALL = " ".join(FUNCTIONS)
FORWARD = " ".join(name for name in FUNCTIONS if name != "custom_vjp")


def pushed(jax, function):
    return lambda x: jax.jvp(function, (x,), (1.0,))[1]


@family("a", ALL)
def grad_of(jax, name):
    return jax.grad(FUNCTIONS[name](jax)), (1.0,)


@family("a", FORWARD)
def jvp_of(jax, name):
    return pushed(jax, FUNCTIONS[name](jax)), (1.0,)


@family("a", "polynomial custom_jvp checkpoint jit")
def grad_of_grad_of(jax, name):
    return jax.grad(jax.grad(FUNCTIONS[name](jax))), (1.0,)


@family("a", "polynomial custom_jvp checkpoint ref jit")
def grad_of_jvp_of(jax, name):
    return jax.grad(pushed(jax, FUNCTIONS[name](jax))), (1.0,)


@family("a", ALL)
def vmap_of_grad_of(jax, name):
    return jax.vmap(jax.grad(FUNCTIONS[name](jax))), (f32(3),)


@family("a", ALL)
def grad_of_vmap_of(jax, name):
    mapped = jax.vmap(FUNCTIONS[name](jax))
    return jax.grad(lambda x: jax.numpy.sum(mapped(x))), (f32(3),)


@family("a", ALL)
def vmap_of_vmap_of(jax, name):
    return jax.vmap(jax.vmap(FUNCTIONS[name](jax))), (f32(2, 3),)


@family("a", ALL)
def jit_of_value_and_grad_of(jax, name):
    return jax.jit(jax.value_and_grad(FUNCTIONS[name](jax))), (1.0,)


@family("a", ALL)
def vjp_of(jax, name):
    return lambda x: jax.vjp(FUNCTIONS[name](jax), x)[1](1.0), (1.0,)


@family("a", "polynomial custom_jvp")
def third_derivative_of(jax, name):
    function = pushed(jax, jax.grad(pushed(jax, FUNCTIONS[name](jax))))
    return function, (1.0,)


@program("a")
def jacobians(jax):
    def function(x):
        weights = np.ones((2, 3), np.float32)
        return jax.jacfwd(lambda y: jax.lax.dot(weights, jax.lax.sin(y)))(x)

    return function, (f32(3),)


@program("a")
def hessian(jax):
    return jax.hessian(lambda x: jax.numpy.sum(x**3)), (f32(2),)


@program("a")
def complex_gradient(jax):
    return jax.grad(lambda z: jax.numpy.real(z**2.5)), (1.0 + 2.0j,)


@program("a")
def weak_power(jax):
    return lambda x, t: jax.jvp(lambda x: x**2.5, (x,), (t,)), (1.5, 1.5)


@program("a")
def groups_of_a_sum(jax):
    def function(x):
        return jax.lax.psum(x, "i") - jax.lax.pmean(x, "i")

    return jax.vmap(function, axis_name="i"), (f32(2, 3),)


@program("a")
def exchange_along_a_named_axis(jax):
    def function(x):
        return jax.lax.all_to_all(x, "i", 0, 0)

    return jax.vmap(function, axis_name="i"), (f32(2, 2),)
